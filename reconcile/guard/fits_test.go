package guard

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An update that breaks a kind is held only if an object does not fit, or if that is not known.
func TestFits(t *testing.T) {
	before, after := given.Sized("region", "size"), given.Sized("region")
	counted, fits := question.Dependents{Of: plan.CRD("buckets.example.org")}, question.Fits{Of: plan.CRD("buckets.example.org"), After: plan.Decoded(after)}
	exist := question.Counted{Count: 214, Example: "Bucket default/a"}
	unserved := given.Sized("region")
	unserved.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["served"] = false
	cases := map[string]struct {
		reason  string
		after   *unstructured.Unstructured
		answers question.Answers
		asks    question.Any
		held    bool
		want    string
	}{
		"Asked":  {reason: "Headgate reads the objects only if any exist.", answers: question.Answers{counted: exist}, asks: fits, held: true, want: "214 custom resources exist"},
		"Loses":  {reason: "The hold names the objects that lose values.", answers: question.Answers{counted: exist, fits: question.Misfits{Count: 3, Reasons: []reason.Reason{reason.LosesField.With(3, 214, "spec.size", "Bucket default/a")}}}, held: true, want: "3 of 214 set spec.size, which is lost, for example Bucket default/a: change them first"},
		"Fits":   {reason: "No object sets the removed field.", answers: question.Answers{counted: exist, fits: question.Misfits{}}, want: "214 custom resources exist, and none loses a value or is refused"},
		"Unread": {reason: "If objects cannot be read, the update is held.", answers: question.Answers{counted: exist, fits: given.Unknown(reason.Failed.With("forbidden"))}, held: true, want: "they cannot be looked at (forbidden)"},
		"Clients": {
			reason: "Objects do not show which version a client uses.", after: unserved,
			answers: question.Answers{counted: exist}, held: true, want: "the version is not served any more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := after
			if tc.after != nil {
				is = tc.after
			}
			o := given.Wanted(t, is)
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{o.ID: {UID: "u", Digest: "before"}}},
					Kinds:     given.Kinds,
				},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: given.Live(is, "u")},
					Trials:  map[manifest.ID]facts.Trial{o.ID: {Live: before, After: is}},
				},
				Answers: tc.answers,
			}
			p, err := given.Compute(render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if (s.Action == plan.Hold) != tc.held || !strings.Contains(Sentence(s.Reason), tc.want) {
				t.Errorf("%s\n%s: %s, want %q", tc.reason, s.Action, s.Reason, tc.want)
			}
			if open := p.Open(); (len(open) == 1 && tc.asks != nil && open[0] == tc.asks) != (tc.asks != nil) || tc.asks == nil && len(open) > 0 {
				t.Errorf("%s\nit asks %v", tc.reason, open)
			}
		})
	}
}

// If a question concerns two kinds, the objects of either can hold the step.
func TestMisfitsTogether(t *testing.T) {
	loses, refused := question.Misfits{Count: 1, Reasons: []reason.Reason{reason.LosesField.With("a")}}, question.Misfits{Count: 2, Reasons: []reason.Reason{reason.IsRefused.With("b")}}
	for name, tc := range map[string]struct{ a, b, want question.Misfits }{
		"Neither": {question.Misfits{}, question.Misfits{}, question.Misfits{}},
		"Both":    {loses, refused, question.Misfits{Count: 3, Reasons: []reason.Reason{reason.LosesField.With("a"), reason.IsRefused.With("b")}}},
		"First":   {loses, question.Misfits{}, loses},
		"Second":  {question.Misfits{}, loses, loses},
	} {
		if diff := gocmp.Diff(tc.want, tc.a.And(tc.b)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Objects do not show what breaks clients, or what every API server refuses.
func TestJudging(t *testing.T) {
	s := plan.Step{ID: plan.CRD("buckets.example.org"), Write: plan.Write{After: given.Sized("region")}}
	replaced, breaks := facts.NewReplacement(given.Sized("region", "size"), given.Sized("region"))
	if !breaks {
		t.Fatal("nothing is tested")
	}
	for name, tc := range map[string]struct {
		edit func(*plan.Step, *draft.Case)
		rule schema.Rule
		want bool
	}{
		"Field":       {rule: schema.Field, want: true},
		"Unconverted": {rule: schema.Unconverted, want: true},
		"Removed":     {rule: schema.Removed},
		"Unserved":    {rule: schema.Unserved},
		"Subresource": {rule: schema.Subresource},
		"Selectable":  {rule: schema.Selectable},
		"Scope":       {rule: schema.Scope},
		"Names":       {rule: schema.Names},
		"Offline":     {rule: schema.Field, edit: func(_ *plan.Step, c *draft.Case) { c.Seen.Asks = nil }},
		"Counted":     {rule: schema.Field, want: true, edit: func(_ *plan.Step, c *draft.Case) { c.Seen.Stance = plan.Counting }},
		"Lean":        {rule: schema.Field, edit: func(s *plan.Step, _ *draft.Case) { *s = *replaced.Change }},
		"LeanAndHad": {rule: schema.Field, want: true, edit: func(s *plan.Step, _ *draft.Case) {
			*s = *replaced.MadeBy(manifest.ID{}, plan.Decoded(s.After)).Change
		}},
		"Refused": {rule: schema.Field, edit: func(s *plan.Step, _ *draft.Case) { s.After = nil }},
	} {
		s, c := s, draft.Case{Seen: facts.Observed{Asks: new([]question.Any)}}
		if tc.edit != nil {
			tc.edit(&s, &c)
		}
		if _, can := judging(s, c, []schema.Change{{Rule: tc.rule, Breaking: true}}); can != tc.want {
			t.Errorf("%s: objects decide: %t", name, can)
		}
	}
}
