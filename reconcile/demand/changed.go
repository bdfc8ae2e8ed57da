package demand

import (
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Changed reports whether another writer changed a live object in what the last pass applied, so that a pass over the same commit
// would correct, hold or report the change. It needs no commit: additions by other writers, and changes of ignored fields, do not
// count.
//
// For an observe-only object, every write counts until the next pass compares it with the commit.
func Changed(o facts.Observed, id manifest.ID, live metav1.Object) bool {
	e := o.Inventory.Entries[id]
	switch {
	case e.UID != live.GetUID(), !o.Refused(id, live).None():
		return true
	case e.Mark == inventory.Mark(live):
		return false
	case e.Fields == "": // an older version did not record them
		return true
	}
	return e.Fields != diff.OwnFields(live, IgnoredBy(e, o.Inventory.Record))
}

// AsRecorded returns the observation with the adoption terms of the pass that stored the inventory.
func AsRecorded(o facts.Observed) facts.Observed {
	o.Terms.Adoption = facts.Adoption(o.Inventory.Record.Adoption)
	return o
}

// IgnoredPaths returns the pointers to the ignored fields, by the suffix that they add to a digest. It keeps the recorded ones of
// all entries, because this pass may not write every entry again.
func IgnoredPaths(o facts.Observed) map[string][][]string {
	var all map[string][][]string
	keep := func(suffix string, paths [][]string) {
		if suffix != "" && paths != nil {
			if all == nil {
				all = map[string][][]string{}
			}
			all[suffix] = paths
		}
	}
	for _, e := range o.Inventory.Entries {
		suffix := suffixOf(e.Digest)
		keep(suffix, o.Inventory.Record.Ignored[suffix])
	}
	for _, a := range o.Asked {
		var paths [][]string
		for _, p := range o.Terms.Ignore.Paths(a.ID) {
			paths = append(paths, p)
		}
		keep(o.Terms.Ignore.Suffix(a.ID), paths)
	}
	return all
}

// IgnoredBy returns the pointers to the fields that were ignored when an entry was recorded.
func IgnoredBy(e inventory.Entry, record inventory.Record) []diff.Pointer {
	var paths []diff.Pointer
	for _, p := range record.Ignored[suffixOf(e.Digest)] {
		paths = append(paths, p)
	}
	return paths
}

// suffixOf returns the suffix that ignored fields added to a digest.
func suffixOf(digest string) string {
	i := strings.Index(digest, diff.SuffixMark)
	if i < 0 {
		return ""
	}
	return digest[i:]
}

// Includes reports whether a record has all the ignored fields of another one. Unused ones in have do not matter; the next write
// removes them.
func Includes(have, next map[string][][]string) bool {
	for suffix := range next {
		if _, recorded := have[suffix]; !recorded { // the suffix is a hash of the fields, so they are the same
			return false
		}
	}
	return true
}
