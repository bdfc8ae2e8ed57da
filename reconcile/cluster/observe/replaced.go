package observe

import (
	"context"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A comparison holds the effects of a package update, and what they were computed from.
type comparison struct {
	of    string
	found []plan.Effect
}

// A successor is an object as the new version of a package holds it. The object may exist in the cluster.
type successor struct {
	id      manifest.ID
	content func() (*unstructured.Unstructured, error)
	copied  bool // read from the copy in the tree, because the image could not be read
}

// replaced compares the installed definitions with those in new versions of packages. A package may have a hundred megabytes of
// definitions, so they are read a page at a time, and a held update is not compared again in every pass.
func (c *Reader) replaced(ctx context.Context, seen facts.Observed) ([]plan.Effect, error) {
	now := map[manifest.ID]comparison{}
	for id, trial := range seen.Trials {
		if !crossplane.IsPackage(id) || !trial.Replaces() {
			continue
		}
		definitions, others, digest, copied := installs(seen.Want, id)
		of := digest + " " + trial.Live.GetResourceVersion()
		known, compared := c.packages[id]
		if !compared || known.of != of {
			var err error
			if known.found, err = c.replacements(ctx, seen.Upstream, definitions, others, copied); err != nil {
				return nil, err
			}
			known.of = of
		}
		now[id] = known
	}
	c.packages = now
	var all []plan.Effect
	for _, id := range slices.SortedFunc(maps.Keys(now), manifest.ID.Compare) {
		all = append(all, whole(now[id].found, seen.Want, id)...)
	}
	return all, nil
}

// whole adds the package and the new definitions to the effects of its update. The effects that are remembered between passes leave
// them out, so that no package stays in memory.
func whole(found []plan.Effect, want render.Desired, of manifest.ID) []plan.Effect {
	found = slices.Clone(found)
	definitions, others, _, copied := installs(want, of)
	for i, e := range found {
		var after plan.FullDefinition
		for _, d := range definitions {
			if e.On == crossplane.MRD(d.Name) {
				after = plan.Lazy(mrdOf(d))
			}
		}
		for _, o := range others {
			if e.On == o.ID {
				after = plan.Lazy(o.Content)
			}
		}
		if after != nil && copied {
			after = convertedAs(after, e.Change.Live)
		}
		found[i] = e.MadeBy(of, after)
	}
	return found
}

// installs returns the content of the new version of a package: of its image or, if that could not be read, of its copy in the
// tree.
func installs(want render.Desired, of manifest.ID) (definitions []render.DecidedDefinition, others []render.Left, content string, copied bool) {
	if definitions, others, content = want.Installs(of); content != "" {
		return definitions, others, content, false
	}
	definitions, others, content = want.Copied(of)
	return definitions, others, content, true
}

// convertedAs returns a definition with the conversion of the live one, because a copy may lack the webhook of the image.
func convertedAs(after plan.FullDefinition, live *unstructured.Unstructured) plan.FullDefinition {
	return plan.Lazy(func() (*unstructured.Unstructured, error) {
		u, err := after.Content()
		if err != nil {
			return nil, err
		}
		return facts.AsConverted(u, live), nil
	})
}

// mrdOf returns a function that decodes the MRD of a definition.
func mrdOf(d render.DecidedDefinition) func() (*unstructured.Unstructured, error) {
	return func() (*unstructured.Unstructured, error) {
		o, err := d.MRD()
		if err != nil {
			return nil, err
		}
		return o.Content()
	}
}

// replacements returns the effects of an update on existing definitions and on other existing objects of the package.
func (c *Reader) replacements(ctx context.Context, up facts.Upstream, definitions []render.DecidedDefinition, others []render.Left, copied bool) ([]plan.Effect, error) {
	mrds := map[string]successor{}
	var named []successor
	for _, d := range definitions {
		if _, there := up.Definitions[d.Name]; there {
			mrds[d.Name] = successor{crossplane.MRD(d.Name), mrdOf(d), copied}
		}
	}
	for _, o := range others {
		named = append(named, successor{o.ID, o.Content, copied})
	}
	found, err := api.InParallel(ctx, c.Concurrency, named, func(ctx context.Context, s successor) (*plan.Effect, error) {
		if _, served := c.Surface.Kinds[api.GroupKind(s.id)]; !served {
			return nil, c.Surface.Known(api.GroupKind(s.id))
		}
		live, err := c.Read(ctx, s.id)
		if apierrors.IsNotFound(err) {
			return nil, nil //nolint:nilnil // it comes with the new version
		}
		if err != nil {
			return nil, c.Explain(err, "get", s.id.Brief())
		}
		return s.replace(live), nil
	})
	if err != nil {
		return nil, err
	}
	more, err := c.replacedDefinitions(ctx, mrds)
	if err != nil {
		return nil, err
	}
	var all []plan.Effect
	for _, r := range slices.Concat(found, more) {
		if r != nil {
			all = append(all, *r)
		}
	}
	slices.SortFunc(all, func(a, b plan.Effect) int { return a.On.Compare(b.On) })
	return all, nil
}

// definitionsAtOnce is the number of definitions to read with one request and to hold in memory with their schemas.
const definitionsAtOnce = 50

// replacedDefinitions compares the definitions that exist with their successors.
func (c *Reader) replacedDefinitions(ctx context.Context, successors map[string]successor) ([]*plan.Effect, error) {
	if len(successors) == 0 {
		return nil, nil
	}
	gvr, err := c.Surface.Resource(crossplane.KindMRD, "")
	if err != nil {
		return nil, err
	}
	var all []*plan.Effect
	for options := (metav1.ListOptions{Limit: definitionsAtOnce}); ; {
		page, err := c.Objects.Resource(gvr).List(ctx, options)
		if err != nil {
			return nil, c.Explain(err, "list", api.ResourceName(c.Surface, crossplane.KindMRD))
		}
		mine := slices.DeleteFunc(page.Items, func(live unstructured.Unstructured) bool { _, mine := successors[live.GetName()]; return !mine })
		found, err := api.InParallel(ctx, c.Concurrency, mine, func(_ context.Context, live unstructured.Unstructured) (*plan.Effect, error) {
			return successors[live.GetName()].replace(&live), nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}

// replace returns the effect of replacing a live object if that breaks something, otherwise nil. An unreadable successor replaces
// nothing, because Crossplane refuses the package.
func (s successor) replace(live *unstructured.Unstructured) *plan.Effect {
	after, err := s.content()
	if err != nil {
		return nil
	}
	compare := facts.NewReplacement
	if s.copied {
		compare = facts.NewCopiedReplacement
	}
	if e, breaks := compare(live, after); breaks {
		return &e
	}
	return nil
}
