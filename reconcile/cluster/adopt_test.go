package cluster_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// kubectl runs the real kubectl on a manifest.
func kubectl(t *testing.T, u *unstructured.Unstructured, args ...string) {
	t.Helper()
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "object.yaml")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "kubectl", append([]string{"--kubeconfig", fixtures.Kubeconfig(t), "apply", "-f", file}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl apply: %v\n%s", err, out)
	}
}

// hooks returns a webhook configuration as users write it, without the defaults of the API server. Its webhooks match no request.
func (w *world) hooks(labels map[string]any, all ...any) *unstructured.Unstructured {
	u := thing("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "hooks."+w.group, map[string]any{"webhooks": all})
	if labels != nil {
		u.Object["metadata"].(map[string]any)["labels"] = labels
	}
	return u
}

// hook returns a webhook for such a configuration, with the address of its server.
func (w *world) hook(name, url string, more map[string]any) map[string]any {
	hook := map[string]any{
		"name": name + ".example.org", "clientConfig": map[string]any{"url": "https://" + url + ".example.org"},
		"sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Ignore",
		"rules": []any{map[string]any{"apiGroups": []any{"none." + w.group}, "apiVersions": []any{"v1"}, "resources": []any{"nothing"}, "operations": []any{"CREATE"}}},
	}
	maps.Copy(hook, more)
	return hook
}

// carry runs a pass in a new process and returns the report.
func (w *world) carry(t *testing.T, terms facts.Terms, commit render.Desired, approvals ...string) report.Report {
	t.Helper()
	r := reconcilerOf(w.cluster(t, cluster.Options{Terms: terms}), w)
	r.NoWait = true
	r.Approvals = func() approval.Given { return approval.Given{inventory.OnCommand: approval.Typed(approvals...)} }
	result, _, err := r.Carry(t.Context(), reconcile.Task{Render: func(context.Context) (render.Desired, error) { return commit, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// leftBehind returns the finding about fields that the previous manager left behind.
func leftBehind(r report.Report) (message, fix string) {
	for _, f := range r.Findings {
		if f.Rule == "fields-left-behind" {
			return f.Message, f.Fix
		}
	}
	return "", ""
}

// Adoption takes over the fields that the commit sets, whichever tool applied them before, so that later changes and
// removals work. Fields that only the other tool set stay until the user requests their removal.
//
//test:long
func TestMigration(t *testing.T) {
	helm := func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm", "kept": "1", "old": "1"})
		u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "app", "meta.helm.sh/release-namespace": "apps"})
	}
	argo := func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "app:admissionregistration.k8s.io/ValidatingWebhookConfiguration:/" + u.GetName()})
	}
	server := []string{"--server-side", "--force-conflicts", "--field-manager"}
	cases := map[string]struct {
		reason  string
		mark    func(*unstructured.Unstructured)
		apply   func(t *testing.T, w *world, u *unstructured.Unstructured)
		manager string
		left    []string // in addition to the fields that the commit does not set
	}{
		"Kubectl": {
			reason: "kubectl apply sends updates and stores the applied object in an annotation.", manager: "kubectl-client-side-apply",
			apply: func(t *testing.T, _ *world, u *unstructured.Unstructured) {
				t.Helper()
				kubectl(t, u)
			},
		},
		"KubectlOnTheServer": {
			reason: "kubectl apply --server-side uses server-side apply.", manager: "kubectl",
			apply: func(t *testing.T, _ *world, u *unstructured.Unstructured) {
				t.Helper()
				kubectl(t, u, "--server-side")
			},
		},
		"ArgoCD": {
			reason: "Argo CD runs the code of a client-side apply under its own name.", manager: "argocd-controller", mark: argo,
			apply: func(t *testing.T, _ *world, u *unstructured.Unstructured) {
				t.Helper()
				kubectl(t, u, "--field-manager", "argocd-controller")
			},
			left: []string{"metadata.annotations.argocd.argoproj.io/tracking-id"},
		},
		"ArgoCDOnTheServer": {
			reason: "With ServerSideApply=true, Argo CD uses server-side apply.", manager: "argocd-controller", mark: argo,
			apply: func(t *testing.T, _ *world, u *unstructured.Unstructured) {
				t.Helper()
				kubectl(t, u, append(server, "argocd-controller")...)
			},
			left: []string{"metadata.annotations.argocd.argoproj.io/tracking-id"},
		},
		"Helm3": {
			reason: "Helm 3 creates objects and patches existing ones.", manager: "helm", mark: helm,
			apply: func(t *testing.T, w *world, u *unstructured.Unstructured) {
				t.Helper()
				at := w.at(webhooks, "")
				if _, err := at.Create(t.Context(), u, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
					t.Fatal(err)
				}
			},
			left: []string{"metadata.annotations.meta.helm.sh/release-name", "metadata.annotations.meta.helm.sh/release-namespace", "metadata.labels.app.kubernetes.io/managed-by"},
		},
		"Helm4": {
			reason: "Helm 4 uses server-side apply.", manager: "helm", mark: helm,
			apply: func(t *testing.T, w *world, u *unstructured.Unstructured) {
				t.Helper()
				applyAs(t, "helm", w.at(webhooks, ""), u)
			},
			left: []string{"metadata.annotations.meta.helm.sh/release-name", "metadata.annotations.meta.helm.sh/release-namespace", "metadata.labels.app.kubernetes.io/managed-by"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			was := w.hooks(map[string]any{"kept": "1", "old": "1"}, w.hook("kept", "one", map[string]any{"timeoutSeconds": int64(7), "matchPolicy": "Exact"}), w.hook("old", "one", nil))
			if tc.mark != nil {
				tc.mark(was)
			}
			tc.apply(t, w, was)
			terms := facts.Terms{Adoption: facts.AdoptAll}

			// The first pass adopts: one step changes a value and takes over the other fields.
			first := want(t, w.hooks(map[string]any{"kept": "1"}, w.hook("kept", "two", map[string]any{"timeoutSeconds": int64(7)})))
			result := w.carry(t, terms, first)
			if result.Summary.Updated != 1 || result.Verdict.ExitCode != report.ExitSuccess || len(result.Steps) != 1 {
				t.Fatalf("%s\n%s", tc.reason, text(result))
			}
			left := append([]string{"metadata.labels.old", "webhooks[kept.example.org].matchPolicy", "webhooks[old.example.org].clientConfig.url"}, tc.left...)
			listed := func(text string) bool {
				return !slices.ContainsFunc(left, func(field string) bool { return !strings.Contains(text, field) }) && !strings.Contains(text, "webhooks[kept.example.org].namespaceSelector")
			}
			if got := result.Steps[0].Reason; !strings.Contains(got, tc.manager) || !listed(got) {
				t.Errorf("%s\nThe step says from whom, and what stays: %s", tc.reason, got)
			}
			live := w.mustGet(t, webhooks, "", "hooks."+w.group)
			if live.GetLabels()["old"] != "1" || live.GetAnnotations()["kubectl.kubernetes.io/last-applied-configuration"] != "" {
				t.Errorf("%s\nWhat only the tool set stays, but for its bookkeeping: %s", tc.reason, asJSON(t, live))
			}
			if diff := cmp.Diff([]string{"kept two 7 Exact", "old one 10 Equivalent"}, hooksOf(live)); diff != "" {
				t.Errorf("%s\nwebhooks (-want +got):\n%s", tc.reason, diff)
			}
			w.requests.Reset()
			again := w.carry(t, terms, first)
			message, _ := leftBehind(again)
			if again.Summary.Updated > 0 || w.requests.Writes() > 0 || !listed(message) {
				t.Errorf("%s\nNothing is left to do, and what is left behind is listed:\n%s%s", tc.reason, text(again), w.requests.Log())
			}

			// Fields that leave the commit are now removed.
			second := want(t, w.hooks(nil, w.hook("kept", "three", nil)))
			if result := w.carry(t, terms, second); result.Summary.Updated != 1 || result.Verdict.ExitCode != report.ExitSuccess {
				t.Fatalf("%s\n%s", tc.reason, text(result))
			}
			live = w.mustGet(t, webhooks, "", "hooks."+w.group)
			if _, kept := live.GetLabels()["kept"]; kept || !slices.Equal(hooksOf(live), []string{"kept three 10 Exact", "old one 10 Equivalent"}) {
				t.Errorf("%s\nThe next commit changes and removes what it likes, and nothing else: %s", tc.reason, asJSON(t, live))
			}

			// A user approves the removal of the fields that were left behind.
			_, fix := leftBehind(w.carry(t, terms, second))
			digest := fix[strings.LastIndex(fix, " ")+1:]
			result = w.carry(t, terms, second, digest)
			if result.Summary.Updated != 1 || result.Verdict.ExitCode != report.ExitSuccess || len(result.Used()) == 0 {
				t.Errorf("%s\n%s", tc.reason, text(result))
			}
			live = w.mustGet(t, webhooks, "", "hooks."+w.group)
			if live.GetLabels()["old"] != "" || !slices.Equal(hooksOf(live), []string{"kept three 10 Equivalent"}) {
				t.Errorf("%s\nunwanted fields: %s", tc.reason, asJSON(t, live))
			}
			for _, key := range tc.left {
				if strings.Contains(asJSON(t, live), key[strings.LastIndex(key, "/"):]) {
					t.Errorf("%s\n%s stays", tc.reason, key)
				}
			}
			last := w.carry(t, terms, second)
			if message, _ := leftBehind(last); message != "" || last.Summary.Updated > 0 || last.Summary.Drifted > 0 {
				t.Errorf("%s\nafterwards:\n%s", tc.reason, text(last))
			}
			if diff := cmp.Diff([]string{"headgate Apply"}, managersOf(live)); diff != "" {
				t.Errorf("%s\nfield managers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func text(r report.Report) string {
	var b strings.Builder
	_ = report.Text{Full: true}.Write(&b, r) // writing to a Builder never fails
	return b.String()
}

func nested(u *unstructured.Unstructured, path ...string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, path...)
	return v
}

// hooksOf returns the name, address, timeout and policy of each webhook in a configuration.
func hooksOf(u *unstructured.Unstructured) []string {
	var all []string
	for _, v := range nested(u, "webhooks").([]any) {
		hook := &unstructured.Unstructured{Object: v.(map[string]any)}
		line := fmt.Sprint(hook.Object["name"], " ", nested(hook, "clientConfig", "url"), " ", hook.Object["timeoutSeconds"], " ", hook.Object["matchPolicy"])
		all = append(all, strings.NewReplacer(".example.org", "", "https://", "").Replace(line))
	}
	return all
}

// asJSON returns an object as JSON, without its managed fields.
func asJSON(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	u = u.DeepCopy()
	u.SetManagedFields(nil)
	raw, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func managersOf(u *unstructured.Unstructured) []string {
	var all []string
	for _, f := range u.GetManagedFields() {
		if f.Subresource == "" {
			all = append(all, f.Manager+" "+string(f.Operation))
		}
	}
	slices.Sort(all)
	return all
}

// Managers that edit or scale an object did not apply it: they keep their fields, and changing these is a conflict.
func TestAdoptionTakesFromAppliersOnly(t *testing.T) {
	for _, manager := range []string{"kubectl-edit", "kubectl-patch", "horizontal-pod-autoscaler", "other-tool"} {
		t.Run(manager, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace + "-app"
			create(t, w.at(namespaces, ""), namespace(space))
			kubectl(t, configMap(space, "settings", "1"))
			edit := []byte(`{"data":{"key":"2","theirs":"3"}}`)
			if _, err := w.at(configMaps, space).Patch(t.Context(), "settings", types.MergePatchType, edit, metav1.PatchOptions{FieldManager: manager}); err != nil {
				t.Fatal(err)
			}
			result := w.carry(t, facts.Terms{Clear: true}, want(t, configMap(space, "settings", "4")))
			if len(result.Steps) != 1 || !strings.Contains(result.Steps[0].Error, "conflict with "+manager+" over .data.key") {
				t.Errorf("The conflict names who holds the field:\n%s", text(result))
			}
			live := w.mustGet(t, configMaps, space, "settings")
			if value(t, live) != "2" || nested(live, "data", "theirs") != "3" || slices.Contains(managersOf(live), "headgate Apply") {
				t.Errorf("Nothing is taken by the way: %s, %v", asJSON(t, live), managersOf(live))
			}
		})
	}
}

// If a process dies between the two requests of an adoption, the next pass adopts the object, and no field is lost.
func TestAdoptionIsResumed(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	create(t, w.at(namespaces, ""), namespace(space))
	was := configMap(space, "settings", "1")
	was.Object["data"].(map[string]any)["old"] = "1"
	kubectl(t, was)
	commit := want(t, configMap(space, "settings", "2"))
	c := w.cluster(t, cluster.Options{})
	done, err := c.Apply(t.Context(), planned(t, c, commit))
	if err != nil || len(done) != 1 || done[0].Did != plan.DoAdopt || !done[0].More {
		t.Fatalf("first request: %+v, %v", done, err)
	}
	if live := w.mustGet(t, configMaps, space, "settings"); value(t, live) != "1" {
		t.Errorf("only managed fields are written: %s", asJSON(t, live))
	}
	result := w.carry(t, facts.Terms{}, commit)
	live := w.mustGet(t, configMaps, space, "settings")
	if result.Verdict.ExitCode != report.ExitSuccess || value(t, live) != "2" || nested(live, "data", "old") != "1" || !inventory.Ours(live, w.sync) {
		t.Errorf("%s\n%s", text(result), asJSON(t, live))
	}
	if message, _ := leftBehind(w.carry(t, facts.Terms{}, commit)); !strings.Contains(message, "data.old") {
		t.Errorf("what is left behind is not forgotten: %q", message)
	}
	// With adoptionLeftovers: Remove, a later pass removes the fields that the first pass must keep.
	result = w.carry(t, facts.Terms{Clear: true}, commit)
	if live = w.mustGet(t, configMaps, space, "settings"); result.Summary.Updated != 1 || nested(live, "data", "old") != nil || value(t, live) != "2" {
		t.Errorf("%s\n%s", text(result), asJSON(t, live))
	}
	if last := w.carry(t, facts.Terms{Clear: true}, commit); last.Changed() {
		t.Errorf("afterwards:\n%s", text(last))
	}
}

// An object may change between the observation and the adoption. Then Headgate leaves it alone, unless only its status changed.
func TestAdoptionOfWhatChanged(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	create(t, w.at(namespaces, ""), namespace(space))
	kubectl(t, configMap(space, "settings", "1"))
	c, commit := w.cluster(t, cluster.Options{}), want(t, configMap(space, "settings", "2"))
	p := planned(t, c, commit)
	w.patch(t, w.at(configMaps, space), "settings", `{"data":{"key":"3"}}`)
	done, err := c.Apply(t.Context(), p)
	if err != nil || len(done) != 1 || done[0].Err == nil || slices.Contains(managersOf(w.mustGet(t, configMaps, space, "settings")), "headgate Apply") {
		t.Errorf("%+v, %v, want the error that it changed", done, err)
	}

	crd := w.crd("Bucket", "Cluster")
	applied(t, c, want(t, crd))
	bucket := w.instance("Bucket", "", "a")
	kubectl(t, bucket)
	bucket.Object["spec"] = map[string]any{"size": int64(2)}
	c = w.cluster(t, cluster.Options{})
	p = planned(t, c, want(t, crd, bucket))
	w.patch(t, w.at(w.resource("Bucket"), ""), "a", `{"status":{"ready":true}}`, "status")
	if done, err = c.Apply(t.Context(), p); err != nil || len(done) != 1 || done[0].Err != nil {
		t.Errorf("a controller writes the status of many objects all the time: %+v, %v", done, err)
	}
	if got := managersOf(w.mustGet(t, w.resource("Bucket"), "", "a")); !slices.Equal(got, []string{"headgate Apply"}) {
		t.Errorf("field managers: %v", got)
	}
}

// A sync never adopts objects that another tool still reconciles, because that tool would revert the changes within a minute.
func TestStillReconciled(t *testing.T) {
	w := worldOf(t, fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t)))
	space := w.sync.Namespace + "-app"
	create(t, w.at(namespaces, ""), namespace(space))
	kinds := map[string]schema.GroupVersionResource{}
	var tools []*unstructured.Unstructured
	for kind, group := range map[string]string{"Kustomization": "kustomize.toolkit.fluxcd.io", "HelmRelease": "helm.toolkit.fluxcd.io", "Application": "argoproj.io"} {
		crd := w.crd(kind, "Namespaced")
		kinds[kind] = schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"}
		crd.SetName(kinds[kind].Resource + "." + group)
		crd.Object["spec"].(map[string]any)["group"] = group
		delete(crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any), "subresources")
		tools = append(tools, crd)
	}
	other := *w
	other.sync.Name = "tools"
	applied(t, other.cluster(t, cluster.Options{}), want(t, tools...))
	made := func(kind, name string, body map[string]any) {
		t.Helper()
		u := thing(kinds[kind].GroupVersion().String(), kind, space, name, body)
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) { // a CRD is served a moment after it is established
			if _, err := w.at(kinds[kind], space).Create(t.Context(), u, metav1.CreateOptions{}); err == nil {
				return
			} else if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	listing := func(names ...string) map[string]any {
		var entries, resources []any
		for _, name := range names {
			entries = append(entries, map[string]any{"id": space + "_" + name + "__ConfigMap", "v": "v1"})
			resources = append(resources, map[string]any{"version": "v1", "kind": "ConfigMap", "namespace": space, "name": name})
		}
		return map[string]any{"inventory": map[string]any{"entries": entries}, "resources": resources}
	}
	made("Kustomization", "live", map[string]any{"status": listing("flux-live")})
	made("Kustomization", "rests", map[string]any{"spec": map[string]any{"suspend": true}, "status": listing("flux-rests")})
	made("Kustomization", "new", nil)
	made("Kustomization", "far", map[string]any{"spec": map[string]any{"kubeConfig": map[string]any{"secretRef": map[string]any{"name": "far"}}}, "status": listing("flux-far")})
	made("HelmRelease", "live", map[string]any{"status": map[string]any{}})
	made("Application", "live", map[string]any{"status": listing("argo-live", "argo-unmarked")})
	made("Application", "far", map[string]any{"spec": map[string]any{"destination": map[string]any{"server": "https://elsewhere"}}, "status": listing("argo-far")})
	secret := thing("v1", "Secret", space, "sh.helm.release.v1.live.v1", map[string]any{"type": "helm.sh/release.v1"})
	secret.SetLabels(map[string]string{"owner": "helm", "name": "live", "status": "deployed"})
	create(t, w.at(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, space), secret)

	flux := func(kind, name string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{kind + ".toolkit.fluxcd.io/name": name, kind + ".toolkit.fluxcd.io/namespace": space})
		}
	}
	argo := func(name string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": name + ":/ConfigMap:" + space + "/" + u.GetName()})
		}
	}
	helm := func(name string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": space})
		}
	}
	cases := map[string]struct {
		reason, manager string
		mark            func(*unstructured.Unstructured)
		by              string // the tool that reconciles it; "" if adoption is allowed
	}{
		"flux-live":     {"The inventory of a Kustomization lists it.", "kustomize-controller", flux("kustomize", "live"), "the Kustomization " + space + "/live"},
		"flux-rests":    {"The Kustomization is suspended.", "kustomize-controller", flux("kustomize", "rests"), ""},
		"flux-let-go":   {"The Kustomization exists but no longer lists the object.", "kustomize-controller", flux("kustomize", "live"), ""},
		"flux-gone":     {"The Kustomization does not exist.", "kustomize-controller", flux("kustomize", "gone"), ""},
		"flux-new":      {"A new Kustomization has no inventory yet.", "kustomize-controller", flux("kustomize", "new"), "the Kustomization " + space + "/new"},
		"flux-far":      {"The Kustomization applies to another cluster.", "kustomize-controller", flux("kustomize", "far"), ""},
		"flux-release":  {"A HelmRelease may list nothing, but the object names it.", "helm-controller", flux("helm", "live"), "the HelmRelease " + space + "/live"},
		"argo-live":     {"The status of an Application lists the object.", "argocd-controller", argo("live"), "the Application " + space + "/live"},
		"argo-unmarked": {"Argo CD does not mark CRDs, but lists them.", "argocd-controller", nil, "the Application " + space + "/live"},
		"argo-gone":     {"The Application does not exist.", "argocd-controller", argo("gone"), ""},
		"argo-far":      {"The Application applies to another cluster.", "argocd-controller", argo("far"), ""},
		"helm-live":     {"The Helm release exists.", "helm", helm("live"), "the Helm release " + space + "/live"},
		"helm-gone":     {"The Helm release does not exist.", "helm", helm("gone"), ""},
	}
	var wanted []*unstructured.Unstructured
	for name, tc := range cases {
		u := configMap(space, name, "theirs")
		if tc.mark != nil {
			tc.mark(u)
		}
		applyAs(t, tc.manager, w.at(configMaps, space), u)
		wanted = append(wanted, configMap(space, name, "ours"))
	}
	result := w.carry(t, facts.Terms{Adoption: facts.AdoptAll}, want(t, wanted...))
	for _, s := range result.Steps {
		tc := cases[s.ID.Name]
		switch {
		case tc.by == "" && s.Action != plan.Update:
			t.Errorf("%s: %s\n%s: %s", s.ID.Name, tc.reason, s.Action, s.Reason)
		case tc.by != "" && (s.Action != plan.Hold || !strings.Contains(s.Reason, tc.by+" still reconciles it")):
			t.Errorf("%s: %s\n%s: %s", s.ID.Name, tc.reason, s.Action, s.Reason)
		}
		if got, taken := value(t, w.mustGet(t, configMaps, space, s.ID.Name)), tc.by == ""; taken != (got == "ours") {
			t.Errorf("%s: %s\nit holds %q", s.ID.Name, tc.reason, got)
		}
	}
}
