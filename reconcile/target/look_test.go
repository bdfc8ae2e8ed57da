package target

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/traffic"
)

// Next to a Flux that applies the same commits, the statuses show Flux's progress, its delay, and manual changes to its objects.
// Headgate sends only reads.
func TestTargetLooks(t *testing.T) {
	repository, board := newRepo(t), newStatusServer(t)
	s := decode(t, fmt.Sprintf(`  source: {repo: %q, interval: 1s}
  interval: 1h
  timeout: 4s
  crdOwner: Headgate
  managementPolicy: Observable
  clusterName: south
  statuses: {forge: Gitea, url: %q, repository: a/b, tokenFrom: {env: TOKEN}}
`, repository.dir, board.URL))
	config := fixtures.Config(t)
	requests := &traffic.Requests{}
	config.Wrap(requests.Wrap)
	live, err := dynamic.NewForConfig(fixtures.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	at := live.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default")
	flux := func(name, value string) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": value},
			"metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{
				"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
			}},
		}}
		if _, err := at.Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: "kustomize-controller", Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: looks-%s, namespace: default}\ndata: {key: %q}\n"
	flux("looks-a", "1")
	repository.push(t, "a.yaml", fmt.Sprintf(manifest, "a", "1"))
	first := repository.push(t, "b.yaml", fmt.Sprintf(manifest, "b", "1"))

	target, _ := made(t, s, config)
	running(t, target)
	activation := func(commit, output string) string {
		return fmt.Sprintf("%.7s headgate/south/team/targetlooks/activation %s", commit, output)
	}
	drift := func(commit, output string) string {
		return fmt.Sprintf("%.7s headgate/south/team/targetlooks/drift %s", commit, output)
	}
	const by = "by the Flux Kustomization flux-system/apps"

	board.has(t, activation(first, "pending: 1 not applied yet "+by+": looks-b; 1 object"), drift(first, "success: no drift"))
	board.has(t, activation(first, "failure: 1 not applied "+by+": looks-b; 1 object"))
	applied := time.Now()
	flux("looks-b", "1")
	when := board.has(t, activation(first, "success: 2 objects"))
	t.Logf("from an apply to the status: %s", when.Sub(applied))

	edited := time.Now()
	if _, err := at.Patch(t.Context(), "looks-a", types.MergePatchType, []byte(`{"data":{"key":"wrong"}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	when = board.has(t, drift(first, "failure: 1 drifted: looks-a by kubectl-edit"))
	t.Logf("from a hand edit to the status: %s", when.Sub(edited))
	flux("looks-a", "1")
	board.has(t, drift(first, "success: no drift"))

	const seen = "pending: seen; the pass has not ended"
	second := repository.push(t, "b.yaml", fmt.Sprintf(manifest, "b", "2"))
	board.has(t,
		activation(second, seen), drift(second, seen),
		activation(second, "pending: 1 not applied yet "+by+": looks-b; 1 object"), drift(second, "success: no drift"))
	flux("looks-b", "2")
	board.has(t, activation(second, "success: 2 objects"))

	for verb := range requests.Counts() {
		if !slices.Contains([]string{"GET", "LIST", "WATCH"}, verb) {
			t.Errorf("%s was sent: %q", verb, requests.Log())
		}
	}
}
