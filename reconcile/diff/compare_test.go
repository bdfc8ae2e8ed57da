package diff_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/plan"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func saying(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte("apiVersion: example.org/v1\nkind: Thing\n"+text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestCompare(t *testing.T) {
	flux := func(fields string) metav1.ManagedFieldsEntry {
		return given.Wrote("kustomize-controller", "Apply", fields)
	}
	edited := func(fields string) metav1.ManagedFieldsEntry { return given.Wrote("kubectl-edit", "Update", fields) }
	type blame struct {
		Hands          []diff.Taken
		Stale, Missing bool
	}
	cases := map[string]struct {
		reason     string
		want, live string
		wrote      []metav1.ManagedFieldsEntry
		changes    []string // "path: from → to"
		blame      blame
	}{
		"Same": {
			reason: "Fields of other managers and defaults are not a difference.",
			want:   "metadata: {name: a, labels: {a: b}}\nspec: {a: 1, b: {c: d}}\n",
			live:   "metadata: {name: a, uid: x, labels: {a: b, c: d}, annotations: {e: f}}\nspec: {a: 1, b: {c: d, e: f}, g: []}\nstatus: {h: 1}\n",
		},
		"Nothing": {
			reason: "Empty and absent values are equal at any depth.",
			want:   "metadata: {name: a, labels: {}, creationTimestamp: null}\nspec: {a: null, b: {}, c: [], d: {e: {f: null}}}\nstatus: {g: 1}\n",
			live:   "metadata: {name: a}\n",
		},
		"Number": {
			reason: "JSON has only one number type.",
			want:   "spec: {a: 1.0, b: 2}\n", live: "spec: {a: 1, b: 2.0}\n",
		},
		"Behind": {
			reason: "The applier has not yet applied the new value of its own field.",
			want:   "spec: {a: new}\n", live: "spec: {a: old}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:a":{}}}`)},
			changes: []string{`spec.a: "old" → "new"`}, blame: blame{Stale: true},
		},
		"Edited": {
			reason: "A field of an editor is a manual edit, reported with the editor's name.",
			want:   "spec: {a: right, b: 1}\n", live: "spec: {a: wrong, b: 1}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:b":{}}}`), edited(`{"f:spec":{"f:a":{}}}`)},
			changes: []string{`spec.a: "wrong" → "right" (kubectl-edit)`}, blame: blame{Hands: []diff.Taken{{Manager: "kubectl-edit", Fields: []string{"spec.a"}}}},
		},
		"EditedByApply": {
			reason: "kubectl apply --force-conflicts is a manual edit if Flux applies the object.",
			want:   "spec: {a: right}\n", live: "spec: {a: wrong}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:b":{}}}`), given.Wrote("kubectl", "Apply", `{"f:spec":{"f:a":{}}}`)},
			changes: []string{`spec.a: "wrong" → "right" (kubectl)`}, blame: blame{Hands: []diff.Taken{{Manager: "kubectl", Fields: []string{"spec.a"}}}},
		},
		"AppliedByKubectl": {
			reason: "If there is no other applier, kubectl apply is how commits are applied.",
			want:   "spec: {a: new}\n", live: "spec: {a: old}\n",
			wrote:   []metav1.ManagedFieldsEntry{given.Wrote("kubectl-client-side-apply", "Update", `{"f:spec":{"f:a":{},"f:b":{}}}`), edited(`{"f:spec":{"f:c":{}}}`)},
			changes: []string{`spec.a: "old" → "new"`}, blame: blame{Stale: true},
		},
		"Both": {
			reason: "One field is out of date and another was edited, and both are reported.",
			want:   "spec: {a: right, b: new}\n", live: "spec: {a: wrong, b: old}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:b":{}}}`), edited(`{"f:spec":{"f:a":{}}}`)},
			changes: []string{`spec.a: "wrong" → "right" (kubectl-edit)`, `spec.b: "old" → "new"`},
			blame:   blame{Hands: []diff.Taken{{Manager: "kubectl-edit", Fields: []string{"spec.a"}}}, Stale: true},
		},
		"Missing": {
			reason: "A missing field has no manager, so the writer is unknown.",
			want:   "spec: {a: {b: c}, d: 1}\n", live: "spec: {d: 1}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:d":{}}}`), given.Wrote("kubectl-edit", "Update", `{"f:spec":{}}`)},
			changes: []string{`spec.a:  → {"b":"c"}`}, blame: blame{Missing: true},
		},
		"MadeOnly": {
			reason: "The manager that created a mapping did not write the fields that others added.",
			want:   "data: {a: right}\n", live: "data: {a: wrong}\n",
			wrote: []metav1.ManagedFieldsEntry{
				flux(`{"f:metadata":{"f:labels":{"f:x":{}}}}`), given.Wrote("kubectl-create", "Update", `{"f:data":{".":{}}}`), edited(`{"f:data":{"f:a":{}}}`),
			},
			changes: []string{`data.a: "wrong" → "right" (kubectl-edit)`}, blame: blame{Hands: []diff.Taken{{Manager: "kubectl-edit", Fields: []string{"data.a"}}}},
		},
		"Versions": {
			reason: "Versions of a CRD are compared by name, and all fields of an atomic list belong to its writer.",
			want:   "spec: {versions: [{name: v1, served: true}, {name: v2, served: true}]}\n",
			live:   "spec: {versions: [{name: v2, served: false, storage: true}, {name: v1, served: true}]}\n",
			wrote:  []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:group":{}}}`), edited(`{"f:spec":{"f:versions":{}}}`)},
			changes: []string{
				`spec.versions[v2].served: false → true (kubectl-edit)`,
			},
			blame: blame{Hands: []diff.Taken{{Manager: "kubectl-edit", Fields: []string{"spec.versions[v2].served"}}}},
		},
		"VersionTooMany": {
			reason: "In an atomic list, an extra item is a difference.",
			want:   "spec: {versions: [{name: v1}]}\n", live: "spec: {versions: [{name: v1}, {name: v0}]}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:versions":{}}}`)},
			changes: []string{`spec.versions[v0]: {"name":"v0"} → `}, blame: blame{Stale: true},
		},
		"Keyed": {
			reason: "If the API server merges a list by key, others may add items, and the order does not matter.",
			want:   "spec: {ports: [{port: 1, name: x}, {port: 2}]}\n",
			live:   "spec: {ports: [{port: 9, protocol: TCP}, {port: 2, protocol: TCP}, {port: 1, protocol: TCP, name: z}]}\n",
			wrote: []metav1.ManagedFieldsEntry{
				flux(`{"f:spec":{"f:ports":{"k:{\"port\":2,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`),
				edited(`{"f:spec":{"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`),
			},
			changes: []string{`spec.ports[2].name: "z" → "x" (kubectl-edit)`}, blame: blame{Hands: []diff.Taken{{Manager: "kubectl-edit", Fields: []string{"spec.ports[2].name"}}}},
		},
		"KeyedMissing": {
			reason: "An item that does not exist is missing.",
			want:   "spec: {steps: [{step: a}, {step: b}]}\n", live: "spec: {steps: [{step: a}]}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:steps":{"k:{\"step\":\"a\"}":{".":{},"f:step":{}}}}}`)},
			changes: []string{`spec.steps[1]:  → {"step":"b"}`}, blame: blame{Missing: true},
		},
		"Set": {
			reason: "A set may contain more than the wanted items.",
			want:   "metadata: {finalizers: [b, c]}\n", live: "metadata: {finalizers: [a, b]}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{},"v:\"b\"":{}}}}`)},
			changes: []string{`metadata.finalizers[1]:  → "c"`}, blame: blame{Missing: true},
		},
		"Atomic": {
			reason: "Any other list is one value: its order and length matter, but defaults in its items do not.",
			want:   "spec: {activate: [a, b], rules: [{x: 1}]}\n", live: "spec: {activate: [b], rules: [{x: 1, y: 2}]}\n",
			wrote:   []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:activate":{},"f:rules":{}}}`)},
			changes: []string{`spec.activate[0]: "b" → "a"`, `spec.activate[1]:  → "b"`}, blame: blame{Stale: true},
		},
		"OtherType": {
			reason: "A value of another type is a different value.",
			want:   "spec: {a: {b: 1}, c: [1], d: text}\n", live: "spec: {a: x, c: {}, d: 1}\n",
			changes: []string{`spec.a: "x" → {"b":1}`, `spec.c: {} → [1]`, `spec.d: 1 → "text"`}, blame: blame{Missing: true},
		},
		"Substituted": {
			reason: "Flux fills in variables, but the text around them still matters.",
			want:   "spec: {a: 'x-${one}-y-${two:=2}', b: '${all}', c: '${no}-c'}\n",
			live:   "metadata: {labels: {kustomize.toolkit.fluxcd.io/name: apps}}\nspec: {a: x-1-y-2, b: 3, c: d}\n",
			wrote:  []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:c":{}}}`)}, changes: []string{`spec.c: "d" → "${no}-c"`}, blame: blame{Stale: true},
		},
		"NotSubstituted": {
			reason: "No tool except Flux fills in variables.",
			want:   "spec: {b: '${all}'}\n", live: "spec: {b: x}\n", wrote: []metav1.ManagedFieldsEntry{given.Wrote("argocd-controller", "Apply", `{"f:spec":{"f:b":{}}}`)},
			changes: []string{`spec.b: "x" → "${all}"`}, blame: blame{Stale: true},
		},
		"Injected": {
			reason: "A value that a controller writes in place of a placeholder is not drift.",
			want:   "metadata: {annotations: {cert-manager.io/inject-ca-from: a/b}}\nspec: {conversion: {webhook: {clientConfig: {caBundle: Cg==}}}}\n",
			live:   "metadata: {annotations: {cert-manager.io/inject-ca-from: a/b}}\nspec: {conversion: {webhook: {clientConfig: {caBundle: cmVhbA==}}}}\n",
		},
		"StatusWriter": {
			reason: "Writing the status is not a manual edit.",
			want:   "spec: {a: new}\n", live: "spec: {a: old}\n",
			wrote: []metav1.ManagedFieldsEntry{flux(`{"f:spec":{"f:a":{}}}`), {
				Manager: "crossplane", Operation: "Update", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:a":{}},"f:status":{}}`),
			}},
			changes: []string{`spec.a: "old" → "new"`}, blame: blame{Stale: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, live := saying(t, tc.want), saying(t, tc.live)
			if name == "Injected" {
				want.SetKind("CustomResourceDefinition")
			}
			live.SetManagedFields(tc.wrote)
			before := []*unstructured.Unstructured{want.DeepCopy(), live.DeepCopy()}
			got := diff.Compare(want, live, nil)
			if diff := cmp.Diff(before, []*unstructured.Unstructured{want, live}); diff != "" {
				t.Errorf("The compared objects stay unchanged.\n(-before +after):\n%s", diff)
			}
			s := plan.Step{Action: plan.Update, Write: plan.Write{Live: got.Live, After: got.After, Takes: got.TakenBy}}
			var changes []string
			for _, c := range s.Changes() {
				by := ""
				if c.By != "" {
					by = " (" + c.By + ")"
				}
				changes = append(changes, c.Path+": "+c.From+" → "+c.To+by)
			}
			if diff := cmp.Diff(tc.changes, changes); diff != "" {
				t.Errorf("%s\nchanges (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.blame, blame{got.TakenBy, got.Stale, got.Missing}); diff != "" {
				t.Errorf("%s\nblame (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompareIgnores(t *testing.T) {
	want := saying(t, "metadata: {name: a}\nspec: {replicas: 1, list: [{a: 1, b: 1}]}\n")
	live := saying(t, "metadata: {name: a}\nspec: {replicas: 3, list: [{a: 2, b: 1}]}\n")
	terms := diff.Ignores{{Paths: []diff.Pointer{diff.PointerOf("/spec/replicas"), diff.PointerOf("/spec/list/*/a")}}}
	if got := diff.Compare(want, live, terms); got.After != nil {
		t.Errorf("An ignored field is no difference: %v", got.After)
	}
	if got := diff.Compare(want, live, nil); got.After == nil {
		t.Error("Without the rule it is.")
	}
}

// A Secret's differences contain no values, not even those of stringData.
func TestCompareSecret(t *testing.T) {
	secret := func(text string) *unstructured.Unstructured {
		u := saying(t, text)
		u.SetAPIVersion("v1")
		u.SetKind("Secret")
		return u
	}
	live := secret("data: {a: Y2FuYXJ5, b: b3RoZXI=}\n")
	if got := diff.Compare(secret("stringData: {a: canary}\ndata: {b: b3RoZXI=}\n"), live, nil); got.After != nil {
		t.Errorf("A text value is stored as data: %v", got.After)
	}
	got := diff.Compare(secret("stringData: {a: another}\n"), live, nil)
	s := plan.Step{Action: plan.Update, Write: plan.Write{Live: got.Live, After: got.After}}
	s.ID.Kind = "Secret"
	for _, c := range s.Changes() {
		if !strings.HasPrefix(c.From, "***") || !strings.HasPrefix(c.To, "***") {
			t.Errorf("It is masked: %v", c)
		}
	}
	if len(s.Changes()) != 1 {
		t.Errorf("one change, got %v", s.Changes())
	}
}

// A wanted value is present if others only added to it, and is not present if they changed it.
func TestCompareAnything(t *testing.T) {
	scalar := rapid.OneOf(rapid.Just(any("")), rapid.Map(rapid.StringN(1, 3, 8), func(s string) any { return s }),
		rapid.Map(rapid.Int64Range(-9, 9), func(n int64) any { return n }), rapid.Map(rapid.Bool(), func(b bool) any { return b }))
	key := rapid.SampledFrom([]string{"a", "b", "c", "name", "caBundle"})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return scalar
		}
		return rapid.OneOf(scalar,
			rapid.Map(rapid.MapOfN(key, value(depth-1), 1, 3), func(m map[string]any) any { return m }),
			rapid.Map(rapid.SliceOfN(value(depth-1), 1, 3), func(l []any) any { return l }))
	}
	rapid.Check(t, func(t *rapid.T) {
		want := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing", "spec": value(3).Draw(t, "spec")}}
		live := want.DeepCopy()
		var leaves []func(any) // setters of the leaf values
		var grow func(v any, set func(any))
		grow = func(v any, set func(any)) {
			switch v := v.(type) {
			case map[string]any:
				for _, k := range slices.Sorted(maps.Keys(v)) {
					grow(v[k], func(changed any) { v[k] = changed })
				}
				v["added"] = "by others"
			case []any:
				for i, child := range v {
					grow(child, func(changed any) { v[i] = changed })
				}
			default:
				leaves = append(leaves, set)
			}
		}
		grow(live.Object["spec"], func(changed any) { live.Object["spec"] = changed })
		if got := diff.Compare(want, live, nil); got.After != nil {
			t.Fatalf("nothing is changed, and it reports %v → %v", got.Live.Object, got.After.Object)
		}
		leaves[rapid.IntRange(0, len(leaves)-1).Draw(t, "leaf")]("changed by somebody")
		got := diff.Compare(want, live, nil)
		if s := (plan.Step{Action: plan.Update, Write: plan.Write{Live: got.Live, After: got.After}}); got.After == nil || len(s.Changes()) == 0 {
			t.Fatalf("%v was changed, and no difference of %v is reported", live.Object, want.Object)
		}
	})
}
