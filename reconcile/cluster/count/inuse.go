package count

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// composites counts the composite resources and claims of an XRD.
func (c *Counter) composites(ctx context.Context, id manifest.ID) (question.Counted, error) {
	u, err := c.Existing(ctx, id)
	if err != nil || u == nil {
		return question.Counted{}, err
	}
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	var t tally
	for _, names := range []string{"names", "claimNames"} {
		plural, ok, _ := unstructured.NestedString(u.Object, "spec", names, "plural")
		if !ok {
			continue
		}
		a, err := c.instances(ctx, plural+"."+group)
		if err != nil {
			return question.Counted{}, err
		}
		t.addAll(a)
	}
	return question.Counted(t), nil
}

// composedBy counts objects that name a Composition or would select it: composite resources, claims without a composite
// resource, and XRDs.
func (c *Counter) composedBy(ctx context.Context, id manifest.ID) (question.Counted, error) {
	composition, err := c.Existing(ctx, id)
	if err != nil || composition == nil {
		return question.Counted{}, err
	}
	var t tally
	composite := compositeType(composition)
	kinds, err := c.compositeKinds(ctx, composite, func(xrd *unstructured.Unstructured) {
		for _, ref := range []string{"defaultCompositionRef", "enforcedCompositionRef"} {
			if name, _, _ := unstructured.NestedString(xrd.Object, "spec", ref, "name"); name == id.Name {
				t.add(manifest.IDOf(xrd))
				return
			}
		}
	})
	if err != nil {
		return question.Counted{}, err
	}
	for _, gk := range kinds {
		err := c.count(ctx, gk, &t, func(o *unstructured.Unstructured) bool {
			// For a claim with a composite resource, that is counted instead.
			_, composes, _ := unstructured.NestedMap(o.Object, "spec", "resourceRef")
			return !composes && composedOf(o, composition)
		})
		if err != nil {
			return question.Counted{}, err
		}
	}
	return question.Counted(t), nil
}

// compositeType returns the kind of composite resource that a Composition or CompositionRevision is for.
func compositeType(composition *unstructured.Unstructured) schema.GroupKind {
	apiVersion, _, _ := unstructured.NestedString(composition.Object, "spec", "compositeTypeRef", "apiVersion")
	kind, _, _ := unstructured.NestedString(composition.Object, "spec", "compositeTypeRef", "kind")
	group, _, _ := strings.Cut(apiVersion, "/")
	return schema.GroupKind{Group: group, Kind: kind}
}

// compositeKinds returns the served kinds of a composite resource and its claims. It calls show with the XRD. If an XRD exists but
// its kind is not served, there may be hidden objects, so that is an error.
func (c *Counter) compositeKinds(ctx context.Context, composite schema.GroupKind, show func(xrd *unstructured.Unstructured)) ([]schema.GroupKind, error) {
	var kinds []schema.GroupKind
	err := c.Each(ctx, crossplane.KindXRD, func(xrd *unstructured.Unstructured) {
		group, _, _ := unstructured.NestedString(xrd.Object, "spec", "group")
		if kind, _, _ := unstructured.NestedString(xrd.Object, "spec", "names", "kind"); group != composite.Group || kind != composite.Kind {
			return
		}
		kinds = append(kinds, composite)
		if claim, _, _ := unstructured.NestedString(xrd.Object, "spec", "claimNames", "kind"); claim != "" {
			kinds = append(kinds, schema.GroupKind{Group: group, Kind: claim})
		}
		if show != nil {
			show(xrd)
		}
	})
	if err != nil {
		return nil, err
	}
	if _, served := c.Surface.Kinds[composite]; served && len(kinds) == 0 {
		kinds = append(kinds, composite)
	}
	for _, gk := range kinds {
		if _, err := c.Surface.Resource(gk, ""); err != nil {
			return nil, cmp.Or(c.Surface.Known(gk), err)
		}
	}
	return kinds, c.Surface.Known(composite)
}

// ofComposite returns a field that configures how a composite resource is composed. Since Crossplane v2, these fields are below
// spec.crossplane.
func ofComposite(o *unstructured.Unstructured, ref, key string) string {
	if s, ok, _ := unstructured.NestedString(o.Object, "spec", "crossplane", ref, key); ok {
		return s
	}
	s, _, _ := unstructured.NestedString(o.Object, "spec", ref, key)
	return s
}

// composedOf reports whether a composite resource uses a Composition or, if Crossplane has not selected one yet, may
// use it.
func composedOf(o, composition *unstructured.Unstructured) bool {
	if name := ofComposite(o, "compositionRef", "name"); name != "" {
		return name == composition.GetName()
	}
	for _, path := range [][]string{{"spec", "crossplane"}, {"spec"}} {
		want, selects, _ := unstructured.NestedStringMap(o.Object, append(slices.Clone(path), "compositionSelector", "matchLabels")...)
		if selects {
			return labels.SelectorFromSet(want).Matches(labels.Set(composition.GetLabels()))
		}
	}
	return true
}

// runBy counts everything that runs a Function: Compositions, composite resources that stay with an older revision of one,
// operations, and packages that depend on the Function.
func (c *Counter) runBy(ctx context.Context, id manifest.ID) (question.Counted, error) {
	var t tally
	named := map[string]bool{} // Compositions
	if err := c.Each(ctx, crossplane.KindComposition, func(o *unstructured.Unstructured) {
		if runs(o, id.Name, "spec", "pipeline") {
			named[o.GetName()] = true
			t.add(manifest.IDOf(o))
		}
	}); err != nil {
		return question.Counted{}, err
	}
	for _, count := range []func(context.Context, manifest.ID, map[string]bool, *tally) error{c.pinned, c.operations, c.depending} {
		if err := count(ctx, id, named, &t); err != nil {
			return question.Counted{}, err
		}
	}
	return question.Counted(t), nil
}

// runs reports whether a pipeline names a Function.
func runs(o *unstructured.Unstructured, function string, path ...string) bool {
	pipeline, _, _ := unstructured.NestedSlice(o.Object, path...)
	return slices.ContainsFunc(pipeline, func(step any) bool {
		m, _ := step.(map[string]any)
		name, _, _ := unstructured.NestedString(m, "functionRef", "name")
		return name == function
	})
}

// pinned counts the composite resources that stay with a revision that runs a Function, although its Composition no longer does.
func (c *Counter) pinned(ctx context.Context, function manifest.ID, named map[string]bool, t *tally) error {
	revisions := map[schema.GroupKind]map[string]bool{}
	if err := c.Each(ctx, crossplane.KindCompositionRevision, func(o *unstructured.Unstructured) {
		if named[o.GetLabels()[crossplane.CompositionLabel]] || !runs(o, function.Name, "spec", "pipeline") {
			return
		}
		composite := compositeType(o)
		if revisions[composite] == nil {
			revisions[composite] = map[string]bool{}
		}
		revisions[composite][o.GetName()] = true
	}); err != nil {
		return err
	}
	for composite, names := range revisions {
		kinds, err := c.compositeKinds(ctx, composite, nil)
		if err != nil {
			return err
		}
		if len(kinds) == 0 {
			continue
		}
		if err := c.count(ctx, composite, t, func(o *unstructured.Unstructured) bool {
			return names[ofComposite(o, "compositionRevisionRef", "name")]
		}); err != nil {
			return err
		}
	}
	return nil
}

// operations counts the unfinished operations that run a Function.
func (c *Counter) operations(ctx context.Context, function manifest.ID, _ map[string]bool, t *tally) error {
	for kind, path := range map[schema.GroupKind][]string{
		crossplane.KindOperation:      {"spec", "pipeline"},
		crossplane.KindCronOperation:  {"spec", "operationTemplate", "spec", "pipeline"},
		crossplane.KindWatchOperation: {"spec", "operationTemplate", "spec", "pipeline"},
	} {
		if err := c.Each(ctx, kind, func(o *unstructured.Unstructured) {
			if over := crossplane.Condition(o, "Succeeded").Status; over != metav1.ConditionTrue && over != metav1.ConditionFalse && runs(o, function.Name, path...) {
				t.add(manifest.IDOf(o))
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// depending counts the packages that depend on a Function, according to Crossplane's lock.
func (c *Counter) depending(ctx context.Context, function manifest.ID, _ map[string]bool, t *tally) error {
	revisions, err := c.Served(ctx, crossplane.RevisionKind(function.Kind))
	if err != nil {
		return err
	}
	own := map[string]bool{}
	for _, r := range revisions {
		own[r.Name] = slices.ContainsFunc(r.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == function.Kind && o.Name == function.Name })
	}
	return c.Each(ctx, crossplane.KindLock, func(lock *unstructured.Unstructured) {
		packages, _, _ := unstructured.NestedSlice(lock.Object, "packages")
		sources := map[string]bool{}
		for _, item := range packages {
			p, _ := item.(map[string]any)
			if name, _ := p["name"].(string); own[name] {
				sources[fmt.Sprint(p["source"])] = true
			}
		}
		for _, item := range packages {
			p, _ := item.(map[string]any)
			name, _ := p["name"].(string)
			needs, _, _ := unstructured.NestedSlice(p, "dependencies")
			if !own[name] && slices.ContainsFunc(needs, func(item any) bool { d, _ := item.(map[string]any); return sources[fmt.Sprint(d["package"])] }) {
				kind, _ := p["kind"].(string)
				kind = cmp.Or(kind, fmt.Sprint(p["type"]))
				t.add(crossplane.Revision(kind, name))
			}
		}
	})
}

// packaged counts objects that are in use and would be deleted with a package. For a Provider, these are the objects of its kinds,
// including ProviderConfigs. For a Configuration, these are the composite resources and claims of its XRDs, and those that its
// Compositions compose.
func (c *Counter) packaged(ctx context.Context, id manifest.ID) (question.Counted, error) {
	o, err := c.Get(ctx, c.Surface, id)
	if apierrors.IsNotFound(err) {
		return question.Counted{}, nil
	}
	if err != nil {
		return question.Counted{}, err
	}
	owners := map[types.UID]bool{o.UID: true}
	owned := map[schema.GroupKind][]manifest.ID{}
	// Each kind owns objects of the kinds after it.
	for _, gk := range []schema.GroupKind{
		crossplane.RevisionKind(id.Kind), crossplane.KindMRD, crossplane.KindXRD, crossplane.KindComposition, api.GroupKind(plan.CRD("")),
	} {
		objects, err := c.Served(ctx, gk)
		if err != nil {
			return question.Counted{}, err
		}
		for _, o := range objects {
			if ownedByAny(o, owners) {
				owners[o.UID] = true
				owned[gk] = append(owned[gk], api.IDOf(o))
			}
		}
	}
	crds := map[string]bool{}
	for _, crd := range owned[api.GroupKind(plan.CRD(""))] {
		if !strings.Contains(crd.Name, "providerconfigusages.") { // usages are deleted with the objects that are counted
			crds[crd.Name] = true
		}
	}
	t, err := c.opened(ctx, slices.Sorted(maps.Keys(crds)))
	if err != nil {
		return question.Counted{}, err
	}
	counted := map[manifest.ID]bool{}
	for _, id := range t.These {
		counted[id] = true
	}
	for _, composition := range owned[crossplane.KindComposition] {
		a, err := c.composedBy(ctx, composition)
		if err != nil {
			return question.Counted{}, err
		}
		for _, id := range a.These { // count each once; the package's own XRDs are deleted with it
			if k := c.Surface.Kinds[api.GroupKind(id)]; !counted[id] && !crds[k.Resource+"."+id.Group] && !slices.Contains(owned[crossplane.KindXRD], id) {
				counted[id] = true
				t.add(id)
			}
		}
	}
	return question.Counted(t), nil
}

// opened counts the objects of the named CRDs.
func (c *Counter) opened(ctx context.Context, crds []string) (tally, error) {
	kinds := make(map[string]schema.GroupKind, len(c.Surface.Kinds))
	for gk, k := range c.Surface.Kinds {
		kinds[k.Resource+"."+gk.Group] = gk
	}
	counts, err := api.InParallel(ctx, c.Concurrency, crds, func(ctx context.Context, name string) (question.Counted, error) {
		gk, served := kinds[name]
		if !served { // it may be served in another version, or discovery lags behind
			return c.instances(ctx, name)
		}
		// Without objects, the version does not matter, so do not read the CRD: a provider may have two thousand CRDs of a hundred
		// kilobytes each.
		var a question.Counted
		err := c.Reading(ctx, c.Surface, gk, func(gvr schema.GroupVersionResource) (err error) {
			a, err = c.some(ctx, gvr, gk.Kind)
			return err
		})
		return a, err
	})
	var t tally
	for _, a := range counts {
		t.addAll(a)
	}
	return t, err
}

func ownedByAny(o metav1.Object, owners map[types.UID]bool) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return owners[r.UID] })
}

// configUsages counts the users of a ProviderConfig, according to the usage objects of its provider.
func (c *Counter) configUsages(ctx context.Context, id manifest.ID) (question.Counted, error) {
	var t tally
	counted := false
	for _, gk := range c.Surface.Listable {
		if gk.Group != id.Group || !strings.HasSuffix(gk.Kind, "ProviderConfigUsage") {
			continue
		}
		counted = true
		if err := c.count(ctx, gk, &t, func(o *unstructured.Unstructured) bool { return uses(o, id) }); err != nil {
			return question.Counted{}, err
		}
	}
	if !counted {
		return question.Counted{}, fmt.Errorf("the group %s serves no ProviderConfigUsage", id.Group)
	}
	return question.Counted(t), nil
}

// uses reports whether a usage refers to a ProviderConfig. If the usage names no kind, the usage's own kind implies it.
func uses(usage *unstructured.Unstructured, id manifest.ID) bool {
	ref, ok, _ := unstructured.NestedMap(usage.Object, "providerConfigRef")
	if !ok {
		ref, _, _ = unstructured.NestedMap(usage.Object, "spec", "providerConfigRef")
	}
	kind, _ := ref["kind"].(string)
	if kind == "" {
		kind = strings.TrimSuffix(usage.GetKind(), "Usage")
	}
	return ref["name"] == id.Name && kind == id.Kind && (id.Namespace == "" || usage.GetNamespace() == id.Namespace)
}
