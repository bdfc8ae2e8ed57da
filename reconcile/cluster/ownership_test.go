package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// copied copies an object to another name, like "kubectl get -o yaml | kubectl apply -f -".
func (w *world) copied(t *testing.T, space, name, to string) *unstructured.Unstructured {
	t.Helper()
	live := w.mustGet(t, configMaps, space, name)
	u := configMap(space, to, "1")
	u.SetLabels(live.GetLabels())
	u.SetAnnotations(live.GetAnnotations())
	return w.made(t, u)
}

// A copy has our marks but is not ours: Headgate must not delete it with its namespace, and a rebuilt inventory must not contain
// it.
func TestCopies(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace + "-app"
	c := w.cluster(t, cluster.Options{})
	kept := configMap("default", w.sync.Namespace+"-kept", "1")
	all := want(t, namespace(space), configMap(space, "a", "1"), kept)
	applied(t, c, all)
	foreign := map[schema.GroupVersionResource]*unstructured.Unstructured{configMaps: w.copied(t, space, "a", "copy")}

	gone := want(t, kept)
	if diff := cmp.Diff([]string{"prune (commit) ConfigMap/" + space + "/a", "hold (others inside) Namespace/" + space}, actions(applied(t, c, gone))); diff != "" {
		t.Errorf("The namespace would take the copy along (-want +got):\n%s", diff)
	}
	w.unmoved(t, foreign)

	labelled := configMap("default", w.sync.Namespace+"-labelled", "1") // copied by a tool that keeps labels, and not a copy of ours
	labelled.SetLabels(map[string]string{inventory.SyncLabel: w.sync.Key()})
	w.made(t, labelled)
	w.loses(t)
	p := applied(t, c, gone)
	if diff := cmp.Diff([]string{"hold (others inside) Namespace/" + space}, actions(p)); diff != "" {
		t.Errorf("Also where the inventory was lost (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(p.Notes, func(f manifest.Finding) bool {
		return f.Rule == "marks-copied" && strings.HasPrefix(f.Message, "1 object, for example ConfigMap/"+space+"/copy,")
	}) {
		t.Errorf("The user learns of the copy: %v", p.Notes)
	}
	inv, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, held := inv.Entries[manifest.ID{Kind: "ConfigMap", Namespace: space, Name: "copy"}]; held || len(inv.Entries) != 2 {
		t.Errorf("A copy is never owned, got %v", inv.Entries)
	}
	applied(t, c, gone)
	w.unmoved(t, foreign)
}

// loses deletes the inventory.
func (w *world) loses(t *testing.T) {
	t.Helper()
	if err := w.at(configMaps, w.sync.Namespace).Delete(t.Context(), "headgate-main", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// restores works like Velero: it creates objects from their manifests and writes their managed fields in a second request, or not
// at all.
func (w *world) restores(t *testing.T, space string, whole bool, names ...string) {
	t.Helper()
	at := w.at(configMaps, space)
	for _, name := range names {
		was := w.mustGet(t, configMaps, space, name)
		if err := at.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		u := was.DeepCopy()
		u.Object["metadata"] = map[string]any{"name": name, "namespace": space}
		u.SetAnnotations(was.GetAnnotations())
		labels := was.GetLabels()
		labels["velero.io/restore-name"] = "r"
		u.SetLabels(labels)
		made, err := at.Create(t.Context(), u, metav1.CreateOptions{FieldManager: "velero-server"})
		if err != nil {
			t.Fatal(err)
		}
		if !whole {
			continue
		}
		made.SetManagedFields(was.GetManagedFields())
		if _, err := at.Update(t.Context(), made, metav1.UpdateOptions{FieldManager: "velero-server"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRestore(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason      string
		whole, lost bool
		changed     bool     // the commit changed in the meantime
		want        []string // of ConfigMaps
		owned       int
	}{
		"All": {
			"Headgate resumes managing wanted objects, and a person decides on unwanted ones.",
			true, false, true, []string{"update wanted", "hold (rebuilt) unwanted"}, 3,
		},
		"WithoutManagedFields": {
			"The tool that restored the objects does not block.",
			false, false, true, []string{"update wanted", "hold (rebuilt) unwanted"}, 3,
		},
		"WithoutInventory": {
			"Managed fields show which objects are ours, and a person decides on unwanted ones.",
			true, true, true, []string{"update wanted", "hold (rebuilt) unwanted"}, 3,
		},
		"WithoutBoth": {
			"Wanted objects are adopted, and nothing shows that the others were ever ours.",
			false, true, false, []string{"update wanted"}, 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			c := w.cluster(t, cluster.Options{})
			applied(t, c, want(t, namespace(space), configMap(space, "wanted", "1"), configMap(space, "unwanted", "1")))
			w.restores(t, space, tc.whole, "wanted", "unwanted")
			if tc.lost {
				w.loses(t)
			}
			wanted := "1"
			if tc.changed {
				wanted = "2"
			}
			less := want(t, namespace(space), configMap(space, "wanted", wanted))
			var got []string
			for _, s := range applied(t, w.cluster(t, cluster.Options{}), less).Steps {
				switch {
				case s.ID.Kind != "ConfigMap":
				case s.Guard != "":
					got = append(got, fmt.Sprintf("%s (%s) %s", s.Action, s.Guard, s.ID.Name))
				default:
					got = append(got, fmt.Sprintf("%s %s", s.Action, s.ID.Name))
				}
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nsteps (-want +got):\n%s", tc.reason, diff)
			}
			if live := w.mustGet(t, configMaps, space, "wanted"); !inventory.AppliedByUs(live, w.sync) || value(t, live) != wanted {
				t.Errorf("%s\nThe wanted object is not ours: %v", tc.reason, live.Object)
			}
			w.mustGet(t, configMaps, space, "unwanted")
			inv, err := c.Inventory(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(inv.Entries) != tc.owned {
				t.Errorf("%s\nowned: %v", tc.reason, inv.Entries)
			}
			if p := planned(t, c, less); p.Writes() || p.Remembers() {
				t.Errorf("%s\nThe next pass has nothing to do, got %v", tc.reason, actions(p))
			}
		})
	}
}

// Objects that are ours only because of their marks are pruned after an approval, or stay without an owner.
func TestRebuilt(t *testing.T) {
	t.Parallel()
	for name, approve := range map[string]bool{"Approved": true, "Released": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			c := w.cluster(t, cluster.Options{})
			r := reconcile.Reconciler{Observer: c, Applier: c, Sync: w.sync}
			applied(t, c, want(t, namespace(space), configMap(space, "a", "1"), configMap(space, "b", "1"), configMap(space, "c", "1")))
			w.loses(t)
			if result, err := r.ReleaseRebuilt(t.Context(), false); err == nil || result.Summary.Released != 0 {
				t.Errorf("Before a pass it is not known what is wanted: %v %+v", err, result.Summary)
			}
			less := want(t, namespace(space), configMap(space, "a", "1"))
			first := applied(t, c, less)
			second := applied(t, w.cluster(t, cluster.Options{}), less)
			if first.Count(plan.Hold) != 2 || second.Count(plan.Hold) != 2 || first.Approval.Digest != second.Approval.Digest {
				t.Fatalf("want one hold of two objects in every pass, got %v, then %v", actions(first), actions(second))
			}
			if !approve {
				if result, err := r.ReleaseRebuilt(t.Context(), true); err != nil || result.Summary.Released != 2 {
					t.Errorf("dry run: %v %+v", err, result.Summary)
				}
				result, err := r.ReleaseRebuilt(t.Context(), false)
				if err != nil || result.Summary.Released != 2 || result.Verdict.ExitCode != report.ExitSuccess {
					t.Errorf("%v %+v", err, result)
				}
				for _, name := range []string{"b", "c"} {
					if live := w.mustGet(t, configMaps, space, name); inventory.Ours(live, w.sync) {
						t.Errorf("%s still carries our marks", name)
					}
				}
				if p := planned(t, c, less); p.Writes() || p.Remembers() || p.Count(plan.Hold) > 0 {
					t.Errorf("and nothing is left to do: %v", actions(p))
				}
				return
			}
			if p := approved(t, c, less, first.Approval.Digest); p.Count(plan.Prune) != 2 {
				t.Fatalf("want two prunes, got %v", actions(p))
			}
			inv, err := c.Inventory(t.Context())
			if err != nil || len(inv.Entries) != 2 {
				t.Errorf("%v %v", err, inv.Entries)
			}
		})
	}
}

// approved applies a commit with an approval.
func approved(t *testing.T, c *cluster.Cluster, commit render.Desired, digest string) plan.Plan {
	t.Helper()
	seen, err := c.Observe(t.Context(), commit)
	if err != nil {
		t.Fatal(err)
	}
	seen.Approvals = approval.Given{inventory.OnCommand: approval.Typed(digest)}
	p, err := draft.Compute(seen, guard.Guarding{}.Guards()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Apply(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// An object whose kind is not served does not count as gone while its CRD exists.
func TestHiddenKind(t *testing.T) {
	w := newWorld(t)
	c := w.cluster(t, cluster.Options{})
	w.made(t, w.crd("Region", "Cluster"))
	w.served(t, "Region", true)
	kept := configMap(w.sync.Namespace, "kept", "1")
	all := want(t, namespace(w.sync.Namespace), kept, w.instance("Region", "", "north"))
	applied(t, c, all)
	less := want(t, namespace(w.sync.Namespace), kept)

	unserve := []byte(`[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	if _, err := w.at(crds, "").Patch(t.Context(), "regions."+w.group, types.JSONPatchType, unserve, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.served(t, "Region", false)
	north := manifest.ID{Group: w.group, Kind: "Region", Name: "north"}
	for what, commit := range map[string]render.Desired{"a pass that does not want it": less, "a pass that wants it": all} {
		p := planned(t, c, commit)
		done, err := c.Apply(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if len(done) != 1 || done[0].ID != north || !errors.Is(done[0].Err, reason.ErrUnserved) || !strings.Contains(words.OfError(done[0].Err), "the CRD regions."+w.group+" exists and is not served: no version of it has served: true") {
			t.Errorf("%s: the object fails and the CRD is named, got %v", what, done)
		}
	}
	result, err := reconcile.Reconciler{Observer: c, Applier: c, Sync: w.sync, Timeout: 5 * time.Second}.Destroy(t.Context(), plan.Destroying)
	if err != nil || result.Verdict.ExitCode != report.ExitFailed {
		t.Errorf("A destroy fails: %v %+v", err, result.Verdict)
	}
	inv, err := c.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if e := inv.Entries[north]; e.UID == "" {
		t.Fatalf("and the inventory keeps the object: %v", inv.Entries)
	}

	if err := w.at(crds, "").Delete(t.Context(), "regions."+w.group, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(fixtures.Patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err := w.at(crds, "").Get(t.Context(), "regions."+w.group, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the CRD does not go")
		}
	}
	p := applied(t, c, less)
	if diff := cmp.Diff([]manifest.ID{north}, p.Gone); diff != "" {
		t.Errorf("Once its CRD is gone, so is the object (-want +got):\n%s", diff)
	}
}

// served waits until discovery lists a kind of the world, or no longer lists it.
func (w *world) served(t *testing.T, kind string, want bool) {
	t.Helper()
	for end := time.Now().Add(fixtures.Patience); ; time.Sleep(50 * time.Millisecond) {
		seen, err := w.cluster(t, cluster.Options{}).Observe(t.Context(), render.Desired{Owner: render.OwnerHeadgate})
		if err == nil {
			if _, served := seen.Kinds[schema.GroupKind{Group: w.group, Kind: kind}]; served == want {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("served is not %t after %s: %v", want, fixtures.Patience, err)
		}
	}
}

// Another tool's mark in the commit itself does not make that tool the owner.
func TestForeignMarksOfTheCommit(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	c := w.cluster(t, cluster.Options{})
	chart := func(value string) *unstructured.Unstructured {
		u := configMap(space, "chart", value)
		u.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "Helm"})
		return u
	}
	kept := configMap(space, "kept", "1")
	wipe := func() {
		w.patch(t, w.at(configMaps, space), "chart", `{"metadata":{"managedFields":[{}]}}`)
	}
	applied(t, c, want(t, namespace(space), kept, chart("1")))
	wipe()
	if p := applied(t, c, want(t, namespace(space), kept, chart("2"))); p.Count(plan.Update) != 1 {
		t.Errorf("An object without managed fields is still ours, got %v", actions(p))
	}
	wipe()
	if p := applied(t, c, want(t, namespace(space), kept)); p.Count(plan.Prune) != 1 {
		t.Errorf("and it is pruned when the commit drops it, got %v", actions(p))
	}
}

// If another process writes the history, no inventory entry is lost. A concurrent pass loses neither the history nor an outcome.
func TestTwoActors(t *testing.T) {
	const objects = 12
	w := newWorld(t)
	space := w.sync.Namespace
	applied(t, w.cluster(t, cluster.Options{}), want(t, namespace(space)))
	other := w.cluster(t, cluster.Options{})
	var recorded []error
	commit := want(t, namespace(space))
	for i := range objects {
		commit.Objects = append(commit.Objects, want(t, configMap(space, fmt.Sprintf("m%02d", i), "1")).Objects...)
	}
	c := w.cluster(t, cluster.Options{Progress: func(e cluster.Event) {
		if e.Phase == "apply" && e.Done%3 == 0 {
			recorded = append(recorded, other.Record(t.Context(), inventory.Past{Activation: "success", Drift: "success", Revision: fmt.Sprint(e.Done), Created: 1}))
		}
	}})
	p := planned(t, c, commit)
	done, err := c.Apply(t.Context(), p)
	if err != nil || len(done) != objects {
		t.Errorf("%d outcomes, %v", len(done), err)
	}
	if err := errors.Join(recorded...); err != nil || len(recorded) != objects/3 {
		t.Errorf("%d recorded, %v", len(recorded), err)
	}
	inv, err := other.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for id, e := range inv.Entries {
		if e.Mark == "" {
			t.Errorf("%s: the result of the pass is lost: %+v", id, e)
		}
	}
	if len(inv.Entries) != objects+1 || len(inv.History) != objects/3 {
		t.Errorf("%d entries, history %v", len(inv.Entries), inv.History)
	}

	// The other process may also write between the plan and the writes of a pass.
	changed := func(value string) render.Desired {
		d := want(t, namespace(space))
		for i := range objects {
			d.Objects = append(d.Objects, want(t, configMap(space, fmt.Sprintf("m%02d", i), value)).Objects...)
		}
		return d
	}
	p = planned(t, c, changed("2"))
	if err := other.Record(t.Context(), inventory.Past{Activation: "failure", Drift: "success", Failed: 1}); err != nil {
		t.Fatal(err)
	}
	if done, err := c.Apply(t.Context(), p); err != nil || len(done) != objects {
		t.Errorf("A history is no reason to plan again: %v", err)
	}

	// If a step changes the inventory itself, the pass ends, and the report lists the completed steps.
	spoilt := false
	c = w.cluster(t, cluster.Options{Concurrency: 1, Progress: func(e cluster.Event) {
		if e.Phase == "apply" && !spoilt {
			spoilt = true
			w.patch(t, w.at(configMaps, space), "headgate-main", `{"data":{"default_x__ConfigMap":""}}`)
		}
	}})
	done, err = c.Apply(t.Context(), planned(t, c, changed("3")))
	if !errors.Is(err, reason.ErrMoved) || len(done) == 0 {
		t.Errorf("want ErrMoved and outcomes, got %v and %d", err, len(done))
	}
}
