package diff

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An Ignore is a rule of a sync: fields that belong to other writers once the object exists. Headgate never reports
// them as drift and never writes them again.
type Ignore struct {
	Group, Kind, Namespace, Name *regexp.Regexp // nil matches any value
	Paths                        []Pointer
}

func (i Ignore) selects(id manifest.ID) bool {
	for _, part := range []struct {
		pattern *regexp.Regexp
		value   string
	}{{i.Group, id.Group}, {i.Kind, id.Kind}, {i.Namespace, id.Namespace}, {i.Name, id.Name}} {
		if part.pattern != nil && !part.pattern.MatchString(part.value) {
			return false
		}
	}
	return true
}

// Ignores are the rules of a sync.
type Ignores []Ignore

// Paths returns the paths of an object that the rules name.
func (rules Ignores) Paths(id manifest.ID) []Pointer {
	var paths []Pointer
	for _, rule := range rules {
		if rule.selects(id) {
			paths = append(paths, rule.Paths...)
		}
	}
	if id.IsSecret() { // Headgate sends stringData as data
		paths = slices.Clone(paths)
		for i, p := range paths {
			if len(p) > 0 && p[0] == "stringData" {
				paths[i] = slices.Concat(Pointer{"data"}, p[1:])
			}
		}
	}
	return paths
}

// Suffix returns the part of an object's digest for the rules, so that Headgate checks the object again after a
// change of the rules.
func (rules Ignores) Suffix(id manifest.ID) string {
	paths := rules.Paths(id)
	if len(paths) == 0 {
		return ""
	}
	b, err := json.Marshal(paths)
	if err != nil {
		panic(err) // lists of strings can always be encoded
	}
	return SuffixMark + inventory.Hash(b)[:6]
}

// SuffixMark separates a digest from the suffix for the rules. No digest contains it.
const SuffixMark = "+"

// Withhold returns the ways to send an object over the live one without a change of the ignored fields. The first way
// leaves most to other writers:
//
// 1. Omit those fields. Fields of other writers stay, but the API server would remove fields that only we ever wrote.
//  2. Send the live values instead of ours. A field without another writer stays ours.
//  3. Send all live values at those places, in case the API server replaces their parent as a whole.
//
// There is one way if the rules ignore nothing in the object.
func (rules Ignores) Withhold(sent, live *unstructured.Unstructured, by inventory.Sync) []*unstructured.Unstructured {
	at := rules.places(sent)
	if len(at) == 0 {
		return []*unstructured.Unstructured{sent}
	}
	ours, whole := sent.DeepCopy(), sent.DeepCopy()
	for _, p := range at {
		wanted, _ := p.of(sent.Object)
		value, exists := p.across(sent.Object, live.Object)
		fill(whole.Object, p, nil, value, exists)
		fill(ours.Object, p, wanted, value, exists)
	}
	ways := []*unstructured.Unstructured{rules.unignored(sent, live), ours, whole}
	for _, u := range ways {
		by.Own(u) // the marks are sent even if the rules ignore them
	}
	return ways
}

// unignored returns an object without the fields that the rules ignore.
func (rules Ignores) unignored(sent, live *unstructured.Unstructured) *unstructured.Unstructured {
	at := rules.places(sent)
	if len(at) == 0 {
		return sent
	}
	without := sent.DeepCopy()
	for _, p := range at {
		if !p.remove(without.Object) { // Removing a list item would move the others.
			value, exists := p.across(sent.Object, live.Object)
			fill(without.Object, p, nil, value, exists)
		}
	}
	return without
}

// Leaves reports whether a live object's ignored fields are the same after an object was sent.
func (rules Ignores) Leaves(sent, live, after *unstructured.Unstructured) bool {
	for _, p := range rules.places(sent) {
		was, _ := p.across(sent.Object, live.Object)
		is, _ := p.across(sent.Object, after.Object)
		if !reflect.DeepEqual(was, is) {
			return false
		}
	}
	return true
}

// places returns the places of an object that the rules ignore.
func (rules Ignores) places(sent *unstructured.Unstructured) []Pointer {
	var at []Pointer
	for _, p := range rules.Paths(manifest.IDOf(sent)) {
		at = append(at, p.in(sent.Object)...)
	}
	return at
}

// fill replaces a wanted value by the live one. In a mapping, it replaces only the wanted keys, or the whole mapping
// if wanted is nil.
func fill(object any, at Pointer, wanted, live any, exists bool) {
	keys, ok := wanted.(map[string]any)
	values, both := live.(map[string]any)
	switch {
	case ok && both:
		for key, v := range keys {
			value, exists := values[key]
			fill(object, append(slices.Clip(at), key), v, value, exists)
		}
	case exists:
		at.set(object, live)
	default:
		at.remove(object)
	}
}

// injections are annotations that make a controller in the cluster inject a CA into an object.
var injections = []string{
	"cert-manager.io/inject-ca-from",
	"cert-manager.io/inject-ca-from-secret",
	"cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle",
}

// injected are the fields that receive the CA, by kind.
var injected = map[string]Pointer{
	"CustomResourceDefinition":       {"spec", "conversion", "webhook", "clientConfig", "caBundle"},
	"ValidatingWebhookConfiguration": {"webhooks", "*", "clientConfig", "caBundle"},
	"MutatingWebhookConfiguration":   {"webhooks", "*", "clientConfig", "caBundle"},
	"APIService":                     {"spec", "caBundle"},
}

// LeaveInjected removes the CA that a controller in the cluster will inject into an object. Manifests hold only a
// placeholder there.
func LeaveInjected(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	if !slices.ContainsFunc(injections, func(key string) bool { return annotations[key] != "" }) {
		return
	}
	for _, p := range injected[u.GetKind()].in(u.Object) {
		p.remove(u.Object)
	}
}
