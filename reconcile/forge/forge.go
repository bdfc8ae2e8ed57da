// Package forge connects Headgate with forges: it posts reports as commit statuses and as comments on pull
// requests, lists pull requests, and receives webhooks. Each kind of forge is one file, and one entry of the list
// in forges.go. Retries are up to the outbox, and the words to the report.
//
//	Report ─Statuses─► Status, Status ─Poster─► client ─► API of a forge
//	                              request of a forge ─► Webhooks ─► Subscriber
package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
)

// A Status is a commit status on a forge.
type Status struct {
	Commit      string // the full hash in hexadecimal
	Context     string // identifies the status; the newest one of a context counts
	State       report.State
	Description string
	Into        string // the end of the description, which is never cut; see into
	TargetURL   string // URL of a page with more information, or empty
	Pull        int    // the pull request whose head the commit is, or 0; some forges need it
}

// A Poster posts a status on a commit, unless the commit already has it.
type Poster interface {
	Post(ctx context.Context, s Status) error
}

// A Record is a Poster that can also read the statuses of a commit.
type Record interface {
	Poster
	// Current returns the newest status of a context. Its state is "" if there is none.
	Current(ctx context.Context, commit, context string) (Status, error)
}

// Statuses publishes the verdict of a report as two commit statuses: one for activation and one for drift. It only
// reads Sync, Revision and Verdict of a report. It returns a *Later if a retry helps.
type Statuses struct {
	Poster    Poster
	Cluster   string // required, because several clusters may use the same repository
	Home      string // the namespace that contexts leave out; they contain every other namespace
	TargetURL string // URL in every status, or empty
}

// Publish posts both statuses of a report. It does nothing for a report without a revision, because there is no
// commit to post to.
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
			return errors.Join(append(refused, err)...) // the other status would fail in the same way
		}
		// Both statuses use one token and one repository, so the reason is often the same.
		if len(refused) == 0 || refused[0].Error() != err.Error() {
			refused = append(refused, err)
		}
	}
	return errors.Join(refused...)
}

// Of returns the statuses of a report, in the order in which Publish posts them.
func (s Statuses) Of(r report.Report) ([]Status, error) {
	switch {
	case s.Cluster == "":
		return nil, errors.New("commit statuses need a cluster name: several clusters may report on one commit")
	case !isCommit(r.Revision):
		return nil, fmt.Errorf("commit statuses need a full commit id, not %q", r.Revision)
	case !isTarget(s.TargetURL):
		return nil, fmt.Errorf("target URL of commit statuses: %q is not http or https", s.TargetURL)
	}
	of := func(context string, status report.Status) Status {
		return Status{Commit: r.Revision, Context: context, State: status.State, Description: status.Description, TargetURL: s.TargetURL}
	}
	activation, drift := s.Contexts(r.Sync)
	return []Status{of(activation, r.Verdict.Activation), of(drift, r.Verdict.Drift)}, nil
}

// Contexts returns the contexts of the statuses of a sync, or of all syncs of the cluster together for the zero value.
func (s Statuses) Contexts(of inventory.Sync) (activation, drift string) {
	about := "headgate/" + s.Cluster + "/" + of.Name
	switch {
	case of == inventory.Sync{}:
		about = "headgate/" + s.Cluster
	case of.Namespace != s.Home:
		about = "headgate/" + s.Cluster + "/" + of.Namespace + "/" + of.Name
	}
	return contextOf(about, "/activation"), contextOf(about, "/drift")
}

// maxContext is the maximum length of a context that every forge accepts.
const maxContext = 255

// contextOf returns the context of a status. A context that is too long ends in a hash, so that two long names remain distinct.
func contextOf(about, what string) string {
	if len(about)+len(what) <= maxContext {
		return about + what
	}
	sum := sha256.Sum256([]byte(about))
	tail := "-" + hex.EncodeToString(sum[:8])
	return prefix(about, maxContext-len(what)-len(tail)) + tail + what
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
