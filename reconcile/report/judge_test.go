package report

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// situation is one row of the table: a comparison and the expected word.
type situation struct {
	reason string
	report Report
	word   Word
	cause  string // cause of the worst finding
}

func situations() map[string]situation {
	spec := plan.SchemaChange{Rule: schema.Field, Version: "v1", Path: "spec.a", Breaking: true}
	status := plan.SchemaChange{Rule: schema.Field, Version: "v1", Path: "status.a", Breaking: true}
	version := plan.SchemaChange{Rule: schema.Removed, Version: "v1", Breaking: true}
	defaults := plan.SchemaChange{Rule: schema.Default, Version: "v1", Path: "spec.a", Breaking: true}
	update := func(change func(*Step)) Report {
		s := Step{Action: plan.Update, ID: id("buckets.example.org"), active: true}
		change(&s)
		return Report{Preview: &Preview{Live: true}, Summary: Summary{Updated: 1}, Steps: []Step{s}}
	}
	breaks := func(unused, live bool, why plan.Reason, changes ...plan.SchemaChange) Report {
		r := update(func(s *Step) { s.Breaks, s.unused, s.because = changes, unused, codesIn(why) })
		r.Preview.Live = live
		return r
	}
	alters := func(rule schema.Rule) Report {
		return update(func(s *Step) { s.alters = []plan.SchemaChange{{Rule: rule}} })
	}
	drops := func(why plan.Reason, unused, active bool) Report {
		return Report{Preview: &Preview{Live: true}, Upgrades: []Step{{
			Action: plan.Keep, Package: "p", ID: id("buckets.example.org"), Origin: &manifest.Origin{}, active: active, unused: unused, because: codesIn(why),
		}}}
	}
	opens := func(reasons ...activation.Activator) Report {
		return Report{Preview: &Preview{Opens: []Opening{{Definition: Definition{Name: "buckets.example.org", Because: reasons}}}}}
	}
	bump := func(unknown, from, to string) Report {
		return Report{Preview: &Preview{}, Bumps: []plan.Bump{{Source: "p", From: from, To: to, Unknown: unknown}}}
	}
	provider := manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "p"}
	copied := manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "copied"}
	upgrade := func(of, by manifest.ID) Report {
		return Report{
			Preview: &Preview{Live: true}, Summary: Summary{Updated: 1}, Bumps: []plan.Bump{{Source: "p", From: "v1", To: "v2", By: by}},
			Steps: []Step{{Action: plan.Update, ID: of, Changes: []diff.Change{{Path: "spec.package"}}}},
		}
	}
	sameImage := manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "same"}
	otherSource := manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "other"}
	tags := []diff.Change{{Path: "spec.package", From: `"r.example/p:v1"`, To: `"r.example/p:v2"`}}
	moved := []diff.Change{{Path: "spec.package", From: `"r.example/p:v1"`, To: `"r.example/q:v2"`}}
	full := activation.Activator{Cause: activation.Matched, Pattern: "buckets.example.org"}
	wild := activation.Activator{Cause: activation.Matched, Pattern: "*.example.org"}
	none, some := plan.NoObjects.With(), plan.ObjectsExist.With(int64(2), "")
	unseen := guard.BreaksUnseen.With([]plan.SchemaChange{spec})

	return map[string]situation{
		"Nothing":         {"Without changes the verdict is safe, because the check may be required.", Report{Preview: &Preview{}}, Safe, ""},
		"Adds":            {"A new object changes no existing one.", Report{Summary: Summary{Created: 2}, Steps: []Step{{Action: plan.Create, ID: id("a")}}}, Safe, "changes"},
		"GainsFields":     {"New optional fields affect no existing object.", update(func(s *Step) { s.Added = 3 }), Safe, "changes"},
		"Words":           {"Changed descriptions do not affect validation.", update(func(s *Step) { s.Words = true }), Safe, "changes"},
		"Inactive":        {"A breaking change of an inactive definition affects no API.", update(func(s *Step) { s.active, s.definition, s.Breaks = false, true, []plan.SchemaChange{spec} }), Safe, "changes"},
		"InactiveDropped": {"A dropped version of an inactive definition affects no API.", drops(none, false, false), Safe, "inactive-breaks"},
		"NamedInFull":     {"An author wrote the full name of the definition.", opens(wild, full), Safe, "activates"},
		"OwnState":        {"An author activated the definition in the MRD itself.", opens(activation.Activator{Cause: activation.Declared}), Safe, "activates"},
		"Provider":        {"The definitions of the package were compared.", upgrade(provider, provider), Safe, "changes"},
		"SameImage": {
			"Another tag of the installed image changes nothing.",
			Report{Summary: Summary{Updated: 1}, Packages: []Package{{Source: "r.example/p"}}, Steps: []Step{{Action: plan.Update, ID: sameImage, Changes: tags}}}, Safe, "changes",
		},
		"OtherSource": {
			"A package from another source has nothing to be compared with.",
			Report{Summary: Summary{Updated: 1}, Packages: []Package{{Source: "r.example/q"}}, Steps: []Step{{Action: plan.Update, ID: otherSource, Changes: moved}}}, Look, "unjudged",
		},
		"WarningNotNew": {"The base has the same warning.", Report{Preview: &Preview{}, Findings: []manifest.Finding{{Severity: manifest.Warning}}}, Safe, ""},

		"Wildcard":     {"A wildcard activates definitions of later versions, too.", opens(wild), Look, "activates-by-wildcard"},
		"NoSafeStart":  {"Without safe-start, definitions become active that nobody named.", opens(activation.Activator{Cause: activation.NoSafeStart}), Look, "activates-by-wildcard"},
		"Deprecated":   {"A deprecated version will be removed later.", alters(schema.Deprecated), Look, "deprecates"},
		"StorageMoves": {"A webhook must convert every stored object.", alters(schema.Storage), Look, "moves-storage"},
		"Pattern":      {"Objects may be refused.", alters(schema.Undecided), Look, "patterns"},
		"Default":      {"A changed default changes the behaviour of objects.", alters(schema.Default), Look, "defaults"},
		"Merges": {
			"Writers that share the list would overwrite each other.",
			update(func(s *Step) {
				s.alters = []plan.SchemaChange{{Rule: "x-kubernetes-list-type", From: `"map"`, To: `"atomic"`}}
			}), Look, "merges",
		},
		"ListWasAtomic":      {"The API server treats both types alike.", update(func(s *Step) { s.alters = []plan.SchemaChange{{Rule: "x-kubernetes-list-type", To: `"atomic"`}} }), Safe, "changes"},
		"StatusUnused":       {"Controllers write the status again, and nothing in the commit reads it.", breaks(true, true, plan.Reason{}, status), Look, "breaks-status"},
		"SpecFits":           {"A pass applies the change if no object loses a value or is refused.", breaks(false, true, guard.BreaksNoObject.With([]plan.SchemaChange{spec}, int64(2)), spec), Look, "breaks-no-object"},
		"SpecUnused":         {"Neither the cluster nor the commit uses the field.", breaks(true, true, plan.Reason{}, spec), Look, "breaks-unused"},
		"DroppedUnused":      {"Neither the cluster nor the commit uses the kind.", drops(plan.Both.With(plan.KindDropped.With(), none), true, true), Look, "drops-unused"},
		"BaseUnreadable":     {"A change that repairs an unreadable package is not blocked.", bump("no such tag", "", "v2"), Look, "base-unread"},
		"Repairs":            {"A change that repairs an unrenderable target is not blocked.", Report{Preview: &Preview{Repairs: true}}, Look, "repairs"},
		"Deletes":            {"A deletion needs a look.", Report{Summary: Summary{Pruned: 1}, Steps: []Step{{Action: plan.Prune, ID: manifest.ID{Kind: "ConfigMap"}}}}, Look, "deletes"},
		"TakesBack":          {"A deactivation deletes the CRD.", Report{Summary: Summary{Deactivated: 1}}, Look, "takes-back"},
		"Retains":            {"The definition seems to be removed, but stays active.", Report{Preview: &Preview{Leaves: []Definition{{Name: "a"}}}}, Look, "retains"},
		"ImageConfig":        {"A new ImageConfig can replace the images of existing packages.", Report{Summary: Summary{Created: 1}, Steps: []Step{{Action: plan.Create, ID: manifest.ID{Group: crossplane.Packages, Kind: "ImageConfig", Name: "a"}}}}, Look, "unjudged"},
		"OtherObject":        {"Headgate cannot determine the effects of the change.", Report{Summary: Summary{Updated: 1}, Steps: []Step{{Action: plan.Update, ID: manifest.ID{Kind: "ConfigMap"}}}}, Look, "unjudged"},
		"ProviderUncompared": {"The copy of the package is compared, but not its image.", upgrade(copied, manifest.ID{}), Look, "unjudged"},
		"Unsigned":           {"An image that nobody signed could replace the package.", Report{Preview: &Preview{Unsigned: 1}}, Look, "unsigned"},
		"NewWarning":         {"The change adds a warning.", Report{Preview: &Preview{Warnings: 1}}, Look, "warnings"},

		"Error":               {"Nothing would be applied.", Report{Error: "x.yaml:1: no"}, Blocked, "error"},
		"Fails":               {"The API server refuses an object.", Report{Summary: Summary{Failed: 1}}, Blocked, "failed"},
		"ErrorFinding":        {"A pass would fail on the finding.", Report{Findings: []manifest.Finding{{Severity: manifest.Error}}}, Blocked, "errors"},
		"Held":                {"A held object needs a decision by a user.", Report{Summary: Summary{Held: 1}, Steps: []Step{{Action: plan.Hold, Guard: guard.Many}}}, Blocked, "holds"},
		"PackageLost":         {"A lost package is named first, because the other holds follow from it.", Report{Summary: Summary{Held: 1}, Steps: []Step{{Action: plan.Hold, Guard: guard.PackageLost}}}, Blocked, "package-lost"},
		"Flood":               {"A hold of guard flood blocks like any other.", Report{Summary: Summary{Held: 1}, Steps: []Step{{Action: plan.Hold, Guard: guard.Flood}}}, Blocked, "holds"},
		"Unread":              {"The changes of the package are unknown.", bump("no answer", "v1", ""), Blocked, "unread"},
		"UnreadUpgrade":       {"Both versions were read, but cannot be compared.", bump("not a schema", "v1", "v2"), Blocked, "unread"},
		"SpecUsedHere":        {"The commit uses the field.", breaks(false, true, plan.Reason{}, spec), Blocked, "breaks"},
		"Unconverted":         {"The schemas are compatible, but fields of stored objects would be lost.", breaks(false, true, plan.Reason{}, plan.SchemaChange{Rule: ruleUnconverted, Version: "v1", Path: "spec.a", Breaking: true}), Blocked, "unconverted"},
		"UnconvertedToo":      {"A breaking schema is more serious than a missing conversion.", breaks(false, true, plan.Reason{}, spec, plan.SchemaChange{Rule: ruleUnconverted, Version: "v1", Path: "spec.a", Breaking: true}), Blocked, "breaks"},
		"SpecUnknown":         {"Without a cluster, it is unknown whether the field is used.", breaks(true, false, unseen, spec), Blocked, "breaks"},
		"SpecUncountable":     {"The cluster did not answer.", breaks(true, true, guard.BreaksUncountable.With([]plan.SchemaChange{spec}, plan.Failed.With("forbidden")), spec), Blocked, "breaks"},
		"SpecFitsUnconverted": {"All objects remain valid, but another webhook may convert them.", breaks(false, true, plan.Both.With(guard.BreaksNoObject.With([]plan.SchemaChange{spec}, int64(2)), guard.WebhookUnseen.With()), spec), Blocked, "breaks"},
		"SpecOfPackage": {
			"Only the step of the package names the objects.",
			Report{Preview: &Preview{Live: true}, Upgrades: []Step{{Action: plan.Update, Package: "p", ID: id("buckets.example.org"), Origin: &manifest.Origin{}, active: true, unused: true, Breaks: []plan.SchemaChange{spec}}}}, Blocked, "breaks",
		},
		"VersionUnknown":        {"Without a cluster, it is unknown whether the version is used.", breaks(true, false, unseen, version), Blocked, "breaks"},
		"StatusUsedHere":        {"Objects of the commit may read the status.", breaks(false, true, plan.Reason{}, status), Blocked, "breaks"},
		"StatusAndSpec":         {"The worse of the two changes counts.", breaks(true, false, unseen, status, spec), Blocked, "breaks"},
		"DefaultThatARuleReads": {"A rule may refuse objects with the new default.", breaks(false, true, unseen, defaults), Blocked, "breaks"},
		"DefaultAndSpec":        {"The worse of the two changes counts.", breaks(true, false, unseen, defaults, spec), Blocked, "breaks"},
		"WebhookUnknown":        {"Stored objects may become unreadable.", breaks(true, false, guard.WebhookUnseen.With()), Blocked, "breaks"},
		"DroppedHasObject":      {"No controller would reconcile the existing objects.", drops(plan.Both.With(plan.KindDropped.With(), some), true, true), Blocked, "drops"},
		"DroppedUnknown":        {"Without a cluster, it is unknown whether objects exist.", drops(plan.KindDropped.With(), true, true), Blocked, "drops"},
		"DeletesKind": {
			"Without a cluster, it is unknown whether objects exist.",
			Report{Summary: Summary{Pruned: 1}, Steps: []Step{{Action: plan.Prune, ID: id("a.b"), because: codesIn(guard.UsersUnseen.With())}}}, Blocked, "deletes-kinds",
		},
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
				for output, has := range map[string]string{"status": v.Activation.Description, "headline": comment{Report: r, most: 3}.headline(), "summary": r.Line()} {
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
		r.Packages = append(r.Packages, one.Packages...)
		r.Summary.Failed += one.Summary.Failed
		r.Summary.Held += one.Summary.Held
		r.Summary.Deactivated += one.Summary.Deactivated
		r.Summary.Pruned += one.Summary.Pruned
		r.Summary.Updated += one.Summary.Updated
		r.Summary.Created += one.Summary.Created
		if p := one.Preview; p != nil {
			r.Preview.Opens, r.Preview.Leaves = append(r.Preview.Opens, p.Opens...), append(r.Preview.Leaves, p.Leaves...)
			r.Preview.Warnings += p.Warnings
			r.Preview.Unsigned += p.Unsigned
			r.Preview.Repairs = r.Preview.Repairs || p.Repairs
			r.Preview.Live = r.Preview.Live && (p.Live || len(one.Steps)+len(one.Upgrades) == 0)
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

// Without a cluster, only the commit shows which fields are used. If a use is missed, the preview turns green.
func TestUsed(t *testing.T) {
	object := func(content map[string]any) render.Object {
		u := &unstructured.Unstructured{Object: content}
		o, err := render.NewObject(u, manifest.Origin{Path: "x.yaml", Line: 1})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	named := func(apiVersion, kind string, more map[string]any) render.Object {
		all := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x"}}
		maps.Copy(all, more)
		return object(all)
	}
	base := func(apiVersion, kind string) map[string]any {
		return map[string]any{"spec": map[string]any{"resources": []any{map[string]any{"base": map[string]any{"apiVersion": apiVersion, "kind": kind}}}}}
	}
	composition := named("apiextensions.crossplane.io/v1", "Composition", base("example.org/v1", "Bucket"))
	cases := map[string]struct {
		reason string
		want   render.Desired
		unused bool
	}{
		"Nothing":     {"The commit contains no object of the group.", render.Desired{}, true},
		"Object":      {"The commit contains an object of the kind.", render.Desired{Objects: []render.Object{named("example.org/v1", "Bucket", nil)}}, false},
		"OtherKind":   {"The commit contains an object of the group, but of another kind.", render.Desired{Objects: []render.Object{named("example.org/v1", "Queue", nil)}}, true},
		"Composition": {"A Composition creates objects of the kind.", render.Desired{Objects: []render.Object{composition}}, false},
		"OtherComposed": {"A Composition creates objects of another kind only.", render.Desired{Objects: []render.Object{
			named("apiextensions.crossplane.io/v1", "Composition", base("example.org/v1", "Queue")),
		}}, true},
		"OfPackage": {"A Composition in a package creates objects of the kind.", render.Desired{Left: []render.Left{{Composition: &composition}}}, false},
		"Template": {"A template in a Composition creates objects of the kind.", render.Desired{Objects: []render.Object{named("apiextensions.crossplane.io/v1", "Composition", map[string]any{
			"spec": map[string]any{"template": "{{ $x }}\napiVersion: example.org/{{ $v }}\nkind: Bucket\n"},
		})}}, false},
		"Policy": {"A policy activates the kind, but is not an object of it.", render.Desired{Objects: []render.Object{
			named("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy", map[string]any{"spec": map[string]any{"activate": []any{"Bucket.example.org"}}}),
		}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Report{Steps: []Step{{Action: plan.Update, ID: id("buckets.example.org"), kindOf: "Bucket", active: true, Breaks: []plan.SchemaChange{{Breaking: true}}}}}
			r.used(tc.want)
			if got := r.Steps[0].unused; got != tc.unused {
				t.Errorf("%s\nunused is %t, want %t", tc.reason, got, tc.unused)
			}
		})
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

// A half-finished upgrade may block the next one, so the preview names it before the merge.
func TestControlled(t *testing.T) {
	by := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-sea"}
	bump := plan.Bump{Source: "registry.example.org/acme/provider-sea", From: "v1", To: "v2", By: by, Origin: manifest.Origin{Path: "provider.yaml", Line: 6}}
	for name, tc := range map[string]struct {
		reason   string
		answer   any
		word     Word
		severity manifest.Severity
		says     string
	}{
		"Fine":    {"The active revision controls all installed objects.", question.Counted{}, Safe, "", ""},
		"Stale":   {"An object is still controlled by an older revision, so Crossplane may not finish the upgrade.", question.Counted{Count: 2, Example: "CRD a (controlled by sea-1; sea-2 is active)"}, Look, manifest.Warning, "controls 2 objects that it installed, for example CRD a (controlled by sea-1; sea-2 is active)"},
		"Unknown": {"The cluster did not answer.", given.Unknown(plan.CountForbidden.With("forbidden")), Safe, manifest.Note, "it is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Compared(plan.Plan{Bumps: []plan.Bump{bump}}, Comparison{Live: true, Answers: question.Answers{question.Controls{Of: by}: tc.answer}})
			if r.Judgement.Word != tc.word {
				t.Errorf("%s\nit is %s, want %s: %v", tc.reason, r.Judgement.Word, tc.word, r.Judgement.Because)
			}
			if tc.says == "" {
				if len(r.Findings) > 0 {
					t.Errorf("%s\nfindings: %v", tc.reason, r.Findings)
				}
				return
			}
			if len(r.Findings) != 1 || r.Findings[0].Severity != tc.severity || r.Findings[0].Origin != bump.Origin || !strings.Contains(r.Findings[0].Message, tc.says) {
				t.Errorf("%s\nfindings: %v", tc.reason, r.Findings)
			}
		})
	}
}
