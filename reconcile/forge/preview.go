package forge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Previews publishes what the merge of a pull request does: as one status on its head, and as one
// comment.
type Previews struct {
	Poster Record // of the status; nil: post none
	Pulls  *Pulls // of the comment; nil: write none
	Pull   Pull   // its head gets the status

	Sync      inventory.Sync // whose previews they are
	Cluster   string         // of previews that ask one; "" if they ask none
	Home      string         // the namespace that contexts leave out, as in Statuses
	TargetURL string         // of the status, or empty

	// Commands decides whose commands and reviews count. nil: none do, and comments are not read. Commands need Poster and
	// Pulls: the status shows when the head was previewed.
	Commands *Rules

	talk *talk // as Approvals read it
}

// Approvals returns the approvals of what a preview asks for that people gave on the forge. Publish answers them.
func (p *Previews) Approvals(ctx context.Context, r report.Report) ([]report.Approved, error) {
	if p.talk = nil; !p.listens() {
		return nil, nil
	}
	t, err := p.Pulls.talk(ctx, p.Pull, *p.Commands)
	if err != nil {
		return nil, p.failed(err)
	}
	p.talk = t
	if r.Approval == nil || !t.asks() && !t.rules.Reviews {
		return nil, nil
	}
	if err := t.know(ctx); err != nil {
		return nil, p.failed(err)
	}
	given, err := t.approvals(ctx)
	if err != nil {
		return nil, p.failed(err)
	}
	var all []report.Approved
	for _, a := range given {
		if a.digest == "" {
			a.digest = r.Approval.Digest
		}
		if a.digest == r.Approval.Digest {
			all = append(all, a.approved(a.digest))
			if a.how == inventory.InReview {
				t.counted = append(t.counted, a)
			}
		}
	}
	return all, nil
}

func (a approval) approved(digests ...string) report.Approved {
	at := metav1.NewTime(a.created.UTC().Truncate(time.Second))
	return report.Approved{Digests: digests, By: a.called(), How: []inventory.ApprovalPlace{a.how}, At: &at}
}

// Heard reports whether people said something since a preview was published that it answers or counts. asks is whether
// it waits for an approval, or has one that may be taken back.
func (p *Previews) Heard(ctx context.Context, asks bool) (bool, error) {
	if !p.listens() {
		return false, nil
	}
	if asks && p.Commands.Reviews {
		return true, nil
	}
	t, err := p.Pulls.talk(ctx, p.Pull, *p.Commands)
	if err != nil {
		return false, p.failed(err)
	}
	if !t.asks() {
		return false, nil
	}
	if err := t.know(ctx); err != nil {
		return false, p.failed(err)
	}
	all, err := t.unanswered(ctx, p.about(report.Report{Sync: p.Sync}))
	if err != nil {
		return false, p.failed(err)
	}
	return len(all) > 0, nil
}

func (p *Previews) listens() bool { return p.Commands != nil && p.Pulls != nil && p.Poster != nil }

func (p *Previews) failed(err error) error {
	return p.Pulls.transport.redacted(fmt.Errorf("cannot read the commands on pull request %d: %w", p.Pull.Number, err))
}

// answer answers the commands that have no answer yet.
func (p *Previews) answer(ctx context.Context, r report.Report) error {
	t := p.talk
	if t == nil {
		return nil
	}
	for _, a := range t.counted {
		key := recordKey(p.about(r), a, a.digest)
		if t.has(key) {
			continue
		}
		text := fmt.Sprintf("The review of %s approves %s for commit %.12s. Clusters read this record; an edit voids it.\n", report.Quoted(a.called()), report.Quoted(a.digest), t.pull.Head)
		if err := p.Pulls.Comment(ctx, p.Pull.Number, key, text); err != nil {
			return err
		}
	}
	if !t.asks() {
		return nil
	}
	if err := t.know(ctx); err != nil {
		return p.failed(err)
	}
	all, err := t.unanswered(ctx, p.about(r))
	for _, c := range all {
		text, failed := t.answer(ctx, c, r)
		if failed != nil {
			return p.failed(failed)
		}
		if text == "" {
			continue
		}
		if err := p.Pulls.Comment(ctx, p.Pull.Number, answerKey(p.about(r), c), text); err != nil {
			return err
		}
	}
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// Pending posts that a preview is being made. The result of an earlier preview stays until there is a new one:
// a merge does not wait because Headgate restarted.
func (p *Previews) Pending(ctx context.Context, of report.Report) error {
	if p.Poster == nil {
		return nil
	}
	stands, err := p.Poster.Current(ctx, p.Pull.Head, p.context(of))
	if err != nil || stands.State != "" {
		return err
	}
	return p.post(ctx, of, report.Status{State: report.Pending, Description: "the preview is being made"})
}

// Standing returns the status that the head has.
func (p *Previews) Standing(ctx context.Context, of report.Report) (report.Status, error) {
	if p.Poster == nil {
		return report.Status{}, nil
	}
	s, err := p.Poster.Current(ctx, p.Pull.Head, p.context(of))
	return report.Status{State: s.State, Description: s.Description}, err
}

// Publish publishes the report of a preview.
func (p *Previews) Publish(ctx context.Context, r report.Report) error {
	var refused []error
	if p.listens() && r.Preview != nil {
		said := *r.Preview
		said.Commands, said.Reviews, said.Listed = true, p.Commands.Reviews, len(p.Commands.Approvers) > 0
		r.Preview = &said
	}
	if p.Pulls != nil {
		body := report.Comment(r, p.Pulls.room(p.about(r)))
		refused = append(refused, p.Pulls.Comment(ctx, p.Pull.Number, p.about(r), body))
	}
	return errors.Join(append(refused, p.post(ctx, r, r.Verdict.Activation), p.answer(ctx, r))...)
}

func (p *Previews) post(ctx context.Context, r report.Report, said report.Status) error {
	if p.Poster == nil {
		return nil
	}
	if !isCommit(p.Pull.Head) {
		return fmt.Errorf("a status needs a full commit id, not %q", p.Pull.Head)
	}
	return p.Poster.Post(ctx, Status{
		Commit: p.Pull.Head, Context: p.context(r),
		State: said.State, Description: said.Description, TargetURL: p.TargetURL, Pull: p.Pull.Number,
	})
}

// about returns the name of a preview. Without a cluster it is the same for all clusters.
func (p *Previews) about(r report.Report) string {
	about := "headgate/"
	if p.Cluster != "" {
		about += p.Cluster + "/"
	}
	if r.Sync.Namespace != p.Home {
		about += r.Sync.Namespace + "/"
	}
	return about + r.Sync.Name
}

func (p *Previews) context(r report.Report) string { return contextOf(p.about(r), "/preview") }
