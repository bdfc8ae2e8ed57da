package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/packages"
)

// If Crossplane is installed, Headgate reads its objects that decide about packages with one request. Without the right to read
// them, there is no finding.
func TestImageConfigs(t *testing.T) {
	t.Parallel()
	w := worldOf(t, fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t))) // the test installs a CRD of Crossplane, so it has its own server
	nobody := w.as(t, nil)
	limited := clusterOf(t, nobody, w, cluster.Options{})
	if installed, err := limited.Packages(t.Context()); installed != nil || err != nil {
		t.Errorf("Without Crossplane it takes no right to know what it has installed: %v, %v", installed, err)
	}
	if images, err := limited.ImageConfigs(t.Context()); images != nil || err != nil {
		t.Errorf("Nor its settings for images: %v, %v", images, err)
	}

	for name, file := range fixtures.Corpus(t, "crossplane-core") {
		if strings.Contains(name, "imageconfigs") {
			create(t, w.at(crds, ""), written(t, string(file.Data)))
		}
	}
	images := schema.GroupVersionResource{Group: "pkg.crossplane.io", Version: "v1beta1", Resource: "imageconfigs"}
	eventually(t, func() error {
		_, err := w.at(images, "").List(t.Context(), metav1.ListOptions{})
		return err
	})
	var err error
	eventually(t, func() error { // discovery lags behind
		if _, err = limited.ImageConfigs(t.Context()); err == nil {
			return errors.New("there is no objection")
		}
		return nil
	})
	if want := `not allowed to list imageconfigs.pkg.crossplane.io (RBAC: grant the verb "list")`; !strings.Contains(err.Error(), want) {
		t.Errorf("A user without the right learns which right it takes: want %q, got %v", want, err)
	}

	spec := map[string]any{"matchImages": []any{map[string]any{"type": "Prefix", "prefix": "a/"}}}
	for name, annotations := range map[string]map[string]string{
		"theirs": nil,
		"ours":   {inventory.InventoryAnnotation: w.sync.Key()},
		"kept":   {inventory.InventoryAnnotation: w.sync.Key(), "client.lifecycle.config.k8s.io/deletion": "detach"},
	} {
		u := thing("pkg.crossplane.io/v1beta1", "ImageConfig", "", name, map[string]any{"spec": spec})
		if annotations == nil {
			create(t, w.at(images, ""), u)
			continue
		}
		u.SetLabels(map[string]string{inventory.SyncLabel: w.sync.Key()})
		u.SetAnnotations(annotations)
		if _, err := w.at(images, "").Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: inventory.Manager}); err != nil {
			t.Fatal(err)
		}
	}
	w.made(t, namespace(w.sync.Namespace))
	inventory := configMap(w.sync.Namespace, "headgate-main", "")
	inventory.SetLabels(map[string]string{"cli-utils.sigs.k8s.io/inventory-id": w.sync.Key()})
	inventory.Object["data"] = map[string]any{"_ours_pkg.crossplane.io_ImageConfig": "", "_kept_pkg.crossplane.io_ImageConfig": ""}
	w.made(t, inventory)
	want := []packages.LiveConfig{{Name: "kept", Spec: spec}, {Name: "ours", Spec: spec, Ours: true}, {Name: "theirs", Spec: spec}}
	w.requests.Reset()
	got, err := w.cluster(t, cluster.Options{}).ImageConfigs(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("An owned object that nothing keeps goes with the commit: %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(map[string]int{"GET": 1, "LIST": 1}, w.requests.Counts()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	want[1].Ours = false
	if got, err = w.looker(t, "imageconfigs.pkg.crossplane.io").ImageConfigs(t.Context()); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("Who only looks prunes nothing: %v\n%s", err, cmp.Diff(want, got))
	}
}
