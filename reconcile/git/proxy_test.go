package git

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/certificate"
)

// canary is a password or a private key that no message may have.
const canary = "c4n4ry"

// inSecret and inProxySecret are where the credentials of these tests are.
const inSecret, inProxySecret = "the Secret team/repo", "the Secret team/proxy"

// gitProgram returns git's own server over http for a repository, at /repo.git.
func gitProgram(t *testing.T, f *fixture) http.Handler {
	t.Helper()
	return http.StripPrefix("/repo.git", fixtures.GitBackend(t, f.dir))
}

// A proxy passes on what it connects. It knows one user.
type proxy struct {
	*httptest.Server

	mu     sync.Mutex
	passed []string // the addresses that it connected to
	kinds  []string // the methods of requests
}

func proxyFor(t *testing.T, user, password string) *proxy {
	t.Helper()
	p := &proxy{}
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != want {
			w.Header().Set("Proxy-Authenticate", "Basic realm="+canary)
			http.Error(w, canary, http.StatusProxyAuthRequired)
			return
		}
		if strings.HasPrefix(r.Host, "forbidden.") {
			http.Error(w, canary, http.StatusForbidden)
			return
		}
		p.pass(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// pass connects a client, or passes on one request over plain http.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.passed, p.kinds = append(p.passed, r.Host), append(p.kinds, r.Method)
	p.mu.Unlock()
	to, err := net.Dial("tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	if r.Method != http.MethodConnect {
		r.Header.Del("Proxy-Authorization")
		r.Header.Set("Connection", "close")
		_ = r.Write(to)
	}
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	if r.Method == http.MethodConnect {
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	}
	_, _ = io.Copy(from, to)
}

// seen returns the addresses and methods since the last call.
func (p *proxy) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.passed, p.kinds = nil, nil }()
	if len(p.passed) == 0 {
		return ""
	}
	return p.kinds[0] + " " + p.passed[0]
}

// A server with a certificate of a private CA is read with that CA only, and directly or through a proxy.
func TestCAAndProxy(t *testing.T) {
	h := newHistory(t)
	s := httptest.NewUnstartedServer(gitProgram(t, h.fixture))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	plain := httptest.NewServer(gitProgram(t, h.fixture))
	defer plain.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	other, _ := certificate.New("127.0.0.1")
	p := proxyFor(t, "me", canary)
	at := strings.TrimPrefix(p.URL, "http://")
	me, you := "http://me:"+canary+"@"+at, "http://you:"+canary+"@"+at
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://me:" + canary + "@" + dead.Addr().String()
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NO_PROXY", "*") // of the environment, whose proxy it is for
	const unreached = "the proxy cannot be reached: dial tcp 127.0.0.1:"
	for name, tc := range map[string]struct {
		reason string
		url    string // "" is the server with TLS
		auth   Auth
		want   string
		about  string // the Secret that the message names
		proxy  string
	}{
		"CA":          {reason: "The CA signed the server.", auth: Auth{CA: ca}},
		"NoCA":        {reason: "The system does not know the CA.", want: "certificate signed by unknown authority"},
		"OtherCA":     {reason: "Another CA signed the server.", auth: Auth{CA: string(other)}, want: "neither ca.crt nor the system has the CA that signed", about: inSecret},
		"SeveralCA":   {reason: "A CA is replaced while both count.", auth: Auth{CA: string(other) + ca}},
		"BadCA":       {reason: "A key may be in its place.", auth: Auth{CA: canary}, want: "the CA holds no certificate", about: inSecret},
		"Proxy":       {reason: "The proxy knows the user, and exceptions are for the proxy of the environment.", auth: Auth{CA: ca, Proxy: me}, proxy: "CONNECT " + s.Listener.Addr().String()},
		"ProxyUser":   {reason: "The proxy does not know the user.", auth: Auth{CA: ca, Proxy: you}, want: "the proxy refuses the credentials", about: inProxySecret},
		"NoUser":      {reason: "The proxy wants a user.", auth: Auth{CA: ca, Proxy: "http://" + at}, want: "the proxy refuses the credentials", about: inProxySecret},
		"Forbidden":   {reason: "The proxy knows where it may connect.", url: "https://forbidden.example.org/repo.git", auth: Auth{Proxy: me}, want: "the proxy answered 403 Forbidden", about: inProxySecret},
		"PlainProxy":  {reason: "A request over http is passed on.", url: plain.URL + "/repo.git", auth: Auth{Proxy: me}, proxy: "GET " + plain.Listener.Addr().String()},
		"PlainUser":   {reason: "Over http, the proxy answers in place of the server.", url: plain.URL + "/repo.git", auth: Auth{Proxy: you}, want: "the proxy refuses the credentials", about: inProxySecret},
		"Dead":        {reason: "The proxy is down.", auth: Auth{CA: ca, Proxy: gone}, want: unreached, about: inProxySecret},
		"DeadSocks":   {reason: "A proxy of another kind is down.", auth: Auth{CA: ca, Proxy: strings.Replace(gone, "http", "socks5", 1)}, want: unreached, about: inProxySecret},
		"NoTLS":       {reason: "The proxy has no TLS.", auth: Auth{CA: ca, Proxy: strings.Replace(me, "http", "https", 1)}, want: "the proxy cannot be reached: ", about: inProxySecret},
		"ProxyURL":    {reason: "The address is wrong.", auth: Auth{Proxy: "me:" + canary + "@" + at}, want: "the address of the proxy is no URL", about: inProxySecret},
		"ProxyScheme": {reason: "No other kind is used.", auth: Auth{Proxy: "ssh://me:" + canary + "@" + at}, want: "the address of the proxy is no URL", about: inProxySecret},
		"ProxyInside": {reason: "A proxy may be where a cloud keeps its credentials.", auth: Auth{CA: ca, Proxy: "http://169.254.169.254"}, want: "refusing to connect"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.url == "" {
				tc.url = s.URL + "/repo.git"
			}
			tc.auth.From, tc.auth.ProxyFrom = inSecret, inProxySecret
			checkFetch(t, tc.url, tc.auth, tc.reason, tc.want, tc.about)
			if seen := p.seen(); seen != tc.proxy {
				t.Errorf("%s\nthe proxy saw %q, want %q", tc.reason, seen, tc.proxy)
			}
		})
	}
}

// checkFetch fetches, and compares the error. It must name where the credential is that it is about.
func checkFetch(t *testing.T, url string, auth Auth, reason, want, about string) {
	t.Helper()
	r := &Repository{URL: url, Cache: t.TempDir(), Auth: auth}
	_, err := r.Fetch(t.Context(), "main")
	switch {
	case want == "" && err != nil:
		t.Errorf("%s\n%v", reason, err)
	case want == "":
	case err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), canary):
		t.Errorf("%s\nwant %q, got %v", reason, want, err)
	case about != "" && !strings.HasSuffix(err.Error(), " (in "+about+")") || about == "" && strings.Contains(err.Error(), "Secret"):
		t.Errorf("%s\nwant the name of %q, got %v", reason, about, err)
	}
}

// A client certificate is sent to a server that asks for one, and each reason why the server does not accept it is told.
func TestClientCertificate(t *testing.T) {
	h := newHistory(t)
	ca, caKey := certificate.New("ours")
	other, otherKey := certificate.New("another")
	var mu sync.Mutex
	var seen []string // the names in the certificates of requests
	next := gitProgram(t, h.fixture)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.TLS.PeerCertificates[0].Subject.CommonName)
		mu.Unlock()
		next.ServeHTTP(w, r)
	}))
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(ca)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}
	s.StartTLS()
	defer s.Close()
	server := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	hour := time.Now().Add(time.Hour)
	cert, key := certificate.Client(ca, caKey, "team", hour)
	_, foreign := certificate.Client(ca, caKey, "another", hour)
	wrong, wrongKey := certificate.Client(other, otherKey, "stranger", hour)
	expired, expiredKey := certificate.Client(ca, caKey, "late", time.Now().Add(-48*time.Hour))
	early, earlyKey := certificate.Client(ca, caKey, "early", time.Now().AddDate(2, 0, 0))
	const invalid, asked = "tls.crt and tls.key are no client certificate with its key", "the server asked for a client certificate, got that of tls.crt, and ended the connection"
	for name, tc := range map[string]struct {
		reason    string
		cert, key []byte
		want      string
		sees      string
	}{
		"Right":     {reason: "The CA of the server signed it.", cert: cert, key: key, sees: "team"},
		"Chain":     {reason: "Certificates of authorities may follow.", cert: bytes.Join([][]byte{cert, ca}, nil), key: key, sees: "team"},
		"Wrong":     {reason: "Another CA signed it.", cert: wrong, key: wrongKey, want: asked},
		"Expired":   {reason: "It has expired.", cert: expired, key: expiredKey, want: "the client certificate in tls.crt has expired on "},
		"Early":     {reason: "It is not valid yet.", cert: early, key: earlyKey, want: "the client certificate in tls.crt is valid from "},
		"Mismatch":  {reason: "The key is of another certificate.", cert: cert, key: foreign, want: invalid},
		"NoKey":     {reason: "The key is missing.", cert: cert, want: invalid},
		"Exchanged": {reason: "The values are in each other's place.", cert: key, key: cert, want: invalid},
		"Text":      {reason: "A password may be in place of the key.", cert: cert, key: []byte(canary), want: invalid},
	} {
		t.Run(name, func(t *testing.T) {
			auth := Auth{CA: server, Certificate: string(tc.cert), Key: string(tc.key), From: inSecret}
			checkFetch(t, s.URL+"/repo.git", auth, tc.reason, tc.want, inSecret)
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(seen, " "); strings.Trim(got, tc.sees+" ") != "" || (tc.sees != "") != (len(seen) > 1) {
				t.Errorf("%s\nthe server saw %q, want %q", tc.reason, got, tc.sees)
			}
			seen = nil
		})
	}
	t.Run("None", func(t *testing.T) {
		checkFetch(t, s.URL+"/repo.git", Auth{CA: server, From: inSecret}, "A server says that it wants a certificate.", "the server asked for a client certificate, got none", inSecret)
	})
	t.Run("AnotherHost", func(t *testing.T) { // the certificate names its owner
		to := httptest.NewServer(http.RedirectHandler(s.URL+"/repo.git/info/refs?service=git-upload-pack", http.StatusMovedPermanently))
		defer to.Close()
		checkFetch(t, to.URL+"/repo.git", Auth{CA: server, Certificate: string(cert), Key: string(key), From: inSecret}, "A server leads elsewhere.", "does not send the credentials there", "")
	})
	t.Run("Replaced", func(t *testing.T) { // while a process runs
		now := Auth{CA: server, Certificate: string(wrong), Key: string(wrongKey)}
		r := &Repository{URL: s.URL + "/repo.git", Cache: filepath.Join(t.TempDir(), "cache"), Auth: now}
		if _, err := r.Fetch(t.Context(), "main"); err == nil {
			t.Fatal("the wrong certificate is accepted")
		}
		r = &Repository{URL: r.URL, Cache: r.Cache, Auth: Auth{CA: server, Certificate: string(cert), Key: string(key)}}
		if _, err := r.Fetch(t.Context(), "main"); err != nil {
			t.Error(err)
		}
	})
}
