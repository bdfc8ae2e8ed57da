package target

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
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

// code returns the code of the step's error, or of its reason.
func code(r report.Report, name string) string {
	for _, s := range r.Steps {
		if s.ID.Name != name {
			continue
		}
		return string(cmp.Or(s.ErrorCode, s.Code))
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
			if c := code(r, "old"); c != "StillWaits" {
				t.Errorf("the report gives %q as the reason", c)
			}
			if v := r.Verdict; hurry && (v.Activation.State != report.Pending || v.ExitCode != report.ExitSuccess) {
				t.Errorf("A pass that does not wait is pending: %+v", v)
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

// If an object could not be updated, everything that the commit removes stays, because the old version of that object may need it.
// One object that fails does not end the pass.
func TestPrunesAwaitUpdates(t *testing.T) {
	a := newApplying(t, "updates")
	a.push(t, "web.yaml", a.settings("web", "")+"data: {replicas: \"1\"}\n")
	a.push(t, "settings.yaml", a.settings("old", ""))
	a.once(t)
	scale := func(force bool, body string) {
		t.Helper()
		if _, err := a.live.CoreV1().ConfigMaps(a.space).Patch(t.Context(), "web", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: "scaler", Force: &force}); err != nil {
			t.Fatal(err)
		}
	}
	scale(true, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"replicas":"3"}}`)
	a.push(t, "web.yaml", a.settings("web", "")+"data: {replicas: \"2\"}\n")
	a.push(t, "settings.yaml", a.settings("new", ""))
	r := a.once(t)
	a.has(t, "old", true, "The version of web that is there may use it")
	a.has(t, "new", true, "Nothing is wrong with it")
	if c := code(r, "old"); c != "StillFails" || !strings.Contains(r.Verdict.Activation.Description, "1 prune waits: ConfigMap updates/web failed") {
		t.Errorf("the report gives %q as the reason, and the status is %+v", c, r.Verdict.Activation)
	}
	r = a.once(t)
	if v := r.Verdict.Activation; !strings.Contains(v.Description, "ConfigMap updates/web failed since ") {
		t.Errorf("An earlier pass found the failure: %+v", v)
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
	if c := code(r, "old"); c != "StillFails" {
		t.Errorf("%q: when the webhook was pruned, nothing had replaced it", c)
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

// Access ends although something else fails for a long time. It stays if its replacement could not be created.
func TestBindingsArePruned(t *testing.T) {
	a := newApplying(t, "bindings")
	binding := func(name string) string {
		return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: %s, namespace: %s}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]\n", name, a.space, name)
	}
	has := func(name string, want bool) {
		t.Helper()
		if _, err := a.live.RbacV1().RoleBindings(a.space).Get(t.Context(), name, metav1.GetOptions{}); (err == nil) != want {
			t.Errorf("the binding %s is there: %v", name, err)
		}
	}
	broken := a.settings("broken", "") + "data: {not/a/key: v}\n"
	a.push(t, "all.yaml", a.settings("old", "")+"---\n"+binding("alice")+"---\n"+binding("bob"))
	a.once(t)
	a.push(t, "all.yaml", broken+"---\n"+binding("bob"))
	a.once(t)
	has("alice", false)
	a.has(t, "old", true, "A ConfigMap fails")
	a.push(t, "all.yaml", broken+"---\n"+strings.Replace(binding("carol"), "kind: User", "kind: Nobody", 1))
	a.once(t)
	has("bob", true)
}

// A create may exceed a quota until the old object is pruned. A person approves that prune. The digest stays the same although another
// object fails meanwhile.
func TestQuotaDeadlock(t *testing.T) {
	a := newApplying(t, "quota")
	role := func(name string) string {
		return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s, namespace: %s}\nrules: []\n", name, a.space)
	}
	has := func(name string, want bool) {
		t.Helper()
		if _, err := a.live.RbacV1().Roles(a.space).Get(t.Context(), name, metav1.GetOptions{}); (err == nil) != want {
			t.Errorf("the Role %s is there: %v", name, err)
		}
	}
	quota := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: few, namespace: quota}\nspec: {hard: {count/roles.rbac.authorization.k8s.io: 1}}\n---\n"
	a.push(t, "all.yaml", quota+role("old"))
	if r := a.once(t); r.Summary.Failed > 0 {
		t.Fatalf("%+v", r.Steps)
	}
	a.count(t, "1")
	a.push(t, "all.yaml", quota+role("new"))
	r := a.once(t)
	has("old", true)
	has("new", false)
	if r.Approval == nil || code(r, "old") != "StillFails" {
		t.Fatalf("%+v", r.Steps)
	}
	digest := r.Approval.Digest
	a.push(t, "more.yaml", a.settings("broken", "")+"data: {not/a/key: v}\n")
	if r = a.once(t); r.Approval == nil || r.Approval.Digest != digest {
		t.Fatalf("Another failure does not void the approval: %+v", r.Approval)
	}
	a.to.Loop.Reconciler.Approvals = func() approval.Given { return approval.Given{inventory.OnSync: approval.Typed(digest)} }
	if r = a.once(t); len(r.Approvals) != 1 {
		t.Errorf("The report names the approval: %+v", r.Approvals)
	}
	has("old", false)
	a.count(t, "0")
	a.once(t)
	has("new", true)
}

// An Event has two identities. A commit that changes from one to the other deletes nothing, and only the new one is remembered.
func TestServedTwice(t *testing.T) {
	a := newApplying(t, "served-twice")
	old := fmt.Sprintf("apiVersion: v1\nkind: Event\nmetadata: {name: e, namespace: %[1]s}\ninvolvedObject: {kind: ConfigMap, name: c, namespace: %[1]s}\nreason: Made\nmessage: m\ntype: Normal\n", a.space)
	event := fmt.Sprintf("apiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: e, namespace: %[1]s}\nregarding: {kind: ConfigMap, name: c, namespace: %[1]s}\nreason: Made\nnote: m\ntype: Normal\n", a.space)
	a.push(t, "event.yaml", old+"---\n"+a.settings("kept", ""))
	if r := a.once(t); r.Summary.Failed > 0 {
		t.Fatalf("%+v", r.Steps)
	}
	a.push(t, "event.yaml", event+"---\n"+a.settings("kept", ""))
	first := a.once(t)
	if _, err := a.live.CoreV1().Events(a.space).Get(t.Context(), "e", metav1.GetOptions{}); err != nil {
		t.Fatalf("The commit wants it: %v, %+v", err, first.Steps)
	}
	if c := code(first, "e"); c != "ServedTwice" {
		t.Errorf("The report explains it: %q, %+v", c, first.Steps)
	}
	if r := a.once(t); r.Summary.Failed > 0 || code(r, "e") != "" {
		t.Errorf("The old identity is forgotten: %+v", r.Steps)
	}
	a.push(t, "event.yaml", a.settings("kept", ""))
	a.once(t)
	if _, err := a.live.EventsV1().Events(a.space).Get(t.Context(), "e", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("The commit does not want it any more: %v", err)
	}
}

// count sets the number of Roles that a quota counts, as its controller does.
func (a applying) count(t *testing.T, used string) {
	t.Helper()
	of := func(n string) core.ResourceList {
		return core.ResourceList{"count/roles.rbac.authorization.k8s.io": resource.MustParse(n)}
	}
	quota, err := a.live.CoreV1().ResourceQuotas(a.space).Get(t.Context(), "few", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota.Status = core.ResourceQuotaStatus{Hard: of("1"), Used: of(used)}
	if _, err := a.live.CoreV1().ResourceQuotas(a.space).UpdateStatus(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
