package store

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestRemember(t *testing.T) {
	var s Store
	s.remember(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "headgate"}}}})
	if s.stored.ResourceVersion != "7" || s.stored.ManagedFields != nil {
		t.Errorf("A process keeps an inventory for each sync, without its field managers: %v", s.stored.ObjectMeta)
	}
}
