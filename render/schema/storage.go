package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Moves reports whether an update has objects stored in another version, with nothing that converts them.
func Moves(before, after *unstructured.Unstructured) bool {
	from, to := stored(versions(object(before.Object["spec"]))), stored(versions(object(after.Object["spec"])))
	return from != to && from != "" && !converts(after)
}

// converts reports whether a webhook converts the objects of a definition.
func converts(definition *unstructured.Unstructured) bool {
	return object(object(definition.Object["spec"])["conversion"])["strategy"] == "Webhook"
}

// storage compares the version that objects are stored in. If it moves without a conversion, the next write of an
// object drops fields that the new storage version does not declare, and is refused for values that it does not allow.
// So it compares that version with all versions in which objects are or may be written.
func (c *comparison) storage(before, after *unstructured.Unstructured) {
	was, is := versions(object(before.Object["spec"])), versions(object(after.Object["spec"]))
	from, to := stored(was), stored(is)
	if from == to || from == "" {
		return
	}
	moves := Change{Rule: Storage, From: from, To: to}
	if Moves(before, after) {
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

// harmless are keywords that neither drop nor refuse anything.
var harmless = []string{"default", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"}

// unconverted are the places in which objects of one version do not fit another one. Those below status do
// not count: controllers write them again.
func unconverted(version, to string, was, is map[string]any) []Change {
	compares := comparison{loses: true}
	compares.schema(location{version: version}, was, is)
	var lost []Change
	for _, change := range compares.Changes {
		if !change.Breaking || change.InStatus() {
			continue
		}
		what := fmt.Sprintf("does not fit %s, in which objects are stored: %s", to, change.What())
		if change.Rule == Field {
			what = fmt.Sprintf("is not in %s, in which objects are stored: it is lost at the next write", to)
		}
		lost = append(lost, Change{Rule: Unconverted, Version: version, Path: change.Path, Why: what, Breaking: true})
	}
	return lost
}

// InStatus reports whether a change is of the status, which controllers write again.
func (c Change) InStatus() bool {
	below, of := strings.CutPrefix(c.Path, "status")
	return of && (below == "" || below[0] == '.' || below[0] == '[')
}

// Unconverting returns the difference as it is where a webhook converts objects, and the move of the storage
// version if that makes a difference.
func (d Difference) Unconverting() (Difference, Change, bool) {
	i := slices.IndexFunc(d.Changes, func(c Change) bool { return c.Rule == Storage && c.Breaking })
	if i < 0 {
		return d, Change{}, false
	}
	moves := d.Changes[i]
	d.Changes = slices.DeleteFunc(slices.Clone(d.Changes), func(c Change) bool { return c.Rule == Unconverted })
	for i, c := range d.Changes {
		d.Changes[i].Breaking = c.Breaking && c.Rule != Storage
	}
	return d, moves, true
}
