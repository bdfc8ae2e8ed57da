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
	"strings"
	"time"
)

// A rest is a forge that is asked in plain HTTP and JSON: of Bitbucket and Azure DevOps no
// client is kept that has statuses and comments.
type rest struct {
	name   string // for people
	at     Repository
	client *http.Client
}

// A reply is what came back beside a body; its zero value is that nothing did.
type reply struct {
	code   int
	header http.Header
}

// do sends in, if it is not nil, and reads the answer into out, if that is not nil; an answer that
// is no JSON is an error in any case.
func (r rest) do(ctx context.Context, a answer, method, path string, in, out any) (reply, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return reply{}, fmt.Errorf("%s: %w", r.name, err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.at.api()+path, body)
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
	case signsIn(resp):
		resp.StatusCode = http.StatusUnauthorized
	case resp.StatusCode >= 300:
		a.said = sentences(raw)
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

// signsIn tells the page that Azure DevOps shows instead of an error to whom it does not know.
func signsIn(resp *http.Response) bool {
	return resp.StatusCode == http.StatusNonAuthoritativeInfo ||
		resp.StatusCode == http.StatusFound && strings.Contains(resp.Header.Get("Location"), "_signin")
}

// sentences are what a forge says in an error: {"message"} of Azure DevOps, {"error":{"message"}}
// of Bitbucket Cloud, {"errors":[{"message"}]} of Data Center. What is of another shape is left out.
func sentences(raw []byte) string {
	var is struct {
		Message string
		Error   json.RawMessage // of proxies a string
		Errors  json.RawMessage
	}
	var one struct{ Message string }
	var all []struct{ Message string }
	_ = json.Unmarshal(raw, &is)
	_ = json.Unmarshal(is.Error, &one)
	_ = json.Unmarshal(is.Errors, &all)
	said := []string{is.Message, one.Message}
	for _, e := range all {
		said = append(said, e.Message)
	}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), ": ")
}

// refusedWith is whether a forge will never do what it was asked, and says so with such a code.
func refusedWith(r reply, err error, codes ...int) bool {
	_, passes := errors.AsType[*Later](err)
	return err != nil && !passes && slices.Contains(codes, r.code)
}
