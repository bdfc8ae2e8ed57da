package established

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"headgate.dev/headgate/reconcile/reason"

	"google.golang.org/protobuf/encoding/protowire"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// mostOfEvent is larger than any object that an API server stores.
const mostOfEvent = 16 << 20

// readEvent reads the next event from a protobuf watch of CRDs: the length, then the event, which wraps the object in an envelope.
func readEvent(r io.Reader) (string, state, error) {
	var length uint32
	if err := binary.Read(r, binary.BigEndian, &length); err != nil {
		return "", state{}, err
	}
	if length > mostOfEvent {
		return "", state{}, fmt.Errorf("an event of %d bytes", length)
	}
	frame := make([]byte, length)
	if _, err := io.ReadFull(r, frame); err != nil {
		return "", state{}, err
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(frame); err != nil {
		return "", state{}, err
	}
	var envelope runtime.Unknown
	inside, ok := bytes.CutPrefix(event.Object.Raw, []byte("k8s\x00"))
	if !ok {
		return "", state{}, errors.New("an event that is not protobuf")
	}
	if err := envelope.Unmarshal(inside); err != nil {
		return "", state{}, err
	}
	if event.Type == "ERROR" {
		var status metav1.Status
		if err := status.Unmarshal(envelope.Raw); err != nil {
			return "", state{}, err
		}
		return "", state{}, &apierrors.StatusError{ErrStatus: status}
	}
	return readCRD(envelope.Raw, event.Type == "DELETED")
}

// readCRD decodes the metadata and the status of a CRD from protobuf and skips the spec.
func readCRD(b []byte, deleted bool) (string, state, error) {
	const metadataField, statusField = 1, 3
	var crd apiextensions.CustomResourceDefinition
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return "", state{}, protowire.ParseError(n)
		}
		b = b[n:]
		if kind != protowire.BytesType {
			return "", state{}, fmt.Errorf("field %d of a CRD has an unknown type", field)
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return "", state{}, protowire.ParseError(n)
		}
		b = b[n:]
		var err error
		switch field {
		case metadataField:
			err = crd.ObjectMeta.Unmarshal(value)
		case statusField:
			err = crd.Status.Unmarshal(value)
		default: // the spec, or fields of a newer API server
		}
		if err != nil {
			return "", state{}, err
		}
	}
	now := stateOf(&crd)
	if deleted {
		now.reason, now.lost = reason.WasDeleted.With(), true
	}
	return crd.Name, now, nil
}
