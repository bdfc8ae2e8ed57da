package report

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/golden"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/memory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pull returns a pull request with the given number of changes of every kind. All names begin with output.
func pull(output string, of int) Report {
	origin := &manifest.Origin{Path: output + ".yaml", Line: 3}
	name := func(i int) string { return fmt.Sprintf("%s%d", output, i) }
	r := Report{
		Revision: "0123456789abcdef0123456789abcdef01234567",
		Preview:  &Preview{Base: "fedcba9876543210fedcba9876543210fedcba98", Moved: "the target changed policies since", Memory: memory.Change{Before: 10 << 20, After: 13 << 20, CRDs: 4}},
		Summary:  Summary{Definitions: 9, Active: 4, Pruned: of, Held: of, Updated: of},
	}
	r.Approval = &plan.Approval{Digest: "00", Steps: of, Guards: []plan.GuardName{"schema"}}
	r.Sync.Name = output
	for i := range of {
		like := name(i / 2) // two changes of each kind have the same content
		reasons := []activation.Activator{{Cause: activation.Matched, Policy: output, Pattern: output, Origin: *origin}}
		r.Preview.Opens = append(r.Preview.Opens, Opening{Definition: Definition{Name: name(i), Because: reasons}, Already: i == 0})
		r.Preview.Leaves = append(r.Preview.Leaves, Definition{Name: name(i)})
		breaks := []plan.SchemaChange{{Rule: "type", Version: output, Path: like, From: output, To: output, Breaking: true}}
		r.Steps = append(r.Steps,
			Step{Action: plan.Update, ID: id(name(i)), Origin: origin, Breaks: breaks, active: true, Changes: []diff.Change{{Path: like, From: output, To: output}}},
			Step{Action: plan.Prune, ID: id(name(i)), Reason: like},
			Step{Action: plan.Hold, Would: plan.Update, ID: id(name(i)), Origin: origin, Guard: "schema", Reason: like, approvable: true},
			Step{Action: plan.Create, ID: id(name(i)), Origin: origin, Error: like},
		)
		r.Findings = append(r.Findings, manifest.Finding{Severity: manifest.Warning, Origin: *origin, Message: output, Fix: output})
	}
	return asRuled(r)
}

// asRuled returns a report with the rulings that guards would have on its steps and definitions, if no cluster was asked.
func asRuled(r Report) Report {
	for _, steps := range [][]Step{r.Steps, r.Upgrades} {
		for i, s := range steps {
			of := ruled{Guard: "g", Count: 1}
			switch {
			case s.Action == plan.Prune:
				of.Code, of.Severity, of.Text = reason.DeletesObject, plan.Look, words.Of(reason.DeletesObject.With(s.ID))
			case s.Action == plan.Keep && s.active:
				of.Code, of.Severity = reason.DropsKind, plan.Block
			case s.Action == plan.Keep, len(s.Breaks) > 0 && !s.active:
				of.Code = reason.InactiveBreaks
			case len(s.Breaks) > 0:
				of.Code, of.Severity = reason.MergeBreaks, plan.Block
			default:
				continue
			}
			steps[i].rulings = []ruled{of}
		}
	}
	if r.Preview != nil {
		r.rulings = nil
		for _, o := range r.Preview.Opens {
			r.rulings = append(r.rulings, ruled{"g", reason.ActivatesUnnamed, plan.Look, 1, words.Of(reason.ActivatesUnnamed.With(o.Name))})
		}
		for _, d := range r.Preview.Leaves {
			r.rulings = append(r.rulings, ruled{"g", reason.StaysUnnamed, plan.Look, 1, words.Of(reason.StaysUnnamed.With(d.Name))})
		}
	}
	return r
}

// The golden file shows every part of a comment once.
func TestComment(t *testing.T) {
	golden.Compare(t, "testdata/comment.md", Comment(pull("x", 1), 10_000))
}

// A reviewer reads a limited number of lines. However much changes, these lines name the worst changes.
func TestVisibleLines(t *testing.T) {
	for name, r := range map[string]Report{
		"Everything": pull("x", 200), "One": pull("x", 1), "Upgrades": upgraded(300),
		"EveryPoint": everyPoint(200),
		"Error":      Failed(inventory.Sync{}, "", errors.New(strings.Repeat("a.yaml:1: no\n", 300))),
	} {
		c := Comment(r, 65_536)
		if n := fixtures.VisibleLines(c); n > mostVisible {
			t.Errorf("%s: %d lines are visible, want at most %d:\n%s", name, n, mostVisible, c)
		}
	}
}

// everyPoint returns a pull request whose comment has every possible point.
func everyPoint(of int) Report {
	r := pull("x", of)
	r.Bumps, r.Upgrades = upgraded(of).Bumps, upgraded(of).Upgrades
	for i := range of {
		name := id(fmt.Sprint("versions", i))
		r.Steps = append(r.Steps,
			Step{Action: plan.Update, ID: name, active: true, Breaks: []plan.SchemaChange{
				{Rule: ruleStorage, From: fmt.Sprint("v", i), To: "w", Breaking: true}, {Rule: ruleUnconverted, Path: "spec.a", Breaking: true}, {Rule: ruleUnshared, Version: fmt.Sprint("v", i), Path: "spec.a", Breaking: true},
			}},
			Step{Action: plan.Update, ID: name, active: true, ConversionAdded: true, alters: []plan.SchemaChange{
				{Rule: ruleStorage, From: fmt.Sprint("v", i), To: "w"}, {Rule: ruleDeprecated, Version: fmt.Sprint("v", i)}, {Rule: "default", Path: fmt.Sprint("spec.f", i), To: "1"},
			}},
		)
		r.Findings = append(r.Findings, manifest.Finding{Severity: manifest.Error, Message: fmt.Sprint("error ", i)})
		r.Steps = append(r.Steps, Step{Action: plan.Keep, Code: reason.StillThere, Reason: "it is skipped", ID: id(fmt.Sprint("hidden", i))})
		r.Preview.Unchecked = append(r.Preview.Unchecked, fmt.Sprintf("Kind%d.example.org", i))
		r.Preview.Versions = append(r.Preview.Versions, Version{Version: fmt.Sprint("v1.", i), Word: Safe})
		r.Preview.Copies = append(r.Preview.Copies, Copy{Package: "p", From: "v1", To: "v2"})
		r.Preview.SafeStart = append(r.Preview.SafeStart, SafeStart{Package: "p", Has: i%2 == 0})
	}
	return asRuled(r)
}

// The comment that is measured must contain every point.
func TestEveryPoint(t *testing.T) {
	source, err := os.ReadFile("points.go")
	if err != nil {
		t.Fatal(err)
	}
	_, all, _ := strings.Cut(string(source), "all := []point{")
	all, _, _ = strings.Cut(all, "\n\t}\n")
	if want, got := strings.Count(all, "c.pointOf"), len(comment{Report: everyPoint(2)}.points()); got != want {
		t.Errorf("everyPoint(2) has %d of %d points", got, want)
	}
}

func TestCommentFits(t *testing.T) {
	long := pull(strings.Repeat("🚪", 150), 200)
	for _, limit := range []int{6_000, 20_000, 65_536} {
		c := Comment(long, limit)
		if len(c) > limit {
			t.Errorf("a comment of %d bytes is more than %d", len(c), limit)
		}
		for _, section := range []string{"Becomes active: 200", "no longer in any policy: 200", "Is deleted: 200", "break: 200", "Held: 200", "Fails: 200", "New findings: 200", "not shown", "and "} {
			if !strings.Contains(c, section) {
				t.Errorf("within %d bytes it does not say %q:\n%s", limit, section, c)
			}
		}
		if opened, closed := strings.Count(c, "<details>"), strings.Count(c, "</details>"); opened != closed {
			t.Errorf("within %d bytes: %d folds are opened and %d closed", limit, opened, closed)
		}
	}
}

// upgraded returns a pull request that upgrades a number of packages, each with one definition for every possible effect.
func upgraded(of int) Report {
	r := Report{Summary: Summary{Updated: of}}
	for i := range of {
		origin := &manifest.Origin{Path: "providers.yaml", Line: 6*i + 5}
		image := fmt.Sprintf("registry.example.org/p%d", i)
		name := func(is string) manifest.ID { return id(fmt.Sprintf("%s%d", is, i)) }
		r.Bumps = append(r.Bumps, plan.Bump{Source: image, From: "v1", To: "v2", Origin: *origin})
		removed := []plan.SchemaChange{{Rule: "field-removed", Version: "v1", Path: fmt.Sprintf("spec.f%d", i), Breaking: true}}
		r.Upgrades = append(r.Upgrades,
			Step{Action: plan.Update, ID: name("breaks"), Origin: origin, Package: image, Breaks: removed, active: true},
			Step{Action: plan.Update, ID: name("asleep"), Origin: origin, Package: image, Breaks: removed},
			Step{Action: plan.Keep, ID: name("goes"), Origin: origin, Package: image, Reason: "it is gone", active: true},
			Step{Action: plan.Keep, ID: name("fades"), Origin: origin, Package: image, Reason: "it is gone"},
			Step{Action: plan.Create, ID: name("new"), Origin: origin, Package: image},
		)
	}
	return asRuled(r)
}

func TestUpgradesCount(t *testing.T) {
	r := upgraded(2)
	r.Preview = &Preview{}
	if status := r.On(nil).Verdict.Activation; status.State != Failure || !strings.HasPrefix(status.Description, "Blocked: breaks 2 schemas, drops 2 kinds, 4 inactive ones break; ") {
		t.Errorf("What an inactive definition breaks counts apart: %s", status)
	}
	var lines []string
	for _, a := range annotations(r) {
		lines = append(lines, fmt.Sprintf("%s %s %s", a.Origin, a.Rule, a.Message))
	}
	want := []string{
		"providers.yaml:5 schema-breaks breaks0 in registry.example.org/p0: spec.f0 is removed (v1)",
		"providers.yaml:5 package-drops-kind goes0 in registry.example.org/p0: it is gone",
		"providers.yaml:11 schema-breaks breaks1 in registry.example.org/p1: spec.f1 is removed (v1)",
		"providers.yaml:11 package-drops-kind goes1 in registry.example.org/p1: it is gone",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("It stands beside the line that asks for the version (-want +got):\n%s", diff)
	}

	r.Bumps[1].Unknown, r.rulings = "nobody answers", []ruled{{guard.Unread, reason.MergeUnread, plan.Block, 1, ""}}
	r.Steps = append(r.Steps, Step{Action: plan.Hold, approvable: true})
	if status := r.On(nil).Verdict.Activation; status.State != Error || status.Description != "Blocked: cannot read 1 package, holds 1 object back, breaks 2 schemas, drops 2 kinds, 4 inactive ones break: nobody answers" {
		t.Errorf("An unknown result is no success: %s", status)
	}
	if output := (comment{Report: r}).headline(); strings.Contains(output, "no schema breaks") {
		t.Errorf("That is not known: %s", output)
	}
}

func TestCommentOfUpgradesFits(t *testing.T) {
	for _, limit := range []int{6_000, 20_000, 65_536} {
		c := Comment(upgraded(300), limit)
		if len(c) > limit {
			t.Errorf("a comment of %d bytes is more than %d", len(c), limit)
		}
		for _, says := range []string{"### ⛔ Blocked: breaks 300 schemas, drops 300 kinds, 600 inactive ones break\n", "upgrades: 300", "break: 300", "Dropped kinds: 300", "and "} {
			if !strings.Contains(c, says) {
				t.Errorf("within %d bytes it does not say %q:\n%s", limit, says, c)
			}
		}
	}
}

func TestUpgradeIsNoNoise(t *testing.T) {
	var r Report
	for i := range 2000 {
		r.Steps = append(r.Steps, Step{Action: plan.Update, ID: id(fmt.Sprint("words", i)), Words: true}, Step{
			Action: plan.Update, ID: id(fmt.Sprint("field", i)), Added: 1, Changes: []diff.Change{{Path: "spec.versions[v1].schema.openAPIV3Schema.properties.a", To: "{}"}},
		})
	}
	r.Steps = append(r.Steps, Step{Action: plan.Update, ID: manifest.ID{Kind: "ConfigMap", Name: "settings"}, Changes: []diff.Change{{Path: "data.a", To: `"b"`}}})
	c := Comment(r, 65_536)
	for _, says := range []string{"2000 definitions differ only in descriptions", "2000 definitions gain optional fields", "update 2000 CRDs: <code>field0</code> and 1999 more, all in the same way", "<code>ConfigMap/settings</code>", "+ v1 a: {}"} {
		if !strings.Contains(c, says) {
			t.Errorf("it does not say %q", says)
		}
	}
	if strings.Contains(c, "words1") {
		t.Error("it names definitions with changes in descriptions only")
	}
}

func TestHeadline(t *testing.T) {
	findings := []manifest.Finding{{Severity: manifest.Warning}, {Severity: manifest.Note}}
	breaks := []Step{{Action: plan.Update, Breaks: []plan.SchemaChange{{}}, active: true, rulings: []ruled{{"g", reason.MergeBreaks, plan.Block, 1, ""}}}, {Action: plan.Update, Breaks: []plan.SchemaChange{{}}}}
	held := Step{Action: plan.Hold, approvable: true}
	cases := map[string]struct {
		reason string
		report Report
		want   string
	}{
		"Nothing":  {"A report without changes has a headline, because the check may be required.", Report{}, "✅ Safe: nothing of this sync changes"},
		"Finding":  {"A note does not change the verdict.", Report{Findings: findings}, "✅ Safe: nothing of this sync changes"},
		"Changes":  {"Ordinary changes are counted.", Report{Summary: Summary{Created: 1, Updated: 2}}, "✅ Safe: changes 3 objects"},
		"Upgrade":  {"For an upgrade, the headline states that no schema breaks.", Report{Summary: Summary{Updated: 1}, Steps: []Step{{Action: plan.Update, ID: id("a"), Added: 1}}}, "✅ Safe: changes 1 object; no schema breaks"},
		"Breaks":   {"Breaking changes of inactive definitions are not counted.", Report{Summary: Summary{Updated: 2}, Steps: breaks}, "⛔ Blocked: breaks 1 schema"},
		"Held":     {"Held objects block, because a user must decide.", Report{Summary: Summary{Held: 2}, Steps: []Step{held, held}}, "⛔ Blocked: holds 2 objects back"},
		"Fails":    {"Failures are named before holds.", Report{Summary: Summary{Failed: 1, Held: 1}, Steps: []Step{held}}, "⛔ Blocked: fails on 1 object, holds 1 object back"},
		"Unusable": {"If rendering fails, nothing else is known.", Report{Error: "policy.yaml:3: no"}, "⛔ Blocked: cannot be rendered, so nothing would be applied"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (comment{Report: tc.report}).headline(); got != tc.want {
				t.Errorf("%s\nheadline() = %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCompared(t *testing.T) {
	desired := func(revision string, policies []catalogue.Policy, active ...string) render.Desired {
		d := render.Desired{Revision: revision, Policies: policies}
		for _, name := range []string{"a", "b", "c"} {
			d.Definitions = append(d.Definitions, render.DecidedDefinition{Decision: activation.Decision{
				Definition: &catalogue.Definition{Name: name, Document: &manifest.Document{}}, Active: slices.Contains(active, name),
			}})
		}
		return d
	}
	policy := []catalogue.Policy{{Name: "team", Patterns: []catalogue.Pattern{{Glob: "*"}}}}
	now := desired("1111111111111111", policy, "a")
	rulings := []plan.Ruling{
		{Of: crossplane.MRD("c"), Judged: plan.Judged{Severity: plan.Look, Reason: reason.ActivatesUnnamed.With("c")}}, {Of: crossplane.MRD("a"), Judged: plan.Judged{Severity: plan.Look, Reason: reason.StaysUnnamed.With("a")}},
		{At: []manifest.Origin{{Path: "a.yaml", Line: 1}}, Judged: plan.Judged{Severity: plan.Look, Reason: reason.FirstForCrossplane.With("Provider", "p", "Headgate")}},
	}
	r := Compared(plan.Plan{Want: desired("head", nil, "b", "c"), Rulings: rulings[:2]}, Comparison{
		Before: desired("base", nil, "a", "b"), Now: &now, Live: true, Present: map[string]bool{"c": true},
	})
	want := &Preview{
		Base: "base", Live: true, Moved: "the target changed policies since this branch left it (111111111111): merge the target in to see both together",
		Opens:  []Opening{{Definition: Definition{Name: "c", Active: true}, Already: true}},
		Leaves: []Definition{{Name: "a"}},
	}
	if diff := cmp.Diff(want, r.Preview); diff != "" {
		t.Errorf("Compared(...) (-want +got):\n%s", diff)
	}
	owned := Compared(plan.Plan{Want: desired("head", nil, "b", "c"), Rulings: rulings[2:]}, Comparison{Before: desired("base", nil, "a", "b")})
	if f := owned.Findings; len(f) != 1 || f[0].Origin.Path != "a.yaml" || f[0].Rule != "crd-owner-changes" || owned.Preview.Owner != render.OwnerCrossplane || owned.Judgement.Word != Look {
		t.Errorf("a change of the owner of CRDs is reported as %v, %+v", owned.Findings, owned.Judgement)
	}
	status := Status{Success, "Look: activates by a wildcard c, keeps active without a policy a; 2 active, 1 inactive"}
	if diff := cmp.Diff(status, r.Verdict.Activation); diff != "" {
		t.Errorf("the status of a preview (-want +got):\n%s", diff)
	}
}

// TestSchemasInReport expects the breaking changes of all steps, including held ones.
func TestSchemasInReport(t *testing.T) {
	crd := func(fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"versions": []any{map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": fields}}}}},
		}}
	}
	of := baseline.Baseline{}
	was, err := render.NewObject(crd(map[string]any{"old": map[string]any{}}), manifest.Origin{Path: "crd.yaml", Line: 1})
	is, err2 := render.NewObject(crd(map[string]any{"new": map[string]any{}}), manifest.Origin{Path: "crd.yaml", Line: 1})
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	of.Base = render.Desired{Objects: []render.Object{was}}
	after := render.Desired{Objects: []render.Object{is}}
	seen, err := of.Observe(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	p, err := draft.Compute(seen, guard.Guarding{}.Guards()...)
	if err != nil {
		t.Fatal(err)
	}
	r := New(p, nil, false)
	if len(r.Breaking()) != 1 || r.Steps[0].Added != 1 || r.Steps[0].Breaks[0].String() != "v1 old is removed" {
		t.Errorf("the step says %+v", r.Steps[0])
	}
}

// skeleton returns Markdown without code, so without everything that it quotes.
func skeleton(markdown string) string {
	var b strings.Builder
	fence := ""
	for line := range strings.SplitSeq(markdown, "\n") {
		switch {
		case fence != "":
			if strings.TrimRight(line, " ") == fence {
				fence = ""
			}
			continue
		case strings.HasPrefix(line, "```"):
			fence = line[:len(line)-len(strings.TrimLeft(line, "`"))]
			b.WriteString("FENCE\n")
			continue
		}
		b.WriteString(spans(codeTag.ReplaceAllString(line, "CODE")) + "\n")
	}
	return b.String()
}

var (
	codeTag = regexp.MustCompile(`<code>[^<]*</code>`)
	ticks   = regexp.MustCompile("`+")
	namesIn = regexp.MustCompile(`deletes (.*)0 and 1 more object`) // the headline escapes a name, and has no quotes
)

// spans returns a line without code spans as CommonMark defines them.
func spans(line string) string {
	for from := 0; ; {
		open := ticks.FindStringIndex(line[from:])
		if open == nil {
			return line
		}
		start, end := from+open[0], from+open[1]
		closing := -1
		for _, run := range ticks.FindAllStringIndex(line[end:], -1) {
			if run[1]-run[0] == end-start {
				closing = end + run[1]
				break
			}
		}
		if closing < 0 {
			from = end
			continue
		}
		line = line[:start] + "CODE" + line[closing:]
		from = start + len("CODE")
	}
}

// FuzzComment puts arbitrary text wherever a commit could. The text must appear only inside quotations.
func FuzzComment(f *testing.F) {
	for _, s := range []string{
		hostile, "@team", "``` \n# x", "`", "`` a `", "</code></summary><script>", "<!-- headgate/x -->", "[x](javascript:x)", "\n\n---\n", "\u2028- x", "a\r\nb", "&lt;", "|", "",
		"\\`", "~~~", "\t", " ", "![x](http://x)", "#1", "x\u200b@y", "\xff`\xfe",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, output string) {
		if legible.Line(output) == "" {
			return
		}
		got, want := skeleton(Comment(pull(output, 2), 1<<20)), skeleton(Comment(pull("x", 2), 1<<20))
		name := namesIn.FindStringSubmatch(got)
		if len(name) == 0 || strings.ContainsAny(name[1], "`<>@") {
			t.Errorf("the headline does not escape a name: %s", name)
		}
		got, want = namesIn.ReplaceAllString(got, "NAME"), namesIn.ReplaceAllString(want, "NAME")
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%q gets out of its quotes (-want +got):\n%s", output, diff)
		}
	})
}
