package cluster_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

func create(t *testing.T, at dynamic.ResourceInterface, u *unstructured.Unstructured) {
	t.Helper()
	if _, err := at.Create(t.Context(), u, metav1.CreateOptions{FieldManager: "kubectl-create"}); err != nil {
		t.Fatal(err)
	}
}

// applyAs applies an object like another tool.
func applyAs(t *testing.T, manager string, at dynamic.ResourceInterface, u *unstructured.Unstructured) {
	t.Helper()
	if _, err := at.Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
		t.Fatal(err)
	}
}

// value returns the value in a ConfigMap of these tests.
func value(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	s, _, err := unstructured.NestedString(u.Object, "data", "key")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAdoptAll(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	create(t, w.at(namespaces, ""), namespace(space))
	helms := configMap(space, "helms", "helm's")
	helms.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "app", "meta.helm.sh/release-namespace": "prod"})
	create(t, w.at(configMaps, space), helms)
	theirs := configMap(space, "crossplanes", "1")
	theirs.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "pkg.crossplane.io/v1", Kind: "ProviderRevision", Name: "aws-1", UID: "1"}})
	create(t, w.at(configMaps, space), theirs)

	c := w.cluster(t, cluster.Options{Terms: facts.Terms{Adoption: facts.AdoptAll, Take: true}})
	commit := want(t, configMap(space, "helms", "ours"), configMap(space, "crossplanes", "1"))
	p := planned(t, c, commit)
	if diff := cmp.Diff([]string{
		"hold (not ours) ConfigMap/" + space + "/crossplanes",
		"update (commit) ConfigMap/" + space + "/helms",
	}, actions(p)); diff != "" {
		t.Errorf("Objects of Helm are taken over, those of Crossplane never are.\nsteps (-want +got):\n%s", diff)
	}
	if _, err := c.Apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	live := w.mustGet(t, configMaps, space, "helms")
	if !inventory.Ours(live, w.sync) || value(t, live) != "ours" || live.GetAnnotations()["meta.helm.sh/release-name"] != "app" {
		t.Errorf("It is ours, and nothing is stripped that is not: %v %v", live.GetAnnotations(), live.Object["data"])
	}
	w.requests.Reset()
	if again := planned(t, c, commit); again.Writes() || w.requests.Counts()["DRY-RUN PATCH"] > 0 {
		t.Errorf("An adopted object is not checked again: %v, %v", actions(again), w.requests.Log())
	}

	p = applied(t, c, want(t, configMap(space, "others", "1")))
	if got := actions(p); !slices.Contains(got, "release (commit) ConfigMap/"+space+"/helms") {
		t.Errorf("What bears Helm's marks too is released, and never pruned by us, got %v", got)
	}
	free(t, live, w.mustGet(t, configMaps, space, "helms"))
}

func TestLeftByAnotherSync(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	create(t, w.at(namespaces, ""), namespace(space))
	commit := want(t, configMap(space, "settings", "1"))
	before := *w
	before.sync.Name = "before"
	applied(t, before.cluster(t, cluster.Options{}), commit)

	c := w.cluster(t, cluster.Options{Terms: facts.Terms{Adoption: facts.AdoptAll}})
	if diff := cmp.Diff([]string{"hold (not ours) ConfigMap/" + space + "/settings"}, actions(planned(t, c, commit))); diff != "" {
		t.Errorf("An object in another sync's inventory belongs to that sync.\nsteps (-want +got):\n%s", diff)
	}
	if err := w.at(configMaps, w.sync.Namespace).Delete(t.Context(), "headgate-before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p := applied(t, c, commit)
	if diff := cmp.Diff([]string{"update (commit) ConfigMap/" + space + "/settings"}, actions(p)); diff != "" {
		t.Errorf("A sync that is gone owns nothing.\nsteps (-want +got):\n%s", diff)
	}
	if live := w.mustGet(t, configMaps, space, "settings"); !inventory.Ours(live, w.sync) {
		t.Errorf("want our marks, got %v %v", live.GetLabels(), live.GetAnnotations())
	}
}

func TestTakeConflicts(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{Terms: facts.Terms{Take: true}})
	mine := configMap(space, "settings", "1")
	applied(t, c, want(t, namespace(space), mine, configMap(space, "quiet", "1")))
	applyAs(t, "other-tool", w.at(configMaps, space), configMap(space, "settings", "2"))

	commit := want(t, namespace(space), mine, configMap(space, "quiet", "2"))
	p := planned(t, c, commit)
	w.requests.Reset()
	if _, err := c.Apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	const reason = "An object of another tool is adopted if the sync allows it, by name, and nothing else is forced."
	for _, s := range p.Steps {
		var want []diff.Taken
		if s.ID.Name == "settings" {
			want = []diff.Taken{{Manager: "other-tool", Fields: []string{"data.key"}}}
		}
		if diff := cmp.Diff(want, s.Takes); diff != "" {
			t.Errorf("%s\n%s takes (-want +got):\n%s", reason, s.ID, diff)
		}
	}
	for _, request := range w.requests.Log() {
		forced, settings := strings.Contains(request, "force=true"), strings.Contains(request, "/configmaps/settings?")
		if strings.HasPrefix(request, "PATCH ") && forced != settings {
			t.Errorf("%s\ngot %s", reason, request)
		}
	}
	for name, want := range map[string]string{"settings": "1", "quiet": "2"} {
		if got := value(t, w.mustGet(t, configMaps, space, name)); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	if again := planned(t, c, commit); again.Writes() {
		t.Errorf("An adopted object is ours, got %v", actions(again))
	}
}

// Objects in every stored version stay readable, through the webhook or through migration.
func TestStoredVersions(t *testing.T) {
	w := newWorld(t)
	crd := func(webhook bool, storage string, versions ...string) *unstructured.Unstructured {
		u := w.crd("Bucket", "Namespaced")
		spec := u.Object["spec"].(map[string]any)
		template := spec["versions"].([]any)[0].(map[string]any)
		var list []any
		for _, v := range versions {
			version := maps.Clone(template)
			version["name"], version["storage"] = v, v == storage
			list = append(list, version)
		}
		spec["versions"] = list
		if webhook {
			withWebhook(u, map[string]any{})
		}
		return u
	}
	c := w.cluster(t, cluster.Options{})
	applied(t, c, want(t, crd(true, "v1", "v1", "v2")))
	applied(t, c, want(t, crd(true, "v2", "v1", "v2")))
	const bucket = "CustomResourceDefinition.apiextensions.k8s.io/buckets.%g"
	for _, step := range []struct {
		reason  string
		commit  *unstructured.Unstructured
		migrate bool
		want    string
	}{
		{"Without the webhook, objects stored as v1 could no longer be read.", crd(false, "v2", "v1", "v2"), false, "hold (schema) " + bucket},
		{"Without the version, objects stored as v1 could no longer be read either.", crd(false, "v2", "v2"), false, "hold (impossible) " + bucket},
		{"After a migration, the webhook is no longer needed.", crd(false, "v2", "v2"), true, "update (commit) " + bucket},
	} {
		if step.migrate {
			w.patch(t, w.at(crds, ""), step.commit.GetName(), `{"status":{"storedVersions":["v2"]}}`, "status")
		}
		if diff := cmp.Diff(w.named("", []string{step.want}), actions(applied(t, c, want(t, step.commit)))); diff != "" {
			t.Errorf("%s\nsteps (-want +got):\n%s", step.reason, diff)
		}
	}
	live := w.mustGet(t, crds, "", crd(false, "v2", "v2").GetName())
	if strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("the conversion is %q", strategy)
	}
}
