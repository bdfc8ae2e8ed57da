package plan

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"
)

// sized is a CRD whose objects have a region, and maybe a size.
func sized(fields ...string) *unstructured.Unstructured {
	u := crd("buckets", "Bucket")
	properties := map[string]any{}
	for _, f := range fields {
		properties[f] = map[string]any{"type": "string"}
	}
	u.Object["spec"].(map[string]any)["versions"] = []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
		"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}}},
	}}}
	return u
}

// An update that breaks a kind is held only if an object of it is in the way, or if nobody can tell.
func TestFits(t *testing.T) {
	before, after := sized("region", "size"), sized("region")
	counted, fits := Question{Ask: Dependents, Of: CRD("buckets.example.org")}, Question{Ask: Fits, Of: CRD("buckets.example.org"), After: AtHand(after)}
	exist := Answer{Count: 214, Example: "Bucket default/a"}
	unserved := sized("region")
	unserved.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)["served"] = false
	cases := map[string]struct {
		reason  string
		after   *unstructured.Unstructured
		answers map[Question]Answer
		asks    *Question
		held    bool
		want    string
	}{
		"Asked":  {reason: "It looks at objects once it knows that there are any.", answers: map[Question]Answer{counted: exist}, asks: &fits, held: true, want: "214 custom resources exist"},
		"Loses":  {reason: "The hold names them.", answers: map[Question]Answer{counted: exist, fits: {Count: 3, Example: "3 of 214 set spec.size, which is lost, for example Bucket default/a"}}, held: true, want: "3 of 214 set spec.size, which is lost, for example Bucket default/a: change them first"},
		"Fits":   {reason: "Nobody sets what goes.", answers: map[Question]Answer{counted: exist, fits: {}}, want: "214 custom resources exist, and none loses a value or is refused"},
		"Unread": {reason: "What cannot be read is held.", answers: map[Question]Answer{counted: exist, fits: {Unknown: "forbidden"}}, held: true, want: "they cannot be looked at (forbidden)"},
		"Clients": {
			reason: "No object shows that a client uses a version.", after: unserved,
			answers: map[Question]Answer{counted: exist}, held: true, want: "the version is not served any more",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is := after
			if tc.after != nil {
				is = tc.after
			}
			o := wanted(t, is)
			seen := Observed{
				Inventory: Inventory{Sync: sync, Entries: map[manifest.ID]Entry{o.ID: {UID: "u", Digest: "before"}}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: live(is, "u")}, Kinds: core,
				Trials: map[manifest.ID]Trial{o.ID: {Live: before, After: is}}, Answers: tc.answers,
			}
			p, err := Compute(render.Desired{Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if (s.Action == Hold) != tc.held || !strings.Contains(s.Reason, tc.want) {
				t.Errorf("%s\n%s: %s, want %q", tc.reason, s.Action, s.Reason, tc.want)
			}
			if open := p.Open(); (len(open) == 1 && tc.asks != nil && open[0] == *tc.asks) != (tc.asks != nil) || tc.asks == nil && len(open) > 0 {
				t.Errorf("%s\nit asks %v", tc.reason, open)
			}
		})
	}
}

// Objects of two kinds are in the way if those of one are.
func TestAnswersTogether(t *testing.T) {
	loses, unknown := Answer{Count: 1, Example: "a"}, Answer{Unknown: "forbidden"}
	for name, tc := range map[string]struct{ a, b, want Answer }{
		"Neither": {Answer{}, Answer{}, Answer{}},
		"Both":    {loses, Answer{Count: 2, Example: "b"}, Answer{Count: 3, Example: "a; b"}},
		"First":   {loses, Answer{}, loses},
		"Second":  {Answer{}, loses, loses},
		"Unknown": {Answer{}, unknown, unknown},
		"Known":   {unknown, loses, loses},
	} {
		if got := tc.a.And(tc.b); got.Count != tc.want.Count || got.Example != tc.want.Example || got.Unknown != tc.want.Unknown {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// No object shows what breaks clients, or what no API server takes.
func TestJudging(t *testing.T) {
	s := Step{ID: CRD("buckets.example.org"), After: sized("region")}
	for name, tc := range map[string]struct {
		edit func(*Step, *Case)
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
		"Offline":     {rule: schema.Field, edit: func(_ *Step, c *Case) { c.Seen.Offline = true }},
		"Counted":     {rule: schema.Field, want: true, edit: func(_ *Step, c *Case) { c.Seen.Offline, c.Seen.Counts = true, true }},
		"Lean":        {rule: schema.Field, edit: func(s *Step, _ *Case) { *s = Replacement{ID: s.ID, After: s.After}.Step() }},
		"LeanAndHad":  {rule: schema.Field, want: true, edit: func(s *Step, _ *Case) { *s = Replacement{ID: s.ID, After: s.After, Whole: AtHand(s.After)}.Step() }},
		"Refused":     {rule: schema.Field, edit: func(s *Step, _ *Case) { s.After = nil }},
	} {
		s, c := s, Case{}
		if tc.edit != nil {
			tc.edit(&s, &c)
		}
		if _, can := judging(s, c, []schema.Change{{Rule: tc.rule, Breaking: true}}); can != tc.want {
			t.Errorf("%s: objects decide: %t", name, can)
		}
	}
}

// What is refused is in the way as much as what is lost.
func TestFittingRefused(t *testing.T) {
	after := sized("region", "size")
	if err := unstructured.SetNestedField(after.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any), "integer",
		"schema", "openAPIV3Schema", "properties", "spec", "properties", "size", "type"); err != nil {
		t.Fatal(err)
	}
	f, err := NewFitting(Question{Ask: Fits, After: AtHand(after)}, sized("region", "size"), "v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		spec := map[string]any{"region": "north"}
		if name == "b" {
			spec["size"] = "large"
		}
		f.Look(t.Context(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"name": name}, "spec": spec}})
	}
	if a := f.Answer(false); a.Count != 1 || !strings.HasPrefix(a.Example, "1 of 2 are refused (spec.size: ") {
		t.Errorf("%+v", a)
	}
}

// A fitting counts, and remembers no object. What it did not get to see is not known to fit.
func TestFitting(t *testing.T) {
	object := func(i int, size string) *unstructured.Unstructured {
		spec := map[string]any{"region": "north"}
		if size != "" {
			spec["size"] = size
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"name": fmt.Sprint("b", i), "namespace": "default"}, "spec": spec,
		}}
	}
	q := Question{Ask: Fits, After: AtHand(sized("region"))}
	f, err := NewFitting(q, sized("region", "size"), "v1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 214 {
		size := ""
		if i%100 == 7 {
			size = "large"
		}
		f.Look(t.Context(), object(i, size))
	}
	if a := f.Answer(true); a.Count != 3 || a.Example != "3 of 214 set spec.size, which is lost, for example Bucket default/b7" || a.Unknown != "" {
		t.Errorf("%+v", a)
	}
	if f, err = NewFitting(q, sized("region", "size"), "v1"); err != nil {
		t.Fatal(err)
	}
	for i := 0; !f.Full(); i++ {
		f.Look(t.Context(), object(i, ""))
	}
	if a := f.Answer(true); a.Unknown == "" {
		t.Errorf("it says that all fit, and did not look at all: %+v", a)
	}
	if a := f.Answer(false); a.Unknown != "" || a.Count != 0 {
		t.Errorf("%+v", a)
	}
}
