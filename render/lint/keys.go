package lint

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// RuleMisread is the rule for keys that YAML does not read as they are written.
const RuleMisread = "key-misread"

// Misread finds unquoted keys of objects and definitions that the API server gets as another text, such as y. Packages of registries are
// left out, because a commit cannot change them. The findings are sorted.
func Misread(want render.Desired) []manifest.Finding {
	asks := make([]func() []manifest.MisreadKey, 0, len(want.Objects)+len(want.Definitions))
	origins, objects := make([]manifest.Origin, 0, cap(asks)), make([]manifest.ID, 0, cap(asks))
	for _, o := range want.Objects {
		if _, pulled := want.Within(o.Origin); !pulled {
			asks, origins, objects = append(asks, o.MisreadKeys), append(origins, o.Origin), append(objects, o.ID)
		}
	}
	for _, d := range want.Definitions {
		if d.Document != nil && !d.Package.Pulled() {
			asks, origins, objects = append(asks, d.Document.MisreadKeys), append(origins, d.Origin()), append(objects, crossplane.MRD(d.Name))
		}
	}
	each := make([][]manifest.MisreadKey, len(asks))
	manifest.Each(len(asks), func(i int) { each[i] = asks[i]() })
	var found []manifest.Finding
	for i, keys := range each {
		for _, k := range keys {
			found = append(found, manifest.Finding{
				Rule: RuleMisread, Severity: manifest.Warning, Origin: manifest.Origin{Path: origins[i].Path, Line: k.Line}, About: manifest.About{Object: objects[i], Subject: k.Written},
				Message: fmt.Sprintf("the unquoted key %s means %s", k.Written, k.Means), Fix: fmt.Sprintf("quote it: %q", k.Written),
			})
		}
	}
	slices.SortFunc(found, manifest.Finding.Compare)
	return slices.Compact(found)
}
