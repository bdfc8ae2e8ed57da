package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/forge"
)

// The server has one path with one method, and ends with the program.
func TestAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	woken := 0
	hooks := &forge.Webhooks{Subscribers: []forge.Subscriber{{
		Secret: forge.Token("sesame"), Repositories: []string{"https://git.example.org/acme/platform.git"}, Ref: "main", Wake: func() { woken++ },
	}}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		answer(ctx, listener, hooks)
	}()
	base := "http://" + listener.Addr().String()
	const push = `{"object_kind":"push","ref":"refs/heads/main","project":{"path_with_namespace":"acme/platform"}}`
	for _, tc := range []struct {
		reason, method, path, token string
		want                        int
	}{
		{"A push of who knows the secret.", http.MethodPost, webhookPath, "sesame", http.StatusAccepted},
		{"Of somebody else.", http.MethodPost, webhookPath, "guess", http.StatusUnauthorized},
		{"Nothing is read from here.", http.MethodGet, webhookPath, "sesame", http.StatusMethodNotAllowed},
		{"There is nothing else.", http.MethodPost, "/debug/pprof/", "sesame", http.StatusNotFound},
	} {
		req, err := http.NewRequest(tc.method, base+tc.path, strings.NewReader(push))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Gitlab-Event", "Push Hook")
		req.Header.Set("X-Gitlab-Token", tc.token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != tc.want {
			t.Errorf("%s\n%s %s: %d, want %d", tc.reason, tc.method, tc.path, resp.StatusCode, tc.want)
		}
	}
	stop()
	<-ended
	if woken != 1 {
		t.Errorf("woken %d times, want once", woken)
	}
	if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}
