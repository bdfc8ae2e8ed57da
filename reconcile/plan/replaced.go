package plan

import (
	"maps"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Crossplane installs what a package holds, so no step of ours says what a new version of it makes of
// the definitions that are there. This does: what is live, against what was pulled for the commit.

// A Replacement is a definition, a CRD or an XRD that a package is going to replace, where that
// breaks something. Its objects are without their schemas.
type Replacement struct {
	ID          manifest.ID
	Live, After *unstructured.Unstructured
	Whole       Whole // After with its schemas; nil where they cannot be had
	Difference  schema.Difference
}

// NewReplacement is what replacing an object comes to; false is that it breaks nobody.
func NewReplacement(live, after *unstructured.Unstructured) (Replacement, bool) {
	return replacement(live, after, compareReplaced(live, after))
}

func replacement(live, after *unstructured.Unstructured, difference schema.Difference) (Replacement, bool) {
	if len(difference.Breaking()) == 0 && (!HasWebhook(live) || HasWebhook(after)) {
		return Replacement{}, false
	}
	return Replacement{ID: manifest.IDOf(live), Live: withoutSchemas(live), After: withoutSchemas(after), Difference: difference}, true
}

// Step returns the update that the replacement is, for guards.
func (r Replacement) Step() Step {
	return Step{Action: Update, ID: r.ID, Live: r.Live, After: r.After, lean: true, whole: r.Whole, schema: func() schema.Difference { return r.Difference }}
}

// withoutSchemas is a definition without what is most of it.
func withoutSchemas(u *unstructured.Unstructured) *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec")
	less := map[string]any{}
	if all, ok := spec.(map[string]any); ok {
		maps.Copy(less, all)
	}
	versions, _ := less["versions"].([]any)
	plain := make([]any, len(versions))
	for i, v := range versions {
		version, _ := v.(map[string]any)
		plain[i] = map[string]any{"name": version["name"], "served": version["served"], "storage": version["storage"], "referenceable": version["referenceable"]}
	}
	less["versions"] = plain
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": map[string]any{"name": u.GetName()},
		"spec": less, "status": u.Object["status"],
	}}
}

// Replaces says whether an update of a package has Crossplane install another version of it: at
// once, and not once a person lets it in.
func (t Trial) Replaces() bool {
	if t.Live == nil || t.After == nil {
		return false
	}
	said := func(u *unstructured.Unstructured, field string) string {
		s, _, _ := unstructured.NestedString(u.Object, "spec", field)
		return s
	}
	const by = "revisionActivationPolicy"
	return said(t.After, by) != manual && (said(t.Live, "package") != said(t.After, "package") || said(t.Live, by) == manual)
}

const manual = "Manual"

// Installs are the definitions that a package of a registry holds which an object of the commit
// names, and the other kinds that come with it. Crossplane leaves dependencies as they are.
func Installs(want render.Desired, by manifest.ID) (definitions []render.Definition, others []render.Left, digest string) {
	for _, of := range want.Beside {
		if of.Package.Named == by {
			declare := slices.DeleteFunc(slices.Clone(of.Left), func(o render.Left) bool { return !DeclaresKind(o.ID) })
			return of.Definitions, declare, of.Package.Digest
		}
	}
	i := slices.IndexFunc(want.Packages, func(p catalogue.Package) bool { return p.Pulled() && p.Named == by })
	if i < 0 {
		return nil, nil, ""
	}
	for _, d := range want.Definitions {
		if d.Package != nil && d.Package.Directory == want.Packages[i].Directory {
			definitions = append(definitions, d)
		}
	}
	for _, o := range want.Left {
		if o.Package == want.Packages[i].Directory && DeclaresKind(o.ID) {
			others = append(others, o)
		}
	}
	return definitions, others, want.Packages[i].Digest
}
