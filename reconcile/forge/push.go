package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"headgate.dev/headgate/reconcile/legible"
)

// An Event is a push, or a change of a pull request, its comments or its reviews. The zero value is any other event.
type Event struct {
	Repositories []string // names of the repository: paths in lower case, as "acme/platform"
	Refs         []string // refs that were pushed, as full names: "refs/heads/main"; empty if it is not a push
	Default      string   // the ref of the default branch, if the event has it
	Pull         bool     // a pull request changed
}

// A webhook describes how a forge sends events.
type webhook struct {
	header string                               // the header that every request of the forge has
	is     func(value string) bool              // reports whether a header value is from this forge; nil accepts any value
	proves func(d delivery, secret string) bool // takes the same time for every secret
	id     func(d delivery) string              // identifies a delivery; if it is nil or returns "", the content does
	event  func(delivery) (Event, error)
}

// senderOf returns the forge that appears to have sent a request, or nil.
func senderOf(h http.Header) *Forge {
	i := slices.IndexFunc(forges, func(f Forge) bool {
		value := h.Get(f.webhook.header)
		return value != "" && (f.webhook.is == nil || f.webhook.is(value))
	})
	if i < 0 {
		return nil
	}
	return &forges[i]
}

// signed reports whether a hexadecimal signature matches a content.
func signed(content []byte, signature, secret string) bool {
	got, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(got, sum([]byte(secret), content))
}

func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

// equalSecrets reports whether two secrets are equal. Its duration does not even reveal their length.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// hubProves returns a function that checks the SHA-256 signature of the body in a header. It does not accept SHA-1.
func hubProves(header string) func(delivery, string) bool {
	return func(d delivery, secret string) bool {
		signature, ok := strings.CutPrefix(d.header.Get(header), "sha256=")
		return ok && signed(d.body, signature, secret)
	}
}

// hubEvent returns a function that reads the events of a forge whose payloads have a ref and a repository with full_name. A
// header names the event. The action of a pull request does not matter, because Headgate reads its state from the forge.
func hubEvent(header string) func(delivery) (Event, error) {
	return func(d delivery) (Event, error) { return readHubEvent(d, d.header.Get(header)) }
}

func readHubEvent(d delivery, event string) (Event, error) {
	isPull := slices.Contains([]string{"pull_request", "pull_request_review", "pull_request_approved", "pull_request_comment", "issue_comment"}, event)
	if event != "push" && !isPull {
		return Event{}, nil
	}
	var decoded struct {
		Ref        string
		Repository struct {
			FullName      string `json:"full_name"`
			DefaultBranch string `json:"default_branch"`
		}
	}
	if err := decode(d, &decoded); err != nil {
		return Event{}, err
	}
	if isPull {
		return pullOf(decoded.Repository.FullName)
	}
	return pushOf([]string{decoded.Repository.FullName}, branch(decoded.Repository.DefaultBranch), decoded.Ref)
}

func decode(d delivery, into any) error {
	if err := json.Unmarshal(d.payload, into); err != nil {
		return fmt.Errorf("cannot read the event: %w", err)
	}
	return nil
}

func branch(name string) string {
	if name == "" {
		return ""
	}
	return "refs/heads/" + name
}

// pushOf returns a push. It returns an error if the names cannot belong to one repository or the refs are invalid.
func pushOf(repositories []string, main string, refs ...string) (Event, error) {
	e, err := eventOf(repositories)
	if err != nil {
		return Event{}, err
	}
	for _, ref := range refs {
		if !strings.HasPrefix(ref, "refs/") || strings.HasSuffix(ref, "/") || strings.ContainsFunc(ref, legible.Invisible) || strings.ContainsFunc(ref, unicode.IsSpace) {
			return Event{}, errors.New("the event names an invalid ref")
		}
	}
	e.Default, e.Refs = main, refs
	return e, nil
}

// pullOf returns an event of a pull request. It has no number, because Headgate reads all of them from the forge.
func pullOf(repositories ...string) (Event, error) {
	e, err := eventOf(repositories)
	e.Pull = err == nil
	return e, err
}

func eventOf(repositories []string) (Event, error) {
	var e Event
	for _, r := range repositories {
		path := pathOf(r)
		if owner, name, _ := strings.Cut(path, "/"); owner == "" || name == "" || strings.HasSuffix(name, "/") || strings.ContainsFunc(path, legible.Invisible) {
			return Event{}, errors.New("the event does not name its repository")
		}
		e.Repositories = append(e.Repositories, path)
	}
	return e, nil
}
