package guard

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// omitted retains an object whose document or file is still in the commit but is skipped: a Secret that is encrypted now, a file that
// became a symbolic link or moved into a directory that is not read. Such an object was not removed.
func omitted(s plan.Step, c draft.Case) plan.Ruling {
	if s.Deleting || s.OnlyFrees() || s.Deactivates {
		return allowed
	}
	for _, l := range c.Want.Left {
		if l.ID == s.ID {
			return retained(reason.LeftToPackage.With(l.Package, l.Origin))
		}
	}
	path := draft.PathOf(c.Seen.Ground, s.ID)
	o, found := stillIn(c.Want.Omitted, s.ID, path, c.Seen.Space)
	switch {
	case !found:
		return allowed
	case path == inventory.Anywhere && o.ID == (manifest.ID{}):
		return retained(reason.MayStillBeThere.With(o.Origin, string(o.Why)))
	case path == "", path == inventory.Anywhere, inventory.Covers(o.Origin.Path, path):
		return retained(reason.StillThere.With(o.Origin, string(o.Why)))
	}
	return retained(reason.StillElsewhere.With(path, o.Origin, string(o.Why)))
}

// stillIn returns the skipped document that declares an object, or the skipped file that it came from. path is "" if no file of the
// commit declared the object, and inventory.Anywhere if the file is not known. space is the namespace for documents without one.
func stillIn(all []catalogue.Omitted, id manifest.ID, path, space string) (catalogue.Omitted, bool) {
	i := slices.IndexFunc(all, func(o catalogue.Omitted) bool {
		if o.ID == (manifest.ID{}) {
			return inventory.Covers(o.Origin.Path, path) || path == inventory.Anywhere && slices.Contains(unseen, o.Why)
		}
		return isOf(o.ID, id, space)
	})
	if i < 0 {
		return declaring(all, id, space)
	}
	return all[i], true
}

// declaring returns the skipped file that declares an object, although the object came from another file: the file moved to where it is
// not read.
func declaring(all []catalogue.Omitted, id manifest.ID, space string) (catalogue.Omitted, bool) {
	for _, o := range all {
		declared, unread := o.Declares()
		if unread != nil || slices.ContainsFunc(declared, func(d manifest.ID) bool { return isOf(d, id, space) }) {
			return o, true
		}
	}
	return catalogue.Omitted{}, false
}

// unseen lists the reasons to skip a file without reading what it declares.
var unseen = []catalogue.Why{catalogue.Ignored, catalogue.Symlink, catalogue.Submodule, catalogue.Encrypted}

// isOf reports whether a document with this ID declares an object. The document may omit the namespace, and it may have one
// although the kind is cluster-scoped.
func isOf(document, object manifest.ID, space string) bool {
	switch {
	case object.Namespace == "":
		document.Namespace = ""
	case document.Namespace == "":
		document.Namespace = cmp.Or(space, object.Namespace) // between two commits, the default is not known, so any namespace matches
	}
	return document == object
}
