package guard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leaving returns a commit with only one CRD, and a cluster with further objects of the sync.
func leaving(t *testing.T, objects ...*metav1.PartialObjectMetadata) (render.Desired, facts.Observed) {
	t.Helper()
	kept := given.Wanted(t, given.CRD("others", "Other"))
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: given.Sync, Record: inventory.Record{Format: inventory.Format}, Entries: map[manifest.ID]inventory.Entry{kept.ID: {UID: "kept"}}},
			Kinds: map[schema.GroupKind]plan.Kind{
				{Group: "example.org", Kind: "Bucket"}:         {Resource: "buckets", Namespaced: true},
				{Group: "pkg.crossplane.io", Kind: "Provider"}: {Resource: "providers"},
				{Kind: "ConfigMap"}:                            {Version: "v1", Resource: "configmaps", Namespaced: true},
				kept.ID.GroupKind():                            given.Kinds[kept.ID.GroupKind()],
			},
		},
		Live:    facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{kept.ID: given.Live(given.CRD("others", "Other"), "kept")}},
		Answers: question.Answers{},
	}
	for _, o := range objects {
		id := manifest.ID{Group: groupOf(o.APIVersion), Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		seen.Inventory.Entries[id] = inventory.Entry{UID: o.UID}
		seen.Objects[id] = o
	}
	return render.Desired{Objects: []render.Object{kept}}, seen
}

func groupOf(apiVersion string) string {
	group, _, grouped := strings.Cut(apiVersion, "/")
	if !grouped {
		return ""
	}
	return group
}

func aThing(apiVersion, kind, namespace, name string, edit ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return given.Live(u, "u", edit...)
}

// described returns all steps except keeps, with what they wait for.
func described(p plan.Plan) []string {
	var all []string
	for _, s := range p.Steps {
		if s.Action == plan.Keep {
			continue
		}
		text := fmt.Sprintf("%s %s %s", s.Action, s.ID.Kind, s.ID.Name)
		for _, part := range []string{string(s.Guard), Awaited(s)} {
			if part != "" {
				text += " · " + part
			}
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func TestGoFirst(t *testing.T) {
	bucket := func(name string, edit ...func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		return aThing("example.org/v1", "Bucket", "default", name, edit...)
	}
	bucketCRD := given.Live(given.CRD("buckets", "Bucket"), "u")
	provider := aThing("pkg.crossplane.io/v1", "Provider", "", "aws")
	ofCRD, ofProvider := question.Dependents{Of: plan.CRD("buckets.example.org")}, question.Dependents{Of: manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "aws"}}
	named := func(names ...string) question.Counted {
		a := question.Counted{Count: int64(len(names)), Example: "Bucket default/" + names[0]}
		for _, name := range names {
			a.These = append(a.These, manifest.ID{Group: "example.org", Kind: "Bucket", Namespace: "default", Name: name})
		}
		return a
	}
	unused := question.Answers{ofCRD: question.Counted{}, ofProvider: question.Counted{}}
	cases := map[string]struct {
		reason  string
		live    []*metav1.PartialObjectMetadata
		answers question.Answers
		how     Guarding
		ends    plan.Stance
		want    []string
		says    string // part of the hold's reason
	}{
		"Unused": {
			reason: "Nothing uses the objects.", live: []*metav1.PartialObjectMetadata{bucketCRD, provider}, answers: unused,
			want: []string{"prune CustomResourceDefinition buckets.example.org", "prune Provider aws"},
		},
		"Together": {
			reason:  "One commit removes a kind and all its objects: they are pruned in order, without an approval.",
			live:    []*metav1.PartialObjectMetadata{bucketCRD, bucket("a")},
			answers: question.Answers{ofCRD: named("a")},
			want:    []string{"prune Bucket a", "prune CustomResourceDefinition buckets.example.org · the Bucket default/a to be gone"},
		},
		"TogetherMany": {
			reason:  "A reason with many objects stays one sentence.",
			live:    []*metav1.PartialObjectMetadata{bucketCRD, bucket("a"), bucket("b"), bucket("c"), bucket("d"), bucket("e")},
			answers: question.Answers{ofCRD: named("a", "b", "c", "d", "e")}, how: Guarding{MaxPrunes: 9},
			want: []string{
				"prune Bucket a", "prune Bucket b", "prune Bucket c", "prune Bucket d", "prune Bucket e",
				"prune CustomResourceDefinition buckets.example.org · the Bucket default/a to be gone, and for the Bucket default/b to be gone, and for the Bucket default/c to be gone, and for 2 more",
			},
		},
		"OneMore": {
			reason:  "Another user's object holds the CRD, and the reason names it.",
			live:    []*metav1.PartialObjectMetadata{bucketCRD, bucket("a")},
			answers: question.Answers{ofCRD: named("a", "theirs")},
			want:    []string{"hold CustomResourceDefinition buckets.example.org · in use", "prune Bucket a"}, says: "for example Bucket default/theirs",
		},
		"MoreThanNamed": {
			reason:  "Headgate knows only the count of the objects beyond the first few, so it cannot tell whose they are.",
			live:    []*metav1.PartialObjectMetadata{provider, bucket("a")},
			answers: question.Answers{ofProvider: question.Counted{Count: 11, Example: "Bucket default/a", These: named("a").These}},
			want:    []string{"hold Provider aws · in use", "prune Bucket a"},
		},
		"OfProvider": {
			reason:  "A Provider is pruned after the objects of its kinds.",
			live:    []*metav1.PartialObjectMetadata{provider, bucket("a")},
			answers: question.Answers{ofProvider: named("a")},
			want:    []string{"prune Bucket a", "prune Provider aws · the Bucket default/a to be gone"},
		},
		"Kept": {
			reason:  "A held object still uses its kind.",
			live:    []*metav1.PartialObjectMetadata{bucketCRD, bucket("a", given.Annotated(crossplane.PausedAnnotation, "true"))},
			answers: question.Answers{ofCRD: named("a")},
			want:    []string{"hold Bucket a · paused", "hold CustomResourceDefinition buckets.example.org · in use"},
		},
		"TooMany": {
			reason:  "One approval covers all of them.",
			live:    []*metav1.PartialObjectMetadata{bucketCRD, bucket("a"), bucket("b"), bucket("c")},
			answers: question.Answers{ofCRD: named("a", "b", "c")},
			want: []string{
				"hold Bucket a · many", "hold Bucket b · many", "hold Bucket c · many", "hold CustomResourceDefinition buckets.example.org · many",
			},
		},
		"Ending": {
			reason:  "A destroy deletes one tier at a time and waits for each.",
			live:    []*metav1.PartialObjectMetadata{bucketCRD, bucket("a")},
			answers: question.Answers{ofCRD: named("a")}, ends: plan.Destroying,
			want: []string{"hold CustomResourceDefinition others.example.org · in use", "prune Bucket a", "prune CustomResourceDefinition buckets.example.org"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			commit, seen := leaving(t, tc.live...)
			seen.Answers, seen.Stance = tc.answers, tc.ends
			if tc.ends != plan.Applying {
				commit.Objects = nil
			}
			p, err := given.Compute(commit, seen, tc.how.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, described(p)); diff != "" {
				t.Errorf("%s\nsteps (-want +got):\n%s", tc.reason, diff)
			}
			for _, s := range p.Steps {
				if s.Action == plan.Hold && !strings.Contains(Sentence(s.Reason), tc.says) {
					t.Errorf("%s\nthe reason: %s", tc.reason, s.Reason)
				}
			}
		})
	}
}

// An object that is being deleted is not deleted again, does not count as a prune, and is reported as being deleted.
func TestDeleting(t *testing.T) {
	deleting := func(m *metav1.PartialObjectMetadata) {
		m.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
		m.Finalizers = []string{"example.org/slow"}
	}
	waitsForUs := func(m *metav1.PartialObjectMetadata) {
		deleting(m)
		m.Finalizers = []string{plan.ProtectFinalizer}
	}
	usage := func(name string) *metav1.PartialObjectMetadata {
		return aThing("protection.crossplane.io/v1beta1", "ClusterUsage", "", name)
	}
	maps := func(n int, edit ...func(*metav1.PartialObjectMetadata)) []*metav1.PartialObjectMetadata {
		var all []*metav1.PartialObjectMetadata
		for i := range n {
			all = append(all, given.Live(given.ConfigMap(fmt.Sprintf("m%d", i)), "u", edit...))
		}
		return all
	}
	cases := map[string]struct {
		reason               string
		live                 []*metav1.PartialObjectMetadata
		held, writes, prunes int
	}{
		"Many":     {"The deletion of more than three of twenty objects is held.", maps(4), 4, 0, 0},
		"Deleting": {"Objects that are being deleted need no request, so they are not held.", maps(4, deleting), 0, 0, 4},
		"OurFinalizer": {
			"The object is being deleted, and only the finalizer of Headgate delays it.", maps(1, waitsForUs), 0, 1, 1,
		},
		"OurUsages": {
			"Usages that Headgate made are pruned with the objects that they protect, and do not count.",
			append(maps(3), usage("headgate-0123456789abcdef"), usage("headgate-fedcba9876543210")), 0, 5, 5,
		},
		"TheirUsages": {
			"A Usage that a user made counts like any other object.",
			append(maps(3), usage("headgate-backup")), 4, 0, 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			commit, seen := leaving(t, tc.live...)
			seen.Inventory.Entries[manifest.ID{Kind: "ConfigMap", Name: "elsewhere"}] = inventory.Entry{}
			p, err := given.Compute(commit, seen, Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			writes := 0
			for _, s := range p.Steps {
				if s.Writes() {
					writes++
				}
				if s.Deleting && Sentence(s.Reason) != "deletion started at 2026-05-01T12:00:00Z and waits for finalizer example.org/slow; check the controller that owns it" {
					t.Errorf("the reason: %s", s.Reason)
				}
			}
			if diff := cmp.Diff([]int{tc.held, tc.writes, tc.prunes}, []int{p.Count(plan.Hold), writes, p.Count(plan.Prune)}); diff != "" {
				t.Errorf("%s\nheld, writes, prunes (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReplaced(t *testing.T) {
	of := func(kind, name string, fields ...string) *unstructured.Unstructured {
		u := given.CRD(strings.TrimSuffix(name, ".example.org"), "Bucket")
		if kind != "CustomResourceDefinition" {
			u.SetAPIVersion("apiextensions.crossplane.io/v1")
			u.SetKind(kind)
		}
		properties := map[string]any{}
		for _, f := range fields {
			properties[f] = map[string]any{"type": "string"}
		}
		spec := u.Object["spec"].(map[string]any)
		spec["scope"] = "Namespaced"
		spec["versions"] = []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "properties": properties},
		}}}
		return u
	}
	provider := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider", "metadata": map[string]any{"name": "aws"}, "spec": map[string]any{"package": "example.org/aws:v2"},
	}}
	o := given.Wanted(t, provider)
	replacing := func(kind, name string, after ...string) plan.Effect {
		e, breaks := facts.NewReplacement(of(kind, name, "a", "b"), of(kind, name, after...))
		if !breaks {
			t.Fatalf("%s is replaced by the like of it", name)
		}
		return e.MadeBy(o.ID, nil)
	}
	const mrd, xrd = "ManagedResourceDefinition", "CompositeResourceDefinition"
	buckets, queues, apps := replacing(mrd, "buckets.example.org", "a"), replacing(mrd, "queues.example.org", "b"), replacing(xrd, "apps.example.org", "a")
	used := question.Counted{Count: 1, Example: "Bucket default/logs"}
	whole := func(e plan.Effect) plan.Effect { return e.MadeBy(o.ID, plan.Decoded(of(e.On.Kind, e.On.Name, "a"))) }
	wholeBuckets, wholeApps := whole(buckets), whole(apps)
	fitBuckets := question.Fits{Of: plan.CRD("buckets.example.org"), After: wholeBuckets.Change.AfterWhole()}
	fitApps := question.Fits{Of: apps.On, After: wholeApps.Change.AfterWhole()}
	ofBuckets, ofQueues := question.Dependents{Of: plan.CRD("buckets.example.org")}, question.Dependents{Of: plan.CRD("queues.example.org")}
	ofApps := question.Dependents{Of: apps.On}
	cases := map[string]struct {
		reason   string
		effects  []plan.Effect
		inactive bool
		stance   plan.Stance
		answers  question.Answers
		opens    []question.Any
		want     string // "" if the step is allowed
	}{
		"Nothing": {reason: "Most versions break nothing."},
		"Used": {
			reason: "Stored objects would lose the field.", effects: []plan.Effect{buckets}, answers: question.Answers{ofBuckets: used},
			want: "buckets.example.org is installed with it, and its schema breaks: v1 b is removed; 1 custom resource exists, for example Bucket default/logs: change them first, or approve this",
		},
		"Unused":   {reason: "No object uses the definition.", effects: []plan.Effect{buckets}, answers: question.Answers{ofBuckets: question.Counted{}}},
		"Inactive": {reason: "An inactive definition has no kind.", effects: []plan.Effect{buckets}, inactive: true},
		"Uncounted": {
			reason: "All affected kinds are counted in one round.", effects: []plan.Effect{buckets, queues, apps}, opens: []question.Any{ofBuckets, ofQueues, ofApps},
			want: "buckets.example.org is installed with it, and its schema breaks: v1 b is removed; Headgate has not counted the custom resources; and so it is with 2 definitions more",
		},
		"Several": {
			reason: "The reason names one definition and the number of others.", effects: []plan.Effect{buckets, queues}, answers: question.Answers{ofBuckets: question.Counted{}, ofQueues: given.Unknown(reason.Failed.With("forbidden"))},
			want: "queues.example.org is installed with it, and its schema breaks: v1 a is removed; custom resources cannot be counted (forbidden), so it counts as in use",
		},
		"Composite": {
			reason: "A Configuration affects composite resources and claims.", effects: []plan.Effect{apps}, answers: question.Answers{ofApps: used},
			want: "apps.example.org is installed with it, and its schema breaks: v1 b is removed; 1 custom resource exists, for example Bucket default/logs: change them first, or approve this",
		},
		"Asked": {
			reason: "Headgate reads objects only of kinds that have any.", effects: []plan.Effect{wholeBuckets, wholeApps}, answers: question.Answers{ofBuckets: used, ofApps: question.Counted{}}, opens: []question.Any{fitBuckets},
			want: "buckets.example.org is installed with it, and its schema breaks: v1 b is removed; 1 custom resource exists, for example Bucket default/logs: change them first, or approve this",
		},
		"CompositeAsked": {
			reason: "Headgate also reads composite resources and claims.", effects: []plan.Effect{wholeApps}, answers: question.Answers{ofApps: used}, opens: []question.Any{fitApps},
			want: "apps.example.org is installed with it, and its schema breaks: v1 b is removed; 1 custom resource exists, for example Bucket default/logs: change them first, or approve this",
		},
		"Loses": {
			reason: "The reason names the object that loses a value.", effects: []plan.Effect{wholeBuckets}, answers: question.Answers{ofBuckets: used, fitBuckets: question.Misfits{Count: 1, Reasons: []reason.Reason{reason.LosesField.With(1, 1, "b", "Bucket default/logs")}}},
			want: "buckets.example.org is installed with it, and its schema breaks: v1 b is removed; 1 of 1 set b, which is lost, for example Bucket default/logs: change them first, or approve this",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, Owner: render.OwnerCrossplane, Entries: map[manifest.ID]inventory.Entry{o.ID: {UID: "u", Digest: "before"}}},
					Natural:   render.OwnerCrossplane,
					Kinds:     map[schema.GroupKind]plan.Kind{{Group: "pkg.crossplane.io", Kind: "Provider"}: {}},
				},
				Live: facts.Live{
					Objects: map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: given.Live(provider, "u")},
					Trials:  map[manifest.ID]facts.Trial{o.ID: {Live: provider, After: provider}},
					Effects: tc.effects,
				},
				Answers:  tc.answers,
				Upstream: facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{"buckets.example.org": {Active: !tc.inactive}, "queues.example.org": {Active: true}}},
			}
			p, err := given.Compute(render.Desired{Owner: render.OwnerCrossplane, Objects: []render.Object{o}}, seen, Guarding{}.Guards()...)
			if err != nil {
				t.Fatal(err)
			}
			s := p.Steps[0]
			if diff := cmp.Diff(tc.want, Sentence(s.Reason)); diff != "" || (s.Action == plan.Hold) != (tc.want != "") {
				t.Errorf("%s\n%s, reason (-want +got):\n%s", tc.reason, s.Action, diff)
			}
			if diff := cmp.Diff(tc.opens, p.Open()); diff != "" {
				t.Errorf("%s\nquestions (-want +got):\n%s", tc.reason, diff)
			}
			if (p.Approval != nil) != (tc.want != "") {
				t.Errorf("a person who saw it may let it pass: %v", p.Approval)
			}
		})
	}
}

func TestReplaces(t *testing.T) {
	of := func(image, policy string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"package": image, "revisionActivationPolicy": policy}}}
	}
	cases := map[string]struct {
		reason string
		trial  facts.Trial
		want   bool
	}{
		"Version":   {"Crossplane installs a new version at once.", facts.Trial{Live: of("a:v1", "Automatic"), After: of("a:v2", "Automatic")}, true},
		"Label":     {"The same version is installed already.", facts.Trial{Live: of("a:v1", "Automatic"), After: of("a:v1", "Automatic")}, false},
		"Manual":    {"With manual activation, a user activates the new version and can check it then.", facts.Trial{Live: of("a:v1", "Manual"), After: of("a:v2", "Manual")}, false},
		"Automatic": {"A change to automatic activation installs the version that waited.", facts.Trial{Live: of("a:v2", "Manual"), After: of("a:v2", "Automatic")}, true},
		"Refused":   {"A refused update installs nothing.", facts.Trial{Live: of("a:v1", "Automatic"), Err: given.ErrBoom}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.trial.Replaces(); got != tc.want {
				t.Errorf("%s\nReplaces() = %t", tc.reason, got)
			}
		})
	}
}

// A replacement stays in memory while an update is held, so it must not contain two schemas of a megabyte.
func TestReplacementIsSmall(t *testing.T) {
	version := func(fields ...string) *unstructured.Unstructured {
		properties := map[string]any{}
		for _, f := range fields {
			properties[f] = map[string]any{"type": "string"}
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition", "metadata": map[string]any{"name": "apps.example.org"},
			"spec": map[string]any{"scope": "Cluster", "versions": []any{map[string]any{"name": "v1", "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "properties": properties},
			}}}},
		}}
	}
	before, after := version("a", "b"), version("a")
	unstructured.RemoveNestedField(after.Object, "spec", "scope") // as in the package; the API server sets the default
	e, breaks := facts.NewReplacement(before, after)
	if !breaks {
		t.Fatal("a field is removed")
	}
	if changes := e.Change.Schema().Changes; len(e.Change.Schema().Breaking()) != 1 {
		t.Errorf("one field is removed, and the scope stays: %v", changes)
	}
	for _, u := range []*unstructured.Unstructured{e.Change.Live, e.Change.After} {
		if text := fmt.Sprint(u.Object); strings.Contains(text, "openAPIV3Schema") || !strings.Contains(text, "v1") {
			t.Errorf("it is kept with its schema: %s", text)
		}
	}
	if schemaOf := fmt.Sprint(before.Object); !strings.Contains(schemaOf, "openAPIV3Schema") {
		t.Error("what was read is changed")
	}
	if _, breaks := facts.NewReplacement(version("a"), version("a", "b")); breaks {
		t.Error("an addition breaks no user")
	}
}

// A copy of a package may lack the image's webhook, so a missing webhook does not hold an upgrade.
func TestCopiedReplacement(t *testing.T) {
	version := func(converts bool, stored int, fields ...string) *unstructured.Unstructured {
		properties := map[string]any{}
		for _, f := range fields {
			properties[f] = map[string]any{"type": "string"}
		}
		spec := map[string]any{"scope": "Cluster", "versions": []any{}}
		for i, name := range []string{"v1", "v2"} {
			schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}}
			if i == 1 {
				schema = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
			}
			spec["versions"] = append(spec["versions"].([]any), map[string]any{"name": name, "served": true, "storage": i == stored, "schema": schema})
		}
		if converts {
			spec["conversion"] = map[string]any{"strategy": "Webhook"}
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "apps.example.org"}, "spec": spec,
		}}
	}
	installed := version(true, 0, "a", "b")
	for name, tc := range map[string]struct {
		reason string
		copied *unstructured.Unstructured
		breaks bool
	}{
		"WithoutWebhook": {"The copy has no webhook, but the package in the image has one.", version(false, 0, "a", "b"), false},
		"MovesStorage":   {"The webhook of the image converts stored objects.", version(false, 1, "a", "b"), false},
		"RemovesField":   {"A field that the copy removes is removed from the package, too.", version(false, 0, "a"), true},
	} {
		e, breaks := facts.NewCopiedReplacement(installed, tc.copied)
		if breaks != tc.breaks {
			t.Errorf("%s: %s\nit breaks: %t", name, tc.reason, breaks)
		}
		if breaks && !facts.HasWebhook(e.Change.After) {
			t.Errorf("%s: the guards see a webhook that goes", name)
		}
		if _, breaks := facts.NewReplacement(installed, tc.copied); !breaks {
			t.Errorf("%s: the same of an image breaks", name)
		}
	}
	if facts.HasWebhook(version(false, 0, "a")) {
		t.Error("what was read is changed")
	}
}
