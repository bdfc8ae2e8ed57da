// Package report describes the result of a pass: one verdict, with the same words for a terminal, a comment, a status
// and a program. It is pure: equal plans and outcomes give equal reports.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion is the version of all JSON that Headgate prints.
const APIVersion = "headgate.dev/v1alpha1"

// A Report is the result of a pass. Its JSON is an interface for programs: fields are only added, never renamed.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Sync     inventory.Sync `json:"sync"`
	Revision string         `json:"revision,omitempty"`
	Applied  bool           `json:"applied"`          // the plan was carried out; otherwise the report is a forecast
	Looked   bool           `json:"looked,omitempty"` // another tool applies: the report compares the cluster with the commit

	Verdict Verdict `json:"verdict"`
	Summary Summary `json:"summary"`

	Judgement Judgement `json:"judgement,omitzero"` // set for a comparison

	Approval    *plan.Approval     `json:"approval,omitempty"`  // the approval that lets the held steps pass
	Approvals   []Approved         `json:"approvals,omitempty"` // approvals that Headgate used for this commit
	Steps       []Step             `json:"steps"`               // without unremarkable keeps
	Bumps       []plan.Bump        `json:"bumps,omitempty"`     // packages in registries whose image differs from before
	Upgrades    []Step             `json:"upgrades,omitempty"`  // what Crossplane changes for Bumps; kept ones are not in the new version
	Inactive    []Step             `json:"inactive,omitempty"`  // for a comparison: other inactive definitions that break or leave
	Restarts    []plan.Restart     `json:"restarts,omitempty"`  // restarts of providers after the deactivation of their CRDs
	Checks      []Check            `json:"checks"`              // checks that do not hold
	Definitions []Definition       `json:"definitions"`
	Findings    []manifest.Finding `json:"findings"`           // in a comparison: those that the base does not have
	Known       []manifest.Finding `json:"known,omitempty"`    // in a comparison: findings that the base has, too
	Fights      []facts.Fight      `json:"fights,omitempty"`   // fights that continue
	Packages    []Package          `json:"packages,omitempty"` // images of packages in registries
	Skipped     catalogue.Skipped  `json:"skipped,omitempty"`
	NotChecked  check.Omissions    `json:"notChecked,omitempty"` // objects that the report changes and that could not be checked without a cluster
	Preview     *Preview           `json:"preview,omitempty"`    // for a pull request
	Suspended   string             `json:"suspended,omitempty"`  // for a suspended sync: why, and until when, nothing is written
	Error       string             `json:"error,omitempty"`      // for a pass that stopped
	Outage      string             `json:"outage,omitempty"`     // for a preview: why a required registry does not respond
	ErrorCode   reason.Code        `json:"errorCode,omitempty"`

	SupersededBy string `json:"-"` // the commit that replaced this one before it was applied

	rulings []ruled // in a comparison: on the commit as a whole

	Undone inventory.Undone `json:"undone,omitempty"` // the creates and updates that the pass did not do, and since when
}

// A Summary counts.
type Summary struct {
	Created     int `json:"created"` // Each count is a forecast unless Applied is set.
	Updated     int `json:"updated"`
	Pruned      int `json:"pruned"`
	Deleting    int `json:"deleting,omitempty"`       // prunes that are not over, because a deletion waits for something
	Begun       int `json:"deletionsBegun,omitempty"` // of Deleting: deletions that this pass requested
	Released    int `json:"released,omitempty"`       // objects that a destroyed sync leaves without an owner
	Deactivated int `json:"takenBack"`                // definitions; after the deactivation, those whose CRD is gone
	Held        int `json:"held"`
	Failed      int `json:"failed"`
	NotReady    int `json:"notReady"`
	NotReached  int `json:"notReached"` // steps left when the pass stopped
	Waiting     int `json:"waiting"`    // effects of Crossplane that are still pending
	Unchanged   int `json:"unchanged"`
	Retained    int `json:"retained"`
	Drifted     int `json:"drifted"`
	Reported    int `json:"reported"`  // drifted objects that Headgate does not correct
	Corrected   int `json:"corrected"` // corrected drift; in a loop, the sum of all passes over this commit
	Pending     int `json:"pending"`   // checks that are pending
	Broken      int `json:"broken"`    // checks that are broken

	Active      int `json:"active"`            // active definitions
	Inactive    int `json:"inactive"`          // inactive definitions
	Activated   int `json:"activated"`         // definitions whose CRD this pass creates; in a loop, the sum of all passes over this commit
	Definitions int `json:"definitions"`       // all definitions
	Unknown     int `json:"unknown,omitempty"` // packages that could not be read: their definitions are in none of these counts
}

// A Definition is the decision on one definition.
type Definition struct {
	Name     string                 `json:"name"`
	Active   bool                   `json:"active"`
	Retained bool                   `json:"retained,omitempty"` // active although nothing in the commit activates it any more
	Paused   bool                   `json:"paused,omitempty"`
	Because  []activation.Activator `json:"because,omitempty"`
	Origin   manifest.Origin        `json:"origin"`
	Package  string                 `json:"package,omitempty"` // the package that contains it
}

// A Package is the image that Headgate used for a package in the commit.
type Package struct {
	Source  string          `json:"source"`
	Version string          `json:"version"`
	Digest  string          `json:"digest"`
	Origin  manifest.Origin `json:"origin"` // the place that mentions the package
}

// A Step is one step of the plan with its outcome.
type Step struct {
	Action      plan.Action            `json:"action"`
	Would       plan.Action            `json:"would,omitempty"`
	Cause       plan.Cause             `json:"cause"`
	Guard       plan.GuardName         `json:"guard,omitempty"`
	Reason      string                 `json:"reason,omitempty"`
	Code        reason.Code            `json:"code,omitempty"`        // the code of the reason
	Since       *metav1.Time           `json:"since,omitempty"`       // when it was first held, if it was held before
	SinceCommit string                 `json:"sinceCommit,omitempty"` // the commit of the pass that first held it
	Approved    bool                   `json:"approved,omitempty"`    // approved although a guard held it
	Digest      string                 `json:"digest,omitempty"`      // approves this step alone, if it is held or blocks a comparison
	Digests     []string               `json:"digests,omitempty"`     // what Digest covers, if a person is asked several things about the step
	UpTo        int                    `json:"upTo,omitempty"`        // what the approval of the step has to cover: definitions that become active, custom resources that break
	Deactivates bool                   `json:"takesBack,omitempty"`   // part of the deactivation of a definition
	ID          manifest.ID            `json:"id"`
	APIVersion  string                 `json:"apiVersion"`
	Origin      *manifest.Origin       `json:"origin,omitempty"`
	Because     []activation.Activator `json:"because,omitempty"`
	Changes     []diff.Change          `json:"changes,omitempty"`
	Breaks      []plan.SchemaChange    `json:"breaks,omitempty"` // for a CRD or MRD: breaking changes
	Added       int                    `json:"added,omitempty"`  // for a CRD or MRD: the number of optional new fields and versions
	Words       bool                   `json:"words,omitempty"`  // for a CRD or MRD: only descriptions change

	ConversionAdded bool              `json:"conversionAdded,omitempty"` // for a CRD or MRD: adds a conversion webhook
	TakesFrom       []string          `json:"takesFrom,omitempty"`       // the field managers that lose fields to Headgate
	Waits           string            `json:"waits,omitempty"`
	WaitCodes       []reason.Code     `json:"waitCodes,omitempty"` // the codes of Waits
	Package         string            `json:"package,omitempty"`   // for an upgrade: the new version of the package
	UsedAt          []manifest.Origin `json:"usedAt,omitempty"`    // for a kind that breaks or disappears: its uses in the commit
	Deleting        bool              `json:"deleting,omitempty"`  // for a prune: it waits for a deletion that has begun
	NotReady        string            `json:"notReady,omitempty"`
	NotReadyCode    reason.Code       `json:"notReadyCode,omitempty"` // the code of NotReady
	NotReached      bool              `json:"notReached,omitempty"`   // the pass stopped before this step
	Error           string            `json:"error,omitempty"`
	ErrorCode       reason.Code       `json:"errorCode,omitempty"` // the code of an error that Headgate itself produced
	Undone          string            `json:"undone,omitempty"`    // for a prune that waits: the oldest create or update that is not done

	definition bool
	active     bool // its kind is served
	closes     bool // it ends the deactivation of a definition

	restated bool // its error has the words of its reason
	placed   bool // its error begins with its place

	rulings []ruled             // in a comparison: of the guards that rule for the person who decides about the merge
	alters  []plan.SchemaChange // for an object that declares a kind: changes that break nothing

	key        string         // for a hold: its key in the inventory
	approvable bool           // for a hold: the digest of the Approval covers it
	claims     []approval.Ask // what a person is asked about it, here or in a cluster
	excused    bool           // a person approved it after the plan was made
	before     string         // for a hold from an earlier commit: when it began, and with which commit
}

// A Check is an effect that is missing: something that Crossplane, or another tool that applies the commit, has not done.
type Check struct {
	ID      manifest.ID      `json:"id"`
	State   plan.EffectState `json:"state"`
	Reason  string           `json:"reason,omitempty"`
	Code    reason.Code      `json:"code,omitempty"`  // the code of the reason
	Would   plan.Action      `json:"would,omitempty"` // for an object that is not applied: the action of applying it
	By      string           `json:"by,omitempty"`    // for an object that is not applied: the tool that applies it, if known
	Changes []diff.Change    `json:"changes,omitempty"`
}

// notRemoved returns the finding about leftovers on an object that cannot be removed.
func notRemoved(l plan.Leftover, at homes) manifest.Finding {
	return manifest.Finding{
		Rule: "fields-not-removed", Severity: manifest.Warning, Origin: l.Origin, About: manifest.About{Object: l.ID},
		Message: fmt.Sprintf("%s left %s behind on %s, which cannot be removed: %s", strings.Join(l.Managers, ", "), manifest.Count(l.Fields, "field"), at(l.ID), words.Of(at.reason(l.Reason))),
	}
}

// checkOf reports a missing effect.
func checkOf(e plan.Effect, at homes) Check {
	return Check{ID: at(e.On), State: e.State, Reason: words.Of(at.reason(e.Reason)), Code: e.Reason.Code, Would: e.Would(), By: e.By, Changes: e.Changes()}
}

// isUnapplied reports whether a check concerns an object that another tool should apply.
func (c Check) isUnapplied() bool { return c.Would != "" }

// New reports a plan. done holds the outcomes of its writes, or nil if the plan was not carried out.
func New(p plan.Plan, done []plan.Outcome, applied bool) Report {
	r := reportOf(p, done, applied)
	return r.with(r.refusals(p.Want))
}

// with adds what a check finds to a report.
func (r Report) with(of check.Report) Report {
	r.Findings = append(r.Findings, of.Findings...)
	slices.SortStableFunc(r.Findings, manifest.Finding.Compare)
	r.NotChecked = of.Omitted
	r.Verdict = verdict(r)
	return r
}

// reportOf is New without a check of the objects.
func reportOf(p plan.Plan, done []plan.Outcome, applied bool) Report {
	r := blank(p.Sync, p.Want.Revision)
	r.Applied, r.Looked = applied, p.Stance == plan.Looking
	r.Skipped, r.Bumps, r.rulings = p.Want.Skipped, p.Bumps, ruledBy(p.Rulings)
	r.Approval, r.Approvals = p.Approval, ApprovedBy(p.Granted())
	at := homes(p.Homes())
	r.noted(p, at)
	outcomes := make(map[manifest.ID]plan.Outcome, len(done))
	for _, o := range done {
		outcomes[o.ID] = o
	}
	for _, s := range p.Steps {
		outcome, reached := outcomes[s.ID]
		r.step(p, at, s, outcome, reached)
	}
	if applied {
		r.Undone = inventory.Undone{}
		for _, u := range p.Undone(outcomes) {
			r.Undone[u.ID] = u.Since
		}
	}
	for _, e := range p.Effects {
		r.effect(e, p, at)
	}
	r.Summary.Activated += facts.Activates(p, applied)
	r.Summary.Retained += len(p.Retained)
	r.declares(p.Want, p.Retained)
	r.Verdict = verdict(r)
	return r
}

// noted adds the findings of a plan.
func (r *Report) noted(p plan.Plan, at homes) {
	r.Findings = append(r.Findings, p.Findings()...)
	slices.SortStableFunc(r.Findings, manifest.Finding.Compare)
	r.Findings = append(r.Findings, p.Notes...)
	for _, l := range p.Leftovers {
		r.Findings = append(r.Findings, notRemoved(l, at))
	}
	r.Restarts = p.Restarts()
	for _, restart := range r.Restarts {
		r.Findings = append(r.Findings, restart.Finding())
	}
}

// step adds a step and counts it. reached reports whether the step has an outcome.
func (r *Report) step(p plan.Plan, at homes, s plan.Step, outcome plan.Outcome, reached bool) {
	step := stepOf(at.step(s), at.outcome(outcome))
	step.held(s, p) // uses the identity of the commit, as the inventory does
	if s.Approved {
		step.claims = s.Claims()
	}
	due, finished := r.Applied && s.Writes(), reached && !outcome.More
	step.NotReached = due && !finished && step.Error == ""
	if r.Applied && step.Error == "" && !s.Waiting() {
		step.Waits, step.WaitCodes = "", nil // the wait is over
	}
	if step.Deleting && !outcome.Deleting.None() {
		r.Summary.Begun++
	}
	r.Summary.count(step, r.Applied && s.Waiting() && !s.Lingers())
	if r.deactivated(step) {
		r.Summary.Deactivated++
	}
	if due && s.Cause == plan.Drift && step.carriedOut() {
		r.Summary.Corrected++
	}
	if s.Action != plan.Keep || s.Guard != "" || step.NotReady != "" {
		r.Steps = append(r.Steps, step)
	}
}

// carriedOut reports whether nothing kept a pass from carrying out a step.
func (s Step) carriedOut() bool { return s.Error == "" && !s.NotReached }

// deactivated reports whether a step deactivates a definition. If a pass takes several steps, only the last one counts.
func (r Report) deactivated(s Step) bool {
	if !s.Deactivates || s.Action != plan.Prune {
		return false
	}
	return s.carriedOut() && (s.closes || !r.Applied)
}

// declares adds the definitions and packages of the commit.
func (r *Report) declares(want render.Desired, retained []string) {
	r.Summary.Definitions, r.Summary.Unknown = len(want.Definitions), want.Unknown()
	for _, d := range want.Definitions {
		_, retained := slices.BinarySearch(retained, d.Name)
		switch {
		case d.Active:
			r.Summary.Active++
		case !retained:
			r.Summary.Inactive++
		}
		one := Definition{Name: d.Name, Active: d.Active, Retained: retained, Paused: d.Paused, Because: d.Reasons, Origin: d.Origin()}
		if d.Package != nil {
			one.Package = d.Package.Name
		}
		r.Definitions = append(r.Definitions, one)
	}
	for _, one := range want.Packages {
		if one.Pulled() {
			r.Packages = append(r.Packages, Package{one.Source, one.Version, one.Digest, one.Mentioned})
		}
	}
}

// After adds earlier passes over the same commit to a report: definitions that became active with the commit, and
// drift that was corrected since. It also adds the fights with other writers.
func (r Report) After(earlier Summary, fights []facts.Fight) Report {
	r.Fights = fights
	r.Summary.Activated += earlier.Activated
	r.Summary.Corrected += earlier.Corrected
	r.Verdict = verdict(r)
	return r
}

// Failed reports a pass that could not compute or carry out its plan.
func Failed(sync inventory.Sync, revision string, err error) Report {
	r := blank(sync, revision)
	r.Stop(err)
	return r
}

// Seen reports a commit whose pass has not ended.
func Seen(sync inventory.Sync, revision string) Report {
	return saying(sync, revision, Status{Pending, "seen; the pass has not ended"})
}

// Superseded reports a commit that a newer one replaced before it was applied. It is an error, because the effects of
// the commit are not known.
func Superseded(sync inventory.Sync, revision, by string) Report {
	r := saying(sync, revision, Status{Error, fmt.Sprintf("superseded by %.12s before it was applied", by)})
	r.SupersededBy = by
	return r
}

func saying(sync inventory.Sync, revision string, status Status) Report {
	r := blank(sync, revision)
	r.Verdict = Verdict{Activation: status, Drift: status}
	return r
}

// blank returns an empty report. For programs, its lists are empty and not null.
func blank(sync inventory.Sync, revision string) Report {
	return Report{
		APIVersion:  APIVersion,
		Kind:        "Report",
		Sync:        sync,
		Revision:    revision,
		Steps:       []Step{},
		Checks:      []Check{},
		Definitions: []Definition{},
		Findings:    []manifest.Finding{},
	}
}

// effect adds an effect. In a comparison, objects that packages install become upgrades. Missing effects become checks.
func (r *Report) effect(e plan.Effect, p plan.Plan, at homes) {
	switch {
	case e.Kind == plan.Install && p.Stance.In(plan.OnCommit): // in a cluster, the step of the package lists the breaking changes
		step := stepOf(at.step(*e.Change), plan.Outcome{})
		step.Package, step.Because = e.Package, e.Because
		r.Upgrades = append(r.Upgrades, step)
	case e.Kind == plan.Redeclare:
		r.Inactive = append(r.Inactive, stepOf(at.step(*e.Change), plan.Outcome{}))
	case e.State == plan.Pending:
		r.Summary.Pending++
		r.Checks = append(r.Checks, checkOf(e, at))
	case e.State == plan.Broken:
		r.Summary.Broken++
		r.Checks = append(r.Checks, checkOf(e, at))
	}
}

func stepOf(s plan.Step, o plan.Outcome) Step {
	changes, why := s.Explained()
	begun := s.Deleting || !o.Deleting.None()
	step := Step{
		Action: s.Action, Would: s.Would, Cause: s.Cause, Guard: s.Guard, Reason: words.Of(why), Code: cmp.Or(s.Reason.Code, why.Code), Approved: s.Approved, Deactivates: s.Deactivates,
		ID: s.ID, APIVersion: s.APIVersion, Because: s.Because,
		Changes: changes, TakesFrom: s.TakesFrom(), WaitCodes: codesOf(s.Waits), NotReady: words.Of(o.NotReady), NotReadyCode: o.NotReady.Code,
		Deleting:   s.Lingers() || s.Action == plan.Prune && begun,
		definition: s.Definition,
		active:     s.Serves,
		closes:     s.ClosesKind(),
	}
	if !o.Deleting.None() {
		reason := reason.And(s.Reason, o.Deleting)
		step.Reason, step.Code = words.Of(reason), reason.Code
	}
	difference := s.Schema()
	step.Breaks, step.Added, step.Words = difference.Breaking(), len(difference.Added), difference.OnlyWords()
	for _, c := range difference.Changes {
		if !c.Breaking {
			step.alters = append(step.alters, c)
		}
	}
	if s.Live != nil && s.After != nil && crossplane.DeclaresKind(s.ID) {
		step.ConversionAdded = !facts.HasWebhook(s.Live) && facts.HasWebhook(s.After)
	}
	step.rulings = ruledBy(s.Rulings)
	for _, r := range s.Rulings {
		step.UsedAt = append(step.UsedAt, r.At...)
		step.claims = append(step.claims, r.Claims...)
	}
	if s.Action == plan.Hold {
		step.Undone = words.OfUndone(s.Reason)
	}
	step.Waits = words.Awaited(s)
	if s.Needs != "" && !s.Waiting() {
		crd := reason.AwaitsCRD.With(s.Needs)
		step.Waits, step.WaitCodes = words.Of(crd), []reason.Code{crd.Code}
	}
	if s.Origin != (manifest.Origin{}) {
		step.Origin = &s.Origin
	}
	if err := cmp.Or(o.Err, s.Err); err != nil {
		step.Error = words.OfError(err)
		if made, is := errors.AsType[reason.CodedError](err); is {
			step.ErrorCode = made.Code
			step.restated = made.Reason.Has(step.Code)
		}
		placed, is := errors.AsType[manifest.PlacedError](err)
		step.placed = is && placed.Origin.Path == s.Origin.Path
	}
	return step
}

// codesOf returns the codes of reasons.
func codesOf(all []reason.Reason) []reason.Code {
	var codes []reason.Code
	for _, r := range all {
		codes = append(codes, r.Code)
	}
	return codes
}

// held records when the hold of a step began, and with which commit.
func (s *Step) held(of plan.Step, p plan.Plan) {
	if of.Action != plan.Hold {
		return
	}
	s.key = of.HoldKey()
	s.claims = of.Claims()
	if s.approvable = p.Approval.Covers(of); s.approvable {
		s.digests()
	}
	if before, found := p.Held.Of(s.key); found {
		s.Since, s.SinceCommit = &before.Since, before.Commit
		if before.Commit != p.Want.Revision {
			s.before = fmt.Sprintf("held since %s, commit %.12s", before.Since.UTC().Format("2 Jan 2006"), before.Commit)
		}
	}
}

func (c *Summary) count(s Step, waiting bool) {
	switch {
	case s.NotReached:
		c.NotReached++
	case s.Error != "":
		c.Failed++
	case waiting:
		c.Waiting++
	case s.Deactivates && (s.Action == plan.Prune || s.Action == plan.Update): // counted as a deactivated definition
	case s.Deleting:
		c.Deleting++
	case s.Action == plan.Create:
		c.Created++
		if s.definition && s.ID.IsCRD() && s.Cause != plan.Drift {
			c.Activated++
		}
	case s.Action == plan.Update:
		c.Updated++
	case s.Action == plan.Prune:
		c.Pruned++
	case s.Action == plan.Release:
		c.Released++
	case s.Action == plan.Hold && s.Code == reason.StillWaits:
		c.Waiting++
	case s.Action == plan.Hold:
		c.Held++
	case s.stays():
		c.Reported++
	default:
		c.Unchanged++
	}
	if s.NotReady != "" {
		c.NotReady++
	}
	if s.Cause == plan.Drift && s.Error == "" {
		c.Drifted++
	}
	if slices.Contains(optedOut, s.Code) && s.Action == plan.Keep { // definitions are counted separately
		c.Retained++
	}
}

// optedOut are the codes of objects that Headgate keeps because a setting, or another sync of the process, asks for it.
var optedOut = []reason.Code{
	reason.PolicyKeeps, reason.AnnotationKeeps, reason.LabelKeeps, reason.AsksNotToCreate, reason.AnnotationAsksToLeave,
	reason.LabelAsksToLeave, reason.CommitAsksToLeave, reason.MovedAway, reason.TakenOverBySync,
}

// Uncorrected returns the number of drifted objects that are still as the other writer left them.
func (r Report) Uncorrected() int { return len(r.Drifted()) }

// Drifted returns the steps of drifted objects that are still as the other writer left them: those that Headgate only reports, holds, or
// could not correct.
func (r Report) Drifted() []Step {
	var all []Step
	for _, s := range r.Steps {
		written := s.Action != plan.Keep && s.Action != plan.Hold && s.carriedOut()
		if s.Cause == plan.Drift && !(r.Applied && written) {
			all = append(all, s)
		}
	}
	return all
}

// stays reports whether a step is drift that Headgate reports and does not correct.
func (s Step) stays() bool { return s.Action == plan.Keep && s.Cause == plan.Drift }

// Changes reports whether the pass changes anything, or would. It decides the exit code of diff.
func (r Report) Changes() bool {
	if r.blind() {
		return true
	}
	if r.Looked && (r.Summary.Drifted > 0 || slices.ContainsFunc(r.Checks, Check.isUnapplied)) {
		return true
	}
	return slices.ContainsFunc(r.Steps, func(s Step) bool {
		switch s.Action {
		case plan.Keep:
			return false
		case plan.Hold:
			return s.Would == plan.Prune
		}
		return !s.Deleting
	})
}

// Stop records that the pass stopped before its plan was carried out.
func (r *Report) Stop(err error) {
	r.Error, r.ErrorCode = legible.Text(err.Error()), ""
	if of, is := errors.AsType[interface {
		error
		Code() reason.Code
	}](err); is {
		r.ErrorCode = of.Code()
	}
	r.Verdict = verdict(*r)
}
