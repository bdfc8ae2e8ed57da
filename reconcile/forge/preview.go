package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Previews publishes the effects of merging a pull request on every sync that follows its target branch: as one
// status on its head, and as one comment.
type Previews struct {
	Poster Record // posts the status; nil for no status
	Pulls  *Pulls // writes the comment; nil for no comment
	Pull   Pull   // the pull request whose head gets the status

	Targets []string // the targets of the status; nil for that of Pull
	// Now reads the pull request again before its preview is published; nil does not. Another process may have published
	// for its new head or target meanwhile.
	Now func(context.Context) (Pull, error)

	Name      string   // identifies the comment and the status on the forge; see NameOfSync and NameOfCluster
	Replaces  []string // the names of earlier comments and statuses that these replace
	TargetURL string   // URL for the status and for a link in the comment, or empty
	Run       string   // URL of the CI run, for the comment if TargetURL is empty; or empty

	// Commands decides for each sync whose commands and reviews count. Without an entry, none count, and Headgate
	// does not read comments. Commands need Poster and Pulls, because the status shows when the head was previewed.
	Commands map[inventory.Sync]Rules

	conversation *conversation // set by Approvals
}

// NameOfSync returns the name of the previews of one sync. Without a cluster, all clusters share it. home is the
// namespace that names leave out.
func NameOfSync(of inventory.Sync, cluster, home string) string {
	name := "headgate/"
	if cluster != "" {
		name += cluster + "/"
	}
	if of.Namespace != home {
		name += of.Namespace + "/"
	}
	return name + of.Name
}

// NameOfCluster returns the name of the previews of all syncs of a cluster.
func NameOfCluster(cluster string) string { return "headgate/" + cluster }

// Approvals returns, by sync, the approvals that users gave on the forge for what the previews request. Publish answers them.
func (p *Previews) Approvals(ctx context.Context, all report.Combined) (map[inventory.Sync][]report.Approved, error) {
	if p.conversation = nil; !p.listens() {
		return nil, nil
	}
	of, err := p.discussed(ctx)
	if err != nil {
		return nil, p.failed(err)
	}
	t, err := p.Pulls.conversation(ctx, of, p.anyRules())
	if err != nil {
		return nil, p.failed(err)
	}
	if !p.Pull.Queued { // the preview of the pull request itself answers
		p.conversation = t
	}
	all.Target, all.Head = of.Target, of.Head
	if all.Approval() == nil || !t.hasCommands() && !t.rules.Reviews {
		return nil, nil
	}
	if err := t.readSelf(ctx); err != nil {
		return nil, p.failed(err)
	}
	approved := map[inventory.Sync][]report.Approved{}
	for _, r := range all.Reports {
		rules, listens := p.Commands[r.Sync]
		if !listens || r.Approval == nil {
			continue
		}
		given, err := t.under(rules, func(t *conversation) ([]counted, error) { return t.approvals(ctx) })
		if err != nil {
			return nil, p.failed(err)
		}
		for _, a := range given {
			a.digest = t.digestOf(p.Name, a, all.Digest())
			if digest := all.Covers(r, a.digest); digest != "" {
				approved[r.Sync] = append(approved[r.Sync], a.approved(digest))
				t.count(a)
			}
		}
	}
	return approved, nil
}

// digestOf returns the digest that an approval names. A review names none: it approves the digest that the comment of these previews
// showed when the review was made.
func (t *conversation) digestOf(previews string, a counted, whole string) string {
	if a.digest == "" && t.shown(previews, a, whole) {
		return whole
	}
	return a.digest
}

// count records a review that counts, once for each author.
func (t *conversation) count(a counted) {
	same := func(c counted) bool { return reviewID(c) == reviewID(a) && c.author == a.author }
	if a.how == inventory.InReview && !slices.ContainsFunc(t.counted, same) {
		t.counted = append(t.counted, a)
	}
}

// discussed returns the pull request on which people approve: that of a merge queue has its own head.
func (p *Previews) discussed(ctx context.Context) (Pull, error) {
	if !p.Pull.Queued {
		return p.Pull, nil
	}
	return p.Pulls.Pull(ctx, p.Pull.Number)
}

// anyRules returns rules under which everything counts that counts for at least one sync.
func (p *Previews) anyRules() Rules {
	var all Rules
	for _, r := range p.Commands {
		all.ByAuthor, all.Reviews = all.ByAuthor || r.ByAuthor, all.Reviews || r.Reviews
		all.Approvers = append(all.Approvers, r.Approvers...)
	}
	return all
}

func (a counted) approved(digests ...string) report.Approved {
	at := metav1.NewTime(a.created.UTC().Truncate(time.Second))
	return report.Approved{Digests: digests, UpTo: a.upTo, By: a.called(), How: []inventory.ApprovalPlace{a.how}, At: &at}
}

// Heard reports whether users wrote something since the last preview that Headgate would answer or count. asks is
// true if the preview waits for an approval, or has one that a user may withdraw.
func (p *Previews) Heard(ctx context.Context, asks bool) (bool, error) {
	if !p.listens() || p.Pull.Queued {
		return false, nil
	}
	rules := p.anyRules()
	if asks && rules.Reviews {
		return true, nil
	}
	t, err := p.Pulls.conversation(ctx, p.Pull, rules)
	if err != nil {
		return false, p.failed(err)
	}
	if !t.hasCommands() {
		return false, nil
	}
	if err := t.readSelf(ctx); err != nil {
		return false, p.failed(err)
	}
	all, err := t.unanswered(ctx, p.Name)
	if err != nil {
		return false, p.failed(err)
	}
	return len(all) > 0, nil
}

func (p *Previews) listens() bool {
	return len(p.Commands) > 0 && p.Pulls != nil && p.Poster != nil && p.Pull.Number > 0
}

func (p *Previews) failed(err error) error {
	return p.Pulls.transport.redacted(fmt.Errorf("cannot read the commands on pull request %d: %w", p.Pull.Number, err))
}

// answer answers the commands that have no answer yet.
func (p *Previews) answer(ctx context.Context, combined report.Combined) error {
	t := p.conversation
	if t == nil {
		return nil
	}
	for _, a := range t.counted {
		key := recordKey(p.Name, a, a.digest)
		if t.has(key) {
			continue
		}
		text := fmt.Sprintf("The review of %s approves %s for commit %.12s. Clusters read this record; an edit voids it.\n", report.Quoted(a.called()), report.Quoted(a.digest), t.pull.Head)
		if err := p.Pulls.once(ctx, p.Pull.Number, t.self, key, text); err != nil {
			return err
		}
	}
	if !t.hasCommands() {
		return nil
	}
	if err := t.readSelf(ctx); err != nil {
		return p.failed(err)
	}
	all, err := t.unanswered(ctx, p.Name)
	for _, c := range all {
		text, failed := t.answer(ctx, c, combined, p.Commands)
		if failed != nil {
			return p.failed(failed)
		}
		if text == "" {
			continue
		}
		if err := p.Pulls.once(ctx, p.Pull.Number, t.self, answerKey(p.Name, c), text); err != nil {
			return err
		}
	}
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// Pending posts a pending status. The result of an earlier preview for the same targets stays until there is a new one,
// so that a merge does not wait only because Headgate restarted.
func (p *Previews) Pending(ctx context.Context) error {
	if p.Poster == nil {
		return nil
	}
	stands, err := p.Poster.Current(ctx, p.Pull.Head, p.context())
	if err != nil || stands.State != "" && p.holds(stands) {
		return err
	}
	return p.post(ctx, report.Status{State: report.Pending, Description: "the preview is being made"})
}

// holds reports whether a status is for the targets of p. A preview that was stopped would be stopped for any target.
func (p *Previews) holds(stands Status) bool {
	return strings.HasSuffix(stands.Description, p.into()) || report.Status{State: stands.State, Description: stands.Description}.WasStopped()
}

func (p *Previews) into() string {
	if p.Targets == nil {
		return into([]string{p.Pull.Target})
	}
	return into(p.Targets)
}

// Waiting posts why there is no preview yet. The result of an earlier preview for the same targets stays.
func (p *Previews) Waiting(ctx context.Context, why string) error {
	if p.Poster == nil {
		return nil
	}
	stands, err := p.Poster.Current(ctx, p.Pull.Head, p.context())
	if err != nil || stands.State != "" && stands.State != report.Pending && p.holds(stands) {
		return err
	}
	return p.post(ctx, report.Status{State: report.Pending, Description: why})
}

// Standing returns the current status of the head.
func (p *Previews) Standing(ctx context.Context) (report.Status, error) {
	if p.Poster == nil {
		return report.Status{}, nil
	}
	s, err := p.Poster.Current(ctx, p.Pull.Head, p.context())
	return report.Status{State: s.State, Description: strings.TrimSuffix(s.Description, p.into())}, err
}

// ErrSuperseded is why nothing is published for a pull request that has another head or target than its preview.
var ErrSuperseded = errors.New("the pull request has another head or target now, so nothing is posted")

// Publish publishes the previews of all syncs. It does not create a comment for a pull request that changes nothing.
func (p *Previews) Publish(ctx context.Context, all report.Combined) error {
	if p.Now != nil {
		now, err := p.Now(ctx)
		if err != nil {
			return err
		}
		if now.Head != p.Pull.Head || now.Target != p.Pull.Target {
			return ErrSuperseded
		}
	}
	var refused []error
	all.Target, all.Head = p.Pull.Target, p.Pull.Head
	if p.listens() {
		all.Reports = slices.Clone(all.Reports)
		for i, r := range all.Reports {
			if rules, listens := p.Commands[r.Sync]; listens && r.Preview != nil {
				preview := *r.Preview
				preview.Commands, preview.Reviews, preview.Listed = true, rules.Reviews, len(rules.Approvers) > 0
				all.Reports[i].Preview = &preview
			}
		}
	}
	if p.Pulls != nil && !p.Pull.Queued {
		all.Links.File = p.Pulls.at.fileURL
		if all.Links.Run = cmp.Or(p.TargetURL, p.Run); !isTarget(all.Links.Run) {
			all.Links.Run = ""
		}
		refused = append(refused, p.Pulls.Publish(ctx, p.Pull.Number, Current{
			Key: p.Name, Body: all.Comment(p.Pulls.room(p.Name)), Verdict: all.Word(), Replaces: p.Replaces, Quiet: len(all.Touched()) == 0,
		}))
	}
	if !all.Undecided {
		refused = append(refused, p.post(ctx, all.Status()), p.replace(ctx, all))
	}
	return errors.Join(append(refused, p.answer(ctx, all))...)
}

// replace updates earlier statuses of the head, under replaced names, to the result of p.
func (p *Previews) replace(ctx context.Context, all report.Combined) error {
	var refused []error
	for _, name := range p.Replaces {
		if name == p.Name {
			continue
		}
		if p.Poster == nil {
			continue
		}
		stands, err := p.Poster.Current(ctx, p.Pull.Head, contextOf(name, "/preview"))
		if err == nil && stands.State != "" {
			err = p.postAs(ctx, contextOf(name, "/preview"), report.Status{State: all.Status().State, Description: "replaced by " + p.context()})
		}
		refused = append(refused, err)
	}
	return errors.Join(refused...)
}

// Decide posts the status of the head without a preview.
func (p *Previews) Decide(ctx context.Context, status report.Status) error {
	return p.post(ctx, status)
}

func (p *Previews) post(ctx context.Context, status report.Status) error {
	return p.postAs(ctx, p.context(), status)
}

func (p *Previews) postAs(ctx context.Context, as string, status report.Status) error {
	if p.Poster == nil {
		return nil
	}
	if !isCommit(p.Pull.Head) {
		return fmt.Errorf("a status needs a full commit id, not %q", p.Pull.Head)
	}
	return p.Poster.Post(ctx, Status{
		Commit: p.Pull.Head, Context: as,
		State: status.State, Description: status.Description, Into: p.into(), TargetURL: p.TargetURL, Pull: p.Pull.Number,
	})
}

func (p *Previews) context() string { return ContextOf(p.Name) }

// ContextOf returns the context of the status of previews with a name.
func ContextOf(name string) string { return contextOf(name, "/preview") }
