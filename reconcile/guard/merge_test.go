package guard

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ofMerge runs the guards of a phase on one step, as a plan does: until the first ruling that is more than a note.
func ofMerge(phase draft.Phase, s plan.Step, c draft.Case) plan.Ruling {
	for _, g := range (Guarding{}).OfMerge() {
		if g.Phase != phase || g.Commit != nil {
			continue
		}
		r := g.Rule(c)(s)
		if s.Rulings = append(s.Rulings, r); r.Severity != plan.Note {
			return r
		}
	}
	return plan.Ruling{}
}

// ofCommit returns the rulings of some guards of the phase Merge on the commit.
func ofCommit(c draft.Case, names ...plan.GuardName) (all []plan.Ruling) {
	for _, g := range (Guarding{}).OfMerge() {
		if g.Commit != nil && slices.Contains(names, g.Name) {
			all = append(all, g.Commit(c)...)
		}
	}
	return all
}

// changing returns the update of a served definition of the kind Bucket.
func changing(reason reason.Reason, changes ...schema.Change) plan.Step {
	live := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scope": "Cluster", "names": map[string]any{"kind": "Bucket"}, "versions": int64(1)}}}
	after := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scope": "Cluster", "names": map[string]any{"kind": "Bucket"}, "versions": int64(2)}}}
	return plan.Step{
		Action: plan.Update, ID: plan.CRD("buckets.example.org"), Serves: true, Judged: plan.Judged{Reason: reason},
		Write: facts.Replacement(live, after, schema.Difference{Changes: changes}, nil),
	}
}

// The word that a ruling leads to decides whether people merge, and whether a bot does.
func TestMerge(t *testing.T) {
	spec := schema.Change{Rule: schema.Field, Version: "v1", Path: "spec.a", Breaking: true}
	status := schema.Change{Rule: schema.Field, Version: "v1", Path: "status.a", Breaking: true}
	unconverted := schema.Change{Rule: schema.Unconverted, Version: "v1", Path: "spec.a", Breaking: true}
	bucket, err := render.NewObject(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"name": "a"}}}, manifest.Origin{Path: "a.yaml", Line: 1})
	if err != nil {
		t.Fatal(err)
	}
	used := render.Desired{Objects: []render.Object{bucket}}
	image := func(action plan.Action, id manifest.ID, from, to string) plan.Step {
		return plan.Step{Action: action, ID: id, Write: plan.Write{
			Live:  &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"package": from}}},
			After: &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"package": to}}},
		}}
	}
	inactive := changing(reason.Reason{}, spec)
	inactive.Serves = false
	held := changing(reason.Reason{}, spec)
	held.Action, held.Would = plan.Hold, plan.Update
	failing := changing(reason.Reason{}, spec)
	failing.Err = errors.New("no")
	drops := func(reason reason.Reason) plan.Step {
		return plan.Step{Action: plan.Keep, Cause: plan.Retain, ID: crossplane.MRD("buckets.example.org"), Serves: true, Judged: plan.Judged{Reason: reason}}
	}
	provider := manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "p"}
	none, some := reason.NoObjects.With(), reason.ObjectsExist.With(int64(2), "")
	unseen := reason.BreaksUnseen.With([]schema.Change{spec})
	fit := reason.BreaksNoObject.With([]schema.Change{spec}, int64(2))
	prunes := func(id manifest.ID, serves bool) plan.Step {
		return plan.Step{Action: plan.Prune, ID: id, Serves: serves, Judged: plan.Judged{Reason: reason.UsersUnseen.With()}}
	}
	for name, tc := range map[string]struct {
		reason   string
		phase    draft.Phase
		step     plan.Step
		want     render.Desired
		counts   bool
		severity plan.Severity
		code     reason.Code
		claims   int
	}{
		"GainsFields":   {"New optional fields affect no object.", draft.Merge, changing(reason.Reason{}, schema.Change{Rule: schema.Field}), used, true, plan.Note, "", 0},
		"Inactive":      {"No API serves the kind.", draft.Merge, inactive, used, true, plan.Note, "", 0},
		"ListWasAtomic": {"The API server treats both types alike.", draft.Merge, changing(reason.Reason{}, schema.Change{Rule: "x-kubernetes-list-type", To: `"atomic"`}), used, true, plan.Note, "", 0},
		"Fails":         {"The report counts the failure.", draft.Merge, failing, used, true, plan.Note, "", 0},
		"Creates":       {"A new object changes no existing one.", draft.Merge, plan.Step{Action: plan.Create, ID: manifest.ID{Kind: "ConfigMap"}}, used, true, plan.Note, "", 0},
		"Compared":      {"The definitions of the package were compared.", draft.Merge, image(plan.Update, provider, "r.example/p:v1", "r.example/p:v2"), render.Desired{}, true, plan.Note, "", 0},
		"SameImage": {
			"Another tag of the installed image changes nothing.", draft.Merge, image(plan.Update, manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "same"}, "r.example/q:v1", "r.example/q:v2"),
			render.Desired{Packages: []catalogue.Package{{Source: "r.example/q", Digest: "sha256:a"}}}, true, plan.Note, "", 0,
		},
		"BegunDeletion": {"The deletion began before.", draft.Merge, plan.Step{Action: plan.Prune, ID: manifest.ID{Kind: "ConfigMap"}, Removal: plan.Removal{Deleting: true}}, used, true, plan.Note, "", 0},

		"OtherObject":     {"Headgate does not know the effects of the change.", draft.Merge, image(plan.Update, manifest.ID{Kind: "ConfigMap"}, "a", "b"), used, true, plan.Look, reason.NotJudged, 0},
		"ImageConfig":     {"A new ImageConfig can replace the images of existing packages.", draft.Merge, plan.Step{Action: plan.Create, ID: manifest.ID{Group: crossplane.Packages, Kind: "ImageConfig", Name: "a"}}, used, true, plan.Look, reason.AddsObject, 0},
		"Deletes":         {"A deletion needs a look.", draft.Merge, plan.Step{Action: plan.Prune, ID: manifest.ID{Kind: "ConfigMap"}}, used, true, plan.Look, reason.DeletesObject, 0},
		"DeletesInactive": {"An inactive definition has no objects.", draft.Merge, prunes(crossplane.MRD("a.b"), false), used, false, plan.Look, reason.DeletesObject, 0},
		"Deactivates":     {"A deactivation deletes the CRD.", draft.Merge, plan.Step{Action: plan.Prune, Deactivates: true, ID: plan.CRD("a.b")}, used, true, plan.Look, reason.DeactivatesKind, 0},
		"Pattern":         {"Objects may be refused.", draft.Merge, changing(reason.Reason{}, schema.Change{Rule: schema.Undecided}), used, true, plan.Look, reason.MergePattern, 0},
		"Default":         {"A changed default changes the behaviour of objects.", draft.Merge, changing(reason.Reason{}, schema.Change{Rule: schema.Default}), used, true, plan.Look, reason.MergeDefault, 0},
		"Sharing":         {"Writers that share the list would overwrite each other.", draft.Merge, changing(reason.Reason{}, schema.Change{Rule: "x-kubernetes-list-type", From: `"map"`, To: `"atomic"`}), used, true, plan.Look, reason.MergeSharing, 0},
		"Deprecated":      {"A deprecated version will be removed later.", draft.Merge, changing(reason.Reason{}, schema.Change{Rule: schema.Deprecated}), used, true, plan.Look, reason.MergeDeprecates, 0},
		"StorageMoves":    {"A webhook must convert every stored object.", draft.Merge, changing(reason.Reason{}, schema.Change{Rule: schema.Storage}), used, true, plan.Look, reason.MergeMovesStorage, 0},
		"StatusUnused":    {"Controllers write the status again, and nothing in the commit reads it.", draft.Merge, changing(reason.Reason{}, status), render.Desired{}, false, plan.Look, reason.MergeBreaksStatus, 0},
		"SpecFits":        {"A pass applies the change if no object loses a value or is refused.", draft.Merge, changing(fit, spec), used, true, plan.Look, reason.MergeBreaksNoObject, 0},
		"SpecUnused":      {"Neither the cluster nor the commit uses the field.", draft.Merge, changing(reason.Reason{}, spec), render.Desired{}, true, plan.Look, reason.MergeBreaksUnused, 0},
		"DroppedUnused":   {"Neither the cluster nor the commit uses the kind.", draft.MergeEffects, drops(reason.Both.With(reason.KindDropped.With(), none)), render.Desired{}, true, plan.Look, reason.DropsUnusedKind, 0},

		"Held":                {"A guard holds the update.", draft.Merge, held, render.Desired{}, true, plan.Block, reason.MergeBreaks, 0},
		"SpecUsed":            {"The commit uses the field.", draft.Merge, changing(reason.Reason{}, spec), used, true, plan.Block, reason.MergeBreaks, 1},
		"Unconverted":         {"The schemas are compatible, but fields of stored objects would be lost.", draft.Merge, changing(reason.Reason{}, unconverted), used, true, plan.Block, reason.MergeUnconverted, 1},
		"UnconvertedToo":      {"A breaking schema is more serious than a missing conversion.", draft.Merge, changing(reason.Reason{}, spec, unconverted), used, true, plan.Block, reason.MergeBreaks, 1},
		"SpecUnknown":         {"Without a cluster, it is unknown whether the field is used.", draft.Merge, changing(unseen, spec), render.Desired{}, false, plan.Block, reason.MergeBreaks, 1},
		"SpecNotAsked":        {"There is no cluster to ask.", draft.Merge, changing(reason.Reason{}, spec), render.Desired{}, false, plan.Block, reason.MergeBreaks, 1},
		"SpecUncountable":     {"The cluster did not answer.", draft.Merge, changing(reason.BreaksUncountable.With([]schema.Change{spec}, reason.Failed.With("forbidden")), spec), render.Desired{}, true, plan.Block, reason.MergeBreaks, 1},
		"SpecFitsUnconverted": {"All objects fit, but another webhook may convert them.", draft.Merge, changing(reason.Both.With(fit, reason.WebhookUnseen.With()), spec), used, true, plan.Block, reason.MergeBreaks, 2},
		"SpecOfPackage":       {"Only the step of the package names the objects.", draft.MergeEffects, changing(reason.Reason{}, spec), render.Desired{}, true, plan.Block, reason.MergeBreaks, 1},
		"StatusUsed":          {"Objects of the commit may read the status.", draft.Merge, changing(reason.Reason{}, status), used, true, plan.Block, reason.MergeBreaks, 1},
		"StatusAndSpec":       {"The worse of the two changes counts.", draft.Merge, changing(unseen, status, spec), render.Desired{}, false, plan.Block, reason.MergeBreaks, 1},
		"WebhookUnknown":      {"Stored objects may become unreadable.", draft.Merge, changing(reason.WebhookUnseen.With()), render.Desired{}, false, plan.Block, reason.MergeStorage, 2},
		"DroppedHasObject":    {"No controller would reconcile the existing objects.", draft.MergeEffects, drops(reason.Both.With(reason.KindDropped.With(), some)), render.Desired{}, true, plan.Block, reason.DropsKind, 0},
		"DroppedUnknown":      {"Without a cluster, it is unknown whether objects exist.", draft.MergeEffects, drops(reason.KindDropped.With()), render.Desired{}, false, plan.Block, reason.DropsKind, 0},
		"DroppedUsed":         {"The commit uses the kind.", draft.MergeEffects, drops(reason.Both.With(reason.KindDropped.With(), none)), used, true, plan.Block, reason.DropsKind, 0},
		"DeletesKind":         {"Without a cluster, it is unknown whether objects exist.", draft.Merge, prunes(plan.CRD("a.b"), true), used, false, plan.Block, reason.DeletesKind, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := draft.Case{Want: tc.want, Seen: facts.Observed{Ground: facts.Ground{Stance: comparing(tc.counts)}, Asks: asking(tc.counts)}, Steps: []plan.Step{tc.step}, Bumps: []plan.Bump{{Source: "r.example/p", By: provider}}}
			if tc.phase == draft.MergeEffects {
				c.Steps, c.Effects = nil, []plan.Effect{{Kind: plan.Install, On: tc.step.ID, Change: &tc.step}}
			}
			r := ofMerge(tc.phase, tc.step, c)
			if r.Severity != tc.severity || r.Reason.Code != tc.code || len(r.Claims) != tc.claims {
				t.Errorf("%s\n%d %v with %d claims, want %d %s with %d", tc.reason, r.Severity, r.Reason, len(r.Claims), tc.severity, tc.code, tc.claims)
			}
		})
	}
}

// A policy may activate an inactive definition later, so a person is told that it breaks or goes.
func TestMergeInactive(t *testing.T) {
	breaks := changing(reason.Reason{}, schema.Change{Rule: schema.Field, Path: "spec.a", Breaking: true})
	grows := changing(reason.Reason{}, schema.Change{Rule: schema.Field, Path: "spec.a"})
	breaks.Serves, grows.Serves = false, false
	goes := plan.Step{Action: plan.Keep, ID: crossplane.MRD("a.b")}
	served := plan.Step{Action: plan.Keep, ID: crossplane.MRD("a.b"), Serves: true}
	for name, tc := range map[string]struct {
		step  plan.Step
		phase draft.Phase
		want  reason.Code
	}{
		"Breaks": {breaks, draft.Merge, reason.InactiveBreaks}, "Grows": {grows, draft.Merge, ""}, "Package": {breaks, draft.MergeEffects, reason.InactiveBreaks},
		"Goes": {goes, draft.MergeEffects, reason.InactiveBreaks}, "Served": {served, draft.MergeEffects, ""}, "Kept": {goes, draft.Merge, ""},
	} {
		rows := (Guarding{}).OfMerge()
		i := slices.IndexFunc(rows, func(g draft.Guard) bool { return g.Name == Inactive && g.Phase == tc.phase })
		if i < 0 {
			t.Fatalf("%s: no guard rules on it", name)
		}
		if r := rows[i].Rule(draft.Case{})(tc.step); r.Reason.Code != tc.want || r.Severity != plan.Note {
			t.Errorf("%s: %d %v, want a note %q", name, r.Severity, r.Reason, tc.want)
		}
	}
}

// A new version of a package may change a field of a definition of which no guard knows what it affects.
func TestMergeUnjudgedOfPackage(t *testing.T) {
	s := changing(reason.Reason{})
	s.After.Object["metadata"] = map[string]any{"finalizers": []any{"example.org/a"}}
	if r := ofMerge(draft.MergeEffects, s, draft.Case{}); r.Severity != plan.Look || r.Reason.Code != reason.NotJudged {
		t.Errorf("%d %v, want a look at %s", r.Severity, r.Reason, reason.NotJudged)
	}
	s.Serves = false
	if r := ofMerge(draft.MergeEffects, s, draft.Case{}); r.Severity != plan.Note {
		t.Errorf("no API serves objects of it: %d %v", r.Severity, r.Reason)
	}
}

// A person approves what a cluster asks about the package, and not about the definition that it installs.
func TestMergeClaimsOfPackage(t *testing.T) {
	provider := manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "p"}
	breaks := changing(reason.Reason{}, schema.Change{Rule: schema.Field, Path: "spec.a", Breaking: true})
	installs := plan.Step{Action: plan.Update, ID: provider, Judged: plan.Judged{Reason: reason.WebhookUnseen.With()}}
	c := draft.Case{
		Steps: []plan.Step{installs}, Bumps: []plan.Bump{{Package: "dir", By: provider}},
		Effects: []plan.Effect{{Kind: plan.Install, On: breaks.ID, Package: "dir", Change: &breaks}},
	}
	r := ofMerge(draft.MergeEffects, breaks, c)
	if len(r.Claims) != 2 || r.Claims[0] != installs.ClaimAs(Schema, approval.Breaks, plan.Update) || r.Claims[1] != installs.ClaimAs(Schema, approval.Storage, plan.Update) {
		t.Errorf("the claims are %v", r.Claims)
	}
}

// A definition that nothing names in full needs a look, because a later version of its package may add others.
func TestMergeActivates(t *testing.T) {
	decided := func(name string, active bool, reasons ...activation.Activator) render.DecidedDefinition {
		return render.DecidedDefinition{Decision: activation.Decision{Definition: &catalogue.Definition{Name: name}, Active: active, Reasons: reasons}}
	}
	full := activation.Activator{Cause: activation.Matched, Pattern: "buckets.example.org"}
	wild := activation.Activator{Cause: activation.Matched, Pattern: "*.example.org"}
	base := render.Desired{Definitions: []render.DecidedDefinition{decided("stays", true, wild), decided("leaves", true, wild), decided("goes", true, wild)}}
	want := render.Desired{Definitions: []render.DecidedDefinition{
		decided("buckets.example.org", true, wild, full), decided("wide.example.org", true, wild), decided("own.example.org", true, activation.Activator{Cause: activation.Declared}),
		decided("all.example.org", true, activation.Activator{Cause: activation.NoSafeStart}), decided("stays", true, wild), decided("leaves", false), decided("goes", false), decided("never", false),
	}}
	c := draft.Case{Want: want, Seen: facts.Observed{Comparison: facts.Comparison{Base: &base}}, Steps: []plan.Step{{Action: plan.Prune, Deactivates: true, ID: crossplane.MRD("goes")}}}
	got := map[string]plan.Severity{}
	for _, r := range ofCommit(c, Activates, StaysActive) {
		got[r.Of.Name] = r.Severity
	}
	expected := map[string]plan.Severity{
		"buckets.example.org": plan.Note, "wide.example.org": plan.Look, "own.example.org": plan.Note, "all.example.org": plan.Look, "leaves": plan.Look,
	}
	if !maps.Equal(got, expected) {
		t.Errorf("%v, want %v", got, expected)
	}
}

// Schemas that only the commit keeps may differ from those of the image, so a person looks at them.
func TestMergeUnconfirmed(t *testing.T) {
	const outline = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"buoys.sea"},"spec":{"group":"sea","names":{"kind":"Buoy","plural":"buoys"},"scope":"Cluster"}}`
	of := func(hash, document string) render.Desired {
		documents, err := manifest.NewReader(nil, manifest.Limits{}, nil).Inline("package.yaml", document)
		if err != nil {
			t.Fatal(err)
		}
		return render.Desired{Packages: []catalogue.Package{{Source: "acme/sea", Version: "v1", Digest: "one", Kept: &catalogue.Kept{Hash: hash, Documents: documents}}}}
	}
	base, want := of("1", outline), of("2", strings.Replace(outline, `"scope"`, `"versions":[{"name":"v1"}],"scope"`, 1))
	all := ofCommit(draft.Case{Want: want, Seen: facts.Observed{Comparison: facts.Comparison{Base: &base}}}, Unconfirmed)
	if len(all) != 1 || all[0].Reason.Code != reason.SchemasUnconfirmed || all[0].Severity != plan.Look {
		t.Errorf("%+v, want a look %s", all, reason.SchemasUnconfirmed)
	}
}

// The first object for Crossplane's package manager, and the last one, decide who makes the CRDs of a new cluster.
func TestMergeOwner(t *testing.T) {
	base := render.Desired{Definitions: make([]render.DecidedDefinition, 1)}
	for name, tc := range map[string]struct {
		before, after *render.Given
		want          reason.Code
	}{
		"First": {nil, &render.Given{Kind: "Provider", Name: "p"}, reason.FirstForCrossplane},
		"Last":  {&render.Given{Kind: "Provider", Name: "p"}, nil, reason.LastForCrossplane},
	} {
		was := base
		was.Given = tc.before
		all := ofCommit(draft.Case{Want: render.Desired{Given: tc.after}, Seen: facts.Observed{Comparison: facts.Comparison{Base: &was}}}, Owner)
		if len(all) != 1 || all[0].Reason.Code != tc.want || all[0].Severity != plan.Look {
			t.Errorf("%s: %+v, want a look %s", name, all, tc.want)
		}
	}
}

// If Headgate cannot read what a package changes, nobody knows what a merge does. A commit that repairs a package is not to blame.
func TestMergeUnread(t *testing.T) {
	c := draft.Case{Bumps: []plan.Bump{{Source: "read", From: "v1", To: "v2"}, {Source: "gone", From: "v1", Unknown: "no answer"}, {Source: "odd", From: "v1", To: "v2", Unknown: "not a schema"}, {Source: "mended", To: "v2", Unknown: "no such tag"}}}
	got := map[plan.Severity]int{}
	for _, r := range ofCommit(c, Unread) {
		got[r.Severity]++
	}
	if !maps.Equal(got, map[plan.Severity]int{plan.Block: 2, plan.Look: 1}) {
		t.Errorf("%v", got)
	}
}

// A half-finished upgrade may block the next one, so the preview names it before the merge.
func TestMergeControls(t *testing.T) {
	by := manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: "provider-sea"}
	q := question.Controls{Of: by}
	for name, tc := range map[string]struct {
		reason   string
		counts   bool
		answers  question.Answers
		severity plan.Severity
		code     reason.Code
	}{
		"Offline":  {"There is no cluster to ask.", false, nil, plan.Note, ""},
		"NotAsked": {"The guard asks.", true, nil, plan.Note, ""},
		"Fine":     {"The active revision controls all installed objects.", true, question.Answers{q: question.Counted{}}, plan.Note, ""},
		"Stale":    {"An object is still controlled by an older revision.", true, question.Answers{q: question.Counted{Count: 2, Example: "CRD a"}}, plan.Look, reason.ControlledByAnother},
		"Unknown":  {"The cluster did not answer.", true, question.Answers{q: given.Unknown(reason.CountForbidden.With("forbidden"))}, plan.Note, reason.ControlUnknown},
	} {
		c := draft.Case{Seen: facts.Observed{Ground: facts.Ground{Stance: comparing(tc.counts)}, Asks: asking(tc.counts), Answers: tc.answers}, Bumps: []plan.Bump{{By: by}, {}}}
		var r plan.Ruling
		if all := ofCommit(c, Controls); len(all) > 0 {
			r = all[0]
		}
		if r.Severity != tc.severity || r.Reason.Code != tc.code {
			t.Errorf("%s: %s\n%+v", name, tc.reason, r)
		}
	}
}

// Without a cluster, only the commit shows which fields are used. If a use is missed, the preview turns green.
func TestMergeUsed(t *testing.T) {
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
			step := changing(reason.Reason{}, schema.Change{Rule: schema.Field, Breaking: true})
			r := usedBySteps(draft.Case{Want: tc.want, Steps: []plan.Step{step}})(step)
			if got := r.Reason.Code == reason.UnusedInCommit; got != tc.unused || got == (len(r.At) > 0) {
				t.Errorf("%s\nunused is %t, want %t", tc.reason, got, tc.unused)
			}
		})
	}
}

// comparing returns the stance of a comparison. counts is set if a cluster answers questions.
func comparing(counts bool) plan.Stance {
	if counts {
		return plan.Counting
	}
	return plan.Comparing
}

// asking returns where such a comparison collects its questions; nil if nobody is asked.
func asking(counts bool) *[]question.Any {
	if counts {
		return new([]question.Any)
	}
	return nil
}
