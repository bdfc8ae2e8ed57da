package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A pruner is a cluster with one object that the sync owns: a namespace, unless of says otherwise.
type pruner struct {
	of      manifest.ID
	held    inventory.Holds        // what the pass before held
	answers func(question.Any) any // nil answers nothing
	rounds  [][]question.Any       // the questions of each round
}

var team = manifest.ID{Kind: "Namespace", Name: "team"}

func (c *pruner) Observe(_ context.Context, want render.Desired) (facts.Observed, error) {
	s, of := inventory.Sync{Namespace: "ns", Name: "prod"}, cmp.Or(c.of, team)
	return demand.Ask(facts.Observed{
		Ground: facts.Ground{
			Kinds:     map[schema.GroupKind]plan.Kind{{Group: of.Group, Kind: of.Kind}: {Version: "v1", Resource: "things"}},
			Inventory: inventory.Inventory{Sync: s, ResourceVersion: "1", Owner: want.Owner, Held: c.held, Entries: map[manifest.ID]inventory.Entry{of: {UID: "u"}}},
		},
		Given: facts.Given{Now: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{of: {
			TypeMeta: metav1.TypeMeta{APIVersion: schema.GroupVersion{Group: of.Group, Version: "v1"}.String(), Kind: of.Kind},
			ObjectMeta: metav1.ObjectMeta{
				Name: of.Name, UID: "u", Labels: map[string]string{inventory.SyncLabel: s.Key()}, Annotations: map[string]string{inventory.InventoryAnnotation: s.Key()},
			},
		}}},
	}, want)
}

func (c *pruner) Answer(_ context.Context, questions []question.Any) (question.Answers, error) {
	c.rounds = append(c.rounds, questions)
	all := question.Answers{}
	for _, q := range questions {
		if c.answers != nil {
			all[q] = c.answers(q)
		}
	}
	return all, nil
}

func (c *pruner) Apply(context.Context, plan.Plan) ([]plan.Outcome, error) {
	return nil, errors.New("nothing may be applied")
}

// A plan with open questions is no plan: a pass, a destroy and a diff fail, name the questions, and write nothing.
func TestQuestionsWithoutAnswer(t *testing.T) {
	for name, pass := range map[string]func(Reconciler) (report.Report, error){
		"Run":     func(r Reconciler) (report.Report, error) { return r.Run(t.Context(), "") },
		"Destroy": func(r Reconciler) (report.Report, error) { return r.Destroy(t.Context(), plan.Destroying) },
		"Diff": func(r Reconciler) (report.Report, error) {
			result, err := r.Diff(t.Context(), "")
			if err != nil {
				result = report.Failed(r.Sync, "", err)
			}
			return result, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			mute := &pruner{}
			result, err := pass(Reconciler{Source: commits{"": fstest.MapFS{"none.yaml": {}}}, Observer: mute, Applier: mute, Sync: inventory.Sync{Namespace: "ns", Name: "prod"}})
			if !errors.Is(err, errOpen) || !strings.Contains(err.Error(), "inside of Namespace team") || result.Verdict.ExitCode == report.ExitSuccess {
				t.Errorf("error %v, exit code %d", err, result.Verdict.ExitCode)
			}
			if len(mute.rounds) != mostRounds {
				t.Errorf("%d rounds, want %d", len(mute.rounds), mostRounds)
			}
		})
	}
}

// Questions may lead to other questions, but not for ever.
func TestQuestionsWithoutEnd(t *testing.T) {
	place := &pruner{answers: question.Any.Nothing}
	asked := 0
	_, err := Reconciler{}.plan(t.Context(), render.Desired{}, place, func(plan.Plan) []question.Any {
		asked++
		return []question.Any{question.Present{Of: manifest.ID{Kind: "Namespace", Name: fmt.Sprint("n", asked)}}}
	})
	if !errors.Is(err, errOpen) || !strings.Contains(err.Error(), fmt.Sprint("present of Namespace n", asked)) {
		t.Errorf("after %d rounds: %v", asked, err)
	}
}

// A prune that waits for an approval is computed three times until it is approved: the pass asks the forge together with the cluster,
// because the pass before held the prune. The first pass cannot know that, and needs one more.
func TestComputesUntilApproved(t *testing.T) {
	want := render.Desired{Revision: "1", Owner: render.OwnerCrossplane}
	var given approval.Given
	var computed, asked int
	place := &pruner{of: crossplane.MRD("boats.example.org"), answers: question.Any.Nothing}
	r := Reconciler{Sync: inventory.Sync{Namespace: "ns", Name: "prod"}, computes: func() { computed++ }, OnForge: func(context.Context, string) (approval.Given, error) {
		asked++
		return given, nil
	}}
	made := func(action plan.Action, computes int) plan.Plan {
		t.Helper()
		computed, asked = 0, 0
		p, err := r.plan(t.Context(), want, place, plan.Plan.Open)
		if err != nil || len(p.Steps) != 1 || p.Steps[0].Action != action || computed != computes || asked != 1 {
			t.Fatalf("%v: %d Computes and %d requests to the forge, want %s after %d and 1: %+v", err, computed, asked, action, computes, p.Steps)
		}
		return p
	}
	held := made(plan.Hold, 3)
	place.held = inventory.Holds{{Guard: "empty", Action: "prune", Digest: held.Approval.Digest}}
	made(plan.Hold, 2)
	given = approval.Given{inventory.InComment: {{ID: "comment 7", Digests: []string{held.Approval.Digest}, By: "@bob", Expires: metav1.NewTime(time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC))}}}
	made(plan.Prune, 3)
	place.held = nil
	made(plan.Prune, 4)
}

// While the forge cannot be read, what is held stays held, and a note says so once.
func TestForgeThatCannotBeRead(t *testing.T) {
	place := &pruner{answers: question.Any.Nothing}
	r := Reconciler{OnForge: func(context.Context, string) (approval.Given, error) { return nil, errGone }}
	p, err := r.plan(t.Context(), render.Desired{Revision: "1"}, place, plan.Plan.Open)
	notes := slices.DeleteFunc(p.Notes, func(f manifest.Finding) bool { return !strings.Contains(f.Message, errGone.Error()) })
	if err != nil || p.Count(plan.Hold) != 1 || len(notes) != 1 {
		t.Errorf("%v: %+v, %v", err, p.Steps, p.Notes)
	}
}
