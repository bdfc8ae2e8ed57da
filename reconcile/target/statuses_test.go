package target

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
)

// The response of the forge decides whether a status waits, and which advice the user gets. Once the forge works again, the outbox
// or the next pass posts the status.
func TestForgeAnswers(t *testing.T) {
	type want struct {
		waits  bool
		within time.Duration // the Retry-After that the forge sends
		says   string        // in the log, exactly once
	}
	// answers returns the expectations for a forge, with the rights that a token needs to set statuses and to read the repository.
	answers := func(right, sees string) map[int]want {
		return map[int]want{
			401: {waits: true, within: 5 * time.Second, says: "the token is not accepted (401): it is wrong, expired or revoked"},
			403: {waits: true, within: 5 * time.Second, says: "the token may not set statuses of a/b (403): it needs " + right},
			404: {says: "or the token cannot see it (404): it needs " + sees},
			422: {says: "it refuses to set statuses (422)"},
			429: {waits: true, within: 2 * time.Minute, says: "too many requests (429)"},
			500: {waits: true, within: 5 * time.Second, says: "the forge is in trouble (500)"},
			502: {waits: true, within: 5 * time.Second, says: "the forge is in trouble (502)"},
			503: {waits: true, within: 2 * time.Minute, says: "the forge is in trouble (503)"},
		}
	}
	same := func(right string) map[int]want { return answers(right, right) }
	wants := map[v1alpha1.Forge]map[int]want{
		v1alpha1.ForgeGitHub:              same("the permission “Commit statuses: read and write”"),
		v1alpha1.ForgeGitea:               answers("the scope write:repository, and its user write access", "the scope write:repository"),
		v1alpha1.ForgeGitLab:              same("the scope api"),
		v1alpha1.ForgeBitbucket:           same("the scope repository"),
		v1alpha1.ForgeBitbucketDataCenter: same("the permission “Repository read”"),
		v1alpha1.ForgeAzureDevOps:         same("the scope Code (status)"),
	}
	for code, want := range wants[v1alpha1.ForgeGitHub] {
		if code >= 429 && want.waits { // the client of this forge has its own messages for these codes
			want.says = "waits: "
			wants[v1alpha1.ForgeGitHub][code] = want
		}
	}
	result := report.Report{
		Sync: inventory.Sync{Namespace: "team", Name: "prod"}, Revision: strings.Repeat("a", 40),
		Verdict: report.Verdict{Activation: report.Status{State: report.Success, Description: "1 object"}, Drift: report.Status{State: report.Success, Description: "no drift"}},
	}
	for kind, codes := range wants {
		for code, want := range codes {
			t.Run(fmt.Sprint(kind, code), func(t *testing.T) {
				var mu sync.Mutex
				answer, posted := code, 0
				forge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					defer mu.Unlock()
					w.Header().Set("Content-Type", "application/json")
					switch {
					case answer == 429 || answer == 503:
						w.Header().Set("Retry-After", "120")
						w.WriteHeader(answer)
						_, _ = w.Write([]byte(`{"message":"later"}`))
					case answer != 200:
						w.WriteHeader(answer)
						_, _ = w.Write([]byte(`{"message":"No commit found; you sent ` + r.Header.Get("Authorization") + `"}`))
					case r.Method == http.MethodGet && kind == v1alpha1.ForgeGitHub:
						_, _ = w.Write([]byte(`{"statuses":[]}`))
					case r.Method == http.MethodGet && (kind == v1alpha1.ForgeGitea || kind == v1alpha1.ForgeGitLab):
						_, _ = w.Write([]byte(`[]`))
					case r.Method == http.MethodGet:
						_, _ = w.Write([]byte(`{}`))
					default:
						posted++
						w.WriteHeader(http.StatusCreated)
						_, _ = w.Write([]byte(`{}`))
					}
				}))
				defer forge.Close()
				var told []string
				s := decode(t, fmt.Sprintf("  source: {repo: ./a}\n  clusterName: c\n  statuses: {forge: %s, url: %q, repository: a/b}\n", kind, forge.URL))
				box, err := publisher(s, Surroundings{
					Getenv: func(string) string { return canary },
					Event:  func(e reconcile.Event) { told = append(told, e.Err.Error()) },
					Cache:  t.TempDir(),
				}, func(string, *v1alpha1.SecretRef) *secret { return nil })
				if err != nil {
					t.Fatal(err)
				}
				now := time.Now()
				box.Now = func() time.Time { return now }
				pass := func() {
					if err := box.Publish(t.Context(), result); err != nil {
						told = append(told, err.Error())
					}
				}
				pass()
				pass() // the next pass has the same result
				if len(told) != 1 || !strings.Contains(told[0], want.says) || strings.Contains(told[0], canary) {
					t.Errorf("told %q, want once %q, and no token", told, want.says)
				}
				if (box.Waiting() == 1) != want.waits {
					t.Errorf("%d wait, want any: %t", box.Waiting(), want.waits)
				}
				mu.Lock()
				answer = 200
				mu.Unlock()
				if want.waits {
					now = now.Add(want.within - time.Second)
					if _, waits := box.Flush(t.Context()); !waits || posted > 0 {
						t.Errorf("it is not tried again before %s: %d posted", want.within, posted)
					}
					now = now.Add(5 * time.Second)
					if _, waits := box.Flush(t.Context()); waits {
						t.Error("it still waits")
					}
				} else {
					pass()
				}
				if posted != 2 {
					t.Errorf("%d statuses stand there, want 2", posted)
				}
			})
		}
	}
}

// A person who reads that a token is refused asks where the token is. The status waits for another one.
func TestRefusedTokenNamesItsSecret(t *testing.T) {
	var given, seen string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !strings.Contains(seen, "good"):
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{}`))
		case r.Method == http.MethodGet:
			_, _ = w.Write([]byte(`[]`))
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write([]byte(`{}`))
		}
	}))
	defer server.Close()
	s := decode(t, fmt.Sprintf("  source: {repo: ./a}\n  clusterName: c\n  statuses: {forge: Gitea, url: %q, repository: a/b, tokenFrom: {secretRef: {name: forge}}}\n", server.URL))
	s.Namespace = "team"
	box, err := publisher(s, Surroundings{Cache: t.TempDir()}, func(field string, ref *v1alpha1.SecretRef) *secret {
		return &secret{field: field, namespace: s.Namespace, ref: *ref, read: func(context.Context, string) (map[string][]byte, error) {
			return map[string][]byte{"token": []byte(given)}, nil
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	box.Now = func() time.Time { return now }
	result := report.Seen(inventory.Sync{Namespace: "team", Name: "prod"}, strings.Repeat("a", 40))
	given = "bad-token"
	if err := box.Publish(t.Context(), result); err == nil || !strings.Contains(err.Error(), "the token is not accepted (401): it is wrong, expired or revoked; put another token into the Secret team/forge") || strings.Contains(err.Error(), given) {
		t.Errorf("the error is: %v", err)
	}
	if box.Waiting() != 1 {
		t.Errorf("%d reports wait", box.Waiting())
	}
	given, now = "good-token", now.Add(time.Minute)
	box.Flush(t.Context())
	if box.Waiting() != 0 {
		t.Errorf("with another token, %d reports wait; the forge saw %q", box.Waiting(), seen)
	}
}
