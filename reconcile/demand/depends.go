package demand

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object"
	"sigs.k8s.io/cli-utils/pkg/object/dependson"
)

// An Order holds the dependencies of each object of a commit. A dependency must exist and be ready before the object is written.
type Order map[manifest.ID][]Edge

// An Edge is a dependency on an object.
type Edge struct {
	To  manifest.ID
	how string // "depends on"
}

// OrderOf reads the dependencies of objects. Unreadable annotations and cycles are errors with their origin.
func OrderOf(seen facts.Observed) (Order, error) {
	o := Order{}
	var wrong []error
	for _, a := range seen.Asked {
		edges, err := edges(seen.Ground, a)
		if err != nil {
			wrong = append(wrong, catalogue.Errorf(a.Origin, "%s: %w", a.ID, err))
		}
		if len(edges) > 0 {
			o[a.ID] = edges
		}
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return o, o.cycle(seen.Asked)
}

// edges returns the dependencies of an object, without duplicates.
func edges(o facts.Ground, a facts.Asked) ([]Edge, error) {
	ids, err := named(a.Asks[dependson.Annotation])
	if err != nil {
		return nil, fmt.Errorf("%s: %w; write GROUP/namespaces/NAMESPACE/KIND/NAME, or GROUP/KIND/NAME for an object without a namespace", dependson.Annotation, err)
	}
	var edges []Edge
	for _, id := range ids {
		if k, served := o.Kinds[id.GroupKind()]; served && k.Namespaced && id.Namespace == "" {
			return nil, fmt.Errorf("%s: %s/%s/%s is in a namespace; write %s/namespaces/NAMESPACE/%s/%s",
				dependson.Annotation, id.Group, id.Kind, id.Name, id.Group, id.Kind, id.Name)
		}
		id = o.AsWritten(id)
		if !slices.ContainsFunc(edges, func(e Edge) bool { return e.To == id }) {
			edges = append(edges, Edge{id, "depends on"})
		}
	}
	for _, r := range a.Resolved.References {
		if !slices.ContainsFunc(edges, func(e Edge) bool { return e.To == r.Source }) {
			edges = append(edges, Edge{r.Source, "takes a field of"})
		}
	}
	return edges, nil
}

// named returns the IDs in the value of the annotation.
func named(value string) ([]manifest.ID, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	set, err := dependson.ParseDependencySet(value)
	if err != nil {
		return nil, err
	}
	ids := make([]manifest.ID, len(set))
	for i, meta := range set {
		ids[i] = facts.IDOf(meta)
	}
	return ids, nil
}

// inAnnotation returns the annotation for a dependency on an object.
func inAnnotation(id manifest.ID) (map[string]string, error) {
	text, err := dependson.FormatObjMetadata(object.ObjMetadata{GroupKind: id.GroupKind(), Namespace: id.Namespace, Name: id.Name})
	return map[string]string{dependson.Annotation: text}, err
}

// cycle returns an error with a cycle of dependencies if there is one. It includes implicit dependencies: of an object on its
// namespace, and of a custom resource on its CRD.
func (o Order) cycle(asked []facts.Asked) error {
	if len(o) == 0 {
		return nil
	}
	at := make(map[manifest.ID]manifest.Origin, len(asked))
	crds := map[schema.GroupKind]manifest.ID{}
	for _, a := range asked {
		at[a.ID] = a.Origin
		if a.ID.IsCRD() {
			crds[a.Serves] = a.ID
		}
	}
	next := func(id manifest.ID) []Edge {
		edges := slices.Clone(o[id])
		if space := (manifest.ID{Kind: "Namespace", Name: id.Namespace}); id.Namespace != "" {
			edges = append(edges, Edge{space, "is in"})
		}
		if crd, ok := crds[id.GroupKind()]; ok {
			edges = append(edges, Edge{crd, "is of the kind of"})
		}
		return slices.DeleteFunc(edges, func(e Edge) bool { _, wanted := at[e.To]; return !wanted })
	}

	left := map[manifest.ID]bool{} // objects that are on no cycle
	var way []string
	var open []manifest.ID // the path to the current object
	var walk func(id manifest.ID) error
	walk = func(id manifest.ID) error {
		if i := slices.Index(open, id); i >= 0 {
			return catalogue.Errorf(at[id], "%s waits for itself; take one of these out:\n%s", id, strings.Join(way[i:], "\n"))
		}
		if left[id] {
			return nil
		}
		open = append(open, id)
		for _, e := range next(id) {
			way = append(way, fmt.Sprintf("  %s: %s %s %s", at[id], id, e.how, e.To))
			if err := walk(e.To); err != nil {
				return err
			}
			way = way[:len(way)-1]
		}
		open = open[:len(open)-1]
		left[id] = true
		return nil
	}
	for _, id := range slices.SortedFunc(maps.Keys(o), manifest.ID.Compare) {
		if err := walk(id); err != nil {
			return err
		}
	}
	return nil
}
