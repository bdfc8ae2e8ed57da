package demand

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/jsonpath"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"
)

func hasReferences(of render.Object) bool { return of.Asks[mutation.Annotation] != "" }

// references returns the references of an object, in their order.
func references(o facts.Observed, of render.Object) ([]facts.Reference, error) {
	value, asked := of.Asks[mutation.Annotation]
	if !asked {
		return nil, nil
	}
	var u unstructured.Unstructured
	u.SetAnnotations(map[string]string{mutation.Annotation: value})
	declared, err := mutation.ReadAnnotation(&u)
	if err != nil {
		return nil, fmt.Errorf("%w; it is a list of sourceRef, sourcePath, targetPath and token", err)
	}
	var all []facts.Reference
	for i, s := range declared {
		id := facts.IDOf(s.SourceRef.ToObjMetadata())
		if slices.Contains([]string{id.Kind, id.Name, s.SourcePath, s.TargetPath}, "") {
			return nil, fmt.Errorf("%s: item %d needs sourceRef.kind, sourceRef.name, sourcePath and targetPath", mutation.Annotation, i+1)
		}
		if id.IsSecret() && o.Terms.NoSecrets { // before the Secret is read
			return nil, fmt.Errorf("%s: item %d copies from the Secret %s, which references.fromSecrets of the Sync forbids; remove the reference", mutation.Annotation, i+1, id.Name)
		}
		k, served := o.Kinds[id.GroupKind()]
		switch {
		case id.Namespace != "":
		case served && k.Namespaced, !served && of.ID.Namespace != "" && !id.IsCRD():
			id.Namespace = of.ID.Namespace
		}
		if served && k.Namespaced && id.Namespace == "" {
			id.Namespace = o.Space
		}
		if !mayRead(o, id) { // before the object is read
			return nil, fmt.Errorf("%s: item %d copies from %s, which allowedKinds and references.namespaces of the Sync do not allow; allow it there, or remove the reference", mutation.Annotation, i+1, id)
		}
		all = append(all, facts.Reference{Source: o.AsWritten(id), From: s.SourcePath, To: s.TargetPath, Token: s.Token})
	}
	return all, nil
}

// mayRead reports whether the Sync allows references to read an object.
func mayRead(o facts.Observed, id manifest.ID) bool {
	if o.Terms.Reads == nil {
		return true
	}
	namespace, known := o.Namespaces()(id)
	return o.Terms.Reads(id, namespace, known)
}

// mayObserve reports whether the Sync allows an object. It is false only for an object that is not written: its drift would show values of
// an object that no reference may read.
func mayObserve(o facts.Observed, of render.Object) bool {
	policy, _ := inventory.PolicyOf(of) // askedFor reports the error
	return !policy.Observes() || mayRead(o, of.ID)
}

// SourcesOf returns the objects whose fields the references of a commit copy, sorted.
func SourcesOf(o facts.Observed, want render.Desired) []manifest.ID {
	sources := map[manifest.ID]bool{}
	for _, of := range want.Objects {
		references, _ := references(o, of) // Ask reports the errors
		for _, r := range references {
			sources[r.Source] = true
		}
	}
	return slices.SortedFunc(maps.Keys(sources), manifest.ID.Compare)
}

// secretive returns the objects of a commit into which references copy values of Secrets, directly or through other objects.
func secretive(o facts.Observed, want render.Desired) map[manifest.ID]bool {
	sources := map[manifest.ID][]facts.Reference{}
	for _, of := range want.Objects {
		if references, _ := references(o, of); len(references) > 0 {
			sources[of.ID] = references
		}
	}
	found := map[manifest.ID]bool{}
	for before := -1; before < len(found); {
		before = len(found)
		for id, references := range sources {
			if slices.ContainsFunc(references, func(r facts.Reference) bool { return r.Source.IsSecret() || found[r.Source] }) {
				found[id] = true
			}
		}
	}
	return found
}

// resolve copies the available fields into an object. If one is missing, the object stays as in the commit.
func resolve(o facts.Observed, of render.Object, secretive map[manifest.ID]bool) (facts.Resolved, error) {
	r := facts.Resolved{Object: of, Written: of.Digest}
	var err error
	if r.References, err = references(o, of); err != nil || r.References == nil {
		return r, err
	}
	content, err := of.Content()
	if err != nil {
		return r, err
	}
	policy, _ := inventory.PolicyOf(of)
	r.Missing = map[manifest.ID]facts.Missing{}
	for _, ref := range r.References {
		at, err := jsonpath.One(content.Object, ref.To)
		if err != nil {
			return r, fmt.Errorf("%s: targetPath %s: %w; the field must exist, with any value", mutation.Annotation, ref.To, err)
		}
		secret := ref.Source.IsSecret() || secretive[ref.Source]
		names := slices.Equal(at, []any{"metadata", "name"})
		r.Names = r.Names || names
		switch {
		case names && !policy.Observes():
			return r, fmt.Errorf("%s: targetPath %s: a reference can set the name only if %s is Observable or ObservableAndDeletable", mutation.Annotation, ref.To, inventory.PolicyAnnotation)
		case !names && isIdentity(at):
			return r, fmt.Errorf("%s: targetPath %s: a reference cannot change which object this is", mutation.Annotation, ref.To)
		case isJudged(of.ID, at):
			return r, fmt.Errorf("%s: targetPath %s: a reference cannot fill in what becomes active or which schema is served; write the value in the commit, where a preview can show it", mutation.Annotation, ref.To)
		case at[0] == "metadata" && secret:
			return r, fmt.Errorf("%s: targetPath %s: values of a Secret do not belong in metadata, which every user of the cluster can read", mutation.Annotation, ref.To)
		}
		if secret {
			r.Hidden.Paths = append(r.Hidden.Paths, diff.PathOf(at))
		}
		value, bytes, why, err := valueOf(o.Live, ref)
		if err != nil {
			return r, err
		}
		if !o.Stance.In(plan.Writing) && (names || value == nil) { // a cluster may have it
			r.Left = append(r.Left, at)
			continue
		}
		if secret {
			r.Hidden.Values = append(r.Hidden.Values, diff.Forms(value)...)
		}
		field := reason.Field.With(ref.From, ref.Source)
		if bytes && !jsonpath.HoldsBytes(content.Object, at) {
			if value, err = jsonpath.Decoded(value); err != nil { // a bad value in the source must not stop the sync
				r.Problem = cmp.Or[error](r.Problem, reason.CodedError{Reason: reason.FieldUnfit.With(field, ref.To, err.Error())})
				value, why = nil, reason.FieldNotCopied.With()
			} else if secret {
				r.Hidden.Values = append(r.Hidden.Values, diff.Forms(value)...)
			}
		}
		if value == nil {
			if _, already := r.Missing[ref.Source]; !already {
				r.Missing[ref.Source] = facts.Missing{Field: field, Why: why}
			}
			r.Nameless = r.Nameless || names
			continue
		}
		if err := jsonpath.Put(content.Object, at, value, ref.Token); err != nil {
			return r, fmt.Errorf("%s: targetPath %s: %w", mutation.Annotation, ref.To, err)
		}
	}
	if len(r.Missing)+len(r.Left) > 0 {
		return r, nil
	}
	r.Object, err = of.With(content)
	r.Object.Secret = r.Hidden.Paths != nil
	return r, err
}

// valueOf returns the value that a reference copies, and whether it holds bytes. why is the reason if there is no value to copy
// yet.
func valueOf(o facts.Live, r facts.Reference) (value any, bytes bool, why reason.Reason, err error) {
	source := o.Sources[r.Source]
	switch {
	case source.Err != nil:
		return nil, false, reason.SourceUnreadable.With(source.Err.Error()), nil //nolint:nilerr // it is the target's trouble
	case source.Live == nil:
		return nil, false, reason.SourceAbsent.With(), nil
	}
	at, err := jsonpath.Find(source.Live.Object, r.From)
	switch {
	case err != nil:
		return nil, false, reason.Reason{}, fmt.Errorf("%s: sourcePath %s: %w", mutation.Annotation, r.From, err)
	case len(at) > 1:
		return nil, false, reason.FieldAmbiguous.With(len(at)), nil
	case len(at) == 1:
		value, bytes = jsonpath.Get(source.Live.Object, at[0]), jsonpath.HoldsBytes(source.Live.Object, at[0])
	}
	return value, bytes, reason.FieldAbsent.With(), nil
}

// WithoutReferences removes the target fields of references from an object, because only a write would fill them in.
func WithoutReferences(a facts.Asked, u *unstructured.Unstructured) {
	for _, at := range a.Resolved.Left {
		last := len(at) - 1
		if parent, ok := jsonpath.Get(u.Object, at[:last]).(map[string]any); ok {
			delete(parent, fmt.Sprint(at[last]))
		}
	}
}

// Approvable returns the digest of the object for the approval of its step. It is the digest in the commit, so it is the same in
// previews and in every cluster.
func Approvable(a facts.Asked) string { return cmp.Or(a.Resolved.Written, a.Object.Digest) }

// isJudged reports whether guards and previews judge the value at a path of an object. In an object that makes the API server serve
// a kind, they judge everything except the metadata and the webhook of a conversion, whose certificate is often known only to the
// cluster.
func isJudged(id manifest.ID, at []any) bool {
	switch {
	case crossplane.IsPackage(id), crossplane.IsMRAP(id), crossplane.IsMRD(id), crossplane.IsImageConfig(id):
		return true
	case crossplane.DeclaresKind(id):
		return at[0] != "metadata" && (len(at) < 3 || !slices.Equal(at[:3], []any{"spec", "conversion", "webhook"}))
	}
	return false
}

// Differs reports whether an update of the source changes the value that a reference copies.
func Differs(r facts.Reference, before, after *unstructured.Unstructured) bool {
	if before == nil || after == nil {
		return false
	}
	was, hadOne := formsAt(before, r.From)
	is, hasOne := formsAt(after, r.From)
	return !hadOne || !hasOne || !slices.Equal(was, is)
}

// formsAt returns the forms of the only value that a path matches, and whether there is exactly one.
func formsAt(u *unstructured.Unstructured, path string) ([]string, bool) {
	at, err := jsonpath.Find(u.Object, path)
	if err != nil || len(at) != 1 {
		return nil, false
	}
	return diff.Forms(jsonpath.Get(u.Object, at[0])), true
}

// isIdentity reports whether the value at a path is part of the identity or of the ownership of the object.
func isIdentity(at []any) bool {
	switch at[0] {
	case "apiVersion", "kind":
		return true
	case "metadata":
		if len(at) > 2 && (at[1] == "labels" || at[1] == "annotations") {
			return at[2] == inventory.SyncLabel || at[2] == inventory.InventoryAnnotation
		}
		return true
	}
	return false
}
