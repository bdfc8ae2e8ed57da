package draft

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// approvable returns which guards have holds that a person can approve.
func approvable(guards []Guard) map[plan.GuardName]bool {
	names := map[plan.GuardName]bool{}
	for _, g := range guards {
		names[g.Name] = names[g.Name] || g.Approvable
	}
	return names
}

// approve returns the claims on held steps that a person has approved. It sets p.Approval for the rest, and returns notes on
// approvals that do not count.
func (p *drafted) approve(seen facts.Observed, ledger *approval.Ledger, guards []Guard) (_ plan.Lifting, notes []manifest.Finding) {
	approvable := approvable(guards)
	approved, of := plan.Lifting{}, map[string]plan.Step{}
	var open []approval.Ask
	for _, s := range p.Steps {
		if s = p.AsksFor(s, approvable); !s.HeldByAny(approvable) {
			continue
		}
		for _, a := range s.ClaimsHeld() {
			if limit, does := ledger.Continues(a, leadsTo(s, a)...); does {
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
	asks := plan.ApprovalOf(rest)
	p.Approval = &asks
	typed := maps.Clone(seen.Approvals)
	for _, place := range approval.Listing { // their entries may be for other clusters
		delete(typed, place)
	}
	given := slices.DeleteFunc(typed.Digests(), func(d string) bool { return d == p.clear || lacks(short, d) })
	notes = append(notes, tooSmall(short)...)
	notes = append(notes, misgiven(asks.Line(), asks.Digest, given, ledger.Grants)...)
	notes = append(notes, ignoredInGit(seen, asks.Digest, rest, short)...)
	return approved, notes
}

// leadsTo returns the keys of claims about earlier phases of the step.
func leadsTo(s plan.Step, a approval.Ask) []string {
	if !s.Activates || s.Would != plan.Update || s.After != nil {
		return nil
	}
	a.Action = string(plan.Create)
	return []string{a.Key()}
}

// ledger returns the approvals that may count for the plan.
func (p *drafted) ledger(seen facts.Observed) *approval.Ledger {
	return &approval.Ledger{Given: seen.Approvals, Grants: record.Begun(p.Plan, seen.Inventory.Grants), Now: seen.Now, Commit: p.Want.Revision, First: seen.First}
}

// asking returns a function that approves what a later state of the plan holds. It retains only observations about approvals.
func asking(o facts.Observed, guards []Guard) func(*plan.Plan) plan.Lifting {
	o = facts.Observed{
		Wanted:   facts.Wanted{Want: o.Want},
		Ground:   facts.Ground{Inventory: inventory.Inventory{Grants: o.Inventory.Grants}},
		Given:    facts.Given{Approvals: o.Approvals, Now: o.Now, Terms: o.Terms},
		Standing: facts.Standing{Rewritten: o.Rewritten, InGit: o.InGit},
	}
	return func(of *plan.Plan) plan.Lifting {
		d := drafted{Plan: *of}
		approved, _ := d.approve(o, d.ledger(o), guards)
		*of = d.Plan
		return approved
	}
}

// isFirst reports whether no inventory shows that a pass of the sync has written to the cluster. If marks show it, the inventory was
// lost, so that approvals count only if they are given again.
func isFirst(o facts.Ground) bool {
	return o.Inventory.ResourceVersion == "" && len(o.Inventory.Entries) == 0
}

// spend records the use of approvals. of holds the steps by the keys of their claims.
func (p *drafted) spend(use approval.Use, of map[string]plan.Step) {
	for _, g := range use.Given.Grants(use.Digest) {
		g.Commit, g.How = p.Want.Revision, g.On
		if !p.Now.IsZero() {
			at := metav1.NewTime(p.Now.UTC().Truncate(1e9))
			g.At = &at
		}
		for _, a := range use.Asks {
			g.Left = append(g.Left, approval.Left(a.Key(), a.Amount))
			if s := of[a.Key()]; s.Frees && s.Terminating { // the object is deleted, and a create makes it again
				a.Action = string(plan.Create)
				g.Left = append(g.Left, approval.Left(a.Key(), a.Amount))
			}
		}
		p.Spent = append(p.Spent, g)
	}
}

// ofTarget returns the approvals in Git that count in a preview: those in the target branch, because the author of a pull request writes
// those in its head.
func ofTarget(o facts.Observed) facts.InGit { return facts.InGit{Read: true, All: o.InForce} }

// ofCommit returns the approvals in Git that count in a pass: those in the commit. A directory is not a commit, so its approvals are not
// protected. A pass over a rewritten branch does not trust it, because the file with the approvals is itself part of what a person has
// to approve.
func ofCommit(o facts.Observed) facts.InGit {
	if o.Want.Revision == "" || !o.Rewritten.None() {
		return facts.InGit{}
	}
	return facts.InGit{Read: true, All: o.Want.Approvals}
}

// withGit returns the approvals, including those in Git.
func withGit(o facts.Observed) approval.Given {
	if !o.InGit.Read {
		return o.Approvals
	}
	all := maps.Clone(o.Approvals)
	if all == nil {
		all = approval.Given{}
	}
	onForge, _ := question.Get(question.Known{Answers: o.Answers}, question.Approvals{Revision: o.Want.Revision})
	maps.Copy(all, onForge)
	all[inventory.InGit] = []approval.Approval{}
	for _, a := range o.InGit.All {
		all[inventory.InGit] = append(all[inventory.InGit], approval.Approval{
			ID: approval.EntryID(a.Digests, a.By, a.Why, a.Expires, a.UpTo), Digests: a.Digests, By: a.By, Expires: a.Expires, UpTo: a.UpTo,
		})
	}
	return all
}

// askForge asks for the approvals on the forge if they can matter: if the plan asks a person, or if it may do so once its questions are
// answered, because the pass before did.
func (p *drafted) askForge(seen facts.Observed) {
	asks := p.AsksPerson()
	if len(seen.Needed()) > 0 {
		asks = slices.ContainsFunc(p.Held, func(h inventory.Hold) bool { return h.Digest != "" })
	}
	if asks && p.Want.Revision != "" {
		question.Get(seen.Known(), question.Approvals{Revision: p.Want.Revision})
	}
}

// noteOnForge returns a warning if the approvals on the forge could not be read. Held steps stay held.
func noteOnForge(o facts.Observed) []manifest.Finding {
	_, is := question.Get(question.Known{Answers: o.Answers}, question.Approvals{Revision: o.Want.Revision})
	if is.Err == nil {
		return nil
	}
	return []manifest.Finding{{
		Rule: "approval", Severity: manifest.Warning, About: manifest.About{},
		Message: "approvals on the pull request of this commit do not count, because they could not be read: " + is.Err.Error(),
		Fix:     "repair the access to the forge, or approve with 'headgate approve'",
	}}
}

func expired(o facts.Given, a render.Approval) bool {
	return approval.Approval{Expires: a.Expires}.Expired(o.Now)
}

// ignoredInGit returns notes on approvals in the commit that list held steps but do not count.
func ignoredInGit(o facts.Observed, whole string, held []approval.Ask, short []approval.Shortage) []manifest.Finding {
	digests := append(approval.DigestsOf(held), whole)
	var notes []manifest.Finding
	for _, a := range o.Want.Approvals {
		if !slices.ContainsFunc(a.Digests, func(d string) bool { return slices.Contains(digests, d) && !lacks(short, d) }) {
			continue
		}
		f := manifest.Finding{Rule: "approval", Severity: manifest.Warning, Origin: a.Origin, About: manifest.About{Subject: fmt.Sprint(a.Digests)}}
		switch {
		case !o.Rewritten.None():
			f.Message = "the approval of what is held does not count: the branch was rewritten, and so may be the file with the approval"
			f.Fix = "look at what is held, and approve it with 'headgate approve' or --approve"
		case expired(o.Given, a):
			f.Message = "the approval expired at " + a.Expires.UTC().Format("2006-01-02T15:04:05Z")
			f.Fix = "approve it again, or remove the entry"
		case o.InGit.Read && !slices.ContainsFunc(o.InGit.All, func(b render.Approval) bool { return slices.Equal(a.Digests, b.Digests) }):
			f.Message = "this pull request carries an approval of its own held steps, which does not count: its author wrote it"
			f.Fix = "have another person merge the approval first"
		case !o.InGit.Read:
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
func noteOnTrailers(o facts.Given) []manifest.Finding {
	if !o.Terms.Trailers {
		return nil
	}
	return []manifest.Finding{{
		Rule: "approval", Severity: manifest.Warning, About: manifest.About{Field: "approvals.trailers"},
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
			About:    manifest.About{Subject: d},
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
			Rule: "approval", Severity: manifest.Warning, About: manifest.About{Subject: s.Digest},
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
