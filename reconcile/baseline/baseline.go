// Package baseline compares two commits without a cluster: it takes one of them as the state of the cluster. It adds
// the definitions in package images, which no manifest holds. Package plan decides on the result.
package baseline

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
)

// A Baseline takes a commit as the state of a cluster: everything that the commit declares exists and is owned. A
// diff of two commits is a pass over a Baseline.
type Baseline struct {
	Base  render.Desired
	Sync  inventory.Sync
	Terms facts.Terms

	// Approvals are the approvals on the target branch.
	Approvals []render.Approval

	// Kinds holds the known kinds, with their scope. It may be incomplete.
	Kinds map[runtimeschema.GroupKind]plan.Kind

	// Known holds answers from a cluster that the plan begins with.
	Known question.Answers

	// Counts answers questions from a cluster. It is nil without a cluster.
	Counts func(context.Context, []question.Any) (question.Answers, error)
}

// Observe returns the state of a cluster to which the base was applied.
func (b Baseline) Observe(_ context.Context, want render.Desired) (facts.Observed, error) {
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: b.Sync, Owner: b.Base.Owner, Entries: make(map[manifest.ID]inventory.Entry, len(b.Base.Objects)), Record: inventory.Record{Format: inventory.Format}.WithPackages(b.Base)},
			Kinds:     b.Kinds,
			Scope:     render.KubernetesScope(),
			Stance:    plan.Comparing,
		},
		Live:       facts.Live{Objects: make(map[manifest.ID]*metav1.PartialObjectMetadata, len(b.Base.Objects)), Trials: map[manifest.ID]facts.Trial{}},
		Upstream:   b.upstream(),
		Given:      facts.Given{Terms: b.Terms},
		Comparison: facts.Comparison{Base: &b.Base, InForce: b.Approvals},
		Answers:    b.Known,
	}
	seen.Terms.Adoption = facts.AdoptUnowned // the objects of the base are ours
	if b.Counts != nil {
		seen.Stance = plan.Counting
	}
	seen.Inventory.Record.Policies, seen.Inventory.Record.PolicyNames = inventory.PolicyFiles(b.Base, nil), inventory.PolicyNames(b.Base, nil)
	seen.Want = want
	err := refuseTwice(want.Objects, seen.Homes())
	if err != nil {
		return facts.Observed{}, err
	}
	seen, b.Base.Objects = demand.AsApplied(seen, b.Base)
	seen = demand.WithSources(seen, want)
	if b.Base.Objects, err = respelled(b.Base.Objects, want, seen.Homes()); err != nil {
		return facts.Observed{}, err
	}
	base := make(map[manifest.ID]render.Object, len(b.Base.Objects))
	wanted := make(map[manifest.ID]bool, len(want.Objects))
	for _, o := range want.Objects {
		wanted[o.ID] = true
	}
	for _, o := range b.Base.Objects {
		base[o.ID] = o
		live := &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: o.APIVersion, Kind: o.ID.Kind},
			ObjectMeta: metav1.ObjectMeta{
				Namespace:   o.ID.Namespace,
				Name:        o.ID.Name,
				Labels:      map[string]string{inventory.SyncLabel: b.Sync.Key()},
				Annotations: map[string]string{inventory.InventoryAnnotation: b.Sync.Key()},
			},
		}
		if !wanted[o.ID] { // guards read the labels and annotations of a pruned object
			content, err := demand.Sent(b.Sync, o)
			if err != nil {
				return facts.Observed{}, err
			}
			live.Labels, live.Annotations = content.GetLabels(), content.GetAnnotations()
		}
		seen.Objects[o.ID] = live
		entry := plan.Applied(live, seen.Digest(o))
		entry.Path = o.Origin.Path
		entry.Definition = o.ID.IsCRD() && o.Definition != ""
		if entry.Policy, err = inventory.PolicyOf(o); err != nil {
			return facts.Observed{}, err
		}
		seen.Inventory.Entries[o.ID] = entry
	}
	if seen.Instances, err = b.instances(wanted); err != nil {
		return facts.Observed{}, err
	}
	if seen, err = demand.Ask(seen, want); err != nil {
		return facts.Observed{}, err
	}
	doubtful := seen.Doubtful(false)
	trials := make([]facts.Trial, len(doubtful))
	failed := make([]error, len(doubtful))
	manifest.Each(len(doubtful), func(i int) { trials[i], failed[i] = b.trial(base[doubtful[i].ID], doubtful[i].Object) })
	if err := cmp.Or(failed...); err != nil {
		return facts.Observed{}, err
	}
	for i, a := range doubtful {
		live := trials[i].Live
		seen.Objects[a.ID].Labels, seen.Objects[a.ID].Annotations = live.GetLabels(), live.GetAnnotations() // guards read these
		if trials[i].Vendored = want.Owner == render.OwnerCrossplane && a.Package != ""; trials[i].Vendored && trials[i].Whole != nil {
			trials[i].Whole = converted(trials[i].Whole)
		}
		seen.Trials[a.ID] = trials[i]
	}
	if want.Owner == render.OwnerCrossplane {
		seen.CopiedMoves = b.copiedMoves(want)
	}
	seen.Bumps, seen.Effects = b.upgrades(want)
	for i, e := range seen.Effects {
		if !seen.Trials[e.Of].Replaces() { // a person approves the new version
			seen.Effects[i].Of = manifest.ID{}
		}
	}
	inactive, uncompared := b.redeclared(want)
	seen.Effects, seen.Notes = append(seen.Effects, inactive...), slices.Concat(notesOnUpgrades(seen), uncompared, want.Unconfirmed(b.Base), want.Unsigned(b.Base))
	return seen, nil
}

// respelled returns the objects of the base with the identities that they have in the commit. If one of the two
// leaves out a namespace, the object in the cluster is still the same.
func respelled(base []render.Object, want render.Desired, home func(manifest.ID) manifest.ID) ([]render.Object, error) {
	taken := make(map[manifest.ID]bool, len(base))
	for _, o := range base {
		taken[o.ID] = true
	}
	written := map[manifest.ID]render.Object{}
	for _, o := range want.Objects {
		if !taken[o.ID] {
			written[home(o.ID)] = o
		}
	}
	if len(written) == 0 {
		return base, nil
	}
	base = slices.Clone(base)
	for i, was := range base {
		is, moved := written[home(was.ID)]
		if !moved || is.ID == was.ID {
			continue
		}
		delete(written, home(was.ID)) // a cluster would refuse a base with both spellings
		live, after, err := contents(was, is)
		if err != nil {
			return nil, err
		}
		base[i].ID = is.ID
		if equality.Semantic.DeepEqual(live.Object, after.Object) {
			base[i].Digest = is.Digest
		}
	}
	return base, nil
}

// trial returns the result of applying an object over its version in the base.
func (b Baseline) trial(base, want render.Object) (facts.Trial, error) {
	if (want.ID.IsCRD() || crossplane.IsMRD(want.ID)) && len(b.Terms.Ignore.Paths(want.ID)) == 0 {
		r, err := replacementOf(base, want)
		return facts.Trial{Live: r.live(), After: r.after(), Whole: plan.Lazy(want.Content), Schema: &r.Difference}, err
	}
	live, after, err := contents(base, want)
	if err != nil {
		return facts.Trial{}, err
	}
	ways := b.Terms.Ignore.Withhold(after, live, b.Sync)
	if len(ways) > 1 {
		b.Sync.Own(live) // an applied object has these marks
	}
	return facts.Trial{Live: live, After: ways[len(ways)-1]}, nil
}

func contents(base, want render.Object) (live, after *unstructured.Unstructured, err error) {
	if live, err = base.Content(); err != nil {
		return nil, nil, err
	}
	if after, err = want.Content(); err != nil {
		return nil, nil, err
	}
	manifest.EncodeStringData(live)
	manifest.EncodeStringData(after)
	respell(live, after)
	return live, after, nil
}

// respell gives the object of the base the namespace that it has in the commit (see respelled).
func respell(live, after *unstructured.Unstructured) {
	if live.GetNamespace() != after.GetNamespace() {
		live.SetNamespace(after.GetNamespace())
	}
}

// instances returns the kinds whose objects represent resources outside of the cluster. It checks only kinds with
// objects that leave the commit.
func (b Baseline) instances(wanted map[manifest.ID]bool) (map[runtimeschema.GroupKind]bool, error) {
	going, reach := map[runtimeschema.GroupKind]bool{}, map[runtimeschema.GroupKind]bool{}
	for _, o := range b.Base.Objects {
		going[o.ID.GroupKind()] = going[o.ID.GroupKind()] || !wanted[o.ID]
	}
	for _, d := range b.Base.Definitions {
		reach[runtimeschema.GroupKind{Group: d.Group, Kind: d.Kind}] = true
	}
	for _, o := range b.Base.Objects {
		isXRD := crossplane.IsXRD(o.ID)
		if !isXRD && !(o.ID.IsCRD() && o.Definition == "" && going[o.Serves]) {
			continue
		}
		content, err := o.Content()
		if err != nil {
			return nil, err
		}
		group, _, _ := unstructured.NestedString(content.Object, "spec", "group")
		for _, names := range []string{"names", "claimNames"} {
			kind, _, _ := unstructured.NestedString(content.Object, "spec", names, "kind")
			categories, _, _ := unstructured.NestedStringSlice(content.Object, "spec", names, "categories")
			if isXRD || slices.ContainsFunc(categories, func(c string) bool { return slices.Contains(plan.InstanceCategories, c) }) {
				reach[runtimeschema.GroupKind{Group: group, Kind: kind}] = true
			}
		}
	}
	return reach, nil
}

// Answer answers the questions that only a cluster can answer: a commit has no custom resources to count.
func (b Baseline) Answer(ctx context.Context, questions []question.Any) (question.Answers, error) {
	if b.Counts == nil {
		return nil, nil
	}
	return b.Counts(ctx, questions)
}

// upstream returns the state that Crossplane would have created from the base.
func (b Baseline) upstream() facts.Upstream {
	if b.Base.Owner != render.OwnerCrossplane {
		return facts.Upstream{}
	}
	up := facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{}, Policies: map[string]crossplane.LivePolicy{}}
	for _, d := range b.Base.Definitions {
		up.Definitions[d.Name] = crossplane.LiveDefinition{Active: d.Active}
	}
	maps.Copy(up.Policies, b.Base.Undeclared)
	for _, p := range b.Base.Policies {
		policy := crossplane.LivePolicy{Paused: p.Paused}
		for _, pattern := range p.Patterns {
			policy.Patterns = append(policy.Patterns, pattern.Glob)
		}
		up.Policies[p.Name] = policy
	}
	return up
}
