package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/jsonpath"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"
)

// A reference copies a field of a live object into another object before that is applied.
type reference struct {
	source   manifest.ID // in the commit's spelling
	from, to string      // JSONPaths
	token    string      // the part of the target that the value replaces; "" for all of it
}

func hasReferences(of render.Object) bool { return of.Asks[mutation.Annotation] != "" }

// references returns the references of an object, in their order.
func (o Observed) references(of render.Object) ([]reference, error) {
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
	var all []reference
	for i, s := range declared {
		id := idOf(s.SourceRef.ToObjMetadata())
		if id.Kind == "" || id.Name == "" || s.SourcePath == "" || s.TargetPath == "" {
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
		if !o.mayRead(id) { // before the object is read
			return nil, fmt.Errorf("%s: item %d copies from %s, which allowedKinds and references.namespaces of the Sync do not allow; allow it there, or remove the reference", mutation.Annotation, i+1, id)
		}
		all = append(all, reference{o.AsWritten(id), s.SourcePath, s.TargetPath, s.Token})
	}
	return all, nil
}

// mayRead reports whether the Sync allows references to read an object.
func (o Observed) mayRead(id manifest.ID) bool {
	if o.Terms.Reads == nil {
		return true
	}
	namespace, known := o.Namespaces()(id)
	return o.Terms.Reads(id, namespace, known)
}

// mayObserve reports whether the Sync allows an object. It is false only for an object that is not written: its drift would show values of
// an object that no reference may read.
func (o Observed) mayObserve(of render.Object) bool {
	policy, _ := inventory.PolicyOf(of) // askedFor reports the error
	return !policy.Observes() || o.mayRead(of.ID)
}

// A ReferenceSource is the observed state of an object whose fields are copied.
type ReferenceSource struct {
	Live *unstructured.Unstructured // nil if it does not exist
	Err  error                      // why it could not be read
}

// SourcesOf returns the objects whose fields the references of a commit copy, sorted.
func (o Observed) SourcesOf(want render.Desired) []manifest.ID {
	sources := map[manifest.ID]bool{}
	for _, of := range want.Objects {
		references, _ := o.references(of) // Ask reports the errors
		for _, r := range references {
			sources[r.source] = true
		}
	}
	return slices.SortedFunc(maps.Keys(sources), manifest.ID.Compare)
}

// secretive returns the objects of a commit into which references copy values of Secrets, directly or through other objects.
func (o Observed) secretive(want render.Desired) map[manifest.ID]bool {
	sources := map[manifest.ID][]reference{}
	for _, of := range want.Objects {
		if references, _ := o.references(of); len(references) > 0 {
			sources[of.ID] = references
		}
	}
	found := map[manifest.ID]bool{}
	for before := -1; before < len(found); {
		before = len(found)
		for id, references := range sources {
			if slices.ContainsFunc(references, func(r reference) bool { return r.source.IsSecret() || found[r.source] }) {
				found[id] = true
			}
		}
	}
	return found
}

// A resolved is the result of the references of an object.
type resolved struct {
	object     render.Object
	references []reference
	missing    map[manifest.ID]missing // by source
	nameless   bool                    // its name is missing
	names      bool                    // its name comes from a reference
	left       [][]any                 // fields that stay without a value, because nothing is written
	problem    error                   // why a value that exists cannot be copied
	written    string                  // the digest of the object in the commit
	hidden     diff.Mask
}

// The codes of fields that cannot be copied. The first value is the Field, the last is the origin of the reference.
const (
	SourceAbsent     Code = "SourceAbsent"     // the object with the field does not exist
	SourceUnreadable Code = "SourceUnreadable" // the error of reading the object
	FieldAbsent      Code = "FieldAbsent"      // the object does not have the field
	FieldAmbiguous   Code = "FieldAmbiguous"   // how many fields the path matches
	FieldNotCopied   Code = "FieldNotCopied"   // the value of the field cannot be copied
	FieldUnfit       Code = "FieldUnfit"       // the path to which the value cannot be copied, and why; without an origin
)

// A missing describes a field that cannot be copied yet.
type missing struct {
	field Reason // the Field
	why   Reason // why, without the field and the origin
}

// resolve copies the available fields into an object. If one is missing, the object stays as in the commit.
func (o Observed) resolve(of render.Object, secretive map[manifest.ID]bool) (resolved, error) {
	r := resolved{object: of, written: of.Digest}
	var err error
	if r.references, err = o.references(of); err != nil || r.references == nil {
		return r, err
	}
	content, err := of.Content()
	if err != nil {
		return r, err
	}
	policy, _ := inventory.PolicyOf(of)
	r.missing = map[manifest.ID]missing{}
	for _, ref := range r.references {
		at, err := jsonpath.One(content.Object, ref.to)
		if err != nil {
			return r, fmt.Errorf("%s: targetPath %s: %w; the field must exist, with any value", mutation.Annotation, ref.to, err)
		}
		secret := ref.source.IsSecret() || secretive[ref.source]
		names := slices.Equal(at, []any{"metadata", "name"})
		r.names = r.names || names
		switch {
		case names && !policy.Observes():
			return r, fmt.Errorf("%s: targetPath %s: a reference can set the name only if %s is Observable or ObservableAndDeletable", mutation.Annotation, ref.to, inventory.PolicyAnnotation)
		case !names && isIdentity(at):
			return r, fmt.Errorf("%s: targetPath %s: a reference cannot change which object this is", mutation.Annotation, ref.to)
		case isJudged(of.ID, at):
			return r, fmt.Errorf("%s: targetPath %s: a reference cannot fill in what becomes active or which schema is served; write the value in the commit, where a preview can show it", mutation.Annotation, ref.to)
		case at[0] == "metadata" && secret:
			return r, fmt.Errorf("%s: targetPath %s: values of a Secret do not belong in metadata, which every user of the cluster can read", mutation.Annotation, ref.to)
		}
		if secret {
			r.hidden.Paths = append(r.hidden.Paths, diff.PathOf(at))
		}
		value, bytes, why, err := o.valueOf(ref)
		if err != nil {
			return r, err
		}
		if !o.Stance.In(Writing) && (names || value == nil) { // a cluster may have it
			r.left = append(r.left, at)
			continue
		}
		if secret {
			r.hidden.Values = append(r.hidden.Values, diff.Forms(value)...)
		}
		field := Field.With(ref.from, ref.source)
		if bytes && !jsonpath.HoldsBytes(content.Object, at) {
			if value, err = jsonpath.Decoded(value); err != nil { // a bad value in the source must not stop the sync
				r.problem = cmp.Or[error](r.problem, ReasonError{FieldUnfit.With(field, ref.to, err.Error())})
				value, why = nil, FieldNotCopied.With()
			} else if secret {
				r.hidden.Values = append(r.hidden.Values, diff.Forms(value)...)
			}
		}
		if value == nil {
			if _, already := r.missing[ref.source]; !already {
				r.missing[ref.source] = missing{field, why}
			}
			r.nameless = r.nameless || names
			continue
		}
		if err := jsonpath.Put(content.Object, at, value, ref.token); err != nil {
			return r, fmt.Errorf("%s: targetPath %s: %w", mutation.Annotation, ref.to, err)
		}
	}
	if len(r.missing)+len(r.left) > 0 {
		return r, nil
	}
	r.object, err = of.With(content)
	r.object.Secret = r.hidden.Paths != nil
	return r, err
}

// valueOf returns the value that a reference copies, and whether it holds bytes. why is the reason if there is no value to copy
// yet.
func (o Observed) valueOf(r reference) (value any, bytes bool, why Reason, err error) {
	source := o.Sources[r.source]
	switch {
	case source.Err != nil:
		return nil, false, SourceUnreadable.With(source.Err.Error()), nil //nolint:nilerr // it is the target's trouble
	case source.Live == nil:
		return nil, false, SourceAbsent.With(), nil
	}
	at, err := jsonpath.Find(source.Live.Object, r.from)
	switch {
	case err != nil:
		return nil, false, Reason{}, fmt.Errorf("%s: sourcePath %s: %w", mutation.Annotation, r.from, err)
	case len(at) > 1:
		return nil, false, FieldAmbiguous.With(len(at)), nil
	case len(at) == 1:
		value, bytes = jsonpath.Get(source.Live.Object, at[0]), jsonpath.HoldsBytes(source.Live.Object, at[0])
	}
	return value, bytes, FieldAbsent.With(), nil
}

// WithoutReferences removes the target fields of references from an object, because only a write would fill them in.
func (a Asked) WithoutReferences(u *unstructured.Unstructured) {
	for _, at := range a.resolved.left {
		last := len(at) - 1
		if parent, ok := jsonpath.Get(u.Object, at[:last]).(map[string]any); ok {
			delete(parent, fmt.Sprint(at[last]))
		}
	}
}

// approvable returns the digest of the object for the approval of its step. It is the digest in the commit, so it is the same in
// previews and in every cluster.
func (a Asked) approvable() string { return cmp.Or(a.resolved.written, a.Object.Digest) }

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

// differs reports whether an update of the source changes the value that a reference copies.
func (r reference) differs(before, after *unstructured.Unstructured) bool {
	if before == nil || after == nil {
		return false
	}
	was, err := jsonpath.Find(before.Object, r.from)
	is, alsoErr := jsonpath.Find(after.Object, r.from)
	if err != nil || alsoErr != nil || len(was) != 1 || len(is) != 1 {
		return true
	}
	return !slices.Equal(diff.Forms(jsonpath.Get(before.Object, was[0])), diff.Forms(jsonpath.Get(after.Object, is[0])))
}

// isIdentity reports whether the value at a path is part of the identity or of the ownership of the object.
func isIdentity(at []any) bool {
	switch at[0] {
	case "apiVersion", "kind":
		return true
	case "metadata":
		return len(at) < 3 || at[1] != "labels" && at[1] != "annotations" || at[2] == inventory.SyncLabel || at[2] == inventory.InventoryAnnotation
	}
	return false
}

// secretPaths returns the paths of a live object into which values of Secrets were copied.
func secretPaths(live *unstructured.Unstructured) []string {
	if live == nil || !mutation.HasAnnotation(live) {
		return nil
	}
	declared, _ := mutation.ReadAnnotation(live) // nothing was copied for an unreadable annotation
	var paths []string
	for _, s := range declared {
		if idOf(s.SourceRef.ToObjMetadata()).IsSecret() {
			at, _ := jsonpath.Find(live.Object, s.TargetPath)
			for _, place := range at {
				paths = append(paths, diff.PathOf(place))
			}
		}
	}
	return paths
}

// copiedSecrets returns the values that were copied from Secrets into an object to send.
func copiedSecrets(sent *unstructured.Unstructured) []string {
	if !mutation.HasAnnotation(sent) {
		return nil
	}
	declared, _ := mutation.ReadAnnotation(sent)
	var values []string
	for _, s := range declared {
		if idOf(s.SourceRef.ToObjMetadata()).IsSecret() {
			at, _ := jsonpath.Find(sent.Object, s.TargetPath)
			for _, place := range at {
				values = append(values, diff.Forms(jsonpath.Get(sent.Object, place))...)
			}
		}
	}
	return diff.LongestFirst(values)
}
