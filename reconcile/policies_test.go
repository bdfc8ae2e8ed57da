package reconcile

import (
	"context"
	"slices"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"

	"github.com/google/go-cmp/cmp"
)

// ruled is a cluster with policies and without objects.
type ruled struct {
	Observer
	ClusterReader
	policies map[string]crossplane.LivePolicy
}

func (c ruled) Policies(context.Context) (map[string]crossplane.LivePolicy, error) {
	return c.policies, nil
}

func (c ruled) Answer(context.Context, []question.Any) (question.Answers, error) {
	return nil, nil
}

// A preview with a cluster counts the policies of the cluster in both commits, by one rule: a policy that the commit declares counts
// as it is declared there.
func TestPreviewsCountPoliciesOfTheCluster(t *testing.T) {
	const (
		boats, cars = "boats.example.org", "cars.example.org"
		meta        = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec: {capabilities: [safe-start]}\n"
	)
	policy := func(name, glob string) string {
		return "---\napiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: " + name + "}\nspec: {activate: [\"" + glob + "\"]}\n"
	}
	mrd := func(kind, plural string) string {
		return "---\napiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceDefinition\nmetadata: {name: " + plural + ".example.org}\nspec:\n" +
			"  group: example.org\n  scope: Namespaced\n  names: {kind: " + kind + ", plural: " + plural + "}\n" +
			"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n"
	}
	both := mrd("Boat", "boats") + mrd("Car", "cars")
	everything := map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}
	type outcome struct {
		Opens, Leaves, Active []string
		Memory                bool // whether it changes
		Held                  []string
	}
	cases := map[string]struct {
		reason     string
		owner      render.Owner
		live       map[string]crossplane.LivePolicy
		base, head string // the policies
		adds       string // definitions that the head adds
		want       outcome
	}{
		"Widened": {
			reason: "The policy of the cluster has already activated what the new pattern matches.", live: everything,
			base: policy("team", boats), head: policy("team", "*"),
			want: outcome{Active: []string{boats, cars}},
		},
		"WidenedWithoutIt": {
			reason: "Without a policy in the cluster, the new pattern activates.",
			base:   policy("team", boats), head: policy("team", "*"),
			want: outcome{Opens: []string{cars}, Active: []string{boats, cars}, Memory: true},
		},
		"Paused": {
			reason: "A paused policy activates nothing.", live: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}, Paused: true}},
			base: policy("team", boats), head: policy("team", "*"),
			want: outcome{Opens: []string{cars}, Active: []string{boats, cars}, Memory: true},
		},
		"MadeByHeadgate": {
			reason: "Crossplane's policies have no effect on CRDs that Headgate makes.", live: everything, owner: render.OwnerHeadgate,
			base: policy("team", boats), head: policy("team", "*"),
			want: outcome{Opens: []string{cars}, Active: []string{boats, cars}, Memory: true},
		},
		"Narrowed": {
			reason: "The policy of the cluster still activates what the commit no longer names.", live: everything,
			base: policy("team", "*"), head: policy("team", boats),
			want: outcome{Active: []string{boats, cars}},
		},
		"Removed": {
			reason: "The commit before declares the policy, so the cluster's copy is pruned with it and keeps nothing wanted.",
			live:   map[string]crossplane.LivePolicy{"team": {Patterns: []string{"*"}}},
			base:   policy("team", "*"),
			want:   outcome{Leaves: []string{boats, cars}},
		},
		"DeclaredNow": {
			reason: "The commit takes over the policy of the cluster and narrows it. What is active remains active.", live: everything,
			head: policy("default", boats),
			want: outcome{Leaves: []string{cars}, Active: []string{boats}},
		},
		"Added": {
			reason: "The policy of the cluster activates a new definition of a package, which a pass holds for that reason.", live: everything,
			base: policy("team", "[bc]*.example.org"), head: policy("team", "[bc]*.example.org"), adds: mrd("Plane", "planes"),
			want: outcome{Opens: []string{"planes.example.org"}, Active: []string{boats, cars, "planes.example.org"}, Memory: true, Held: []string{"planes.example.org"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.owner == "" {
				tc.owner = render.OwnerCrossplane
			}
			tree := func(mrds, policies string) fstest.MapFS {
				return fstest.MapFS{"it/crossplane.yaml": {Data: []byte(meta)}, "it/mrds.yaml": {Data: []byte(mrds)}, "policies.yaml": {Data: []byte(policies)}}
			}
			place := ruled{policies: tc.live}
			r := Reconciler{
				Source: commits{"base": tree(both, tc.base), "head": tree(both+tc.adds, tc.head)}, Sync: inventory.Sync{Name: "platform"}, Observer: place, Cluster: place,
				Options: render.Options{Owner: tc.owner}, Guarding: guard.Guarding{MaxActivations: 1},
			}
			made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
			if err != nil {
				t.Fatal(err)
			}
			var got outcome
			for _, o := range made.Preview.Opens {
				got.Opens = append(got.Opens, o.Name)
			}
			for _, d := range made.Preview.Leaves {
				got.Leaves = append(got.Leaves, d.Name)
			}
			for _, d := range made.Definitions {
				if d.Active {
					got.Active = append(got.Active, d.Name)
				}
			}
			for _, s := range made.Steps {
				if s.Action == plan.Hold && s.Guard == guard.Flood {
					got.Held = append(got.Held, s.ID.Name)
				}
			}
			slices.Sort(got.Active)
			got.Memory = made.Preview.Memory.Before != made.Preview.Memory.After
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// If crdOwner is Auto, an object for Crossplane's package manager decides who makes the CRDs of a new cluster. A pass keeps the owner
// of an earlier one, and so does the comparison: its steps and numbers are of one owner, and the verdict names the object.
func TestPreviewsShowAChangeOfTheOwner(t *testing.T) {
	const (
		meta     = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec: {capabilities: [safe-start]}\n"
		team     = "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: team}\nspec: {activate: [boats.example.org]}\n"
		provider = "---\napiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec: {package: registry.example.org/acme/it:v1}\n"
		a, b     = "a: {type: string}", "b: {type: string}"
	)
	tree := func(field, more string) fstest.MapFS {
		mrd := "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceDefinition\nmetadata: {name: boats.example.org}\nspec:\n" +
			"  group: example.org\n  scope: Namespaced\n  names: {kind: Boat, plural: boats}\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, " +
			"properties: {spec: {type: object, properties: {" + field + "}}}}}}\n"
		return fstest.MapFS{"it/crossplane.yaml": {Data: []byte(meta)}, "it/boats.yaml": {Data: []byte(mrd)}, "policy.yaml": {Data: []byte(team + more)}}
	}
	none := fstest.MapFS{"readme.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")}}
	type outcome struct {
		Word    report.Word
		Owner   render.Owner // that the merge gives new clusters
		At      string       // where the object is
		Becomes int
		Breaks  int
	}
	cases := map[string]struct {
		reason     string
		owner      render.Owner
		base, head fstest.MapFS
		want       outcome
	}{
		"Gains": {
			reason: "The first Provider changes the owner, and activates nothing.", base: tree(a, ""), head: tree(a, provider),
			want: outcome{Word: report.Look, Owner: render.OwnerCrossplane, At: "policy.yaml:6"},
		},
		"GainsAndBreaks": {
			reason: "The Provider does not hide that a CRD breaks.", base: tree(a, ""), head: tree(b, provider),
			want: outcome{Word: report.Blocked, Owner: render.OwnerCrossplane, At: "policy.yaml:6", Breaks: 1},
		},
		"Loses": {
			reason: "Crossplane still makes the CRDs without the last Provider.", base: tree(a, provider), head: tree(a, ""),
			want: outcome{Word: report.Look, Owner: render.OwnerHeadgate},
		},
		"Chosen": {
			reason: "The Sync has chosen the owner. The package is new.", owner: render.OwnerHeadgate, base: tree(a, ""), head: tree(a, provider),
			want: outcome{Word: report.Look},
		},
		"Begins": {
			reason: "Nothing has made a CRD, so the head decides.", base: none, head: tree(a, provider),
			want: outcome{Word: report.Look, Becomes: 1},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.owner == "" {
				tc.owner = render.OwnerAuto
			}
			r := Reconciler{Source: commits{"base": tc.base, "head": tc.head}, Sync: inventory.Sync{Name: "platform"}, Options: render.Options{Owner: tc.owner}}
			made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
			if err != nil {
				t.Fatal(err)
			}
			got := outcome{Word: made.Judgement.Word, Owner: made.Preview.Owner, Becomes: len(made.Preview.Opens), Breaks: len(made.Breaking())}
			for _, f := range made.Findings {
				if f.Rule == "crd-owner-changes" && f.Origin.Path != "" {
					got.At = f.Origin.String()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s\n%s", tc.reason, diff, made.Line())
			}
		})
	}
}
