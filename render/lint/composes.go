package lint

import (
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/uses"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A composed is an object that a Composition makes, as far as it can be read.
type composed struct {
	apiVersion, kind string
	content          map[string]any // nil in a template
	patches          []any
	at               manifest.Origin
	path             []any // of content
}

// composedKinds returns the kinds that Compositions make, as far as they can be read.
func composedKinds(objects []render.Object) map[schema.GroupKind]bool {
	all := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if !crossplane.IsComposition(o.ID) {
			continue
		}
		content, err := o.Content()
		if err != nil {
			continue
		}
		spec, _ := content.Object["spec"].(map[string]any)
		for _, c := range composedBy(o, spec) {
			if gv, err := schema.ParseGroupVersion(c.apiVersion); err == nil {
				all[schema.GroupKind{Group: gv.Group, Kind: c.kind}] = true
			}
		}
	}
	return all
}

// composition finds what a Composition composes that its composite resource cannot, and a composite kind that is not there.
func (r *references) composition(o render.Object, content map[string]any) {
	spec, _ := content["spec"].(map[string]any)
	of := r.compositeOf(o, spec)
	for _, c := range composedBy(o, spec) {
		gv, err := schema.ParseGroupVersion(c.apiVersion)
		if err != nil {
			continue
		}
		gk := schema.GroupKind{Group: gv.Group, Kind: c.kind}
		k, known := r.kinds[gk]
		if known && k.clusterScoped && of.composite && !of.clusterScoped {
			r.add(RuleScope, manifest.Warning, c.at, manifest.About{Object: o.ID, Subject: gk.String()}, "compose a namespaced kind, or set scope: Cluster in "+of.by.String(),
				"%s composes %s %s, which is cluster-scoped, and its composite resource is namespaced: Crossplane refuses that", r.home(o.ID), gk.Kind, gk.Group)
		}
		if c.content != nil && (k.managed || !known && isNamespacedGroup(gv.Group)) {
			r.managedFields(o, gk, c.content, c.patches, c.path)
		}
	}
}

// compositeOf returns the kind of the composite resources of a Composition. It reports a kind or a version that no XRD declares.
func (r *references) compositeOf(o render.Object, spec map[string]any) kind {
	ref, _ := spec["compositeTypeRef"].(map[string]any)
	apiVersion, _ := ref["apiVersion"].(string)
	name, _ := ref["kind"].(string)
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || name == "" || gv.Group == "" {
		return kind{}
	}
	k, known := r.kinds[schema.GroupKind{Group: gv.Group, Kind: name}]
	at := func(key string) manifest.Origin { return o.OriginOf("spec", "compositeTypeRef", key) }
	about := func(key, subject string) manifest.About {
		return manifest.About{Object: o.ID, Field: "spec.compositeTypeRef." + key, Subject: subject}
	}
	switch {
	case known && k.composite && !k.claim:
		if served := k.served(); !slices.Contains(served, gv.Version) {
			r.add(noSuchVersion, manifest.Warning, at("apiVersion"), about("apiVersion", apiVersion+" "+name), "use "+strings.Join(served, " or "), "%s is of %s in version %s, which %s does not serve", r.home(o.ID), name, gv.Version, k.by)
		}
		return k
	case known && k.claim:
		r.add(RuleNotThere, manifest.Warning, at("kind"), about("kind", name), "name the composite kind of "+k.by.String(), "%s is of %s, which is a claim", r.home(o.ID), name)
		return kind{}
	}
	r.noComposite(o, gv.Group, name, at("kind"))
	return kind{}
}

// noComposite reports a composite kind that no XRD of the commit declares.
func (r *references) noComposite(o render.Object, group, name string, at manifest.Origin) {
	var inGroup, all []string
	for gk, k := range r.kinds {
		if !k.composite || k.claim {
			continue
		}
		all = append(all, gk.Kind)
		if gk.Group == group {
			inGroup = append(inGroup, gk.Kind)
		}
	}
	if len(all) == 0 || len(inGroup) == 0 && r.mayBring(crossplane.KindXRD) {
		r.absent[crossplane.KindXRD] = append(r.absent[crossplane.KindXRD], absent{o.ID, "is of " + name + " in " + group, at})
		return
	}
	severity := manifest.Warning
	if r.mayBring(crossplane.KindXRD) {
		severity = manifest.Note
	}
	fix := "declare it, or correct the kind"
	slices.Sort(inGroup)
	if near := manifest.Meant(name, inGroup); near != "" {
		fix = "did you mean " + near + "?"
	} else if len(inGroup) > 0 {
		fix = "the group has " + some(inGroup)
	}
	r.add(RuleNotThere, severity, at, manifest.About{Object: o.ID, Field: "spec.compositeTypeRef.kind", Subject: name + "." + group}, fix, "%s is of %s in %s, which no CompositeResourceDefinition of the commit declares", r.home(o.ID), name, group)
}

// composedBy returns the objects that a Composition makes: bases, and the top level of inline templates.
func composedBy(o render.Object, spec map[string]any) []composed {
	all := bases(o, spec["resources"], "spec", "resources")
	steps, _ := spec["pipeline"].([]any)
	for i, step := range steps {
		step, _ := step.(map[string]any)
		input, _ := step["input"].(map[string]any)
		all = append(all, bases(o, input["resources"], "spec", "pipeline", i, "input", "resources")...)
		if inline, _ := input["inline"].(map[string]any); input["kind"] == "GoTemplate" {
			text, _ := inline["template"].(string)
			all = append(all, inTemplate(o, text, o.OriginOf("spec", "pipeline", i, "input", "inline", "template"))...)
		}
	}
	return all
}

// bases returns the bases of a list of resources.
func bases(o render.Object, resources any, path ...any) []composed {
	list, _ := resources.([]any)
	var all []composed
	for i, resource := range list {
		resource, _ := resource.(map[string]any)
		base, _ := resource["base"].(map[string]any)
		version, _ := base["apiVersion"].(string)
		name, _ := base["kind"].(string)
		if version == "" || name == "" {
			continue
		}
		patches, _ := resource["patches"].([]any)
		at := append(slices.Clone(path), i, "base")
		all = append(all, composed{version, name, base, patches, o.OriginOf(append(slices.Clone(at), "kind")...), at})
	}
	return all
}

// inTemplate returns the objects at the top level of a template.
func inTemplate(o render.Object, text string, at manifest.Origin) []composed {
	if strings.Contains(text, "\n") && at != o.Origin {
		at.Line++ // the text begins on the line after its key
	}
	var all []composed
	for _, u := range uses.InTemplate(text) {
		if u.Indent > 0 || u.Computed() {
			continue
		}
		origin := at
		if at != o.Origin {
			origin.Line += u.Line
		}
		all = append(all, composed{apiVersion: u.APIVersion, kind: u.Kind, at: origin})
	}
	return all
}

// managed finds what a managed resource of the commit names.
func (r *references) managed(o render.Object, content map[string]any) {
	r.managedFields(o, o.ID.GroupKind(), content, nil, nil)
}

// managedFields judges the fields of a managed resource, or of the base of one.
func (r *references) managedFields(o render.Object, gk schema.GroupKind, content map[string]any, patches []any, path []any) {
	spec, _ := content["spec"].(map[string]any)
	at := func(keys ...any) []any { return slices.Concat(path, []any{"spec"}, keys) }
	if spec["deletionPolicy"] != nil && isNamespacedGroup(gk.Group) {
		r.add(RulePolicy, manifest.Warning, o.OriginOf(at("deletionPolicy")...), manifest.About{Object: o.ID, Field: "spec.deletionPolicy", Subject: gk.String()}, `use managementPolicies, such as ["Observe", "Create", "Update", "LateInitialize"] to keep the external resource`,
			"%s sets spec.deletionPolicy of %s, and namespaced managed resources have no such field", r.home(o.ID), gk.Kind)
	}
	ref, _ := spec["providerConfigRef"].(map[string]any)
	name, _ := ref["name"].(string)
	if name == "" || isPatched(patches, "spec.providerConfigRef") {
		return
	}
	to := "ProviderConfig"
	if isNamespacedGroup(gk.Group) {
		to = "ClusterProviderConfig"
	}
	if given, _ := ref["kind"].(string); given != "" {
		to = given
	}
	config := r.configOf(gk.Group, to)
	r.name(o, config, name, at("providerConfigRef", "name"))
	if len(path) == 0 && to == "ProviderConfig" && isNamespacedGroup(config.Group) {
		r.configElsewhere(o, config, name, o.OriginOf(at("providerConfigRef", "name")...))
	}
}

// configElsewhere reports a ProviderConfig that the commit declares only in other namespaces than that of the managed resource.
func (r *references) configElsewhere(o render.Object, config schema.GroupKind, name string, at manifest.Origin) {
	mine := r.home(o.ID).Namespace
	if mine == "" || r.composes[config] || !slices.Contains(r.names[config], name) || r.space[manifest.ID{Group: config.Group, Kind: config.Kind, Namespace: mine, Name: name}] {
		return
	}
	r.add(RuleNotThere, manifest.Warning, at, manifest.About{Object: o.ID, Subject: config.String() + " " + mine + "/" + name}, "declare it in "+mine+", or name a ClusterProviderConfig",
		"%s names ProviderConfig %s, which the commit declares only in other namespaces than %s", r.home(o.ID), name, mine)
}

// configOf returns the kind of the ProviderConfigs of a group: the declared one whose group is the group or the end of it.
func (r *references) configOf(group, name string) schema.GroupKind {
	best := schema.GroupKind{Kind: name}
	for gk := range r.names {
		if gk.Kind == name && strings.HasSuffix("."+group, "."+gk.Group) && len(gk.Group) > len(best.Group) {
			best = gk
		}
	}
	return best
}

// isPatched reports whether a patch sets a field, or may set it.
func isPatched(patches []any, field string) bool {
	return slices.ContainsFunc(patches, func(p any) bool {
		patch, _ := p.(map[string]any)
		to, _ := patch["toFieldPath"].(string)
		from, _ := patch["fromFieldPath"].(string)
		if to == "" {
			to = from
		}
		return patch["type"] == "PatchSet" || strings.HasPrefix(to, field) || strings.HasPrefix(field, to) && to != ""
	})
}

// isNamespacedGroup reports whether a group is one of namespaced managed resources: a part of it is "m".
func isNamespacedGroup(group string) bool { return slices.Contains(strings.Split(group, "."), "m") }

// imageConfig finds prefixes of an ImageConfig that match no image.
func (r *references) imageConfig(o render.Object, content map[string]any) {
	prefixes := valuesAt(content, nil, []string{"spec", "matchImages", "*", "prefix"})
	for _, p := range append(prefixes, valuesAt(content, nil, []string{"spec", "rewriteImage", "prefix"})...) {
		if scheme, rest, has := strings.Cut(p.text, "://"); has {
			r.add(RuleImage, manifest.Warning, o.OriginOf(p.path...), manifest.About{Object: o.ID, Subject: p.text}, "write "+rest, "the prefix %q of ImageConfig %s begins with %s://, and references of images have no scheme, so it fits no image", p.text, o.ID.Name, scheme)
			return
		}
	}
	images := r.images()
	if len(images) == 0 || slices.ContainsFunc(prefixes, func(p textAt) bool {
		return slices.ContainsFunc(images, func(image string) bool { return strings.HasPrefix(image, p.text) })
	}) {
		return
	}
	severity, why := manifest.Warning, "matches no package of the commit"
	if len(r.want.Unread) > 0 {
		severity, why = manifest.Note, "matches no package that the commit names; whether it matches a dependency is not known"
	}
	r.add(RuleImage, severity, o.Origin, manifest.About{Object: o.ID}, "", "ImageConfig %s %s", o.ID.Name, why)
}

// images returns the references that ImageConfigs are matched with: of every package, and of what a rewrite makes of it.
func (r *references) images() []string {
	var all []string
	for _, p := range r.want.Packages {
		if p.Pulled() {
			all = append(all, p.Source)
		}
	}
	for _, u := range r.want.Unread {
		all = append(all, u.Source)
	}
	for _, o := range r.want.Objects {
		content, err := o.Content()
		if err != nil || !crossplane.IsImageConfig(o.ID) && !crossplane.IsPackage(o.ID) {
			continue
		}
		for _, path := range [][]string{{"spec", "package"}, {"spec", "rewriteImage", "prefix"}} {
			for _, at := range valuesAt(content.Object, nil, path) {
				all = append(all, at.text)
			}
		}
	}
	return all
}
