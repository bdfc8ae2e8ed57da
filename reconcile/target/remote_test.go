package target

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"k8s.io/client-go/rest"
)

// Syncs look for new commits together if the answers cannot differ, and only if each of them may ask.
func TestSyncsOfOneRemote(t *testing.T) {
	config, other := &rest.Config{}, &rest.Config{}
	public := v1alpha1.Spec{Source: v1alpha1.Source{Repo: "https://example.org/a/b", Path: "one"}}
	private := public
	private.Source.CredentialsFrom = &v1alpha1.Credentials{SecretRef: &v1alpha1.SecretRef{Name: "token"}}
	of := func(spec v1alpha1.Spec, change func(*v1alpha1.Spec), namespace string, config *rest.Config) access {
		if change != nil {
			change(&spec)
		}
		s := v1alpha1.Sync{Spec: spec}
		s.Namespace = namespace
		return remoteOf(s, Surroundings{Cluster: config})
	}
	for name, tc := range map[string]struct {
		a, b access
		same bool
	}{
		"Directories": {of(public, nil, "a", config), of(public, func(s *v1alpha1.Spec) { s.Source.Path, s.Source.Ref = "two", "dev" }, "a", config), true},
		"Repository":  {of(public, nil, "a", config), of(public, func(s *v1alpha1.Spec) { s.Source.Repo = "https://example.org/a/c" }, "a", config), false},
		"OneSecret":   {of(private, nil, "a", config), of(private, nil, "a", config), true},
		"OtherSecret": {of(private, nil, "a", config), of(private, func(s *v1alpha1.Spec) { s.Source.CredentialsFrom.SecretRef = &v1alpha1.SecretRef{Name: "other"} }, "a", config), false},
		"OtherProxy":  {of(private, nil, "a", config), of(private, func(s *v1alpha1.Spec) { s.Source.ProxySecretRef = &v1alpha1.SecretRef{Name: "proxy"} }, "a", config), false},
		"OtherChecks": {of(private, nil, "a", config), of(private, func(s *v1alpha1.Spec) {
			s.Source.History, s.Source.Verify.Mode, s.Source.Interval = v1alpha1.HistoryFastForward, v1alpha1.VerifyTag, "1s"
		}, "a", config), true},
		"OtherNamespace":   {of(private, nil, "a", config), of(private, nil, "b", config), false},
		"OtherReader":      {of(private, nil, "a", config), of(private, nil, "a", other), false},
		"App":              {of(public, app(1), "a", config), of(public, app(2), "a", config), false},
		"WithCredentials":  {of(private, nil, "a", config), of(public, nil, "a", config), false},
		"OtherCredentials": {of(private, nil, "a", config), of(private, func(s *v1alpha1.Spec) { s.Source.CredentialsFrom = &v1alpha1.Credentials{Anonymous: true} }, "a", config), false},
	} {
		if same := tc.a == tc.b; same != tc.same {
			t.Errorf("%s: the same: %t", name, same)
		}
	}
}

func app(id int64) func(*v1alpha1.Spec) {
	return func(s *v1alpha1.Spec) {
		s.Statuses = &v1alpha1.Statuses{App: &v1alpha1.App{ID: id}}
	}
}
