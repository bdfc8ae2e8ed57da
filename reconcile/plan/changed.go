package plan

import (
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Changed reports whether another writer changed what the last pass applied to a live object, so that a pass over the same
// commit would correct it, hold it, or report it. It needs no commit: what others add to an object, and what the sync ignores
// of it, is no change.
//
// For an object that is only observed, every write counts until the next pass compares it with the commit.
func (o Observed) Changed(id manifest.ID, live metav1.Object) bool {
	e := o.Inventory.Entries[id]
	switch {
	case e.UID != live.GetUID(), !o.Refused(id, live).None():
		return true
	case e.Mark == inventory.Mark(live):
		return false
	case e.Fields == "": // an older version did not remember them
		return true
	}
	return e.Fields != diff.OwnFields(live, ignoredBy(e, o.Inventory.Record))
}

// AsRecorded returns what was observed, on the terms of the pass that applied what the inventory holds.
func (o Observed) AsRecorded() Observed {
	o.Terms.Adoption = Adoption(o.Inventory.Record.Adoption)
	return o
}

// ignoredPaths returns the pointers to the fields that the sync ignores, by the suffix that they add to a digest. Those of an
// entry that this pass may not write again stay.
func (o Observed) ignoredPaths() map[string][][]string {
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

// ignoredBy returns the pointers to the fields that were ignored when an entry was recorded.
func ignoredBy(e inventory.Entry, record inventory.Record) []diff.Pointer {
	var paths []diff.Pointer
	for _, p := range record.Ignored[suffixOf(e.Digest)] {
		paths = append(paths, p)
	}
	return paths
}

// suffixOf returns what ignored fields added to a digest.
func suffixOf(digest string) string {
	i := strings.Index(digest, diff.SuffixMark)
	if i < 0 {
		return ""
	}
	return digest[i:]
}

// includes reports whether a record has all the ignored fields of another one. One that nothing refers to any more goes with
// the next write.
func includes(have, next map[string][][]string) bool {
	for suffix := range next {
		if _, recorded := have[suffix]; !recorded { // a suffix is a hash of the fields
			return false
		}
	}
	return true
}
