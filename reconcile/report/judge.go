package report

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render/crossplane"
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
	Text     string
}

// mostOfRuling is the maximum length of the text of a ruling in a headline. It names what a commit may call as it likes.
const mostOfRuling = 150

func ruledBy(rulings []plan.Ruling) []ruled {
	var all []ruled
	for _, r := range rulings {
		if !r.Reason.None() {
			all = append(all, ruled{r.Guard, r.Reason.Code, r.Severity, max(1, r.Amount.Count()), clip(words.Of(r.Reason), mostOfRuling)})
		}
	}
	return all
}

// A row words what a judgement counts. A row that names describes the first of its rulings, and counts the others with a noun.
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
	names bool // one and many are the nouns of the other rulings
}

func ofCodes(all ...reason.Code) tallied { return tallied{codes: all} }

func ofNames(all ...reason.Code) tallied { return tallied{codes: all, names: true} }

func ofFact(count func(Report) int) tallied { return tallied{fact: count} }

func ofState(is func(Report) bool) tallied {
	return ofFact(func(r Report) int {
		if is(r) {
			return 1
		}
		return 0
	})
}

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
	{Blocked, "external-names", ofNames(reason.NameInCloudChanges), "object", "objects"},
	{Blocked, "composes-inactive", ofNames(reason.ComposesInactive), crossplane.KindComposition.Kind, "Compositions"},
	{Blocked, "blocks", ofCodes(unworded), "has 1 change that blocks it", "has %d changes that block it"},

	{Look, "approved", ofCodes(approvedByPerson), "", ""},
	{Look, "holds", ofCodes(heldBack), "holds 1 object back", "holds %d objects back"},
	{Look, "breaks", ofCodes(reason.MergeBreaks, reason.MergeStorage), "breaks 1 schema", "breaks %d schemas"},
	{Look, "unconverted", ofCodes(reason.MergeUnconverted), "leaves objects of 1 kind unconverted", "leaves objects of %d kinds unconverted"},
	{Look, "drops", ofCodes(reason.DropsKind), "drops 1 kind", "drops %d kinds"},
	{Look, "deletes-kinds", ofCodes(reason.DeletesKind), "deletes 1 kind whose use is not known", "deletes %d kinds whose use is not known"},
	{Look, "external-names", ofNames(reason.NameInCloudChanges), "object", "objects"},
	{Look, "repairs", ofState(Report.repairs), "repairs the target branch, which cannot be rendered", ""},
	{Look, "away", ofState(Report.away), "is not previewed, because the Sync does not run", ""},
	{Look, "owner", ofCodes(reason.FirstForCrossplane, reason.LastForCrossplane), "changes who makes the CRDs", ""},
	{Look, "base-unread", ofCodes(reason.MergeBaseUnread), "cannot read 1 package of the base", "cannot read %d packages of the base"},
	{Look, "grants", ofNames(reason.GrantsRole, reason.GrantsRules, reason.AddsRights), "grant", "grants"},
	{Look, "installs", ofNames(reason.OtherSource, reason.NewPackage, reason.UntrustedVersion), "package", "packages"},
	{Look, "composes", ofNames(reason.ComposesInstead, reason.ComposesNoMore, reason.ComposesToo, reason.DeletesComposition, reason.ChangesComposition, reason.AddsComposition), crossplane.KindComposition.Kind, "Compositions"},
	{Look, "breaks-unused", ofNames(reason.MergeBreaksUnused), "schema", "schemas"},
	{Look, "breaks-no-object", ofNames(reason.MergeBreaksNoObject), "schema", "schemas"},
	{Look, "breaks-status", ofNames(reason.MergeBreaksStatus), "status", "statuses"},
	{Look, "drops-unused", ofNames(reason.DropsUnusedKind), "kind", "kinds"},
	{Look, "deletes", ofNames(reason.DeletesObject), "object", "objects"},
	{Look, "takes-back", ofNames(reason.DeactivatesKind), "definition", "definitions"},
	{Look, "activates-by-wildcard", ofNames(reason.ActivatesUnnamed), "definition", "definitions"},
	{Look, "wildcards", ofNames(reason.AddsWildcard), "pattern", "patterns"},
	{Look, "keys", ofNames(reason.ChangesAsking, reason.ChangesKey, reason.HasKey), "object", "objects"},
	{Look, "skips", ofNames(reason.SkipsFromNow, reason.SkipsObject), "object", "objects"},
	{Look, "defaults", ofNames(reason.MergeDefault), "kind", "kinds"},
	{Look, "patterns", ofNames(reason.MergePattern), "kind", "kinds"},
	{Look, "merges", ofNames(reason.MergeSharing), "kind", "kinds"},
	{Look, "deprecates", ofNames(reason.MergeDeprecates), "kind", "kinds"},
	{Look, "moves-storage", ofNames(reason.MergeMovesStorage), "kind", "kinds"},
	{Look, "unsigned", ofCodes(reason.DropsSignature), "stops demanding 1 signature of packages", "stops demanding %d signatures of packages"},
	{Look, "uncontrolled", ofCodes(reason.ControlledByAnother), "upgrades a package with 1 object that an old revision controls", "upgrades packages with %d objects that old revisions control"},
	{Look, "unconfirmed", ofCodes(reason.SchemasUnconfirmed), "keeps the schemas of 1 definition, which no registry confirms", "keeps the schemas of %d definitions, which no registry confirms"},
	{Look, "hides", ofFact(Report.hides), "hides 1 object from Headgate, which stays in the files", "hides %d objects from Headgate, which stay in the files"},
	{Look, "unchecked", ofFact(Report.unchecked), "no longer checks objects of 1 kind", "no longer checks objects of %d kinds"},
	{Look, "old-errors", ofFact(Report.oldErrors), "", ""},
	{Look, "warnings", ofFact(Report.newWarnings), "adds 1 warning", "adds %d warnings"},
	{Look, "retains", ofNames(reason.StaysUnnamed), "definition", "definitions"},
	{Look, "unjudged", ofNames(reason.NotJudged), "object", "objects"},
	{Look, "adds", ofNames(reason.AddsRunner, reason.AddsObject), "object", "objects"},
	{Look, "looks", ofCodes(unworded), "has 1 change to look at", "has %d changes to look at"},

	{Safe, "installs", ofNames(reason.TrustedVersion), "package", "packages"},
	{Safe, "activates", ofNames(reason.ActivatesNamed), "definition", "definitions"},
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
		if n, first := of.count(r, sums); n > 0 && (len(all) == 0 || !of.of.alone) {
			all = append(all, Ground{of.word, of.cause, n, of.text(r, n, first)})
		}
	}
	if len(all) == 0 {
		return Judgement{Word: Safe}
	}
	return Judgement{all[0].Word, all}
}

func (of row) text(r Report, n int, first string) string {
	switch {
	case of.cause == "hides" && n == 1:
		return fmt.Sprintf("hides %s from Headgate, which stays in the files", r.hidden()[0].ID.Brief())
	case of.cause == "old-errors":
		return fmt.Sprintf("%s has %s", r.target(), manifest.Count(n, "error"))
	case of.of.names && n == 1:
		return first
	case of.of.names:
		return first + " and " + moreOf(n-1, "more "+of.one, "more "+of.many)
	case of.one == "":
		return "approved " + r.approvers()
	case n == 1 || of.many == "":
		return of.one
	}
	return fmt.Sprintf(of.many, n)
}

// count returns how much a row counts, and describes the first of it.
func (of row) count(r Report, all sums) (n int, first string) {
	if of.of.fact != nil {
		return of.of.fact(r), ""
	}
	for _, code := range of.of.codes {
		one := all[weighed{of.word, code}]
		n, first = n+one.count, cmp.Or(first, one.first)
	}
	return n, first
}

// sums counts rulings by their codes, and by the words that they require.
type sums map[weighed]sum

// A sum is a number of rulings with the text of the first one.
type sum struct {
	count int
	first string
}

func (all sums) add(of weighed, n int, text string) {
	s := all[of]
	all[of] = sum{s.count + n, cmp.Or(s.first, text)}
}

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
		all.change(s)
	}
	return all
}

// count adds a ruling that requires a word.
func (all sums) count(word Word, of ruled) {
	if word != Safe && !worded[weighed{word, of.Code}] {
		of.Code = unworded
	}
	all.add(weighed{word, of.Code}, of.Count, of.Text)
}

// change adds the rulings on a change.
func (all sums) change(s Step) {
	for _, of := range s.rulings {
		word := wordOf[of.Severity]
		if word == Blocked && s.passes() {
			word = Look
			all.add(weighed{Look, approvedByPerson}, 1, "")
		}
		all.count(word, of)
	}
	switch word, code := s.hold(); {
	case code != "":
		all.add(weighed{word, code}, 1, "")
		if word == Look {
			all.add(weighed{Look, approvedByPerson}, 1, "")
		}
	case s.Approved && s.Action != plan.Hold:
		all.add(weighed{Look, approvedByPerson}, 1, "")
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

// hides counts the objects that the merge hides, unless a guard names the documents that are skipped from now on.
func (r Report) hides() int {
	if r.Preview == nil || r.ruledOn(reason.SkipsFromNow) > 0 {
		return 0
	}
	return len(r.hidden())
}

func (r Report) unchecked() int {
	if r.Preview == nil {
		return 0
	}
	return len(r.Preview.Unchecked)
}

// target names the branch that the head would be merged into.
func (r Report) target() string {
	if r.Preview == nil {
		return "the target"
	}
	return cmp.Or(r.Preview.Into, "the target")
}

// repairs reports whether the target cannot be rendered.
func (r Report) repairs() bool { return r.Preview != nil && r.Preview.Repairs }

// away reports whether the sync does not run.
func (r Report) away() bool { return r.Preview != nil && r.Preview.Away != "" }

// blind reports whether nothing was compared.
func (r Report) blind() bool { return r.repairs() || r.away() }

func (r Report) newWarnings() int {
	if r.Preview == nil {
		return 0
	}
	return r.Preview.Warnings
}
