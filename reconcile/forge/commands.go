package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
)

// Rules decide whose commands and reviews count.
type Rules struct {
	Approvers []string // users who may approve; empty: everyone with write permission
	ByAuthor  bool     // the authors of a pull request may approve it, too
	Reviews   bool     // a review that approves the head counts as a comment does
}

// An approvalAPI reads who made a pull request, and since when people could see its preview.
type approvalAPI interface {
	authors(ctx context.Context, number int) (authors, error)
	// verdicts returns the statuses of a commit, where the forge keeps them also those that newer ones replaced.
	verdicts(ctx context.Context, commit string) ([]pastStatus, error)
	// history returns a commit and those before it on its branch, newest first, since a time: at most a page of them.
	history(ctx context.Context, commit string, since time.Time) ([]string, error)
	// merged returns the pull requests whose merge made a commit.
	merged(ctx context.Context, commit string) ([]Pull, error)
}

// A writerAPI knows who may write to a repository, and what they think of a commit.
type writerAPI interface {
	// mayWrite reports whether the author of a comment may write to the repository now.
	mayWrite(ctx context.Context, who comment) (bool, error)
	reviews(ctx context.Context, number int) ([]review, error)
}

// A pushAPI knows when a commit became the head of a pull request. Who may push can have a commit previewed elsewhere first, so
// that its status is older.
type pushAPI interface {
	// pushed returns the zero time if the commit is not the head.
	pushed(ctx context.Context, number int, head string) (time.Time, error)
}

// authors are the users who made a pull request: the one who opened it, and those who wrote its commits.
type authors struct {
	known   []string
	unknown []string          // what the forge has no user for: "a@example.org of commit 0123456789ab"
	users   map[string]string // by address
	commits int
	userOf  func(address string) string // "" if the address does not show it; may be nil
}

// add adds the author or committer of a commit.
func (a *authors) add(commit, user, email string) {
	switch {
	case user != "":
		a.known = append(a.known, user)
		if a.users == nil {
			a.users = map[string]string{}
		}
		a.users[strings.ToLower(email)] = user
	case email != "" && a.users[strings.ToLower(email)] != "":
	default:
		a.unknown = append(a.unknown, fmt.Sprintf("%s of commit %.12s", cmp.Or(plain(email), "the author"), plain(commit)))
	}
}

var coauthor = regexp.MustCompile(`(?im)^co-authored-by:.*<([^<>]*)>`)

// coauthors adds those that the message of a commit names. A forge does not say which users they are.
func (a *authors) coauthors(commit, message string) {
	for _, m := range coauthor.FindAllStringSubmatch(message, -1) {
		user := ""
		if a.userOf != nil {
			user = a.userOf(m[1])
		}
		a.add(commit, user, m[1])
	}
}

var errTooManyReviews = errors.New("the pull request has more reviews than Headgate reads; approve in .headgate/approvals.yaml")

var errTooManyCommits = errors.New("the pull request has more commits than the forge lists, so its authors are not known; approve in .headgate/approvals.yaml")

// A pastStatus is a status that a commit has, or had.
type pastStatus struct {
	context string
	state   report.State
	at      time.Time // zero if the forge only keeps when it changed last
	by      string    // who posted it; "" if the forge does not say
}

// A review is the opinion of a user on a commit.
type review struct {
	by       comment
	commit   string // "" if the forge does not say
	approves bool
	neutral  bool // it is no opinion, so an earlier one stays
}

// A command is a line of a comment.
type command struct {
	verb, argument string
}

// maxCommands is how many commands of one comment count.
const maxCommands = 5

var (
	commandLine    = regexp.MustCompile(`^/headgate(?: +[!-~]+)*[ \t]*$`)
	approvalDigest = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// commandsOf returns the commands of a comment: lines at its very beginning. Whatever is quoted, fenced, hidden or below other
// text is no command, so a text that a person pastes or answers commands nothing.
func commandsOf(body string) []command {
	var all []command
	for line := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
		if !commandLine.MatchString(line) || len(line) > 400 || len(all) == maxCommands {
			break
		}
		var cmd command
		switch words := strings.Fields(line)[1:]; len(words) {
		case 1:
			cmd.verb = words[0]
		case 2: // no command takes more words
			cmd.verb, cmd.argument = words[0], words[1]
		}
		all = append(all, cmd)
	}
	return all
}

// A talk holds what people wrote on a pull request about its head.
type talk struct {
	*Pulls
	approvalAPI

	rules    Rules
	pull     Pull
	posted   time.Time // when the first preview of the head was posted; zero: not yet
	comments []comment
	self     string

	statuses []pastStatus // final ones of previews of the head
	pushed   time.Time    // when the commit became the head; zero if the forge does not say

	writers map[string]bool // by user
	wrote   *authors
	counted []approval // reviews
}

// previewStatus matches the contexts of previews, of any sync.
var previewStatus = regexp.MustCompile(`^headgate/.+/preview$`)

// talk reads what people wrote on a pull request since its head was previewed.
func (p *Pulls) talk(ctx context.Context, pull Pull, rules Rules) (*talk, error) {
	api, ok := p.pullAPI.(approvalAPI)
	if !ok {
		return nil, errors.New("comment commands are not known for this forge")
	}
	if _, err := p.transport.token(ctx); err != nil {
		return nil, err
	}
	t := &talk{Pulls: p, approvalAPI: api, rules: rules, pull: pull, writers: map[string]bool{}}
	if p.forge.listed { // one request, as long as no one commands: such a forge does not show whether anyone wrote something
		var err error
		if t.comments, err = p.comments(ctx, pull.Number, time.Time{}); err != nil || !t.asks() {
			return t, err
		}
		t.posted, err = t.previewed(ctx)
		return t, err
	}
	var err error
	if t.posted, err = t.previewed(ctx); err != nil {
		return nil, err
	}
	var since time.Time // however many comments there are, those on the head are read
	if !t.posted.IsZero() {
		since = t.posted.Add(-spread)
	}
	t.comments, err = p.comments(ctx, pull.Number, since)
	return t, err
}

// previewed returns since when people could see the preview of the head on the pull request; zero if they cannot yet.
func (t *talk) previewed(ctx context.Context) (time.Time, error) {
	all, err := t.verdicts(ctx, t.pull.Head)
	if err != nil {
		return time.Time{}, err
	}
	var first, pushed time.Time
	undated := false
	for _, v := range all {
		switch {
		case !previewStatus.MatchString(v.context) || v.state == report.Pending:
		case v.at.IsZero():
			undated = true
		default:
			first = earlier(first, v.at)
			t.statuses = append(t.statuses, v)
		}
	}
	if first.IsZero() && !undated {
		return time.Time{}, nil
	}
	if api, ok := t.approvalAPI.(pushAPI); ok {
		if pushed, err = api.pushed(ctx, t.pull.Number, t.pull.Head); err != nil || pushed.IsZero() {
			return time.Time{}, err
		}
		t.pushed = pushed
	}
	return later(first, pushed), nil
}

// seenSince returns since when people could see a preview that Headgate posted with this account. Who may write can post a status
// of that name, too. A review names no digest, so it must not be older.
func (t *talk) seenSince() time.Time {
	var first time.Time
	for _, v := range t.statuses {
		if v.by == "" || strings.EqualFold(v.by, t.self) {
			first = earlier(first, v.at)
		}
	}
	if first.IsZero() {
		return first
	}
	return later(first, t.pushed)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// under calls a function with other rules. What it reads is not read again.
func (t *talk) under(rules Rules, do func(*talk) ([]approval, error)) ([]approval, error) {
	of := *t
	of.rules = rules
	all, err := do(&of)
	t.wrote = of.wrote
	return all, err
}

// spread is how long before the status of a preview its comment may be written, with the difference of clocks of a forge.
const spread = 10 * time.Minute

// asks reports whether anyone wrote a command, so that the rest is worth reading.
func (t *talk) asks() bool {
	return slices.ContainsFunc(t.comments, func(c comment) bool { return len(commandsOf(c.body)) > 0 })
}

// know reads who Headgate is.
func (t *talk) know(ctx context.Context) (err error) {
	if t.self == "" {
		t.self, err = t.Pulls.self(ctx)
	}
	return err
}

// heeds reports whether the commands of a user count at all. Headgate ignores everyone else.
func (t *talk) heeds(ctx context.Context, c comment) (bool, error) {
	if c.author == "" || c.bot || !t.rules.ByAuthor && strings.EqualFold(c.author, t.self) {
		return false, nil
	}
	api, ok := t.approvalAPI.(writerAPI)
	if !ok {
		return t.rules.lists(c), nil
	}
	user := strings.ToLower(c.author)
	may, known := t.writers[user]
	if !known {
		var err error
		if may, err = api.mayWrite(ctx, c); err != nil {
			return false, err
		}
		t.writers[user] = may
	}
	return may, nil
}

// lists reports whether the author of a comment is a listed approver.
func (r Rules) lists(c comment) bool {
	return slices.ContainsFunc(r.Approvers, func(name string) bool { return c.isOf(strings.TrimPrefix(name, "@")) })
}

// isOf reports whether a user of this name wrote a comment.
func (c comment) isOf(name string) bool {
	same := func(other string) bool { return name != "" && strings.EqualFold(name, other) }
	return same(c.author) || slices.ContainsFunc(c.names, same)
}

// called returns how people call the author of a comment.
func (c comment) called() string { return "@" + cmp.Or(plain(c.shown), c.author) }

// A refusal is why an approval does not count; "" if it does. Silent ones are not answered.
type refusal struct {
	why    string
	silent bool
}

// approves reports whether a user who may write may also approve.
func (t *talk) approves(ctx context.Context, c comment) (refusal, error) {
	if len(t.rules.Approvers) > 0 && !t.rules.lists(c) {
		return refusal{"no approver", true}, nil
	}
	if t.rules.ByAuthor {
		return refusal{}, nil
	}
	if t.wrote == nil {
		all, err := t.authors(ctx, t.pull.Number)
		if err != nil {
			return refusal{}, err
		}
		t.wrote = &all
	}
	if slices.ContainsFunc(t.wrote.known, c.isOf) {
		return refusal{"an author", true}, nil
	}
	if len(t.wrote.unknown) > 0 {
		return refusal{why: fmt.Sprintf("the forge has no user for %s, so it is not known that you did not write it. Add the address to the account of its owner, or approve in `.headgate/approvals.yaml`", t.wrote.unknown[0])}, nil
	}
	return refusal{}, nil
}

// edited reports whether a comment was changed after it was written.
func (c comment) edited() bool {
	return !c.created.Truncate(time.Second).Equal(c.updated.Truncate(time.Second))
}

// standing reports why a comment does not count for the head.
func (t *talk) standing(c comment) string {
	switch {
	case c.edited():
		return "the comment was edited, and others may edit comments, too. Write the command in a new comment"
	case t.posted.IsZero() || c.created.Before(t.posted):
		return fmt.Sprintf("it was written before Headgate had previewed commit %.12s. Look at the preview of that commit, and write the command again", t.pull.Head)
	}
	return ""
}

// An approval is one that a user gave for the head.
type approval struct {
	comment

	digest string // "" for a review, which is of whatever the head asks for
	how    inventory.ApprovalPlace
}

// approvals returns the approvals that count.
func (t *talk) approvals(ctx context.Context) ([]approval, error) {
	var all []approval
	for _, c := range t.comments {
		for _, cmd := range commandsOf(c.body) {
			if cmd.verb != "approve" || !approvalDigest.MatchString(cmd.argument) || t.standing(c) != "" {
				continue
			}
			counts, err := t.counts(ctx, c)
			if err != nil {
				return nil, err
			}
			if counts {
				all = append(all, approval{c, cmd.argument, inventory.InComment})
			}
		}
	}
	api, ok := t.approvalAPI.(writerAPI)
	since := t.seenSince()
	if !t.rules.Reviews || !ok || since.IsZero() {
		return all, nil
	}
	reviewed, err := api.reviews(ctx, t.pull.Number)
	if err != nil {
		return nil, err
	}
	newest := map[string]int{}
	for i, r := range reviewed {
		if last, ok := newest[r.by.author]; !r.neutral && (!ok || !r.by.created.Before(reviewed[last].by.created)) {
			newest[r.by.author] = i
		}
	}
	for i, r := range reviewed {
		if last, ok := newest[r.by.author]; !ok || last != i || !r.approves || r.commit != "" && r.commit != t.pull.Head || r.by.created.Before(since) {
			continue
		}
		counts, err := t.counts(ctx, r.by)
		if err != nil {
			return nil, err
		}
		if counts {
			all = append(all, approval{r.by, "", inventory.InReview})
		}
	}
	return all, nil
}

// shown reports whether a user who reviewed could see a digest: it stands in the comment of the preview since before the review, or
// Headgate recorded it. What a commit asks for can change without a push: the target goes on, or the tag of a package moves. Forges
// count seconds, so a review in the second in which the comment changed may be older, and does not count.
func (t *talk) shown(about string, a approval, digest string) bool {
	mark := strings.TrimSpace(t.forge.dialect.Mark(about))
	return t.has(recordKey(about, a, digest)) || slices.ContainsFunc(t.comments, func(c comment) bool {
		return t.self != "" && strings.EqualFold(c.author, t.self) && strings.HasPrefix(strings.TrimSpace(c.body), mark) && asksFor(c, digest) &&
			a.created.Truncate(time.Second).After(c.updated.Truncate(time.Second))
	})
}

// asksFor reports whether a comment shows how to approve a digest.
func asksFor(c comment, digest string) bool {
	return strings.Contains(normal(c.body), "\n/headgate approve "+digest+"\n")
}

func (t *talk) counts(ctx context.Context, c comment) (bool, error) {
	heard, err := t.heeds(ctx, c)
	if err != nil || !heard {
		return false, err
	}
	no, err := t.approves(ctx, c)
	return err == nil && no.why == "", err
}

// answerKey is how answers are found again: one for each comment and preview. Some forges count the comments of every thread.
func answerKey(about string, c comment) string {
	return about + "/answer/" + strconv.FormatInt(cmp.Or(c.thread, c.id), 10)
}

// The most answers: in one look, and on one pull request.
const (
	answersOfLook = 10
	answersOfPull = 100
)

// unanswered returns the comments with commands of users whom Headgate heeds, without those that have an answer.
func (t *talk) unanswered(ctx context.Context, about string) ([]comment, error) {
	var all []comment
	answers := 0
	prefix := strings.TrimSuffix(strings.TrimSpace(t.forge.dialect.Mark(about+"/answer/")), "-->")
	for _, c := range t.comments {
		if strings.HasPrefix(strings.TrimSpace(c.body), strings.TrimSpace(prefix)) && (t.self == "" || strings.EqualFold(c.author, t.self)) {
			answers++
		}
	}
	for _, c := range t.comments {
		if len(all) == answersOfLook || answers+len(all) >= answersOfPull {
			break
		}
		if len(commandsOf(c.body)) == 0 || t.answered(about, c) {
			continue
		}
		heard, err := t.heeds(ctx, c)
		if err != nil {
			return nil, err
		}
		if heard {
			all = append(all, c)
		}
	}
	return all, nil
}

// answered reports whether Headgate answered a comment. Others can write the mark, so the author counts.
func (t *talk) answered(about string, c comment) bool {
	return t.has(answerKey(about, c))
}

// has reports whether Headgate wrote the comment of a key.
func (t *talk) has(key string) bool {
	mark := strings.TrimSpace(t.forge.dialect.Mark(key))
	return slices.ContainsFunc(t.comments, func(a comment) bool {
		return strings.HasPrefix(strings.TrimSpace(a.body), mark) && (t.self == "" || strings.EqualFold(a.author, t.self))
	})
}

// answer returns the answer to the commands of a comment, or "" if there is nothing to say.
func (t *talk) answer(ctx context.Context, c comment, all report.Combined, rules map[inventory.Sync]Rules) (string, error) {
	var replies []string
	for _, cmd := range commandsOf(c.body) {
		switch cmd.verb {
		case "approve":
			text, err := t.answerApproval(ctx, c, cmd, all, rules)
			if err != nil {
				return "", err
			}
			replies = append(replies, text)
		case "preview":
			replies = append(replies, fmt.Sprintf("Previewed again: %s", all.Headline()))
		case "explain":
			replies = append(replies, all.Explain(cmd.argument))
		default:
			replies = append(replies, "Headgate knows `/headgate approve DIGEST`, `/headgate preview` and `/headgate explain NAME`, one to a line at the beginning of a comment.")
		}
	}
	replies = slices.DeleteFunc(replies, func(s string) bool { return s == "" })
	if len(replies) == 0 {
		return "", nil
	}
	of := fmt.Sprintf("%d syncs", len(all.Reports))
	if len(all.Reports) == 1 {
		of = report.Quoted(all.Reports[0].Sync.Name)
	}
	return fmt.Sprintf("%s: preview of %s, commit %.12s.\n\n%s\n", report.Quoted(c.called()), of, t.pull.Head, strings.Join(replies, "\n\n")), nil
}

// asksElsewhere reports whether Headgate asks for a digest in another comment on the pull request: several clusters may preview it.
func (t *talk) asksElsewhere(digest string) bool {
	return slices.ContainsFunc(t.comments, func(c comment) bool {
		return t.self != "" && strings.EqualFold(c.author, t.self) && asksFor(c, digest)
	})
}

// answerApproval answers a command to approve. Each sync has its own rules, so an approval may count for some of those that a digest
// covers.
func (t *talk) answerApproval(ctx context.Context, c comment, cmd command, all report.Combined, rules map[inventory.Sync]Rules) (string, error) {
	var covered, counts []string
	var no refusal
	heard := false
	for _, r := range all.Reports {
		of, listens := rules[r.Sync]
		if !listens || r.Approval == nil && len(all.Reports) > 1 {
			continue
		}
		why := refusal{}
		if _, err := t.under(of, func(t *talk) (_ []approval, err error) { why, err = t.approves(ctx, c); return nil, err }); err != nil {
			return "", err
		}
		heard = heard || !why.silent
		if all.Covers(r, cmd.argument) == "" {
			continue
		}
		covered = append(covered, report.Quoted(r.Sync.Name))
		if why.why == "" {
			counts = append(counts, report.Quoted(r.Sync.Name))
		} else if !why.silent {
			no = why
		}
	}
	whole := all.Approval()
	switch {
	case !heard:
		return "", nil
	case !approvalDigest.MatchString(cmd.argument):
		return "No approval: write the digest of 32 hexadecimal digits after `/headgate approve`, as the preview shows it.", nil
	case whole == nil:
		return "", nil // it may be meant for another sync
	case len(covered) == 0 && t.asksElsewhere(cmd.argument):
		return "", nil // the preview of another cluster, or of another sync, answers
	case len(covered) == 0:
		return fmt.Sprintf("No approval: %s is not what blocks this commit. Look at its preview, which asks for %s.", report.Quoted(cmd.argument), report.Quoted(whole.Digest)), nil
	case t.standing(c) != "":
		return "No approval: " + t.standing(c) + ".", nil
	case len(counts) == 0 && no.why == "":
		return "", nil
	case len(counts) == 0:
		return "No approval: " + no.why + ".", nil
	}
	limits := ""
	if len(counts) < len(covered) {
		limits = " Your approval counts for " + someNames(counts) + ", and not for the other syncs that this digest covers."
	}
	return fmt.Sprintf("Approved: %s. It covers this commit only, and ends with a push.%s Status now: %s", report.Quoted(cmd.argument), limits, all.Headline()), nil
}

// someNames lists the first of some names.
func someNames(names []string) string {
	const most = 5
	if len(names) > most {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}
