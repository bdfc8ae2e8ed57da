package diff

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Compare returns the fields of the wanted object that the live one lacks or holds differently, and their writers. It
// does not ask the API server. Additional live fields are no difference, nor are other notations of equal values, nor
// fields that the sync ignores. Both objects must have the same version. Compare changes neither.
//
// Live and After hold only the places that differ, so callers can keep them.
func Compare(want, live *unstructured.Unstructured, ignore Ignores) Comparison {
	c := comparison{taken: map[string]*Taken{}}
	c.substitutes = live.GetLabels()["kustomize.toolkit.fluxcd.io/name"] != ""
	var everywhere comparedField
	everywhere.writers, c.appliers = writersOf(live)
	if manifest.IDOf(want).IsSecret() {
		want = want.DeepCopy()
		manifest.EncodeStringData(want)
	}
	from, to, differs := c.maps(everywhere, stated(ignore.unignored(want, live)), live.Object)
	if !differs {
		return Comparison{}
	}
	c.found.Live = &unstructured.Unstructured{Object: asMap(from)}
	c.found.After = &unstructured.Unstructured{Object: asMap(to)}
	for _, manager := range slices.Sorted(maps.Keys(c.taken)) {
		c.found.TakenBy = append(c.found.TakenBy, *c.taken[manager])
	}
	return c.found
}

// A Comparison holds the differences between a live and a wanted object, and their writers. It is the zero value for
// equal objects.
type Comparison struct {
	Live, After *unstructured.Unstructured
	TakenBy     []Taken // the field managers that edited fields of the applier

	// Differences that the managers in TakenBy do not explain.
	Stale   bool // a field differs that belongs to the applier
	Missing bool // a field is missing, and the object does not show since when
}

// stated returns the fields that the commit sets and another tool has to apply.
func stated(want *unstructured.Unstructured) map[string]any {
	want = want.DeepCopy()
	LeaveInjected(want)
	fields, metadata := want.Object, asMap(want.Object["metadata"])
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(fields, key)
	}
	fields["metadata"] = map[string]any{
		"labels":      metadata["labels"],
		"annotations": metadata["annotations"],
		"finalizers":  metadata["finalizers"],
	}
	delete(asMap(metadata["annotations"]), "kubectl.kubernetes.io/last-applied-configuration")
	return fields
}

type comparison struct {
	appliers    map[string]bool // field managers that apply the object
	substitutes bool            // the applier fills in ${variables}
	taken       map[string]*Taken
	found       Comparison
}

// A comparedField is a field that Compare reads in two objects.
type comparedField struct {
	path    string   // in the notation of a Change
	writers []writer // the writers of the field or of a part of it
}

// A writer is a field manager with the fields that it wrote at a place.
type writer struct {
	manager string
	fields  *fieldpath.Set // relative to the place; nil if it owns the place as a whole
}

// writersOf returns the field managers of an object, without the managers of its status. appliers are the managers
// that apply the commit, as opposed to later editors: known GitOps tools, else managers with server-side apply, else
// the manager with the most fields.
func writersOf(live metav1.Object) (all []writer, appliers map[string]bool) {
	tools, servers, biggest := map[string]bool{}, map[string]bool{}, map[string]bool{}
	most := 0
	for _, f := range live.GetManagedFields() {
		fields := &fieldpath.Set{}
		if f.Subresource == "status" || f.FieldsV1 == nil || fields.FromJSON(bytes.NewReader(f.FieldsV1.GetRawBytes())) != nil {
			continue // the manager of an unreadable entry is not known
		}
		all = append(all, writer{f.Manager, fields})
		if f.Subresource != "" {
			continue
		}
		if ownership.IsApplier(f.Manager) {
			tools[f.Manager] = true
		}
		if f.Operation == metav1.ManagedFieldsOperationApply {
			servers[f.Manager] = true
		}
		if size := fields.Size(); size > most {
			most, biggest = size, map[string]bool{f.Manager: true}
		}
	}
	for _, appliers := range []map[string]bool{tools, servers} {
		if len(appliers) > 0 {
			return all, appliers
		}
	}
	return all, biggest
}

// at returns a place below this one.
func (p comparedField) at(text string, element fieldpath.PathElement) comparedField {
	below := comparedField{path: text}
	var wholes []writer
	parted := false
	for _, w := range p.writers {
		if w.fields == nil {
			below.writers = append(below.writers, w)
		} else if fields, some := w.fields.Children.Get(element); some {
			parted = true
			below.writers = append(below.writers, writer{w.manager, fields})
		} else if w.fields.Members.Has(element) {
			wholes = append(wholes, writer{w.manager, nil})
		}
	}
	if !parted { // otherwise these managers only created the parent of what others filled in
		below.writers = append(below.writers, wholes...)
	}
	return below
}

func (p comparedField) field(name string) comparedField {
	return p.at(join(p.path, name), fieldpath.FieldNameElement(name))
}

func (p comparedField) index(i int, text string) comparedField {
	return p.at(fmt.Sprintf("%s[%s]", p.path, text), fieldpath.IndexElement(i))
}

// elements returns the list items that managers own individually.
func (p comparedField) elements() []fieldpath.PathElement {
	var all []fieldpath.PathElement
	for _, w := range p.writers {
		if w.fields != nil {
			all = slices.AppendSeq(all, w.fields.Members.All())
			all = slices.AppendSeq(all, w.fields.Children.All())
		}
	}
	return all
}

// compare returns the live and the wanted value, or nil for both if they are equal.
func (c *comparison) compare(at comparedField, want, live any) (from, to any, differs bool) {
	switch want := want.(type) {
	case nil:
		return nil, nil, false
	case map[string]any:
		if live, ok := live.(map[string]any); ok || c.empty(want) {
			return c.maps(at, want, live)
		}
	case []any:
		if live, ok := live.([]any); ok || len(want) == 0 {
			return c.lists(at, want, live)
		}
	default:
		if c.same(want, live) {
			return nil, nil, false
		}
	}
	c.blame(at)
	return live, want, true
}

// empty reports whether a value sets nothing.
func (c *comparison) empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, below := range v {
			if !c.empty(below) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

func (c *comparison) maps(at comparedField, want, live map[string]any) (from, to any, differs bool) {
	were, are := map[string]any{}, map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		was, is, differs := c.compare(at.field(key), want[key], live[key])
		if !differs {
			continue
		}
		are[key] = is
		if was != nil {
			were[key] = was
		}
	}
	return were, are, len(are) > 0
}

// lists compares item by item. It matches items by key if the managed fields show that the API server merges the list
// by key, by name if all items have one, and otherwise by position.
func (c *comparison) lists(at comparedField, want, live []any) (from, to any, differs bool) {
	elements := at.elements()
	if i := slices.IndexFunc(elements, func(e fieldpath.PathElement) bool { return e.Key != nil }); i >= 0 {
		return c.keyed(at, want, live, *elements[i].Key)
	}
	if slices.ContainsFunc(elements, func(e fieldpath.PathElement) bool { return e.Value != nil }) {
		return c.set(at, want, live)
	}
	_, named := byName(want)
	if _, alsoNamed := byName(live); named && alsoNamed {
		return c.pairs(at, want, live, pairing{
			like:   sameName,
			byName: true,
			whole:  true,
		})
	}
	return c.positions(at, want, live)
}

// keyed compares a list that the API server merges by a key. Items of other writers are no difference.
func (c *comparison) keyed(at comparedField, want, live []any, key value.FieldList) (from, to any, differs bool) {
	return c.pairs(at, want, live, pairing{byName: len(key) == 1 && key[0].Name == "name", like: func(wanted, other any) bool {
		w, _ := wanted.(map[string]any)
		l, ok := other.(map[string]any)
		for _, f := range key {
			if v, says := w[f.Name]; says && !c.same(v, l[f.Name]) { // a missing part of the key has its default
				return false
			}
		}
		return ok
	}})
}

// A pairing defines how the items of two lists are matched.
type pairing struct {
	like   func(wanted, other any) bool
	byName bool // paths identify items by name, else by position
	whole  bool // any additional live item is a difference
}

// pairs compares each wanted item with the live item that matches it.
func (c *comparison) pairs(at comparedField, want, live []any, how pairing) (from, to any, differs bool) {
	var were, are []any
	put := func(i int, was, is any) {
		differs = true
		if !how.byName {
			were, are = padded(were, i), padded(are, i)
			were[i], are[i] = was, is
			return
		}
		if was != nil {
			were = append(were, was)
		}
		if is != nil {
			are = append(are, is)
		}
	}
	met := make([]bool, len(live))
	added := len(live)
	for _, wanted := range want {
		i := slices.IndexFunc(live, func(other any) bool { return how.like(wanted, other) })
		if i < 0 {
			c.blame(comparedField{path: at.path, writers: wholes(at.writers)})
			put(added, nil, wanted)
			added++
			continue
		}
		met[i] = true
		text := strconv.Itoa(i)
		if how.byName {
			text, _ = nameOf(wanted)
		}
		was, is, differs := c.compare(at.item(live[i], i, text), wanted, live[i])
		if !differs {
			continue
		}
		if how.byName {
			was, is = withName(was, text), withName(is, text)
		}
		put(i, was, is)
	}
	for i, other := range live {
		if how.whole && !met[i] {
			c.blame(at)
			put(i, other, nil)
		}
	}
	return were, are, differs
}

// wholes returns the writers that own a field as a whole, and so caused a missing part of it.
func wholes(writers []writer) []writer {
	return slices.DeleteFunc(slices.Clone(writers), func(w writer) bool { return w.fields != nil })
}

func padded(list []any, to int) []any {
	for len(list) <= to {
		list = append(list, nil)
	}
	return list
}

func sameName(a, b any) bool {
	one, _ := nameOf(a)
	other, named := nameOf(b)
	return named && one == other
}

func withName(item any, name string) any {
	m := maps.Clone(asMap(item))
	m["name"] = name
	return m
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	if m == nil {
		return map[string]any{}
	}
	return m
}

// item returns the place of a list item.
func (p comparedField) item(live any, i int, text string) comparedField {
	text = fmt.Sprintf("%s[%s]", p.path, text)
	item, _ := live.(map[string]any)
	for _, e := range p.elements() {
		if e.Key != nil && hasKey(item, *e.Key) {
			return p.at(text, e)
		}
	}
	return p.at(text, fieldpath.IndexElement(i))
}

func hasKey(item map[string]any, key value.FieldList) bool {
	return item != nil && !slices.ContainsFunc(key, func(f value.Field) bool {
		return !value.Equals(f.Value, value.NewValueInterface(item[f.Name]))
	})
}

// set compares a list without a meaningful order, in which other writers may have items.
func (c *comparison) set(at comparedField, want, live []any) (from, to any, differs bool) {
	var were, are []any
	for i, wanted := range want {
		if !slices.ContainsFunc(live, func(other any) bool { return c.same(wanted, other) }) {
			were, are = padded(were, i), padded(are, i)
			are[i] = wanted
			differs = true
		}
	}
	if differs {
		c.blame(comparedField{path: at.path})
	}
	return were, are, differs
}

// positions compares a list that is one value. Within an existing item, only the fields that the commit sets count.
func (c *comparison) positions(at comparedField, want, live []any) (from, to any, differs bool) {
	were, are := make([]any, max(len(want), len(live))), make([]any, max(len(want), len(live)))
	for i := range were {
		switch {
		case i >= len(want):
			were[i] = live[i]
		case i >= len(live):
			are[i] = want[i]
		default:
			was, is, below := c.compare(at.index(i, strconv.Itoa(i)), want[i], live[i])
			if below {
				were[i], are[i], differs = was, is, true
			}
			continue
		}
		c.blame(at)
		differs = true
	}
	return were, are, differs
}

// same reports whether two values are equivalent.
func (c *comparison) same(want, live any) bool {
	if reflect.DeepEqual(want, live) {
		return true
	}
	if w, ok := number(want); ok {
		l, ok := number(live)
		return ok && w == l
	}
	text, ok := want.(string)
	return ok && c.substitutes && fills(text, live)
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// variable matches a variable that Flux fills in.
var variable = regexp.MustCompile(`\$\{[^}]*\}`)

// fills reports whether a live value may be the text after substitution of its variables.
func fills(text string, live any) bool {
	parts := variable.Split(text, -1)
	if len(parts) < 2 {
		return false
	}
	made := fmt.Sprint(live)
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(made, first) || !strings.HasSuffix(made[len(first):], last) {
		return false
	}
	made = made[len(first) : len(made)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(made, part)
		if !found {
			return false
		}
		made = after
	}
	return true
}

// blame records the writer of a field. If it is a tool that applies the object, that tool has not applied the commit
// yet. Any other writer changed the field. Without a writer, the cause is not known.
func (c *comparison) blame(at comparedField) {
	switch {
	case len(at.writers) == 0:
		c.found.Missing = true
	case slices.ContainsFunc(at.writers, func(w writer) bool { return c.appliers[w.manager] }):
		c.found.Stale = true
	default:
		for _, w := range at.writers {
			t := cmp.Or(c.taken[w.manager], &Taken{Manager: w.manager})
			if !slices.Contains(t.Fields, at.path) {
				t.Fields = append(t.Fields, at.path)
			}
			c.taken[w.manager] = t
		}
	}
}

// WrittenBy returns the applier of a live object by its field manager.
func WrittenBy(live metav1.Object) string {
	_, appliers := writersOf(live)
	for _, manager := range slices.Sorted(maps.Keys(appliers)) {
		return "the field manager " + manager
	}
	return ""
}

// A Taken is one field manager with the fields that it holds.
type Taken struct {
	Manager string
	Fields  []string // in the notation of a Change; a field includes everything below it
}
