package store

import (
	"context"
	"encoding/json"

	"headgate.dev/headgate/reconcile/inventory"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// historyAnnotation is the inventory's annotation with the results of the last passes. Reading it costs no extra request, and it is
// deleted with the inventory.
const historyAnnotation = "headgate.dev/history"

// holdsAnnotation is the inventory's annotation with the holds of the last pass, and when and with which commit each began.
const holdsAnnotation = "headgate.dev/holds"

// undoneAnnotation is the inventory's annotation with the creates and updates that the last pass did not do, and since when.
const undoneAnnotation = "headgate.dev/undone"

// failuresAnnotation is the inventory's annotation with what failed in the last pass, and why.
const failuresAnnotation = "headgate.dev/failures"

// holdsOf returns the holds in a stored inventory. It ignores unreadable holds, which then count as new.
func holdsOf(m *corev1.ConfigMap) inventory.Holds {
	return annotated[inventory.Holds](m, holdsAnnotation)
}

// historyOf returns the history in a stored inventory. It ignores an unreadable history.
func historyOf(m *corev1.ConfigMap) []inventory.Past {
	return annotated[[]inventory.Past](m, historyAnnotation)
}

// annotated returns the value of an annotation in JSON; a zero value if it cannot be read.
func annotated[T any](m *corev1.ConfigMap, key string) T {
	var value, none T
	if json.Unmarshal([]byte(m.Annotations[key]), &value) != nil {
		return none
	}
	return value
}

// Record stores the result of a pass in the inventory's history if it is new. Without an inventory, it does nothing. It needs no
// lease: it changes only the history, and only of the inventory that it read. A pass that writes in the meantime keeps the history.
func (c *Store) Record(ctx context.Context, p inventory.Past) error {
	for again := 0; ; again++ {
		if c.stored == nil || again > 0 {
			if _, err := c.Inventory(ctx); err != nil || c.stored == nil {
				return err
			}
		}
		next := c.stored.DeepCopy()
		if p.Holding != nil {
			holds := p.Holding.Bounded()
			p.News = !equality.Semantic.DeepEqual(holds, holdsOf(c.stored)) && len(holds)+len(holdsOf(c.stored)) > 0
			if err := annotate(next, holdsAnnotation, holds, len(holds) == 0); err != nil {
				return err
			}
			if err := annotate(next, undoneAnnotation, p.Undone, len(p.Undone) == 0); err != nil {
				return err
			}
			if err := annotate(next, failuresAnnotation, p.Failures.Bounded(), len(p.Failures) == 0); err != nil {
				return err
			}
		}
		history, news := inventory.Recalled(historyOf(c.stored), p)
		same := func(key string) bool { return next.Annotations[key] == c.stored.Annotations[key] }
		if !news && same(undoneAnnotation) && same(failuresAnnotation) {
			return nil
		}
		if err := annotate(next, historyAnnotation, history, false); err != nil {
			return err
		}
		stored, err := c.Core.ConfigMaps(next.Namespace).Update(ctx, next, metav1.UpdateOptions{FieldManager: inventory.Manager})
		switch {
		case err == nil:
			c.remember(stored)
			return nil
		case again < mostTouched && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)):
			continue
		}
		return c.Explain(err, "update", "the history in the inventory ConfigMap "+next.Namespace+"/"+next.Name)
	}
}

// annotate sets an annotation to a value in JSON, or removes it.
func annotate(m *corev1.ConfigMap, key string, value any, remove bool) error {
	if remove {
		delete(m.Annotations, key)
		return nil
	}
	text, err := json.Marshal(value)
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, string(text))
	return err
}
