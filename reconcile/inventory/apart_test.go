package inventory

import (
	"maps"
	"strings"
	"testing"

	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/cli-utils/pkg/object"
)

func clusterRole(name string) manifest.ID {
	return manifest.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name}
}

func TestNamesWithoutKey(t *testing.T) {
	const group = "example.org"
	cases := map[string]struct {
		reason string
		id     manifest.ID
		apart  bool
	}{
		"Ordinary":        {"cli-utils can parse the key of an ordinary name.", manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: "b"}, false},
		"Colon":           {"cli-utils writes the colon of an RBAC name as two underscores.", clusterRole("team:reader"), false},
		"ColonElsewhere":  {"cli-utils does not encode the colon of other kinds.", manifest.ID{Group: group, Kind: "User", Name: "a:b"}, true},
		"TwoUnderscores":  {"The key equals that of team:reader, so an older version owned and pruned that object instead.", clusterRole("team__reader"), true},
		"Underscore":      {"cli-utils cannot find the end of the name.", clusterRole("a_b"), true},
		"AtSign":          {"A ConfigMap key cannot contain the character.", manifest.ID{Group: group, Kind: "User", Name: "alice@example.org"}, true},
		"LongestKey":      {"A key may have 253 characters.", manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: strings.Repeat("x", 253-len("a___ConfigMap"))}, false},
		"TooLongForAKey":  {"A key must not have more than 253 characters.", manifest.ID{Kind: "ConfigMap", Namespace: "a", Name: strings.Repeat("x", 254-len("a___ConfigMap"))}, true},
		"NoAsciiInTheKey": {"A name may be any path segment, with any character.", manifest.ID{Group: group, Kind: "User", Name: "zoë"}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inv := Inventory{Entries: map[manifest.ID]Entry{tc.id: {UID: "u", Strategy: "Apply", unknown: `{"later":1}`}}}
			data, err := inv.Data()
			if err != nil {
				t.Fatal(err)
			}
			apart, err := inv.Apart()
			if err != nil {
				t.Fatal(err)
			}
			if len(apart) == 1 != tc.apart || len(data) == 1 == tc.apart {
				t.Errorf("%s\nwant it apart: %t, got %d apart and %d keys", tc.reason, tc.apart, len(apart), len(data))
			}
			if diff := cmp.Diff(inv.Entries, read(t, data, apart), cmpopts.EquateComparable(Entry{})); diff != "" {
				t.Errorf("%s\n(-stored +read):\n%s", tc.reason, diff)
			}
		})
	}
}

func read(t rapid.TB, data, apart map[string]string) map[manifest.ID]Entry {
	t.Helper()
	entries, err := Entries(data)
	if err != nil {
		t.Fatal(err)
	}
	others, err := EntriesApart(apart)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(entries, others)
	return entries
}

// Every name that the API server accepts is stored and read back, under keys that the API server accepts, and cli-utils reads only
// objects that are ours.
func TestEveryNameIsStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Custom(func(t *rapid.T) manifest.ID {
			return manifest.ID{
				Group:     rapid.SampledFrom([]string{"", "example.org", "rbac.authorization.k8s.io"}).Draw(t, "group"),
				Kind:      rapid.SampledFrom([]string{"ClusterRole", "Role", "ConfigMap", "User"}).Draw(t, "kind"),
				Namespace: rapid.SampledFrom([]string{"", "a"}).Draw(t, "namespace"),
				Name:      rapid.StringMatching(`[a-z_:@.-]{1,8}|[^/%]{1,300}`).Draw(t, "name"),
			}
		})
		inv := Inventory{Entries: rapid.MapOf(id, rapid.Just(Entry{UID: "u", Strategy: "Apply"})).Draw(t, "entries")}
		data, err := inv.Data()
		if err != nil {
			t.Fatal(err)
		}
		apart, err := inv.Apart()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(inv.Entries, read(t, data, apart), cmpopts.EquateComparable(Entry{})); diff != "" {
			t.Errorf("(-stored +read):\n%s", diff)
		}
		for key := range data {
			theirs, err := object.ParseObjMetadata(key)
			if err != nil {
				t.Fatalf("cli-utils refuses an inventory with %q: %v", key, err)
			}
			if _, ours := inv.Entries[manifest.ID{Group: theirs.GroupKind.Group, Kind: theirs.GroupKind.Kind, Namespace: theirs.Namespace, Name: theirs.Name}]; !ours {
				t.Errorf("%q is %v for cli-utils, which would delete that", key, theirs)
			}
		}
		for _, keys := range []map[string]string{data, apart} {
			for key := range keys {
				if wrong := validation.IsConfigMapKey(key); len(wrong) > 0 {
					t.Errorf("%q: %v", key, wrong)
				}
			}
		}
	})
}

// Entries with different identities never share a key, whichever part differs.
func TestKeysApart(t *testing.T) {
	of := manifest.ID{Group: "example.org", Kind: "User", Namespace: "a", Name: "alice@example.org"}
	all := map[manifest.ID]Entry{of: {UID: "0"}}
	for i, edit := range []func(*manifest.ID){
		func(id *manifest.ID) { id.Group = "example.com" }, func(id *manifest.ID) { id.Kind = "Group" },
		func(id *manifest.ID) { id.Namespace = "b" }, func(id *manifest.ID) { id.Name = "bob@example.org" },
		func(id *manifest.ID) { id.Namespace, id.Name = "", "a"+id.Name },
	} {
		id := of
		edit(&id)
		all[id] = Entry{UID: types.UID(strings.Repeat("1", i+1))}
	}
	data, err := Inventory{Entries: all}.Apart()
	if err != nil {
		t.Fatal(err)
	}
	got, err := EntriesApart(data)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(all, got) {
		t.Errorf("stored %v, read %v", all, got)
	}
}

func TestForgedEntriesApart(t *testing.T) {
	inv := Inventory{Entries: map[manifest.ID]Entry{clusterRole("a_b"): {UID: "u"}}}
	good, err := inv.Apart()
	if err != nil {
		t.Fatal(err)
	}
	value := good[apartKey(clusterRole("a_b"))]
	for name, data := range map[string]map[string]string{
		"AnotherKey":    {apartKey(clusterRole("b_c")): value},
		"NoIdentity":    {apartKey(clusterRole("a_b")): `{"uid":"u"}`},
		"Empty":         {apartKey(clusterRole("a_b")): ""},
		"NoJSON":        {apartKey(clusterRole("a_b")): "{"},
		"AnotherObject": {apartKey(clusterRole("a_b")): strings.Replace(value, "a_b", "admin", 1)},
	} {
		if got, err := EntriesApart(data); err == nil {
			t.Errorf("%s: an inventory that cannot be read whole must not be acted on, got %v", name, got)
		}
	}
}
