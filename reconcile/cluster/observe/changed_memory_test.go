//test:package raced minutes=1
package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/store"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/dynamic"
	smd "sigs.k8s.io/structured-merge-diff/v6/typed"
)

// thingKind has every kind of field that the API server merges in its own way.
const thingKind = `types:
- name: thing
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: metadata, type: {namedType: meta}}
    - name: spec
      type:
        map:
          fields:
          - {name: size, type: {scalar: numeric}}
          - {name: note, type: {scalar: string}}
          - {name: class, type: {scalar: string}}
          - {name: tags, type: {namedType: strings}}
          - {name: ports, type: {list: {elementRelationship: associative, keys: [name], elementType: {namedType: port}}}}
          - {name: zones, type: {list: {elementRelationship: associative, elementType: {scalar: string}}}}
          - {name: args, type: {list: {elementRelationship: atomic, elementType: {scalar: string}}}}
- name: meta
  map:
    fields:
    - {name: namespace, type: {scalar: string}}
    - {name: name, type: {scalar: string}}
    - {name: uid, type: {scalar: string}}
    - {name: resourceVersion, type: {scalar: string}}
    - {name: generation, type: {scalar: numeric}}
    - {name: creationTimestamp, type: {scalar: untyped}}
    - {name: managedFields, type: {list: {elementRelationship: atomic, elementType: {namedType: untyped}}}}
    - {name: labels, type: {namedType: strings}}
    - {name: annotations, type: {namedType: strings}}
    - {name: finalizers, type: {list: {elementRelationship: associative, elementType: {scalar: string}}}}
- name: strings
  map:
    elementType: {scalar: string}
- name: port
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: number, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}}
- name: untyped
  scalar: untyped
  list: {elementRelationship: atomic, elementType: {namedType: untyped}}
  map: {elementRelationship: atomic, elementType: {namedType: untyped}}
`

// things decodes and encodes objects of that kind.
type things struct{ of smd.ParseableType }

func (c things) ObjectToTyped(o runtime.Object, options ...smd.ValidationOptions) (*smd.TypedValue, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	return c.of.FromUnstructured(content, options...)
}

func (things) TypedToObject(v *smd.TypedValue) (runtime.Object, error) {
	content, ok := v.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("not an object: %v", v)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// aServer is an API server with one object. It updates managed fields like a real one.
type aServer struct {
	dynamic.Interface
	dynamic.NamespaceableResourceInterface

	fields *managedfields.FieldManager
	live   *unstructured.Unstructured
}

func (s *aServer) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return s
}

func (s *aServer) Namespace(string) dynamic.ResourceInterface { return s }

func (s *aServer) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return s.live.DeepCopy(), nil
}

// Patch always is a dry run.
func (s *aServer) Patch(_ context.Context, _ string, _ types.PatchType, body []byte, o metav1.PatchOptions, _ ...string) (*unstructured.Unstructured, error) {
	sent := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &sent.Object); err != nil {
		return nil, err
	}
	return s.applied(sent, o.FieldManager, o.Force != nil && *o.Force)
}

func (s *aServer) applied(sent *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, error) {
	out, err := s.fields.Apply(s.live.DeepCopy(), sent, manager, force)
	if err != nil {
		return nil, err
	}
	return out.(*unstructured.Unstructured), nil
}

// write stores an object and increments its generation if the spec changed.
func (s *aServer) write(next *unstructured.Unstructured) {
	next = next.DeepCopy()
	next.SetGeneration(s.live.GetGeneration())
	if fmt.Sprint(next.Object["spec"]) != fmt.Sprint(s.live.Object["spec"]) {
		next.SetGeneration(s.live.GetGeneration() + 1)
	}
	s.live = next
}

// update makes a change by a field manager that does not use apply.
func (s *aServer) update(manager string, edit func(u *unstructured.Unstructured)) error {
	next := s.live.DeepCopy()
	edit(next)
	out, err := s.fields.Update(s.live.DeepCopy(), next, manager)
	if err == nil {
		s.write(out.(*unstructured.Unstructured))
	}
	return err
}

func newThings(t *testing.T) *managedfields.FieldManager {
	t.Helper()
	parser, err := smd.NewParser(thingKind)
	if err != nil {
		t.Fatal(err)
	}
	return managedfieldstest.NewFakeFieldManager(things{parser.Type("thing")}, schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"})
}

// Status has no commit, whereas diff and sync have one. Diff must show, and sync must correct or hold, exactly the objects that
// status reports as changed. Otherwise status would send users to a verb that does nothing, or hide a problem.
//
//test:unraced
func TestChangedAgreesWithDiff(t *testing.T) {
	fields := newThings(t)
	changed, quiet, reordered := 0, 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := &Reader{Store: &store.Store{Client: &api.Client{Sync: inventory.Sync{Namespace: "headgate-system", Name: "prod"}}}, options: Options{Terms: randomTerms(r)}}
		want := render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{randomThing(t, r)}}
		id := want.Objects[0].ID
		server, seen := served(t, c, fields, want)

		edits := randomEdits(t, r, server)
		live := &metav1.PartialObjectMetadata{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(server.live.Object, live); err != nil {
			t.Fatal(err)
		}
		seen.Objects[id] = live
		recorded := demand.AsRecorded(facts.Observed{Ground: facts.Ground{Inventory: seen.Inventory}})

		p := decided(t, c, seen, want)
		acts := slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Action != plan.Keep })
		says := demand.Changed(recorded, id, live)
		if acts && !says && onlyReordered(p.Steps[0]) { // managed fields do not record the order of items
			reordered++
			continue
		}
		if says != acts {
			t.Fatalf("seed %d: status says changed: %v, diff shows a change: %v\nignored %v\nedits %s\nsteps %+v\nmanaged fields %v",
				seed, says, acts, c.options.Terms.Ignore.Paths(id), strings.Join(edits, "; "), p.Steps, live.ManagedFields)
		}
		switch {
		case acts:
			changed++
		case seen.Inventory.Entries[id].Mark != inventory.Mark(live):
			quiet++
		}
	}
	if t.Logf("%d of 1500 are changed, %d are quiet though they moved, %d are only reordered", changed, quiet, reordered); changed < 500 || quiet < 200 || reordered > 60 {
		t.Errorf("The edits are of no use: %d are changed, %d are quiet though they moved, %d are only reordered", changed, quiet, reordered)
	}
}

// onlyReordered reports whether a step changes only the order of items in lists that are merged by item.
func onlyReordered(s plan.Step) bool {
	sorted := func(u *unstructured.Unstructured) string {
		u = u.DeepCopy()
		u.SetManagedFields(nil)
		for _, list := range []string{"zones", "ports"} {
			items, _, _ := unstructured.NestedSlice(u.Object, "spec", list)
			slices.SortFunc(items, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			put(u.Object, items, "spec", list)
		}
		return fmt.Sprint(u.Object)
	}
	return s.Err == nil && s.Live != nil && s.After != nil && len(s.Takes) == 0 && sorted(s.Live) == sorted(s.After)
}

// served returns an API server after the first pass, and the inventory of that pass.
func served(t *testing.T, c *Reader, fields *managedfields.FieldManager, want render.Desired) (*aServer, facts.Observed) {
	t.Helper()
	server := &aServer{fields: fields, live: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing"}}}
	c.Objects = server
	gk := schema.GroupKind{Group: "example.org", Kind: "Thing"}
	c.Surface = &api.Surface{Kinds: map[schema.GroupKind]plan.Kind{gk: {Version: "v1", Resource: "things", Namespaced: true}}, Versions: map[schema.GroupKind][]string{gk: {"v1"}}}
	sent, err := demand.Sent(c.Sync, want.Objects[0])
	if err != nil {
		t.Fatal(err)
	}
	made, err := server.applied(sent, inventory.Manager, false)
	if err != nil {
		t.Fatal(err)
	}
	server.write(made)
	server.live.SetUID("u")
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: c.Sync, ResourceVersion: "1", Owner: want.Owner, Entries: map[manifest.ID]inventory.Entry{}},
			Kinds:     c.Surface.Kinds,
		},
		Live:  facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{}, Trials: map[manifest.ID]facts.Trial{}},
		Given: facts.Given{Terms: c.options.Terms},
	}
	o := want.Objects[0]
	seen.Inventory.Entries[o.ID] = plan.Applied(server.live, seen.Digest(o), c.options.Terms.Ignore.Paths(o.ID)...)
	first := decided(t, c, seen, want)
	seen.Inventory.Record = record.Settled(first, seen.Inventory, nil).Record
	return server, seen
}

// decided returns the plan of a pass.
func decided(t *testing.T, c *Reader, seen facts.Observed, want render.Desired) plan.Plan {
	t.Helper()
	seen, err := demand.Ask(seen, want)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range seen.Doubtful(false) {
		tried, err := c.tryOne(t.Context(), a, a.ID, true, &seen)
		if err != nil {
			t.Fatal(err)
		}
		seen.Trials[a.ID] = tried.Trial
	}
	p, err := draft.Compute(seen)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func randomTerms(r *rand.Rand) facts.Terms {
	var terms facts.Terms
	for _, path := range []string{"/spec/size", "/spec/tags/*", "/spec/tags/a", "/spec/ports/*/number", "/metadata/labels/team", "/spec/zones", "/spec/args"} {
		if r.IntN(8) == 0 {
			terms.Ignore = append(terms.Ignore, diff.Ignore{Kind: regexp.MustCompile("^Thing$"), Paths: []diff.Pointer{diff.PointerOf(path)}})
		}
	}
	if r.IntN(4) == 0 {
		terms.Adoption = facts.AdoptAll
	}
	return terms
}

func randomThing(t *testing.T, r *rand.Rand) render.Object {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Thing",
		"metadata": map[string]any{
			"namespace": "default", "name": "a",
			"labels": map[string]any{"team": "red", "tier": "1"}, "annotations": map[string]any{"note": "x"},
		},
		"spec": map[string]any{
			"size": int64(1), "class": "a",
			"tags":  map[string]any{"a": "1", "b": "2"},
			"ports": []any{map[string]any{"name": "http", "number": int64(80)}, map[string]any{"name": "dns", "number": int64(53), "protocol": "udp"}},
			"zones": []any{"x", "y"},
			"args":  []any{"1", "2"},
		},
	}}
	for _, key := range []string{"size", "class", "tags", "ports", "zones", "args"} {
		if r.IntN(4) == 0 {
			unstructured.RemoveNestedField(u.Object, "spec", key)
		}
	}
	o, err := render.NewObject(u, manifest.Origin{Path: "a.yaml", Line: 1})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// randomEdits makes up to three edits by other field managers, and describes them.
func randomEdits(t *testing.T, r *rand.Rand, s *aServer) []string {
	t.Helper()
	var did []string
	for range r.IntN(3) + 1 {
		path, value := randomEdit(r)
		edit := func(u *unstructured.Unstructured) { put(u.Object, value, path...) }
		manager := []string{"kubectl-edit", "somebody", "kubectl-client-side-apply"}[r.IntN(3)]
		var err error
		what := "updates"
		switch r.IntN(4) {
		case 0, 1, 2:
			err = s.update(manager, edit)
		default:
			manager, what = []string{"autoscaler", "kapp-server"}[r.IntN(2)], "applies"
			theirs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "default", "name": "a"}}}
			edit(theirs)
			var next *unstructured.Unstructured
			if next, err = s.applied(theirs, manager, r.IntN(2) == 0); err == nil {
				s.write(next)
			} else if apierrors.IsConflict(err) {
				err, what = nil, "is refused to apply"
			}
		}
		if err != nil {
			t.Fatalf("%v: %v", path, err)
		}
		did = append(did, fmt.Sprintf("%s %s %v: %v", manager, what, path, value))
	}
	return did
}

// randomEdit returns a field of an object and its new value; nil means that the field is removed.
func randomEdit(r *rand.Rand) ([]string, any) {
	text := []any{"1", "2", "red", "other", nil}[r.IntN(5)]
	number := []any{int64(1), int64(80), int64(7), nil}[r.IntN(4)]
	list := [][]any{{"x", "y"}, {"y", "x"}, {"x", "y", "z"}, {"x"}, {"1", "2"}, nil}[r.IntN(6)]
	port := map[string]any{"name": []string{"http", "dns", "new"}[r.IntN(3)], "number": int64(r.IntN(2)*73 + 80)}
	switch r.IntN(14) {
	case 0:
		return []string{"spec", "size"}, number
	case 1:
		return []string{"spec", "note"}, text
	case 2:
		return []string{"spec", "class"}, text
	case 3, 4:
		return []string{"spec", "tags", []string{"a", "b", "new"}[r.IntN(3)]}, text
	case 5:
		return []string{"spec", "zones"}, list
	case 6:
		return []string{"spec", "args"}, list
	case 7:
		return []string{"spec", "ports"}, []any{port}
	case 8:
		return []string{"spec", "ports"}, []any{port, map[string]any{"name": "dns2", "number": int64(53)}}
	case 9, 10:
		return []string{"metadata", "labels", []string{"team", "tier", "new", inventory.SyncLabel, "kapp.k14s.io/app", "app.kubernetes.io/managed-by"}[r.IntN(6)]}, []any{"red", "1", "Helm", nil}[r.IntN(4)]
	case 11:
		return []string{"metadata", "annotations", []string{"note", "new", inventory.InventoryAnnotation}[r.IntN(3)]}, []any{"x", "other", nil}[r.IntN(3)]
	case 12:
		return []string{"metadata", "finalizers"}, []any{"example.org/wait"}
	}
	return []string{"spec"}, nil
}

// put sets a field, or removes it.
func put(u map[string]any, value any, path ...string) {
	if list, isList := value.([]any); value == nil || isList && list == nil {
		unstructured.RemoveNestedField(u, path...)
		return
	}
	if err := unstructured.SetNestedField(u, runtime.DeepCopyJSONValue(value), path...); err != nil {
		panic(err)
	}
}
