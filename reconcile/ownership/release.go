package ownership

import (
	"strings"

	"headgate.dev/headgate/reconcile/inventory"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReleaseAnnotation on a live object makes it leave its sync without being deleted, once the commit no longer
// declares it. Its value is "true", or the sync to which the object moves: "namespace/name".
const ReleaseAnnotation = "headgate.dev/release"

// Releases reports whether a live object asks to leave a sync, and returns the value of its annotation. Any value but
// "false" counts, because an object that is kept by mistake can still be deleted. An object that moves to this sync
// does not leave it.
func Releases(o metav1.Object, s inventory.Sync) (value string, asks bool) {
	value = strings.TrimSpace(o.GetAnnotations()[ReleaseAnnotation])
	return value, value != "" && !strings.EqualFold(value, "false") && !MovesTo(o, s)
}

// MovesTo reports whether a live object's annotation announces a move to a sync.
func MovesTo(o metav1.Object, s inventory.Sync) bool {
	return movesTo(o) == s.Key()
}

// MovedFrom returns the sync to which a live object's annotation announces a move, and reports whether that sync has
// taken the object over. An object without the mark of any sync is still moving, and counts as moved.
func MovedFrom(o metav1.Object, s inventory.Sync) (to string, moved bool) {
	to = strings.TrimSpace(o.GetAnnotations()[ReleaseAnnotation])
	key := movesTo(o)
	if key == "" || key == s.Key() {
		return to, false
	}
	mark := o.GetLabels()[inventory.SyncLabel]
	return to, mark == key || mark == ""
}

// movesTo returns the key of the sync to which a live object moves, or "".
func movesTo(o metav1.Object) string {
	value := strings.TrimSpace(o.GetAnnotations()[ReleaseAnnotation])
	namespace, name, ok := strings.Cut(value, "/")
	switch {
	case ok:
		return inventory.Sync{Namespace: namespace, Name: name}.Key()
	case strings.Contains(value, "."): // the key of a sync, as in its label
		return value
	}
	return ""
}

// Moves reports whether a live object's annotation names a sync to which it moves.
func Moves(o metav1.Object) bool { return movesTo(o) != "" }
