package ownership

import (
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseAnnotation on a live object has it leave its sync without being deleted, once the commit no longer declares it. Its value
// is "true", or the sync that the object moves to: "namespace/name".
const ReleaseAnnotation = "headgate.dev/release"

// Releases returns the value with which a live object asks to leave a sync, and reports whether it does. Any value but "false"
// counts, since an object that is kept by mistake can still be deleted. An object that moved to the sync does not leave it.
func Releases(o metav1.Object, s inventory.Sync) (value string, asks bool) {
	value = strings.TrimSpace(o.GetAnnotations()[ReleaseAnnotation])
	return value, value != "" && !strings.EqualFold(value, "false") && !MovesTo(o, s)
}

// MovesTo reports whether a live object announces that it moves to a sync.
func MovesTo(o metav1.Object, s inventory.Sync) bool {
	return movesTo(o) == s.Key()
}

// MovedFrom returns the sync that a live object announces to move to, and reports whether that has taken it over from another
// one. An object without the mark of a sync is on its way.
func MovedFrom(o metav1.Object, s inventory.Sync) (to string, moved bool) {
	key := movesTo(o)
	mark := o.GetLabels()[inventory.SyncLabel]
	return strings.TrimSpace(o.GetAnnotations()[ReleaseAnnotation]), key != "" && key != s.Key() && (mark == key || mark == "")
}

// movesTo returns the key of the sync that a live object moves to; "" if it names none.
func movesTo(o metav1.Object) string {
	value := strings.TrimSpace(o.GetAnnotations()[ReleaseAnnotation])
	namespace, name, ok := strings.Cut(value, "/")
	switch {
	case ok:
		return inventory.Sync{Namespace: namespace, Name: name}.Key()
	case strings.Contains(value, "."): // as the label of the sync has it
		return value
	}
	return ""
}

// Moves reports whether a live object names the sync that it moves to.
func Moves(o metav1.Object) bool { return movesTo(o) != "" }
