package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/network"
)

// Later is a temporary error: the forge is unavailable, or returns a time to wait. Any other error of this package is
// permanent: the same attempt would fail again.
type Later struct { //nolint:errname // forge.Later is clear
	After time.Duration // the wait that the forge requests, or 0
	Err   error
}

func (e *Later) Error() string { return e.Err.Error() }
func (e *Later) Unwrap() error { return e.Err }

// RetryAfter returns After. The outbox recognizes temporary errors by this method.
func (e *Later) RetryAfter() time.Duration { return e.After }

// A Refusal is a permanent error about a token: the forge does not accept it, or it lacks a permission. Only a new
// token helps, and it may be about to be rotated. A forge that is shutting down also refuses a valid token.
type Refusal struct{ Err error } //nolint:errname // forge.Refusal is clear

func (e *Refusal) Error() string { return e.Err.Error() }
func (e *Refusal) Unwrap() error { return e.Err }

// TokenRefused reports true. The outbox recognizes refused tokens by this method.
func (e *Refusal) TokenRefused() bool { return true }

// maxWait is the maximum wait that Headgate accepts from a forge: the longest known window is an hour.
const maxWait = 2 * time.Hour

// An answer describes a request that a forge refused.
type answer struct {
	forge string         // display name of the forge
	of    string         // the repository, as owner/name
	doing string         // the request; "" means posting statuses
	right string         // the permission that the request needs
	resp  *http.Response // nil without a response
	err   error          // the error of the client
}

// trouble returns the error for an answer: *Later if it is temporary.
func (a answer) trouble(now time.Time) error {
	if a.resp == nil {
		return &Later{Err: fmt.Errorf("%s: cannot reach the forge: %w", a.forge, unwrapURL(a.err))}
	}
	code := a.resp.StatusCode
	after, asked := retryAfter(a.resp.Header.Get("Retry-After"), now)
	switch {
	case code == http.StatusTooManyRequests, code == http.StatusForbidden && asked:
		return &Later{After: after, Err: fmt.Errorf("%s: too many requests (%d)", a.forge, code)}
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		return &Later{After: after, Err: fmt.Errorf("%s: the forge is in trouble (%d)", a.forge, code)}
	case code < 300:
		// The forge did this, or a proxy answered. The next attempt reads the current state.
		return &Later{Err: fmt.Errorf("%s: cannot understand the answer (%d)", a.forge, code)}
	case code < 400:
		return fmt.Errorf("%s: %s has moved (%d): set its new URL; Headgate does not send the token to another host", a.forge, a.of, code)
	case code == http.StatusUnauthorized:
		return &Refusal{fmt.Errorf("%s: the token is not accepted (401): it is wrong, expired or revoked", a.forge)}
	case code == http.StatusForbidden:
		return &Refusal{fmt.Errorf("%s: the token may not %s of %s (403): it needs %s", a.forge, cmp.Or(a.doing, "set statuses"), a.of, a.right)}
	case code == http.StatusNotFound:
		return fmt.Errorf("%s: no repository %s or no such commit or pull request, or the token cannot see it (404): it needs %s", a.forge, a.of, a.right)
	}
	return fmt.Errorf("%s: it refuses to %s (%d)%s", a.forge, cmp.Or(a.doing, "set statuses"), code, a.because())
}

// becauses words the known reasons of the answer 422. The forge's own text is not shown, because it may quote anything.
var becauses = []struct{ contains, means string }{
	{"no commit found", "it does not have the commit: push it first"},
	{"maximum number of statuses", "the commit has as many statuses of this context as the forge allows (1,000): push another commit"},
	{"limit of jobs", "the commit has as many statuses as the forge allows: push another commit"},
	{"description is too long", "the description of the status is too long for it"},
	{"body is too long", "the comment is too long for it"},
	{"field:target_url", "it does not accept the target URL of the status"},
	{" locked", "the conversation of the pull request is locked"},
	{" archived", "the repository is archived, so nothing can be written to it"},
}

// because returns the reason of a refusal in our own words, or nothing.
func (a answer) because() string {
	if a.resp.StatusCode != http.StatusUnprocessableEntity || a.err == nil {
		return ""
	}
	text := strings.ToLower(a.err.Error())
	for _, one := range becauses {
		if strings.Contains(text, one.contains) {
			return ": " + one.means
		}
	}
	return ""
}

// unwrapURL removes the method, the URL and quotes of the forge from a client's error. errors.Is and errors.As still
// find its cause.
func unwrapURL(err error) error {
	u, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err // an error of Headgate itself
	}
	if errors.Is(u.Err, context.Canceled) || errors.Is(u.Err, context.DeadlineExceeded) {
		return u.Err
	}
	if _, ours := errors.AsType[*Later](u.Err); ours {
		return fmt.Errorf("%s: %w", originOf(u.URL), u.Err)
	}
	return fmt.Errorf("%s: %w", originOf(u.URL), network.Foreign(u.Err))
}

// retryAfter parses the Retry-After header: seconds or a date.
func retryAfter(header string, now time.Time) (time.Duration, bool) {
	header = strings.TrimSpace(header)
	if header == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseInt(header, 10, 64); err == nil {
		seconds = min(seconds, int64(maxWait/time.Second))
		return max(0, time.Duration(seconds)*time.Second), true
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0, false
	}
	return min(max(0, at.Sub(now)), maxWait), true
}
