package target

import (
	"context"
	"fmt"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/report"
)

// An applying is a repository that Headgate applies to a namespace of a real control plane.
type applying struct {
	repo
	space string
	live  *kubernetes.Clientset
	to    *Target
}

func newApplying(t *testing.T, space string) applying {
	t.Helper()
	fixtures.InParallel(t)
	config := fixtures.Config(t)
	live, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	repository := newRepo(t)
	s := decode(t, fmt.Sprintf("  source: {repo: %q}\n  crdOwner: Headgate\n  timeout: 2s\n", repository.dir))
	s.Namespace, s.Name = space, space
	target, err := New(s, Surroundings{Cluster: config, Cache: t.TempDir(), Secret: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	return applying{repository, space, live, target}
}

// once makes one pass.
func (a applying) once(t *testing.T) report.Report {
	t.Helper()
	r, err := a.to.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// has fails unless a ConfigMap exists, or does not exist, as wanted.
func (a applying) has(t *testing.T, name string, want bool, why string) {
	t.Helper()
	_, err := a.live.CoreV1().ConfigMaps(a.space).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	if (err == nil) != want {
		t.Errorf("%s: %s is there: %t", why, name, err == nil)
	}
}

// settings returns a ConfigMap with annotations.
func (a applying) settings(name, annotations string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, annotations: {%s}}\n", name, a.space, annotations)
}

// code returns the code of the step's error, or of the reason why it waits.
func code(r report.Report, name string) string {
	for _, s := range r.Steps {
		if s.ID.Name != name {
			continue
		}
		if len(s.WaitCodes) > 0 && s.Error == "" {
			return string(s.WaitCodes[0])
		}
		return string(s.ErrorCode)
	}
	return ""
}

// If a commit renames an object, the old one stays while the new one waits: when the pass runs out of time, and if the pass does
// not wait at all. The new object may never appear.
func TestPrunesAwaitReplacements(t *testing.T) {
	for name, hurry := range map[string]bool{"Limit": false, "NoWait": true} {
		t.Run(name, func(t *testing.T) {
			a := newApplying(t, map[bool]string{false: "awaits-limit", true: "awaits-none"}[hurry])
			a.to.Loop.Reconciler.NoWait = hurry
			a.push(t, "old.yaml", a.settings("old", ""))
			a.once(t)
			first := "config.kubernetes.io/depends-on: /namespaces/" + a.space + "/ConfigMap/first"
			a.push(t, "old.yaml", a.settings("new", first))
			r := a.once(t)
			a.has(t, "old", true, "Nothing replaces it yet")
			if c := code(r, "old"); hurry && c != "AwaitsUnfinished" || !hurry && c != "NotDeletedInTime" {
				t.Errorf("the report gives %q as the reason", c)
			}
			if hurry && r.Summary.Failed > 0 {
				t.Errorf("A pass that does not wait has not failed: %+v", r.Summary)
			}
			a.push(t, "first.yaml", a.settings("first", ""))
			for range 2 { // in a pass that does not wait, waiting steps are left to the next pass
				a.once(t)
			}
			a.has(t, "new", true, "Its dependency exists")
			a.has(t, "old", false, "It is replaced")
		})
	}
}

// If an object could not be updated, the objects that it names stay, because its old version in the cluster still needs them.
func TestPrunesKeepWhatIsNamed(t *testing.T) {
	a := newApplying(t, "named")
	uses := func(name string, replicas int) string {
		return a.settings("web", "") + fmt.Sprintf("data: {replicas: \"%d\", settings: %s}\n", replicas, name)
	}
	a.push(t, "web.yaml", uses("old", 1))
	a.push(t, "settings.yaml", a.settings("old", "")+"---\n"+a.settings("unused", ""))
	a.once(t)
	scale := func(force bool, body string) {
		t.Helper()
		if _, err := a.live.CoreV1().ConfigMaps(a.space).Patch(t.Context(), "web", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "scaler", Force: &force}); err != nil {
			t.Fatal(err)
		}
	}
	scale(true, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"replicas":"3"}}`)
	a.push(t, "web.yaml", uses("new", 2))
	a.push(t, "settings.yaml", a.settings("new", ""))
	r := a.once(t)
	a.has(t, "old", true, "The version of web that is there uses it")
	a.has(t, "new", true, "Nothing is wrong with it")
	a.has(t, "unused", false, "Nothing names it")
	if c := code(r, "old"); c != "StillNamed" {
		t.Errorf("the report gives %q as the reason", c)
	}
	scale(false, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"}}`)
	a.once(t)
	a.has(t, "old", false, "It was updated")
}

// If a commit removes a webhook that refuses everything, one pass repairs the cluster, even if the webhook also refuses objects of
// the same kind as the pruned ones.
func TestBrokenWebhookIsPruned(t *testing.T) {
	a := newApplying(t, "broken-webhook")
	webhook := fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: broken.example.org
  clientConfig: {url: "https://127.0.0.1:1/"}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  objectSelector: {matchExpressions: [{key: guarded, operator: Exists}]}
  sideEffects: None
  timeoutSeconds: 1
  admissionReviewVersions: [v1]
`, a.space)
	guarded := func(name, value string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {guarded: \"yes\"}}\ndata: {key: %q}\n", name, a.space, value)
	}
	a.push(t, "all.yaml", guarded("old", "1")+"---\n"+guarded("kept", "1")+"---\n"+webhook)
	a.once(t)
	t.Cleanup(func() {
		_ = a.live.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.WithoutCancel(t.Context()), a.space, metav1.DeleteOptions{})
	})
	notice(t, a)
	a.to.Loop.Reconciler.Timeout = 0
	a.push(t, "all.yaml", guarded("new", "1")+"---\n"+guarded("kept", "2")) // the webhook also refuses the dry run of the update
	r := a.once(t)
	if _, err := a.live.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), a.space, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("The webhook is what refuses: %v, %+v", err, r.Summary)
	}
	a.has(t, "new", true, "The pass tried it again without the webhook")
	if kept, err := a.live.CoreV1().ConfigMaps(a.space).Get(t.Context(), "kept", metav1.GetOptions{}); err != nil || kept.Data["key"] != "2" {
		t.Errorf("The pass tried the update again without the webhook: %v, %v", kept.Data, err)
	}
	if c := code(r, "old"); c != "NotReplaced" {
		t.Errorf("%q: when the others were pruned, nothing had replaced it", c)
	}
	if r = a.once(t); r.Summary.Failed > 0 {
		t.Errorf("%+v", r.Summary)
	}
	a.has(t, "old", false, "It is replaced")
}

// notice waits until the API server calls the webhook.
func notice(t *testing.T, a applying) {
	t.Helper()
	for {
		o := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{"guarded": "yes"}}}
		_, err := a.live.CoreV1().ConfigMaps(a.space).Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal("the webhook is not asked")
		}
	}
}
