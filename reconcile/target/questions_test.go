package target

import (
	"context"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The questions of a preview, and their answers, are the same in another process.
func TestQuestionsOfAChild(t *testing.T) {
	register()
	of := plan.CRD("buckets.example.org")
	unknown := given.Unknown(reason.CountForbidden.With("forbidden"))
	for _, tc := range []struct {
		question question.Any
		answers  []any
	}{
		{question.Dependents{Of: of}, []any{question.Counted{}, question.Counted{Count: 2, Example: "Bucket a", These: []manifest.ID{{Kind: "Bucket", Name: "a"}}}, unknown}},
		{question.Controls{Of: of}, []any{question.Counted{}}},
		{question.Stored{Of: of}, []any{[]string(nil), []string{"v1", "v2"}}},
		{question.Present{Of: of}, []any{false, true}},
		{question.Fits{Of: of, After: plan.Decoded(given.Sized("region"))}, []any{question.Misfits{}, question.Misfits{Count: 1, Reasons: []reason.Reason{reason.LosesField.With(1, 2, "spec.size", "Bucket a")}}}},
	} {
		for _, a := range tc.answers {
			var there question.Any
			sent, err := forChild(tc.question)
			if err != nil {
				t.Fatal(err)
			}
			p := &parent{ctx: t.Context()}
			p.with.Observer = answering(func(q question.Any) any { there = q; return a })
			var got childQuestion
			var reply, back []any
			if err := passes(sent, &got); err != nil {
				t.Fatal(err)
			}
			if err := p.Count([]childQuestion{got}, &reply); err != nil {
				t.Fatal(err)
			}
			if err := passes(reply, &back); err != nil {
				t.Fatal(err)
			}
			content := cmp.Comparer(func(a, b plan.FullDefinition) bool {
				x, _ := a.Content()
				y, _ := b.Content()
				return cmp.Equal(x.Object, y.Object)
			})
			if diff := cmp.Diff(tc.question, there, content); diff != "" {
				t.Errorf("%T (-want +got):\n%s", tc.question, diff)
			}
			if diff := cmp.Diff(a, answerOfParent(back[0]), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the answer to %T (-want +got):\n%s", tc.question, diff)
			}
		}
	}
}

// The process that reads a pull request of someone else must not learn the content of objects, nor make the parent apply something.
func TestQuestionsThatAChildMayNotAsk(t *testing.T) {
	id := manifest.ID{Kind: "Secret", Namespace: "team", Name: "token"}
	for _, q := range []question.Any{question.Leftovers{Of: id}, question.AppliedBefore{Of: id}, question.Applied{Of: id}, question.Departs{Of: id}, question.Ready{Of: id}} {
		asked, err := forChild(q)
		if err != nil {
			t.Fatal(err)
		}
		p := &parent{ctx: t.Context()}
		p.with.Observer = answering(func(q question.Any) any { return q.Nothing() })
		if err := p.Count([]childQuestion{asked}, new([]any)); err == nil {
			t.Errorf("a child may ask %T", q)
		}
	}
}

// answering is an observer that answers every question.
type answering func(question.Any) any

func (a answering) Observe(context.Context, render.Desired) (facts.Observed, error) {
	return facts.Observed{}, nil
}

func (a answering) Answer(_ context.Context, questions []question.Any) (question.Answers, error) {
	all := question.Answers{}
	for _, q := range questions {
		all[q] = a(q)
	}
	return all, nil
}

// passes encodes a value and decodes it again, as between two processes.
func passes(from, to any) error {
	data, err := toGob(from)
	if err != nil {
		return err
	}
	return fromGob(data, to)
}
