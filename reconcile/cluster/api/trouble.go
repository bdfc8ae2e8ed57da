package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ShortTimeout limits requests that must not take long, such as storing the outcomes after the pass was stopped.
const ShortTimeout = 15 * time.Second

// A ConflictError means that other managers own fields that we want to set to other values.
type ConflictError struct {
	Conflicts []Conflict // by manager
}

// A Conflict is a conflict with one manager over some fields.
type Conflict struct {
	Manager string
	Fields  []string // in the API server's notation: ".spec.versions"
}

func (e *ConflictError) Error() string {
	parts := make([]string, 0, len(e.Conflicts))
	for _, c := range e.Conflicts {
		parts = append(parts, fmt.Sprintf("conflict with %s over %s", c.Manager, strings.Join(c.Fields, ", ")))
	}
	return strings.Join(parts, "; ") + "; remove the fields there or here, or set conflicts: Take"
}

// ConflictIn returns the conflict in an API server's answer, or nil.
func ConflictIn(err error) *ConflictError {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var e ConflictError
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		manager := cause.Message // `conflict with "kubectl" using apps/v1`
		if parts := strings.SplitN(manager, `"`, 3); len(parts) == 3 {
			manager = parts[1]
		}
		i := slices.IndexFunc(e.Conflicts, func(c Conflict) bool { return c.Manager == manager })
		if i < 0 {
			i = len(e.Conflicts)
			e.Conflicts = append(e.Conflicts, Conflict{Manager: manager})
		}
		e.Conflicts[i].Fields = append(e.Conflicts[i].Fields, cause.Field)
	}
	if len(e.Conflicts) == 0 {
		return nil
	}
	for _, c := range e.Conflicts {
		slices.Sort(c.Fields)
	}
	slices.SortFunc(e.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Manager, b.Manager) })
	return &e
}

// Explain adds the action and the object to an error, for the owner of the kubeconfig.
func (c *Client) Explain(err error, verb, what string) error {
	var failed *url.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errUnanswered), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return lost{fmt.Errorf("cannot %s %s: %w", verb, what, Cause(err))}
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s does not accept the credentials of this kubeconfig: %w", c.host(), err)
	case IsRBAC(err):
		return fmt.Errorf("not allowed to %s %s (RBAC: grant the verb %q): %w", verb, what, saidBy(err).verb, err)
	case saidBy(err).gate():
		return c.gated(err, verb, what)
	case errors.As(err, &failed):
		return lost{fmt.Errorf("cannot reach the API server at %s, which the kubeconfig's context names: %w", c.host(), failed.Err)}
	}
	return fmt.Errorf("cannot %s %s: %w", verb, what, err)
}

// gated returns the error for an admission webhook or policy that refuses one of Headgate's own objects: the lease, the inventory
// or the key. Without them, a pass writes nothing, so no commit can repair the webhook.
func (c *Client) gated(err error, verb, what string) error {
	does, how := "refuses it", "change it by hand"
	if saidBy(err).uncalled {
		does, how = "does not answer", "repair it by hand"
	}
	return fmt.Errorf("cannot %s %s: the %s %s, and until then Headgate applies and prunes nothing; %s, since no commit can, or have its namespaceSelector leave out the namespace %s: %w",
		verb, what, gateText(err), does, how, c.Sync.Namespace, err)
}

// gateText names the admission webhook or policy that caused an error.
func gateText(err error) string {
	switch gate, _ := gateOf(err); {
	case gate.Webhook != "":
		return fmt.Sprintf("admission webhook %q", gate.Webhook)
	case gate.Policy != "":
		return fmt.Sprintf("ValidatingAdmissionPolicy %q", gate.Policy)
	}
	return "admission webhook"
}

// IsRBAC reports whether a right is missing. Quotas, admission and namespaces that are being deleted also answer Forbidden.
func IsRBAC(err error) bool {
	return apierrors.IsForbidden(err) && !saidBy(err).denied && saidBy(err).verb != ""
}

// Cause returns an error without the URL that the HTTP client adds.
func Cause(err error) error {
	if lost, ok := errors.AsType[*url.Error](err); ok {
		return lost.Err
	}
	return err
}

// host returns the host of the API server, without the rest of its URL, which may hold credentials.
func (c *Client) host() string {
	if u, err := url.Parse(c.config.Host); err == nil && u.Host != "" {
		return u.Host
	}
	_, after, found := strings.Cut(c.config.Host, "@")
	if found {
		return after
	}
	return c.config.Host
}

// Retry repeats a request that a busy API server refused or never received. The client itself retries if the server
// sets Retry-After.
func Retry(ctx context.Context, attempt func() error) error {
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5}
	var last error
	tries := 0
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		last = attempt()
		tries++
		return !IsTransient(last) || tries >= mostTries(last), nil
	})
	if last == nil {
		return err // nil, or ctx was done before the first attempt
	}
	return last
}

// mostTries returns how often to send a request that fails with this error. A slow failure is left to the next pass, because a
// hanging admission webhook may be called for thousands of objects.
func mostTries(err error) int {
	switch said := saidBy(err); {
	case !said.uncalled:
		return 5
	case said.slow:
		return 1
	}
	return 2
}

// Sleep waits for a while, or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// A concern is what the error of a request affects, and so what else must stop.
type concern string

const (
	withObject concern = "object" // this object, or an admission webhook that is called for it: all others continue
	withKind   concern = "kind"   // every object of its kind: objects that depend on the kind wait
	withServer concern = "server" // the API server, or the connection to it: nothing is pruned
)

// troubleWith returns what an error affects. An error that does not come from a request affects its object.
func troubleWith(err error) concern {
	status, answered := StatusOf(err)
	if !answered {
		if isLost(err) {
			return withServer
		}
		return withObject
	}
	switch said := saidBy(err); {
	case said.unconverted, said.unstored:
		return withKind
	case said.gate(): // whatever code the webhook chose
		return withObject
	case status.Code == http.StatusServiceUnavailable && saidIn(messageOf(status)).unreached:
		return withKind
	case apierrors.IsUnauthorized(err), apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err), apierrors.IsServiceUnavailable(err),
		status.Code == http.StatusBadGateway, status.Code == http.StatusGatewayTimeout,
		saidBy(err).etcd && !saidBy(err).misfits:
		return withServer
	}
	return withObject
}

// StatusOf returns the status in an API server's answer, and whether there is one.
func StatusOf(err error) (metav1.Status, bool) {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return metav1.Status{}, false
	}
	return answer.Status(), true
}

// messageOf returns the message of a status and those of its causes: where the client wrote the message, the causes hold the
// server's answer.
func messageOf(status metav1.Status) string {
	texts := []string{status.Message}
	if status.Details != nil {
		for _, c := range status.Details.Causes {
			texts = append(texts, c.Message)
		}
	}
	return strings.Join(texts, "\n")
}

// A lost error is the explained error of a request that was not answered.
type lost struct{ error }

func (e lost) Unwrap() error { return e.error }

// isLost reports whether an error means that a request was not answered.
func isLost(err error) bool {
	_, explained := errors.AsType[lost](err)
	_, failed := errors.AsType[*url.Error](err)
	_, network := errors.AsType[net.Error](err)
	return explained || failed || network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || utilnet.IsHTTP2ConnectionLost(err)
}

// IsTransient reports whether the same request may succeed in a moment.
func IsTransient(err error) bool {
	if apierrors.IsInternalError(err) && saidBy(err).misfits || errors.Is(err, errUnanswered) {
		return false
	}
	_, answered := StatusOf(err)
	return answered && troubleWith(err) == withServer && !apierrors.IsUnauthorized(err) || apierrors.IsInternalError(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// OfObject reports whether an API server refused only this object or its kind, so that requests for others may succeed.
func OfObject(err error) bool {
	_, answered := StatusOf(err)
	return answered && troubleWith(err) != withServer
}

// OfServer reports whether an error affects the API server, or the connection to it: then nothing is pruned.
func OfServer(err error) bool { return troubleWith(err) == withServer }

// Stops reports whether an error of a request ends the pass. Trouble with one object or kind does not. Neither does a request
// without an answer while the API server answers others: a proxy that drops one request must not stop all of them.
func (c *Client) Stops(ctx context.Context, err error) bool {
	return ctx.Err() != nil || troubleWith(err) == withServer && c.Reach(ctx) != nil
}

// Reach returns the error if the API server does not answer; nil if it does.
func (c *Client) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ShortTimeout)
	defer cancel()
	_, err := c.Core.ConfigMaps(c.Sync.Namespace).Get(ctx, InventoryName(c.Sync), metav1.GetOptions{})
	if err != nil && OfObject(err) { // a missing or forbidden inventory is an answer
		return nil
	}
	return err
}

// IsUnknownKind reports whether an API server answered that it does not serve the resource, as opposed to a missing object.
func IsUnknownKind(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}

// Refusal returns the reason why the API server refused an object, with the webhook or policy that it names.
func (c *Client) Refusal(err error, verb string, id manifest.ID) error {
	why := c.explained(err, verb, id)
	if by, named := gateOf(err); named {
		return reason.Refused(by, why)
	}
	return why
}

// explained returns a refusal with what to do about it.
func (c *Client) explained(err error, verb string, id manifest.ID) error {
	if conflict := ConflictIn(err); conflict != nil {
		return conflict
	}
	if reason, is := errors.AsType[reason.CodedError](err); is {
		return reason
	}
	switch {
	case saidBy(err).uncalled:
		return fmt.Errorf("the %s does not answer, so the API server refuses every object that it checks; see whether its service runs: %w", gateText(err), err)
	case apierrors.IsRequestEntityTooLargeError(err), saidBy(err).tooLarge:
		return fmt.Errorf("it is too large: the API server stores at most 1.5 MiB of an object and accepts at most 3 MiB: %w", err)
	}
	if IsRBAC(err) || !OfObject(err) {
		return c.Explain(err, verb, id.Brief())
	}
	return err
}
