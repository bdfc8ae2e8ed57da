package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
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

	Claims []approval.Claim `json:"claims,omitempty"` // what a person is asked
}

// Covers reports whether an approval lets a held step pass.
func (a *Approval) Covers(s Step) bool {
	return a != nil && s.Action == Hold && !slices.ContainsFunc(s.claims(), func(c approval.Claim) bool { return !slices.Contains(a.Claims, c) })
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

// claim returns what a person is asked if a guard holds the step.
func (s Step) claim(guard GuardName) approval.Claim {
	c := approval.Claim{Guard: string(guard), Action: string(s.change().action), Of: s.ID, Wants: s.wants}
	if s.Deactivates { // the same in each phase of a deactivation
		c.Of = CRD(s.ID.Name)
	}
	if len(s.Drops) > 0 {
		c.Action, c.Wants = string(Leftovers), ""
		for _, h := range s.Drops {
			c.Wants += "\x00" + strings.Join(append([]string{h.Manager}, h.Fields...), "\x00")
		}
	}
	return c
}

// claims returns what a person is asked about a held step, without duplicates.
func (s Step) claims() []approval.Claim {
	var all []approval.Claim
	for _, r := range s.holds() {
		if c := s.claim(r.Guard); !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// Claims returns what a person is asked about a held step, or has approved so that it passed.
func (s Step) Claims() []approval.Claim {
	all := s.claims()
	for _, r := range s.lifted {
		if c := s.claim(r.Guard); s.Action != Hold && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// A lifting holds the keys of claims that a person has approved.
type lifting map[string]bool

func (l lifting) has(c approval.Claim) bool { return len(l) > 0 && l[c.Key()] }

func (l lifting) add(claims ...approval.Claim) {
	for _, c := range claims {
		l[c.Key()] = true
	}
}

// some reports whether a claim of a guard is approved.
func (l lifting) some(guard GuardName) bool {
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
	if s.otherwise == nil || s.otherwise.Action != Hold || s.Action == Prune || s.isHeldBy(first) {
		return s
	}
	return *s.otherwise
}

// An openClaim is a claim that no approval covers yet, on a held step.
type openClaim struct {
	approval.Claim
	step Step
}

func claimsOf(all []openClaim) []approval.Claim {
	claims := make([]approval.Claim, len(all))
	for i, a := range all {
		claims[i] = a.Claim
	}
	return claims
}

// approve returns the claims on held steps that a person has approved. It sets p.Approval for the rest, and returns notes on
// approvals that do not count.
func (p *Plan) approve(seen Observed, guards []Guard) (_ lifting, notes []manifest.Finding) {
	approvable := approvable(guards)
	carriesOn := p.carriesOn(seen)
	approved := lifting{}
	var rest []openClaim
	for _, s := range p.Steps {
		if s = s.asks(approvable); !s.isHeldBy(approvable) {
			continue
		}
		for _, c := range s.claims() {
			created := c
			created.Action = string(Create)
			if carriesOn[c.Key()] || s.Activates && s.Would == Update && s.After == nil && carriesOn[created.Key()] {
				approved.add(c)
			} else {
				rest = append(rest, openClaim{c, s})
			}
		}
	}
	if len(rest) == 0 {
		return approved, nil
	}
	asks := approvalOf(claimsOf(rest))
	if !p.isApproved(asks.Digest, rest, seen) {
		if rest = p.approveEach(rest, approved, seen); len(rest) == 0 {
			return approved, nil
		}
		asks = approvalOf(claimsOf(rest))
	}
	if !p.isApproved(asks.Digest, rest, seen) {
		p.Approval = &asks
		typed := maps.Clone(seen.Approvals)
		for _, place := range approval.Listing { // their entries may be for other clusters
			delete(typed, place)
		}
		given := slices.DeleteFunc(typed.Digests(), func(d string) bool { return d == p.clear })
		notes = append(notes, misgiven(asks.Digest, given, p.begun(seen.Inventory.Grants))...)
		notes = append(notes, seen.ignoredInGit(asks.Digest, rest)...)
		return approved, notes
	}
	p.spend(seen.given(rest...).Unused(asks.Digest, p.begun(seen.Inventory.Grants)), asks.Digest, rest...)
	approved.add(claimsOf(rest)...)
	return approved, nil
}

// asking returns a function that approves what a later state of the plan holds. It retains only observations about approvals.
func (o Observed) asking(guards []Guard) func(*Plan) lifting {
	o = Observed{
		Want: o.Want, Inventory: inventory.Inventory{Grants: o.Inventory.Grants}, Approvals: o.Approvals, InForce: o.InForce,
		Now: o.Now, Terms: o.Terms, Offline: o.Offline, rewritten: o.rewritten,
	}
	return func(of *Plan) lifting {
		approved, _ := of.approve(o, guards)
		return approved
	}
}

// approveEach approves the claims whose own digests are listed in Git or on the forge, and returns the others. Different clusters
// may hold different steps of a commit, so such an approval covers any of the claims that it lists. What it let pass once may also
// be carried out with a later commit, until the approval expires.
func (p *Plan) approveEach(all []openClaim, approved lifting, seen Observed) (rest []openClaim) {
	grants := p.begun(seen.Inventory.Grants)
	for _, a := range all {
		here := seen.given(a).Listed()
		begun := slices.ContainsFunc(grants, func(g inventory.Grant) bool { return slices.Contains(g.Left, a.Key()) && here.Holds(g) })
		digests := []string{a.Digest(), a.step.Approval().Digest}
		i := slices.IndexFunc(digests, func(digest string) bool { return len(here.Unused(digest, grants)) > 0 })
		switch {
		case begun:
		case i >= 0:
			p.spend(here.Unused(digests[i], grants), digests[i], a)
		default:
			rest = append(rest, a)
			continue
		}
		approved.add(a.Claim)
	}
	return rest
}

// isApproved reports whether a person has approved the digest of some claims, and no pass has used that approval.
func (p *Plan) isApproved(digest string, of []openClaim, seen Observed) bool {
	return len(seen.given(of...).Unused(digest, p.begun(seen.Inventory.Grants))) > 0
}

// given returns the approvals that may count for claims. In the first pass of a sync in a cluster, approvals that have expired count,
// too, so that a cluster that is made anew comes up without a person. They never delete anything.
func (o Observed) given(claims ...openClaim) approval.Given {
	prunes := slices.ContainsFunc(claims, func(c openClaim) bool { return c.Action != string(Create) && c.Action != string(Update) })
	if o.first && !prunes {
		return o.Approvals
	}
	return o.Approvals.At(o.Now)
}

// isFirst reports whether no inventory shows that a pass of the sync has written to the cluster. If marks show it, the inventory was
// lost, so that approvals count only if they are given again.
func (o Observed) isFirst() bool {
	return !o.Offline && !o.Looks && o.Ends == NoEnding && o.Inventory.ResourceVersion == "" && len(o.Inventory.Entries) == 0
}

// Granted returns the approvals that this plan, or an earlier one over the same commit, has used.
func (p Plan) Granted() []inventory.Grant {
	return slices.DeleteFunc(slices.Concat(p.granted, p.spent), func(g inventory.Grant) bool { return g.Commit != p.Want.Revision || len(g.How) == 0 })
}

// Approval returns the approval that lets only this held step pass.
func (s Step) Approval() Approval { return approvalOf(s.claims()) }

// spend records that the plan uses approvals of a digest for some claims.
func (p *Plan) spend(given approval.Given, digest string, of ...openClaim) {
	for _, g := range given.Grants(digest) {
		g.Commit, g.How = p.Want.Revision, g.On
		if !p.now.IsZero() {
			at := metav1.NewTime(p.now.UTC().Truncate(1e9))
			g.At = &at
		}
		for _, a := range of {
			g.Left = append(g.Left, a.Key())
			if a.step.frees && a.step.going { // the object is deleted, and a create makes it again
				a.Action = string(Create)
				g.Left = append(g.Left, a.Key())
			}
		}
		p.spent = append(p.spent, g)
	}
}

// carriesOn returns the keys of claims that an approval allowed before, and whether that was for the same commit. The steps have not
// been carried out yet.
func (p *Plan) carriesOn(seen Observed) map[string]bool {
	left := map[string]bool{}
	for _, g := range seen.Inventory.Grants {
		for _, key := range g.Left {
			left[key] = left[key] || g.Commit == p.Want.Revision
		}
	}
	return left
}

// ClaimAs returns what a person would be asked if a guard held the step's action would.
func (s Step) ClaimAs(guard GuardName, would Action) approval.Claim {
	s.Action, s.Would = Hold, would
	return s.claim(guard)
}

// approvalOf returns the approval of claims. Their order does not matter.
func approvalOf(claims []approval.Claim) Approval {
	a, changes := Approval{Digest: approval.DigestOf(approval.DigestsOf(claims)), Claims: claims}, map[string]bool{}
	for _, c := range claims {
		a.Guards = append(a.Guards, GuardName(c.Guard))
		c.Guard = ""
		changes[c.Key()] = true
	}
	slices.Sort(a.Guards)
	a.Guards, a.Steps = slices.Compact(a.Guards), len(changes)
	return a
}

// HoldKey identifies a held step: its guard, action and object, and the wanted digest.
func (s Step) HoldKey() string { return inventory.Hash([]byte(s.claim(s.Guard).String()))[:11] }

// inGit returns the approvals in Git that count unless they have expired. In a pass, these are the approvals in the commit. In a
// preview, they are the approvals in the target branch, because the author of a pull request writes those in its head.
func (o Observed) inGit(want render.Desired) []render.Approval {
	switch {
	case o.Offline:
		return o.InForce
	case want.Revision == "": // a directory is not a commit, so its approvals are not protected
		return nil
	}
	return want.Approvals
}

// withGit returns the approvals, including those in Git. A pass without a commit did not read Git. A pass over a rewritten branch does
// not trust it, because the file with the approvals is itself part of what a person has to approve.
func (o Observed) withGit(want render.Desired) approval.Given {
	if !o.Offline && want.Revision == "" || !o.Rewritten().None() {
		return o.Approvals
	}
	all := maps.Clone(o.Approvals)
	if all == nil {
		all = approval.Given{}
	}
	maps.Copy(all, o.OnForge)
	all[inventory.InGit] = []approval.Approval{}
	for _, a := range o.inGit(want) {
		all[inventory.InGit] = append(all[inventory.InGit], approval.Approval{
			ID: approval.EntryID(a.Digests, a.By, a.Why, a.Expires), Digests: a.Digests, By: a.By, Expires: a.Expires,
		})
	}
	return all
}

func (o Observed) expired(a render.Approval) bool {
	return approval.Approval{Expires: a.Expires}.Expired(o.Now)
}

// ignoredInGit returns notes on approvals in the commit that list held steps but do not count.
func (o Observed) ignoredInGit(whole string, held []openClaim) []manifest.Finding {
	digests := map[string]bool{whole: true}
	for _, a := range held {
		digests[a.Digest()], digests[a.step.Approval().Digest] = true, true
	}
	var notes []manifest.Finding
	for _, a := range o.Want.Approvals {
		if !slices.ContainsFunc(a.Digests, func(d string) bool { return digests[d] }) {
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
		case o.Offline && !slices.ContainsFunc(o.InForce, func(b render.Approval) bool { return slices.Equal(a.Digests, b.Digests) }):
			f.Message = "this pull request carries an approval of its own held steps, which does not count: its author wrote it"
			f.Fix = "have another person merge the approval first"
		case o.Want.Revision == "" && !o.Offline:
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
	if !o.Terms.Trailers || o.Offline {
		return nil
	}
	return []manifest.Finding{{
		Rule: "approval", Severity: manifest.Warning,
		Message: "approvals.trailers and approvals.signers of the Sync have no effect any more: approvals in commit messages do not count",
		Fix:     "remove them, and approve in " + render.ApprovalsFile + " with 'headgate approve --write': a user who may sign or merge commits may write this file",
	}}
}

// misgiven returns findings about approvals that were given but do not match the held steps.
func misgiven(digest string, given []string, grants []inventory.Grant) []manifest.Finding {
	var notes []manifest.Finding
	slices.Sort(given)
	for _, d := range slices.Compact(given) {
		f := manifest.Finding{
			Rule:     "approval",
			Severity: manifest.Warning,
			Message:  fmt.Sprintf("the approval %.40s does not fit the steps that are held now", d),
			Fix:      "look at what is held, and approve " + digest,
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

// past returns the step with the rulings that approvals lifted, if it is carried out because of that.
func (s Step) past(lifted []Ruling) Step {
	if len(lifted) == 0 || s.Action == Hold || s.Action == Keep {
		return s
	}
	s.Approved, s.lifted, s.Reason = true, lifted, Reason{}
	for _, r := range lifted {
		s.Reason = And(s.Reason, Approved.With(string(r.Guard), r.Reason))
	}
	return s
}
