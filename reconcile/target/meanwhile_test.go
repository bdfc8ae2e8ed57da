package target

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/render"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A listedSource answers those who accept an older answer with the last one, as if another sync of the process had asked a moment ago.
type listedSource struct {
	reconcile.Source

	mu   sync.Mutex
	last *render.Input
}

func (s *listedSource) Fetch(ctx context.Context, ref string) (render.Input, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && engine.Age(ctx) > 0 {
		return *s.last, nil
	}
	in, err := s.Source.Fetch(ctx, ref)
	if err == nil {
		s.last = &in
	}
	return in, err
}

// A person runs `headgate sync` for a new commit, which prunes an object, beside a process that has not seen that commit. The process finds
// that the object is gone. It once took that for drift, and created the object again from the older commit.
func TestAppliedByAnotherProcess(t *testing.T) {
	config := fixtures.Config(t)
	live, err := corev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	const space = "applied-by-another"
	if _, err := live.Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: space}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	r := newRepo(t)
	object := func(name string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\n", name, space)
	}
	r.pushAll(t, map[string]string{"a.yaml": object("a"), "b.yaml": object("b")})
	passes := make(chan reconcile.Event, 1000)
	process := func(event func(reconcile.Event)) *Target {
		t.Helper()
		s := decode(t, fmt.Sprintf("  source: {repo: %q}\n  interval: 2s\n  crdOwner: Headgate\n", r.dir))
		s.Namespace, s.Name = space, "main"
		target, err := New(s, Surroundings{Cluster: config, Cache: t.TempDir(), Secret: func(string) {}, Event: event})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = target.Close() })
		return target
	}
	passed := func() reconcile.Event {
		t.Helper()
		select {
		case e := <-passes:
			return e
		case <-time.After(fixtures.Patience):
			t.Fatal("no pass")
			return reconcile.Event{}
		}
	}
	loop := process(func(e reconcile.Event) {
		if e.Kind == reconcile.Passed {
			passes <- e
		}
	})
	loop.Loop.Reconciler.Source = &listedSource{Source: loop.Loop.Reconciler.Source}
	ctx, stop := context.WithCancel(t.Context())
	wait := loop.Start(ctx)
	t.Cleanup(func() {
		stop()
		wait()
	})
	if e := passed(); e.Err != nil || e.Report.Summary.Created != 2 {
		t.Fatalf("the first commit is applied: %+v", e)
	}

	if _, err := r.tree.Remove("b.yaml"); err != nil {
		t.Fatal(err)
	}
	second := r.push(t, "a.yaml", object("a"))
	if done, err := process(nil).Once(t.Context()); err != nil || done.Summary.Pruned != 1 {
		t.Fatalf("the person's pass prunes the object: %+v, %v", done.Summary, err)
	}
	for len(passes) > 0 {
		<-passes
	}
	passed() // it may have begun before
	if e := passed(); e.Err != nil || e.Revision != second || e.Report.Changed() {
		t.Errorf("The pass that finds the object gone goes on with the newer commit, and changes nothing: %s, %v, %+v", e.Revision, e.Err, e.Report.Summary)
	}
	if _, err := live.ConfigMaps(space).Get(t.Context(), "b", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("The object is not created again: %v", err)
	}
}
