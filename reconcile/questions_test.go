package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A pruner is a cluster with a namespace that the sync owns.
type pruner struct {
	answers func(question.Any) any // nil answers nothing
	rounds  [][]question.Any       // the questions of each round
}

var team = manifest.ID{Kind: "Namespace", Name: "team"}

func (c *pruner) Observe(_ context.Context, want render.Desired) (plan.Observed, error) {
	s := inventory.Sync{Namespace: "ns", Name: "prod"}
	return plan.Observed{
		Kinds:     map[schema.GroupKind]plan.Kind{{Kind: "Namespace"}: {Version: "v1", Resource: "namespaces"}},
		Inventory: inventory.Inventory{Sync: s, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{team: {UID: "u"}}},
		Objects: map[manifest.ID]*metav1.PartialObjectMetadata{team: {
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{
				Name: "team", UID: "u", Labels: map[string]string{inventory.SyncLabel: s.Key()}, Annotations: map[string]string{inventory.InventoryAnnotation: s.Key()},
			},
		}},
	}.Ask(want)
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
		"Destroy": func(r Reconciler) (report.Report, error) { return r.Destroy(t.Context(), plan.Delete) },
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
	_, err := Reconciler{}.plan(t.Context(), render.Desired{}, place, plan.NoEnding, func(plan.Plan) []question.Any {
		asked++
		return []question.Any{question.Present{Of: manifest.ID{Kind: "Namespace", Name: fmt.Sprint("n", asked)}}}
	})
	if !errors.Is(err, errOpen) || !strings.Contains(err.Error(), fmt.Sprint("present of Namespace n", asked)) {
		t.Errorf("after %d rounds: %v", asked, err)
	}
}
