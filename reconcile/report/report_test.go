package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

var errBoom = errors.New("boom")

func id(name string) manifest.ID {
	return manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}
}

// want declares one active definition and one inactive one.
func want(findings ...manifest.Finding) render.Desired {
	definition := func(name string, active bool) render.DecidedDefinition {
		return render.DecidedDefinition{Decision: activation.Decision{
			Definition: &catalogue.Definition{Name: name, Document: &manifest.Document{Origin: manifest.Origin{Path: name + ".yaml", Line: 1}}},
			Active:     active,
		}}
	}
	return render.Desired{
		Revision:    "0123456789abcdef0123456789abcdef01234567",
		Definitions: []render.DecidedDefinition{definition("a", true), definition("b", false)},
		Findings:    findings,
	}
}

func TestVerdict(t *testing.T) {
	create := plan.Step{Action: plan.Create, Cause: plan.Commit, ID: id("a"), Definition: true}
	held := plan.Step{Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "in use", Severity: plan.Block, Reason: reason.Failed.With("2 live objects")}, ID: id("h")}
	retained := plan.Step{Action: plan.Keep, Cause: plan.Retain, Judged: plan.Judged{Guard: "final", Reason: reason.Failed.With("final")}, ID: id("r")}
	drifted := plan.Step{Action: plan.Update, Cause: plan.Drift, ID: id("d")}

	effect := func(name string, state plan.EffectState, by string) plan.Effect {
		e := plan.Effect{Kind: plan.Accept, On: id(name), State: state, By: by}
		if by != "" {
			e.Kind, e.Change = plan.Apply, &plan.Step{Action: plan.Update}
		}
		return e
	}

	cases := map[string]struct {
		reason  string
		plan    plan.Plan
		done    []plan.Outcome
		applied bool
		want    Verdict
	}{
		"AsWanted": {
			reason: "A pass without changes is a success and reports the state.",
			plan:   plan.Plan{Want: want()}, applied: true,
			want: Verdict{Status{Success, "1 active, 1 inactive"}, Status{Success, "no drift"}, 0},
		},
		"Activated": {
			reason: "The number of activations is what users look for after they push a policy.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{create}}, done: []plan.Outcome{{ID: id("a"), Action: plan.Create}}, applied: true,
			want: Verdict{Status{Success, "1 active (+1), 1 inactive"}, Status{Success, "no drift"}, 0},
		},
		"Retained": {
			reason: "A retained object is not a problem.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{retained}, Retained: []string{"b"}}, applied: true,
			want: Verdict{Status{Success, "1 active, 0 inactive, 1 kept"}, Status{Success, "no drift"}, 0},
		},
		"Corrected": {
			reason: "Corrected drift is counted and is a success.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{drifted}}, done: []plan.Outcome{{ID: id("d"), Action: plan.Update}}, applied: true,
			want: Verdict{Status{Success, "1 active, 1 inactive"}, Status{Success, "1 corrected"}, 0},
		},
		"MadeAgain": {
			reason: "Restoring a deleted CRD is not an activation.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{{Action: plan.Create, Cause: plan.Drift, ID: id("a"), Definition: true}}},
			done:   []plan.Outcome{{ID: id("a"), Action: plan.Create}}, applied: true,
			want: Verdict{Status{Success, "1 active, 1 inactive"}, Status{Success, "1 corrected"}, 0},
		},
		"DriftSeen": {
			reason: "A diff does not correct the drift that it shows.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{drifted}},
			want:   Verdict{Status{Success, "1 active, 1 inactive"}, Status{Failure, "1 drifted: d"}, 0},
		},
		"DriftReported": {
			reason: "Drift that the sync only reports stays, so a user has to act.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{{Action: plan.Keep, Cause: plan.Drift, Judged: plan.Judged{Guard: "drift"}, ID: id("d")}}}, applied: true,
			want: Verdict{Status{Success, "1 active, 1 inactive"}, Status{Failure, "1 drifted: d"}, 3},
		},
		"DriftByHands": {
			reason: "The description names the managers that caused the drift.",
			plan: plan.Plan{Want: want(), Steps: []plan.Step{
				{Action: plan.Keep, Cause: plan.Drift, Judged: plan.Judged{Guard: "drift"}, ID: id("d"), Write: plan.Write{Takes: []diff.Taken{{Manager: "kubectl-edit"}, {Manager: "helm"}}}},
				{Action: plan.Keep, Cause: plan.Drift, Judged: plan.Judged{Guard: "drift"}, ID: id("e")},
			}}, applied: true,
			want: Verdict{Status{Success, "1 active, 1 inactive"}, Status{Failure, "2 drifted: d by kubectl-edit, helm and 1 more"}, 3},
		},
		"NotAppliedYet": {
			reason: "The description names the tool that other objects wait for, because its delay causes the rest.",
			plan:   plan.Plan{Want: want(), Stance: plan.Looking, Effects: []plan.Effect{effect("c", plan.Pending, ""), effect("a", plan.Pending, "Flux"), effect("b", plan.Pending, "Flux")}}, applied: true,
			want: Verdict{Status{Pending, "2 not applied yet by Flux: a and 1 more; 1 active, 1 inactive"}, Status{Success, "no drift"}, 0},
		},
		"NotApplied": {
			reason: "The description names the tool that is late.",
			plan:   plan.Plan{Want: want(), Stance: plan.Looking, Effects: []plan.Effect{effect("a", plan.Broken, "Flux")}}, applied: true,
			want: Verdict{Status{Failure, "1 not applied by Flux: a; 1 active, 1 inactive"}, Status{Success, "no drift"}, 1},
		},
		"NotAppliedByAnybody": {
			reason: "It may be that no tool applies the object.",
			plan:   plan.Plan{Want: want(), Stance: plan.Looking, Effects: []plan.Effect{{Kind: plan.Apply, On: id("a"), State: plan.Broken, Change: &plan.Step{Action: plan.Create}}}}, applied: true,
			want: Verdict{Status{Failure, "1 not applied: a; 1 active, 1 inactive"}, Status{Success, "no drift"}, 1},
		},
		"BrokenUpstream": {
			reason: "Missing effects of Crossplane are reported separately.",
			plan:   plan.Plan{Want: want(), Stance: plan.Looking, Effects: []plan.Effect{effect("c", plan.Broken, "")}}, applied: true,
			want: Verdict{Status{Failure, "1 broken: c; 1 active, 1 inactive"}, Status{Success, "no drift"}, 1},
		},
		"Held": {
			reason: "A hold waits for a user.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{held}}, applied: true,
			want: Verdict{Status{Failure, "1 held: h; 1 active, 1 inactive"}, Status{Success, "no drift"}, 3},
		},
		"FailedAndHeld": {
			reason: "A failure is more urgent than a hold.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{create, held}}, done: []plan.Outcome{{ID: id("a"), Err: errBoom}}, applied: true,
			want: Verdict{Status{Failure, "1 failed: a; 1 active, 1 inactive"}, Status{Success, "no drift"}, 1},
		},
		"NotReady": {
			reason: "An applied object may not be served yet.",
			plan:   plan.Plan{Want: want(), Steps: []plan.Step{create}}, done: []plan.Outcome{{ID: id("a"), NotReady: reason.StatusMessage.With("names conflict")}}, applied: true,
			want: Verdict{Status{Failure, "1 not ready: a; 1 active (+1), 1 inactive"}, Status{Success, "no drift"}, 1},
		},
		"ErrorFinding": {
			reason: "An error in the commit fails the pass even if the cluster is fine.",
			plan:   plan.Plan{Want: want(manifest.Finding{Severity: manifest.Error, Origin: manifest.Origin{Path: "p.yaml", Line: 3}, Message: "no"})}, applied: true,
			want: Verdict{Status{Failure, "p.yaml:3: no"}, Status{Success, "no drift"}, 1},
		},
		"Warning": {
			reason: "Warnings do not change the verdict.",
			plan:   plan.Plan{Want: want(manifest.Finding{Severity: manifest.Warning})}, applied: true,
			want: Verdict{Status{Success, "1 active, 1 inactive"}, Status{Success, "no drift"}, 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, New(tc.plan, tc.done, tc.applied).Verdict); diff != "" {
				t.Errorf("%s\nNew(...).Verdict (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	stopped := Failed(inventory.Sync{}, "", errors.New("a.yaml:3: broken\nb.yaml:1: too"))
	if diff := cmp.Diff(Verdict{Status{Error, "a.yaml:3: broken"}, Status{Error, "a.yaml:3: broken"}, 1}, stopped.Verdict); diff != "" {
		t.Errorf("a commit that cannot be rendered names the place first (-want +got):\n%s", diff)
	}
}

// hostile is a name that a hostile commit could use.
const hostile = "x\x1b[31m\u202e`@admin` <script>"

func hostileReport() Report {
	p := plan.Plan{
		Want: render.Desired{Findings: []manifest.Finding{{Message: hostile, Severity: manifest.Warning, Origin: manifest.Origin{Path: hostile}, Fix: hostile}}},
		Steps: []plan.Step{
			{Action: plan.Hold, Would: plan.Prune, ID: id(hostile), Judged: plan.Judged{Guard: "in use", Severity: plan.Block, Reason: reason.Failed.With(hostile)}},
			{Action: plan.Create, ID: id(hostile), Because: []activation.Activator{{Cause: activation.Matched, Policy: hostile, Pattern: hostile}}, Err: errors.New(hostile)},
		},
	}
	r := New(p, nil, false)
	r.Steps[0].Changes = []diff.Change{{Path: hostile, From: hostile, To: hostile}}
	return r
}

func TestHostileNames(t *testing.T) {
	var text, markdown bytes.Buffer
	if err := (Text{}).Write(&text, hostileReport()); err != nil {
		t.Fatal(err)
	}
	if err := Markdown(&markdown, hostileReport()); err != nil {
		t.Fatal(err)
	}
	var commands, quality, sarif bytes.Buffer
	if err := errors.Join(WorkflowCommands(&commands, hostileReport()), CodeQuality(&quality, hostileReport()), SARIF(&sarif, hostileReport())); err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]string{
		"text": text.String(), "markdown": markdown.String(), "github": commands.String(), "gitlab": quality.String(), "sarif": sarif.String(),
	} {
		if strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("%s lets escape sequences or changes of direction through:\n%q", name, out)
		}
	}
	for line := range strings.SplitSeq(markdown.String(), "\n") {
		// Every hostile text is between fences of two backticks, because it contains single ones.
		if before, _, ok := strings.Cut(line, "@admin"); ok && !strings.Contains(before, "``") {
			t.Errorf("markdown would mention, or run: %s", line)
		}
	}
}

func TestAfter(t *testing.T) {
	create := plan.Step{Action: plan.Create, Cause: plan.Commit, ID: id("a"), Definition: true}
	drifted := plan.Step{Action: plan.Update, Cause: plan.Drift, ID: id("d")}
	first := New(plan.Plan{Want: want(), Steps: []plan.Step{create, drifted}}, []plan.Outcome{{ID: id("a")}, {ID: id("d")}}, true)
	got := New(plan.Plan{Want: want()}, nil, true).After(first.Summary, nil).Verdict
	if diff := cmp.Diff(first.Verdict, got); diff != "" {
		t.Errorf("The status of a commit does not change without a change.\nAfter(...).Verdict (-want +got):\n%s", diff)
	}
}

func TestFights(t *testing.T) {
	step := plan.Step{Action: plan.Keep, Would: plan.Update, Cause: plan.Drift, Judged: plan.Judged{Guard: "fight", Reason: reason.Failed.With("fight: it is left alone for a while")}, ID: id("d")}
	fights := []facts.Fight{{ID: id("d"), Path: "spec.scope", Manager: "helm", Times: 4, Rests: true}, {ID: id("e"), Times: 3}}
	r := New(plan.Plan{Want: want(), Steps: []plan.Step{step}}, nil, true).After(Summary{}, fights)
	wanted := Verdict{
		Status{Success, "1 active, 1 inactive"},
		Status{Failure, "fight over d and 1 more: helm changed spec.scope again 4 times after Headgate corrected it"}, 3,
	}
	if diff := cmp.Diff(wanted, r.Verdict); diff != "" {
		t.Errorf("A fight needs a person.\nVerdict (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wanted, New(plan.Plan{Want: want()}, nil, true).After(Summary{}, fights).Verdict); diff != "" {
		t.Errorf("Also in a pass that finds all as it should be, between two blows.\nVerdict (-want +got):\n%s", diff)
	}
	var text, markdown bytes.Buffer
	if err := errors.Join((Text{}).Write(&text, r), Markdown(&markdown, r)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"! fight  CustomResourceDefinition.apiextensions.k8s.io/d\n    helm changed spec.scope again 4 times after Headgate corrected it\n",
		"! fight  CustomResourceDefinition.apiextensions.k8s.io/e\n    another writer deleted it again 3 times after Headgate corrected it\n",
		"Summary: 1 drifted, 2 fought over",
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("%q is not in the text:\n%s", line, &text)
		}
	}
	if !strings.Contains(markdown.String(), "### Fights: 2\n\n- `CustomResourceDefinition.apiextensions.k8s.io/d`\n  - `helm changed") {
		t.Errorf("markdown:\n%s", &markdown)
	}
}

func TestReportedDrift(t *testing.T) {
	steps := []plan.Step{
		{Action: plan.Keep, Would: plan.Update, Cause: plan.Drift, Judged: plan.Judged{Guard: "drift", Reason: reason.Failed.With("drift is reported, not corrected")}, ID: id("d"), Write: plan.Write{Takes: []diff.Taken{{Manager: "kubectl-edit"}}}},
		{Action: plan.Keep, Cause: plan.Retain, Judged: plan.Judged{Guard: "asked", Reason: reason.AnnotationKeeps.With("helm.sh/resource-policy", "keep")}, ID: id("r")},
	}
	r := New(plan.Plan{Steps: steps}, nil, true)
	var text, markdown bytes.Buffer
	if err := errors.Join((Text{}).Write(&text, r), Markdown(&markdown, r)); err != nil {
		t.Fatal(err)
	}
	const reason = "Remaining drift waits for a person, and does not count as retained."
	if diff := cmp.Diff(`= keep   CustomResourceDefinition.apiextensions.k8s.io/r
    kept: its annotation helm.sh/resource-policy: keep asks for it
= drift  CustomResourceDefinition.apiextensions.k8s.io/d
    drift is reported, not corrected
    drift: changed by kubectl-edit
Summary: 1 drifted, 1 unchanged
`, text.String()); diff != "" {
		t.Errorf("%s\ntext (-want +got):\n%s", reason, diff)
	}
	if diff := cmp.Diff(`**Headgate** 1 drifted, 1 unchanged

### Drifted: 1

- `+"`CustomResourceDefinition.apiextensions.k8s.io/d`"+`
  - `+"`drift is reported, not corrected`"+`
  - `+"`drift: changed by kubectl-edit`"+`

<details><summary>Retained: 1</summary>

- `+"`CustomResourceDefinition.apiextensions.k8s.io/r`"+`
  - asked: `+"`its annotation helm.sh/resource-policy: keep asks for it`"+`

</details>
`, markdown.String()); diff != "" {
		t.Errorf("%s\nmarkdown (-want +got):\n%s", reason, diff)
	}
}

func TestText(t *testing.T) {
	p := plan.Plan{Want: want(manifest.Finding{Severity: manifest.Warning, Origin: manifest.Origin{Path: "p.yaml", Line: 3}, Message: "matches nothing", Fix: "write the plural"}), Steps: []plan.Step{
		{Action: plan.Create, Cause: plan.Commit, ID: id("a"), Definition: true, Because: []activation.Activator{{Cause: activation.Matched, Policy: "team", Pattern: "*", Origin: manifest.Origin{Path: "p.yaml", Line: 7}}}},
		{Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "in use", Severity: plan.Block, Reason: reason.Failed.With("2 live objects would be deleted with it")}, ID: id("h")},
		{Action: plan.Keep, ID: id("k")},
	}}
	p.Want.Skipped = catalogue.Skipped{catalogue.Encrypted: 2, catalogue.NotManifest: 7} // users do not expect Headgate to apply these files
	var got bytes.Buffer
	if err := (Text{}).Write(&got, New(p, nil, false)); err != nil {
		t.Fatal(err)
	}
	want := `+ create CustomResourceDefinition.apiextensions.k8s.io/a
    active: policy team matches with "*" (p.yaml:7)
! hold   CustomResourceDefinition.apiextensions.k8s.io/h
    prune held by guard "in use": 2 live objects would be deleted with it
warning: p.yaml:3: matches nothing; write the plural
skipped: 2 × encrypted with SOPS
Summary: 1 to create, 1 held, 1 unchanged · 1 active (+1), 1 inactive · 0123456789ab
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("Write(...) (-want +got):\n%s", diff)
	}
}

func TestTextOfNothing(t *testing.T) {
	var got bytes.Buffer
	if err := (Text{}).Write(&got, New(plan.Plan{}, nil, true)); err != nil {
		t.Fatal(err)
	}
	if got.String() != "Summary: no changes\n" {
		t.Errorf("silence leaves people unsure that it worked: %q", got.String())
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, New(plan.Plan{Want: want()}, nil, false)); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"apiVersion", "kind", "verdict", "summary", "steps", "definitions", "findings"} {
		if got[key] == nil {
			t.Errorf("programs find %q missing", key)
		}
	}
}

// The exit code of a diff of an observe-only sync shows whether the cluster differs, although nothing would be written.
func TestLookedAtChanges(t *testing.T) {
	cases := map[string]struct {
		plan plan.Plan
		want bool
	}{
		"AsWanted":   {plan.Plan{Stance: plan.Looking, Steps: []plan.Step{{Action: plan.Keep, Cause: plan.Commit, ID: id("a")}}}, false},
		"NotApplied": {plan.Plan{Stance: plan.Looking, Effects: []plan.Effect{{Kind: plan.Apply, On: id("a"), State: plan.Pending, Change: &plan.Step{Action: plan.Create}}}}, true},
		"Drifted":    {plan.Plan{Stance: plan.Looking, Steps: []plan.Step{{Action: plan.Keep, Cause: plan.Drift, Judged: plan.Judged{Guard: "drift"}, ID: id("a")}}}, true},
		"Upstream":   {plan.Plan{Stance: plan.Looking, Effects: []plan.Effect{{Kind: plan.Accept, On: id("a"), State: plan.Pending}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := New(tc.plan, nil, false).Changes(); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
