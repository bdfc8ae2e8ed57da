package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
)

// kubeConfig returns a kubeconfig with further fields of its cluster and its user.
func kubeConfig(cluster, user string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {%s}}], users: [{name: u, user: {%s}}]}`, cluster, user)
}

const (
	ofServer = "server: 'https://kube.example.org:6443'"
	ofUser   = "token: hidden"
)

// A kubeconfig holds all that it needs. Whoever writes the Secret runs no program in the controller, reads none of its files, and sends its
// requests to nobody who is not authenticated.
func TestReadKubeConfig(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		text   string
		want   string // in the error; "" if there is none
	}{
		"Token":        {"A token is enough.", kubeConfig(ofServer, ofUser), ""},
		"Password":     {"So is a password.", kubeConfig(ofServer, "username: a, password: b"), ""},
		"Exec":         {"A plugin is a program.", kubeConfig(ofServer, "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, interactiveMode: Never}"), "runs a program (exec)"},
		"AuthProvider": {"An auth provider is the older form.", kubeConfig(ofServer, "auth-provider: {name: gcp}"), "auth-provider"},
		"Insecure":     {"Anyone could answer.", kubeConfig(ofServer+", insecure-skip-tls-verify: true", ofUser), "certificate-authority-data"},
		"Plain":        {"Anyone could listen.", kubeConfig("server: 'http://kube.example.org'", ofUser), "https URL"},
		"NoServer":     {"The default of a client is its own cluster.", kubeConfig("", ofUser), "https URL"},
		"NoScheme":     {"The default of a client is http.", kubeConfig("server: kube.example.org", ofUser), "https URL"},
		"CAFile":       {"Files are the controller's.", kubeConfig(ofServer+", certificate-authority: /etc/ca.crt", ofUser), "certificate-authority-data"},
		"TokenFile":    {"The controller's own token is a file.", kubeConfig(ofServer, "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token"), "write token"},
		"CertFile":     {"So is a certificate.", kubeConfig(ofServer, "client-certificate: /a, client-key-data: Yg=="), "client-certificate-data"},
		"KeyFile":      {"So is a key.", kubeConfig(ofServer, "client-certificate-data: Yg==, client-key: /a"), "client-key-data"},
		"NoContext":    {"It is not clear which cluster is meant.", strings.Replace(kubeConfig(ofServer, ofUser), "current-context: a, ", "", 1), "current-context"},
		"OtherContext": {"The context does not exist.", strings.Replace(kubeConfig(ofServer, ofUser), "current-context: a", "current-context: b", 1), "current-context"},
		"NoUser":       {"The user does not exist.", strings.Replace(kubeConfig(ofServer, ofUser), "user: u}", "user: v}", 1), "does not describe"},
		"NoText":       {"It is no kubeconfig.", "hidden: [", "no kubeconfig"},
		"Unused":       {"Another context is not used.", strings.Replace(kubeConfig(ofServer, ofUser), "users: [", "users: [{name: w, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never}}}, ", 1), ""},
	} {
		config, err := readKubeConfig([]byte(tc.text))
		switch {
		case (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want):
			t.Errorf("%s: %s\n%v, want %q", name, tc.reason, err, tc.want)
		case err != nil && strings.Contains(err.Error(), "hidden"):
			t.Errorf("%s: the error quotes the Secret: %v", name, err)
		case err == nil && config.Host != "https://kube.example.org:6443":
			t.Errorf("%s: the server is %s", name, config.Host)
		}
	}
}

// Whatever a Secret holds, a configuration from it runs nothing, reads no file and is authenticated.
func FuzzReadKubeConfig(f *testing.F) {
	f.Add(kubeConfig(ofServer, ofUser))
	f.Add(kubeConfig(ofServer, "exec: {command: x}"))
	f.Add(kubeConfig(ofServer, "tokenFile: /a"))
	f.Fuzz(func(t *testing.T, text string) {
		config, err := readKubeConfig([]byte(text))
		if err != nil {
			return
		}
		files := config.BearerTokenFile + config.CAFile + config.CertFile + config.KeyFile
		if config.ExecProvider != nil || config.AuthProvider != nil || config.Insecure || files != "" || !strings.HasPrefix(config.Host, "https://") {
			t.Errorf("%q is accepted: %v", text, config)
		}
	})
}

// A cluster is the same by any of its addresses. What is not known may be the same: the other answer deletes what moves.
func TestApart(t *testing.T) {
	for name, tc := range map[string]struct{ there, here, want string }{
		"Own":       {"home", "home", ""},
		"Another":   {"far", "home", "far"},
		"Unknown":   {"", "home", reconcile.AnyCluster},
		"NoHome":    {"far", "", reconcile.AnyCluster},
		"NeitherOf": {"", "", reconcile.AnyCluster},
	} {
		if got := apart(tc.there, tc.here); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A Sync with a kubeconfig is looked at every minute, because its Secret may change and is not watched. A suspension that ends earlier counts.
func TestKubeConfigIsReadAgain(t *testing.T) {
	remote := v1alpha1.Sync{Spec: v1alpha1.Spec{KubeConfig: &v1alpha1.KubeConfig{}}}
	for name, tc := range map[string]struct {
		sync    v1alpha1.Sync
		overdue time.Duration
		want    time.Duration
	}{
		"Local":          {v1alpha1.Sync{}, 0, 0},
		"Remote":         {remote, 0, time.Minute},
		"LocalOverdue":   {v1alpha1.Sync{}, time.Hour, time.Hour},
		"RemoteOverdue":  {remote, time.Second, time.Second},
		"RemoteLongTime": {remote, time.Hour, time.Minute},
	} {
		if got := soonest(tc.overdue, lookAgain(tc.sync)); got != tc.want {
			t.Errorf("%s: looked at again after %s, want %s", name, got, tc.want)
		}
	}
}
