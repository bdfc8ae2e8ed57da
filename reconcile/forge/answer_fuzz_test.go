package forge

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

type answers struct {
	code int
	body []byte
	link string
}

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: a.code, Status: http.StatusText(a.code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Link": {a.link}, "Retry-After": {a.link}, "Location": {a.link}, "X-Next-Page": {a.link}, "X-Ausername": {a.link}},
		Body:   io.NopCloser(bytes.NewReader(a.body)),
	}, nil
}

// Whatever a server responds, the client must not panic, must stop, and must not put the token into an error.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`null`), "")
	f.Add(200, []byte(`{"statuses":[null,{"context":null}]}`), `<http://x/?page=2>; rel="next"`)
	f.Add(200, []byte(`[null,{"id":9,"context":"a","status":"success"}]`), `<https://git.example.org/?page=1>; rel="next"`)
	f.Add(401, []byte(`{"message":"token `+canary+`","errors":[{"message":"`+canary+`"}]}`), "9")
	f.Add(422, []byte(`{"message":["`+canary+`"],"errors":null}`), "Wed, 21 Oct 2099 07:28:00 GMT")
	f.Add(302, []byte(canary), "https://elsewhere.example.org/"+canary)
	f.Add(202, []byte(canary), "")
	f.Add(200, []byte(`[null,{"id":9,"name":"a","status":"success"},{"id":8,"name":"a","body":"<!-- headgate/platform -->","author":null}]`), "1")
	f.Add(200, []byte(`[{"id":1}]`), `<x>; next`) // GitLab's client would panic on it
	f.Add(400, []byte(`{"message":{"state":["Cannot transition status `+canary+`"]}}`), "")
	f.Add(200, []byte(`{"values":[null,{"key":"a","name":null}],"next":"https://elsewhere.example.org/","isLastPage":false,"nextPageStart":1}`), "")
	f.Add(200, []byte(`{"values":[{"id":1,"content":{"raw":"[//]: # (headgate/platform)"},"action":"COMMENTED","comment":{"id":1,"text":"[//]: # (headgate/platform)"}}],"nextPageStart":-1}`), "%zz")
	f.Add(403, []byte(`{"error":{"message":"`+canary+`","detail":null},"errors":[null,{"message":"`+canary+`"}]}`), "")
	f.Add(200, []byte(`{"value":[{"id":1,"comments":[]},{"id":2,"comments":[{"id":1,"content":"<!-- headgate/platform -->"}],"context":null}],"authenticatedUser":null}`), "")
	f.Add(200, []byte(`[{"number":-1,"iid":1,"sha":"`+canary+`","head":{"sha":null},"base":null}]`), "2")
	f.Add(200, []byte(`{"value":[{"pullRequestId":9,"lastMergeSourceCommit":null}],"values":[{"id":9,"source":{"commit":{"hash":"e"}},"fromRef":{}}]}`), "")
	f.Add(203, []byte(`<html>Sign in `+canary+`</html>`), "")
	f.Fuzz(func(t *testing.T, code int, body []byte, link string) {
		if code < 200 || code > 599 || strings.ContainsAny(link, "\r\n") {
			return
		}
		for _, kind := range kinds {
			of := Account{
				Repository: Repository{Kind: kind, Base: "https://git.example.org", Owner: "acme", Name: "platform"},
				Token:      Token(canary), Transport: answers{code, body, link},
			}
			p, err := of.Poster()
			if err != nil {
				t.Fatal(err)
			}
			if err := (Statuses{Poster: p, Cluster: "production", Home: "headgate-system"}).Publish(t.Context(), green); strings.Contains(errText(err), canary) {
				t.Errorf("%s: the error has the token in it: %v", kind, err)
			}
			pulls, err := of.Pulls()
			if err != nil {
				t.Fatal(err)
			}
			_, err = pulls.Pull(t.Context(), 7)
			open, failed := pulls.Open(t.Context())
			for _, pull := range open {
				if pull.Number < 1 || !isCommit(pull.Head) {
					t.Errorf("%s: %v is no pull request", kind, pull)
				}
			}
			if err = errors.Join(err, failed, pulls.Comment(t.Context(), 7, "headgate/platform", "said")); strings.Contains(errText(err), canary) {
				t.Errorf("%s: the error of a comment has the token in it: %v", kind, err)
			}
			m := &Merges{Pulls: pulls, Rules: Rules{Approvers: []string{"bob"}, Reviews: true}, Branch: onMain}
			if all, err := m.Approvals(t.Context(), commit); strings.Contains(errText(err), canary) || err != nil && len(all.All()) > 0 {
				t.Errorf("%s: of an answer that cannot be understood come approvals %+v, or the token: %v", kind, all, err)
			}
			if _, err := pulls.conversation(t.Context(), Pull{Number: 7, Head: commit}, m.Rules); err != nil && strings.Contains(pulls.transport.redacted(err).Error(), canary) {
				t.Errorf("%s: the error of commands has the token in it: %v", kind, err)
			}
		}
	})
}
