package target

import (
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/git"

	"k8s.io/client-go/rest"
)

// An App reads the repository on which it is installed, and sends its token to no other host.
func TestAppReadsItsRepository(t *testing.T) {
	const app = "  clusterName: east\n  statuses: {forge: GitHub, app: {id: 7, installation: 42}}\n"
	for name, tc := range map[string]struct {
		spec string
		env  map[string]string
		as   bool   // the App
		err  string // in the error
	}{
		"Alone":      {"  source: {repo: https://ghe.example.org/acme/platform.git}\n" + app, map[string]string{"HEADGATE_APP_KEY": canary}, true, ""},
		"Password":   {"  source: {repo: https://ghe.example.org/acme/platform.git}\n" + app, map[string]string{"HEADGATE_APP_KEY": canary, "HEADGATE_GIT_PASSWORD": "a"}, false, ""},
		"Secret":     {"  source: {repo: https://ghe.example.org/acme/platform.git, credentialsFrom: {secretRef: {name: git}}}\n" + app, map[string]string{"HEADGATE_APP_KEY": canary}, true, ""},
		"OtherHost":  {"  source: {repo: https://ghe.example.org.evil.example.org/acme/platform.git}\n" + strings.Replace(app, "GitHub,", "GitHub, url: https://ghe.example.org, repository: acme/platform,", 1), map[string]string{"HEADGATE_APP_KEY": canary}, false, ""},
		"Anonymous":  {"  source: {repo: https://ghe.example.org/acme/platform.git, credentialsFrom: {anonymous: true}}\n" + app, map[string]string{"HEADGATE_APP_KEY": canary}, false, ""},
		"NoKey":      {"  source: {repo: https://ghe.example.org/acme/platform.git}\n" + app, nil, false, "spec.statuses.app.privateKeyFrom.env: the environment has no HEADGATE_APP_KEY"},
		"OtherForge": {"  source: {repo: https://gitlab.example.org/acme/platform.git}\n" + strings.Replace(app, "forge: GitHub, ", "", 1), map[string]string{"HEADGATE_APP_KEY": canary}, false, "spec.statuses.app: https://gitlab.example.org has no Apps; use tokenFrom"},
	} {
		s := decode(t, tc.spec)
		getenv := func(name string) string { return tc.env[name] }
		target, err := New(s, Surroundings{Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: getenv})
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if (target.repository.Credentials != nil) != tc.as {
			t.Errorf("%s: it is read as the App, or by a Secret: %t", name, target.repository.Credentials != nil)
		}
		if got := Secrets(s, getenv); len(tc.env) > 0 && !strings.Contains(strings.Join(got, " "), canary) {
			t.Errorf("%s: the key may be written: %q", name, got)
		}
	}
	from := func(string, *v1alpha1.SecretRef) *secret { return nil }
	s := decode(t, "  source: {repo: https://ghe.example.org/acme/platform.git}\n"+app)
	as, err := asApp(s, Surroundings{Getenv: func(string) string { return canary }}, from, git.Auth{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := as(t.Context()); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("A key that is none: %v", err)
	}
}

// The owner of a host learns the password that is sent there, so a password is for one host only.
func TestDefaultPasswordIsForOneHost(t *testing.T) {
	const (
		east   = "  source: {repo: https://git.example.org/a/b}\n"
		same   = "  source: {repo: https://GIT.example.org:443/c/d}\n"
		west   = "  source: {repo: https://evil.example.org/a/b}\n"
		port   = "  source: {repo: https://git.example.org:8443/a/b}\n"
		local  = "  source: {repo: ./platform}\n"
		named  = "  source: {repo: https://evil.example.org/a/b, credentialsFrom: {env: {password: OTHER}}}\n"
		public = "  source: {repo: https://evil.example.org/a/b, credentialsFrom: {anonymous: true}}\n"
		both   = "  source: {repo: https://git.example.org/a/b, credentialsFrom: {env: {password: HEADGATE_GIT_PASSWORD}}}\n"
	)
	for name, tc := range map[string]struct {
		syncs []string
		unset bool
		wrong int
	}{
		"OneHost":           {syncs: []string{east, same, local}},
		"TwoHosts":          {syncs: []string{east, west}, wrong: 2},
		"TwoPorts":          {syncs: []string{east, port}, wrong: 2},
		"TwoHostsNoDefault": {syncs: []string{east, west}, unset: true},
		"OtherNamed":        {syncs: []string{east, named}, wrong: 1},
		"AllNamed":          {syncs: []string{both, named, public, local}},
	} {
		var syncs []v1alpha1.Sync
		for _, spec := range tc.syncs {
			syncs = append(syncs, decode(t, spec))
		}
		err := OneHost(syncs, func(name string) string {
			if name == v1alpha1.DefaultPasswordEnv && !tc.unset {
				return canary
			}
			return ""
		})
		wrong := 0
		if err != nil {
			wrong = strings.Count(err.Error(), "spec.source.credentialsFrom: is missing")
			if strings.Contains(err.Error(), canary) {
				t.Errorf("%s: the error has the password: %v", name, err)
			}
		}
		if wrong != tc.wrong {
			t.Errorf("%s: %d Syncs are refused, not %d: %v", name, wrong, tc.wrong, err)
		}
	}

	// The same applies to the tokens of forges.
	const (
		posts     = same + "  clusterName: c\n  statuses: {}\n"
		elsewhere = "  source: {repo: https://evil.example.org/a/b, credentialsFrom: {anonymous: true}}\n  clusterName: c\n  statuses: {forge: Gitea}\n"
		own       = "  source: {repo: https://evil.example.org/a/b, credentialsFrom: {anonymous: true}}\n  clusterName: c\n  statuses: {forge: Gitea, tokenFrom: {env: OTHER}}\n"
	)
	for name, tc := range map[string]struct {
		syncs []string
		wrong int
	}{
		"OneForge":   {syncs: []string{posts, posts, east}},
		"TwoForges":  {syncs: []string{strings.Replace(posts, "{}", "{forge: Gitea}", 1), elsewhere}, wrong: 2},
		"OtherNamed": {syncs: []string{strings.Replace(posts, "{}", "{forge: Gitea}", 1), own}},
	} {
		var syncs []v1alpha1.Sync
		for _, spec := range tc.syncs {
			syncs = append(syncs, decode(t, spec))
		}
		err := OneHost(syncs, func(string) string { return "" })
		wrong := 0
		if err != nil {
			wrong = strings.Count(err.Error(), "spec.statuses.tokenFrom: is missing")
		}
		if wrong != tc.wrong {
			t.Errorf("%s: %d Syncs are refused, not %d: %v", name, wrong, tc.wrong, err)
		}
	}

	// With anonymous: true, a default password is not used.
	with, err := New(decode(t, public), Surroundings{Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }})
	if err != nil || with.repository.Auth != (git.Auth{}) || with.repository.Credentials != nil {
		t.Errorf("A public repository gets credentials: %v", err)
	}
}
