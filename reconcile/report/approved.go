package report

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Approved is an approval that Headgate used: who gave it, when it counted, in which places, for what and for
// which commit. Unknown fields are empty.
type Approved struct {
	Digests []string                  `json:"digests"`
	UpTo    int                       `json:"upTo,omitempty"` // the amount that the approver wrote
	Commit  string                    `json:"commit,omitempty"`
	By      string                    `json:"by,omitempty"`
	How     []inventory.ApprovalPlace `json:"how"`
	At      *metav1.Time              `json:"at,omitempty"`
	ID      string                    `json:"id,omitempty"` // of an approval on a forge: the comment or review
}

// ApprovedBy converts grants for a report. It combines grants of the same person in the same places at the same time.
func ApprovedBy(grants []inventory.Grant) []Approved {
	var all []Approved
	known := map[string]int{} // indices in all
	for _, g := range grants {
		given := fmt.Sprintf("%q %q %q %v", g.Of, g.By, g.How, g.At)
		i, found := known[given]
		if !found {
			i, all = len(all), append(all, Approved{Commit: g.Commit, By: g.By, How: g.How, At: g.At, ID: g.Of})
			known[given] = i
		}
		if !slices.Contains(all[i].Digests, g.Digest) {
			all[i].Digests = append(all[i].Digests, g.Digest)
		}
	}
	for i := range all {
		slices.Sort(all[i].Digests)
	}
	return all
}

// how describes the places of approvals.
var how = map[inventory.ApprovalPlace]string{
	inventory.OnSync:    "with the annotation of the Sync",
	inventory.OnRun:     "with a flag of headgate run",
	inventory.OnCommand: "with --approve",
	inventory.InGit:     "in Git",
	inventory.InComment: "with a comment",
	inventory.InReview:  "with a review",
	inventory.InMessage: "in the message of the commit",
}

// OnForge reports whether an approval was given on the pull request.
func (a Approved) OnForge() bool {
	return slices.Contains(a.How, inventory.InComment) || slices.Contains(a.How, inventory.InReview)
}

// covers reports whether the approval covers an amount. An approval on the pull request covers what the preview shows.
func (a Approved) covers(amount int) bool { return amount <= a.UpTo || a.UpTo == 0 && a.OnForge() }

// ways describes the places in which the approval was given.
func (a Approved) ways() string {
	ways := make([]string, len(a.How))
	for i, place := range a.How {
		ways[i] = string(place)
		if words := how[place]; words != "" {
			ways[i] = words
		}
	}
	return strings.Join(ways, " and ")
}

// String returns the approval as one line of text.
func (a Approved) String() string {
	what := manifest.Count(len(a.Digests), "digest")
	if len(a.Digests) == 1 {
		what = a.Digests[0]
	}
	what = approval.Line(what, a.UpTo)
	by := ""
	if a.By != "" {
		by = " by " + a.By
	}
	return fmt.Sprintf("approved%s %s: %s", by, a.ways(), what)
}

// Used returns the approvals that let steps of the report pass. A later pass over the same commit has none.
func (r Report) Used() []Approved {
	if slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Approved }) {
		return r.Approvals
	}
	return nil
}
