package cluster_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"

	"k8s.io/client-go/rest"
)

// warnings collects the warnings of an API server.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// A proxy may return the whole request, and an admission webhook may return any text. Errors and warnings must contain neither the
// kubeconfig's token nor the content of a Secret.
func TestDiscreet(t *testing.T) {
	const token, inside = "c4n4ry-cluster-t0ken", "c4n4ry-of-a-secret"
	status := func(code int, message string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message})
		}
	}
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server gets a request with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	cases := map[string]struct {
		reason string
		answer func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		"Page": {reason: "client-go quotes a response that is not a Status.", want: "Authorization: ***", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "Authorization: %s", r.Header.Get("Authorization"))
		}},
		"Status":     {reason: "The message of a Status may contain the token and control characters.", want: "no [31m***", answer: status(http.StatusTeapot, "no \x1b[31m\u202e"+token)},
		"Long":       {reason: "The message of a Status may have megabytes.", want: "xxx…", answer: status(http.StatusTeapot, strings.Repeat("x", 1<<19))},
		"Denied":     {reason: "A webhook's message may quote a Secret that Headgate has not read.", want: `admission webhook "a" denied the request`, answer: status(http.StatusForbidden, `admission webhook "a" denied the request: `+inside)},
		"Uncalled":   {reason: "The error of a failed webhook call may quote a Secret, too.", want: `failed calling webhook "a"`, answer: status(http.StatusForbidden, `failed calling webhook "a": `+inside)},
		"StatusLine": {reason: "net/http quotes an invalid status line.", want: "malformed HTTP status code", answer: raw("HTTP/1.1 " + token + "\r\n\r\n")},
		"Header":     {reason: "net/http quotes an invalid header.", want: `missing colon: "…"`, answer: raw("HTTP/1.1 200 OK\r\n" + strings.Repeat("x", 100) + inside + "\r\n\r\n")},
		"Length":     {reason: "net/http quotes an invalid Content-Length.", want: "bad Content-Length", answer: raw("HTTP/1.1 200 OK\r\nContent-Length: " + token + "\r\n\r\n")},
		"Location":   {reason: "net/http quotes an invalid redirect address.", want: "302", answer: raw("HTTP/1.1 302 Found\r\nLocation: http://%zz" + token + "\r\nContent-Length: 0\r\n\r\n")},
		"Elsewhere": {reason: "client-go would send the token to the target of any redirect.", want: "it redirects to another host", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		}},
		"Object": {reason: "A warning may contain the token and the content of the Secret.", want: "", answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Warning", `299 - "`+inside+" "+token+`"`)
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`)
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.HandlerFunc(tc.answer))
			server.StartTLS()
			defer server.Close()
			heard := &warnings{}
			c, err := cluster.New(&rest.Config{
				Host: server.URL, BearerToken: token, WarningHandler: heard,
				TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			}, inventory.Sync{Namespace: "team", Name: "a"}, cluster.Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Secret(t.Context(), "a")
			text := fmt.Sprint(err)
			if (err != nil) != (tc.want != "") || !strings.Contains(text, tc.want) {
				t.Errorf("%s\nSecret(...) = %.500s, want %s", tc.reason, text, tc.want)
			}
			for _, text := range append(heard.texts, text) {
				if strings.Contains(text, token) || strings.Contains(text, inside) || strings.ContainsAny(text, "\x1b\u202e") || len(text) > 10_000 {
					t.Errorf("%s\n%.500q", tc.reason, text)
				}
			}
		})
	}
}

// A response that contains the token does not come from an API server, and clients quote what they cannot decode.
func TestRepeats(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"x","apiVersion":"a/b/%s"}`, r.Header.Get("Authorization"))
	}))
	defer server.Close()
	c, err := cluster.NewLooker(&rest.Config{
		Host: server.URL, BearerToken: "c4n4ry-cluster-t0ken", TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
	}, inventory.Sync{Namespace: "team", Name: "a"}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Owner(t.Context()); err == nil || strings.Contains(err.Error(), "c4n4ry") || !strings.Contains(err.Error(), "repeats the credentials") {
		t.Errorf("Owner(...) = %v", err)
	}
}

// raw returns a handler that writes a text to the connection, which need not be valid HTTP.
func raw(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err) // httptest can
		}
		defer conn.Close()
		fmt.Fprint(conn, text)
	}
}
