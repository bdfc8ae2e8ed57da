package write

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/cluster/count"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"

	"google.golang.org/protobuf/encoding/protowire"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// establishing watches the CRDs of the sync while they are applied. One watch covers all of them. It uses protobuf and
// skips schemas undecoded, because a provider has tens of megabytes of them.
type establishing struct {
	cluster *api.Client
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	states  map[string]crdState
	changed chan struct{} // closed and replaced whenever a state changes
}

// A crdState is the last state of a CRD.
type crdState struct {
	version string        // resourceVersion
	reason  reason.Reason // why it is not served; empty if it is
}

// establish starts the watch. It lasts until end is called and not until ctx is done, because a pass waits longer than it holds the
// lease, and ctx ends with the lease. The watch sees every write after establish has returned.
func (c *Writer) establish(ctx context.Context) (*establishing, error) {
	gvr, err := c.Surface.Resource(api.GroupKind(plan.CRD("")), "")
	if err != nil {
		return nil, err
	}
	now, err := c.Metadata.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, c.Explain(err, "list", gvr.GroupResource().String())
	}
	e := &establishing{cluster: c.Client, stopped: make(chan struct{}), states: map[string]crdState{}, changed: make(chan struct{})}
	ctx, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	go e.follow(ctx, now.ResourceVersion)
	return e, nil
}

func (e *establishing) end() {
	e.stop()
	<-e.stopped
}

// follow keeps the watch open. If that fails, wait reads the CRDs itself.
func (e *establishing) follow(ctx context.Context, from string) {
	defer close(e.stopped)
	for ctx.Err() == nil {
		err := engine.Caught("watch", func() error { return e.watch(ctx, &from) })
		if errors.As(err, new(engine.DefectError)) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsForbidden(err) {
			return
		}
		api.Sleep(ctx, time.Second)
	}
}

func (e *establishing) watch(ctx context.Context, from *string) error {
	body, err := e.cluster.Core.RESTClient().Get().
		AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
		Param("watch", "true").
		Param("labelSelector", e.cluster.Ours()).
		Param("resourceVersion", *from).
		SetHeader("Accept", runtime.ContentTypeProtobuf).
		Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	events := bufio.NewReaderSize(body, 1<<20)
	for {
		crd, state, err := readEvent(events)
		if err != nil {
			return err
		}
		*from = state.version
		e.mu.Lock()
		e.states[crd] = state
		close(e.changed)
		e.changed = make(chan struct{})
		e.mu.Unlock()
	}
}

// mostOfEvent is larger than any object that an API server stores.
const mostOfEvent = 16 << 20

// readEvent reads the next event from a protobuf watch of CRDs: the length, then the event, which wraps the object in an envelope.
func readEvent(r io.Reader) (string, crdState, error) {
	var length uint32
	if err := binary.Read(r, binary.BigEndian, &length); err != nil {
		return "", crdState{}, err
	}
	if length > mostOfEvent {
		return "", crdState{}, fmt.Errorf("an event of %d bytes", length)
	}
	frame := make([]byte, length)
	if _, err := io.ReadFull(r, frame); err != nil {
		return "", crdState{}, err
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(frame); err != nil {
		return "", crdState{}, err
	}
	var envelope runtime.Unknown
	inside, ok := bytes.CutPrefix(event.Object.Raw, []byte("k8s\x00"))
	if !ok {
		return "", crdState{}, errors.New("an event that is not protobuf")
	}
	if err := envelope.Unmarshal(inside); err != nil {
		return "", crdState{}, err
	}
	if event.Type == "ERROR" {
		var status metav1.Status
		if err := status.Unmarshal(envelope.Raw); err != nil {
			return "", crdState{}, err
		}
		return "", crdState{}, &apierrors.StatusError{ErrStatus: status}
	}
	return readCRD(envelope.Raw, event.Type == "DELETED")
}

// readCRD decodes the metadata and the status of a CRD from protobuf and skips the spec.
func readCRD(b []byte, deleted bool) (string, crdState, error) {
	const metadataField, statusField = 1, 3
	var crd apiextensions.CustomResourceDefinition
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return "", crdState{}, protowire.ParseError(n)
		}
		b = b[n:]
		if kind != protowire.BytesType {
			return "", crdState{}, fmt.Errorf("field %d of a CRD has an unknown type", field)
		}
		value, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return "", crdState{}, protowire.ParseError(n)
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
			return "", crdState{}, err
		}
	}
	state := crdState{version: crd.ResourceVersion, reason: facts.WhyCRD(count.Unestablished(&crd))}
	if deleted {
		state.reason = reason.WasDeleted.With()
	}
	return crd.Name, state, nil
}

// wait waits until the CRDs that were applied at the given resourceVersions are served, for as long as ctx and the timeout allow.
// It returns the CRDs that are not served, each with the reason.
func (e *establishing) wait(ctx context.Context, timeout time.Duration, applied map[string]string, progress func(crd string)) map[string]reason.Reason {
	defer engine.Pause(ctx)()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	left := maps.Clone(applied)
	// A write without changes causes no event, and a watch may be refused. Therefore, read some CRDs without an event from time to
	// time. If that shows nothing new, the API server is busy, so ask it less often.
	quiet := leastQuiet
	looked := false
	end := func() {}
	defer func() { end() }()
	for {
		before := len(left)
		changed := e.dropEstablished(left, progress)
		end()
		end = e.cluster.Await("CRDs that are not established: " + api.FirstOf(slices.Collect(maps.Keys(left))))
		switch {
		case len(left) == 0:
			return nil
		case len(left) < before:
			quiet = leastQuiet
		case looked:
			quiet = min(2*quiet, 8*leastQuiet)
		}
		looked = false
		select {
		case <-ctx.Done():
			return e.reasons(context.WithoutCancel(ctx), left)
		case <-changed:
		case <-time.After(quiet):
			e.lookAt(ctx, left)
			looked = true
		}
	}
}

// dropEstablished deletes the served CRDs from left. It returns a channel that is closed on the next change.
func (e *establishing) dropEstablished(left map[string]string, progress func(string)) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, since := range left {
		state, heard := e.states[name]
		if heard && state.reason.None() && !older(state.version, since) {
			delete(left, name)
			progress(name)
		}
	}
	return e.changed
}

func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// leastQuiet is how long the watch may be silent before CRDs are read directly.
const leastQuiet = 2 * time.Second

// laggards is the maximum number of CRDs to read directly each time.
const laggards = 50

// lookAt reads some of the CRDs that had no event since their apply. If the watch has ended, it reads some of all remaining CRDs.
func (e *establishing) lookAt(ctx context.Context, left map[string]string) {
	stopped := false
	select {
	case <-e.stopped:
		stopped = true
	default:
	}
	var names []string
	e.mu.Lock()
	for name, since := range left {
		if state, heard := e.states[name]; stopped || !heard || older(state.version, since) {
			names = append(names, name)
		}
	}
	e.mu.Unlock()
	slices.Sort(names)
	for _, name := range names[:min(len(names), laggards)] {
		e.readOne(ctx, name)
	}
}

func (e *establishing) readOne(ctx context.Context, name string) {
	u, err := e.cluster.Read(ctx, plan.CRD(name))
	if apierrors.IsNotFound(err) {
		e.set(name, crdState{reason: reason.WasDeleted.With()})
		return
	}
	if err != nil {
		return
	}
	var crd apiextensions.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
		return
	}
	e.set(name, crdState{version: crd.ResourceVersion, reason: facts.WhyCRD(count.Unestablished(&crd))})
}

func (e *establishing) set(name string, s crdState) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.states[name] = s
}

// reasons returns why CRDs are still not served, according to their last known states.
func (e *establishing) reasons(ctx context.Context, left map[string]string) map[string]reason.Reason {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	e.lookAt(ctx, left)
	e.mu.Lock()
	defer e.mu.Unlock()
	why := make(map[string]reason.Reason, len(left))
	for name := range left {
		why[name] = e.states[name].reason.Or(reason.ConditionNotReported.With(string(apiextensions.Established)))
	}
	return why
}
