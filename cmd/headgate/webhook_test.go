package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/certificate"
	"headgate.dev/headgate/reconcile/forge"
)

// The server serves one path and one method, and stops with the program.
func TestAnswer(t *testing.T) {
	heard, err := net.Listen("tcp", "127.0.0.1:0")
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
		answer(ctx, heard, webhookPath, hooks)
	}()
	base := "http://" + heard.Addr().String()
	const push = `{"object_kind":"push","ref":"refs/heads/main","project":{"path_with_namespace":"acme/platform"}}`
	for _, tc := range []struct {
		reason, method, path, token string
		want                        int
	}{
		{"The sender has the secret.", http.MethodPost, webhookPath, "sesame", http.StatusAccepted},
		{"The sender has another secret.", http.MethodPost, webhookPath, "guess", http.StatusUnauthorized},
		{"The server only accepts POST.", http.MethodGet, webhookPath, "sesame", http.StatusMethodNotAllowed},
		{"The server has no other path.", http.MethodPost, "/debug/pprof/", "sesame", http.StatusNotFound},
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
	if conn, err := net.Dial("tcp", heard.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}

// Some forges send the secret itself, so a listener that other hosts can reach uses TLS. A renewed certificate takes effect without
// a restart.
func TestListenWithTLS(t *testing.T) {
	dir := t.TempDir()
	at := listener{address: ":0", cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	renew(t, at, "first.example.org")
	heard, err := at.listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		answer(ctx, heard, webhookPath, &forge.Webhooks{})
	}()
	defer func() { stop(); <-ended }()
	_, port, _ := net.SplitHostPort(heard.Addr().String())
	for _, name := range []string{"first.example.org", "second.example.org"} {
		renew(t, at, name)
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			t.Fatal(err)
		}
		if got := conn.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames[0]; got != name {
			t.Errorf("the certificate is of %s, want %s", got, name)
		}
		_ = conn.Close()
	}

	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0"} {
		if _, err := (listener{address: address}).listen(t.Context()); err == nil {
			t.Errorf("%s is heard without TLS", address)
		}
	}
	for _, l := range []listener{{address: "127.0.0.1:0"}, {address: "localhost:0"}, {address: ":0", plain: true}} {
		heard, err := l.listen(t.Context())
		if err != nil {
			t.Errorf("%+v: %v", l, err)
			continue
		}
		_ = heard.Close()
	}
}

// renew writes a new certificate for a host name.
func renew(t *testing.T, at listener, name string) {
	t.Helper()
	cert, key := certificate.New(name)
	for file, data := range map[string][]byte{at.cert: cert, at.key: key} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
