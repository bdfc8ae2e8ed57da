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
)

// An Event is a push, or a change of a pull request or of what people say about it. The zero value is any other event.
type Event struct {
	Repositories []string // names of the repository: paths in lower case, as "acme/platform"
	Refs         []string // that were pushed to, in full: "refs/heads/main"; empty if it is no push
	Default      string   // the ref of the default branch, if the event has it
	Pull         bool     // a pull request changed
}

// A webhook describes how a forge sends events.
type webhook struct {
	header string                               // in every request
	is     func(value string) bool              // reports whether a value of that header is of this forge; nil: any
	proves func(d delivery, secret string) bool // in a time that does not depend on the secret
	id     func(d delivery) string              // identifies a delivery; nil or "": its content does
	event  func(delivery) (Event, error)
}

// senderOf returns the forge that a request seems to come from, or nil.
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

// signed reports whether a signature, in hexadecimal digits, belongs to a content.
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

// equalSecrets reports whether two secrets are equal. The time it takes does not even show their length.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// hubProves returns the check of a signature of the body with SHA-256 in a header. A signature with
// SHA-1 proves nothing.
func hubProves(header string) func(delivery, string) bool {
	return func(d delivery, secret string) bool {
		signature, ok := strings.CutPrefix(d.header.Get(header), "sha256=")
		return ok && signed(d.body, signature, secret)
	}
}

// hubEvent returns how to read the events of a forge whose payloads have a ref and a repository with
// full_name. A header names the event. The action of a pull request does not matter: Headgate reads its
// state from the forge.
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

// pushOf returns a push, or an error if the names cannot be one repository and its refs.
func pushOf(repositories []string, main string, refs ...string) (Event, error) {
	e, err := eventOf(repositories)
	if err != nil {
		return Event{}, err
	}
	for _, ref := range refs {
		if !strings.HasPrefix(ref, "refs/") || strings.HasSuffix(ref, "/") || strings.ContainsFunc(ref, invisible) || strings.ContainsFunc(ref, unicode.IsSpace) {
			return Event{}, errors.New("the event names a ref that is none")
		}
	}
	e.Default, e.Refs = main, refs
	return e, nil
}

// pullOf returns an event of a pull request. Headgate asks the forge which one it is.
func pullOf(repositories ...string) (Event, error) {
	e, err := eventOf(repositories)
	e.Pull = err == nil
	return e, err
}

func eventOf(repositories []string) (Event, error) {
	var e Event
	for _, r := range repositories {
		path := pathOf(r)
		if owner, name, _ := strings.Cut(path, "/"); owner == "" || name == "" || strings.HasSuffix(name, "/") || strings.ContainsFunc(path, invisible) {
			return Event{}, errors.New("the event does not name its repository")
		}
		e.Repositories = append(e.Repositories, path)
	}
	return e, nil
}

// invisible reports whether a character is invisible; no name has one.
func invisible(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
