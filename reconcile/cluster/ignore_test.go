package cluster_test

import (
	"regexp"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func ignoring(kind string, paths ...string) facts.Terms {
	rule := diff.Ignore{Kind: regexp.MustCompile("^" + kind + "$")}
	for _, p := range paths {
		rule.Paths = append(rule.Paths, diff.PointerOf(p))
	}
	return facts.Terms{Ignore: []diff.Ignore{rule}}
}

// fields returns the fields that a manager applied or updated, as the API server records them.
func fields(u *unstructured.Unstructured, manager string) string {
	var all []string
	for _, f := range u.GetManagedFields() {
		if f.Manager == manager {
			all = append(all, f.FieldsV1.GetRawString())
		}
	}
	return strings.Join(all, " ")
}

func TestIgnoredFields(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	bucket := func(size, other int64) *unstructured.Unstructured {
		return thing(w.group+"/v1", "Bucket", space, "logs", map[string]any{"spec": map[string]any{"size": size, "other": other}})
	}
	commit := func(size, other int64) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{namespace(space), w.crd("Bucket", "Namespaced"), bucket(size, other)}
	}
	terms := ignoring("Bucket", "/spec/size")
	c := w.cluster(t, cluster.Options{Terms: terms})
	applied(t, c, want(t, commit(1, 1)...))
	at := w.at(w.resource("Bucket"), space)
	const logs = "Bucket.%g/%s/logs"
	spec := func() any { return w.mustGet(t, w.resource("Bucket"), space, "logs").Object["spec"] }
	expect := func(reason string, size, other int64, objects []*unstructured.Unstructured, want_ ...string) {
		t.Helper()
		p := applied(t, c, want(t, objects...))
		if diff := cmp.Diff(w.named(space, want_), actions(p)); diff != "" {
			t.Errorf("%s\nsteps (-want +got):\n%s", reason, diff)
		}
		if diff := cmp.Diff(map[string]any{"size": size, "other": other}, spec()); diff != "" {
			t.Errorf("%s\nspec (-want +got):\n%s", reason, diff)
		}
		w.requests.Reset()
		if again := planned(t, c, want(t, objects...)); again.Writes() || again.Remembers() || w.requests.Counts()["DRY-RUN PATCH"] > 0 {
			t.Errorf("%s\nThe next pass has nothing to do: %v, %v", reason, actions(again), w.requests.Log())
		}
	}
	if diff := cmp.Diff(map[string]any{"size": int64(1), "other": int64(1)}, spec()); diff != "" {
		t.Errorf("An ignored field is created with the object.\nspec (-want +got):\n%s", diff)
	}
	expect("A new value in Git for an ignored field is not written, and the live value stays even if no other manager has the field.", 1, 1, commit(2, 1))
	expect("The ignored field stays when another field is written, even if only Headgate ever wrote it.", 1, 2, commit(2, 2), "update (commit) "+logs)

	w.patch(t, at, "logs", `{"spec":{"size":5}}`)
	expect("A change of an ignored field is not drift.", 5, 2, commit(2, 2))
	w.patch(t, at, "logs", `{"spec":{"size":6,"other":7}}`)
	expect("A change of another field is found, and only that field is corrected.", 6, 2, commit(2, 2), "update (drift) "+logs)
	if ours := fields(w.mustGet(t, w.resource("Bucket"), space, "logs"), inventory.Manager); strings.Contains(ours, "f:size") {
		t.Errorf("The field is the other writer's alone, and we own %s", ours)
	}
	applyAs(t, "autoscaler", at, thing(w.group+"/v1", "Bucket", space, "logs", map[string]any{"spec": map[string]any{"size": int64(8)}}))
	expect("A change by server-side apply is ignored, too.", 8, 2, commit(2, 2))
	expect("An ignored field causes no conflict with its other manager.", 8, 3, commit(2, 3), "update (commit) "+logs)

	w.patch(t, at, "logs", `{"metadata":{"labels":{"`+inventory.SyncLabel+`":null}}}`)
	expect("A correction of other fields does not contain the ignored field.", 8, 3, commit(2, 3), "update (drift) "+logs)
	if err := at.Delete(t.Context(), "logs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("A deleted object is created again with all its fields.", 2, 3, commit(2, 3), "create (drift) "+logs)

	w.patch(t, at, "logs", `{"spec":{"size":9}}`)
	expect("The rule applies to the new object, too.", 9, 3, commit(2, 3))
	c = w.cluster(t, cluster.Options{})
	expect("Without the rule, Headgate takes the field back at once, and this is not drift.", 2, 3, commit(2, 3), "update (commit) "+logs)
	c = w.cluster(t, cluster.Options{Terms: terms})
	expect("With the rule again, a field that has no other manager stays with Headgate.", 2, 3, commit(2, 3))
}

// The versions of a CRD are an atomic list: a manager that edits one version owns them all.
func TestIgnoredPartOfAList(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{Terms: ignoring("CustomResourceDefinition", "/spec/versions/*/schema")})
	crd := w.crd("Bucket", "Namespaced")
	commit := want(t, crd)
	applied(t, c, commit)
	version := func() map[string]any {
		list, _, _ := unstructured.NestedSlice(w.mustGet(t, crds, "", crd.GetName()).Object, "spec", "versions")
		return list[0].(map[string]any)
	}
	edit := func(columns string) {
		w.patch(t, w.at(crds, ""), crd.GetName(), `{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},`+columns+
			`"schema":{"openAPIV3Schema":{"type":"object","description":"theirs","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	}
	edit("")
	if diff := cmp.Diff([]string{"update (commit) CustomResourceDefinition.apiextensions.k8s.io/" + crd.GetName()}, actions(applied(t, c, commit))); diff != "" {
		t.Errorf("An ignored field in an item of a list is no drift; our ownership of the list is written.\nsteps (-want +got):\n%s", diff)
	}
	if w.requests.Reset(); planned(t, c, commit).Remembers() || w.requests.Counts()["DRY-RUN PATCH"] > 0 {
		t.Errorf("And then there is nothing to do: %v", w.requests.Log())
	}
	edit(`"additionalPrinterColumns":[{"name":"a","type":"string","jsonPath":".spec.a"}],`)
	p := applied(t, c, commit)
	var changes []diff.Change
	for _, s := range p.Steps {
		changes = append(changes, s.Changes()...)
	}
	want := []diff.Change{{Path: "spec.versions[v1].additionalPrinterColumns", From: `[{"jsonPath":".spec.a","name":"a","type":"string"}]`, By: "somebody"}}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("A real edit beside it is found, and nothing else.\nchanges (-want +got):\n%s", diff)
	}
	schema, _, _ := unstructured.NestedString(version(), "schema", "openAPIV3Schema", "description")
	if _, still := version()["additionalPrinterColumns"]; still || schema != "theirs" {
		t.Errorf("It was put right, and the ignored schema is still theirs: %v", version())
	}
}

func TestIgnoredLabels(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{Terms: ignoring("ConfigMap", "/metadata/labels")})
	settings := configMap(space, "settings", "1")
	settings.SetLabels(map[string]string{"app": "a", "tier": "b"})
	commit := want(t, namespace(space), settings)
	applied(t, c, commit)
	w.patch(t, w.at(configMaps, space), "settings", `{"metadata":{"labels":{"app":"theirs","more":"theirs","`+inventory.SyncLabel+`":"gone"}}}`)
	w.patch(t, w.at(configMaps, space), "settings", `{"metadata":{"labels":{"`+inventory.SyncLabel+`":null}}}`)
	p := applied(t, c, commit)
	const reason = "Only our mark is ours among ignored labels: without it the owner of the object is not known."
	if diff := cmp.Diff([]string{"update (drift) ConfigMap/" + space + "/settings"}, actions(p)); diff != "" {
		t.Errorf("%s\nsteps (-want +got):\n%s", reason, diff)
	}
	got := w.mustGet(t, configMaps, space, "settings").GetLabels()
	if diff := cmp.Diff(map[string]string{"app": "theirs", "tier": "b", "more": "theirs", inventory.SyncLabel: w.sync.Key()}, got); diff != "" {
		t.Errorf("%s\nlabels (-want +got):\n%s", reason, diff)
	}
}
