// Package kubernetes holds the kinds of Kubernetes itself, as a source of checks. It checks the metadata of every object, some kinds
// completely, and the fields of all others.
package kubernetes

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// A Source holds the kinds of one release of Kubernetes, or of an unknown one.
type Source struct {
	release minor
	kinds   map[schema.GroupKind]*kind
}

// Of returns the kinds that a minor release of Kubernetes 1 serves. 0 means that the release is not known: what other releases may serve
// is a warning and not an error.
func Of(version int) *Source {
	if known, ok := sources.Load(version); ok {
		return known.(*Source) //nolint:forcetypeassert // nothing else is stored
	}
	s := newSource(minor(version))
	sources.Store(version, s)
	return s
}

var sources sync.Map // the results of Of

func newSource(r minor) *Source {
	s := &Source{release: r, kinds: map[schema.GroupKind]*kind{}}
	for gvk, t := range types() {
		s.add(gvk, t)
	}
	for _, g := range gone {
		s.add(g.GroupVersionKind, nil)
	}
	for gvk := range untyped {
		s.add(gvk, nil)
	}
	for _, k := range s.kinds {
		slices.SortFunc(k.versions, func(a, b string) int { return -version.CompareKubeAwareVersionStrings(a, b) })
	}
	return s
}

// add adds a version of a kind. The type is nil if its fields are not known.
func (s *Source) add(gvk schema.GroupVersionKind, t reflect.Type) {
	k := s.kinds[gvk.GroupKind()]
	if k == nil {
		k = &kind{GroupKind: gvk.GroupKind(), release: s.release, types: map[string]reflect.Type{}}
		s.kinds[gvk.GroupKind()] = k
	}
	k.versions = append(k.versions, gvk.Version)
	if t != nil {
		k.types[gvk.Version] = t
	}
}

// Groups returns the groups of Kubernetes.
func (s *Source) Groups() []string {
	groups := map[string]bool{}
	for gk := range s.kinds {
		groups[gk.Group] = true
	}
	return slices.Sorted(maps.Keys(groups))
}

// Knows returns how much is known of a group. A release that is not known may have more kinds.
func (s *Source) Knows(group string) check.Extent {
	switch {
	case !slices.Contains(s.Groups(), group):
		return check.None
	case s.release.isHeld():
		return check.All
	}
	return check.Some
}

// Kind returns a kind of Kubernetes.
func (s *Source) Kind(gk schema.GroupKind) (check.Kind, bool) {
	k, ok := s.kinds[gk]
	if !ok {
		return nil, false
	}
	return k, true
}

// Kinds returns the kinds of a group, sorted.
func (s *Source) Kinds(group string) []schema.GroupKind {
	var all []schema.GroupKind
	for gk := range s.kinds {
		if gk.Group == group {
			all = append(all, gk)
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupKind) int { return cmp.Compare(a.Kind, b.Kind) })
	return all
}

// A kind is a kind of Kubernetes.
type kind struct {
	schema.GroupKind
	release  minor
	versions []string
	types    map[string]reflect.Type // by version; a version without a type is no longer part of Kubernetes, or of another program
}

// Versions returns all versions that any release served, the newest first. Check refuses those that the release does not serve.
func (k *kind) Versions() []string { return k.versions }

// Namespaced reports whether the kind is namespaced.
func (k *kind) Namespaced() bool {
	namespaced, known := scope(k.GroupKind)
	return namespaced || !known
}

var scope = render.KubernetesScope()

// Key identifies the release.
func (k *kind) Key() string { return "kubernetes 1 " + newest + " " + k.release.String() }

// Check checks an object, except its metadata.
func (k *kind) Check(o *unstructured.Unstructured) check.Result {
	r := k.versionOf(o)
	if len(r.Errors) > 0 {
		return r
	}
	v := o.GroupVersionKind().Version
	rules, whole := complete[k.WithVersion(v)]
	t, typed := k.types[v]
	switch {
	case unstored[k.GroupKind]:
		return check.Result{Errors: []check.Problem{{Message: "no API server stores a " + k.Kind + ", so it cannot be applied"}}}
	case whole:
		r.Errors = append(r.Errors, rules(o)...)
		return r
	case !typed:
		r.NotChecked = "fields of " + k.Kind
		return r
	}
	r.NotChecked = "rules of " + k.Kind
	found := shapeOf(o, t)
	k.addShape(&r, found, v)
	if len(found.wrong) == 0 {
		r.Errors = append(r.Errors, repetitions(o)...)
	}
	return r
}

// Grows reports whether the release may serve versions that this package does not hold.
func (k *kind) Grows() bool { return !k.release.isHeld() }
