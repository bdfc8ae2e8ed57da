package guard

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// The codes of the guard omitted.
const (
	LeftToPackage   plan.Code = "LeftToPackage"   // the package with which Crossplane is to install it, and where the commit has that
	MayStillBeThere plan.Code = "MayStillBeThere" // what the commit contains and Headgate skips, which may have declared it, and why Headgate skips that
	StillThere      plan.Code = "StillThere"      // what the commit contains and Headgate skips, which declared it, and why Headgate skips that
	PolicyUnserved  plan.Code = "PolicyUnserved"  // where a policy was, and an object of a kind that no API serves, which is there now
	KindUnserved    plan.Code = "KindUnserved"    // where it was, and an object of a kind that no API serves, which is there now
	ReplacedInVain  plan.Code = "ReplacedInVain"  // where it was, and an object that cannot be applied, which is there now
)

// omitted retains objects of files that the commit still contains and Headgate skips on purpose: a Secret that is
// encrypted now, a file that is ignored now or became a symbolic link. Such an object was not removed.

// omitted retains what came from something that the commit still contains, and that is skipped.
func omitted(s plan.Step, c plan.Case) plan.Ruling {
	if c.Seen.Ends != plan.NoEnding || s.Deleting || s.OnlyFrees() {
		return allowed
	}
	if r := replacedInVain(s, c); r.Answer != plan.Allowed || s.Deactivates {
		return r
	}
	for _, l := range c.Want.Left {
		if l.ID == s.ID {
			return retained(LeftToPackage.With(l.Package, l.Origin))
		}
	}
	o, found := stillIn(c.Want.Omitted, s.ID, c.Seen.PathOf(s.ID), c.Seen.Space)
	if !found {
		return allowed
	}
	if o.ID == (manifest.ID{}) && c.Seen.PathOf(s.ID) == inventory.Anywhere {
		return retained(MayStillBeThere.With(o.Origin, string(o.Why)))
	}
	return retained(StillThere.With(o.Origin, string(o.Why)))
}

// stillIn returns the skipped document that declares an object, or the skipped file that it came from. path is "" if no
// file of the commit declared the object, and anywhere if the file is not known. space is the namespace of documents
// without one.
func stillIn(all []catalogue.Omitted, id manifest.ID, path, space string) (catalogue.Omitted, bool) {
	i := slices.IndexFunc(all, func(o catalogue.Omitted) bool {
		if o.ID == (manifest.ID{}) {
			return inventory.Covers(o.Origin.Path, path) || path == inventory.Anywhere && slices.Contains(unseen, o.Why)
		}
		return isOf(o.ID, id, space)
	})
	if i < 0 {
		return catalogue.Omitted{}, false
	}
	return all[i], true
}

// unseen are the reasons to skip a file without reading what it declares.
var unseen = []catalogue.Why{catalogue.Ignored, catalogue.Symlink, catalogue.Submodule, catalogue.Encrypted}

// isOf reports whether a document with this identity declares an object. It may leave the namespace
// out, and it may name one although the kind has none.
func isOf(document, object manifest.ID, space string) bool {
	switch {
	case object.Namespace == "":
		document.Namespace = ""
	case document.Namespace == "":
		document.Namespace = cmp.Or(space, object.Namespace) // between two commits, any may be meant
	}
	return document == object
}
