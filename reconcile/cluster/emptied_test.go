package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Another client may remove entries from an inventory, or restore an older inventory. Headgate notices that from the number of entries, or
// from an object with its marks that has none. It finds all objects by their marks, and forgets none of them. If the inventory cannot be written any more, the error names the way out.
func TestInventoryChangedByHand(t *testing.T) {
	for name, patch := range map[string]string{
		"Emptied": `{"data":null}`,
		"One":     `{"data":{"` + "NAMESPACE" + `_goes__ConfigMap":null}}`,
		"Anew":    `{"data":null,"metadata":{"annotations":null}}`,
		"Older":   `{"data":{"NAMESPACE_goes__ConfigMap":null},"metadata":{"annotations":{"headgate.dev/inventory":"{\"format\":4,\"entries\":1}"}}}`,
		"Empty":   `{"data":null,"metadata":{"annotations":{"headgate.dev/inventory":"{\"format\":4}"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			goes, stays := configMap(w.sync.Namespace, "goes", "1"), configMap(w.sync.Namespace, "stays", "1")
			applied(t, w.cluster(t, cluster.Options{}), want(t, goes, stays))
			w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-"+w.sync.Name, strings.ReplaceAll(patch, "NAMESPACE", w.sync.Namespace))

			c := w.cluster(t, cluster.Options{})
			p := applied(t, c, want(t, stays))
			if !slices.ContainsFunc(p.Notes, func(f manifest.Finding) bool { return f.Rule == plan.RuleRebuilt }) || p.Count(plan.Prune) > 0 {
				t.Errorf("%v %v", actions(p), p.Notes)
			}
			p = planned(t, c, want(t, stays))
			if got := actions(p); !slices.Equal(got, []string{"hold (rebuilt) ConfigMap/" + w.sync.Namespace + "/goes"}) {
				t.Errorf("a person decides about it: %v", got)
			}
			if slices.ContainsFunc(p.Notes, func(f manifest.Finding) bool { return f.Rule == plan.RuleRebuilt }) {
				t.Error("it is rebuilt once")
			}
		})
	}

	t.Run("Immutable", func(t *testing.T) {
		w := newWorld(t)
		stays := configMap(w.sync.Namespace, "stays", "1")
		applied(t, w.cluster(t, cluster.Options{}), want(t, stays))
		w.patch(t, w.at(configMaps, w.sync.Namespace), "headgate-"+w.sync.Name, `{"immutable":true}`)
		c := w.cluster(t, cluster.Options{})
		_, err := c.Apply(t.Context(), planned(t, c, want(t, stays, configMap(w.sync.Namespace, "new", "1"))))
		if err == nil || !strings.Contains(err.Error(), "is immutable") || !strings.Contains(err.Error(), "kubectl replace --force") {
			t.Errorf("%v", err)
		}
		if _, err := w.at(configMaps, w.sync.Namespace).Get(t.Context(), "new", metav1.GetOptions{}); err == nil {
			t.Error("nothing is applied that cannot be recorded")
		}
	})
}
