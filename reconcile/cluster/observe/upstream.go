package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Owner returns the owner of CRDs: the one in the inventory or, without one, Crossplane if its API is served. It returns "" if that
// is not known.
func (c *Reader) Owner(ctx context.Context) (render.Owner, error) {
	inv, err := c.Inventory(ctx)
	if err != nil || inv.Owner != "" {
		return inv.Owner, err
	}
	s, err := c.Discover(ctx)
	if err != nil {
		return "", err
	}
	if s.ServesCrossplane() {
		return render.OwnerCrossplane, nil
	}
	return "", nil
}

// natural returns the owner of CRDs according to the cluster. A Crossplane API does not count if this sync itself owns the CRDs of
// that API.
func natural(s *api.Surface, inv inventory.Inventory) render.Owner {
	_, ours := inv.Entries[plan.CRD(crossplane.MRDs)]
	if s.ServesCrossplane() && !ours {
		return render.OwnerCrossplane
	}
	return render.OwnerHeadgate
}

// Definitions returns the definitions in the cluster, for a commit that has none of its own.
func (c *Reader) Definitions(ctx context.Context) ([]*catalogue.Definition, error) {
	s, err := c.Discover(ctx)
	if err != nil {
		return nil, err
	}
	if _, served := s.Kinds[crossplane.KindMRD]; !served {
		return nil, s.Known(crossplane.KindMRD)
	}
	rows, err := c.definitions(ctx, s, metav1.IncludeNone)
	if err != nil {
		return nil, err
	}
	all := make([]*catalogue.Definition, 0, len(rows))
	for _, r := range rows {
		plural, group, _ := strings.Cut(r.name, ".")
		all = append(all, &catalogue.Definition{Name: r.name, Plural: plural, Group: group})
	}
	return all, nil
}

// Packages returns the packages that Crossplane has installed, with one request, or nil without Crossplane.
func (c *Reader) Packages(ctx context.Context) ([]crossplane.Installed, error) {
	lock, err := c.Objects.Resource(crossplane.Locks).Get(ctx, "lock", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || c.unserved(ctx, err, crossplane.KindLock) {
		return nil, nil
	}
	if err != nil {
		return nil, c.Explain(err, "get", crossplane.Locks.GroupResource().String()+" lock")
	}
	return crossplane.InstalledOf(lock)
}

// AppliedImages returns the images that the sync applied, with one request; see inventory.Record.
func (c *Reader) AppliedImages(ctx context.Context) ([]packages.Locked, error) {
	owned, err := c.Another(c.Sync).Inventory(ctx) // as in ImageConfigs
	return owned.Record.Images, err
}

// ImageConfigs returns the ImageConfigs of the cluster, or nil without Crossplane. It takes one request, and a second one for the inventory if one of them has our marks.
func (c *Reader) ImageConfigs(ctx context.Context) ([]packages.LiveConfig, error) {
	all, marked, err := c.imageConfigs(ctx)
	if err != nil || len(marked) == 0 {
		return all, err
	}
	// Packages are also fetched while a pass runs, so this must not use the state of the pass.
	owned, err := c.Another(c.Sync).Inventory(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		live, ok := marked[all[i].Name]
		if !ok {
			continue
		}
		id := manifest.IDOf(live)
		_, kept := ownership.Kept(inventory.Default, live)
		all[i].Ours = owned.Holds(id, live) && !owned.Entries[id].Rebuilt && !kept
	}
	return all, nil
}

// imageConfigs returns the ImageConfigs of the cluster and, by name, those that carry our marks.
func (c *Reader) imageConfigs(ctx context.Context) ([]packages.LiveConfig, map[string]*unstructured.Unstructured, error) {
	l, err := c.Objects.Resource(crossplane.ImageConfigs).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || c.unserved(ctx, err, crossplane.KindImageConfig) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, c.Explain(err, "list", crossplane.ImageConfigs.GroupResource().String())
	}
	all := make([]packages.LiveConfig, 0, len(l.Items))
	marked := map[string]*unstructured.Unstructured{}
	for i := range l.Items {
		u := &l.Items[i]
		spec, _ := u.Object["spec"].(map[string]any)
		all = append(all, packages.LiveConfig{Name: u.GetName(), Spec: spec})
		if inventory.Ours(u, c.Sync) {
			marked[u.GetName()] = u
		}
	}
	slices.SortFunc(all, func(a, b packages.LiveConfig) int { return cmp.Compare(a.Name, b.Name) })
	return all, marked, nil
}

// unserved reports whether a forbidden kind is not served at all: the API server checks the rights first.
func (c *Reader) unserved(ctx context.Context, err error, gk schema.GroupKind) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	s, err := c.Discover(ctx)
	if err != nil || s.Known(gk) != nil {
		return false
	}
	_, served := s.Kinds[gk]
	return !served
}

// upstream reads what Crossplane has made, for a commit whose CRDs Crossplane makes. It sends one request for all definitions and
// one for each other kind.
func (c *Reader) upstream(ctx context.Context, want render.Desired) (facts.Upstream, error) {
	var up facts.Upstream
	if want.Owner != render.OwnerCrossplane {
		return up, nil
	}
	if _, served := c.Surface.Kinds[crossplane.KindMRD]; served {
		include := metav1.IncludeNone
		// The metadata shows which package revision controls a definition.
		if c.options.Terms.Deactivate || slices.ContainsFunc(want.Packages, func(p catalogue.Package) bool { return !p.Pulled() }) {
			include = metav1.IncludeMetadata
		}
		rows, err := c.definitions(ctx, c.Surface, include)
		if err != nil {
			return up, err
		}
		up.Definitions = make(map[string]crossplane.LiveDefinition, len(rows))
		for _, r := range rows {
			up.Definitions[r.name] = crossplane.LiveDefinition{Active: r.state == "Active", Established: r.established, Revision: r.revision}
		}
		if c.options.Terms.Deactivate {
			if err := c.seeDeactivatable(ctx, rows, &up); err != nil {
				return up, err
			}
		}
		if err := c.askLaggards(ctx, want, up.Definitions); err != nil {
			return up, err
		}
	}
	var err error
	if up.Policies, err = c.count.Policies(ctx, c.Surface); err != nil {
		return up, err
	}
	for _, kind := range crossplane.PackageKinds() {
		if err := c.Each(ctx, kind, func(u *unstructured.Unstructured) {
			if up.Packages == nil {
				up.Packages = map[manifest.ID]crossplane.LivePackage{}
			}
			up.Packages[manifest.IDOf(u)] = crossplane.LivePackageOf(u)
		}); err != nil {
			return up, err
		}
	}
	return up, nil
}

// Policies returns the policies of the cluster by name, or nil without Crossplane.
func (c *Reader) Policies(ctx context.Context) (map[string]crossplane.LivePolicy, error) {
	s, err := c.Discover(ctx)
	if err != nil {
		return nil, err
	}
	return c.count.Policies(ctx, s)
}

// A row is a definition in the table of MRDs.
type row struct {
	name, state string
	established metav1.ConditionStatus
	revision    string // the revision that controls it; only with metadata
	meta        *metav1.PartialObjectMetadata
}

// definitions reads all MRDs as a table: their bodies hold a hundred megabytes of schemas, and the metadata alone of two thousand
// MRDs takes six.
func (c *Reader) definitions(ctx context.Context, s *api.Surface, include metav1.IncludeObjectPolicy) ([]row, error) {
	gvr, err := s.Resource(crossplane.KindMRD, "")
	if err != nil {
		return nil, err
	}
	raw, err := c.Core.RESTClient().Get().
		AbsPath("/apis", gvr.Group, gvr.Version, gvr.Resource).
		Param("includeObject", string(include)).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(ctx).Raw()
	if err != nil {
		return nil, c.Explain(err, "list", api.ResourceName(s, crossplane.KindMRD))
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, fmt.Errorf("cannot read the table of %s: %w", api.ResourceName(s, crossplane.KindMRD), err)
	}
	column := func(name string) int {
		return slices.IndexFunc(table.ColumnDefinitions, func(d metav1.TableColumnDefinition) bool { return strings.EqualFold(d.Name, name) })
	}
	name, state, established := column("Name"), column("State"), column("Established")
	if name < 0 || state < 0 || established < 0 {
		return nil, fmt.Errorf("the table of %s has no columns Name, State and Established: this version of Crossplane is not known", api.ResourceName(s, crossplane.KindMRD))
	}
	rows := make([]row, len(table.Rows))
	for i, r := range table.Rows {
		if include == metav1.IncludeMetadata {
			var meta metav1.PartialObjectMetadata
			if err := json.Unmarshal(r.Object.Raw, &meta); err != nil {
				return nil, fmt.Errorf("cannot read the table of %s: %w", api.ResourceName(s, crossplane.KindMRD), err)
			}
			rows[i].revision, _ = crossplane.RevisionOf(&meta)
			rows[i].meta = api.Typed(&meta, gvr.GroupVersion(), crossplane.KindMRD.Kind)
		}
		rows[i].name, _ = r.Cells[name].(string)
		rows[i].state, _ = r.Cells[state].(string)
		text, _ := r.Cells[established].(string)
		rows[i].established = metav1.ConditionStatus(text)
	}
	return rows, nil
}

// mostLaggards is the maximum number of definitions to read one by one for the reason why they are not established.
const mostLaggards = 20

// askLaggards reads why active and wanted definitions are not established.
func (c *Reader) askLaggards(ctx context.Context, want render.Desired, live map[string]crossplane.LiveDefinition) error {
	asked := 0
	for _, d := range want.Definitions {
		l, exists := live[d.Name]
		if !exists || !d.Active || !l.Active || l.Established == metav1.ConditionTrue || asked == mostLaggards {
			continue
		}
		asked++
		if err := c.count.Ask(ctx, d.Name, &l); err != nil && !apierrors.IsNotFound(err) { // it was deleted in the meantime
			return err
		}
		live[d.Name] = l
	}
	return nil
}
