package plan

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// An inventory of an older version, and one that was lost, do not tell which file an object came from.
// So what a commit skips without reading it may be that file, in every pass after the first, too.
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
		want    Action
	}{
		"Ignored":     {reason: "The commit begins to ignore a file.", omitted: unread(catalogue.Ignored), want: Keep},
		"Symlink":     {reason: "A file became a symbolic link.", omitted: unread(catalogue.Symlink), want: Keep},
		"Submodule":   {reason: "A directory became a submodule.", omitted: unread(catalogue.Submodule), want: Keep},
		"Encrypted":   {reason: "The name is encrypted, too.", omitted: unread(catalogue.Encrypted), want: Keep},
		"NotManifest": {reason: "Headgate read the file, and it declares nothing.", omitted: unread(catalogue.NotManifest), want: Prune},
		"Nothing":     {reason: "The commit skips nothing, so the object was removed.", want: Prune},
		"Known":       {reason: "This version recorded the file, and it is another one.", format: 1, path: "a.yaml", omitted: unread(catalogue.Ignored), want: Prune},
		"FromNoFile":  {reason: "This version recorded no file, because a registry had it.", format: 1, omitted: unread(catalogue.Ignored), want: Prune},
		"Rebuilt":     {reason: "The inventory was lost with the path.", format: 2, rebuilt: true, omitted: unread(catalogue.Ignored), want: Keep},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := render.Desired{Objects: []render.Object{wanted(t, configMap("keep"))}, Omitted: tc.omitted}
			id := wanted(t, configMap("a")).ID
			inv := owning(t, "a", "keep").Inventory
			inv.Record.Format = tc.format
			e := inv.Entries[id]
			e.Path, e.Rebuilt = tc.path, tc.rebuilt
			inv.Entries[id] = e
			for pass := range 3 {
				seen := owning(t, "a", "keep")
				seen.Inventory = inv
				p := computed(t, want, seen, Guarding{}.Guards()...)
				for _, s := range p.Steps {
					if s.ID == id && (s.Action != tc.want || tc.want == Keep && !strings.Contains(s.Reason, "elsewhere.yaml:1, which may be it")) {
						t.Errorf("%s\nPass %d: %s (%s), want %s", tc.reason, pass+1, s.Action, s.Reason, tc.want)
					}
				}
				inv = p.Settled(inv, nil)
				inv.Record.Format = max(inv.Record.Format, 1) // as whoever stores it writes it
			}
		})
	}
}

// An older inventory gets the paths of what the commit wants, and what came from a registry has none.
func TestPathsOfAnOlderInventory(t *testing.T) {
	want := desired(t, render.OwnerHeadgate, map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"})
	seen := owning(t, "a", "gone")
	inv := computed(t, want, seen, Guarding{}.Guards()...).Settled(seen.Inventory, nil)
	for name, path := range map[string]string{"a": "a.yaml", "gone": anywhere} {
		if got := inv.Entries[wanted(t, configMap(name)).ID].Path; got != path {
			t.Errorf("%s: the path is %q, want %q", name, got, path)
		}
	}
}

// What Crossplane installs with a package from now on, and this sync applied before, is retained until
// Crossplane has taken it over, whatever the inventory tells of it.
func TestLeftIsRetained(t *testing.T) {
	id := wanted(t, configMap("a")).ID
	left := []render.Left{{ID: id, Package: "package", Origin: manifest.Origin{Path: "package/a.yaml", Line: 1}}}
	cases := map[string]struct {
		reason string
		left   []render.Left
		edit   func(*Observed)
		want   Action
	}{
		"Left":       {reason: "It would be gone until Crossplane makes it anew.", left: left, want: Keep},
		"OtherName":  {reason: "The package holds another object.", left: []render.Left{{ID: wanted(t, configMap("b")).ID, Package: "package"}}, want: Prune},
		"NotLeft":    {reason: "No package holds it.", want: Prune},
		"BeingGone":  {reason: "What is being deleted is waited for.", left: left, edit: func(o *Observed) { now := metav1.Now(); o.Objects[id].DeletionTimestamp = &now }, want: Prune},
		"Destroying": {reason: "The sync ends, and the object is its own.", left: left, edit: func(o *Observed) { o.Ends = Delete }, want: Prune},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := owning(t, "a", "keep")
			if tc.edit != nil {
				tc.edit(&seen)
			}
			p := computed(t, render.Desired{Objects: []render.Object{wanted(t, configMap("keep"))}, Left: tc.left}, seen, Guarding{}.Guards()...)
			for _, s := range p.Steps {
				if s.ID == id && (s.Action != tc.want || tc.want == Keep && (s.Guard != guardOmitted || !strings.Contains(s.Reason, "has not taken it over yet"))) {
					t.Errorf("%s\n%s %q (%s), want %s", tc.reason, s.Action, s.Guard, s.Reason, tc.want)
				}
			}
			if tc.want == Keep {
				if _, stays := p.Settled(seen.Inventory, nil).Entries[id]; !stays {
					t.Errorf("%s\nIt has to stay in the inventory until it is Crossplane's", tc.reason)
				}
			}
		})
	}
}
