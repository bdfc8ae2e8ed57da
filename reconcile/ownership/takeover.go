package ownership

import (
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A Held is a field manager with the fields that it manages, as paths of changes: "data.key".
type Held struct {
	Manager string   `json:"manager"`
	Fields  []string `json:"fields"`
}

// Fields returns the number of held fields.
func Fields(all []Held) int {
	n := 0
	for _, h := range all {
		n += len(h.Fields)
	}
	return n
}

// Managers returns the names of the field managers.
func Managers(all []Held) []string {
	var names []string
	for _, h := range all {
		names = append(names, h.Manager)
	}
	return names
}

// The field managers with which tools apply whole manifests. They do not include managers of edits, autoscalers and controllers.
var (
	appliersByUpdate = map[string]bool{"kubectl-client-side-apply": true, "helm": true, "helm-controller": true, "argocd-controller": true, "argocd-application-controller": true}
	appliersByApply  = map[string]bool{"kubectl": true, lastAppliedManager: true, "helm": true, "helm-controller": true, "kustomize-controller": true, "argocd-controller": true}
)

// lastAppliedManager is the field manager with which kubectl keeps the annotation of client-side apply after a switch
// to server-side apply.
const lastAppliedManager = "kubectl-last-applied"

// LastApplied is the annotation in which kubectl and Argo CD store what they applied.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// isApplierEntry reports whether an entry of managed fields belongs to a tool that applies manifests: kubectl, Flux,
// Argo CD or Helm.
func isApplierEntry(f metav1.ManagedFieldsEntry) bool {
	switch {
	case f.Subresource != "":
		return false
	case f.Operation == metav1.ManagedFieldsOperationApply:
		return appliersByApply[f.Manager]
	}
	return appliersByUpdate[f.Manager]
}

// A Takeover describes what an adoption takes from the previous appliers of an object.
type Takeover struct {
	From    []Held                      // fields that the commit sets and that Headgate will manage
	Left    []Held                      // fields that only the previous appliers manage, and that remain unchanged
	Entries []metav1.ManagedFieldsEntry // the managed fields of the object after the takeover
	Forgets bool                        // the annotation LastApplied is removed

	Goes *fieldpath.Set // fields that only Headgate will manage and that the commit no longer sets
	Rest *fieldpath.Set // the fields of Left
}

// None reports whether nothing is taken over.
func (t Takeover) None() bool { return len(t.Entries) == 0 }

// TakeOver takes over fields from other managers. apiVersion is that of the commit. Unreadable managed fields remain unchanged.
func (u Update) TakeOver(apiVersion string) Update {
	wanted := u.sent.Union(u.had)
	var t Takeover
	taken := fieldpath.NewSet()
	var since *metav1.Time
	for _, e := range u.entries {
		if !e.taken {
			t.Entries = append(t.Entries, e.ManagedFieldsEntry)
			continue
		}
		set := e.fields
		if e.isTools() && set.Has(lastAppliedPath) {
			t.Forgets = true
			set = set.Difference(fieldpath.NewSet(lastAppliedPath))
		}
		shared := set.Intersection(wanted).Union(inItems(set, u.had.Difference(u.sent)))
		rest := set.Difference(shared).Difference(above(wanted.Union(fieldpath.NewSet(lastAppliedPath))))
		if !shared.Empty() {
			t.From = append(t.From, Held{e.Manager, names(shared.Leaves())})
			taken, since = taken.Union(shared), e.Time
		}
		if rest.Empty() {
			continue
		}
		if e.FieldsV1 = write(rest); e.FieldsV1 != nil {
			t.Entries = append(t.Entries, e.ManagedFieldsEntry)
		}
	}
	if len(t.From) == 0 {
		return u
	}
	t.Entries = given(t.Entries, taken, apiVersion, since)
	after := withEntries(u.Live, t.Entries)
	t.Left, t.Rest = Leftovers(after)
	t.Goes = onlyOf(u.had.Difference(u.sent), fieldsOf(after, isOthers))
	return u.Taking(t)
}

// given returns managed fields in which Headgate applies additional fields in a version.
func given(entries []metav1.ManagedFieldsEntry, fields *fieldpath.Set, apiVersion string, since *metav1.Time) []metav1.ManagedFieldsEntry {
	i := slices.IndexFunc(entries, func(f metav1.ManagedFieldsEntry) bool { return inventory.IsApplied(f) && f.APIVersion == apiVersion })
	if i < 0 {
		i = len(entries)
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: inventory.Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, Time: since, FieldsType: "FieldsV1",
		})
	}
	ours, _ := read(entries[i])
	entries[i].FieldsV1 = write(ours.Union(fields))
	return entries
}

// TakeLeftovers returns the takeover of fields that other tools left on an object. The next apply in this version removes them.
func TakeLeftovers(live metav1.Object, apiVersion string) Takeover {
	left, rest := Leftovers(live)
	if len(left) == 0 {
		return Takeover{}
	}
	return Takeover{From: left, Entries: given(Dropped(live, rest), rest, apiVersion, nil)}
}

// Leftovers returns the fields of an adopted object that only its previous appliers manage. It returns nothing if
// such a tool manages a field together with Headgate, because then Headgate did not take the object over.
func Leftovers(live metav1.Object) ([]Held, *fieldpath.Set) {
	fields := live.GetManagedFields()
	if !slices.ContainsFunc(fields, isApplierEntry) {
		return nil, nil
	}
	others := fieldsOf(live, func(f metav1.ManagedFieldsEntry) bool { return !isApplierEntry(f) })
	ours := fieldsOf(live, inventory.IsApplied)
	var left []Held
	rest := fieldpath.NewSet()
	for _, f := range fields {
		set, readable := read(f)
		if !isApplierEntry(f) || !readable {
			continue
		}
		if !set.Intersection(ours).Empty() {
			return nil, nil
		}
		only := onlyOf(set, others)
		if paths := names(only.Leaves()); len(paths) > 0 {
			left, rest = append(left, Held{f.Manager, paths}), rest.Union(only)
		}
	}
	slices.SortFunc(left, func(a, b Held) int { return strings.Compare(a.Manager, b.Manager) })
	return left, rest
}

// Dropped returns managed fields without some fields of the previous appliers of an object.
func Dropped(live metav1.Object, fields *fieldpath.Set) []metav1.ManagedFieldsEntry {
	return dropped(entriesOf(live, live.GetManagedFields(), Taking{Appliers: true}), fields)
}

// onlyOf returns the fields of a set that no other manager has, neither the fields nor anything below them.
func onlyOf(set, others *fieldpath.Set) *fieldpath.Set {
	return set.Difference(others).Difference(above(others))
}

// above returns the parents of the members of a set.
func above(set *fieldpath.Set) *fieldpath.Set {
	all := fieldpath.NewSet()
	for path := range set.All() {
		for n := 1; n < len(path); n++ {
			all.Insert(path[:n].Copy())
		}
	}
	return all
}

func isOthers(f metav1.ManagedFieldsEntry) bool { return !inventory.IsApplied(f) }

// fieldsOf returns the fields of the entries that like accepts.
func fieldsOf(o metav1.Object, like func(metav1.ManagedFieldsEntry) bool) *fieldpath.Set {
	all := fieldpath.NewSet()
	for _, f := range o.GetManagedFields() {
		if set, readable := read(f); readable && like(f) {
			all = all.Union(set)
		}
	}
	return all
}

func read(f metav1.ManagedFieldsEntry) (*fieldpath.Set, bool) {
	set := fieldpath.NewSet()
	if f.FieldsV1 == nil {
		return set, false
	}
	return set, set.FromJSON(f.FieldsV1.GetRawReader()) == nil
}

// write encodes a set as managed fields, or returns nil if it cannot.
func write(set *fieldpath.Set) *metav1.FieldsV1 {
	raw, err := set.ToJSON()
	if err != nil {
		return nil
	}
	var fields metav1.FieldsV1
	fields.SetRawBytes(raw)
	return &fields
}

// withEntries returns the metadata of an object with other managed fields.
func withEntries(o metav1.Object, entries []metav1.ManagedFieldsEntry) metav1.Object {
	return &metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), ManagedFields: entries}
}

var lastAppliedPath = fieldpath.MakePathOrDie("metadata", "annotations", LastApplied)

// names returns the sorted paths of a set in the notation of changes.
func names(set *fieldpath.Set) []string {
	var all []string
	for path := range set.All() {
		all = append(all, name(path))
	}
	slices.Sort(all)
	return all
}

// byName matches the item of a list whose key is its name.
var byName = regexp.MustCompile(`^\[name="([^"]*)"\]$`)

func name(path fieldpath.Path) string {
	var b strings.Builder
	for _, e := range path {
		switch {
		case e.FieldName != nil:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(*e.FieldName)
		case e.Value != nil && !strings.HasPrefix(b.String(), "metadata."):
			b.WriteString("[…]") // the value may be copied from a Secret
		default:
			b.WriteString(byName.ReplaceAllString(e.String(), "[$1]"))
		}
	}
	return b.String()
}

// Without returns the takeover without fields that the API server itself sets.
func (t Takeover) Without(fields *fieldpath.Set) Takeover {
	after := withEntries(&metav1.ObjectMeta{}, t.Entries)
	t.Entries = Dropped(after, fields)
	t.Left, t.Rest = Leftovers(withEntries(after, t.Entries))
	return t
}
