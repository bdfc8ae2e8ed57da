//test:package raced
package established

import (
	"bytes"
	"encoding/binary"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FuzzReadEvent checks that readEvent returns the content of every event that an API server could write, and never panics.
func FuzzReadEvent(f *testing.F) {
	f.Add("buckets.example.org", "7", true, []byte("k8s\x00"))
	f.Add("", "", false, []byte{})
	f.Add("a", "1", false, []byte{0, 0, 0, 2, 255, 255})
	f.Fuzz(func(t *testing.T, name, version string, served bool, junk []byte) {
		_, _, _ = readEvent(bytes.NewReader(junk)) // must not panic

		crd := apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
		crd.Spec.Group = string(junk)
		status := apiextensions.ConditionFalse
		if served {
			status = apiextensions.ConditionTrue
		}
		crd.Status.Conditions = []apiextensions.CustomResourceDefinitionCondition{
			{Type: apiextensions.NamesAccepted, Status: apiextensions.ConditionTrue},
			{Type: apiextensions.Established, Status: status},
		}
		gotName, state, err := readEvent(bytes.NewReader(eventOf(t, &crd)))
		if err != nil {
			t.Fatal(err)
		}
		if gotName != name || state.version != version || state.reason.None() != served {
			t.Errorf("readEvent(%q at %q, served %t) = %q, %+v", name, version, served, gotName, state)
		}
	})
}

// eventOf returns the event of a CRD, encoded as by an API server.
func eventOf(t *testing.T, crd *apiextensions.CustomResourceDefinition) []byte {
	t.Helper()
	body, err := crd.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&runtime.Unknown{Raw: body}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	event := metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: append([]byte("k8s\x00"), envelope...)}}
	frame, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}
