// Package forge says on a commit what became of it: a Report becomes two commit
// statuses, which every forge keeps in one form or another. It leaves waiting and trying
// again to the outbox, and what is to be said to the report. The other way round, Webhooks hear of pushes.
//
//	Report ─Statuses─► Status, Status ─Poster─► GitHub | GitLab | Gitea | Bitbucket | Azure DevOps
package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"

	"headgate.dev/headgate/reconcile/report"
)

// A Status is one commit status as it stands on a forge.
type Status struct {
	Commit      string // full hex
	Context     string // what the status is about; the newest of a context counts
	State       report.State
	Description string
	TargetURL   string // where there is more to read, or empty
	Pull        int    // the pull request whose head it is about, or 0; Azure DevOps keeps these apart
}

// A Poster puts a status on a commit. It leaves out what stands there already.
type Poster interface {
	Post(ctx context.Context, s Status) error
}

// A Record is a Poster that knows what stands on a commit.
type Record interface {
	Poster
	// Stands is the newest status of a context; its state is "" where there is none.
	Stands(ctx context.Context, commit, context string) (Status, error)
}

// Statuses publishes the verdict of a report as commit statuses, one for activation and
// one for drift. It looks at Sync, Revision and Verdict only, so a report that holds no
// more than these says the same. Its errors are *Later where trying again helps.
type Statuses struct {
	Poster    Poster
	Cluster   string // required: the same repository may feed several clusters
	Home      string // the namespace whose syncs need not say it; those of others would share contexts
	TargetURL string // of every status, or empty
}

// Publish posts both statuses of a report. A report without a revision is of no commit,
// and there is nowhere to say it.
func (s Statuses) Publish(ctx context.Context, r report.Report) error {
	if r.Revision == "" {
		return nil
	}
	statuses, err := s.Of(r)
	if err != nil {
		return err
	}
	var refused []error
	for _, status := range statuses {
		err := s.Poster.Post(ctx, status)
		if err == nil {
			continue
		}
		err = fmt.Errorf("commit %.12s: %w", r.Revision, err)
		if _, passes := errors.AsType[*Later](err); passes {
			return errors.Join(append(refused, err)...) // the other status would wait as long for as little
		}
		// One token and one repository for both: the reason is often the same.
		if len(refused) == 0 || refused[0].Error() != err.Error() {
			refused = append(refused, err)
		}
	}
	return errors.Join(refused...)
}

// Of is the statuses of a report, in the order in which they are posted.
func (s Statuses) Of(r report.Report) ([]Status, error) {
	switch {
	case s.Cluster == "":
		return nil, errors.New("commit statuses need a cluster name: several clusters may report on one commit")
	case !isCommit(r.Revision):
		return nil, fmt.Errorf("commit statuses need a full commit id, not %q", r.Revision)
	case !isTarget(s.TargetURL):
		return nil, fmt.Errorf("target URL of commit statuses: %q is not http or https", s.TargetURL)
	}
	about := "headgate/" + s.Cluster + "/" + r.Sync.Name
	if r.Sync.Namespace != s.Home {
		about = "headgate/" + s.Cluster + "/" + r.Sync.Namespace + "/" + r.Sync.Name
	}
	of := func(what string, said report.Status) Status {
		return Status{Commit: r.Revision, Context: contextOf(about, what), State: said.State, Description: said.Description, TargetURL: s.TargetURL}
	}
	return []Status{of("/activation", r.Verdict.Activation), of("/drift", r.Verdict.Drift)}, nil
}

// mostContext is what GitHub, GitLab and Bitbucket allow of a context.
const mostContext = 255

// contextOf joins what a status is about and which of the two it is. What is too long
// ends in a hash instead, so that two long names stay two contexts.
func contextOf(about, what string) string {
	if len(about)+len(what) <= mostContext {
		return about + what
	}
	sum := sha256.Sum256([]byte(about))
	tail := "-" + hex.EncodeToString(sum[:8])
	return prefix(about, mostContext-len(what)-len(tail)) + tail + what
}

func isCommit(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 40 || len(s) == 64)
}

func isTarget(s string) bool {
	if s == "" {
		return true
	}
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}
