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

// Later is a temporary error: the forge is unavailable, or asks to wait. Any other error of this package is
// permanent: the same attempt would fail again.
type Later struct { //nolint:errname // forge.Later is clear
	After time.Duration // how long the forge asks to wait; 0 if it does not say
	Err   error
}

func (e *Later) Error() string { return e.Err.Error() }
func (e *Later) Unwrap() error { return e.Err }

// RetryAfter returns After. The outbox recognizes temporary errors by this method.
func (e *Later) RetryAfter() time.Duration { return e.After }

// A Refusal is a permanent error about a token: the forge does not accept it, or it may not do what is asked. Only the token
// can change that, which may be about to be rotated. A forge that shuts down refuses a good token, too.
type Refusal struct{ Err error } //nolint:errname // forge.Refusal is clear

func (e *Refusal) Error() string { return e.Err.Error() }
func (e *Refusal) Unwrap() error { return e.Err }

// TokenRefused reports true. The outbox recognizes refused tokens by this method.
func (e *Refusal) TokenRefused() bool { return true }

// maxWait is the maximum time that a forge can ask to wait: the longest known window is an hour.
const maxWait = 2 * time.Hour

// An answer is a forge's refusal of a request.
type answer struct {
	forge string         // its name, for people
	of    string         // owner/name
	doing string         // the request; "" is to set statuses
	right string         // what a token needs for that
	resp  *http.Response // nil if there was none
	err   error          // of the client
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
		// The forge did it, or a proxy answered. The next attempt reads the current state.
		return &Later{Err: fmt.Errorf("%s: cannot understand the answer (%d)", a.forge, code)}
	case code < 400:
		return fmt.Errorf("%s: %s is elsewhere (%d): set its new URL; the token is not taken to another host", a.forge, a.of, code)
	case code == http.StatusUnauthorized:
		return &Refusal{fmt.Errorf("%s: the token is not accepted (401): it is wrong, expired or revoked", a.forge)}
	case code == http.StatusForbidden:
		return &Refusal{fmt.Errorf("%s: the token may not %s of %s (403): it needs %s", a.forge, cmp.Or(a.doing, "set statuses"), a.of, a.right)}
	case code == http.StatusNotFound:
		return fmt.Errorf("%s: no repository %s or no such commit or pull request, or the token cannot see it (404): it needs %s", a.forge, a.of, a.right)
	}
	return fmt.Errorf("%s: it refuses to %s (%d)", a.forge, cmp.Or(a.doing, "set statuses"), code)
}

// unwrapURL removes method and URL from a client's error, and what it quotes of the forge. The cause stays comparable.
func unwrapURL(err error) error {
	u, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err // of Headgate
	}
	if errors.Is(u.Err, context.Canceled) || errors.Is(u.Err, context.DeadlineExceeded) {
		return u.Err
	}
	if _, ours := errors.AsType[*Later](u.Err); ours {
		return fmt.Errorf("%s: %w", originOf(u.URL), u.Err)
	}
	return fmt.Errorf("%s: %w", originOf(u.URL), network.Foreign(u.Err))
}

// retryAfter reads the header of that name: seconds or a date.
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
