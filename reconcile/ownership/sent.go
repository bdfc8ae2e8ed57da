package ownership

import (
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SentMarks returns the marks of other tools that our field manager applied to a live object, and the annotations
// with which users stop Headgate: "key=hash of the value", sorted and separated by commas. The inventory stores them
// in case the managed fields are lost.
func SentMarks(live metav1.Object) string {
	var sent []string
	look := func(annotation bool, key string) {
		keys := live.GetLabels()
		if annotation {
			keys = live.GetAnnotations()
		}
		if value, there := keys[key]; there && inventory.AppliedKey(live, annotation, key) {
			sent = append(sent, sentMark(key, value))
		}
	}
	for _, m := range slices.Concat(crossplaneClaimKeys, claimKeys) {
		if m.annotation != "" {
			look(true, m.in(live.GetAnnotations()))
		} else {
			look(false, m.in(live.GetLabels()))
		}
	}
	look(true, crossplane.PausedAnnotation)
	for _, be := range render.LeaveBe {
		look(true, be.Key)
		look(false, be.Key)
	}
	slices.Sort(sent)
	return strings.Join(slices.Compact(sent), ",")
}

// sentMark returns a mark in the form of the inventory. A value may be long. A key contains neither "=" nor ",".
func sentMark(key, value string) string { return key + "=" + inventory.Hash([]byte(value))[:8] }

// SentByUs reports whether Headgate sent a label or annotation of a live object, according to its managed fields or
// to the inventory, which stores the value.
func SentByUs(o metav1.Object, remembered string, annotation bool, key string) bool {
	if inventory.AppliedKey(o, annotation, key) {
		return true
	}
	if remembered == "" {
		return false
	}
	value := o.GetLabels()[key]
	if annotation {
		value = o.GetAnnotations()[key]
	}
	return slices.Contains(strings.Split(remembered, ","), sentMark(key, value))
}
