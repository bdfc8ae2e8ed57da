package facts

import (
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NewReplacement returns the effect of replacing a live definition, CRD or XRD with that of a package. It returns false if that
// breaks nothing, because a pass only considers breaking effects. The effect keeps both objects without their schemas, because it
// is remembered while a guard holds the update of the package.
func NewReplacement(live, after *unstructured.Unstructured) (plan.Effect, bool) {
	difference := compareReplaced(live, after)
	if len(difference.Breaking()) == 0 && (!HasWebhook(live) || HasWebhook(after)) {
		return plan.Effect{}, false
	}
	return replacement(live, after, difference), true
}

// NewCopiedReplacement is NewReplacement for the copy of a package whose image is not available. The copy may lack the conversion
// webhook of the image, so the conversion stays unchanged.
func NewCopiedReplacement(live, after *unstructured.Unstructured) (plan.Effect, bool) {
	difference, _, _ := compareReplaced(live, after).Unconverting()
	if len(difference.Breaking()) == 0 {
		return plan.Effect{}, false
	}
	return replacement(live, AsConverted(after, live), difference), true
}

// AsConverted returns a definition with the conversion of another one.
func AsConverted(u, of *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "spec", "conversion")
	if conversion, has, _ := unstructured.NestedMap(of.Object, "spec", "conversion"); has {
		_ = unstructured.SetNestedMap(u.Object, conversion, "spec", "conversion") // without a spec, the comparison fails, too
	}
	return u
}

// NewRedeclaration returns the effect of replacing an inactive definition with another one. It returns false if that breaks
// nothing.
func NewRedeclaration(id manifest.ID, difference schema.Difference) (plan.Effect, bool) {
	write := plan.Write{Difference: func() schema.Difference { return difference }}
	return redeclared(plan.Step{Action: plan.Update, ID: id, Cause: plan.Commit, Definition: true, Write: write}), len(difference.Breaking()) > 0
}

// Undeclared returns the effect on an inactive definition that was removed from the commit.
func Undeclared(id manifest.ID) plan.Effect {
	return redeclared(plan.Step{Action: plan.Prune, ID: id, Cause: plan.Commit, Definition: true})
}

func redeclared(change plan.Step) plan.Effect {
	return plan.Effect{Kind: plan.Redeclare, On: change.ID, Change: &change}
}

func replacement(live, after *unstructured.Unstructured, difference schema.Difference) plan.Effect {
	id := manifest.IDOf(live)
	write := plan.Write{Live: withoutSchemas(live), After: withoutSchemas(after), Lean: true, Difference: func() schema.Difference { return difference }}
	return plan.Effect{Kind: plan.Install, On: id, Change: &plan.Step{Action: plan.Update, ID: id, Write: write}}
}

// Replacement returns the write that replaces a definition, CRD or XRD with that of a package. Both may lack the schemas that are
// equal; whole is the new one with its schemas, and difference that of both with their schemas.
func Replacement(live, after *unstructured.Unstructured, difference schema.Difference, whole plan.FullDefinition) plan.Write {
	if _, says, _ := unstructured.NestedFieldNoCopy(after.Object, "spec", "scope"); !says { // the scope stays
		difference.Changes = slices.DeleteFunc(slices.Clone(difference.Changes), func(c plan.SchemaChange) bool { return c.Rule == schema.Scope })
	}
	return plan.Write{Live: live, After: after, Whole: whole, Difference: func() schema.Difference { return difference }}
}

// compareReplaced compares the live object with the one in a package. It fills in a missing scope, as the API server does.
func compareReplaced(live, after *unstructured.Unstructured) schema.Difference {
	return schema.Compare(live, plan.WithScope(after, live))
}

// withoutSchemas returns a definition without its schemas, which are most of it.
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

// Replaces reports whether an update of a package makes Crossplane install another version immediately, without waiting for a
// person to activate it.
func (t Trial) Replaces() bool {
	if t.Live == nil || t.After == nil {
		return false
	}
	specOf := func(u *unstructured.Unstructured, field string) string {
		s, _, _ := unstructured.NestedString(u.Object, "spec", field)
		return s
	}
	const by = "revisionActivationPolicy"
	return specOf(t.After, by) != manual && (specOf(t.Live, "package") != specOf(t.After, "package") || specOf(t.Live, by) == manual)
}

const manual = "Manual"
