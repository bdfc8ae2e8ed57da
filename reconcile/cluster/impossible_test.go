package cluster_test

import (
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An inventory may hold names that no URL can contain, because an earlier version recorded the objects before it tried to create them.
// Nothing else of the kind is affected: not in a pass, a release or a destroy.
func TestImpossibleName(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	var impossible []*unstructured.Unstructured
	for _, name := range []string{"%ENV%-config", ".", "..", "../x", "a/b"} {
		impossible = append(impossible, configMap(space, name, "1"))
	}
	all := func(more ...*unstructured.Unstructured) []*unstructured.Unstructured {
		return append(append([]*unstructured.Unstructured{namespace(space)}, impossible...), more...)
	}
	settings := "ConfigMap/" + space + "/settings"
	result := w.carry(t, facts.Terms{}, want(t, all(configMap(space, "settings", "1"))...))
	if result.Verdict.ExitCode != report.ExitFailed || result.Summary.Created != 2 || result.Summary.Failed != len(impossible) {
		t.Fatalf("Only the objects with the names fail: %+v %v", result.Summary, ended(result))
	}
	if n := len(w.owns(t)); n != len(impossible)+2 {
		t.Fatalf("The inventory holds them: %v", w.owns(t))
	}
	result = w.carry(t, facts.Terms{}, want(t, all(configMap(space, "settings", "2"))...))
	if result.Summary.Updated != 1 || result.Summary.Failed != len(impossible) {
		t.Errorf("The pass reads and updates the others: %+v %v", result.Summary, ended(result))
	}

	w.pause(t, space, "settings", true)
	w.carry(t, facts.Terms{}, want(t, all()...))
	if result, err := reconcilerOf(w.cluster(t, cluster.Options{}), w).Release(t.Context(), []string{settings}, true); err != nil || result.Summary.Released != 1 {
		t.Errorf("Another object of the kind can be released: %v, %v", ended(result), err)
	}
	w.pause(t, space, "settings", false)

	if result := w.carry(t, facts.Terms{}, want(t, namespace(space), configMap(space, "settings", "2"))); result.Verdict.ExitCode != report.ExitSuccess {
		t.Errorf("Without the names, the pass succeeds: %+v %v", result.Summary, ended(result))
	}
	if diff := cmp.Diff([]string{settings, "Namespace/" + space}, w.owns(t)); diff != "" {
		t.Errorf("It forgets them (-want +got):\n%s", diff)
	}

	w.carry(t, facts.Terms{}, want(t, all(configMap(space, "settings", "2"))...))
	if result, err := reconcilerOf(w.cluster(t, cluster.Options{}), w).Destroy(t.Context(), plan.Destroying); err != nil || result.Verdict.ExitCode != report.ExitSuccess {
		t.Errorf("Everything else is deleted: %v, %v", ended(result), err)
	}
}
