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

// An Ignore is a rule of a sync: fields that belong to other writers after the object was created. They are never
// drift, and never written again.
type Ignore struct {
	Group, Kind, Namespace, Name *regexp.Regexp // nil is any
	Paths                        []Pointer
}

func (i Ignore) selects(id manifest.ID) bool {
	fits := func(pattern *regexp.Regexp, value string) bool { return pattern == nil || pattern.MatchString(value) }
	return fits(i.Group, id.Group) && fits(i.Kind, id.Kind) && fits(i.Namespace, id.Namespace) && fits(i.Name, id.Name)
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
	return paths
}

// Suffix returns the part of an object's digest for the rules: after a change of rules, the object is checked again.
func (rules Ignores) Suffix(id manifest.ID) string {
	paths := rules.Paths(id)
	if len(paths) == 0 {
		return ""
	}
	b, err := json.Marshal(paths)
	if err != nil {
		panic(err) // lists of strings
	}
	return SuffixMark + inventory.Hash(b)[:6]
}

// SuffixMark separates a digest from what the rules add to it. No digest contains it.
const SuffixMark = "+"

// Withhold are the ways to send an object over the live one that leave the ignored fields
// as they are, from the one that leaves most to others:
//
//  1. without those fields. Fields of other writers stay; fields that only we ever wrote would be removed.
//  2. with the live values instead of ours. A field without another writer stays ours.
//  3. with all that is live there, for where the API server replaces as a whole what is
//     around it.
//
// There is one way where nothing of the object is ignored.
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
		by.Own(u) // whatever is ignored
	}
	return ways
}

// unignored is an object without the fields that its rules ignore.
func (rules Ignores) unignored(sent, live *unstructured.Unstructured) *unstructured.Unstructured {
	at := rules.places(sent)
	if len(at) == 0 {
		return sent
	}
	without := sent.DeepCopy()
	for _, p := range at {
		if !p.remove(without.Object) { // an item of a list: without it others would move
			value, exists := p.across(sent.Object, live.Object)
			fill(without.Object, p, nil, value, exists)
		}
	}
	return without
}

// Leaves reports whether the ignored fields of a live object are as they were after an object
// was sent.
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

// places are where an object has something that its rules ignore.
func (rules Ignores) places(sent *unstructured.Unstructured) []Pointer {
	var at []Pointer
	for _, p := range rules.Paths(manifest.IDOf(sent)) {
		at = append(at, p.in(sent.Object)...)
	}
	return at
}

// fill replaces a wanted value by the live one. For a mapping, it takes only the wanted keys, or all keys if none is
// named.
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

// injections are annotations by which something in the cluster puts a CA into an object.
var injections = []string{
	"cert-manager.io/inject-ca-from",
	"cert-manager.io/inject-ca-from-secret",
	"cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle",
}

// injected are the fields of a kind into which it does.
var injected = map[string]Pointer{
	"CustomResourceDefinition":       {"spec", "conversion", "webhook", "clientConfig", "caBundle"},
	"ValidatingWebhookConfiguration": {"webhooks", "*", "clientConfig", "caBundle"},
	"MutatingWebhookConfiguration":   {"webhooks", "*", "clientConfig", "caBundle"},
	"APIService":                     {"spec", "caBundle"},
}

// LeaveInjected takes out of an object the CA that something in the cluster is going to put
// there: what manifests hold in its place is a placeholder.
func LeaveInjected(u *unstructured.Unstructured) {
	annotations := u.GetAnnotations()
	if !slices.ContainsFunc(injections, func(key string) bool { return annotations[key] != "" }) {
		return
	}
	for _, p := range injected[u.GetKind()].in(u.Object) {
		p.remove(u.Object)
	}
}
