package report

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// situation is one row of the table: a comparison and the expected word.
type situation struct {
	reason string
	report Report
	word   Word
	cause  string // cause of the worst finding
}

func situations() map[string]situation {
	step := func(severity plan.Severity, code reason.Code) Report {
		s := Step{Action: plan.Update, ID: id("buckets.example.org"), active: true, rulings: []ruled{{"g", code, severity, 1, ""}}}
		return Report{Preview: &Preview{}, Summary: Summary{Updated: 1}, Steps: []Step{s}}
	}
	upgrade := func(severity plan.Severity, code reason.Code) Report {
		return Report{Preview: &Preview{}, Upgrades: []Step{{
			Action: plan.Keep, Package: "p", ID: id("buckets.example.org"), Origin: &manifest.Origin{}, rulings: []ruled{{"g", code, severity, 1, ""}},
		}}}
	}
	commit := func(severity plan.Severity, code reason.Code) Report {
		return Report{Preview: &Preview{}, rulings: []ruled{{"g", code, severity, 1, ""}}}
	}
	bump := func(unknown, from, to string) Report {
		b := plan.Bump{Source: "p", From: from, To: to, Unknown: unknown}
		r := commit(plan.Look, reason.MergeBaseUnread)
		if b.IsUnread() {
			r = commit(plan.Block, reason.MergeUnread)
		}
		r.Bumps = []plan.Bump{b}
		return r
	}

	return map[string]situation{
		"Nothing":         {"Without changes the verdict is safe, because the check may be required.", Report{Preview: &Preview{}}, Safe, ""},
		"Adds":            {"A new object changes no existing one.", Report{Summary: Summary{Created: 2}, Steps: []Step{{Action: plan.Create, ID: id("a")}}}, Safe, "changes"},
		"OnlyNoted":       {"A note asks for nothing.", step(plan.Note, reason.UnusedInCommit), Safe, "changes"},
		"InactiveDropped": {"A dropped version of an inactive definition affects no API.", upgrade(plan.Note, reason.InactiveBreaks), Safe, "inactive-breaks"},
		"NamedInFull":     {"An author wrote the full name of the definition.", commit(plan.Note, reason.ActivatesNamed), Safe, "activates"},
		"WarningNotNew":   {"The base has the same warning.", Report{Preview: &Preview{}, Findings: []manifest.Finding{{Severity: manifest.Warning}}}, Safe, ""},

		"Wildcard":       {"A wildcard activates definitions of later versions, too.", commit(plan.Look, reason.ActivatesUnnamed), Look, "activates-by-wildcard"},
		"Deprecated":     {"A deprecated version will be removed later.", step(plan.Look, reason.MergeDeprecates), Look, "deprecates"},
		"StorageMoves":   {"A webhook must convert every stored object.", step(plan.Look, reason.MergeMovesStorage), Look, "moves-storage"},
		"Pattern":        {"Objects may be refused.", step(plan.Look, reason.MergePattern), Look, "patterns"},
		"Default":        {"A changed default changes the behaviour of objects.", step(plan.Look, reason.MergeDefault), Look, "defaults"},
		"Merges":         {"Writers that share the list would overwrite each other.", step(plan.Look, reason.MergeSharing), Look, "merges"},
		"StatusUnused":   {"Controllers write the status again, and nothing in the commit reads it.", step(plan.Look, reason.MergeBreaksStatus), Look, "breaks-status"},
		"SpecFits":       {"A pass applies the change if no object loses a value or is refused.", step(plan.Look, reason.MergeBreaksNoObject), Look, "breaks-no-object"},
		"SpecUnused":     {"Neither the cluster nor the commit uses the field.", step(plan.Look, reason.MergeBreaksUnused), Look, "breaks-unused"},
		"DroppedUnused":  {"Neither the cluster nor the commit uses the kind.", upgrade(plan.Look, reason.DropsUnusedKind), Look, "drops-unused"},
		"BaseUnreadable": {"A change that repairs an unreadable package is not blocked.", bump("no such tag", "", "v2"), Look, "base-unread"},
		"Repairs":        {"A change that repairs an unrenderable target is not blocked.", Report{Preview: &Preview{Repairs: true}}, Look, "repairs"},
		"Deletes":        {"A deletion needs a look.", step(plan.Look, reason.DeletesObject), Look, "deletes"},
		"TakesBack":      {"A deactivation deletes the CRD.", step(plan.Look, reason.DeactivatesKind), Look, "takes-back"},
		"Retains":        {"The definition seems to be removed, but stays active.", commit(plan.Look, reason.StaysUnnamed), Look, "retains"},
		"Owner":          {"Another tool makes the CRDs in a new cluster.", commit(plan.Look, reason.FirstForCrossplane), Look, "owner"},
		"OtherObject":    {"Headgate cannot determine the effects of the change.", step(plan.Look, reason.NotJudged), Look, "unjudged"},
		"Uncontrolled":   {"Crossplane may not finish the upgrade.", commit(plan.Look, reason.ControlledByAnother), Look, "uncontrolled"},
		"Unsigned":       {"An image that nobody signed could replace the package.", commit(plan.Look, reason.DropsSignature), Look, "unsigned"},
		"NewWarning":     {"The change adds a warning.", Report{Preview: &Preview{Warnings: 1}}, Look, "warnings"},

		"Error":          {"Nothing would be applied.", Report{Error: "x.yaml:1: no"}, Blocked, "error"},
		"Fails":          {"The API server refuses an object.", Report{Summary: Summary{Failed: 1}}, Blocked, "failed"},
		"ErrorFinding":   {"A pass would fail on the finding.", Report{Findings: []manifest.Finding{{Severity: manifest.Error}}}, Blocked, "errors"},
		"Held":           {"A held object needs a decision by a user.", Report{Summary: Summary{Held: 1}, Steps: []Step{{Action: plan.Hold, Guard: guard.Many}}}, Blocked, "holds"},
		"PackageLost":    {"A lost package is named first, because the other holds follow from it.", Report{Summary: Summary{Held: 1}, Steps: []Step{{Action: plan.Hold, Guard: guard.PackageLost, Code: reason.DefinitionLost}}}, Blocked, "package-lost"},
		"Flood":          {"A hold of guard flood blocks like any other.", Report{Summary: Summary{Held: 1}, Steps: []Step{{Action: plan.Hold, Guard: guard.Flood}}}, Blocked, "holds"},
		"Unread":         {"The changes of the package are unknown.", bump("no answer", "v1", ""), Blocked, "unread"},
		"UnreadUpgrade":  {"Both versions were read, but cannot be compared.", bump("not a schema", "v1", "v2"), Blocked, "unread"},
		"SpecUsed":       {"The commit uses the field.", step(plan.Block, reason.MergeBreaks), Blocked, "breaks"},
		"Unconverted":    {"The schemas are compatible, but fields of stored objects would be lost.", step(plan.Block, reason.MergeUnconverted), Blocked, "unconverted"},
		"WebhookUnknown": {"Stored objects may become unreadable.", step(plan.Block, reason.MergeStorage), Blocked, "breaks"},
		"SpecOfPackage":  {"A package breaks the schema.", upgrade(plan.Block, reason.MergeBreaks), Blocked, "breaks"},
		"Dropped":        {"No controller would reconcile the existing objects.", upgrade(plan.Block, reason.DropsKind), Blocked, "drops"},
		"DeletesKind":    {"Without a cluster, it is unknown whether objects exist.", step(plan.Block, reason.DeletesKind), Blocked, "deletes-kinds"},
	}
}

// The word decides whether people merge, and whether a bot does.
func TestJudge(t *testing.T) {
	for name, tc := range situations() {
		t.Run(name, func(t *testing.T) {
			j := Judge(tc.report)
			word, because := j.Word, j.Because
			cause := ""
			if len(because) > 0 {
				cause = because[0].Cause
			}
			if word != tc.word || cause != tc.cause {
				t.Errorf("%s\nJudge(...) = %s because of %v, want %s because of %q", tc.reason, word, because, tc.word, tc.cause)
			}
			if !slices.IsSortedFunc(because, func(a, b Ground) int { return badness(b.Word) - badness(a.Word) }) {
				t.Errorf("a better ground is before a worse one: %v", because)
			}
		})
	}
}

func badness(w Word) int { return slices.Index([]Word{Safe, Look, Blocked}, w) }

// Users distrust a green status for a failed job, and a red one for a successful job. For every pair of situations and every
// threshold, status and exit code agree, and a blocked comparison never passes by default.
func TestStatusFollowsExitCode(t *testing.T) {
	thresholds := []Threshold{nil}
	for i, a := range Thresholds() {
		thresholds = append(thresholds, Threshold{a})
		for _, b := range Thresholds()[i+1:] {
			if a != OnNever && b != OnNever {
				thresholds = append(thresholds, Threshold{a, b})
			}
		}
	}
	for first, a := range situations() {
		for second, b := range situations() {
			both := merge(a.report, b.report)
			worst := a.word
			if badness(b.word) > badness(worst) {
				worst = b.word
			}
			for _, on := range thresholds {
				r := both.On(on)
				v := r.Verdict
				fails := v.Activation.State != Success
				if fails != (v.ExitCode != ExitSuccess) || v.ExitCode != r.Exits(on) || v.Activation.State == Pending {
					t.Errorf("%s and %s, --exit-on %v: the status is %s and the exit code %d", first, second, on, v.Activation.State, r.Exits(on))
				}
				if r.Judgement.Word != worst && r.Error == "" {
					t.Errorf("%s and %s are %s, want %s", first, second, r.Judgement.Word, worst)
				}
				if len(on) == 0 && fails != (r.Judgement.Word == Blocked) {
					t.Errorf("%s and %s are %s, and the status is %s", first, second, r.Judgement.Word, v.Activation.State)
				}
				for output, has := range map[string]string{"status": v.Activation.Description, "headline": comment{Report: r}.headline(), "summary": r.Line()} {
					if !strings.Contains(strings.ToLower(has), string(r.Judgement.Word)+": ") {
						t.Errorf("the %s of %s and %s is not %s: %q", output, first, second, r.Judgement.Word, has)
					}
				}
			}
		}
	}
}

// merge returns a comparison with the changes of both.
func merge(a, b Report) Report {
	r := Report{Error: a.Error + b.Error, Preview: &Preview{Live: true}}
	for _, one := range []Report{a, b} {
		r.Steps, r.Upgrades = append(r.Steps, one.Steps...), append(r.Upgrades, one.Upgrades...)
		r.Findings, r.Bumps = append(r.Findings, one.Findings...), append(r.Bumps, one.Bumps...)
		r.rulings = append(r.rulings, one.rulings...)
		r.Summary.Failed += one.Summary.Failed
		r.Summary.Held += one.Summary.Held
		r.Summary.Updated += one.Summary.Updated
		r.Summary.Created += one.Summary.Created
		if p := one.Preview; p != nil {
			r.Preview.Warnings += p.Warnings
			r.Preview.Repairs = r.Preview.Repairs || p.Repairs
		}
	}
	return r
}

// If an error follows the judgement, such as that of a pass that stops, the result must not be called safe.
func TestErrorAfterJudgement(t *testing.T) {
	r := Report{Preview: &Preview{}}.On(nil)
	r.Error = "no answer"
	r = r.On(nil)
	if v := r.Verdict; r.Judgement.Word != Blocked || v.Activation.State != Error || v.ExitCode != ExitDiffError {
		t.Errorf("On(...) = %+v", v)
	}
}

func TestParseThreshold(t *testing.T) {
	for text, want := range map[string]string{
		"blocked": "blocked", "Blocked, findings": "blocked,findings", "never": "never",
		"": "", "never,holds": "", "blocked,,holds": "", "warnings": "",
	} {
		got, err := ParseThreshold(text)
		if strings.Join(got, ",") != want || (err == nil) != (want != "") {
			t.Errorf("ParseThreshold(%q) = %v, %v, want %q", text, got, err, want)
		}
	}
}

// A head that stopped its preview process is not previewed again, not even after a restart, because the status on the forge records
// it.
func TestStoppedIsFound(t *testing.T) {
	status := Failed(inventory.Sync{Name: "a"}, "", errors.New(PreviewStopped+"over the memory limit")).On(nil).Verdict.Activation
	if !status.WasStopped() {
		t.Errorf("%+v is not taken for the status of a preview that was stopped", status)
	}
	if other := (Report{Error: "a.yaml: " + PreviewStopped}).On(nil).Verdict.Activation; other.WasStopped() {
		t.Errorf("%+v is taken for the status of a preview that was stopped", other)
	}
}
