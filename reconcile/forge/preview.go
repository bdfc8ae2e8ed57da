package forge

import (
	"context"
	"errors"
	"fmt"

	"headgate.dev/headgate/reconcile/report"
)

// Previews publishes what the merge of a pull request does: as one status on its head, and as one
// comment.
type Previews struct {
	Poster Record // of the status; nil: post none
	Pulls  *Pulls // of the comment; nil: write none
	Pull   Pull   // its head gets the status

	Cluster   string // of previews that ask one; "" if they ask none
	Home      string // the namespace that contexts leave out, as in Statuses
	TargetURL string // of the status, or empty
}

// Pending posts that a preview is being made. The result of an earlier preview stays until there is a new one:
// a merge does not wait because Headgate restarted.
func (p Previews) Pending(ctx context.Context, of report.Report) error {
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
func (p Previews) Standing(ctx context.Context, of report.Report) (report.Status, error) {
	if p.Poster == nil {
		return report.Status{}, nil
	}
	s, err := p.Poster.Current(ctx, p.Pull.Head, p.context(of))
	return report.Status{State: s.State, Description: s.Description}, err
}

// Publish publishes the report of a preview.
func (p Previews) Publish(ctx context.Context, r report.Report) error {
	var refused []error
	if p.Pulls != nil {
		body := report.Comment(r, p.Pulls.room(p.about(r)))
		refused = append(refused, p.Pulls.Comment(ctx, p.Pull.Number, p.about(r), body))
	}
	return errors.Join(append(refused, p.post(ctx, r, r.Verdict.Activation))...)
}

func (p Previews) post(ctx context.Context, r report.Report, said report.Status) error {
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
func (p Previews) about(r report.Report) string {
	about := "headgate/"
	if p.Cluster != "" {
		about += p.Cluster + "/"
	}
	if r.Sync.Namespace != p.Home {
		about += r.Sync.Namespace + "/"
	}
	return about + r.Sync.Name
}

func (p Previews) context(r report.Report) string { return contextOf(p.about(r), "/preview") }
