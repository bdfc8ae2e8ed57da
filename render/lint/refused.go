package lint

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/crossplane/kinds"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RuleRefused is the rule for objects that the API server refuses.
const RuleRefused = check.RuleRefused

// Refused finds objects that every API server refuses, because of the commit alone, and that Checked leaves out: policies and
// definitions, also inactive ones and those whose CRDs Crossplane makes, and the content of packages. Packages of registries are left out, because
// a commit cannot change them. The findings are sorted.
func Refused(ctx context.Context, want render.Desired) []manifest.Finding {
	var r refusals
	checks := make([]func() refusals, 0, len(want.Objects)+len(want.Definitions))
	home := render.HomesOf(want).Complete()
	for _, o := range want.Objects {
		o.ID = home(o.ID) // in the form for findings
		if !isChecked(want, o) {
			checks = append(checks, func() refusals { return objectRefused(ctx, o) })
		}
	}
	for _, d := range want.Definitions {
		if d.Document != nil && !d.Package.Pulled() {
			checks = append(checks, func() refusals { return definitionRefused(ctx, want.Owner, kinds.Of(want.Crossplane), d) })
		}
	}
	each := make([]refusals, len(checks))
	manifest.Each(len(checks), func(i int) { each[i] = checks[i]() })
	for _, found := range each {
		r = append(r, found...)
	}
	slices.SortFunc(r, manifest.Finding.Compare)
	return slices.Compact(r)
}

// refusals holds findings of RuleRefused.
type refusals []manifest.Finding

func (r *refusals) add(at manifest.Origin, about manifest.About, what any, problem string) {
	*r = append(*r, manifest.Finding{
		Rule: RuleRefused, Severity: manifest.Error, Origin: at, About: about,
		Message: fmt.Sprintf("the API server refuses %s: %s", what, problem),
	})
}

// objectRefused returns why an object that is applied directly is refused.
func objectRefused(ctx context.Context, o render.Object) (r refusals) {
	if o.Definition != "" && !crossplane.IsMRD(o.ID) {
		return nil // definitionRefused judges it
	}
	content, err := o.Content()
	if err != nil {
		return nil // render reports it
	}
	r.metadata(o, content)
	if o.ID.IsCRD() {
		for _, refusal := range schema.Refusals(ctx, content) {
			r.add(nearest(o.OriginOf, o.Origin, refusal.Path()), manifest.About{Object: o.ID, Field: refusal.Field}, o.ID, refusal.String())
		}
	}
	return r
}

// definitionRefused returns why a definition is refused in a cluster with or without Crossplane.
func definitionRefused(ctx context.Context, owner render.Owner, own *kinds.Source, d render.DecidedDefinition) (r refusals) {
	type found struct {
		Field string
		Path  []any
		What  string
	}
	// Checking its CRD takes milliseconds, and a package has two thousand.
	known, err := d.Document.Learn(fmt.Sprintf("refused 3 %s %t %t", owner, d.FromCRD, d.Package == nil), func() (string, error) {
		var all []found
		draft, err := d.Draft()
		if err != nil {
			return "", err
		}
		for _, refusal := range schema.Refusals(ctx, draft) {
			all = append(all, found{Field: refusal.String(), Path: refusal.Path(), What: "the CRD of"})
		}
		if !d.FromCRD && d.Package == nil && owner != render.OwnerCrossplane { // otherwise, it would be decoded for nothing
			u, err := d.Document.Recall()
			if err != nil {
				return "", err
			}
			mrds, _ := own.Kind(crossplane.KindMRD)
			for _, p := range mrds.Check(u).Errors {
				all = append(all, found{Field: p.String(), Path: check.Path(u.Object, p.Field), What: crossplane.KindMRD.Kind})
			}
		}
		raw, err := json.Marshal(all)
		return string(raw), err
	})
	if err != nil {
		return catalogue.ErrorsOf(d.Origin(), err).Findings()
	}
	var all []found
	if err := json.Unmarshal([]byte(known), &all); err != nil {
		return nil
	}
	for _, f := range all {
		r.add(nearest(d.Document.OriginOf, d.Origin(), f.Path), manifest.About{Object: crossplane.MRD(d.Name), Subject: f.Field}, f.What+" "+d.Name, f.Field)
	}
	return r
}

// metadata reports labels, annotations and metadata fields that no API server accepts.
func (r *refusals) metadata(o render.Object, content *unstructured.Unstructured) {
	at := field.NewPath("metadata")
	metadata, _ := content.Object["metadata"].(map[string]any)
	add := func(path []any, field, problem string) {
		r.add(nearest(o.OriginOf, o.Origin, path), manifest.About{Object: o.ID, Field: field}, o.ID, field+": "+problem)
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		if !slices.Contains(metadataFields, key) {
			add([]any{"metadata", key}, at.Child(key).String(), "unknown field")
		}
	}
	for _, key := range []string{"labels", "annotations"} {
		values, _ := metadata[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if _, text := values[name].(string); !text && values[name] != nil {
				add([]any{"metadata", key, name}, at.Child(key).Key(name).String(), "must be a string; quote it")
			}
		}
		if metadata[key] != nil && values == nil {
			add([]any{"metadata", key}, at.Child(key).String(), "must be a mapping")
		}
	}
	for _, e := range slices.Concat(
		apivalidation.ValidateAnnotations(content.GetAnnotations(), at.Child("annotations")),
		metavalidation.ValidateLabels(content.GetLabels(), at.Child("labels")),
		apivalidation.ValidateFinalizers(content.GetFinalizers(), at.Child("finalizers")),
	) {
		add(schema.Refusal{Field: e.Field}.Path(), e.Field, e.ErrorBody())
	}
}

// metadataFields are the metadata fields that an API server knows.
var metadataFields = []string{
	"annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName", "generation",
	"labels", "managedFields", "name", "namespace", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// nearest returns the line of a field or, if that is not known, of its nearest parent.
func nearest(originOf func(path ...any) manifest.Origin, top manifest.Origin, path []any) manifest.Origin {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if at := originOf(path...); at != top {
			return at
		}
	}
	return top
}
