package lint

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/check/kubernetes"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// Checked checks the objects of a commit that matter as an API server would, without a cluster, against the kinds that the commit
// declares and those of Kubernetes. It leaves out the kinds of Crossplane, the content of packages of registries, which a commit cannot
// change, and what Headgate makes of definitions.
func Checked(want render.Desired, matters func(render.Object) bool) check.Report {
	var objects []render.Object
	home := render.HomesOf(want).Complete()
	for _, o := range want.Objects {
		if isChecked(want, o) && matters(o) {
			o.ID = home(o.ID) // in the form for findings
			objects = append(objects, o)
		}
	}
	r := check.Check(objects, check.Declared(want), kubernetes.Of(want.Kubernetes))
	r.Findings = append(r.Findings, check.Compositions(compositions(want, matters), check.Declared(want))...)
	for i, f := range r.Findings {
		r.Findings[i] = want.Placed(f)
	}
	return r
}

// compositions returns the Compositions of a commit that matter, with those that Crossplane installs with packages of the tree.
func compositions(want render.Desired, matters func(render.Object) bool) []render.Object {
	all := slices.Clone(want.Objects)
	for _, l := range want.Left {
		if l.Composition != nil {
			all = append(all, *l.Composition)
		}
	}
	return slices.DeleteFunc(all, func(o render.Object) bool {
		_, pulled := want.Within(o.Origin)
		return pulled || !crossplane.IsComposition(o.ID) || !matters(o)
	})
}

// Updated checks the updates of a commit's objects from those of another one, as an API server would.
func Updated(before, want render.Desired) []manifest.Finding {
	found := check.Updates(atHome(before), atHome(want), check.Declared(want), kubernetes.Of(want.Kubernetes))
	for i, f := range found {
		found[i] = want.Placed(f)
	}
	return found
}

// atHome returns the objects of a commit with their namespaces in a cluster.
func atHome(of render.Desired) []render.Object {
	home, all := render.HomesOf(of).Complete(), slices.Clone(of.Objects)
	for i := range all {
		all[i].ID = home(all[i].ID)
	}
	return all
}

// isChecked reports whether Checked checks an object.
func isChecked(want render.Desired, o render.Object) bool {
	_, pulled := want.Within(o.Origin)
	return !pulled && o.Definition == "" && !crossplane.Serves(o.ID.Group)
}

// Everything is for Checked: every object matters.
func Everything(render.Object) bool { return true }
