package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ask sets the one digest that approves everything that blocks a comparison and can be approved: held steps, and
// breaking changes that a cluster holds if objects exist. A cluster holds only some of these steps, each with the
// same digest as here. See ADR 61.
func (r *Report) ask() {
	var digests []string
	var guards []plan.GuardName
	var claims []approval.Ask
	blocks := 0
	for _, steps := range [][]Step{r.Steps, r.Upgrades} {
		for i := range steps {
			s := &steps[i]
			switch {
			case len(s.claims) == 0:
				continue
			case s.Action == plan.Hold && !s.approvable:
				continue
			case s.Action != plan.Hold && !s.Approved && !s.blocks():
				continue
			}
			s.digests()
			blocks++
			claims = append(claims, s.claims...)
			for _, c := range s.claims {
				digests, guards = append(digests, c.Digest()), append(guards, plan.GuardName(c.Guard))
			}
			digests = append(digests, r.images(*s)...)
		}
	}
	r.Approval = nil
	if blocks == 0 {
		return
	}
	slices.Sort(guards)
	slices.Sort(digests)
	digests = slices.Compact(digests)
	r.Approval = &plan.Approval{Digest: approval.DigestOf(digests), UpTo: approval.Total(claims), Steps: blocks, Guards: slices.Compact(guards), Claims: claims}
	if len(digests) > 1 {
		r.Approval.Each = digests
	}
}

// images returns digests of the images in an upgrade, because an approval must not cover another image after a tag moved.
func (r Report) images(s Step) []string {
	if s.Package == "" {
		return nil
	}
	var all []string
	for _, b := range r.Bumps {
		if b.Package != s.Package && b.Source != s.Package {
			continue
		}
		for _, p := range r.Packages {
			if p.Source == b.Source && p.Digest != "" {
				sum := sha256.Sum256([]byte("image\x00" + p.Source + "\x00" + p.Digest))
				all = append(all, hex.EncodeToString(sum[:16]))
			}
		}
	}
	return all
}

// digests sets the digests that approve the step.
func (s *Step) digests() {
	each := approval.DigestsOf(s.claims)
	if s.Digest, s.UpTo = approval.DigestOf(each), approval.Total(s.claims); len(each) > 1 {
		s.Digests = each
	}
}

// covers reports whether an approval with these digests covers the step: its own digest, or the digest of each of its claims.
func (s Step) covers(digests []string) bool {
	each := approval.DigestsOf(s.claims)
	return slices.Contains(digests, s.Digest) || len(each) > 0 && !slices.ContainsFunc(each, func(d string) bool { return !slices.Contains(digests, d) })
}

// inForce converts the approvals of a branch that have not expired, for Approve.
func inForce(all []render.Approval, now metav1.Time) []Approved {
	var approved []Approved
	for _, a := range all {
		if !now.IsZero() && now.Before(&a.Expires) {
			approved = append(approved, Approved{Digests: a.Digests, UpTo: a.UpTo, By: a.By, How: []inventory.ApprovalPlace{inventory.InGit}})
		}
	}
	return approved
}

// Approve returns a comparison in which the changes that approvals cover no longer block. An approval with the digest
// of the report covers everything that can be approved. An approval with digests of single steps covers these steps.
// Call On afterwards.
func (r Report) Approve(all []Approved) Report {
	if r.Approval == nil {
		return r
	}
	r.Steps, r.Upgrades, r.Approvals = slices.Clone(r.Steps), slices.Clone(r.Upgrades), slices.Clone(r.Approvals)
	for _, a := range all {
		whole := slices.Contains(a.Digests, r.Approval.Digest)
		var used []string
		amount := 0
		for _, steps := range [][]Step{r.Steps, r.Upgrades} {
			for i := range steps {
				s := &steps[i]
				isMeant := whole || s.covers(a.Digests)
				if s.Digest == "" || s.passes() || !isMeant {
					continue
				}
				if !a.covers(amount + s.UpTo) {
					continue
				}
				amount += s.UpTo
				s.excused = true
				used = append(used, s.Digest)
			}
		}
		switch {
		case len(used) == 0:
			continue
		case whole:
			used = []string{r.Approval.Digest}
		}
		slices.Sort(used)
		a.Digests, a.Commit = slices.Compact(used), r.Revision
		r.Approvals = append(r.Approvals, a)
	}
	r.Judgement = Judgement{}
	return r
}

// askFor explains how to approve what blocks a comparison. command is the line of a comment that does.
func (r Report) askFor(b *strings.Builder, command string) {
	a := r.Approval
	what := manifest.Count(a.Steps, "change") + " that block it"
	if a.Steps == 1 {
		what = "1 change that blocks it"
	}
	if r.Preview != nil && r.Preview.Commands {
		or, who := "", "someone with write permission who is not an author of it"
		if r.Preview.Listed {
			who = "someone whom `approvals.approvers` lists and who is not an author of it"
		}
		if r.Preview.Reviews {
			or = ", or approves this commit in a review"
		}
		fmt.Fprintf(b, "\nTo merge it as it is, %s replies%s:\n\n%s\n\nThis covers exactly the %s%s A new commit needs a new approval.\n", who, or, fenced(cmp.Or(command, "/headgate approve "+a.Digest)), what, amountOf(a))
		return
	}
	fmt.Fprintf(b, "\nIf this is intended (%s), someone other than the author can approve it: in `%s` of the target, with `headgate approve --write`; or after the merge, with `headgate approve`.\n\n%s\n", what, render.ApprovalsFile, fenced(a.Line()))
}

// amountOf describes how much an approval in a comment covers beyond the objects of the steps.
func amountOf(a *plan.Approval) string {
	if a.UpTo > 0 {
		return fmt.Sprintf(", with %d definitions and custom resources that they activate or break, here and in every cluster.", a.UpTo)
	}
	if slices.ContainsFunc(a.Claims, func(c approval.Ask) bool { return c.Cause == approval.Breaks }) {
		return ", here and in every cluster. A cluster with custom resources that would lose a value or be refused asks again."
	}
	return ", here and in every cluster."
}

// passes reports whether a person approved a step, either in the plan or later.
func (s Step) passes() bool { return s.excused || s.Approved }

// approvers describes who approved what would otherwise block a comparison, if known: "by @alice, @bob".
func (r Report) approvers() string {
	var names, ways []string
	for _, a := range r.Approvals {
		switch {
		case a.By == "":
			ways = append(ways, a.ways())
		case !slices.Contains(names, a.By):
			names = append(names, a.By)
		}
	}
	if len(names) > 0 {
		ways = append([]string{"by " + someOf(names, mostNamed)}, ways...)
	}
	return strings.Join(slices.Compact(ways), ", ")
}

// Asks reports whether something that can be approved still blocks the comparison.
func (r Report) Asks() bool {
	waits := func(s Step) bool { return s.Digest != "" && !s.passes() }
	return r.Approval != nil && (slices.ContainsFunc(r.Steps, waits) || slices.ContainsFunc(r.Upgrades, waits))
}

// listMark begins the invisible line of a comment that lists the digests which a combined digest covers.
const listMark = "<!-- headgate approves "

// plainMark begins the same line on a forge that shows HTML as text.
const plainMark = "[//]: # (headgate approves "

// Covered returns the digests that an approval on a pull request into a target covers, and the amounts of those that have one,
// according to lists in comments; none if no list proves it. Any user may write a comment, but only the right list has this digest.
func Covered(digest, target string, comments []string) (digests []string, amounts map[string]approval.Amount) {
	for _, body := range comments {
		for line := range strings.SplitSeq(body, "\n") {
			rest, is := strings.CutPrefix(strings.TrimSpace(line), listMark+digest+": ")
			if !is {
				rest, is = strings.CutPrefix(strings.TrimSpace(line), plainMark+digest+": ")
			}
			if !is {
				continue
			}
			shown := strings.Fields(strings.TrimSuffix(strings.TrimSuffix(rest, ")"), "-->"))
			if len(shown) <= mostListed && approval.Into(target, shown) == digest {
				return approval.Shown(shown)
			}
		}
	}
	return nil, nil
}

// mostApprovals is the maximum number of approvals in a comment.
const mostApprovals = 3

// mostListed is the maximum number of digests in a list.
const mostListed = 1000

// Quoted returns a text as inline code in Markdown.
func Quoted(s string) string { return quoted(s) }

// Explain returns in Markdown what a comparison shows about a definition. The name may be a prefix.
func Explain(r Report, name string) string {
	found := definitionsCalled(r, name)
	switch {
	case name == "":
		return "Write the name of a definition after `/headgate explain`, such as `buckets.s3.aws.m.upbound.io`."
	case r.Error != "":
		return "The commit cannot be rendered, so nothing of it can be explained."
	case len(found) == 0:
		return fmt.Sprintf("No definition of this commit is called %s.", quoted(name))
	case len(found) > 1:
		names := make([]string, 0, mostExplained)
		for _, d := range found[:min(len(found), mostExplained)] {
			names = append(names, quoted(d.Name))
		}
		return fmt.Sprintf("%d definitions begin with %s: %s. Write one in full.", len(found), quoted(name), strings.Join(names, ", "))
	}
	d := found[0]
	var b strings.Builder
	state := "inactive: no policy names it"
	switch {
	case d.Active:
		state = "active after the merge"
	case d.Retained:
		state = "stays active: no policy names it any more"
	case d.Paused:
		state = "paused"
	}
	fmt.Fprintf(&b, "%s is %s.\n", quoted(d.Name), state)
	for _, why := range d.Because[:min(len(d.Because), mostExplained)] {
		fmt.Fprintf(&b, "- %s\n", quoted(Because(why)))
	}
	for _, s := range slices.Concat(r.Steps, r.Upgrades) {
		if s.ID.Name != d.Name || !s.isDefinition() {
			continue
		}
		fmt.Fprintf(&b, "- %s of %s\n", s.shownAction(), s.called())
		if s.Reason != "" {
			fmt.Fprintf(&b, "  - %s\n", code(clip(s.Reason, mostSaid)))
		}
		for i, change := range merged(s.Breaks) {
			if i == mostChanges {
				fmt.Fprintf(&b, "  - and %d more\n", len(merged(s.Breaks))-i)
				break
			}
			fmt.Fprintf(&b, "  - breaks: %s\n", quoted(change))
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// definitionsCalled returns the definition with a name, or those whose names begin with it.
func definitionsCalled(r Report, name string) (found []Definition) {
	for _, d := range r.Definitions {
		if d.Name == name {
			return []Definition{d}
		}
		if name != "" && strings.HasPrefix(d.Name, name+".") {
			found = append(found, d)
		}
	}
	return found
}

// mostExplained is the maximum number of names or reasons in an explanation.
const mostExplained = 10
