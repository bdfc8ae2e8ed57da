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

// NewReplacement returns the effect that replaces a live definition, CRD or XRD by that of a package. It returns false
// if that breaks nothing: a pass looks only at what breaks. It keeps both objects without their schemas, because it is
// remembered while a guard holds the update of the package.
func NewReplacement(live, after *unstructured.Unstructured) (Effect, bool) {
	difference := compareReplaced(live, after)
	if len(difference.Breaking()) == 0 && (!HasWebhook(live) || HasWebhook(after)) {
		return Effect{}, false
	}
	id := manifest.IDOf(live)
	return Effect{Kind: Install, On: id, Change: &Step{
		Action: Update, ID: id, Write: Write{Live: withoutSchemas(live), After: withoutSchemas(after), lean: true, schema: func() schema.Difference { return difference }}}}, true
}

// MadeBy returns the effect as one of the step on an object of the commit, with the definition as it will be, with its
// schemas; nil if they cannot be had.
func (e Effect) MadeBy(of manifest.ID, after FullDefinition) Effect {
	s := *e.Change
	s.whole = after
	e.Of, e.Change = of, &s
	return e
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

// Replaces reports whether an update of a package has Crossplane install another version of it: at
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
func Installs(want render.Desired, by manifest.ID) (definitions []render.DecidedDefinition, others []render.Left, digest string) {
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
