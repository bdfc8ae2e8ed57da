package baseline

import (
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
)

// Two documents can be one object in the cluster, which a pass refuses.
func TestTwice(t *testing.T) {
	cases := map[string]struct {
		reason, kind string
		want         string
	}{
		"Namespaced":    {"An object without a namespace gets the default one.", "apiVersion: v1\nkind: ConfigMap\n", "a.yaml:1: ConfigMap/default/a is the same object as the one at b.yaml:1; keep one of them"},
		"ClusterScoped": {"A cluster-scoped object loses its namespace.", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n", "a.yaml:1: ClusterRole.rbac.authorization.k8s.io/a is the same object as the one at b.yaml:1; keep one of them"},
		"Unknown":       {"The kind may be cluster-scoped or not.", "apiVersion: example.org/v1\nkind: Thing\n", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := render.Render(render.Input{Files: fstest.MapFS{
				"a.yaml": {Data: []byte(tc.kind + "metadata: {name: a, namespace: default}\n")},
				"b.yaml": {Data: []byte(tc.kind + "metadata: {name: a}\n")},
			}}, render.Options{})
			if err != nil {
				t.Fatal(err)
			}
			b := Baseline{Sync: inventory.Sync{Namespace: "s", Name: "n"}, Kinds: KindsOf(want)}
			_, err = b.Observe(t.Context(), want)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s\nObserve(...) = %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
