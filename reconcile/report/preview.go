package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/memory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Preview holds the part of a comparison's report that does not come from the plan.
type Preview struct {
	Base    string        `json:"base"`              // the merge base, which is the base of the comparison
	Live    bool          `json:"live,omitempty"`    // counts come from a cluster
	Repairs bool          `json:"repairs,omitempty"` // this commit can be rendered but its base cannot, so nothing was compared
	Away    string        `json:"away,omitempty"`    // why the sync does not run, so nothing was compared
	Moved   string        `json:"moved,omitempty"`   // relevant changes of the target branch since the merge base
	Opens   []Opening     `json:"opens"`             // definitions that become active
	Leaves  []Definition  `json:"leaves"`            // definitions that nothing activates any more, but that remain active
	Memory  memory.Change `json:"memory"`            // memory of an API server

	Uncontrolled int `json:"uncontrolled,omitempty"` // CRDs and MRDs whose controller is not the active revision of their package

	Warnings int    `json:"newWarnings,omitempty"` // warnings that the base does not have
	Into     string `json:"into,omitempty"`        // the branch that the head would be merged into, if it is known

	Unchecked []string `json:"unchecked,omitempty"` // kinds of objects that only the base checks, because the new commit has no schema of them

	Unconfirmed int `json:"unconfirmed,omitempty"` // definitions whose schemas only the new commit keeps, as no registry can be read

	Unsigned int `json:"unsigned,omitempty"` // signatures that the base demands of packages, and that the new commit does not

	SafeStart []SafeStart `json:"safeStart,omitempty"` // packages that gain or lose safe-start
	Copies    []Copy      `json:"copies,omitempty"`    // packages in the tree whose release changes
	Versions  []Version   `json:"versions,omitempty"`  // for a possible upgrade: the versions up to the new one

	Suspended string `json:"suspended,omitempty"` // why the sync writes nothing, also after the merge

	Owner render.Owner `json:"crdOwner,omitempty"` // set if the merge changes who makes the CRDs in a new cluster

	Untouched bool `json:"untouched,omitempty"` // the merge changes nothing of the sync

	Commands bool `json:"commands,omitempty"` // users may approve with comments
	Reviews  bool `json:"reviews,omitempty"`  // users may approve with reviews
	Listed   bool `json:"listed,omitempty"`   // only users whom the sync lists may approve
}

// A SafeStart is a package that gains or loses safe-start. With it, only policies activate its definitions. Without
// it, all of them are active.
type SafeStart struct {
	Package string          `json:"package"`
	Has     bool            `json:"has"`
	Origin  manifest.Origin `json:"origin"`
}

// An Opening is a definition that becomes active.
type Opening struct {
	Definition
	Already bool `json:"already,omitempty"` // a policy in the cluster has already activated it
}

// A Comparison holds the inputs of Compared in addition to the plan.
type Comparison struct {
	Before  render.Desired  // the base of the comparison
	Now     *render.Desired // the current target branch, if it changed since the base
	Live    bool
	Present map[string]bool // definitions whose CRDs already exist in the cluster, by name

	Approvals []render.Approval // approvals on the target branch
	At        metav1.Time       // the time that decides which approvals have expired; none counts if it is zero
}

// Compared reports the plan of a pull request, or of a comparison of two commits.
func Compared(p plan.Plan, c Comparison) Report {
	r := withPreview(p, c)
	var stays []string
	for _, d := range r.Preview.Leaves {
		stays = append(stays, d.Name)
	}
	for _, s := range r.Dropped() {
		stays = append(stays, s.ID.Name)
	}
	r.Preview.Memory = memory.Compare(c.Before, p.Want, stays)
	if c.Now != nil {
		r.Preview.Moved = Moved(c.Before, *c.Now)
	}
	r.finds(p.Rulings)
	r.ask()
	return r.Approve(inForce(c.Approvals, c.At)).On(nil)
}

// withPreview returns the report of a plan with a preview relative to its base.
func withPreview(p plan.Plan, c Comparison) Report {
	r := reportOf(p, nil, false)
	checked, known, unchecked := comparison(c.Before, p.Want)
	r = r.with(checked)
	preview := Preview{Base: c.Before.Revision, Live: c.Live, Opens: []Opening{}, Leaves: []Definition{}, Unchecked: unchecked}
	declared := map[string]Definition{}
	for _, d := range r.Definitions {
		declared[d.Name] = d
	}
	for _, of := range p.Rulings {
		switch d := declared[of.Of.Name]; of.Reason.Code {
		case reason.ActivatesNamed, reason.ActivatesUnnamed:
			preview.Opens = append(preview.Opens, Opening{Definition: d, Already: c.Present[d.Name]})
		case reason.StaysUnnamed:
			preview.Leaves = append(preview.Leaves, d)
		}
	}
	preview.SafeStart = safeStarts(c.Before.Packages, p.Want.Packages)
	r.Outage = cmp.Or(outage(c.Before.Unread, p.Want.Unread), outageOfClaims(p.Want.Claims(c.Before)))
	preview.Unsigned, preview.Unconfirmed = r.ruledOn(reason.DropsSignature), r.ruledOn(reason.SchemasUnconfirmed)
	preview.Uncontrolled = r.ruledOn(reason.ControlledByAnother)
	preview.Copies = copies(c.Before.Packages, p.Want.Packages)
	had := slices.Concat(plan.Plan{Want: c.Before}.Findings(), known)
	r.Findings, r.Known = divide(had, r.Findings)
	added, _ := divide(had, slices.Concat(p.Findings(), checked.Findings, p.NotesOf(plan.RulePackageLost)))
	preview.Warnings = ofSeverity(manifest.Warning, added)
	preview.Untouched = r.touches(preview)+ofSeverity(manifest.Error, added) == 0
	r.Preview = &preview
	return r
}

// MergedInto returns a comparison that names the branch of the merge. Call On afterwards.
func (r Report) MergedInto(branch string) Report {
	if r.Preview == nil || branch == "" {
		return r
	}
	named := *r.Preview
	named.Into = branch
	r.Preview, r.Judgement = &named, Judgement{}
	return r
}

// touches counts the changes of a merge.
func (r Report) touches(p Preview) int {
	s := r.Summary
	return s.Created + s.Updated + s.Pruned + s.Released + s.Deactivated + s.Held + s.Failed +
		len(r.Bumps) + len(r.Upgrades) + len(r.Inactive) + len(p.Opens) + len(p.Leaves) + len(p.SafeStart) + len(p.Copies) + p.Warnings + p.Unsigned + len(r.hidden()) + len(p.Unchecked)
}

// hidden returns the objects of the base that the new commit still contains, and that Headgate skips there.
func (r Report) hidden() []Step {
	codes := []reason.Code{reason.StillThere, reason.StillElsewhere, reason.MayStillBeThere}
	return slices.DeleteFunc(slices.Clone(r.Steps), func(s Step) bool { return s.Action != plan.Keep || !slices.Contains(codes, s.Code) })
}

// Unrepaired reports a head that cannot be rendered for the same reason as its base.
func Unrepaired(sync inventory.Sync, head, base string, why error) Report {
	r := Failed(sync, head, why)
	r.Preview = &Preview{Base: base, Untouched: true, Opens: []Opening{}, Leaves: []Definition{}}
	return r
}

// safeStarts returns the packages of a commit that gain or lose safe-start.
func safeStarts(before, after []catalogue.Package) []SafeStart {
	had := map[string]bool{}
	key := func(p catalogue.Package) string { return cmp.Or(p.Source, p.Name) }
	for _, p := range before {
		had[key(p)] = p.SafeStart
	}
	var all []SafeStart
	for _, p := range after {
		if had, known := had[key(p)]; known && had != p.SafeStart {
			all = append(all, SafeStart{key(p), p.SafeStart, p.Origin})
		}
	}
	return all
}

// found are the findings about rulings on a commit, without their messages and places.
var found = map[reason.Code]manifest.Finding{
	reason.ControlUnknown: {Rule: "crd-controlled-by-another-revision", Severity: manifest.Note},
	reason.ControlledByAnother: {
		Rule: "crd-controlled-by-another-revision", Severity: manifest.Warning,
		Fix: "before the merge, take the other revision out of metadata.ownerReferences of these objects, or delete that revision once nothing needs it",
	},
	reason.FirstForCrossplane: {Rule: "crd-owner-changes", Severity: manifest.Warning, Fix: "set crdOwner of the Sync"},
	reason.LastForCrossplane:  {Rule: "crd-owner-changes", Severity: manifest.Warning, Fix: "set crdOwner of the Sync"},
}

// becomes is who makes the CRDs in a new cluster after a merge that changes it.
var becomes = map[reason.Code]render.Owner{reason.FirstForCrossplane: render.OwnerCrossplane, reason.LastForCrossplane: render.OwnerHeadgate}

// finds adds the findings about rulings on the commit.
func (r *Report) finds(rulings []plan.Ruling) {
	for _, of := range rulings {
		f, is := found[of.Reason.Code]
		if !is {
			continue
		}
		f.Message, f.Origin = words.Of(of.Reason), of.At[0]
		r.Findings = append(r.Findings, f)
		r.Preview.Owner = cmp.Or(becomes[of.Reason.Code], r.Preview.Owner)
	}
}

// Awaiting returns the report with the reason why a required registry cannot be reached; "" if none is missing.
func (r Report) Awaiting(outage string) Report {
	r.Outage = outage
	return r
}

// outage returns why a registry cannot be reached that only one of two commits needs. A package that both commits
// need in the same version changes nothing.
func outage(before, after []catalogue.Unread) string {
	for _, side := range [][2][]catalogue.Unread{{after, before}, {before, after}} {
		for _, u := range side[0] {
			alike := slices.ContainsFunc(side[1], func(o catalogue.Unread) bool { return o.Source == u.Source && o.Wanted == u.Wanted })
			if u.Outage() && !alike {
				return u.Err.Error()
			}
		}
	}
	return ""
}

// outageOfClaims returns why the registry of a package cannot be reached whose content only the new commit keeps.
func outageOfClaims(all []render.Claim) string {
	for _, claim := range all {
		if claim.Package.Kept.Outage() {
			return claim.Package.Kept.Err.Error()
		}
	}
	return ""
}

// copies returns the packages in the tree whose release differs from before.
func copies(before, after []catalogue.Package) []Copy {
	was := map[string]string{}
	for _, p := range before {
		if !p.Pulled() {
			was[p.Directory] = p.Release
		}
	}
	var all []Copy
	for _, p := range after {
		if from, known := was[p.Directory]; known && !p.Pulled() && from != p.Release {
			all = append(all, Copy{p.Name, from, p.Release, p.Origin})
		}
	}
	return all
}

// PreviewStopped follows the word of the judgement in the description of a preview whose process was stopped. This
// status on the forge is the only record of that, and prevents another preview of the same head.
const PreviewStopped = "the preview was stopped: "

// WasStopped reports whether a status belongs to a preview whose process was stopped.
func (s Status) WasStopped() bool {
	message := strings.TrimPrefix(s.Description, Blocked.title()+": ")
	return s.State == Error && strings.HasPrefix(message, PreviewStopped)
}

// ruleBase reports a base that cannot be rendered.
const ruleBase = "base-broken"

// Repaired reports a commit that can be rendered although its base cannot. It is judged alone, by all findings in it. The merge of a
// repair must not be blocked.
func Repaired(sync inventory.Sync, head render.Desired, base string, why error, found []manifest.Finding, omitted check.Omissions) Report {
	r := blank(sync, head.Revision)
	r.Skipped, r.Findings, r.NotChecked = head.Skipped, slices.Clone(found), omitted
	r.declares(head, nil)
	r.Preview = &Preview{Base: base, Repairs: true, Opens: []Opening{}, Leaves: []Definition{}}
	r.Findings = append(r.Findings, manifest.Finding{
		Rule: ruleBase, Severity: manifest.Note, About: manifest.About{},
		Message: "the target cannot be rendered, so nothing was compared, and the new commit is judged alone: " + legible.Text(why.Error()),
	})
	return r.On(nil)
}

// Away reports a sync that does not run. The pull request is not to blame and may repair the Sync, so it is not blocked.
func Away(sync inventory.Sync, why string) Report {
	r := blank(sync, "")
	r.Preview = &Preview{Away: why, Opens: []Opening{}, Leaves: []Definition{}}
	return r.On(nil)
}

// unmade returns why there is no preview; "" if there is one.
func (r Report) unmade() string {
	if r.away() {
		return "the Sync does not run: " + r.Preview.Away
	}
	return firstLine(r.Error)
}

// Opens returns the names of the definitions that become active from one commit to another.
func Opens(before, after render.Desired) []string {
	var names []string
	was := map[string]bool{}
	for _, d := range before.Definitions {
		was[d.Name] = d.Active
	}
	for _, d := range after.Definitions {
		if d.Active && !was[d.Name] {
			names = append(names, d.Name)
		}
	}
	return names
}

// Moved describes the differences between two commits of a target branch that decide which definitions are active. It
// returns "" if there are none.
func Moved(before, now render.Desired) string {
	var parts []string
	if !slices.Equal(policies(before), policies(now)) {
		parts = append(parts, "policies")
	}
	if !slices.Equal(packages(before), packages(now)) {
		parts = append(parts, "packages")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the target changed %s since this branch left it (%.12s): merge the target in to see both together", strings.Join(parts, " and "), now.Revision)
}

func policies(of render.Desired) []string {
	var all []string
	for _, p := range of.Policies {
		parts := []string{fmt.Sprint(p.Name, " ", p.Paused)}
		for _, pattern := range p.Patterns {
			parts = append(parts, pattern.Glob)
		}
		all = append(all, strings.Join(parts, " "))
	}
	return all
}

func packages(of render.Desired) []string {
	var all []string
	for _, p := range of.Packages {
		all = append(all, fmt.Sprintf("%s %t", p.Name, p.SafeStart))
	}
	for _, d := range of.Definitions {
		all = append(all, d.Name)
	}
	return all
}

// Unread returns the packages whose changes are unknown.
func (r Report) Unread() []plan.Bump {
	return slices.DeleteFunc(slices.Clone(r.Bumps), func(b plan.Bump) bool { return !b.IsUnread() })
}

// Unseen returns the packages that could be read in the head but not in the base.
func (r Report) Unseen() []plan.Bump {
	return slices.DeleteFunc(slices.Clone(r.Bumps), func(b plan.Bump) bool { return !b.IsUnseen() })
}
