package guard

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Without these tests, inverted conditions in these functions once went unnoticed.

// Only the label and the annotation together mark an object as ours, because either alone is easily copied.
func TestOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*metav1.PartialObjectMetadata)
		want bool
	}{
		"Both":            {func(*metav1.PartialObjectMetadata) {}, true},
		"Label":           {func(m *metav1.PartialObjectMetadata) { m.Annotations = nil }, false},
		"Annotation":      {func(m *metav1.PartialObjectMetadata) { m.Labels = nil }, false},
		"OtherLabel":      {given.Labelled(inventory.SyncLabel, "other"), false},
		"OtherAnnotation": {given.Annotated(inventory.InventoryAnnotation, "other"), false},
	} {
		if got := inventory.Ours(given.Live(given.ConfigMap("a"), "u", tc.edit), given.Sync); got != tc.want {
			t.Errorf("%s: ours %t, want %t", name, got, tc.want)
		}
	}
}

// The setting in the inventory counts even if the live object no longer has it.
func TestKeptByPolicy(t *testing.T) {
	for _, p := range []inventory.ManagementPolicy{inventory.Undeletable, inventory.Observable} {
		if _, is := ownership.Kept(p, given.Live(given.ConfigMap("a"), "u")); !is {
			t.Errorf("%s of the inventory is ignored", p)
		}
		if _, is := ownership.Kept(inventory.Default, given.Live(given.ConfigMap("a"), "u", given.Annotated(inventory.PolicyAnnotation, string(p)))); !is {
			t.Errorf("%s of the live object is ignored", p)
		}
		id := manifest.IDOf(given.ConfigMap("a"))
		c := draft.Case{Seen: facts.Observed{
			Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Entries: map[manifest.ID]inventory.Entry{id: {UID: "u", Policy: p}}}},
			Live:   facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(given.ConfigMap("a"), "u")}},
		}}
		if r := asked(plan.Step{Action: plan.Prune, ID: id}, c); r.Response() != plan.Retained {
			t.Errorf("the guard ignores %s of the inventory", p)
		}
	}
	if !inventory.Observable.Observes() || !inventory.ObservableAndDeletable.Observes() || inventory.Undeletable.Observes() || inventory.Default.Observes() {
		t.Error("what is only looked at is not written, and nothing else is left alone")
	}
}

// No commit may own the namespace of the inventory.
func TestHome(t *testing.T) {
	c := draft.Case{Seen: facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}}}}
	if r := home(plan.Step{ID: manifest.ID{Kind: "Namespace", Name: given.Sync.Namespace}}, c); r.Response() != plan.Retained {
		t.Error("the namespace of the inventory is prunable")
	}
	if r := home(plan.Step{ID: manifest.ID{Kind: "Namespace", Name: "other"}}, c); r.Response() != plan.Allowed {
		t.Error("another one is not")
	}
}

// For each of these kinds, the guard counts the objects that a deletion would also delete.
func TestHasDependents(t *testing.T) {
	for gk, want := range map[schema.GroupKind]bool{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:         true,
		{Group: "apiextensions.crossplane.io", Kind: "ManagedResourceDefinition"}: true, {Group: "apiextensions.crossplane.io", Kind: "CompositeResourceDefinition"}: true,
		{Group: "apiextensions.crossplane.io", Kind: "Composition"}: true, {Group: "apiextensions.crossplane.io", Kind: "ManagedResourceActivationPolicy"}: false,
		{Group: "pkg.crossplane.io", Kind: "Provider"}: true, {Group: "pkg.crossplane.io", Kind: "Configuration"}: true, {Group: "pkg.crossplane.io", Kind: "Function"}: true,
		{Group: "aws.m.upbound.io", Kind: "ProviderConfig"}: true, {Group: "aws.m.upbound.io", Kind: "ClusterProviderConfig"}: true, {Kind: "ConfigMap"}: false,
	} {
		if got := hasDependents(manifest.ID{Group: gk.Group, Kind: gk.Kind, Name: "a"}); got != want {
			t.Errorf("%s: %t, want %t", gk, got, want)
		}
	}
}

// A Usage protects an object by name or through the label, and an unreadable Usage protects it, too.
func TestProtectedBy(t *testing.T) {
	id := manifest.IDOf(given.ConfigMap("a"))
	q := question.Protectors{Of: id}
	served := map[schema.GroupKind]plan.Kind{crossplane.Usages[0]: {Resource: "usages"}}
	for name, tc := range map[string]struct {
		kinds   map[schema.GroupKind]plan.Kind
		label   string
		answers question.Answers
		want    plan.Response
	}{
		"NotServed":  {nil, "", nil, plan.Allowed},
		"Label":      {nil, "true", nil, plan.Held},
		"NotRead":    {served, "", nil, plan.Held},
		"Unreadable": {served, "", question.Answers{q: given.Unknown(reason.Failed.With("forbidden"))}, plan.Held},
		"Named":      {served, "", question.Answers{q: question.Counted{Count: 1}}, plan.Held},
		"LabelOnly":  {served, "true", question.Answers{q: question.Counted{}}, plan.Held},
		"Free":       {served, "", question.Answers{q: question.Counted{}}, plan.Allowed},
	} {
		c := draft.Case{Seen: facts.Observed{Ground: facts.Ground{Kinds: tc.kinds}, Answers: tc.answers, Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(given.ConfigMap("a"), "u", given.Labelled("crossplane.io/in-use", tc.label))}}}}
		if r := protected(plan.Step{Action: plan.Prune, ID: id}, c); r.Response() != tc.want {
			t.Errorf("%s: %v (%s), want %v", name, r.Response(), r.Reason, tc.want)
		}
	}
}

// Opt-out annotations have the same syntax as in the tools that introduced them.
func TestSaysSo(t *testing.T) {
	got := []bool{
		ownership.SaysSo(map[string]string{"a/B": "C"}, "a/b", "c"),
		ownership.SaysSo(map[string]string{"a": "x, Prune=false"}, "a", "prune=false"),
		ownership.SaysSo(map[string]string{"a": "x,y"}, "a", "z"),
		ownership.SaysSo(map[string]string{"b": "z"}, "a", "z"),
	}
	if diff := cmp.Diff([]bool{true, true, false, false}, got); diff != "" {
		t.Error(diff)
	}
	for _, out := range []struct{ key, value string }{
		{"client.lifecycle.config.k8s.io/deletion", "detach"},
		{"cli-utils.sigs.k8s.io/on-remove", "keep"},
		{"helm.sh/resource-policy", "keep"},
		{"kustomize.toolkit.fluxcd.io/prune", "disabled"},
		{"kustomize.toolkit.fluxcd.io/reconcile", "disabled"},
		{"kustomize.toolkit.fluxcd.io/ssa", "Ignore"},
		{"argocd.argoproj.io/sync-options", "Prune=false"},
		{"argocd.argoproj.io/sync-options", "Prune=confirm"},
		{"argocd.argoproj.io/sync-options", "Delete=false"},
		{"argocd.argoproj.io/sync-options", "Delete=confirm"},
	} {
		_, annotated := ownership.Kept(inventory.Default, given.Live(given.ConfigMap("a"), "u", given.Annotated(out.key, out.value)))
		_, labelled := ownership.Kept(inventory.Default, given.Live(given.ConfigMap("a"), "u", given.Labelled(out.key, out.value)))
		if !annotated || !labelled {
			t.Errorf("%s is ignored", out.key)
		}
	}
}

// An object from a repository that Flux or Argo CD applied before keeps its settings. Headgate follows each setting or reports it.
func TestApplySettings(t *testing.T) {
	const ssa, force, options = "kustomize.toolkit.fluxcd.io/ssa", "kustomize.toolkit.fluxcd.io/force", "argocd.argoproj.io/sync-options"
	const nothing, leave, refuse = plan.Allowed, plan.Retained, plan.Held
	type edits = []func(*metav1.PartialObjectMetadata)
	for name, tc := range map[string]struct {
		reason         string
		edits          []func(*metav1.PartialObjectMetadata)
		create, update plan.Response
		why            reason.Reason // of the update
	}{
		"Ignore":        {"Flux neither creates nor updates the object.", edits{given.Annotated(ssa, "Ignore")}, leave, leave, reason.CommitAsksToLeave.With(ssa, "Ignore")},
		"IfNotPresent":  {"Flux creates the object once and then leaves it to others.", edits{given.Annotated(ssa, "IfNotPresent")}, nothing, leave, reason.CommitAsksToLeave.With(ssa, "IfNotPresent")},
		"Label":         {"Flux reads labels, too, in upper and lower case.", edits{given.Labelled(ssa, "ifnotpresent")}, nothing, leave, reason.CommitAsksToLeave.With(ssa, "IfNotPresent")},
		"Merge":         {"Headgate leaves other managers' fields unchanged anyway.", edits{given.Annotated(ssa, "Merge")}, nothing, nothing, reason.Reason{}},
		"Override":      {"Override is Flux's default.", edits{given.Annotated(ssa, "Override")}, nothing, nothing, reason.Reason{}},
		"Force":         {"Flux would delete the object and create it again.", edits{given.Annotated(force, "Enabled")}, refuse, refuse, reason.AsksToReplace.With(force, "enabled")},
		"ForceLabel":    {"Flux also reads this setting from a label.", edits{given.Labelled(force, "enabled")}, refuse, refuse, reason.AsksToReplace.With(force, "enabled")},
		"NoForce":       {"A disabled setting has no effect.", edits{given.Annotated(force, "disabled")}, nothing, nothing, reason.Reason{}},
		"Replace":       {"Argo CD would replace the object.", edits{given.Annotated(options, "Replace=true")}, refuse, refuse, reason.AsksToReplace.With(options, "Replace=true")},
		"ReplaceAmong":  {"The option may be one of several.", edits{given.Annotated(options, "ServerSideApply=true, Force=true")}, refuse, refuse, reason.AsksToReplace.With(options, "Force=true")},
		"OtherOptions":  {"Headgate's own behaviour already matches these options.", edits{given.Annotated(options, "ServerSideApply=true,Replace=false")}, nothing, nothing, reason.Reason{}},
		"IgnoredForce":  {"Flux does not replace an object that it does not write.", edits{given.Annotated(ssa, "Ignore"), given.Annotated(force, "enabled")}, leave, leave, reason.CommitAsksToLeave.With(ssa, "Ignore")},
		"ForcedAtFirst": {"The object is written once, and that write would have to replace it.", edits{given.Annotated(ssa, "IfNotPresent"), given.Annotated(force, "enabled")}, refuse, leave, reason.CommitAsksToLeave.With(ssa, "IfNotPresent")},
	} {
		t.Run(name, func(t *testing.T) {
			u := given.ConfigMap("a")
			m := given.Live(u, "u")
			m.Annotations, m.Labels = map[string]string{}, map[string]string{}
			for _, edit := range tc.edits {
				edit(m)
			}
			u.SetAnnotations(m.Annotations)
			u.SetLabels(m.Labels)
			o := given.Wanted(t, u)
			s, asked := plan.Step{ID: o.ID}, map[manifest.ID]facts.Asked{o.ID: {Object: o}}
			s.Action = plan.Create
			if r := left(s, draft.Case{Asked: asked}); r.Response() != tc.create {
				t.Errorf("%s\ncreate: %v (%v), want %v", tc.reason, r.Response(), r.Reason, tc.create)
			}
			s.Action = plan.Update
			seen := facts.Observed{Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: given.Live(given.ConfigMap("a"), "u")}}}
			r := left(s, draft.Case{Asked: asked, Seen: seen})
			if r.Response() != tc.update {
				t.Errorf("%s\nupdate: %v, want %v", tc.reason, r.Response(), tc.update)
			}
			if diff := cmp.Diff(tc.why, r.Reason); diff != "" {
				t.Errorf("%s\nupdate (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// onPrune returns the first ruling of a guard on a prune, by the rows that hold in the stance of the case.
func onPrune(name plan.GuardName, c draft.Case, s plan.Step) plan.Ruling {
	for _, g := range (Guarding{}).Guards() {
		if g.Name == name && g.Phase == draft.Prunes && c.Seen.Stance.In(g.In) {
			if r := g.Rule(c)(s); r.Response() != plan.Allowed {
				return r
			}
		}
	}
	return allowed
}

// An inventory that is being rebuilt prunes nothing, and a destroy stops for a review.
func TestRebuiltEnds(t *testing.T) {
	for ends, want := range map[plan.Stance]plan.Response{plan.Applying: plan.Retained, plan.Destroying: plan.Held} {
		c := draft.Case{Seen: facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync, Rebuilt: true}, Stance: ends}}}
		if r := onPrune(Rebuilt, c, plan.Step{Action: plan.Prune, ID: manifest.IDOf(given.ConfigMap("a"))}); r.Response() != want {
			t.Errorf("%q: %v (%s), want %v", ends, r.Response(), r.Reason, want)
		}
	}
}

// An object is a copy if another field manager owns its marks, or one of them.
func TestAppliedByUs(t *testing.T) {
	const label, annotation = `"f:labels":{"f:headgate.dev/sync":{}}`, `"f:annotations":{"f:config.k8s.io/owning-inventory":{}}`
	for name, tc := range map[string]struct {
		owned string
		want  bool
	}{
		"Both": {label + "," + annotation, true}, "Label": {label, false}, "Annotation": {annotation, false},
	} {
		o := given.Live(given.ConfigMap("a"), "u", func(m *metav1.PartialObjectMetadata) {
			fields := &metav1.FieldsV1{}
			fields.SetRawString(`{"f:metadata":{` + tc.owned + `}}`)
			m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: inventory.Manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields}}
		})
		if got := inventory.AppliedByUs(o, given.Sync); got != tc.want {
			t.Errorf("%s: applied by us %t, want %t", name, got, tc.want)
		}
	}
}

// Sentence and Awaited format reasons for users.
var Sentence, Awaited = words.Of, words.Awaited
