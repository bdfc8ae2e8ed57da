package forge

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func privateKey(t *testing.T) (*rsa.PrivateKey, string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// An enterprise is a GitHub Enterprise Server with one App, 7, and its installation 42.
type enterprise struct {
	*testing.T
	key    *rsa.PublicKey
	code   int // status code of the token request; 0 means 201
	tokens int
}

// signedBy reports whether a request comes from the App.
func (e *enterprise) signedBy(r *http.Request) bool {
	e.Helper()
	content, signature, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	claims, signature, _ := strings.Cut(signature, ".")
	var is struct {
		Iss      string
		Iat, Exp int64
	}
	raw, err := base64.RawURLEncoding.DecodeString(claims)
	if err == nil {
		err = json.Unmarshal(raw, &is)
	}
	proof, bad := base64.RawURLEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(content + "." + claims))
	err = errors.Join(err, bad, rsa.VerifyPKCS1v15(e.key, crypto.SHA256, sum[:], proof))
	return err == nil && is.Iss == "7" && is.Exp > time.Now().Unix() && is.Exp-is.Iat <= 600
}

func (e *enterprise) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/api/v3/app/installations/42/access_tokens" && r.Method == http.MethodPost && e.signedBy(r):
		e.tokens++
		if e.code != 0 {
			w.Header().Set("Retry-After", "120")
			answerJSON(w, e.code, `{"message":"you sent `+r.Header.Get("Authorization")+`"}`)
			return
		}
		answerJSON(w, http.StatusCreated, fmt.Sprintf(`{"token":"ghs_%d","expires_at":%q}`, e.tokens, time.Now().Add(time.Hour).Format(time.RFC3339)))
	case strings.HasPrefix(r.URL.Path, "/api/v3/app/"):
		answerJSON(w, http.StatusUnauthorized, `{"message":"A JSON web token could not be decoded"}`)
	case r.Header.Get("Authorization") != "token ghs_1":
		answerJSON(w, http.StatusUnauthorized, `{"message":"Bad credentials"}`)
	case r.URL.Path == "/api/v3/user":
		answerJSON(w, http.StatusForbidden, `{"message":"Resource not accessible by integration"}`)
	case r.URL.Path == "/api/graphql":
		answerJSON(w, http.StatusOK, `{"data":{"viewer":{"login":"platform-gate[bot]"}}}`)
	case r.URL.Path == "/api/v3/repos/acme/platform/pulls":
		answerJSON(w, http.StatusOK, strings.ReplaceAll(hubPulls, "HEAD", commit))
	default:
		answerJSON(w, http.StatusNotFound, `{}`)
	}
}

// as returns an account of the App.
func (e *enterprise) as(app App) Account {
	e.Helper()
	server := httptest.NewServer(e)
	e.Cleanup(server.Close)
	at := Repository{Kind: KindGitHub, Base: server.URL, Owner: "acme", Name: "platform"}
	token, err := app.Token(at, nil)
	if err != nil {
		e.Fatal(err)
	}
	return Account{Repository: at, Token: token}
}

func TestApp(t *testing.T) {
	key, text := privateKey(t)
	e := &enterprise{T: t, key: &key.PublicKey}
	account := e.as(App{ID: 7, Installation: 42, Key: Token(text)})
	p, err := account.Pulls()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got, err := p.Open(t.Context()); err != nil || len(got) != 1 {
			t.Fatalf("Open(...) is %v, %v", got, err)
		}
	}
	if e.tokens != 1 {
		t.Errorf("%d tokens were made where one lasts an hour", e.tokens)
	}
	if self, err := p.self(t.Context()); err != nil || self != "platform-gate[bot]" {
		t.Errorf("Its comments are found by who wrote them: %q, %v", self, err)
	}
}

// The error about an App tells the user what to correct, without showing the key. Headgate retries, because the App may be
// corrected by then.
func TestAppRefused(t *testing.T) {
	key, text := privateKey(t)
	_, other := privateKey(t)
	for name, tc := range map[string]struct {
		app  App
		code int
		want string
	}{
		"OtherKey":     {App{ID: 7, Installation: 42, Key: Token(other)}, 0, "the App 7 is not accepted (401): check its ID, its private key and the clock of this machine"},
		"OtherApp":     {App{ID: 8, Installation: 42, Key: Token(text)}, 0, "the App 8 is not accepted (401)"},
		"NoPEM":        {App{ID: 7, Installation: 42, Key: Token(canary)}, 0, "the private key of the App cannot be read: use the PEM file"},
		"KeyAway":      {App{ID: 7, Installation: 42, Key: func(context.Context) (string, error) { return "", errBoom }}, 0, "boom"},
		"NotInstalled": {App{ID: 7, Installation: 42, Key: Token(text)}, 404, "the App 7 has no installation 42 (404)"},
		"Suspended":    {App{ID: 7, Installation: 42, Key: Token(text)}, 403, "GitHub: "},
		"Busy":         {App{ID: 7, Installation: 42, Key: Token(text)}, 503, "GitHub: the forge is in trouble (503)"},
		"NoToken":      {App{ID: 7, Installation: 42, Key: Token(text)}, 200, "the token of the forge is empty"},
	} {
		e := &enterprise{T: t, key: &key.PublicKey, code: tc.code}
		account := e.as(tc.app)
		p, err := account.Pulls()
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Open(t.Context())
		_, passes := errors.AsType[*Later](err)
		if err == nil || !passes || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%s: %v, and it passes: %t", name, err, passes)
		}
	}
}

// After a rotation, Headgate uses the new key.
func TestAppKeyRotates(t *testing.T) {
	key, text := privateKey(t)
	_, now := privateKey(t)
	e := &enterprise{T: t, key: &key.PublicKey}
	account := e.as(App{ID: 7, Installation: 42, Key: func(context.Context) (string, error) { return now, nil }})
	if _, err := account.Token(t.Context()); err == nil {
		t.Error("A missing key is accepted.")
	}
	now = text
	if token, err := account.Token(t.Context()); err != nil || token != "ghs_1" {
		t.Errorf("%q, %v", token, err)
	}
}
