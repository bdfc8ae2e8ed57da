package lint

import (
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/check/kubernetes"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/crossplane/kinds"
	"headgate.dev/headgate/render/manifest"
)

// Checked checks the objects of a commit that matter as an API server would, without a cluster, against the kinds that the commit
// declares, those of Kubernetes and those of Crossplane. It leaves out the content of packages of registries, which a commit cannot
// change, and the CRDs that Headgate makes from definitions.
func Checked(want render.Desired, matters func(render.Object) bool) check.Report {
	var objects []render.Object
	home := render.HomesOf(want).Complete()
	for _, o := range append(slices.Clone(want.Objects), installed(want)...) {
		if isChecked(want, o) && matters(o) {
			o.ID = home(o.ID) // in the form for findings
			objects = append(objects, o)
		}
	}
	sources := sourcesOf(want)
	r := check.Check(objects, sources...)
	r.Add(check.Compositions(compositions(want, matters), sources...))
	r.Findings = append(r.Findings, check.Check(schemas(want, matters), sources...).Findings...)
	for i, f := range r.Findings {
		r.Findings[i] = want.Placed(f)
	}
	return r
}

// schemas returns the CRDs and XRDs that the commit names for checks. They are not objects of the commit, so they are not counted.
func schemas(want render.Desired, matters func(render.Object) bool) []render.Object {
	return slices.DeleteFunc(slices.Clone(want.Schemas), func(o render.Object) bool { return !matters(o) })
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
	found := check.Updates(atHome(before), atHome(want), sourcesOf(want)...)
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
	return !pulled && (o.Definition == "" || crossplane.IsMRD(o.ID))
}

// sourcesOf returns the kinds that the objects of a commit are checked against. A CRD in the commit comes before Crossplane's own.
func sourcesOf(want render.Desired) []check.Source {
	return []check.Source{check.Declared(want), kubernetes.Of(want.Kubernetes), kinds.Of(want.Crossplane)}
}

// installed returns the objects of Crossplane that it installs with packages, such as the Compositions of a Configuration.
func installed(want render.Desired) (objects []render.Object) {
	for _, l := range want.Left {
		if !crossplane.Serves(l.ID.Group) {
			continue
		}
		if o, err := l.Object(); err == nil { // render reports an error
			objects = append(objects, o)
		}
	}
	return objects
}

// Everything is for Checked: every object matters.
func Everything(render.Object) bool { return true }
