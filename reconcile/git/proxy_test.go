package git

import (
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A server with a certificate of a private CA is read with that CA only, and directly or through a proxy.
func TestCAAndProxy(t *testing.T) {
	h := newHistory(t)
	plain := serve(h.fixture)
	s := httptest.NewTLSServer(plain.Config.Handler)
	defer s.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:c4n4ry"))
	var passed atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != want {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		passed.Add(1)
		w.WriteHeader(http.StatusOK)
		from, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	}))
	defer proxy.Close()
	at := strings.TrimPrefix(proxy.URL, "http://")
	for name, tc := range map[string]struct {
		reason string
		auth   Auth
		want   string
		proxy  bool
	}{
		"CA":          {"The CA signed the server.", Auth{CA: ca}, "", false},
		"NoCA":        {"The system does not know the CA.", Auth{}, "certificate signed by unknown authority", false},
		"BadCA":       {"A key may be in its place.", Auth{CA: "c4n4ry"}, "the CA holds no certificate", false},
		"Proxy":       {"The proxy knows the user.", Auth{CA: ca, Proxy: "http://me:c4n4ry@" + at}, "", true},
		"ProxyUser":   {"The proxy does not know the user.", Auth{CA: ca, Proxy: "http://you:c4n4ry@" + at}, "cannot fetch", false},
		"NoProxy":     {"The proxy is down.", Auth{CA: ca, Proxy: "http://me:c4n4ry@127.0.0.1:1"}, "cannot fetch", false},
		"ProxyURL":    {"The address is wrong.", Auth{Proxy: "me:c4n4ry@" + at}, "the address of the proxy is no URL", false},
		"ProxyScheme": {"No other kind is used.", Auth{Proxy: "ssh://me:c4n4ry@" + at}, "the address of the proxy is no URL", false},
		"ProxyInside": {"A proxy may be where a cloud keeps its credentials.", Auth{CA: ca, Proxy: "http://169.254.169.254"}, "refusing to connect", false},
		"Client":      {"A certificate without its key is a mistake.", Auth{CA: ca, Certificate: ca, Key: "c4n4ry"}, "client certificate and its key cannot be read", false},
	} {
		t.Run(name, func(t *testing.T) {
			before := passed.Load()
			r := &Repository{URL: s.URL + "/team/repo.git", Cache: t.TempDir(), Auth: tc.auth}
			_, err := r.Fetch(t.Context(), "main")
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\n%v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "c4n4ry")):
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if through := passed.Load() > before; through != tc.proxy {
				t.Errorf("%s\nthrough the proxy: %t", tc.reason, through)
			}
		})
	}
}
