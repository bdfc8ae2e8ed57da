package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	kindMRD  = groupKind(plan.MRD(""))
	kindMRAP = groupKind(plan.MRAP(""))
)

// Owner says who makes the CRDs of definitions here: as the inventory records, else
// Crossplane where its API is served. "" is that the cluster cannot tell.
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

func (s *surface) servesCrossplane() bool {
	for gk := range s.kinds {
		if gk == kindMRD || gk.Group == "pkg.crossplane.io" {
			return true
		}
	}
	return false
}

// natural is who makes the CRDs, as the cluster looks: an API that this sync itself
// serves, by CRDs that it owns, is no sign of anybody else.
func (s *surface) natural(inv plan.Inventory) render.Owner {
	_, ours := inv.Entries[plan.CRD("managedresourcedefinitions.apiextensions.crossplane.io")]
	if s.servesCrossplane() && !ours {
		return render.OwnerCrossplane
	}
	return render.OwnerHeadgate
}

// Definitions are the definitions of the cluster, for a commit that has none of its own.
func (c *Cluster) Definitions(ctx context.Context) ([]*catalogue.Definition, error) {
	s, err := c.discover(ctx)
	if err != nil {
		return nil, err
	}
	if _, served := s.kinds[kindMRD]; !served {
		return nil, s.known(kindMRD)
	}
	rows, err := c.definitions(ctx, s)
	if err != nil {
		return nil, err
	}
	all := make([]*catalogue.Definition, 0, len(rows))
	for _, r := range rows {
		plural, group, _ := strings.Cut(r.meta.Name, ".")
		all = append(all, &catalogue.Definition{Name: r.meta.Name, Plural: plural, Group: group})
	}
	return all, nil
}

// upstream is what Crossplane made, for a commit whose CRDs it makes: one request for all
// definitions, however many, and one for each other kind.
func (c *Cluster) upstream(ctx context.Context, want render.Desired) (plan.Upstream, error) {
	var up plan.Upstream
	if want.Owner != render.OwnerCrossplane {
		return up, nil
	}
	if _, served := c.surface.kinds[kindMRD]; served {
		rows, err := c.definitions(ctx, c.surface)
		if err != nil {
			return up, err
		}
		up.Definitions = make(map[string]plan.LiveDefinition, len(rows))
		for _, r := range rows {
			up.Definitions[r.meta.Name] = plan.LiveDefinition{Active: r.state == "Active", Established: r.established}
		}
		if err := c.askLaggards(ctx, want, up.Definitions); err != nil {
			return up, err
		}
	}
	if err := c.each(ctx, kindMRAP, func(u *unstructured.Unstructured) {
		if up.Policies == nil {
			up.Policies = map[string]plan.LivePolicy{}
		}
		healthy := conditionOf(u, "Healthy")
		globs, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "activate")
		up.Policies[u.GetName()] = plan.LivePolicy{
			Patterns: globs,
			Paused:   u.GetAnnotations()["crossplane.io/paused"] == "true",
			Healthy:  healthy.Status,
			Message:  healthy.Message,
		}
	}); err != nil {
		return up, err
	}
	for _, kind := range []string{"Provider", "Configuration", "Function"} {
		if err := c.each(ctx, schema.GroupKind{Group: "pkg.crossplane.io", Kind: kind}, func(u *unstructured.Unstructured) {
			if up.Packages == nil {
				up.Packages = map[manifest.ID]plan.LivePackage{}
			}
			installed, healthy := conditionOf(u, "Installed"), conditionOf(u, "Healthy")
			p := plan.LivePackage{Installed: installed.Status, Healthy: healthy.Status, Reason: healthy.Reason, Message: healthy.Message}
			if installed.Status != metav1.ConditionTrue {
				p.Reason, p.Message = installed.Reason, installed.Message
			}
			up.Packages[manifest.IDOf(u)] = p
		}); err != nil {
			return up, err
		}
	}
	return up, nil
}

// each reads the objects of a kind in full, where it is served.
func (c *Cluster) each(ctx context.Context, gk schema.GroupKind, do func(*unstructured.Unstructured)) error {
	if _, served := c.surface.kinds[gk]; !served {
		return c.surface.known(gk)
	}
	gvr, err := c.surface.resource(gk, "")
	if err != nil {
		return err
	}
	l, err := c.objects.Resource(gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return c.explain(err, "list", resourceName(c.surface, gk))
	}
	for i := range l.Items {
		do(&l.Items[i])
	}
	return nil
}

// A row is a definition as the table of its kind shows it.
type row struct {
	meta        metav1.PartialObjectMetadata
	state       string
	established metav1.ConditionStatus
}

// definitions reads all MRDs as a table: their bodies hold megabytes of schemas.
func (c *Cluster) definitions(ctx context.Context, s *surface) ([]row, error) {
	gvr, err := s.resource(kindMRD, "")
	if err != nil {
		return nil, err
	}
	raw, err := c.core.RESTClient().Get().
		AbsPath("/apis", gvr.Group, gvr.Version, gvr.Resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(ctx).Raw()
	if err != nil {
		return nil, c.explain(err, "list", resourceName(s, kindMRD))
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		return nil, fmt.Errorf("cannot read the table of %s: %w", resourceName(s, kindMRD), err)
	}
	column := func(name string) int {
		return slices.IndexFunc(table.ColumnDefinitions, func(d metav1.TableColumnDefinition) bool { return strings.EqualFold(d.Name, name) })
	}
	state, established := column("State"), column("Established")
	if state < 0 || established < 0 {
		return nil, fmt.Errorf("the table of %s has no columns State and Established: this version of Crossplane is not known", resourceName(s, kindMRD))
	}
	rows := make([]row, len(table.Rows))
	for i, r := range table.Rows {
		if err := json.Unmarshal(r.Object.Raw, &rows[i].meta); err != nil {
			return nil, fmt.Errorf("cannot read the table of %s: %w", resourceName(s, kindMRD), err)
		}
		rows[i].state, _ = r.Cells[state].(string)
		text, _ := r.Cells[established].(string)
		rows[i].established = metav1.ConditionStatus(text)
	}
	return rows, nil
}

// mostLaggards is how many definitions are asked one by one what keeps them.
const mostLaggards = 20

// askLaggards reads why definitions are not established that are active and wanted.
func (c *Cluster) askLaggards(ctx context.Context, want render.Desired, live map[string]plan.LiveDefinition) error {
	asked := 0
	for _, d := range want.Definitions {
		l, exists := live[d.Name]
		if !exists || !d.Active || !l.Active || l.Established != metav1.ConditionFalse || asked == mostLaggards {
			continue
		}
		asked++
		u, err := c.read(ctx, plan.MRD(d.Name))
		if err != nil {
			return c.explain(err, "get", "ManagedResourceDefinition "+d.Name)
		}
		condition := conditionOf(u, "Established")
		l.Established, l.Message = condition.Status, condition.Message
		live[d.Name] = l
	}
	return nil
}

// conditionOf is a condition of the status of an object; zero where it has none.
func conditionOf(u *unstructured.Unstructured, kind string) metav1.Condition {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		m, _ := item.(map[string]any)
		if m["type"] != kind {
			continue
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
	}
	return metav1.Condition{}
}
