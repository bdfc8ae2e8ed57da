package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// A rest is a client in plain HTTP and JSON for forges without a client library that supports statuses and comments.
type rest struct {
	name   string // display name of the forge
	at     Repository
	api    string // URL that ends in a slash
	client *http.Client
	// signsIn reports whether an answer is a sign-in page instead of an error. It is nil if the forge has no such page.
	signsIn func(*http.Response) bool
}

// A reply holds what an answer has besides its body. The zero value means that there was no answer.
type reply struct {
	code   int
	header http.Header
}

// do sends in, unless it is nil, and decodes the answer into out, unless that is nil. An answer that is not JSON is
// always an error.
func (r rest) do(ctx context.Context, a answer, method, path string, in, out any) (reply, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return reply{}, fmt.Errorf("%s: %w", r.name, err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.api+path, body)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", r.name, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "headgate")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	a.forge, a.of = r.name, r.at.String()
	resp, err := r.client.Do(req)
	if err != nil {
		a.err = err
		return reply{}, a.trouble(time.Now())
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	a.resp = resp
	switch {
	case r.signsIn != nil && r.signsIn(resp):
		resp.StatusCode = http.StatusUnauthorized
	case resp.StatusCode >= 300: // the status code is enough
	case err != nil:
		a.err = err
	case resp.StatusCode == http.StatusNoContent, out == nil && len(bytes.TrimSpace(raw)) == 0:
		return reply{resp.StatusCode, resp.Header}, nil
	default:
		if out == nil {
			out = new(json.RawMessage)
		}
		if a.err = json.Unmarshal(raw, out); a.err == nil {
			return reply{resp.StatusCode, resp.Header}, nil
		}
	}
	return reply{resp.StatusCode, resp.Header}, a.trouble(time.Now())
}

// refusedWith reports whether a forge refused a request permanently with one of the status codes.
func refusedWith(r reply, err error, codes ...int) bool {
	_, passes := errors.AsType[*Later](err)
	return err != nil && !passes && slices.Contains(codes, r.code)
}
