package kubernetes

import (
	"reflect"

	"headgate.dev/headgate/render/check"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Base checks a base of a Composition: its version, fields and types. Rules do not count, because patches may add to the base.
func (k *kind) Base(base *unstructured.Unstructured) check.Result {
	r := k.versionOf(base)
	t := k.typeOf(base.GroupVersionKind().Version)
	if len(r.Errors) > 0 || t == nil {
		return r
	}
	found := shapeOf(base, t)
	k.addShape(&r, found, base.GroupVersionKind().Version)
	if len(found.wrong) == 0 {
		r.Errors = append(r.Errors, repetitions(base)...)
	}
	return r
}

// Lacks reports whether no release that may serve the version has a field.
func (k *kind) Lacks(version, path string) (why string, lacks bool) {
	o, err := check.Only(path)
	if err != nil {
		return err.Error(), true
	}
	t := k.typeOf(version)
	if o == nil || t == nil || !k.holds(version) {
		return "", false
	}
	if unknown := shapeOf(o, t).unknown; len(unknown) > 0 {
		return unknown[0].Field + " is an " + unknown[0].Message, true
	}
	return "", false
}

// typeOf returns the type of a version, or nil if its fields are not known.
func (k *kind) typeOf(version string) reflect.Type { return k.types[version] }

// holds reports whether no release that may serve the version has more fields than its type.
func (k *kind) holds(version string) bool {
	_, whole := complete[k.WithVersion(version)]
	return whole || k.release.isHeld()
}

// addShape adds what does not fit the type of a version.
func (k *kind) addShape(r *check.Result, found shape, version string) {
	r.Errors = append(r.Errors, found.wrong...)
	if k.holds(version) {
		r.Errors = append(r.Errors, found.unknown...)
		return
	}
	for _, p := range found.unknown {
		p.Message = "Kubernetes " + newest + " has no such field" + p.Message[len(unknownField):]
		r.Warnings = append(r.Warnings, p)
	}
}
