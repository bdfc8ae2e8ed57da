package draft_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Readers of the inventory must not be able to guess a Secret's values from a digest, wherever the values were copied.
func TestDigestOfACopy(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"pin": "1234"}}}
	o, err := render.NewObject(u, manifest.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	keyed := facts.Observed{Given: facts.Given{Key: []byte("key")}}
	if plain := (facts.Observed{}).Digest(o); keyed.Digest(o) != plain {
		t.Error("a public value is not keyed")
	}
	o.Secret = true
	if keyed.Digest(o) == (facts.Observed{}).Digest(o) {
		t.Error("the digest of a copy is not keyed")
	}
}

// A Sync may forbid copying from Secrets, because the author of a commit chooses the target.
func TestReferencesToSecretsAreForbidden(t *testing.T) {
	u := given.ConfigMap("copy")
	u.Object["data"] = map[string]any{"key": "none"}
	u.SetAnnotations(map[string]string{"config.kubernetes.io/apply-time-mutation": "- sourceRef: {kind: Secret, name: source}\n  sourcePath: $.data.password\n  targetPath: $.data.key\n"})
	commit := render.Desired{Objects: []render.Object{given.Wanted(t, u)}}
	if _, err := demand.Ask((facts.Observed{}), commit); err != nil {
		t.Errorf("without the setting: %v", err)
	}
	seen := facts.Observed{Given: facts.Given{Terms: facts.Terms{NoSecrets: true}}}
	if _, err := demand.Ask(seen, commit); err == nil || !strings.Contains(err.Error(), "references.fromSecrets") {
		t.Errorf("the commit is not refused: %v", err)
	}
	if ids := demand.SourcesOf(seen, commit); len(ids) > 0 {
		t.Errorf("an observer would read %v", ids)
	}
}

// The guard rules on the object that is read: its namespace is filled in before.
func TestReferencesReadOnlyWhatIsAllowed(t *testing.T) {
	u := given.ConfigMap("copy")
	u.SetNamespace("shop")
	u.Object["data"] = map[string]any{"key": "none"}
	cases := map[string]struct{ source, read string }{
		"Own":                   {"kind: ConfigMap, name: source", "ConfigMap/shop/source"},
		"OtherNamespace":        {"kind: ConfigMap, name: source, namespace: platform", "ConfigMap/platform/source"},
		"Cluster":               {"kind: Namespace, name: source", "Namespace/source"},
		"ClusterWithANamespace": {"kind: Namespace, name: source, namespace: shop", "Namespace/source"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u.SetAnnotations(map[string]string{"config.kubernetes.io/apply-time-mutation": "- sourceRef: {" + tc.source + "}\n  sourcePath: $.data.a\n  targetPath: $.data.key\n"})
			commit := render.Desired{Objects: []render.Object{given.Wanted(t, u)}}
			seen := facts.Observed{Ground: facts.Ground{Kinds: map[schema.GroupKind]plan.Kind{{Kind: "ConfigMap"}: {Namespaced: true}, {Kind: "Namespace"}: {}}}}
			judged := ""
			seen.Terms.Reads = func(id manifest.ID, namespace string, known bool) bool {
				if id.Namespace = namespace; known {
					judged = id.String()
				}
				return false
			}
			if _, err := demand.Ask(seen, commit); err == nil || !strings.Contains(err.Error(), "references.namespaces of the Sync") {
				t.Errorf("the commit is not refused: %v", err)
			}
			if judged != tc.read {
				t.Errorf("judged is %q, want %q", judged, tc.read)
			}
			if ids := demand.SourcesOf(seen, commit); len(ids) > 0 {
				t.Errorf("an observer would read %v", ids)
			}
		})
	}
}

// The drift of an object that is only observed shows its values, so it is read no more than the source of a reference.
func TestObservedObjectsAreReadOnlyIfAllowed(t *testing.T) {
	for policy, refused := range map[string]bool{"": false, "Undeletable": false, "Observable": true, "ObservableAndDeletable": true} {
		u := given.ConfigMap("settings")
		u.SetNamespace("platform")
		if policy != "" {
			u.SetAnnotations(map[string]string{"headgate.dev/management-policy": policy})
		}
		seen := facts.Observed{Given: facts.Given{Terms: facts.Terms{Reads: func(_ manifest.ID, namespace string, _ bool) bool { return namespace == "shop" }}}}
		_, err := demand.Ask(seen, render.Desired{Objects: []render.Object{given.Wanted(t, u)}})
		if got := err != nil && strings.Contains(err.Error(), "its management policy observes it"); got != refused {
			t.Errorf("policy %q: %v", policy, err)
		}
	}
}

// A preview does not know the sources of references. Otherwise it would judge one value, and the pass would apply another.
func TestReferencesFillInNothingThatIsJudged(t *testing.T) {
	spec := map[string]any{
		"activate": []any{"buckets.example.org"}, "package": "registry.example.org/provider:v1", "state": "Inactive", "group": "example.org",
		"rewriteImage": map[string]any{"prefix": "registry.example.org"}, "enforcement": "a",
		"conversion": map[string]any{"strategy": "None", "webhook": map[string]any{"clientConfig": map[string]any{"caBundle": "bm9uZQ=="}}},
	}
	const extensions, packages, kubernetes = "apiextensions.crossplane.io/", "pkg.crossplane.io/", "apiextensions.k8s.io/v1"
	cases := []struct {
		apiVersion, kind, path string
		refused                bool
	}{
		{extensions + "v1alpha1", "ManagedResourceActivationPolicy", "$.spec.activate[0]", true},
		{extensions + "v1alpha1", "ManagedResourceActivationPolicy", "$.metadata.annotations['a.example.org/b']", true}, // paused is one
		{extensions + "v1alpha1", "ManagedResourceDefinition", "$.spec.state", true},
		{packages + "v1", "Provider", "$.spec.package", true},
		{packages + "v1", "Configuration", "$.spec.package", true},
		{packages + "v1", "Function", "$.spec.package", true},
		{packages + "v1beta1", "ImageConfig", "$.spec.rewriteImage.prefix", true},
		{kubernetes, "CustomResourceDefinition", "$.spec.group", true},
		{kubernetes, "CustomResourceDefinition", "$.spec.conversion.strategy", true},
		{kubernetes, "CustomResourceDefinition", "$.spec.conversion.webhook.clientConfig.caBundle", false},
		{kubernetes, "CustomResourceDefinition", "$.metadata.annotations['a.example.org/b']", false},
		{extensions + "v2", "CompositeResourceDefinition", "$.spec.group", true},
		{extensions + "v2", "CompositeResourceDefinition", "$.spec.conversion.webhook.clientConfig.caBundle", false},
		{packages + "v1beta1", "DeploymentRuntimeConfig", "$.spec.enforcement", false},
		{"v1", "ConfigMap", "$.spec.activate[0]", false},
	}
	for _, tc := range cases {
		t.Run(tc.kind+tc.path, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": tc.apiVersion, "kind": tc.kind, "spec": spec}}
			u.SetName("a")
			u.SetAnnotations(map[string]string{
				"a.example.org/b":                          "none",
				"config.kubernetes.io/apply-time-mutation": "- sourceRef: {kind: ConfigMap, name: source}\n  sourcePath: $.data.key\n  targetPath: " + tc.path + "\n",
			})
			commit := render.Desired{Objects: []render.Object{given.Wanted(t, u)}}
			for name, seen := range map[string]facts.Observed{"preview": {Ground: facts.Ground{Stance: plan.Comparing}}, "pass": {}, "observing": {Ground: facts.Ground{Stance: plan.Looking}}} {
				_, err := demand.Ask(seen, commit)
				if refused := err != nil && strings.Contains(err.Error(), "write the value in the commit"); refused != tc.refused || err != nil && !refused {
					t.Errorf("%s: refused %t, want %t: %v", name, refused, tc.refused, err)
				}
			}
		})
	}
}

// An unchanged object is updated with the values that it copies. Guards rule on this update; if they keep the source from being
// updated, the copy has nothing to wait for and stays.
func TestACopyFollowsItsSource(t *testing.T) {
	const copied = "- sourceRef: {kind: ConfigMap, name: source, namespace: shop}\n  sourcePath: $.data.a\n  targetPath: $.data.key\n"
	source, user := given.ConfigMap("source"), given.ConfigMap("copy")
	for _, u := range []*unstructured.Unstructured{source, user} {
		u.SetNamespace("shop")
		u.Object["data"] = map[string]any{"a": "new", "key": "none"}
	}
	user.SetAnnotations(map[string]string{"config.kubernetes.io/apply-time-mutation": copied})
	from, to := given.Wanted(t, source), given.Wanted(t, user)
	old := source.DeepCopy()
	old.Object["data"] = map[string]any{"a": "old"}
	seen := given.Owning(t)
	for _, o := range []render.Object{from, to} {
		u, err := demand.Sent(given.Sync, o)
		if err != nil {
			t.Fatal(err)
		}
		seen.Objects[o.ID] = given.Live(u, types.UID(o.ID.Name))
		seen.Inventory.Entries[o.ID] = plan.Applied(seen.Objects[o.ID], given.Sync.Digest(o))
	}
	seen.Sources = map[manifest.ID]facts.ReferenceSource{from.ID: {Live: old}}
	seen.Trials = map[manifest.ID]facts.Trial{from.ID: {Live: old, After: source}}
	seen.Answers = question.Answers{question.Ready{Of: from.ID}: question.Readiness{Exists: true}}
	for name, tc := range map[string]struct {
		held  manifest.ID
		want  plan.Action
		waits bool
	}{
		"Follows":     {want: plan.Update, waits: true},
		"SourceHeld":  {held: from.ID, want: plan.Keep},
		"FollowsHeld": {held: to.ID, want: plan.Hold},
	} {
		t.Run(name, func(t *testing.T) {
			ruled := map[manifest.ID]bool{}
			guard := draft.Guard{Name: "holds", Phase: draft.Writes, Rule: draft.Each(func(s plan.Step, _ draft.Case) plan.Ruling {
				ruled[s.ID] = true
				if _, err := s.Object(); err != nil {
					t.Error(err)
				}
				if s.ID == tc.held {
					return plan.Ruling{Judged: plan.Judged{Answer: plan.Held}}
				}
				return plan.Ruling{}
			})}
			_, steps := given.Steps(t, render.Desired{Objects: []render.Object{to, from}}, seen, guard)
			if s := steps["ConfigMap copy"]; s.Action != tc.want || s.Waiting() != tc.waits || !ruled[to.ID] {
				t.Errorf("%s, waits for %v, error %v; the guard ruled on %v", s.Action, s.Waits, s.Err, ruled)
			}
		})
	}
}
