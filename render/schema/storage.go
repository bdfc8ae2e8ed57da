package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// newlyServed returns the versions that are served after but not before, if any were served before.
func newlyServed(was, is map[string]map[string]any) []string {
	if len(was) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(is)), func(name string) bool { return is[name]["served"] != true || was[name]["served"] == true })
}

// converts reports whether a webhook converts the objects of a definition.
func converts(definition *unstructured.Unstructured) bool {
	return object(object(definition.Object["spec"])["conversion"])["strategy"] == "Webhook"
}

// storage compares the storage versions. If the storage version changes without a conversion, the next write of an object drops
// fields that the new storage version does not declare, and is refused for values that it does not allow. So it compares that
// version with all versions in which objects are or may be written.
func (c *comparison) storage(before, after *unstructured.Unstructured) {
	was, is := versions(object(before.Object["spec"])), versions(object(after.Object["spec"]))
	from, to := stored(was), stored(is)
	if from == to || from == "" {
		return
	}
	moves := Change{Rule: Storage, From: from, To: to}
	if !converts(after) {
		for _, name := range slices.Sorted(maps.Keys(was)) {
			kept := slices.Contains(list(object(before.Object["status"])["storedVersions"]), any(name))
			if name == to || !kept && name != from && was[name]["served"] != true {
				continue
			}
			lost := unconverted(name, to, schemaOf(was[name]), schemaOf(is[to]))
			moves.Breaking = moves.Breaking || len(lost) > 0
			c.add(lost...)
		}
	}
	c.add(moves)
}

// served compares newly served versions with the storage version. Without conversion, a write in one of the two drops the fields
// that only the other one declares.
func (c *comparison) served(before, after *unstructured.Unstructured) {
	was, is := versions(object(before.Object["spec"])), versions(object(after.Object["spec"]))
	to := stored(is)
	if converts(after) || to == "" {
		return
	}
	for _, name := range newlyServed(was, is) {
		if name != to {
			lost := unshared(name, to, schemaOf(is[to]), schemaOf(is[name]))
			for _, change := range unconverted(name, to, schemaOf(is[name]), schemaOf(is[to])) {
				if !slices.ContainsFunc(lost, func(c Change) bool { return c.Path == change.Path }) {
					change.Rule = Unshared
					lost = append(lost, change)
				}
			}
			c.add(lost...)
			continue
		}
		for _, old := range slices.Sorted(maps.Keys(is)) { // storage compares the other direction: whether objects written in the old version fit
			if old != to && is[old]["served"] == true && was[old]["served"] == true {
				c.add(unshared(old, to, schemaOf(is[to]), schemaOf(is[old]))...)
			}
		}
	}
}

// unshared returns the places where stored objects do not fit a served version.
func unshared(version, stored string, is, of map[string]any) []Change {
	return unfit(Unshared, version, is, of,
		fmt.Sprintf("is only in %s, in which objects are stored: an update in %s loses it", stored, version),
		fmt.Sprintf("is not as in %s, in which objects are stored", stored))
}

// harmless lists keywords that neither drop nor refuse anything.
var harmless = []string{"default", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"}

// unconverted returns the places where objects of one version do not fit another version. It ignores those below status, because
// controllers write them again.
func unconverted(version, to string, was, is map[string]any) []Change {
	return unfit(Unconverted, version, was, is,
		fmt.Sprintf("is not in %s, in which objects are stored: it is lost at the next write", to),
		fmt.Sprintf("does not fit %s, in which objects are stored", to))
}

// unfit returns the places in which objects of one schema do not fit another one, as changes with a rule. lost explains a field
// that the other schema lacks; differs introduces any other difference.
func unfit(rule Rule, version string, was, is map[string]any, lost, differs string) []Change {
	compares := comparison{loses: true}
	compares.schema(location{version: version}, was, is)
	var all []Change
	for _, change := range compares.Changes {
		if !change.Breaking || change.InStatus() {
			continue
		}
		why := differs + ": " + change.What()
		if change.Rule == Field {
			why = lost
		}
		all = append(all, Change{Rule: rule, Version: version, Path: change.Path, Why: why, Breaking: true})
	}
	return all
}

// InStatus reports whether a change is in the status, which controllers write again.
func (c Change) InStatus() bool {
	below, of := strings.CutPrefix(c.Path, "status")
	return of && (below == "" || below[0] == '.' || below[0] == '[')
}

// Unconverting returns the difference as if a webhook converted objects. If that changes the result, it also returns the change
// that needs the webhook: the change of the storage version, or a place in a served version.
func (d Difference) Unconverting() (Difference, Change, bool) {
	crosses := func(c Change) bool { return c.Rule == Unconverted || c.Rule == Unshared }
	i := slices.IndexFunc(d.Changes, func(c Change) bool { return c.Rule == Storage && c.Breaking })
	if i < 0 {
		i = slices.IndexFunc(d.Changes, crosses)
	}
	if i < 0 {
		return d, Change{}, false
	}
	needs := d.Changes[i]
	d.Changes = slices.DeleteFunc(slices.Clone(d.Changes), crosses)
	for i, c := range d.Changes {
		d.Changes[i].Breaking = c.Breaking && c.Rule != Storage
	}
	return d, needs, true
}
