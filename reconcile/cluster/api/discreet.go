package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/legible"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Errors and warnings of an API server go to logs, commit statuses and comments, which more people can read than can read the
// cluster. An API server quotes what it refuses, an admission webhook writes free text, and a proxy may show the whole request.
// Therefore, credentials and the values of Secrets are removed from an answer here, before any client reads or shortens it.

// Conceal returns a context for requests whose answers may quote values that the masks hide.
func Conceal(ctx context.Context, masks ...diff.Mask) context.Context {
	return context.WithValue(ctx, concealedKey{}, slices.Concat(concealedIn(ctx), masks))
}

type concealedKey struct{}

func concealedIn(ctx context.Context) []diff.Mask {
	masks, _ := ctx.Value(concealedKey{}).([]diff.Mask)
	return masks
}

const (
	maxAnswer = 1 << 20 // bytes to read of an error
	maxText   = 4 << 10 // bytes to keep of each text in it
)

// tidy returns the text of a server without control and invisible characters, and shortens it to maxText. Line breaks become
// spaces.
func tidy(text string) string {
	return legible.Cut(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case legible.Invisible(r):
			return -1
		}
		return r
	}, text), maxText)
}

// concealing masks the values that a request must not reveal.
type concealing []diff.Mask

func concealedBy(req *http.Request) concealing {
	return slices.Concat(concealedIn(req.Context()), []diff.Mask{sentCredentials(req)})
}

func (c concealing) hide(text string) string {
	for _, m := range c {
		text = m.Text(text)
	}
	return tidy(text)
}

// withoutShort leaves out values that may be words of a path, such as "v1", because a conflict is resolved by the path of its
// field.
func (c concealing) withoutShort() concealing {
	var longer concealing
	for _, m := range c {
		m.Values = slices.DeleteFunc(slices.Clone(m.Values), func(v string) bool { return len(v) < 6 })
		longer = append(longer, m)
	}
	return longer
}

// redactAnswer removes from an answer everything that the request must not reveal.
func redactAnswer(req *http.Request, resp *http.Response) error {
	if resp.StatusCode < http.StatusMultipleChoices && len(resp.Header["Warning"]) == 0 {
		return repeats(req, resp)
	}
	unknown := isOfSecret(req.URL.Path) && len(concealedIn(req.Context())) == 0 // the values of the Secret are not known here
	masks := concealedBy(req)
	hide := masks.hide
	if unknown {
		resp.Header.Del("Warning")
	}
	for i, w := range resp.Header["Warning"] {
		resp.Header["Warning"][i] = hide(w)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return repeats(req, resp)
	}
	if to, err := req.URL.Parse(resp.Header.Get("Location")); err != nil || hide(to.String()) != to.String() {
		resp.Header.Del("Location") // clients quote the location
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	rest := io.Reader(bytes.NewReader(nil))
	if err != nil {
		rest = broken{err}
	}
	status, isStatus := decodeStatus(resp.Header.Get("Content-Type"), body)
	if isStatus {
		quiet := func(text string) string {
			if unknown {
				text = denial.ReplaceAllString(text, "$1")
			}
			return hide(text)
		}
		if each(&status, quiet, masks.withoutShort().hide) {
			if data, err := json.Marshal(status); err == nil {
				body = data
				resp.Header.Set("Content-Type", "application/json")
			}
		}
	} else {
		body = []byte(hide(string(body)))
	}
	if resp.ContentLength >= 0 {
		resp.ContentLength = int64(len(body))
		resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	resp.Body = readCloser{io.MultiReader(bytes.NewReader(body), rest), resp.Body}
	return nil
}

// errRepeats is returned for an answer that contains the credentials of its request. Clients quote what they cannot decode.
var errRepeats = errors.New("the answer repeats the credentials of the request, so it does not come from an API server; set the server of the kubeconfig to its address")

// repeats returns errRepeats if the beginning of an answer contains the credentials of the request. Answers about Secrets are
// exempt, because a Secret may hold them.
func repeats(req *http.Request, resp *http.Response) error {
	_, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if len(token) < 8 || isOfSecret(req.URL.Path) || Verb(req) == "WATCH" {
		return nil
	}
	if strings.Contains(peek(resp), token) {
		return errRepeats
	}
	return nil
}

// denial matches the text of an admission webhook or policy, which follows the API server's own sentence.
var denial = regexp.MustCompile(`(?s)((?:denied the request|denied request|failed calling webhook "[^"]*")).*`)

// each changes the texts and the field paths of a status, and reports whether anything changed.
func each(s *metav1.Status, texts, paths func(string) string) (changed bool) {
	apply := func(to *string, change func(string) string) {
		was := *to
		*to = change(was)
		changed = changed || *to != was
	}
	apply(&s.Message, texts)
	if s.Details == nil {
		return changed
	}
	apply(&s.Details.Name, texts)
	for i := range s.Details.Causes {
		apply(&s.Details.Causes[i].Message, texts)
		apply(&s.Details.Causes[i].Field, paths)
	}
	return changed
}

// isOfSecret reports whether a request path is one of Secrets.
func isOfSecret(path string) bool {
	rest, core := strings.CutPrefix(path, "/api/v1/")
	parts := strings.Split(rest, "/")
	return core && (parts[0] == "secrets" || len(parts) > 2 && parts[0] == "namespaces" && parts[2] == "secrets")
}

// sentCredentials returns a mask for the credentials of a request.
func sentCredentials(req *http.Request) diff.Mask {
	var values []string
	if header := req.Header.Get("Authorization"); header != "" {
		_, token, _ := strings.Cut(header, " ")
		values = append(values, header, token)
	}
	if _, password, ok := req.BasicAuth(); ok {
		values = append(values, password)
	}
	return diff.Mask{Values: diff.Spellings(values...)}
}

// longQuote matches what net/http quotes from a server that does not speak HTTP, even if it is quoted several times.
var longQuote = regexp.MustCompile(`"(?:[^"\\]|\\.){60,}"?`)

// redactError returns a client's error, which may quote the server, without everything that the request must not reveal.
func redactError(req *http.Request, err error) error {
	text := err.Error()
	if quiet := longQuote.ReplaceAllString(concealedBy(req).hide(text), `"…"`); quiet != text {
		return redactedError{err, quiet}
	}
	return err
}

type redactedError struct {
	error
	text string
}

func (q redactedError) Error() string { return q.text }

func (q redactedError) Unwrap() error { return q.error }

// errRedirected is returned for a redirect to another server.
var errRedirected = errors.New("it redirects to another host, where the credentials may not go; set the server of the kubeconfig to its address")

// sameServer follows redirects only within one server, because client-go would send the credentials to any server.
func sameServer(to *http.Request, via []*http.Request) error {
	if to.URL.Host != via[0].URL.Host || to.URL.Scheme != via[0].URL.Scheme {
		return errRedirected
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
