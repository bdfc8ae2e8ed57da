package guard

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An older or rebuilt inventory does not record the file of an object. Any skipped, unread file may be that file, in every later
// pass, too.
func TestOmittedWithoutPaths(t *testing.T) {
	unread := func(why catalogue.Why) []catalogue.Omitted {
		return []catalogue.Omitted{{Why: why, Origin: manifest.Origin{Path: "elsewhere.yaml", Line: 1}}}
	}
	cases := map[string]struct {
		reason  string
		format  int
		rebuilt bool
		path    string
		omitted []catalogue.Omitted
		want    plan.Action
	}{
		"Ignored":     {reason: "The commit now ignores a file.", omitted: unread(catalogue.Ignored), want: plan.Keep},
		"Symlink":     {reason: "A file became a symbolic link.", omitted: unread(catalogue.Symlink), want: plan.Keep},
		"Submodule":   {reason: "A directory became a submodule.", omitted: unread(catalogue.Submodule), want: plan.Keep},
		"Encrypted":   {reason: "The object's name is also encrypted.", omitted: unread(catalogue.Encrypted), want: plan.Keep},
		"NotManifest": {reason: "Headgate read the file, and the file declares nothing.", omitted: unread(catalogue.NotManifest), want: plan.Prune},
		"Nothing":     {reason: "The commit skips nothing, so the object was removed.", want: plan.Prune},
		"Known":       {reason: "The inventory names another file.", format: 1, path: "a.yaml", omitted: unread(catalogue.Ignored), want: plan.Prune},
		"FromNoFile":  {reason: "The inventory shows that the object came from a registry instead of a file.", format: 1, omitted: unread(catalogue.Ignored), want: plan.Prune},
		"Rebuilt":     {reason: "The inventory was lost, and the path with it.", format: 2, rebuilt: true, omitted: unread(catalogue.Ignored), want: plan.Keep},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}, Omitted: tc.omitted}
			id := given.Wanted(t, given.ConfigMap("a")).ID
			inv := given.Owning(t, "a", "keep").Inventory
			inv.Record.Format = tc.format
			e := inv.Entries[id]
			e.Path, e.Rebuilt = tc.path, tc.rebuilt
			inv.Entries[id] = e
			for pass := range 3 {
				seen := given.Owning(t, "a", "keep")
				seen.Inventory = inv
				p := given.Computed(t, want, seen, Guarding{}.Guards()...)
				for _, s := range p.Steps {
					if s.ID == id && (s.Action != tc.want || tc.want == plan.Keep && !strings.Contains(Sentence(s.Reason), "elsewhere.yaml:1, which may be it")) {
						t.Errorf("%s\nPass %d: %s (%s), want %s", tc.reason, pass+1, s.Action, s.Reason, tc.want)
					}
				}
				inv = record.Settled(p, inv, nil)
				inv.Record.Format = max(inv.Record.Format, 1) // the format that a store writes
			}
		})
	}
}

// An older inventory is completed with the paths of wanted objects. Objects from a registry have no path.
func TestPathsOfAnOlderInventory(t *testing.T) {
	want := given.Desired(t, render.OwnerHeadgate, map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"})
	seen := given.Owning(t, "a", "gone")
	inv := record.Settled(given.Computed(t, want, seen, Guarding{}.Guards()...), seen.Inventory, nil)
	for name, path := range map[string]string{"a": "a.yaml", "gone": inventory.Anywhere} {
		if got := inv.Entries[given.Wanted(t, given.ConfigMap(name)).ID].Path; got != path {
			t.Errorf("%s: the path is %q, want %q", name, got, path)
		}
	}
}

// An owned object that Crossplane will install with a package is retained until Crossplane has taken it over, whatever the
// inventory records about it.
func TestLeftIsRetained(t *testing.T) {
	id := given.Wanted(t, given.ConfigMap("a")).ID
	left := []render.Left{{ID: id, Package: "package", Origin: manifest.Origin{Path: "package/a.yaml", Line: 1}}}
	cases := map[string]struct {
		reason string
		left   []render.Left
		edit   func(*facts.Observed)
		want   plan.Action
	}{
		"Left":       {reason: "Without it, the object would be missing until Crossplane creates it.", left: left, want: plan.Keep},
		"OtherName":  {reason: "The package contains another object.", left: []render.Left{{ID: given.Wanted(t, given.ConfigMap("b")).ID, Package: "package"}}, want: plan.Prune},
		"NotLeft":    {reason: "No package contains the object.", want: plan.Prune},
		"BeingGone":  {reason: "The object is already being deleted.", left: left, edit: func(o *facts.Observed) { now := metav1.Now(); o.Objects[id].DeletionTimestamp = &now }, want: plan.Prune},
		"Destroying": {reason: "The sync is destroyed, and it owns the object.", left: left, edit: func(o *facts.Observed) { o.Stance = plan.Destroying }, want: plan.Prune},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t, "a", "keep")
			if tc.edit != nil {
				tc.edit(&seen)
			}
			p := given.Computed(t, render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}, Left: tc.left}, seen, Guarding{}.Guards()...)
			for _, s := range p.Steps {
				if s.ID == id && (s.Action != tc.want || tc.want == plan.Keep && (s.Guard != Omitted || !strings.Contains(Sentence(s.Reason), "has not taken it over yet"))) {
					t.Errorf("%s\n%s %q (%s), want %s", tc.reason, s.Action, s.Guard, s.Reason, tc.want)
				}
			}
			if tc.want == plan.Keep {
				if _, stays := record.Settled(p, seen.Inventory, nil).Entries[id]; !stays {
					t.Errorf("%s\nIt has to stay in the inventory until it is Crossplane's", tc.reason)
				}
			}
		})
	}
}
