package guard

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An inventory of an older version, or a lost one, does not record which file an object came from. So a skipped, unread
// file may be that file, in every later pass, too.
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
		"Ignored":     {reason: "The commit begins to ignore a file.", omitted: unread(catalogue.Ignored), want: plan.Keep},
		"Symlink":     {reason: "A file became a symbolic link.", omitted: unread(catalogue.Symlink), want: plan.Keep},
		"Submodule":   {reason: "A directory became a submodule.", omitted: unread(catalogue.Submodule), want: plan.Keep},
		"Encrypted":   {reason: "The name is encrypted, too.", omitted: unread(catalogue.Encrypted), want: plan.Keep},
		"NotManifest": {reason: "Headgate read the file, and it declares nothing.", omitted: unread(catalogue.NotManifest), want: plan.Prune},
		"Nothing":     {reason: "The commit skips nothing, so the object was removed.", want: plan.Prune},
		"Known":       {reason: "This version recorded the file, and it is another one.", format: 1, path: "a.yaml", omitted: unread(catalogue.Ignored), want: plan.Prune},
		"FromNoFile":  {reason: "This version recorded no file, because a registry had it.", format: 1, omitted: unread(catalogue.Ignored), want: plan.Prune},
		"Rebuilt":     {reason: "The inventory was lost with the path.", format: 2, rebuilt: true, omitted: unread(catalogue.Ignored), want: plan.Keep},
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
				inv = p.Settled(inv, nil)
				inv.Record.Format = max(inv.Record.Format, 1) // in the format that a store writes
			}
		})
	}
}

// An older inventory gets the paths of wanted objects. Objects from a registry have no path.
func TestPathsOfAnOlderInventory(t *testing.T) {
	want := given.Desired(t, render.OwnerHeadgate, map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"})
	seen := given.Owning(t, "a", "gone")
	inv := given.Computed(t, want, seen, Guarding{}.Guards()...).Settled(seen.Inventory, nil)
	for name, path := range map[string]string{"a": "a.yaml", "gone": inventory.Anywhere} {
		if got := inv.Entries[given.Wanted(t, given.ConfigMap(name)).ID].Path; got != path {
			t.Errorf("%s: the path is %q, want %q", name, got, path)
		}
	}
}

// An object that this sync applied before and that Crossplane will install with a package is retained until Crossplane
// has taken it over, regardless of its record in the inventory.
func TestLeftIsRetained(t *testing.T) {
	id := given.Wanted(t, given.ConfigMap("a")).ID
	left := []render.Left{{ID: id, Package: "package", Origin: manifest.Origin{Path: "package/a.yaml", Line: 1}}}
	cases := map[string]struct {
		reason string
		left   []render.Left
		edit   func(*plan.Observed)
		want   plan.Action
	}{
		"Left":       {reason: "It would be gone until Crossplane makes it anew.", left: left, want: plan.Keep},
		"OtherName":  {reason: "The package holds another object.", left: []render.Left{{ID: given.Wanted(t, given.ConfigMap("b")).ID, Package: "package"}}, want: plan.Prune},
		"NotLeft":    {reason: "No package holds it.", want: plan.Prune},
		"BeingGone":  {reason: "A running deletion is waited for.", left: left, edit: func(o *plan.Observed) { now := metav1.Now(); o.Objects[id].DeletionTimestamp = &now }, want: plan.Prune},
		"Destroying": {reason: "The sync ends, and the object is its own.", left: left, edit: func(o *plan.Observed) { o.Ends = plan.Delete }, want: plan.Prune},
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
				if _, stays := p.Settled(seen.Inventory, nil).Entries[id]; !stays {
					t.Errorf("%s\nIt has to stay in the inventory until it is Crossplane's", tc.reason)
				}
			}
		})
	}
}
