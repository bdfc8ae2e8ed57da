package reconcile

import (
	"bytes"
	"context"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
)

// Recorded is a Source whose commits record what is read of them, so that a loop makes no pass over a new commit that changes nothing
// of its sync.
type Recorded struct{ Source }

// Fetch fetches a commit.
func (s Recorded) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := s.Source.Fetch(ctx, ref)
	return render.Recording(in), err
}

// A settled is the report that another pass would have, with what a render depends on. The zero value says that it is not known.
type settled struct {
	report report.Report
	reads  render.Reads
	how    render.Options
}

// settledBy returns the result of a pass over a commit.
func settledBy(result report.Report, err error, in render.Input, how render.Options) settled {
	next, known := result.Repeated()
	if err != nil || !known {
		return settled{}
	}
	return settled{next, in.Read(), how}
}

// sameOptions reports whether the options for a target are the same as before. Definitions and policies of the cluster are never known
// to be.
func sameOptions(was, now render.Options) bool {
	if now.Live != nil || now.Policies != nil {
		return false
	}
	return was.Owner == now.Owner && bytes.Equal(was.Conversion.CABundle, now.Conversion.CABundle)
}

// follows is follow for the newest commit. If that cannot be fetched, or panics, the pass that follows reports it.
func (r *running) follows(ctx context.Context) (is bool) {
	_ = engine.Caught("look", func() error {
		in, err := r.fetch(engine.Within(ctx, recent))
		is = err == nil && (in.Revision == r.current() || r.follow(ctx, in))
		return nil
	})
	return is
}

// follow takes up a new commit without a pass, if a pass would find what the last one found: nothing that a render of the sync depends on
// has changed, and nothing was open. The commit gets the status that the pass would post, unless the loop is
// Untold: then it gets one only if a later pass finds something else. Any doubt is a reason for a pass, and so is
// history: FastForward, because the inventory then stores each commit.
func (r *running) follow(ctx context.Context, in render.Input) bool {
	was := r.settled
	if r.next.Failures > 0 || r.fresh() || r.Reconciler.Terms.FastForward {
		return false
	}
	if _, same := was.reads.Same(in); !same {
		return false
	}
	how, err := r.Reconciler.options(ctx)
	if err != nil || !sameOptions(was.how, how) {
		return false
	}
	in.Documents = nil
	r.last = in
	r.settled.reads = in.Read()
	r.supersede(ctx, in.Revision)
	r.unsaid, r.so = false, report.Summary{}
	r.Reconciler.Peers.follows(r.Reconciler.Sync, was.report.Revision, in.Revision)
	r.settled.report.Revision = in.Revision
	if verdict := r.settled.report.Verdict; r.Untold {
		r.untold = &verdict
	} else {
		r.publish(ctx, r.settled.report)
	}
	r.emit(Event{Kind: Untouched, Revision: in.Revision, Report: r.settled.report})
	return true
}

// follows records that a newer commit of a sync declares the same.
func (p *Peers) follows(of inventory.Sync, from, to string) {
	p.change(of, func(m *member) {
		if m.fetched = true; m.revision == from && m.declares != nil {
			m.revision, m.broken = to, nil
			p.arrived(m)
		}
	})
}
