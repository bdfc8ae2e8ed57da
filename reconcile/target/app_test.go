package target

import (
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/git"

	"k8s.io/client-go/rest"
)

// An App reads the repository that it is installed on, and gives its token to no other host.
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
