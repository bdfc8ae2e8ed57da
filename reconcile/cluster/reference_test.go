package cluster_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Headgate copies live values while it observes, so that the plan holds exactly the request: numbers, tokens inside texts, and
// results of filters. Each source costs one request.
func TestReferences(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	base := []*unstructured.Unstructured{namespace(space), w.crd("Project", "Namespaced")}
	applied(t, c, want(t, base...))
	shop := w.instance("Project", space, "shop")
	projects := w.at(w.resource("Project"), space)
	if _, err := projects.Create(t.Context(), shop, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	status := `{"status":{"number":9007199254740993,"conditions":[{"type":"Synced","message":"no"},{"type":"Ready","message":"since June"}]}}`
	if _, err := projects.Patch(t.Context(), "shop", types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	copied := w.instance("Project", space, "copy")
	copied.Object["spec"] = map[string]any{"number": int64(0), "since": "", "members": []any{"project-${n}@example.org"}}
	of := "- sourceRef: {group: " + w.group + ", kind: Project, name: shop}\n"
	copied.SetAnnotations(map[string]string{"config.kubernetes.io/apply-time-mutation": "" +
		of + "  sourcePath: .status.number\n  targetPath: .spec.number\n" +
		of + "  sourcePath: $.status.number\n  targetPath: $.spec.members[0]\n  token: ${n}\n" +
		of + "  sourcePath: $.status.conditions[?(@.type=='Ready')].message\n  targetPath: $.spec.since\n"})
	commit := want(t, append(base, copied)...)
	p := planned(t, c, commit)
	var sent map[string]any
	for _, s := range p.Steps {
		if s.ID.Name == "copy" && s.Action == plan.Create {
			u, err := s.Object()
			if err != nil {
				t.Fatal(err)
			}
			sent, _ = u.Object["spec"].(map[string]any)
		}
	}
	wanted := map[string]any{"number": int64(9007199254740993), "since": "since June", "members": []any{"project-9007199254740993@example.org"}}
	if diff := cmp.Diff(wanted, sent); diff != "" {
		t.Errorf("spec of the step (-want +got):\n%s", diff)
	}
	if _, err := c.Apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, w.mustGet(t, w.resource("Project"), space, "copy").Object["spec"]); diff != "" {
		t.Errorf("spec in the cluster (-want +got):\n%s", diff)
	}

	w.requests.Reset()
	if p := planned(t, c, commit); p.Writes() || p.Remembers() {
		t.Errorf("nothing moved: %v", actions(p))
	}
	if counts := w.requests.Counts(); w.requests.Writes() > 0 || counts["GET"] != 4 {
		t.Errorf("one request beside those of any pass: %v", counts)
	}

	if err := projects.Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p = planned(t, c, commit)
	waits := ""
	for _, s := range p.Steps {
		waits += words.Awaited(s)
	}
	if p.Writes() || !strings.Contains(waits, "the field .status.number of the Project "+space+"/shop, which is neither in this commit nor in the cluster") {
		t.Errorf("A copied field stays while its source is gone: %v, waits for %q", actions(p), waits)
	}
}

// A value copied from a Secret has the right form: text in a text field, base64 in a byte field. If the value is not valid text,
// only the object with the reference fails.
func TestReferencesToSecrets(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{TryCreates: true})
	resource := func(name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: name}
	}
	object := func(kind, name, field string, value any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": space, "name": name}, field: value,
		}}
	}
	copying := func(kind, name, field, text, of, token string) *unstructured.Unstructured {
		u := object(kind, name, field, map[string]any{"k": text})
		u.SetAnnotations(map[string]string{"config.kubernetes.io/apply-time-mutation": "" +
			"- sourceRef: {kind: Secret, name: source}\n  sourcePath: $.data." + of + "\n  targetPath: $." + field + ".k\n  token: '" + token + "'\n"})
		return u
	}
	applied(t, c, want(t, namespace(space)))
	source := object("Secret", "source", "data", map[string]any{"password": "aHVudGVyMg==", "binary": "/wA="})
	if _, err := w.at(resource("secrets"), space).Create(t.Context(), source, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	commit := want(t, namespace(space),
		copying("ConfigMap", "text", "data", "password=${p}", "password", "${p}"),
		copying("ConfigMap", "bytes", "binaryData", "", "binary", ""),
		copying("Secret", "data", "data", "", "binary", ""),
		copying("Secret", "string", "stringData", "", "password", ""),
		copying("ConfigMap", "no-text", "data", "", "binary", ""),
	)
	p := planned(t, c, commit)
	done, err := c.Apply(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	failed := ""
	for _, o := range done {
		if o.Err != nil {
			failed += o.ID.Name + ": " + words.OfError(o.Err)
		}
	}
	if !strings.HasPrefix(failed, "no-text: ") || !strings.Contains(failed, "it is not text") {
		t.Errorf("it fails with %q", failed)
	}
	for _, tc := range []struct{ resource, name, field, want string }{
		{"configmaps", "text", "data", "password=hunter2"},
		{"configmaps", "bytes", "binaryData", "/wA="},
		{"secrets", "data", "data", "/wA="},
		{"secrets", "string", "data", "aHVudGVyMg=="},
	} {
		live := w.mustGet(t, resource(tc.resource), space, tc.name).Object
		if got, _, _ := unstructured.NestedString(live, tc.field, "k"); got != tc.want {
			t.Errorf("%s %s is live with %q, want %q", tc.resource, tc.name, got, tc.want)
		}
	}
	if p := planned(t, c, commit); p.Count(plan.Keep) != 5 || p.Count(plan.Create) != 1 {
		t.Errorf("nothing moved: %v", actions(p))
	}
}

// With references.fromSecrets: false, Headgate does not even read the Secret, so that the author of a commit cannot find out
// whether it exists.
func TestReferencesWithoutSecrets(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space)))
	copying := func(source string) *unstructured.Unstructured {
		u := configMap(space, "copy", "none")
		u.SetAnnotations(map[string]string{"config.kubernetes.io/apply-time-mutation": "- sourceRef: " + source + "\n  sourcePath: $.data.password\n  targetPath: $.data.key\n"})
		return u
	}
	for _, source := range []string{
		"{kind: Secret, name: source}", "{apiVersion: v1, kind: Secret, name: source}", "{kind: Secret, name: source, namespace: kube-system}",
	} {
		w.requests.Reset()
		c := w.cluster(t, cluster.Options{Terms: facts.Terms{NoSecrets: true}})
		_, err := c.Observe(t.Context(), want(t, namespace(space), copying(source)))
		if err == nil || !strings.Contains(err.Error(), "copies from the Secret source, which references.fromSecrets of the Sync forbids") {
			t.Errorf("%s: the commit is not refused: %v", source, err)
		}
		for _, request := range w.requests.Log() {
			if strings.Contains(request, "secrets/source") {
				t.Errorf("%s: the Secret is read: %s", source, request)
			}
		}
	}
	// Other sources are still read.
	c := w.cluster(t, cluster.Options{Terms: facts.Terms{NoSecrets: true}})
	if _, err := c.Observe(t.Context(), want(t, namespace(space), copying("{kind: ConfigMap, name: source}"))); err != nil {
		t.Error(err)
	}
}
