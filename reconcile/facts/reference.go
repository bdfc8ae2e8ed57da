package facts

import (
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/jsonpath"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"
)

// A Reference copies a field of a live object into another object before that is applied.
type Reference struct {
	Source   manifest.ID // in the commit's spelling
	From, To string      // JSONPaths
	Token    string      // the part of the target that the value replaces; "" for all of it
}

// A ReferenceSource is the observed state of an object whose fields are copied.
type ReferenceSource struct {
	Live *unstructured.Unstructured // nil if it does not exist
	Err  error                      // why it could not be read
}

// A Resolved is the result of the references of an object.
type Resolved struct {
	Object     render.Object
	References []Reference
	Missing    map[manifest.ID]Missing // by source
	Nameless   bool                    // its name is missing
	Names      bool                    // its name comes from a reference
	Left       [][]any                 // fields that stay without a value, because nothing is written
	Problem    error                   // why a value that exists cannot be copied
	Written    string                  // the digest of the object in the commit
	Hidden     diff.Mask
}

// A Missing describes a field that cannot be copied yet.
type Missing struct {
	Field reason.Reason // the Field
	Why   reason.Reason // why, without the field and the origin
}

// SecretPaths returns the paths of a live object into which values of Secrets were copied.
func SecretPaths(live *unstructured.Unstructured) []string {
	if live == nil || !mutation.HasAnnotation(live) {
		return nil
	}
	declared, _ := mutation.ReadAnnotation(live) // nothing was copied for an unreadable annotation
	var paths []string
	for _, s := range declared {
		if IDOf(s.SourceRef.ToObjMetadata()).IsSecret() {
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
		if IDOf(s.SourceRef.ToObjMetadata()).IsSecret() {
			at, _ := jsonpath.Find(sent.Object, s.TargetPath)
			for _, place := range at {
				values = append(values, diff.Forms(jsonpath.Get(sent.Object, place))...)
			}
		}
	}
	return diff.LongestFirst(values)
}
