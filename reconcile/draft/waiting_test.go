package draft_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	bucket = `apiVersion: example.org/v1
kind: Bucket
metadata:
  name: logs
`
	config = `apiVersion: example.org/v1
kind: ProviderConfig
metadata:
  name: default
`
	xrd = `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: stores.platform.example.org
spec:
  group: platform.example.org
  names: {kind: Store, plural: stores}
`
	store = `apiVersion: platform.example.org/v1
kind: Store
metadata: {name: first, namespace: default}
`
	composition = `apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata:
  name: stores
spec:
  compositeTypeRef: {apiVersion: platform.example.org/v1, kind: Store}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: function-patch}
    input:
      apiVersion: pt.fn.example.org/v1
      kind: Resources
      resources:
      - name: bucket
        base: {apiVersion: example.org/v1, kind: Bucket}
`
)

// served adds kinds that the cluster serves.
func served(seen facts.Observed, kinds ...string) facts.Observed {
	for _, kind := range kinds {
		kind, group, _ := strings.Cut(kind, ".")
		seen.Kinds[schema.GroupKind{Group: group, Kind: kind}] = plan.Kind{Version: "v1", Resource: strings.ToLower(kind) + "s"}
	}
	return seen
}

// withMRDs adds the definitions of the toy package, as applied by this sync.
func withMRDs(seen facts.Observed) facts.Observed {
	seen.Inventory.Entries = map[manifest.ID]inventory.Entry{}
	for _, plural := range []string{"buckets", "queues", "tables"} {
		id := crossplane.MRD(plural + ".example.org")
		seen.Inventory.Entries[id] = inventory.Entry{UID: "u"}
		seen.Objects[id] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	}
	return seen
}

func TestWaiting(t *testing.T) {
	const compositions, xrds = "Composition.apiextensions.crossplane.io", "CompositeResourceDefinition.apiextensions.crossplane.io"
	toyProvider := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-toy"}
	ready := map[manifest.ID]crossplane.LivePackage{toyProvider: {Installed: metav1.ConditionTrue, Healthy: metav1.ConditionTrue}}
	cases := map[string]struct {
		reason string
		files  map[string]string
		seen   facts.Observed
		step   string
		waits  string // part of the reason; "" if it does not wait
		fails  string // part of the error
		stuck  bool   // whether it waits for something that needs a user
	}{
		"Definition": {
			reason: "A policy in the commit activates the definition, so its kind will be served.",
			files:  map[string]string{"policy.yaml": given.Policy("team", given.Buckets), "provider.yaml": given.Provider, "logs.yaml": bucket},
			seen:   given.Seen(facts.Upstream{}), step: "Bucket logs", waits: "ManagedResourceDefinition buckets.example.org",
		},
		"NothingActivates": {
			reason: "Without a policy, the kind will not be served, and the message names the definition.",
			files:  map[string]string{"provider.yaml": given.Provider, "logs.yaml": bucket},
			seen:   given.Seen(facts.Upstream{}), step: "Bucket logs", fails: "the definition buckets.example.org would, and nothing activates it",
		},
		"LivePolicyActivates": {
			reason: "A policy in the cluster activates definitions like one in Git.",
			files:  map[string]string{"logs.yaml": bucket},
			seen:   withMRDs(given.Seen(facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}})), step: "Bucket logs", waits: given.Buckets,
		},
		"LivePolicyWouldActivate": {
			reason: "No policy of the commit names the definition, so the guard flood holds it.",
			files:  map[string]string{"logs.yaml": bucket},
			seen:   given.Seen(facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}}), step: "Bucket logs", waits: given.Buckets, stuck: true,
		},
		"PolicyHeld": {
			reason: "A policy that is not applied never activates anything.",
			files:  map[string]string{"policy.yaml": given.Policy("team", given.Buckets), "logs.yaml": bucket},
			seen:   given.WithOwner(given.Seen(facts.Upstream{}), crossplane.MRAP("team")), step: "Bucket logs", waits: "team", stuck: true,
		},
		"PolicyRetained": {
			reason: "The commit retains the policy, so it is not created.",
			files: map[string]string{"logs.yaml": bucket, "policy.yaml": strings.Replace(given.Policy("team", given.Buckets), "metadata:",
				"metadata:\n  annotations: {kustomize.toolkit.fluxcd.io/reconcile: disabled}", 1)},
			seen: given.Seen(facts.Upstream{}), step: "Bucket logs", waits: "team", stuck: true,
		},
		"Blocked": {
			reason: "Waiting does not help if Crossplane cannot establish the definition.",
			files:  map[string]string{"policy.yaml": given.Policy("team", given.Buckets), "provider.yaml": given.Provider, "logs.yaml": bucket},
			seen: given.Seen(facts.Upstream{
				Definitions: map[string]crossplane.LiveDefinition{given.Buckets: {Active: true, Established: metav1.ConditionFalse}}, Packages: ready,
			}),
			step: "Bucket logs", waits: given.Buckets, stuck: true,
		},
		"Package": {
			reason: "The kinds of a package are unknown until it is installed.",
			files:  map[string]string{"provider.yaml": given.Provider, "config.yaml": config},
			seen:   given.Seen(facts.Upstream{}), step: "ProviderConfig default", waits: "Provider provider-toy",
		},
		"HeldPackage": {
			reason: "A held package is installed after a user has acted.",
			files:  map[string]string{"provider.yaml": given.Provider, "config.yaml": config},
			seen:   given.Seen(facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}}), step: "ProviderConfig default", waits: "Provider provider-toy", stuck: true,
		},
		"InstalledPackage": {
			reason: "An installed package provides no further kinds.",
			files:  map[string]string{"provider.yaml": given.Provider, "config.yaml": config},
			seen:   given.Seen(facts.Upstream{Packages: ready}), step: "ProviderConfig default", fails: "nothing in this commit brings it",
		},
		"SleepingDefinitionOfTheCluster": {
			reason: "No policy activates the definition.",
			files:  map[string]string{"store.yaml": strings.ReplaceAll(bucket, "example.org", "elsewhere.example.org")},
			seen: given.Seen(facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{
				"bucketrules.elsewhere.example.org": {Active: true}, "buckets.elsewhere.example.org": {},
			}}),
			step: "Bucket logs", fails: "the definition buckets.elsewhere.example.org would",
		},
		"DefinitionOfTheCluster": {
			reason: "The kind of a live definition is unknown, but its name matches the kind.",
			files:  map[string]string{"store.yaml": strings.ReplaceAll(bucket, "example.org", "elsewhere.example.org")},
			seen: given.Seen(facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{
				"bucketrules.elsewhere.example.org": {Active: true}, "buckets.elsewhere.example.org": {Active: true}, "queues.elsewhere.example.org": {Active: true},
			}}),
			step: "Bucket logs", waits: "buckets.elsewhere.example.org",
		},
		"Composite": {
			reason: "Crossplane will make the CRD of an XRD.",
			files:  map[string]string{"xrd.yaml": xrd, "store.yaml": store},
			seen:   served(given.Seen(facts.Upstream{}), xrds), step: "Store first", waits: "CompositeResourceDefinition stores.platform.example.org",
		},
		"CompositeOfNothing": {
			reason: "Without Crossplane, no controller acts on an XRD.",
			files:  map[string]string{"xrd.yaml": xrd, "store.yaml": store},
			seen:   facts.Observed{Ground: facts.Ground{Inventory: inventory.Inventory{Sync: given.Sync}, Kinds: given.Kinds}}, step: "Store first", waits: "stores.platform.example.org", stuck: true,
		},
		"Composition": {
			reason: "A Composition that names a missing kind would break the resources that use the current Composition.",
			files:  map[string]string{"policy.yaml": given.Policy("team", given.Buckets), "provider.yaml": given.Provider, "composition.yaml": composition},
			seen:   served(given.Seen(facts.Upstream{Packages: ready}), compositions), step: "Composition stores", waits: given.Buckets,
		},
		"CompositionOfWhatIsServed": {
			reason: "The input of a function has a type that no API serves.",
			files:  map[string]string{"policy.yaml": given.Policy("team", given.Buckets), "provider.yaml": given.Provider, "composition.yaml": composition},
			seen:   served(given.Seen(facts.Upstream{}), compositions, "Bucket.example.org"), step: "Composition stores",
		},
		"CompositionOfWhatNothingBrings": {
			reason: "A Composition may name unknown kinds and is not refused because of them.",
			files:  map[string]string{"composition.yaml": composition},
			seen:   served(given.Seen(facts.Upstream{Packages: ready}), compositions), step: "Composition stores",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			owner := render.OwnerCrossplane
			if tc.seen.Natural == "" {
				owner = render.OwnerHeadgate
			}
			p, got := given.Steps(t, given.Desired(t, owner, tc.files), tc.seen, guard.Guarding{}.Guards()...)
			s, ok := got[tc.step]
			if !ok {
				t.Fatalf("no step %s: %v", tc.step, got)
			}
			if !strings.Contains(words.Awaited(s), tc.waits) || (tc.waits == "") == s.Waiting() {
				t.Errorf("%s\nwaits for %q, want %q", tc.reason, words.Awaited(s), tc.waits)
			}
			failure := ""
			if s.Err != nil {
				failure = words.OfError(s.Err)
			}
			if !strings.Contains(failure, tc.fails) || (tc.fails == "") != (s.Err == nil) {
				t.Errorf("%s\nfails with %q, want %q", tc.reason, failure, tc.fails)
			}
			if s.Writes() != (tc.waits == "") {
				t.Errorf("%s\nwrites: %t", tc.reason, s.Writes())
			}
			if tc.waits == "" {
				return
			}
			if plan.Coming(p, nil) == tc.stuck {
				t.Errorf("%s\nsomething is coming: %t", tc.reason, plan.Coming(p, nil))
			}
			if _, intended := record.Intent(p, tc.seen.Inventory).Entries[s.ID]; intended {
				t.Errorf("what is not sent must not be taken for ours: %s", s.ID)
			}
		})
	}
}
