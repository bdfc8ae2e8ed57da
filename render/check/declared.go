package check

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crd"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Declared returns the kinds that a commit declares: with CRDs, with definitions, active or not, and with XRDs, also those that
// Crossplane installs with packages. It knows a group completely if a package declares a kind of it and every package was read.
func Declared(want render.Desired) Source {
	d := declarations{kinds: map[schema.GroupKind]*declared{}, extents: map[string]Extent{}, repeated: want.Repeated}
	ofPackage := All
	if len(want.Unread) > 0 {
		ofPackage = Some // it may have more kinds of the group
	}
	for _, of := range want.Definitions {
		if of.Document == nil {
			continue // it exists only in the cluster
		}
		extent := Some
		if of.Package != nil {
			extent = ofPackage
		}
		d.add(schema.GroupKind{Group: of.Group, Kind: of.Kind}, extent, d.unlessRepeated(ofDefinition(of), of.Name))
	}
	for _, o := range want.Objects {
		if o.Definition == "" {
			d.object(o, o.Package, ofPackage)
		}
	}
	for _, l := range want.Left {
		if !l.ID.IsCRD() && !crossplane.IsXRD(l.ID) {
			continue
		}
		if o, err := l.Object(); err == nil {
			d.object(o, l.Package, ofPackage)
		}
	}
	for _, o := range want.Schemas {
		d.object(o, "", Some)
	}
	return d
}

// declarations is the Source of what a commit declares.
type declarations struct {
	kinds   map[schema.GroupKind]*declared
	extents map[string]Extent // by group

	repeated []manifest.ID // declarations of which the commit has several
}

// unlessRepeated returns the kind of a declaration. If the commit has several of that name, nothing is known of the kind, because any of
// them may be meant.
func (d declarations) unlessRepeated(kind *declared, name string) *declared {
	if !slices.ContainsFunc(d.repeated, func(id manifest.ID) bool { return id.Name == name }) {
		return kind
	}
	return &declared{facts: func() (facts, error) { return facts{}, errRepeated }}
}

var errRepeated = errors.New("the commit declares it more than once")

// object adds the kinds of a CRD or an XRD.
func (d declarations) object(o render.Object, pkg string, ofPackage Extent) {
	extent := Some
	if pkg != "" && o.ID.IsCRD() {
		extent = ofPackage
	}
	switch {
	case o.ID.IsCRD():
		d.add(o.Serves, extent, d.unlessRepeated(ofCRD(o), o.ID.Name))
	case crossplane.IsXRD(o.ID):
		for i, gk := range compositesOf(o) {
			d.add(gk, extent, d.unlessRepeated(ofXRD(o, i), o.ID.Name))
		}
	}
}

// add adds a kind. The first declaration of a kind counts.
func (d declarations) add(gk schema.GroupKind, extent Extent, kind *declared) {
	d.extents[gk.Group] = max(d.extents[gk.Group], extent)
	if _, twice := d.kinds[gk]; !twice {
		d.kinds[gk] = kind
	}
}

func (d declarations) Groups() []string          { return slices.Sorted(maps.Keys(d.extents)) }
func (d declarations) Knows(group string) Extent { return d.extents[group] }

func (d declarations) Kinds(group string) []schema.GroupKind {
	if d.extents[group] == None {
		return nil
	}
	var kinds []schema.GroupKind
	for gk := range d.kinds {
		if gk.Group == group {
			kinds = append(kinds, gk)
		}
	}
	slices.SortFunc(kinds, compareKinds)
	return kinds
}

// Kind returns a kind, unless its declaration cannot be read.
func (d declarations) Kind(gk schema.GroupKind) (Kind, bool) {
	kind, known := d.kinds[gk]
	if !known {
		return nil, false
	}
	if _, err := kind.facts(); err != nil {
		return nil, false
	}
	return kind, true
}

// A declared kind is a kind that an object of the commit declares. The CRD is decoded when an object is checked whose result no Memo
// stores.
type declared struct {
	crd   func() (*unstructured.Unstructured, error)
	facts func() (facts, error)

	making sync.Once
	made   custom
	err    error
}

// facts are what a Memo stores about a kind.
type facts struct {
	Versions   []string `json:"versions"` // served versions, preferred first
	Namespaced bool     `json:"namespaced"`
	Key        string   `json:"key"` // identifies the CRD
}

// learner stores the answers to questions about a document.
type learner func(what string, ask func() (string, error)) (string, error)

// newDeclared returns a kind with a CRD. key identifies the content from which crd makes the CRD, besides the document of learn.
func newDeclared(key string, learn learner, crd func() (*unstructured.Unstructured, error)) *declared {
	return &declared{crd: crd, facts: sync.OnceValues(func() (f facts, err error) {
		known, err := learn("kind 1 "+key, func() (string, error) {
			u, err := crd()
			if err != nil {
				return "", err
			}
			f, err := factsOf(u)
			if err != nil {
				return "", err
			}
			raw, err := json.Marshal(f)
			return string(raw), err
		})
		if err != nil {
			return facts{}, err
		}
		return f, json.Unmarshal([]byte(known), &f)
	})}
}

// factsOf returns the facts about the kind of a CRD.
func factsOf(u *unstructured.Unstructured) (facts, error) {
	o, err := render.NewObject(&unstructured.Unstructured{Object: map[string]any{"spec": u.Object["spec"]}}, originless)
	if err != nil {
		return facts{}, err
	}
	f := facts{Key: o.Digest}
	scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
	f.Namespaced = scope != "Cluster"
	for name, of := range versionsOf(u) {
		if of["served"] == true {
			f.Versions = append(f.Versions, name)
		}
	}
	slices.SortFunc(f.Versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return f, nil
}

// versionsOf returns the versions of a CRD by name.
func versionsOf(crd *unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	list, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	items, _ := list.([]any)
	for _, item := range items {
		if of, ok := item.(map[string]any); ok {
			name, _ := of["name"].(string)
			all[name] = of
		}
	}
	return all
}

var errOutline = errors.New("the lock keeps no schema of it")

// ofDefinition returns the kind of a definition.
func ofDefinition(d render.DecidedDefinition) *declared {
	return newDeclared("definition", d.Document.Learn, func() (*unstructured.Unstructured, error) {
		if d.IsOutline() {
			return nil, errOutline
		}
		return d.Draft()
	})
}

// ofCRD returns the kind of a CRD.
func ofCRD(o render.Object) *declared {
	return newDeclared("CRD", o.Learn, o.Content)
}

// ofXRD returns a kind of an XRD: that of its composite resources, or that of its claims.
func ofXRD(o render.Object, i int) *declared {
	key := []string{"composite", "claim"}[i]
	return newDeclared(key, o.Learn, func() (*unstructured.Unstructured, error) {
		xrd, err := o.Content()
		if err != nil {
			return nil, err
		}
		made, err := crd.Composites(xrd)
		if err != nil {
			return nil, err
		}
		return made[i], nil
	})
}

// compositesOf returns the kinds that an XRD declares: that of its composite resources and, if it has claims, that of its claims.
func compositesOf(o render.Object) []schema.GroupKind {
	known, err := o.Learn("composites 2", func() (string, error) {
		u, err := o.Content()
		if err != nil {
			return "", err
		}
		text := func(path ...string) string {
			s, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, path...)...)
			return s
		}
		if text("group") == "" {
			return "[]", nil
		}
		kinds := []schema.GroupKind{{Group: text("group"), Kind: text("names", "kind")}}
		if claim := text("claimNames", "kind"); claim != "" {
			kinds = append(kinds, schema.GroupKind{Group: text("group"), Kind: claim})
		}
		raw, err := json.Marshal(kinds)
		return string(raw), err
	})
	if err != nil {
		return nil
	}
	var all []schema.GroupKind
	if err := json.Unmarshal([]byte(known), &all); err != nil {
		return nil
	}
	return all
}

// OfCRD returns the kind of a CRD that is not in the commit. It calls crd when the kind is first used.
func OfCRD(crd func() (*unstructured.Unstructured, error)) Kind {
	return newDeclared("", func(_ string, ask func() (string, error)) (string, error) { return ask() }, crd)
}
