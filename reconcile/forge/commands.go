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
	Approvers []string // users who may approve, as names or "id:4711"; if empty, everyone with write access
	ByAuthor  bool     // the authors of a pull request may approve it, too
	Reviews   bool     // a review that approves the head counts like a comment
}

// An approvalAPI reads the authors of a pull request, and the time when its preview became visible.
type approvalAPI interface {
	authors(ctx context.Context, number int) (authors, error)
	// verdicts returns the statuses of a commit. If the forge keeps replaced statuses, it returns them, too.
	verdicts(ctx context.Context, commit string) ([]pastStatus, error)
	// history returns a commit and its ancestors on the branch since a time, newest first: at most one page.
	history(ctx context.Context, commit string, since time.Time) ([]string, error)
	// merged returns the pull requests whose merge made a commit.
	merged(ctx context.Context, commit string) ([]Pull, error)
}

// A writerAPI reads who has write access to a repository, and their reviews.
type writerAPI interface {
	// mayWrite reports whether the author of a comment currently has write access to the repository.
	mayWrite(ctx context.Context, who comment) (bool, error)
	reviews(ctx context.Context, number int) ([]review, error)
}

// A pushAPI reads when a commit became the head of a pull request. The status of the commit may be older, because a
// user with push access can have it previewed elsewhere first.
type pushAPI interface {
	// pushed returns the zero time if the commit is not the head.
	pushed(ctx context.Context, number int, head string) (time.Time, error)
}

// authors are the users who made a pull request: the one who opened it and the authors of its commits.
type authors struct {
	known     []user            // the first one opened it
	made      map[string][]user // the author and committer of each commit, as far as they are known
	unknown   []string          // addresses without a user on the forge: "a@example.org of commit 0123456789ab"
	addresses map[string]bool   // addresses of known users, according to the forge
	commits   int
	userOf    func(address string) (user, bool) // returns the user to whom the forge gave an address; may be nil
}

// A user is an account on a forge. Users can change their names, and others can take former names, so users with IDs are compared by
// ID.
type user struct {
	id   int64 // 0 if the forge does not report it
	name string
}

// wrote reports whether the user is the author of a comment.
func (u user) wrote(c comment) bool {
	if u.id != 0 && c.of != 0 {
		return u.id == c.of
	}
	return c.isOf(u.name)
}

// add adds the author or committer of a commit. Its user has no name if the forge knows none.
func (a *authors) add(commit string, who user, email string) {
	if who.name == "" {
		a.addAddress(commit, email)
		return
	}
	a.known = append(a.known, who)
	if a.made == nil {
		a.made = map[string][]user{}
	}
	a.made[commit] = append(a.made[commit], who)
	if a.addresses == nil {
		a.addresses = map[string]bool{}
	}
	a.addresses[strings.ToLower(email)] = true
}

// addAddress adds somebody of whom only the address is known.
func (a *authors) addAddress(commit, email string) {
	if email == "" || !a.addresses[strings.ToLower(email)] {
		a.unknown = append(a.unknown, fmt.Sprintf("%s of commit %.12s", cmp.Or(plain(email), "the author"), plain(commit)))
	}
}

var coauthor = regexp.MustCompile(`(?im)^co-authored-by:.*<([^<>]*)>`)

// coauthors adds the co-authors in a commit message. A forge does not report which users they are. The text only ever adds users who
// may not approve: it is no proof that an address belongs to a user, because anyone can write it.
func (a *authors) coauthors(commit, message string) {
	for _, m := range coauthor.FindAllStringSubmatch(message, -1) {
		if a.userOf != nil {
			if who, ok := a.userOf(m[1]); ok {
				a.known = append(a.known, who)
				continue
			}
		}
		a.addAddress(commit, m[1])
	}
}

var errTooManyReviews = errors.New("the pull request has more reviews than Headgate reads; approve in .headgate/approvals.yaml")

var errTooManyCommits = errors.New("the pull request has more commits than the forge lists, so its authors are not known; approve in .headgate/approvals.yaml")

// A pastStatus is a current or former status of a commit.
type pastStatus struct {
	context string
	state   report.State
	at      time.Time // zero if the forge keeps only the time of the last change
	by      string    // who posted it; "" if the forge does not report that
}

// A review is a user's verdict on a commit.
type review struct {
	by       comment
	commit   string // "" if the forge does not report it
	approves bool
	neutral  bool // not a verdict, so an earlier verdict remains valid
}

// A command is a line of a comment.
type command struct {
	verb, argument string
	head           string // of an approval: the beginning of the commit that its author looked at
	upTo           int    // of an approval: the amount that it covers, instead of the one that the preview showed
}

// isOf reports whether an approval names the head of the pull request. One comment shows the previews of all heads, so its author may
// have looked at an earlier one.
func (c command) isOf(head string) bool { return len(c.head) >= 7 && strings.HasPrefix(head, c.head) }

// maxCommands is the maximum number of commands in one comment that count.
const maxCommands = 5

var (
	commandLine    = regexp.MustCompile(`^/headgate(?: +[!-~]+)*[ \t]*$`)
	approvalDigest = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// commandsOf returns the commands of a comment, which are the lines at its very beginning. Quoted, fenced and hidden
// lines, and lines below other text, are not commands, so a pasted or quoted text commands nothing.
func commandsOf(body string) []command {
	var all []command
	for line := range strings.SplitSeq(strings.ReplaceAll(body, "\r\n", "\n"), "\n") {
		if !commandLine.MatchString(line) || len(line) > 400 || len(all) == maxCommands {
			break
		}
		var cmd command
		words := strings.Fields(line)[1:]
		if n := len(words) - 3; n > 0 && words[0] == "approve" && words[n] == "up" && words[n+1] == "to" {
			if cmd.upTo, _ = strconv.Atoi(words[n+2]); cmd.upTo > 0 { // otherwise, it has too many words
				words = words[:n]
			}
		}
		switch len(words) {
		case 1:
			cmd.verb = words[0]
		case 2:
			cmd.verb, cmd.argument = words[0], words[1]
		case 3:
			if words[0] == "approve" { // no other command has more words
				cmd.verb, cmd.argument, cmd.head = words[0], words[1], words[2]
			}
		}
		all = append(all, cmd)
	}
	return all
}

// A conversation holds what users wrote about the head of a pull request.
type conversation struct {
	*Pulls
	approvalAPI

	rules    Rules
	pull     Pull
	posted   time.Time // when the first preview of the head was posted, or zero
	comments []comment
	self     string

	statuses []pastStatus // final statuses of the head's previews
	pushed   time.Time    // when the commit became the head; zero if the forge does not report it

	writers map[string]bool // results of mayWrite, by user
	wrote   *authors
	counted []counted // reviews that count

	heard func(Heard) // is called with approvals; may be nil
}

// A Heard is an approval in a comment or a review, and why it does not count; "" if it does. A review may have no digest.
type Heard struct{ By, At, Digest, Why string }

func (t *conversation) hear(c comment, digest, why string) {
	if t.heard != nil {
		t.heard(Heard{By: c.called(), At: c.created.UTC().Format(time.RFC3339), Digest: digest, Why: why})
	}
}

// previewStatus matches the status contexts of previews of any sync.
var previewStatus = regexp.MustCompile(`^headgate/.+/preview$`)

// conversation reads what users wrote on a pull request since its head was previewed.
func (p *Pulls) conversation(ctx context.Context, pull Pull, rules Rules) (*conversation, error) {
	api, ok := p.pullAPI.(approvalAPI)
	if !ok {
		return nil, errors.New("comment commands are not known for this forge")
	}
	if _, err := p.transport.token(ctx); err != nil {
		return nil, err
	}
	if err := p.identify(ctx, rules.Approvers); err != nil {
		return nil, err
	}
	t := &conversation{Pulls: p, approvalAPI: api, rules: rules, pull: pull, writers: map[string]bool{}}
	if p.forge.listed { // Such a forge does not show whether a pull request has new comments. Without commands, one request is enough.
		var err error
		if t.comments, err = p.comments(ctx, pull.Number, time.Time{}); err != nil || !t.hasCommands() {
			return t, err
		}
		t.posted, err = t.previewed(ctx)
		return t, err
	}
	var err error
	if t.posted, err = t.previewed(ctx); err != nil {
		return nil, err
	}
	var since time.Time // with a start time, the newest comments are within the limit
	if !t.posted.IsZero() {
		since = t.posted.Add(-previewLead)
	}
	t.comments, err = p.comments(ctx, pull.Number, since)
	return t, err
}

// previewed returns the time since when the preview of the head has been visible on the pull request, or zero.
func (t *conversation) previewed(ctx context.Context) (time.Time, error) {
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

// seenSince returns the time since when a preview that Headgate posted with this account has been visible. Any user
// with write access can post a status of that name. A review names no digest, so it must not be older than this time.
func (t *conversation) seenSince() time.Time {
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

// under calls a function with other rules. It keeps the authors that the function reads, for the next call.
func (t *conversation) under(rules Rules, do func(*conversation) ([]counted, error)) ([]counted, error) {
	of := *t
	of.rules = rules
	all, err := do(&of)
	t.wrote = of.wrote
	return all, err
}

// previewLead is how much earlier than the status of a preview its comment may be, including the clock difference of a forge.
const previewLead = 10 * time.Minute

// hasCommands reports whether a comment has a command. If not, nothing else needs to be read.
func (t *conversation) hasCommands() bool {
	return slices.ContainsFunc(t.comments, func(c comment) bool { return len(commandsOf(c.body)) > 0 })
}

// readSelf reads Headgate's own user name.
func (t *conversation) readSelf(ctx context.Context) (err error) {
	if t.self == "" {
		t.self, err = t.Pulls.self(ctx)
	}
	return err
}

// listensTo reports whether the commands of a comment's author count at all. Headgate ignores all other users.
func (t *conversation) listensTo(ctx context.Context, c comment) (bool, error) {
	if c.author == "" || c.bot || !t.rules.ByAuthor && strings.EqualFold(c.author, t.self) {
		return false, nil
	}
	api, ok := t.approvalAPI.(writerAPI)
	if !ok {
		return t.lists(c), nil
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
func (t *conversation) lists(c comment) bool {
	return slices.ContainsFunc(t.rules.Approvers, func(entry string) bool { return t.isListed(c, entry) })
}

// isOf reports whether the author of a comment has this name.
func (c comment) isOf(name string) bool {
	same := func(other string) bool { return name != "" && strings.EqualFold(name, other) }
	return same(c.author) || slices.ContainsFunc(c.names, same)
}

// called returns the name by which to address the author of a comment.
func (c comment) called() string { return "@" + cmp.Or(plain(c.shown), c.author) }

// A refusal is the reason why an approval does not count; "" if it does. Headgate does not answer silent refusals.
type refusal struct {
	why    string
	silent bool
}

// approves reports whether a user with write access may also approve.
func (t *conversation) approves(ctx context.Context, c comment) (refusal, error) {
	if len(t.rules.Approvers) > 0 && !t.lists(c) {
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
	if slices.ContainsFunc(t.wrote.known, func(u user) bool { return u.wrote(c) }) {
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

// rejection returns why a comment does not count for the head, or "".
func (t *conversation) rejection(c comment) string {
	switch {
	case c.edited():
		return "the comment was edited, and others may edit comments, too. Write the command in a new comment"
	case t.posted.IsZero() || c.created.Before(t.posted):
		return fmt.Sprintf("it was written before Headgate had previewed commit %.12s. Look at the preview of that commit, and write the command again", t.pull.Head)
	}
	return ""
}

// A counted approval is a user's approval of the head.
type counted struct {
	comment

	digest string // "" for a review, which approves everything that the head requests
	upTo   int    // the amount that the approver wrote; 0 for the one that the preview shows
	how    inventory.ApprovalPlace
}

// approvals returns the approvals that count.
func (t *conversation) approvals(ctx context.Context) ([]counted, error) {
	var all []counted
	for _, c := range t.comments {
		for _, cmd := range commandsOf(c.body) {
			if cmd.verb != "approve" || !approvalDigest.MatchString(cmd.argument) || !cmd.isOf(t.pull.Head) {
				continue
			}
			if why := t.rejection(c); why != "" {
				t.hear(c, cmd.argument, why)
				continue
			}
			counts, err := t.counts(ctx, c)
			switch {
			case err != nil:
				return nil, err
			case !counts:
				t.hear(c, cmd.argument, mayNotApprove)
			default:
				all = append(all, counted{c, cmd.argument, cmd.upTo, inventory.InComment})
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
		if last, ok := newest[r.by.author]; !ok || last != i || !r.approves {
			continue
		}
		why, err := t.rejects(ctx, r, since)
		if err != nil {
			return nil, err
		}
		if why != "" {
			t.hear(r.by, "", why)
			continue
		}
		all = append(all, counted{r.by, "", 0, inventory.InReview})
	}
	return all, nil
}

const mayNotApprove = "this user may not approve here"

// rejects returns why a user's newest verdict does not count for the head, although it approves; "" if it counts.
func (t *conversation) rejects(ctx context.Context, r review, since time.Time) (string, error) {
	switch {
	case r.commit != "" && r.commit != t.pull.Head:
		return "the review approves another commit than the head", nil
	case r.by.created.Before(since):
		return "the review is older than the preview of the head", nil
	}
	if counts, err := t.counts(ctx, r.by); err != nil || !counts {
		return mayNotApprove, err
	}
	return "", nil
}

// shown reports whether a digest was visible to a user before the review: the preview comment contains it and did not
// change since, or Headgate recorded it. The changes that a commit makes can differ without a push, when the target
// branch moves or the tag of a package moves. Forges count seconds, so a review in the same second as the last change
// of the comment may be older, and does not count.
func (t *conversation) shown(about string, a counted, digest string) bool {
	mark := strings.TrimSpace(t.forge.dialect.Mark(about))
	return t.has(recordKey(about, a, digest)) || slices.ContainsFunc(t.comments, func(c comment) bool {
		return t.self != "" && strings.EqualFold(c.author, t.self) && strings.HasPrefix(strings.TrimSpace(c.body), mark) && t.asksFor(c, digest) &&
			a.created.Truncate(time.Second).After(c.updated.Truncate(time.Second))
	})
}

// asksFor reports whether a comment shows the command to approve a digest for the head.
func (t *conversation) asksFor(c comment, digest string) bool {
	return strings.Contains(normal(c.body), fmt.Sprintf("\n/headgate approve %s %.7s\n", digest, t.pull.Head))
}

func (t *conversation) counts(ctx context.Context, c comment) (bool, error) {
	heard, err := t.listensTo(ctx, c)
	if err != nil || !heard {
		return false, err
	}
	no, err := t.approves(ctx, c)
	return err == nil && no.why == "", err
}

// answerKey returns the key that identifies the answer to a comment in a preview. Some forges number the comments of
// each thread separately.
func answerKey(about string, c comment) string {
	return about + "/answer/" + strconv.FormatInt(cmp.Or(c.thread, c.id), 10)
}

// The maximum number of answers: in one pass over the comments, and on one pull request.
const (
	answersOfLook = 10
	answersOfPull = 100
)

// unanswered returns the unanswered comments with commands of users to whom Headgate listens.
func (t *conversation) unanswered(ctx context.Context, about string) ([]comment, error) {
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
		heard, err := t.listensTo(ctx, c)
		if err != nil {
			return nil, err
		}
		if heard {
			all = append(all, c)
		}
	}
	return all, nil
}

// answered reports whether Headgate answered a comment. Other users can copy the mark, so the author must match, too.
func (t *conversation) answered(about string, c comment) bool {
	return t.has(answerKey(about, c))
}

// has reports whether Headgate wrote a comment with this key.
func (t *conversation) has(key string) bool {
	mark := strings.TrimSpace(t.forge.dialect.Mark(key))
	return slices.ContainsFunc(t.comments, func(a comment) bool {
		return strings.HasPrefix(strings.TrimSpace(a.body), mark) && (t.self == "" || strings.EqualFold(a.author, t.self))
	})
}

// answer returns the answer to the commands of a comment, or "" for no answer.
func (t *conversation) answer(ctx context.Context, c comment, all report.Combined, rules map[inventory.Sync]Rules) (string, error) {
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
			replies = append(replies, "Headgate knows `/headgate approve DIGEST HEAD [up to NUMBER]`, `/headgate preview` and `/headgate explain NAME`, one to a line at the beginning of a comment.")
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

// asksElsewhere reports whether another Headgate comment on the pull request requests approval of a digest. Several
// clusters may preview a pull request.
func (t *conversation) asksElsewhere(digest string) bool {
	return slices.ContainsFunc(t.comments, func(c comment) bool {
		return t.self != "" && strings.EqualFold(c.author, t.self) && t.asksFor(c, digest)
	})
}

// answerApproval answers an approve command. Each sync has its own rules, so an approval may count for only some of
// the syncs that a digest covers.
func (t *conversation) answerApproval(ctx context.Context, c comment, cmd command, all report.Combined, rules map[inventory.Sync]Rules) (string, error) {
	var covered, counts []string
	var no refusal
	heard := false
	for _, r := range all.Reports {
		of, listens := rules[r.Sync]
		if !listens || r.Approval == nil && len(all.Reports) > 1 {
			continue
		}
		why := refusal{}
		if _, err := t.under(of, func(t *conversation) (_ []counted, err error) { why, err = t.approves(ctx, c); return nil, err }); err != nil {
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
		return "No approval: write the digest of 32 hexadecimal digits and the commit after `/headgate approve`, as the preview shows them.", nil
	case whole == nil:
		return "", nil // the command may be for another sync
	case len(covered) == 0 && t.asksElsewhere(cmd.argument):
		return "", nil // the process with that preview answers
	case len(covered) == 0:
		return fmt.Sprintf("No approval: %s is not what blocks this commit. Look at its preview, which asks for %s.", report.Quoted(cmd.argument), report.Quoted(all.Digest())), nil
	case !cmd.isOf(t.pull.Head):
		return fmt.Sprintf("No approval: it does not name the commit that is previewed now. Look at its preview, and write %s.", report.Quoted(all.Command())), nil
	case t.rejection(c) != "":
		return "No approval: " + t.rejection(c) + ".", nil
	case cmd.upTo > 0 && cmd.upTo < whole.UpTo:
		return fmt.Sprintf("No approval: this commit concerns %d definitions and custom resources, and the approval covers %d.", whole.UpTo, cmd.upTo), nil
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
