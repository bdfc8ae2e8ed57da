package check

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An Omission counts the objects that were not checked for one reason, or of which one thing was not checked.
type Omission struct {
	Reason   string             `json:"why"`                // NoSchema, or what was not checked: "rules of Deployment"
	Partly   bool               `json:"partly,omitempty"`   // the rest was checked
	Composed bool               `json:"composed,omitempty"` // Compositions compose the objects
	Objects  int                `json:"objects"`
	Kinds    []schema.GroupKind `json:"kinds"` // sorted
}

// String describes the omission: "17 objects of 4 kinds not checked: their CRDs are not in this commit".
func (o Omission) String() string {
	of := manifest.Count(o.Objects, "object")
	if o.Composed {
		of = manifest.Count(o.Objects, "composed resource")
	}
	if o.Partly {
		return fmt.Sprintf("%s checked without %s", of, o.Reason)
	}
	if len(o.Kinds) == 1 {
		return fmt.Sprintf("%s of %s not checked: %s", of, o.Kinds[0], strings.Replace(o.Reason, "their CRDs are", "its CRD is", 1))
	}
	return fmt.Sprintf("%s of %d kinds not checked: %s", of, len(o.Kinds), o.Reason)
}

// Omissions are what was not checked.
type Omissions []Omission

// String describes the omissions for a headline. It counts objects that were checked in part together. It returns "" if there are no
// omissions.
func (all Omissions) String() string {
	var texts []string
	rest := Omission{Partly: true}
	for _, o := range all {
		if !o.Partly || o.Composed {
			texts = append(texts, o.String())
			continue
		}
		rest.Objects += o.Objects
		rest.Kinds = append(rest.Kinds, o.Kinds...)
		rest.Reason = o.Reason
		if len(rest.Kinds) > 1 {
			rest.Reason = fmt.Sprintf("rules of %d kinds", len(rest.Kinds))
		}
	}
	if rest.Objects > 0 {
		texts = append(texts, rest.String())
	}
	return strings.Join(texts, "; ")
}

// count counts an object that was checked, or was not for a reason.
func (r *Report) count(gk schema.GroupKind, of result) {
	if of.omits == "" {
		r.Checked++
		return
	}
	r.omit(gk, of, false)
}

// omit counts an object, or a resource that a Composition composes, that was not checked for a reason.
func (r *Report) omit(gk schema.GroupKind, of result, composed bool) {
	r.merge(Omission{Reason: of.omits, Partly: of.partly, Composed: composed, Objects: 1, Kinds: []schema.GroupKind{gk}})
}

// merge adds an omission to that of the same reason.
func (r *Report) merge(other Omission) {
	i := slices.IndexFunc(r.Omitted, func(o Omission) bool {
		return o.Reason == other.Reason && o.Partly == other.Partly && o.Composed == other.Composed
	})
	if i < 0 {
		other.Kinds = slices.Clone(other.Kinds)
		r.Omitted = append(r.Omitted, other)
		return
	}
	o := &r.Omitted[i]
	o.Objects += other.Objects
	for _, gk := range other.Kinds {
		if at, known := slices.BinarySearchFunc(o.Kinds, gk, compareKinds); !known {
			o.Kinds = slices.Insert(o.Kinds, at, gk)
		}
	}
}
