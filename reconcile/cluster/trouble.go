package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

// A ConflictError says that other managers own fields that we want to set to something else.
type ConflictError struct {
	Conflicts []Conflict // by manager
}

// A Conflict is with one manager over some fields.
type Conflict struct {
	Manager string
	Fields  []string // as the API server writes them: ".spec.versions"
}

func (e *ConflictError) Error() string {
	parts := make([]string, 0, len(e.Conflicts))
	for _, c := range e.Conflicts {
		parts = append(parts, fmt.Sprintf("conflict with %s over %s", c.Manager, strings.Join(c.Fields, ", ")))
	}
	return strings.Join(parts, "; ") + "; take it out there, or here, or set conflicts: Take"
}

// conflictIn is the conflict that an API server answered with, or nil.
func conflictIn(err error) *ConflictError {
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

// explain says what could not be done to what, and why, in words for somebody who holds a
// kubeconfig.
func (c *Cluster) explain(err error, verb, what string) error {
	var lost *url.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("cannot %s %s: %w", verb, what, cause(err))
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s does not accept the credentials of this kubeconfig: %w", c.host(), err)
	case isRBAC(err):
		return fmt.Errorf("not allowed to %s %s (RBAC: it takes the verb %q): %w", verb, what, verb, err)
	case errors.As(err, &lost):
		return fmt.Errorf("cannot reach the API server at %s, as the kubeconfig's context says: %w", c.host(), lost.Err)
	}
	return fmt.Errorf("cannot %s %s: %w", verb, what, err)
}

// isRBAC reports whether a right is missing. Quotas, admission and namespaces that are going
// away forbid too.
func isRBAC(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), `" cannot `) && strings.Contains(err.Error(), ` resource "`)
}

// cause is an error without the URL that the HTTP client puts before it.
func cause(err error) error {
	if lost, ok := errors.AsType[*url.Error](err); ok {
		return lost.Err
	}
	return err
}

// host is the host of the API server, without whatever else its URL holds.
func (c *Cluster) host() string {
	if u, err := url.Parse(c.config.Host); err == nil && u.Host != "" {
		return u.Host
	}
	_, after, found := strings.Cut(c.config.Host, "@")
	if found {
		return after
	}
	return c.config.Host
}

// retry tries again what an API server was too busy for, or did not get to see. The client
// itself retries where the server says when.
func retry(ctx context.Context, attempt func() error) error {
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 5}
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(context.Context) (bool, error) {
		last = attempt()
		if passing(last) {
			return false, nil
		}
		return true, nil
	})
	if last == nil {
		return err // nil, or a context that was over before the first attempt
	}
	return last
}

// sleep waits for a while, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// misfits are what an API server says of an object that does not fit its schema, or its store.
// It calls that an error of its own.
var misfits = []string{
	"failed to create typed patch object", "field not declared in schema", "error decoding from json", tooLarge,
	"request to convert CR to an invalid group/version", "request to convert CR from an invalid group/version",
}

// tooLarge is what etcd says.
const tooLarge = "request is too large"

// passing reports whether the same request may well succeed in a moment.
func passing(err error) bool {
	if apierrors.IsInternalError(err) && slices.ContainsFunc(misfits, func(text string) bool { return strings.Contains(err.Error(), text) }) {
		return false
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}
