package ownership

import (
	"reflect"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// The managers of a field decide what happens to it when it leaves the commit:
//
//	managers of the field           what happens to it
//	Headgate alone                  the apply removes it
//	nobody, or who restored it      removed if the last applied commit set it to its value; otherwise it stays
//	a tool that applied it before   removed if Headgate takes fields from the tool; otherwise it stays
//	any other manager               it stays
//	none, and the API server        it stays: a default
//
// Taking is the second column of rows two and three, Reclaim is row two, and Stays names what stays.

// Nobody is the field manager that the API server names for fields without a known manager. They have none if another writer
// removed the managed fields, or wrote the object before its first server-side apply.
const Nobody = "before-first-apply"

// A Taking selects the field managers from which an update takes fields. The zero value takes none.
type Taking struct {
	Appliers    bool // tools that applied the object before
	OnlyUpdates bool // not those that use server-side apply
	Nobody      bool // Nobody
	Restorers   bool // tools that wrote our marks, as a restore from a backup does
}

// from reports whether the fields of an entry may be taken.
func (t Taking) from(o metav1.Object, f metav1.ManagedFieldsEntry) bool {
	switch {
	case f.Subresource != "":
		return false
	case isApplierEntry(f):
		return t.Appliers && !(t.OnlyUpdates && f.Operation == metav1.ManagedFieldsOperationApply)
	case f.Manager == Nobody:
		return t.Nobody
	}
	return t.Restorers && f.Operation == metav1.ManagedFieldsOperationUpdate && inventory.WroteMarks(o, f.Manager)
}

// Managers returns the names of the field managers from which fields may be taken.
func (t Taking) Managers(live metav1.Object) []string {
	var names []string
	for _, f := range live.GetManagedFields() {
		if t.from(live, f) && !slices.Contains(names, f.Manager) {
			names = append(names, f.Manager)
		}
	}
	return names
}

// IsLost reports whether the managed fields of an object do not show what we applied.
func IsLost(live metav1.Object) bool { return fieldsOf(live, isOurs).Empty() }

// Applied returns the fields that our field manager applied to an object.
func Applied(o metav1.Object) *fieldpath.Set { return asStored(o, fieldsOf(o, isOurs)) }

// Unchanged returns the fields that our field manager applied to an object, without those that the live object holds with another
// value: another writer changed them. If a part of a list item changed, all of the item is left out.
func Unchanged(live, applied *unstructured.Unstructured) *fieldpath.Set {
	all, changed := Applied(applied), fieldpath.NewSet()
	for path := range all.All() {
		was, had := at(applied.Object, path)
		is, has := at(live.Object, path)
		if had != has || !reflect.DeepEqual(was, is) {
			changed.Insert(path.Copy())
		}
	}
	return all.Difference(changed).Difference(inItems(all, changed))
}

// asStored returns fields of an object as they are stored: an older version of Headgate applied stringData of Secrets, and the API
// server stores that as data.
func asStored(o metav1.Object, fields *fieldpath.Set) *fieldpath.Set {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u.GetKind() != "Secret" || u.GetAPIVersion() != "v1" {
		return fields
	}
	stored := fieldpath.NewSet()
	for path := range fields.All() {
		if path[0].FieldName != nil && *path[0].FieldName == "stringData" {
			path = slices.Concat(fieldpath.MakePathOrDie("data"), path[1:])
		}
		stored.Insert(path.Copy())
	}
	return stored
}

// entriesBefore returns the managed fields of an object. If it has none, they are those that an apply finds: all fields are
// Nobody's.
func entriesBefore(live, after metav1.Object) []metav1.ManagedFieldsEntry {
	if entries := live.GetManagedFields(); len(entries) > 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(after.GetManagedFields()), func(f metav1.ManagedFieldsEntry) bool { return f.Manager != Nobody })
}

// Reclaim adds fields to a takeover that we applied, that left the commit, and of which managed fields do not show that we applied
// them. The apply then removes them, except those that another manager still has.
func (t Takeover) Reclaim(live, after *unstructured.Unstructured, how Taking, applied *fieldpath.Set) Takeover {
	entries := t.Entries
	if t.None() {
		entries = slices.Clone(entriesBefore(live, after))
	}
	gone := present(live.Object, applied.Difference(fieldsOf(after, isOurs)).Difference(fieldsOf(live, isOurs)))
	if gone.Empty() {
		return t
	}
	for _, f := range entries {
		if set, readable := read(f); readable && how.from(live, f) {
			gone = gone.Union(inItems(set, gone))
		}
	}
	var left []metav1.ManagedFieldsEntry
	for _, f := range entries {
		if set, readable := read(f); readable && how.from(live, f) {
			rest := set.Difference(gone)
			if rest = rest.Difference(above(gone).Difference(above(rest))); rest.Empty() {
				continue
			}
			f.FieldsV1 = write(rest)
		}
		left = append(left, f)
	}
	free := onlyOf(gone, fieldsOf(withEntries(live, left), func(f metav1.ManagedFieldsEntry) bool { return !isOurs(f) }))
	if free.Empty() {
		return t
	}
	t.Entries = given(left, free, after.GetAPIVersion(), nil)
	if t.Goes == nil {
		t.Goes = fieldpath.NewSet()
	}
	t.Goes = t.Goes.Union(free)
	return t
}

// inItems returns the fields of a set that are in list items of another set. A default of an item goes with the item: it would not be
// valid without its key.
func inItems(set, items *fieldpath.Set) *fieldpath.Set {
	all := fieldpath.NewSet()
	for path := range set.All() {
		for n := 1; n < len(path); n++ {
			if path[n-1].Key != nil && items.Has(path[:n]) {
				all.Insert(path.Copy())
				break
			}
		}
	}
	return all
}

// present returns the fields of a set that the content of an object has.
func present(content map[string]any, fields *fieldpath.Set) *fieldpath.Set {
	there := fieldpath.NewSet()
	for path := range fields.All() {
		if _, has := at(content, path); has {
			there.Insert(path.Copy())
		}
	}
	return there
}

// Stays returns the fields that an update gives up and that keep their values, with the managers that keep them. The manager is "" if
// there is none: the API server sets a default. applied are the fields that we applied before, and t is what the update takes first.
func Stays(live, after *unstructured.Unstructured, t Takeover, applied *fieldpath.Set) []Held {
	entries := t.Entries
	if t.None() {
		entries = entriesBefore(live, after)
	}
	others := map[string]*fieldpath.Set{}
	for _, f := range entries {
		if set, readable := read(f); readable && !isOurs(f) && f.Subresource == "" {
			others[f.Manager] = set
		}
	}
	by := map[string][]string{}
	gone := applied.Leaves().Difference(fieldsOf(after, isOurs))
	for path := range gone.All() {
		was, had := at(live.Object, path)
		is, has := at(after.Object, path)
		if !had || !has || !reflect.DeepEqual(was, is) {
			continue
		}
		keepers := []string{}
		for manager, set := range others {
			if holds(set, path) {
				keepers = append(keepers, manager)
			}
		}
		if slices.Sort(keepers); len(keepers) > 1 {
			keepers = slices.DeleteFunc(keepers, func(manager string) bool { return manager == Nobody })
		}
		keeper := strings.Join(keepers, ", ")
		by[keeper] = append(by[keeper], name(path))
	}
	var all []Held
	for manager, fields := range by {
		slices.Sort(fields)
		all = append(all, Held{manager, slices.Compact(fields)})
	}
	slices.SortFunc(all, func(a, b Held) int { return strings.Compare(a.Manager, b.Manager) })
	return all
}

// holds reports whether a set has a field, a part of it, or a parent as a whole.
func holds(set *fieldpath.Set, path fieldpath.Path) bool {
	if set.Has(path) || above(set).Has(path) {
		return true
	}
	leaves := set.Leaves()
	for n := 1; n < len(path); n++ {
		if leaves.Has(path[:n]) {
			return true
		}
	}
	return false
}

// Unclaimed returns the fields that have no known manager after an update.
func Unclaimed(live, after *unstructured.Unstructured, t Takeover, how Taking) []string {
	entries := t.Entries
	if t.None() {
		entries = entriesBefore(live, after)
	}
	var all []string
	for _, f := range entries {
		if set, readable := read(f); readable && !isApplierEntry(f) && how.from(live, f) {
			all = append(all, names(set.Leaves().Difference(fieldsOf(after, isOurs)))...)
		}
	}
	return all
}

// Gained returns the fields that an update begins to manage.
func Gained(live, after *unstructured.Unstructured) []string {
	return names(fieldsOf(after, isOurs).Leaves().Difference(fieldsOf(live, isOurs)))
}

// VersionOf returns the version in which our field manager applied an object, or "".
func VersionOf(o metav1.Object) string {
	i := slices.IndexFunc(o.GetManagedFields(), isOurs)
	if i < 0 {
		return ""
	}
	return o.GetManagedFields()[i].APIVersion
}
