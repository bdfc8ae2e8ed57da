package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An Approval lets exactly the held steps of its digest pass. A person gives it. The digest of the same steps is the same in a
// preview and in every cluster.
type Approval struct {
	Digest string      `json:"digest"`
	Steps  int         `json:"steps"`
	Guards []GuardName `json:"guards"`         // the guards that hold the steps
	Each   []string    `json:"each,omitempty"` // in a comparison: the digests that Digest covers, sorted
	UpTo   int         `json:"upTo,omitempty"` // how many definitions become active, and how many custom resources break

	Claims []approval.Ask `json:"claims,omitempty"` // what a person is asked
}

// Line returns what a person writes to approve everything: the digest, and the amount if it has one.
func (a Approval) Line() string { return approval.Line(a.Digest, a.UpTo) }

// Covers reports whether an approval lets a held step pass.
func (a *Approval) Covers(s Step) bool {
	return a != nil && s.Action == Hold && !slices.ContainsFunc(s.claims(), func(c approval.Ask) bool { return !slices.Contains(a.Claims, c) })
}

// Names returns the names of the guards as text.
func (a Approval) Names() []string {
	names := make([]string, len(a.Guards))
	for i, name := range a.Guards {
		names[i] = string(name)
	}
	return names
}

// approvable returns which guards have holds that a person can approve.
func approvable(guards []Guard) map[GuardName]bool {
	names := map[GuardName]bool{}
	for _, g := range guards {
		names[g.Name] = names[g.Name] || g.Approvable
	}
	return names
}

// isHeldBy reports whether some guards, and no others, hold the step.
func (s Step) isHeldBy(guards map[GuardName]bool) bool {
	return s.Action == Hold && !slices.ContainsFunc(s.holds(), func(r Ruling) bool { return !guards[r.Guard] })
}

// claim returns what a person is asked if a guard holds the step for a cause.
func (s Step) claim(guard GuardName, cause approval.Cause) approval.Claim {
	c := approval.Claim{Guard: string(guard), Cause: cause, Action: string(s.change().action), Of: s.ID, Wants: s.Wants}
	if s.Deactivates { // the same in each phase of a deactivation
		c.Of = CRD(s.ID.Name)
	}
	if len(s.Drops) > 0 {
		c.Action, c.Wants = string(leftoverFields), ""
		for _, h := range s.Drops {
			c.Wants += "\x00" + strings.Join(append([]string{h.Manager}, h.Fields...), "\x00")
		}
	}
	return c
}

// ask returns what a person is asked about a ruling on the step.
func (s Step) ask(r Ruling) approval.Ask {
	return approval.Ask{Claim: s.claim(r.Guard, r.Cause), Amount: r.Amount}
}

// claims returns what a person is asked about a held step, without duplicates.
func (s Step) claims() []approval.Ask { return s.asksOf(s.holds()) }

// Claims returns what a person is asked about a held step, or has approved so that it passed.
func (s Step) Claims() []approval.Ask {
	if s.Action == Hold {
		return s.claims()
	}
	return s.asksOf(s.Lifted)
}

func (s Step) asksOf(rulings []Ruling) []approval.Ask {
	var all []approval.Ask
	for _, r := range rulings {
		a := s.ask(r)
		if i := slices.IndexFunc(all, func(b approval.Ask) bool { return a.Claim == b.Claim }); i >= 0 {
			all[i].Amount = all[i].Amount.Plus(a.Amount)
			continue
		}
		all = append(all, a)
	}
	return all
}

// A Lifting holds, by the keys of claims that a person has approved, how far each may grow.
type Lifting map[string]approval.Amount

// Covers reports whether a person has approved an ask.
func (l Lifting) Covers(a approval.Ask) bool {
	if len(l) == 0 {
		return false
	}
	limit, has := l[a.Key()]
	return has && a.Amount.Within(limit)
}

// Add adds what a person has approved.
func (l Lifting) Add(asks ...approval.Ask) {
	for _, a := range asks {
		l[a.Key()] = a.Amount
	}
}

// Some reports whether a claim of a guard is approved.
func (l Lifting) Some(guard GuardName) bool {
	for key := range l {
		if strings.HasPrefix(key, string(guard)+":") {
			return true
		}
	}
	return false
}

// asks returns the step that the plan asks about: a prune, or the held update in its place if a guard that decides before it keeps
// the prune from being made.
func (s Step) asks(first map[GuardName]bool) Step {
	if s.Otherwise == nil || s.Otherwise.Action != Hold || s.Action == Prune || s.isHeldBy(first) {
		return s
	}
	return *s.Otherwise
}

// approve returns the claims on held steps that a person has approved. It sets p.Approval for the rest, and returns notes on
// approvals that do not count.
func (p *drafted) approve(seen Observed, ledger *approval.Ledger, guards []Guard) (_ Lifting, notes []manifest.Finding) {
	approvable := approvable(guards)
	approved, of := Lifting{}, map[string]Step{}
	var open []approval.Ask
	for _, s := range p.Steps {
		if s = s.asks(approvable); !s.isHeldBy(approvable) {
			continue
		}
		for _, a := range s.claims() {
			if limit, does := ledger.Continues(a, s.leadsTo(a)...); does {
				a.Amount = limit
				approved.Add(a)
				continue
			}
			open, of[a.Key()] = append(open, a), s
		}
	}
	uses, rest, short := ledger.Cover(open)
	for _, use := range uses {
		p.spend(use, of)
		approved.Add(use.Asks...)
	}
	if len(rest) == 0 {
		return approved, nil
	}
	asks := approvalOf(rest)
	p.Approval = &asks
	typed := maps.Clone(seen.Approvals)
	for _, place := range approval.Listing { // their entries may be for other clusters
		delete(typed, place)
	}
	given := slices.DeleteFunc(typed.Digests(), func(d string) bool { return d == p.clear || lacks(short, d) })
	notes = append(notes, tooSmall(short)...)
	notes = append(notes, misgiven(asks.Line(), asks.Digest, given, ledger.Grants)...)
	notes = append(notes, seen.ignoredInGit(asks.Digest, rest, short)...)
	return approved, notes
}

// leadsTo returns the keys of claims about earlier phases of the step.
func (s Step) leadsTo(a approval.Ask) []string {
	if !s.Activates || s.Would != Update || s.After != nil {
		return nil
	}
	a.Action = string(Create)
	return []string{a.Key()}
}

// ledger returns the approvals that may count for the plan.
func (p *drafted) ledger(seen Observed) *approval.Ledger {
	return &approval.Ledger{Given: seen.Approvals, Grants: p.begun(seen.Inventory.Grants), Now: seen.Now, Commit: p.Want.Revision, First: seen.first}
}

// asking returns a function that approves what a later state of the plan holds. It retains only observations about approvals.
func (o Observed) asking(guards []Guard) func(*Plan) Lifting {
	o = Observed{
		Want: o.Want, Inventory: inventory.Inventory{Grants: o.Inventory.Grants}, Approvals: o.Approvals, InForce: o.InForce,
		Now: o.Now, Terms: o.Terms, Stance: o.Stance, rewritten: o.rewritten,
	}
	return func(of *Plan) Lifting {
		d := drafted{Plan: *of}
		approved, _ := d.approve(o, d.ledger(o), guards)
		*of = d.Plan
		return approved
	}
}

// isFirst reports whether no inventory shows that a pass of the sync has written to the cluster. If marks show it, the inventory was
// lost, so that approvals count only if they are given again.
func (o Observed) isFirst() bool {
	return o.Stance == Applying && o.Inventory.ResourceVersion == "" && len(o.Inventory.Entries) == 0
}

// Granted returns the approvals that this plan, or an earlier one over the same commit, has used.
func (p Plan) Granted() []inventory.Grant {
	return slices.DeleteFunc(slices.Concat(p.GrantedBefore, p.Spent), func(g inventory.Grant) bool { return g.Commit != p.Want.Revision || len(g.How) == 0 })
}

// Approval returns the approval that lets only this held step pass.
func (s Step) Approval() Approval { return approvalOf(s.claims()) }

// spend records the use of approvals. of holds the steps by the keys of their claims.
func (p *drafted) spend(use approval.Use, of map[string]Step) {
	for _, g := range use.Given.Grants(use.Digest) {
		g.Commit, g.How = p.Want.Revision, g.On
		if !p.Now.IsZero() {
			at := metav1.NewTime(p.Now.UTC().Truncate(1e9))
			g.At = &at
		}
		for _, a := range use.Asks {
			g.Left = append(g.Left, approval.Left(a.Key(), a.Amount))
			if s := of[a.Key()]; s.Frees && s.Terminating { // the object is deleted, and a create makes it again
				a.Action = string(Create)
				g.Left = append(g.Left, approval.Left(a.Key(), a.Amount))
			}
		}
		p.Spent = append(p.Spent, g)
	}
}

// ClaimAs returns what a person would be asked if a guard held the step's action would.
func (s Step) ClaimAs(guard GuardName, cause approval.Cause, would Action) approval.Ask {
	s.Action, s.Would = Hold, would
	return approval.Ask{Claim: s.claim(guard, cause)}
}

// approvalOf returns the approval of claims. Their order does not matter.
func approvalOf(asks []approval.Ask) Approval {
	a, changes := Approval{Digest: approval.Whole(asks), UpTo: approval.Total(asks), Claims: asks}, map[string]bool{}
	for _, c := range asks {
		a.Guards = append(a.Guards, GuardName(c.Guard))
		changes[approval.ChangeOf(c.Key())] = true
	}
	slices.Sort(a.Guards)
	a.Guards, a.Steps = slices.Compact(a.Guards), len(changes)
	return a
}

// HoldKey identifies a held step: its guard, action and object, and the wanted digest.
func (s Step) HoldKey() string {
	return inventory.Hash([]byte(s.claim(s.Guard, s.HeldFor).String()))[:11]
}

// inGit returns the approvals in Git that count unless they have expired, and whether it was read. In a pass, these are the approvals in
// the commit. In a preview, they are the approvals in the target branch, because the author of a pull request writes those in its head.
// A directory is not a commit, so its approvals are not protected. A pass over a rewritten branch does not trust it, because the file
// with the approvals is itself part of what a person has to approve.
func (o Observed) inGit() (all []render.Approval, read bool) {
	switch {
	case o.Stance.In(OnCommit):
		return o.InForce, true
	case o.Want.Revision == "", !o.Rewritten().None():
		return nil, false
	}
	return o.Want.Approvals, true
}

// withGit returns the approvals, including those in Git.
func (o Observed) withGit() approval.Given {
	inGit, read := o.inGit()
	if !read {
		return o.Approvals
	}
	all := maps.Clone(o.Approvals)
	if all == nil {
		all = approval.Given{}
	}
	onForge, _ := question.Get(question.Known{Answers: o.Answers}, question.Approvals{Revision: o.Want.Revision})
	maps.Copy(all, onForge)
	all[inventory.InGit] = []approval.Approval{}
	for _, a := range inGit {
		all[inventory.InGit] = append(all[inventory.InGit], approval.Approval{
			ID: approval.EntryID(a.Digests, a.By, a.Why, a.Expires, a.UpTo), Digests: a.Digests, By: a.By, Expires: a.Expires, UpTo: a.UpTo,
		})
	}
	return all
}

// askForge asks for the approvals on the forge if they can matter: if the plan asks a person, or if it may do so once its questions are
// answered, because the pass before did.
func (p awaiting) askForge() {
	asks := p.AsksPerson()
	if len(p.seen.asked()) > 0 {
		asks = slices.ContainsFunc(p.Held, func(h inventory.Hold) bool { return h.Digest != "" })
	}
	if asks && p.Want.Revision != "" && p.seen.Stance == Applying {
		question.Get(p.seen.Known(), question.Approvals{Revision: p.Want.Revision})
	}
}

// noteOnForge returns a warning if the approvals on the forge could not be read. Held steps stay held.
func (o Observed) noteOnForge() []manifest.Finding {
	_, is := question.Get(question.Known{Answers: o.Answers}, question.Approvals{Revision: o.Want.Revision})
	if is.Err == nil {
		return nil
	}
	return []manifest.Finding{{
		Rule: "approval", Severity: manifest.Warning,
		Message: "approvals on the pull request of this commit do not count, because they could not be read: " + is.Err.Error(),
		Fix:     "repair the access to the forge, or approve with 'headgate approve'",
	}}
}

func (o Observed) expired(a render.Approval) bool {
	return approval.Approval{Expires: a.Expires}.Expired(o.Now)
}

// ignoredInGit returns notes on approvals in the commit that list held steps but do not count.
func (o Observed) ignoredInGit(whole string, held []approval.Ask, short []approval.Shortage) []manifest.Finding {
	digests := append(approval.DigestsOf(held), whole)
	counting, read := o.inGit()
	var notes []manifest.Finding
	for _, a := range o.Want.Approvals {
		if !slices.ContainsFunc(a.Digests, func(d string) bool { return slices.Contains(digests, d) && !lacks(short, d) }) {
			continue
		}
		f := manifest.Finding{Rule: "approval", Severity: manifest.Warning, Origin: a.Origin}
		switch {
		case !o.Rewritten().None():
			f.Message = "the approval of what is held does not count: the branch was rewritten, and so may be the file with the approval"
			f.Fix = "look at what is held, and approve it with 'headgate approve' or --approve"
		case o.expired(a):
			f.Message = "the approval expired at " + a.Expires.UTC().Format("2006-01-02T15:04:05Z")
			f.Fix = "approve it again, or remove the entry"
		case read && !slices.ContainsFunc(counting, func(b render.Approval) bool { return slices.Equal(a.Digests, b.Digests) }):
			f.Message = "this pull request carries an approval of its own held steps, which does not count: its author wrote it"
			f.Fix = "have another person merge the approval first"
		case !read:
			f.Message = "the approval does not count: a directory is not a commit"
			f.Fix = "apply a commit that holds the approval, or use --approve"
		default:
			f.Message = "the approval was used already, or was given before the inventory was lost"
			f.Fix = "remove the entry, wait for the next pass, and add it again; or use --approve"
		}
		notes = append(notes, f)
	}
	return notes
}

// noteOnTrailers returns a warning if the Sync says which approvals in commit messages count.
func (o Observed) noteOnTrailers() []manifest.Finding {
	if !o.Terms.Trailers {
		return nil
	}
	return []manifest.Finding{{
		Rule: "approval", Severity: manifest.Warning,
		Message: "approvals.trailers and approvals.signers of the Sync have no effect any more: approvals in commit messages do not count",
		Fix:     "remove them, and approve in " + render.ApprovalsFile + " with 'headgate approve --write': a user who may sign or merge commits may write this file",
	}}
}

// misgiven returns findings about approvals that were given but do not match the held steps.
func misgiven(line, digest string, given []string, grants []inventory.Grant) []manifest.Finding {
	var notes []manifest.Finding
	slices.Sort(given)
	for _, d := range slices.Compact(given) {
		f := manifest.Finding{
			Rule:     "approval",
			Severity: manifest.Warning,
			Message:  fmt.Sprintf("the approval %.40s does not fit the steps that are held now", d),
			Fix:      "look at what is held, and approve " + line,
		}
		spent := slices.IndexFunc(grants, func(g inventory.Grant) bool { return g.Digest == d && g.Commit != "" })
		if spent >= 0 {
			f.Message = fmt.Sprintf("the approval %.40s was spent on commit %.12s", d, grants[spent].Commit)
		} else if d == digest { // otherwise it would count
			f.Message = fmt.Sprintf("the approval %.40s was used already, or was given before the inventory was lost", d)
		}
		if d == digest {
			f.Fix = "remove it, wait for the next pass, and give it again"
		}
		notes = append(notes, f)
	}
	return notes
}

// tooSmall returns findings about approvals of claims whose amounts are larger now.
func tooSmall(short []approval.Shortage) []manifest.Finding {
	var notes []manifest.Finding
	for _, s := range short {
		note := manifest.Finding{
			Rule: "approval", Severity: manifest.Warning,
			Message: fmt.Sprintf("the approval %.40s covers %d definitions and custom resources; the held steps now activate or break %d, or others than those", s.Digest, s.Covers, approval.Total(s.Asks)),
			Fix:     "look at what is held, and approve " + approval.Line(s.Digest, approval.Total(s.Asks)),
		}
		if !slices.ContainsFunc(notes, func(n manifest.Finding) bool { return n.Message == note.Message }) {
			notes = append(notes, note)
		}
	}
	return notes
}

// lacks reports whether a digest is that of an approval which covers too little.
func lacks(short []approval.Shortage, digest string) bool {
	return slices.ContainsFunc(short, func(s approval.Shortage) bool { return s.Digest == digest })
}

// past returns the step with the rulings that approvals lifted, if it is carried out because of that.
func (s Step) past(lifted []Ruling) Step {
	if len(lifted) == 0 || s.Action == Hold || s.Action == Keep {
		return s
	}
	s.Approved, s.Lifted, s.Reason = true, lifted, Reason{}
	for _, r := range lifted {
		s.Reason = And(s.Reason, Approved.With(string(r.Guard), r.Reason))
	}
	return s
}
