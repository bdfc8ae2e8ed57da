package reconcile

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/rounds"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type waitsFor string

func (w waitsFor) WaitsFor() string { return string(w) }

// A pass that waits for something that never happens must end, and users must be able to see what it waits for, both during the
// pass and afterwards.
func TestPassLimit(t *testing.T) {
	const lost = "the answer to PATCH /api/v1/namespaces/b/configmaps/a"
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.apply = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		l := w.loop()
		l.Reconciler.Waiter = waitsFor(lost)
		w.run(t, l)
		time.Sleep(noticeEvery + time.Second)
		waits := w.received(Waiting)
		if len(waits) != 1 || waits[0].For != lost || waits[0].Revision != "a" || waits[0].Took != noticeEvery {
			t.Errorf("want an event that names what the pass waits for, got %v", waits)
		}
		time.Sleep(l.Reconciler.limit(1, 0) - noticeEvery - 2*time.Second)
		if passed := w.received(Passed); len(passed) > 0 {
			t.Errorf("it has its limit, got %v", passed)
		}
		w.set(func() { w.apply = nil })
		time.Sleep(2 * time.Second)
		passed := w.received(Passed)
		if len(passed) != 1 || passed[0].Err == nil || !strings.Contains(passed[0].Err.Error(), "waited for "+lost) || passed[0].Next == 0 {
			t.Fatalf("want one pass with an error that names it, and a next one, got %v", passed)
		}
		time.Sleep(passed[0].Next + time.Second)
		if passed := w.received(Passed); len(passed) != 1 || passed[0].Err != nil {
			t.Errorf("the next pass goes on, got %v", passed)
		}
	})
}

// Verbs without a commit must end, too, because they run in pipelines and at terminals without a loop.
func TestEndsHaveALimit(t *testing.T) {
	const lost = "the answer to GET /api/v1/namespaces/b/configmaps/headgate-prod"
	ends := map[string]func(Reconciler, context.Context) error{
		"Destroy": func(r Reconciler, ctx context.Context) error { _, err := r.Destroy(ctx, plan.Destroying); return err },
		"Orphan":  func(r Reconciler, ctx context.Context) error { _, err := r.Destroy(ctx, plan.Orphaning); return err },
		"Release": func(r Reconciler, ctx context.Context) error { _, err := r.ReleaseRebuilt(ctx, false); return err },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.observe = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
				r := w.loop().Reconciler
				r.Waiter = waitsFor(lost)
				began, patient := time.Now(), r.limit(0, 0)+time.Second
				ctx, cancel := context.WithTimeout(t.Context(), patient)
				defer cancel()
				err := end(r, ctx)
				if took := time.Since(began); took >= patient || err == nil || !strings.Contains(err.Error(), "waited for "+lost) || !strings.Contains(err.Error(), "run the command again") {
					t.Errorf("want an error that names it after %s, got %v after %s", r.limit(0, 0), err, took)
				}
			})
		})
	}
}

// A destroy that waits for a finalizer takes minutes. Without output, a user would assume that it hangs and kill it.
func TestNoticeOfEnds(t *testing.T) {
	for name, end := range map[string]func(Reconciler, context.Context) error{
		"Destroy": func(r Reconciler, ctx context.Context) error { _, err := r.Destroy(ctx, plan.Destroying); return err },
		"Release": func(r Reconciler, ctx context.Context) error { _, err := r.ReleaseRebuilt(ctx, false); return err },
		"Sync":    func(r Reconciler, ctx context.Context) error { _, err := r.Run(ctx, "main"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.observe = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
				r := w.loop().Reconciler
				r.Waiter = waitsFor("an answer")
				var told []string
				r.Notice = func(what string) { told = append(told, what) }
				ctx, cancel := context.WithTimeout(t.Context(), 2*noticeEvery+time.Second)
				defer cancel()
				if err := end(r, ctx); err == nil || !slices.Equal(told, []string{"an answer", "an answer"}) {
					t.Errorf("want a notice every %s, got %q; %v", noticeEvery, told, err)
				}
			})
		})
	}
}

// The object that is waited for is named with its namespace in the cluster.
func TestWaitsForHomes(t *testing.T) {
	commit := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, annotations: {config.kubernetes.io/depends-on: /namespaces/default/ConfigMap/none}}\n"
	want, err := render.Render(render.Input{Files: fstest.MapFS{"a.yaml": {Data: []byte(commit)}}}, render.Options{Owner: render.OwnerHeadgate})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := demand.Ask(facts.Observed{Ground: facts.Ground{Kinds: map[schema.GroupKind]plan.Kind{{Kind: "ConfigMap"}: {Namespaced: true}}}}, want)
	if err != nil {
		t.Fatal(err)
	}
	p, err := draft.Compute(seen)
	if err != nil {
		t.Fatal(err)
	}
	pass := rounds.Pass{}.After(rounds.Next(rounds.Pass{}, p, rounds.Times{}), nil, nil)
	_, limit := Reconciler{}.allow(t.Context(), nextPass)
	defer limit.end()
	limit.observe(p, pass.Waits)
	if got := limit.waitsFor(); got != "objects that are not ready: ConfigMap default/b" {
		t.Errorf("waits for %q", got)
	}
	p.Steps[0].Waits = []reason.Reason{reason.AwaitsSync.With("team/b"), reason.AwaitsBrokenSync.With("team/a", "boom")}
	limit.observe(p, pass.Waits)
	if got := limit.waitsFor(); got != "other Syncs to render the commit: team/a, team/b" {
		t.Errorf("waits for %q", got)
	}
}

// Each tier of a destroy may take as long as --timeout, so the limit must be longer.
func TestLimitGrowsWithTiers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.loop().Reconciler
		r.Timeout = time.Hour
		_, limit := r.allow(t.Context(), runAgain)
		defer limit.end()
		p := plan.Plan{Stance: plan.Destroying}
		for _, id := range []manifest.ID{{Group: "example.org", Kind: "Bucket", Name: "a"}, {Kind: "ConfigMap", Name: "b"}, plan.CRD("buckets.example.org"), {Kind: "Namespace", Name: "c"}, crossplane.MRAP("d"), crossplane.ProviderRevision("e"), {Group: crossplane.Extensions, Kind: crossplane.KindXRD.Kind, Name: "f"}} {
			p.Steps = append(p.Steps, plan.Step{ID: id, Action: plan.Prune})
		}
		all := tiers(p)
		limit.observe(p, rounds.Waits{})
		time.Sleep(time.Duration(all) * r.Timeout)
		synctest.Wait()
		if err := context.Cause(limit.ctx); all < 5 || err != nil {
			t.Errorf("%d tiers have %d hours, got %v", all, all, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if err := context.Cause(limit.ctx); err == nil || !strings.Contains(err.Error(), "objects that are not gone: Bucket") {
			t.Errorf("want an error that names the objects, got %v", err)
		}
	})
}

// Two thousand CRDs may take minutes, but a pass over few objects must not hang for an hour.
func TestLimitGrows(t *testing.T) {
	var r Reconciler
	if got := r.limit(1, 0); got > time.Hour {
		t.Errorf("one object: %s", got)
	}
	if less, more := r.limit(0, 0), r.limit(2043, 0); more-less < 10*82*time.Second {
		t.Errorf("2,043 objects add %s, want ten times what they take", more-less)
	}
	r.Timeout = time.Hour
	if got := r.limit(0, 0); got < 2*time.Hour {
		t.Errorf("objects may take an hour until they are ready, and a pass %s", got)
	}
}

// A fetch that hangs is also reported.
func TestNoticeOfFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := w.loop()
		l.Reconciler.Source = hanging{}
		w.run(t, l)
		time.Sleep(noticeEvery + time.Second)
		if waits := w.received(Waiting); len(waits) != 1 || waits[0].For != "the commit" {
			t.Errorf("want an event, got %v", waits)
		}
	})
}

type hanging struct{}

func (hanging) Fetch(ctx context.Context, _ string) (render.Input, error) {
	<-ctx.Done()
	return render.Input{}, ctx.Err()
}
