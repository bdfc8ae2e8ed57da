package report

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// A Word is the judgement on a comparison: whether to merge it.
type Word string

// The words, from best to worst.
const (
	Safe    Word = "safe"
	Look    Word = "look"
	Blocked Word = "blocked"
)

var looksOf = map[Word]string{Safe: "✅ Safe", Look: "👀 Look", Blocked: "⛔ Blocked"}

// wordOf is the word of a ruling.
var wordOf = map[plan.Severity]Word{plan.Note: Safe, plan.Look: Look, plan.Block: Blocked}

// title returns the word with a capital letter.
func (w Word) title() string { return capital(string(w)) }

// A Judgement is the word for a comparison with its reasons.
type Judgement struct {
	Word    Word     `json:"word"`
	Because []Ground `json:"because,omitempty"` // the worst first
}

// A Ground is one reason for a judgement: the number of similar things, and the word that each of them requires.
type Ground struct {
	Word  Word   `json:"word"`
	Cause string `json:"cause"`
	Count int    `json:"count"`
	Text  string `json:"text"`
}

// A ruled is a ruling of a guard, as far as the judgement needs it.
type ruled struct {
	Guard    plan.GuardName
	Code     reason.Code
	Severity plan.Severity
	Count    int
}

func ruledBy(rulings []plan.Ruling) []ruled {
	var all []ruled
	for _, r := range rulings {
		if !r.Reason.None() {
			all = append(all, ruled{r.Guard, r.Reason.Code, r.Severity, max(1, r.Amount.Count())})
		}
	}
	return all
}

// A row words what a judgement counts.
type row struct {
	word      Word
	cause     string
	of        tallied
	one, many string
}

// A tallied is what a row counts: rulings by their codes, or a fact about the report.
type tallied struct {
	codes []reason.Code
	fact  func(Report) int
	alone bool // it counts only if nothing else does
}

func ofCodes(all ...reason.Code) tallied { return tallied{codes: all} }

func ofFact(count func(Report) int) tallied { return tallied{fact: count} }

// judgements are the grounds in their order, the worst first. What a person approved is counted in the rows of the word Look.
var judgements = []row{
	{Blocked, "failed", ofFact(func(r Report) int { return r.Summary.Failed }), "fails on 1 object", "fails on %d objects"},
	{Blocked, "unread", ofCodes(reason.MergeUnread), "cannot read 1 package", "cannot read %d packages"},
	{Blocked, "errors", ofFact(func(r Report) int { return len(r.errors()) }), "has 1 error", "has %d errors"},
	{Blocked, "package-lost", ofCodes(reason.DefinitionLost, reason.DirectoryNotPackage), "loses a package, and 1 object depends on it", "loses a package, and %d objects depend on it"},
	{Blocked, "holds", ofCodes(heldForGood), "holds 1 object back, which cannot be approved", "holds %d objects back, which cannot be approved"},
	{Blocked, "holds", ofCodes(heldBack), "holds 1 object back", "holds %d objects back"},
	{Blocked, "breaks", ofCodes(reason.MergeBreaks, reason.MergeStorage), "breaks 1 schema", "breaks %d schemas"},
	{Blocked, "unconverted", ofCodes(reason.MergeUnconverted), "leaves objects of 1 kind unconverted", "leaves objects of %d kinds unconverted"},
	{Blocked, "drops", ofCodes(reason.DropsKind), "drops 1 kind", "drops %d kinds"},
	{Blocked, "deletes-kinds", ofCodes(reason.DeletesKind), "deletes 1 kind whose use is not known", "deletes %d kinds whose use is not known"},
	{Blocked, "blocks", ofCodes(unworded), "has 1 change that blocks it", "has %d changes that block it"},

	{Look, "approved", ofCodes(approvedByPerson), "", ""},
	{Look, "holds", ofCodes(heldBack), "holds 1 object back", "holds %d objects back"},
	{Look, "breaks", ofCodes(reason.MergeBreaks, reason.MergeStorage), "breaks 1 schema", "breaks %d schemas"},
	{Look, "unconverted", ofCodes(reason.MergeUnconverted), "leaves objects of 1 kind unconverted", "leaves objects of %d kinds unconverted"},
	{Look, "drops", ofCodes(reason.DropsKind), "drops 1 kind", "drops %d kinds"},
	{Look, "deletes-kinds", ofCodes(reason.DeletesKind), "deletes 1 kind whose use is not known", "deletes %d kinds whose use is not known"},
	{Look, "repairs", ofFact(Report.repairs), "repairs the target branch, which cannot be rendered", ""},
	{Look, "owner", ofCodes(reason.FirstForCrossplane, reason.LastForCrossplane), "changes who makes the CRDs", ""},
	{Look, "base-unread", ofCodes(reason.MergeBaseUnread), "cannot read 1 package of the base", "cannot read %d packages of the base"},
	{Look, "breaks-unused", ofCodes(reason.MergeBreaksUnused), "breaks 1 schema that nothing uses", "breaks %d schemas that nothing uses"},
	{Look, "breaks-no-object", ofCodes(reason.MergeBreaksNoObject), "breaks 1 schema, and all its objects fit", "breaks %d schemas, and all their objects fit"},
	{Look, "breaks-status", ofCodes(reason.MergeBreaksStatus), "breaks 1 status that nothing here reads", "breaks %d statuses that nothing here reads"},
	{Look, "drops-unused", ofCodes(reason.DropsUnusedKind), "drops 1 kind that nothing uses", "drops %d kinds that nothing uses"},
	{Look, "deletes", ofCodes(reason.DeletesObject), "deletes 1 object", "deletes %d objects"},
	{Look, "takes-back", ofCodes(reason.DeactivatesKind), "deactivates 1 definition", "deactivates %d definitions"},
	{Look, "activates-by-wildcard", ofCodes(reason.ActivatesUnnamed), "activates 1 definition that no policy names in full", "activates %d definitions that no policy names in full"},
	{Look, "defaults", ofCodes(reason.MergeDefault), "changes the defaults of 1 kind", "changes the defaults of %d kinds"},
	{Look, "patterns", ofCodes(reason.MergePattern), "changes a pattern of 1 kind, which may refuse more", "changes patterns of %d kinds, which may refuse more"},
	{Look, "merges", ofCodes(reason.MergeSharing), "changes how lists or maps of 1 kind merge", "changes how lists or maps of %d kinds merge"},
	{Look, "deprecates", ofCodes(reason.MergeDeprecates), "deprecates a version of 1 kind", "deprecates versions of %d kinds"},
	{Look, "moves-storage", ofCodes(reason.MergeMovesStorage), "stores 1 kind in another version", "stores %d kinds in other versions"},
	{Look, "unsigned", ofCodes(reason.DropsSignature), "stops demanding 1 signature of packages", "stops demanding %d signatures of packages"},
	{Look, "uncontrolled", ofCodes(reason.ControlledByAnother), "upgrades a package with 1 object that an old revision controls", "upgrades packages with %d objects that old revisions control"},
	{Look, "unconfirmed", ofCodes(reason.SchemasUnconfirmed), "keeps the schemas of 1 definition, which no registry confirms", "keeps the schemas of %d definitions, which no registry confirms"},
	{Look, "old-errors", ofFact(Report.oldErrors), "", ""},
	{Look, "warnings", ofFact(Report.newWarnings), "adds 1 warning", "adds %d warnings"},
	{Look, "retains", ofCodes(reason.StaysUnnamed), "keeps 1 definition active that no policy names any more", "keeps %d definitions active that no policy names any more"},
	{Look, "unjudged", ofCodes(reason.NotJudged), "changes 1 object that Headgate does not judge", "changes %d objects that Headgate does not judge"},
	{Look, "looks", ofCodes(unworded), "has 1 change to look at", "has %d changes to look at"},

	{Safe, "activates", ofCodes(reason.ActivatesNamed), "activates 1 definition", "activates %d definitions"},
	{Safe, "changes", tallied{fact: func(r Report) int { return r.Summary.Created + r.Summary.Updated }, alone: true}, "changes 1 object", "changes %d objects"},
	{Safe, "inactive-breaks", ofCodes(reason.InactiveBreaks), "1 inactive one breaks", "%d inactive ones break"},
}

// What the judgement counts of holds and approvals, beside the codes of rulings.
const (
	heldForGood      reason.Code = "held for good"
	heldBack         reason.Code = "held back"
	approvedByPerson reason.Code = "approved"

	unworded reason.Code = "unworded" // a ruling for which no row has words, so that it is not lost
)

// worded are the rulings that have a row.
var worded = func() map[weighed]bool {
	all := map[weighed]bool{}
	for _, of := range judgements {
		for _, code := range of.of.codes {
			all[weighed{of.word, code}] = true
		}
	}
	return all
}()

// Judge returns the judgement on a comparison: a fold over its rulings and findings. The word is that of the worst ground, or Safe
// without grounds.
func Judge(r Report) Judgement {
	if r.Error != "" {
		return Judgement{Blocked, []Ground{{Blocked, "error", 1, firstLine(r.Error)}}}
	}
	var all []Ground
	sums := r.sums()
	for _, of := range judgements {
		if n := of.count(r, sums); n > 0 && (len(all) == 0 || !of.of.alone) {
			all = append(all, Ground{of.word, of.cause, n, of.text(r, n)})
		}
	}
	if len(all) == 0 {
		return Judgement{Word: Safe}
	}
	return Judgement{all[0].Word, all}
}

func (of row) text(r Report, n int) string {
	switch {
	case of.cause == "old-errors":
		return fmt.Sprintf("%s has %s", r.target(), manifest.Count(n, "error"))
	case of.one == "":
		return "approved " + r.approvers()
	case n == 1 || of.many == "":
		return of.one
	}
	return fmt.Sprintf(of.many, n)
}

func (of row) count(r Report, s sums) int {
	if of.of.fact != nil {
		return of.of.fact(r)
	}
	n := 0
	for _, code := range of.of.codes {
		n += s[weighed{of.word, code}]
	}
	return n
}

// sums counts rulings by their codes, and by the words that they require.
type sums map[weighed]int

type weighed struct {
	word Word
	code reason.Code
}

// sums counts the rulings on the commit and on each change. What a person approved does not block.
func (r Report) sums() sums {
	all := sums{}
	for _, of := range r.rulings {
		all.count(wordOf[of.Severity], of)
	}
	for _, s := range slices.Concat(r.Steps, r.Upgrades, r.Inactive) {
		all.add(s)
	}
	return all
}

// count adds a ruling that requires a word.
func (all sums) count(word Word, of ruled) {
	if word != Safe && !worded[weighed{word, of.Code}] {
		of.Code = unworded
	}
	all[weighed{word, of.Code}] += of.Count
}

// add adds the rulings on a change.
func (all sums) add(s Step) {
	for _, of := range s.rulings {
		word := wordOf[of.Severity]
		if word == Blocked && s.passes() {
			word = Look
			all[weighed{Look, approvedByPerson}]++
		}
		all.count(word, of)
	}
	switch word, code := s.hold(); {
	case code != "":
		all[weighed{word, code}]++
		if word == Look {
			all[weighed{Look, approvedByPerson}]++
		}
	case s.Approved && s.Action != plan.Hold:
		all[weighed{Look, approvedByPerson}]++
	}
}

// hold returns how a hold counts; no code if the step is not held.
func (s Step) hold() (Word, reason.Code) {
	switch {
	case s.Action != plan.Hold, s.Error != "", s.Code == reason.StillWaits:
		return "", ""
	case s.excused:
		return Look, heldBack
	case slices.ContainsFunc(judgements, func(of row) bool { return slices.Contains(of.of.codes, s.Code) }):
		return Blocked, s.Code
	case !s.approvable:
		return Blocked, heldForGood
	}
	return Blocked, heldBack
}

// blocks reports whether a guard of the phase Merge blocks the change.
func (s Step) blocks() bool {
	return slices.ContainsFunc(s.rulings, func(of ruled) bool { return of.Severity == plan.Block })
}

// gives reports whether a ruling on the step has one of these codes.
func (s Step) gives(codes ...reason.Code) bool {
	return slices.ContainsFunc(s.rulings, func(of ruled) bool { return slices.Contains(codes, of.Code) })
}

// ruledOn sums the counts of the rulings on the commit with one of these codes.
func (r Report) ruledOn(codes ...reason.Code) int {
	n := 0
	for _, of := range r.rulings {
		if slices.Contains(codes, of.Code) {
			n += of.Count
		}
	}
	return n
}

// errors returns the findings that are errors.
func (r Report) errors() []manifest.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f manifest.Finding) bool { return f.Severity != manifest.Error })
}

// oldErrors counts the errors that the target has already. They are no reason to look at a merge that changes nothing.
func (r Report) oldErrors() int {
	if !r.touched() {
		return 0
	}
	return ofSeverity(manifest.Error, r.Known)
}

// target names the branch that the head would be merged into.
func (r Report) target() string {
	if r.Preview == nil {
		return "the target"
	}
	return cmp.Or(r.Preview.Into, "the target")
}

// repairs returns 1 if the target cannot be rendered.
func (r Report) repairs() int {
	if r.Preview != nil && r.Preview.Repairs {
		return 1
	}
	return 0
}

func (r Report) newWarnings() int {
	if r.Preview == nil {
		return 0
	}
	return r.Preview.Warnings
}
