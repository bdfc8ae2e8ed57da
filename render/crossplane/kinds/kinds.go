// Package kinds checks objects of Crossplane's own kinds as an API server does that has the CRDs of a release of Crossplane.
package kinds

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/crossplane"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

//go:generate go run ../../../fixtures/crds crds.json.gz

// packed holds the CRDs of the releases in which one of them changed, without descriptions: 18 KB.
//
//go:embed crds.json.gz
var packed []byte

// compact is the content of packed. A CRD that is equal in two releases appears once.
type compact struct {
	Releases []releaseCRDs     `json:"releases"` // oldest first
	CRDs     []json.RawMessage `json:"crds"`
}

// A releaseCRDs lists its CRDs by their indices.
type releaseCRDs struct {
	Version string `json:"version"`
	CRDs    []int  `json:"crds"`
}

// unpacked decodes packed once, in a few milliseconds.
var unpacked = sync.OnceValues(func() (all compact, err error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return all, err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return all, err
	}
	return all, json.Unmarshal(raw, &all)
})

// Releases returns the releases of Crossplane in which one of its CRDs changed, oldest first. A patch release after the last one
// is known, too.
func Releases() []string {
	all, err := unpacked()
	if err != nil {
		panic(fmt.Sprintf("the embedded CRDs: %v", err)) // a test reads all of them
	}
	versions := make([]string, len(all.Releases))
	for i, r := range all.Releases {
		versions[i] = r.Version
	}
	return versions
}

// A Source holds the kinds of one release. It decodes nothing before it is asked.
type Source struct {
	version crossplane.Version
	load    func() served
}

// sources holds the Source of each version, so that a schema is compiled once.
var sources sync.Map

// Of returns the kinds of a release. Releases between two that Headgate knows have the kinds of the older one.
func Of(version crossplane.Version) *Source {
	s, _ := sources.LoadOrStore(version.String(), &Source{version: version, load: sync.OnceValue(func() served {
		r, err := read(version)
		if err != nil {
			panic(fmt.Sprintf("the embedded CRDs: %v", err)) // a test reads all of them
		}
		return r
	})})
	return s.(*Source) //nolint:forcetypeassert // it holds nothing else
}

// String returns the release, and identifies the rules of this package.
func (s *Source) String() string { return "1 " + s.version.String() }

// served is what a release of Crossplane serves.
type served struct {
	kinds  map[schema.GroupKind]kind
	groups map[string][]schema.GroupKind
	known  bool // false for a release after the last one that Headgate knows
}

func read(version crossplane.Version) (served, error) {
	all, err := unpacked()
	if err != nil {
		return served{}, err
	}
	at, known := 0, true
	for i, r := range all.Releases {
		v, err := crossplane.VersionOf(r.Version)
		if err != nil {
			return served{}, err
		}
		if version.Includes(v) {
			at, known = i, !version.Exceeds(v)
		}
	}
	last := all.Releases[at]
	r := served{kinds: map[schema.GroupKind]kind{}, groups: map[string][]schema.GroupKind{}, known: known || at < len(all.Releases)-1}
	for _, i := range last.CRDs {
		gk, k, err := newKind(all.CRDs[i])
		if err != nil {
			return served{}, fmt.Errorf("%s: %w", last.Version, err)
		}
		r.kinds[gk] = k
		r.groups[gk.Group] = append(r.groups[gk.Group], gk)
	}
	return r, nil
}

// Groups returns the API groups that only Crossplane serves.
func (s *Source) Groups() []string { return slices.Sorted(maps.Keys(s.load().groups)) }

// Knows returns how much is known of a group: everything, except of a release that is newer than Headgate.
func (s *Source) Knows(group string) check.Extent {
	r := s.load()
	switch {
	case r.groups[group] == nil:
		return check.None
	case !r.known:
		return check.Some
	}
	return check.All
}

// Kinds returns the kinds of a group.
func (s *Source) Kinds(group string) []schema.GroupKind { return s.load().groups[group] }

// Kind returns a kind.
func (s *Source) Kind(gk schema.GroupKind) (check.Kind, bool) {
	r := s.load()
	k, ok := r.kinds[gk]
	if ok && !r.known {
		return newer{k.Kind, fmt.Sprintf("kinds of Crossplane %s, which is newer than this Headgate", s.version)}, true
	}
	return k.Kind, ok
}

// newer checks a kind of a release that Headgate does not know, against the last release that it knows. The errors may be those of
// a user or of Headgate, so they are warnings.
type newer struct {
	check.Kind

	reason string
}

func (n newer) Check(o *unstructured.Unstructured) check.Result {
	r := n.Kind.Check(o)
	return check.Result{Warnings: append(r.Errors, r.Warnings...), NotChecked: n.reason}
}

// A kind is a kind of one release.
type kind struct {
	check.Kind

	names names
}

// names are the names of a kind that a user may write instead of it.
type names struct {
	Kind       string   `json:"kind"`
	Plural     string   `json:"plural"`
	ShortNames []string `json:"shortNames"`
}

// newKind returns the kind of a CRD. It decodes the schema when an object is checked.
func newKind(raw json.RawMessage) (schema.GroupKind, kind, error) {
	var head struct {
		Spec struct {
			Group string `json:"group"`
			Names names  `json:"names"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return schema.GroupKind{}, kind{}, err
	}
	gk := schema.GroupKind{Group: head.Spec.Group, Kind: head.Spec.Names.Kind}
	k := kind{names: head.Spec.Names, Kind: check.OfCRD(func() (*unstructured.Unstructured, error) {
		var crd unstructured.Unstructured
		if err := utiljson.Unmarshal(raw, &crd.Object); err != nil {
			return nil, err
		}
		if isVersioned(gk) {
			return withVersions(&crd, crossplane.MRDVersions())
		}
		return &crd, nil
	})}
	switch gk {
	case crossplane.KindXRD:
		k.Kind = definitions{k.Kind}
	case crossplane.KindComposition:
		if of, ok := k.Kind.(check.Composable); ok {
			k.Kind = compositions{of}
		}
	}
	return gk, k, nil
}

// isVersioned reports whether Headgate writes the objects of a kind in the version that the cluster serves.
func isVersioned(gk schema.GroupKind) bool {
	return gk == crossplane.KindMRD || gk == crossplane.KindMRAP
}

// withVersions returns a CRD that also serves other versions, with the schema of its first one.
func withVersions(crd *unstructured.Unstructured, names []string) (*unstructured.Unstructured, error) {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil || len(versions) == 0 {
		return crd, err
	}
	first, _ := versions[0].(map[string]any)
	for _, name := range names {
		if slices.ContainsFunc(versions, func(v any) bool { m, _ := v.(map[string]any); return m["name"] == name }) {
			continue
		}
		other := maps.Clone(first)
		other["name"], other["storage"] = name, false
		versions = append(versions, other)
	}
	return crd, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}
