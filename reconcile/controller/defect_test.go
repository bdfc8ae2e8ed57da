package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// panicking is a client with a defect.
type panicking struct{ client.Client }

func (panicking) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	panic("a nil map\nand a trace")
}

func TestReconcilePanics(t *testing.T) {
	name := types.NamespacedName{Namespace: "a", Name: "b"}
	c := &controller{client: panicking{}, leads: make(chan struct{}), subjects: map[inventory.Sync]*subject{}}
	close(c.leads)
	request := runtimereconcile.Request{NamespacedName: name}
	if _, err := c.Reconcile(t.Context(), request); !errors.As(err, new(engine.DefectError)) {
		t.Errorf("The request is tried again: %v", err)
	}
	one := newSubject(c, &v1alpha1.Sync{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Generation: 2}})
	one.writes = true // the test has no API server
	c.subjects[inventory.Sync{Namespace: "a", Name: "b"}] = one
	_, _ = c.Reconcile(t.Context(), request)
	shown := meta.FindStatusCondition(one.status.Conditions, v1alpha1.ConditionStalled)
	if shown == nil || shown.Reason != "Defect" || !strings.Contains(shown.Message, "a nil map") || strings.Contains(shown.Message, "trace") {
		t.Errorf("The status shows the defect in one line: %+v", shown)
	}
}
