package forge

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Merges reads the approvals on the pull requests that were merged into a branch. A user who lost write access, or
// turns out to be an author, does not approve: every reading checks that again.
type Merges struct {
	Pulls  *Pulls
	Rules  Rules
	Branch func(ctx context.Context) (string, error) // the target branch of the pull requests; "" if passes follow no branch

	Targets []string         // the target branches, if passes follow no branch
	Now     func() time.Time // time.Now if nil
	Heard   func(Heard)      // is called with approvals, at each reading; may be nil

	mu     sync.Mutex
	commit string
	last   approval.Given
	read   time.Time
	wait   time.Duration
	made   map[string][]Pull // pull requests, by the commit that they made
}

const (
	// Valid is how long an approval on a forge counts.
	Valid = 7 * 24 * time.Hour
	// maxHistory is the maximum number of ancestors to check for a pass, because a cluster may skip commits.
	maxHistory = 20
	// The shortest and the longest pause between two readings for a commit while a hold lasts.
	firstReading, lastReading = time.Minute, 15 * time.Minute
)

// Approvals returns the approvals on the pull requests that made a commit and its ancestors. A digest includes
// everything that it covers.
func (m *Merges) Approvals(ctx context.Context, commit string) (approval.Given, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.Now != nil {
		now = m.Now()
	}
	if m.commit == commit && now.Before(m.read.Add(m.wait)) {
		return m.last, nil
	}
	all, err := m.approvals(ctx, commit, now)
	if err != nil {
		m.commit = "" // failures are not remembered
		return nil, m.Pulls.transport.redacted(err)
	}
	if m.commit != commit {
		m.wait = 0
	}
	m.commit, m.last, m.read, m.wait = commit, all, now, min(max(2*m.wait, firstReading), lastReading)
	return all, nil
}

func (m *Merges) approvals(ctx context.Context, commit string, now time.Time) (approval.Given, error) {
	all := approval.Given{inventory.InComment: {}, inventory.InReview: {}}
	api, ok := m.Pulls.pullAPI.(approvalAPI)
	if !ok || !isCommit(commit) {
		return all, nil
	}
	if _, err := m.Pulls.transport.token(ctx); err != nil {
		return nil, err
	}
	branch, err := m.Branch(ctx)
	targets := []string{branch}
	if branch == "" {
		targets = m.Targets
	}
	if err != nil || len(targets) == 0 {
		return all, err
	}
	history, err := api.history(ctx, commit, now.Add(-Valid))
	if err != nil {
		return nil, err
	}
	history = append([]string{commit}, slices.DeleteFunc(history, func(c string) bool { return c == commit })...)
	known := map[int]bool{}
	for _, c := range history[:min(len(history), maxHistory)] {
		pulls, err := m.pulls(ctx, api, c, c == commit)
		if err != nil {
			return nil, err
		}
		for _, pull := range pulls {
			if known[pull.Number] || !slices.Contains(targets, pull.Target) || !isCommit(pull.Head) {
				continue
			}
			known[pull.Number] = true
			if err := m.of(ctx, pull, now, all); err != nil {
				return nil, fmt.Errorf("pull request %d: %w", pull.Number, err)
			}
		}
	}
	return all, nil
}

// pulls returns the pull requests that made a commit. The forge may not know that of the newest commit yet.
func (m *Merges) pulls(ctx context.Context, api approvalAPI, commit string, newest bool) ([]Pull, error) {
	if known, ok := m.made[commit]; ok {
		return known, nil
	}
	got, err := api.merged(ctx, commit)
	if err != nil {
		return nil, err
	}
	if len(m.made) > 20*maxHistory || m.made == nil {
		m.made = map[string][]Pull{}
	}
	if !newest || len(got) > 0 {
		m.made[commit] = got
	}
	return got, nil
}

// of adds the approvals on a merged pull request.
func (m *Merges) of(ctx context.Context, pull Pull, now time.Time, all approval.Given) error {
	t, err := m.Pulls.conversation(ctx, pull, m.Rules)
	if err == nil {
		t.heard = m.Heard
	}
	if err != nil || !t.hasCommands() && !t.rules.Reviews {
		return err
	}
	if err := t.readSelf(ctx); err != nil {
		return err
	}
	approvals, err := t.approvals(ctx)
	if err != nil {
		return err
	}
	var bodies []string
	for _, c := range t.comments {
		bodies = append(bodies, c.body)
	}
	for _, a := range approvals {
		if now.Sub(a.created) >= Valid {
			t.hear(a.comment, a.digest, "it is older than a week")
			continue
		}
		digests := []string{a.digest}
		if a.how == inventory.InReview {
			digests = t.recorded(a)
		}
		if len(digests) == 0 {
			t.hear(a.comment, "", "the review names no digest, and Headgate recorded none for it")
		}
		for _, digest := range digests {
			covered, amounts := report.Covered(digest, pull.Target, bodies)
			if len(covered) == 0 {
				t.hear(a.comment, digest, "no preview on the pull request showed this digest for its target branch")
				continue
			}
			t.hear(a.comment, digest, "")
			all[a.how] = append(all[a.how], approval.Approval{
				ID:      fmt.Sprintf("%s %d/%s %s", a.how, pull.Number, a.number(), digest),
				Digests: append([]string{digest}, covered...), Shown: amounts, UpTo: a.upTo,
				By: a.called(), Expires: metav1.NewTime(a.created.UTC().Truncate(time.Second).Add(Valid)),
			})
		}
	}
	return nil
}

var recorded = regexp.MustCompile(`^<!-- headgate/[A-Za-z0-9./-]+/review/([0-9]+)/([0-9a-f]{32}) -->`)

// recordKey returns the key of the record for a review. A review names no digest, so Headgate records the digest when
// it counts the review.
func recordKey(about string, a counted, digest string) string {
	return fmt.Sprintf("%s/review/%s/%s", about, reviewID(a), digest)
}

// reviewID identifies a review on its pull request. Some forges only return its time.
func reviewID(a counted) string {
	if a.id != 0 {
		return strconv.FormatInt(a.id, 10)
	}
	return strconv.FormatInt(a.created.Unix(), 10)
}

// number identifies a comment or a review on its pull request. A command in an edited comment does not count, so the same comment
// always gives the same approval.
func (a counted) number() string {
	if a.how == inventory.InReview {
		return reviewID(a)
	}
	return fmt.Sprintf("%d.%d", a.thread, a.id)
}

// recorded returns the digests that a review approves, according to records that Headgate wrote with this account and
// that were not edited.
func (t *conversation) recorded(a counted) []string {
	var digests []string
	for _, c := range t.comments {
		m := recorded.FindStringSubmatch(strings.TrimSpace(c.body))
		if m != nil && m[1] == reviewID(a) && strings.EqualFold(c.author, t.self) && !c.edited() && strings.Contains(c.body, a.called()+"`") {
			digests = append(digests, m[2])
		}
	}
	return digests
}
