package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Owner returns the owner of CRDs: the one in the inventory or, without one, Crossplane if its API is served. It returns "" if that
// is not known.
func (c *Cluster) Owner(ctx context.Context) (render.Owner, error) {
	inv, err := c.Inventory(ctx)
	if err != nil || inv.Owner != "" {
		return inv.Owner, err
	}
	s, err := c.discover(ctx)
	if err != nil {
		return "", err
	}
	if s.servesCrossplane() {
		return render.OwnerCrossplane, nil
	}
	return "", nil
}

func (s *surface) servesCrossplane() bool { return facts.ServesCrossplane(s.kinds) }

// natural returns the owner of CRDs according to the cluster. A Crossplane API does not count if this sync itself owns the CRDs of
// that API.
func (s *surface) natural(inv inventory.Inventory) render.Owner {
	_, ours := inv.Entries[plan.CRD(crossplane.MRDs)]
	if s.servesCrossplane() && !ours {
		return render.OwnerCrossplane
	}
	return render.OwnerHeadgate
}

// Definitions returns the definitions in the cluster, for a commit that has none of its own.
func (c *Cluster) Definitions(ctx context.Context) ([]*catalogue.Definition, error) {
	s, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	if _, served := s.kinds[crossplane.KindMRD]; !served {
		return nil, s.known(crossplane.KindMRD)
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
func (c *Cluster) Packages(ctx context.Context) ([]crossplane.Installed, error) {
	lock, err := c.objects.Resource(crossplane.Locks).Get(ctx, "lock", metav1.GetOptions{})
	if apierrors.IsNotFound(err) || c.unserved(ctx, err, crossplane.KindLock) {
		return nil, nil
	}
	if err != nil {
		return nil, c.explain(err, "get", crossplane.Locks.GroupResource().String()+" lock")
	}
	return crossplane.InstalledOf(lock)
}

// ImageConfigs returns the ImageConfigs of the cluster, or nil without Crossplane. It takes one request, and a second one for the inventory if one of them has our marks.
func (c *Cluster) ImageConfigs(ctx context.Context) ([]packages.LiveConfig, error) {
	all, marked, err := c.imageConfigs(ctx)
	if err != nil || len(marked) == 0 {
		return all, err
	}
	// Packages are also fetched while a pass runs, so this must not use the state of the pass.
	owned, err := c.another(c.sync).Inventory(ctx)
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
func (c *Cluster) imageConfigs(ctx context.Context) ([]packages.LiveConfig, map[string]*unstructured.Unstructured, error) {
	l, err := c.objects.Resource(crossplane.ImageConfigs).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || c.unserved(ctx, err, crossplane.KindImageConfig) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, c.explain(err, "list", crossplane.ImageConfigs.GroupResource().String())
	}
	all := make([]packages.LiveConfig, 0, len(l.Items))
	marked := map[string]*unstructured.Unstructured{}
	for i := range l.Items {
		u := &l.Items[i]
		spec, _ := u.Object["spec"].(map[string]any)
		all = append(all, packages.LiveConfig{Name: u.GetName(), Spec: spec})
		if inventory.Ours(u, c.sync) {
			marked[u.GetName()] = u
		}
	}
	slices.SortFunc(all, func(a, b packages.LiveConfig) int { return cmp.Compare(a.Name, b.Name) })
	return all, marked, nil
}

// unserved reports whether a forbidden kind is not served at all: the API server checks the rights first.
func (c *Cluster) unserved(ctx context.Context, err error, gk schema.GroupKind) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	s, err := c.discover(ctx)
	if err != nil || s.known(gk) != nil {
		return false
	}
	_, served := s.kinds[gk]
	return !served
}

// upstream reads what Crossplane has made, for a commit whose CRDs Crossplane makes. It sends one request for all definitions and
// one for each other kind.
func (c *Cluster) upstream(ctx context.Context, want render.Desired) (facts.Upstream, error) {
	var up facts.Upstream
	if want.Owner != render.OwnerCrossplane {
		return up, nil
	}
	if _, served := c.surface.kinds[crossplane.KindMRD]; served {
		include := metav1.IncludeNone
		// The metadata shows which package revision controls a definition.
		if c.options.Terms.Deactivate || slices.ContainsFunc(want.Packages, func(p catalogue.Package) bool { return !p.Pulled() }) {
			include = metav1.IncludeMetadata
		}
		rows, err := c.definitions(ctx, c.surface, include)
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
	if up.Policies, err = c.policies(ctx, c.surface); err != nil {
		return up, err
	}
	for _, kind := range crossplane.PackageKinds() {
		if err := c.each(ctx, kind, func(u *unstructured.Unstructured) {
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
func (c *Cluster) Policies(ctx context.Context) (map[string]crossplane.LivePolicy, error) {
	s, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	return c.policies(ctx, s)
}

// policies returns the policies of the cluster by name, with one request; nil if there are none.
func (c *Cluster) policies(ctx context.Context, s *surface) (map[string]crossplane.LivePolicy, error) {
	var all map[string]crossplane.LivePolicy
	err := c.eachOf(ctx, s, crossplane.KindMRAP, func(u *unstructured.Unstructured) {
		if all == nil {
			all = map[string]crossplane.LivePolicy{}
		}
		all[u.GetName()] = crossplane.LivePolicyOf(u)
	})
	return all, err
}

// recount returns an error if the policies of the cluster activate more than the plan expected, because the update of one failed or
// another writer was faster. A package that is sent now would activate more than the guards allowed.
func (r *execution) recount(ctx context.Context) error {
	live, err := r.policies(ctx, r.surface)
	if err != nil {
		return fmt.Errorf("not sent: cannot read what policies activate: %w", err)
	}
	return plan.Wider(r.plan, live)
}

// unnamed returns an error if a policy of the cluster activates the definition: it would become active again as soon as it is back.
func (r *execution) unnamed(ctx context.Context, definition string) error {
	live, err := r.policies(ctx, r.surface)
	if err != nil {
		return err
	}
	if policy := facts.Named(live, definition); policy != "" {
		return fmt.Errorf("the policy %s activates it now, so it was left alone", policy)
	}
	return nil
}

// each reads the objects of a kind in full, if it is served.
func (c *Cluster) each(ctx context.Context, gk schema.GroupKind, do func(*unstructured.Unstructured)) error {
	return c.eachOf(ctx, c.surface, gk, do)
}

func (c *Cluster) eachOf(ctx context.Context, s *surface, gk schema.GroupKind, do func(*unstructured.Unstructured)) error {
	if _, served := s.kinds[gk]; !served {
		return s.known(gk)
	}
	var l *unstructured.UnstructuredList
	err := c.reading(ctx, s, gk, func(gvr schema.GroupVersionResource) (err error) {
		l, err = c.objects.Resource(gvr).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return c.explain(err, "list", resourceName(s, gk))
	}
	for i := range l.Items {
		do(&l.Items[i])
	}
	return nil
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
func (c *Cluster) definitions(ctx context.Context, s *surface, include metav1.IncludeObjectPolicy) ([]row, error) {
	gvr, err := s.resource(crossplane.KindMRD, "")
	if err != nil {
		return nil, err
	}
	raw, err := c.core.RESTClient().Get().
		AbsPath("/apis", gvr.Group, gvr.Version, gvr.Resource).
		Param("includeObject", string(include)).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(ctx).Raw()
	if err != nil {
		return nil, c.explain(err, "list", resourceName(s, crossplane.KindMRD))
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, fmt.Errorf("cannot read the table of %s: %w", resourceName(s, crossplane.KindMRD), err)
	}
	column := func(name string) int {
		return slices.IndexFunc(table.ColumnDefinitions, func(d metav1.TableColumnDefinition) bool { return strings.EqualFold(d.Name, name) })
	}
	name, state, established := column("Name"), column("State"), column("Established")
	if name < 0 || state < 0 || established < 0 {
		return nil, fmt.Errorf("the table of %s has no columns Name, State and Established: this version of Crossplane is not known", resourceName(s, crossplane.KindMRD))
	}
	rows := make([]row, len(table.Rows))
	for i, r := range table.Rows {
		if include == metav1.IncludeMetadata {
			var meta metav1.PartialObjectMetadata
			if err := json.Unmarshal(r.Object.Raw, &meta); err != nil {
				return nil, fmt.Errorf("cannot read the table of %s: %w", resourceName(s, crossplane.KindMRD), err)
			}
			rows[i].revision, _ = crossplane.RevisionOf(&meta)
			rows[i].meta = typed(&meta, gvr.GroupVersion(), crossplane.KindMRD.Kind)
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
func (c *Cluster) askLaggards(ctx context.Context, want render.Desired, live map[string]crossplane.LiveDefinition) error {
	asked := 0
	for _, d := range want.Definitions {
		l, exists := live[d.Name]
		if !exists || !d.Active || !l.Active || l.Established == metav1.ConditionTrue || asked == mostLaggards {
			continue
		}
		asked++
		if err := c.ask(ctx, d.Name, &l); err != nil && !apierrors.IsNotFound(err) { // it was deleted in the meantime
			return err
		}
		live[d.Name] = l
	}
	return nil
}

// ask reads why one definition is not established.
func (c *Cluster) ask(ctx context.Context, name string, l *crossplane.LiveDefinition) (err error) {
	if l.Established == metav1.ConditionUnknown {
		l.CRD, err = c.pending(ctx, name)
		return err
	}
	u, err := c.read(ctx, crossplane.MRD(name))
	if err != nil {
		return c.explain(err, "get", "ManagedResourceDefinition "+name)
	}
	l.Paused = crossplane.IsPaused(u)
	if l.Established == metav1.ConditionFalse && !l.Paused {
		l.Message = c.blocked(ctx, u)
	}
	return nil
}

// blocked returns why Crossplane does not make the CRD of a definition. The condition hardly says more than that there are events.
// Without the right to read these, blocked returns the condition's message.
func (c *Cluster) blocked(ctx context.Context, mrd *unstructured.Unstructured) string {
	text := crossplane.Condition(mrd, "Established").Message
	events, err := c.core.Events("").List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.kind": crossplane.KindMRD.Kind, "involvedObject.uid": string(mrd.GetUID()), "type": core.EventTypeWarning,
	}.String()})
	if err != nil || len(events.Items) == 0 {
		return text
	}
	newest := slices.MaxFunc(events.Items, func(a, b core.Event) int { return cmp.Compare(at(a), at(b)) })
	return strings.TrimPrefix(text+": "+newest.Message, ": ")
}

// at returns when an event was last seen, in seconds.
func at(e core.Event) int64 {
	if e.Series != nil {
		return e.Series.LastObservedTime.Unix()
	}
	return max(e.LastTimestamp.Unix(), e.EventTime.Unix())
}

// pending returns why the CRD of a definition is not served.
func (c *Cluster) pending(ctx context.Context, name string) (crossplane.CRD, error) {
	u, err := c.read(ctx, plan.CRD(name))
	if err != nil {
		return crossplane.CRD{}, c.explain(err, "get", "CustomResourceDefinition "+name)
	}
	var crd apiextensions.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
		return crossplane.CRD{}, err
	}
	return unestablished(&crd), nil
}
