package lint

import (
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// Checked checks the objects of a commit that matter as an API server would, without a cluster, against the kinds that the commit
// declares. It leaves out the kinds of Kubernetes and of Crossplane, the content of packages of registries, which a commit cannot
// change, and what Headgate makes of definitions.
func Checked(want render.Desired, matters func(render.Object) bool) check.Report {
	var objects []render.Object
	for _, o := range want.Objects {
		if _, pulled := want.Within(o.Origin); !pulled && o.Definition == "" && !ofServers(o.ID.Group) && matters(o) {
			objects = append(objects, o)
		}
	}
	r := check.Check(objects, check.Declared(want))
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
	found := check.Updates(before.Objects, want.Objects, check.Declared(want))
	for i, f := range found {
		found[i] = want.Placed(f)
	}
	return found
}

// ofServers reports whether a group is one of Kubernetes or of Crossplane.
func ofServers(group string) bool {
	if crossplane.Serves(group) || !strings.Contains(group, ".") {
		return true
	}
	name, kubernetes := strings.CutSuffix(group, ".k8s.io")
	return kubernetes && (!strings.Contains(name, ".") || name == "rbac.authorization" || name == "flowcontrol.apiserver")
}

// Everything is for Checked: every object matters.
func Everything(render.Object) bool { return true }
