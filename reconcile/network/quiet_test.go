package network

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A commit may name any host, and that host's response must not reach the author of the commit, neither as text nor disguised as an
// error code.
func TestQuiet(t *testing.T) {
	const canary = "CANARY-7f3"
	cases := map[string]struct {
		reason string
		code   int
		body   string
		keep   func([]byte) []byte
		want   string
	}{
		"Good":     {reason: "A successful response reaches the client.", code: 200, body: canary, want: canary},
		"Page":     {reason: "An internal host may return a page.", code: 403, body: "<html>" + canary},
		"Redirect": {reason: "A redirect may have a body.", code: 302, body: canary},
		"Code":     {reason: "An error code tells the client whether to retry.", code: 404, body: `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"` + canary + `","detail":"` + canary + `"}]}`, keep: RegistryCodes, want: `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`},
		"NoCode":   {reason: "A text in place of an error code is not an error code.", code: 401, body: `{"errors":[{"code":"` + canary + `"},{"code":"DENIED ` + canary + `"},{"code":"DENIED_` + strings.Repeat("A", 100) + `"}]}`, keep: RegistryCodes},
		"NoJSON":   {reason: "A body that cannot be parsed is dropped.", code: 500, body: canary, keep: RegistryCodes},
		"Token":    {reason: "A token endpoint's error has another format.", code: 401, body: `{"error":"` + canary + `","details":"` + canary + `"}`, keep: RegistryCodes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := Quiet(http.DefaultTransport, tc.keep).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if err != nil || string(got) != tc.want || resp.StatusCode != tc.code {
				t.Errorf("%s\n%d %q, %v; want %q", tc.reason, resp.StatusCode, got, err, tc.want)
			}
		})
	}
}
