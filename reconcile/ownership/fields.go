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

// The managers of a field decide what happens to it when it leaves the commit. An entry of managed fields has a row of this table:
//
//	row                 managers of the field           what happens to it
//	ours                Headgate alone                  the apply removes it
//	nobody, restorer    nobody, or who restored it      removed if the last applied commit set it to its value; otherwise it stays
//	updater, applier    a tool that applied it before   removed if Headgate takes fields from the tool; otherwise it stays
//	another             any other manager               it stays
//	                    none, and the API server        it stays: a default
//
// A Taking selects rows. Update.Reclaim is the second row, and Update.Stays names what stays.
type row int

const (
	subresource row = iota // no manager of the object
	ours
	nobody
	restorer // a tool that wrote our marks with the object, as a restore from a backup does
	updater  // a tool that applies manifests, by updates
	applier  // and by server-side apply
	another
)

// rowOf returns the row of an entry of managed fields.
func rowOf(o metav1.Object, f metav1.ManagedFieldsEntry) row {
	applies := f.Operation == metav1.ManagedFieldsOperationApply
	switch {
	case f.Subresource != "":
		return subresource
	case inventory.IsApplied(f):
		return ours
	case isApplierEntry(f) && applies:
		return applier
	case isApplierEntry(f):
		return updater
	case f.Manager == Nobody:
		return nobody
	case !applies && inventory.WroteMarks(o, f.Manager):
		return restorer
	}
	return another
}

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

// takes reports whether fields in a row may be taken.
func (t Taking) takes(r row) bool {
	switch r {
	case updater:
		return t.Appliers
	case applier:
		return t.Appliers && !t.OnlyUpdates
	case nobody:
		return t.Nobody
	case restorer:
		return t.Restorers
	}
	return false
}

// Managers returns the names of the field managers from which fields may be taken.
func (t Taking) Managers(live metav1.Object) []string {
	var names []string
	for _, f := range live.GetManagedFields() {
		if t.takes(rowOf(live, f)) && !slices.Contains(names, f.Manager) {
			names = append(names, f.Manager)
		}
	}
	return names
}

// An entry is an entry of managed fields that was read.
type entry struct {
	metav1.ManagedFieldsEntry

	row    row
	fields *fieldpath.Set // empty if they cannot be read
	taken  bool           // they may be taken
}

// entriesOf reads managed fields of an object.
func entriesOf(o metav1.Object, fields []metav1.ManagedFieldsEntry, how Taking) []entry {
	all := make([]entry, len(fields))
	for i, f := range fields {
		e := entry{ManagedFieldsEntry: f, row: rowOf(o, f), fields: fieldpath.NewSet()}
		if set, readable := read(f); readable {
			e.fields, e.taken = set, how.takes(e.row)
		}
		all[i] = e
	}
	return all
}

// dropped returns managed fields without some of the fields that may be taken.
func dropped(entries []entry, fields *fieldpath.Set) []metav1.ManagedFieldsEntry {
	var left []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if e.taken {
			rest := e.fields.Difference(fields)
			if rest = rest.Difference(above(fields).Difference(above(rest))); rest.Empty() {
				continue
			}
			e.FieldsV1 = write(rest)
		}
		left = append(left, e.ManagedFieldsEntry)
	}
	return left
}

// An Update is an update of an object with the managers of its fields, which it reads once.
type Update struct {
	Live, After *unstructured.Unstructured
	Takeover    Takeover // what it takes first

	how     Taking
	entries []entry        // the managed fields after the takeover
	had     *fieldpath.Set // what Headgate manages before the update
	sent    *fieldpath.Set // and after it
}

// UpdateOf returns the update of a live object. after is the object after an apply of the commit.
func UpdateOf(live, after *unstructured.Unstructured, how Taking) Update {
	return Update{
		Live: live, After: after, how: how, entries: entriesOf(live, entriesBefore(live, after), how), had: fieldsOf(live, inventory.IsApplied), sent: fieldsOf(after, inventory.IsApplied),
	}
}

// Taking returns the update with a takeover.
func (u Update) Taking(t Takeover) Update {
	if !t.None() {
		u.Takeover, u.entries = t, entriesOf(u.Live, t.Entries, u.how)
	}
	return u
}

// IsLost reports whether the managed fields of an object do not show what we applied.
func IsLost(live metav1.Object) bool { return fieldsOf(live, inventory.IsApplied).Empty() }

// Applied returns the fields that our field manager applied to an object.
func Applied(o metav1.Object) *fieldpath.Set { return asStored(o, fieldsOf(o, inventory.IsApplied)) }

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

// Reclaim also takes fields that we applied, that left the commit, and of which managed fields do not show that we applied them. The
// apply then removes them, except those that another manager still has.
func (u Update) Reclaim(applied *fieldpath.Set) Update {
	gone := present(u.Live.Object, applied.Difference(u.sent).Difference(u.had))
	if gone.Empty() {
		return u
	}
	for _, e := range u.entries {
		if e.taken {
			gone = gone.Union(inItems(e.fields, gone))
		}
	}
	left := dropped(u.entries, gone)
	free := onlyOf(gone, fieldsOf(withEntries(u.Live, left), isOthers))
	if free.Empty() {
		return u
	}
	t := u.Takeover
	t.Entries, t.Goes = given(left, free, u.After.GetAPIVersion(), nil), free
	if u.Takeover.Goes != nil {
		t.Goes = free.Union(u.Takeover.Goes)
	}
	u.After = u.After.DeepCopy()
	Remove(u.After.Object, t.Goes)
	return u.Taking(t)
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
// there is none: the API server sets a default. applied are the fields that we applied before.
func (u Update) Stays(applied *fieldpath.Set) []Held {
	by := map[string][]string{}
	for path := range kept(u.Live.Object, u.After.Object, applied.Leaves().Difference(u.sent)).All() {
		keeper := u.keeper(path)
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

// keeper returns the names of the other managers of a field.
func (u Update) keeper(path fieldpath.Path) string {
	var keepers []string
	for _, e := range u.entries {
		if e.row != ours && e.row != subresource && holds(e.fields, path) {
			keepers = append(keepers, e.Manager)
		}
	}
	slices.Sort(keepers)
	if keepers = slices.Compact(keepers); len(keepers) > 1 {
		keepers = slices.DeleteFunc(keepers, func(manager string) bool { return manager == Nobody })
	}
	return strings.Join(keepers, ", ")
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
func (u Update) Unclaimed() []string {
	var all []string
	for _, e := range u.entries {
		if e.taken && !e.isTools() {
			all = append(all, names(e.fields.Leaves().Difference(u.sent))...)
		}
	}
	return all
}

// isTools reports whether an entry belongs to a tool that applied the object before.
func (e entry) isTools() bool { return e.row == updater || e.row == applier }

// Gained returns the fields that an update begins to manage.
func Gained(live, after *unstructured.Unstructured) []string {
	return names(fieldsOf(after, inventory.IsApplied).Leaves().Difference(fieldsOf(live, inventory.IsApplied)))
}

// VersionOf returns the version in which our field manager applied an object, or "".
func VersionOf(o metav1.Object) string {
	i := slices.IndexFunc(o.GetManagedFields(), inventory.IsApplied)
	if i < 0 {
		return ""
	}
	return o.GetManagedFields()[i].APIVersion
}
