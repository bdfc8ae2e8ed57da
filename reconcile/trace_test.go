package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/collector"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/trace"

	"github.com/google/go-cmp/cmp"
)

// noting is a Recorder that records nothing.
type noting struct{ err error }

func (n noting) Record(context.Context, inventory.Past) error { return n.err }

// A trace shows what a pass did, in order, what took its time, and which part failed. It shows no text of an error.
func TestTrace(t *testing.T) {
	const secret = "s3cret-t0ken"
	quotes := errors.New("the server quotes " + secret)
	for name, tc := range map[string]struct {
		reason string
		change func(*world, *Loop)
		want   string
	}{
		"Applied": {
			reason: "Each part of a pass is a span.",
			change: func(_ *world, l *Loop) { l.Reconciler.Recorder = noting{} },
			want: `pass because=start created=1 drifted=0 failed=0 held=0 pruned=0 result=pass revision=a sync.name=prod sync.namespace=ns updated=0
  fetch revision=a
  render objects=1
  observe objects=0
  plan steps=1
  post
  apply failed=0 objects=1
  post
  record
`,
		},
		"NoCommit": {
			reason: "A source that cannot be read fails the pass.",
			change: func(w *world, _ *Loop) { w.fetching = quotes },
			want: `pass because=start created=0 drifted=0 failed=0 held=0 pruned=0 reason=Failed result=pass sync.name=prod sync.namespace=ns updated=0 ERROR Failed
  fetch reason=Failed revision=a ERROR Failed
  post
`,
		},
		"Refused": {
			reason: "An object that the API server refuses fails the pass, although the pass goes on.",
			change: func(w *world, l *Loop) { w.refuses, l.Reconciler.NoWait = quotes, true },
			want: `pass because=start created=0 drifted=0 failed=1 held=0 pruned=0 reason=Failed result=pass revision=a sync.name=prod sync.namespace=ns updated=0 ERROR Failed
  fetch revision=a
  render objects=1
  observe objects=0
  plan steps=1
  post
  apply failed=1 objects=1
  post
`,
		},
		"NotPosted": {
			reason: "A forge or an inventory that refuses is seen, and does not fail the pass.",
			change: func(w *world, l *Loop) { w.publish, l.Reconciler.Recorder = quotes, noting{quotes} },
			want: `pass because=start created=1 drifted=0 failed=0 held=0 pruned=0 result=pass revision=a sync.name=prod sync.namespace=ns updated=0
  fetch revision=a
  render objects=1
  observe objects=0
  plan steps=1
  post reason=Failed ERROR Failed
  apply failed=0 objects=1
  post reason=Failed ERROR Failed
  record reason=Failed ERROR Failed
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := collector.Start(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
			w := newWorld()
			l := w.loop()
			tc.change(w, &l)
			var err error
			if l.Tracer, err = trace.FromEnvironment("", nil); err != nil {
				t.Fatal(err)
			}
			_, _ = l.Once(t.Context())
			l.Tracer.Close()
			if diff := cmp.Diff(tc.want, strings.Join(c.Await(t, 1), "\n")); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if strings.Contains(c.Received(), secret) {
				t.Errorf("an error is in the trace")
			}
		})
	}
}

// A pass that makes way did not fail. Its successor has a trace of its own.
func TestTraceOfInterruptedPass(t *testing.T) {
	c := collector.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	tracer, err := trace.FromEnvironment("", nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	l := w.loop()
	l.Tracer, l.Grace = tracer, 1 // the pass has no time to finish
	began := make(chan struct{})
	w.apply = func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	ctx, stop := context.WithCancel(t.Context())
	wait := l.Start(ctx)
	<-began
	stop()
	wait()
	tracer.Close()
	all := c.Await(t, 1)
	pass, _, _ := strings.Cut(all[0], "\n")
	if len(all) != 1 || !strings.Contains(pass, "result=pass interrupted ") || strings.Contains(pass, "ERROR") || !strings.Contains(all[0], "  apply failed=0 objects=0 reason=Failed ERROR Failed\n") {
		t.Errorf("an interrupted pass has these traces:\n%s", strings.Join(all, "\n"))
	}
}
