package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object"
	"sigs.k8s.io/cli-utils/pkg/object/dependson"
)

// The codes of steps that wait for others. The first value is what they wait for: an Object, a Field, or an ID.
const (
	Object           Code = "Object"           // an object
	Field            Code = "Field"            // a field and its object
	AwaitsHeld       Code = "AwaitsHeld"       // the guard that holds the object
	AwaitsNowhere    Code = "AwaitsNowhere"    // the origin of the reference; the object is in neither the commit nor the cluster
	AwaitsAbsent     Code = "AwaitsAbsent"     // the object does not exist
	AwaitsUnready    Code = "AwaitsUnready"    // why the object is not ready
	AwaitsDependant  Code = "AwaitsDependant"  // an object that depends on it must be deleted first
	AwaitsUpdate     Code = "AwaitsUpdate"     // an object depends on it until that object is updated
	AwaitsGone       Code = "AwaitsGone"       // an object must be deleted first
	AwaitsOwnEnd     Code = "AwaitsOwnEnd"     // what the deletion of the object itself waits for
	AwaitsRelease    Code = "AwaitsRelease"    // an object that must be released first, because the garbage collector would delete it
	AwaitsMore       Code = "AwaitsMore"       // how many more objects must be deleted first
	DependencyFailed Code = "DependencyFailed" // the object, which was not applied
	DependantFailed  Code = "DependantFailed"  // the object, which was not deleted
)

// An order holds the dependencies of each object of a commit. A dependency must exist and be ready before the object is written.
type order map[manifest.ID][]edge

// An edge is a dependency on an object.
type edge struct {
	to  manifest.ID
	how string // "depends on"
}

// orderOf reads the dependencies of objects. Unreadable annotations and cycles are errors with their origin.
func orderOf(seen Observed) (order, error) {
	o := order{}
	var wrong []error
	for _, a := range seen.Asked {
		edges, err := seen.edges(a)
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
func (o Observed) edges(a Asked) ([]edge, error) {
	ids, err := named(a.Asks[dependson.Annotation])
	if err != nil {
		return nil, fmt.Errorf("%s: %w; write GROUP/namespaces/NAMESPACE/KIND/NAME, or GROUP/KIND/NAME for an object without a namespace", dependson.Annotation, err)
	}
	var edges []edge
	for _, id := range ids {
		if k, served := o.Kinds[id.GroupKind()]; served && k.Namespaced && id.Namespace == "" {
			return nil, fmt.Errorf("%s: %s/%s/%s is in a namespace; write %s/namespaces/NAMESPACE/%s/%s",
				dependson.Annotation, id.Group, id.Kind, id.Name, id.Group, id.Kind, id.Name)
		}
		id = o.AsWritten(id)
		if !slices.ContainsFunc(edges, func(e edge) bool { return e.to == id }) {
			edges = append(edges, edge{id, "depends on"})
		}
	}
	for _, r := range a.resolved.references {
		if !slices.ContainsFunc(edges, func(e edge) bool { return e.to == r.source }) {
			edges = append(edges, edge{r.source, "takes a field of"})
		}
	}
	return edges, nil
}

// AsWritten returns the ID of an object in the commit's spelling.
func (o Observed) AsWritten(id manifest.ID) manifest.ID {
	if written, differs := o.Written[id]; differs {
		return written
	}
	return id
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
		ids[i] = idOf(meta)
	}
	return ids, nil
}

// inAnnotation returns the annotation for a dependency on an object.
func inAnnotation(id manifest.ID) (map[string]string, error) {
	text, err := dependson.FormatObjMetadata(object.ObjMetadata{GroupKind: id.GroupKind(), Namespace: id.Namespace, Name: id.Name})
	return map[string]string{dependson.Annotation: text}, err
}

func idOf(meta object.ObjMetadata) manifest.ID {
	return manifest.ID{Group: meta.GroupKind.Group, Kind: meta.GroupKind.Kind, Namespace: meta.Namespace, Name: meta.Name}
}

// cycle returns an error with a cycle of dependencies if there is one. It includes implicit dependencies: of an object on its
// namespace, and of a custom resource on its CRD.
func (o order) cycle(asked []Asked) error {
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
	next := func(id manifest.ID) []edge {
		edges := slices.Clone(o[id])
		if space := (manifest.ID{Kind: "Namespace", Name: id.Namespace}); id.Namespace != "" {
			edges = append(edges, edge{space, "is in"})
		}
		if crd, ok := crds[id.GroupKind()]; ok {
			edges = append(edges, edge{crd, "is of the kind of"})
		}
		return slices.DeleteFunc(edges, func(e edge) bool { _, wanted := at[e.to]; return !wanted })
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
			way = append(way, fmt.Sprintf("  %s: %s %s %s", at[id], id, e.how, e.to))
			if err := walk(e.to); err != nil {
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

// A Dependency is the observed state of an object on which others depend.
type Dependency struct {
	Exists   bool
	NotReady Reason // why it is not ready; no reason if it is
}

// DependenciesOf returns the objects to read before Compute can decide what has to wait: the dependencies of objects that may have
// to be written.
func (o Observed) DependenciesOf() ([]manifest.ID, error) {
	first, err := orderOf(o)
	if err != nil {
		return nil, err
	}
	looked := map[manifest.ID]bool{}
	for _, a := range o.Asked {
		_, exists := o.Objects[a.ID]
		if _, tried := o.Trials[a.ID]; !exists || tried || a.Activates || len(a.resolved.missing) > 0 {
			for _, e := range first[a.ID] {
				looked[e.to] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(looked), manifest.ID.Compare), nil
}

// arrange makes steps wait until the dependencies of their objects exist and are ready.
func (p *drafted) arrange(seen Observed) {
	p.withdraw(seen)
	steps := make(map[manifest.ID]*Step, len(p.Steps))
	for i := range p.Steps {
		steps[p.Steps[i].ID] = &p.Steps[i]
	}
	resolved := make(map[manifest.ID]resolved, len(p.first))
	for _, a := range seen.Asked {
		if a.resolved.references != nil {
			resolved[a.ID] = a.resolved
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.writes() || resolved[s.ID].problem != nil {
			continue
		}
		for _, e := range p.first[s.ID] {
			why := s.comesFirst(e.to, Object.With(e.to), steps[e.to], seen)
			if m, ok := resolved[s.ID].missing[e.to]; ok {
				why = s.comesFirst(e.to, m.field, steps[e.to], seen).Or(m.why.Code.With(slices.Concat([]any{m.field}, m.why.Values, []any{s.Origin})...))
			}
			if !why.None() {
				s.wait(e.to, why)
			}
		}
	}
}

// changes reports whether another step changes a field that was copied.
func (r resolved) changes(steps map[manifest.ID]Step, seen Observed) bool {
	return slices.ContainsFunc(r.references, func(ref reference) bool {
		s := steps[ref.source]
		return s.Action == Update && ref.differs(seen.Sources[ref.source].Live, s.After)
	})
}

// comesFirst returns what the step has to wait for in a dependency; no reason if there is nothing. first is the step of the
// dependency, or nil. what is the dependency, or a field of it.
func (s Step) comesFirst(id manifest.ID, what Reason, first *Step, seen Observed) Reason {
	live := seen.Dependencies[id]
	switch {
	case first.writes():
		return what
	case first != nil && first.Action == Hold && first.Would != Prune:
		return AwaitsHeld.With(what, string(first.Guard))
	case !live.Exists && first == nil:
		return AwaitsNowhere.With(what, s.Origin)
	case !live.Exists:
		return AwaitsAbsent.With(what)
	case !live.NotReady.None():
		return AwaitsUnready.With(what, live.NotReady)
	}
	return Reason{}
}

func (s *Step) writes() bool { return s != nil && s.Action.writes() }

// wait makes a step wait for another object.
func (s *Step) wait(id manifest.ID, what Reason) {
	s.Waits = append(slices.Clip(s.Waits), what)
	s.AwaitsAll = append(s.AwaitsAll, id)
}

// mostAwaited is the maximum number of objects in the reasons of a waiting prune.
const mostAwaited = 3

// awaitDependants makes prunes wait for the objects that depend on their objects, and for those that would be deleted with them.
// The guards have made sure that each of these is deleted, updated or released.
func (p *drafted) awaitDependants(seen Observed) {
	c := p.caseOf(seen)
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Action != Prune {
			continue
		}
		for _, by := range c.Dependants(s.ID) {
			switch {
			case by.Action == Prune:
				s.wait(by.ID, AwaitsDependant.With(by.ID))
			case by.LetsGo():
				s.wait(by.ID, AwaitsUpdate.With(by.ID))
			}
		}
		for r := range p.Steps {
			if by := &p.Steps[r]; by.Action == Release && c.isOwnedBy(*by, *s) {
				by.Disowns = append(slices.Clip(by.Disowns), s.UID)
				s.wait(by.ID, AwaitsRelease.With(by.ID))
			}
		}
		awaited := c.GoingWith(*s)
		for n, by := range awaited {
			if n < mostAwaited {
				s.wait(by.ID, AwaitsGone.With(by.ID))
			} else {
				s.AwaitsAll = append(s.AwaitsAll, by.ID)
			}
		}
		if more := len(awaited) - mostAwaited; more > 0 {
			s.Waits = append(slices.Clip(s.Waits), AwaitsMore.With(more))
		}
	}
}

// isOwnedBy reports whether the garbage collector deletes the object of s after that of owner.
func (c Case) isOwnedBy(s, owner Step) bool {
	live := c.Live(s)
	return live != nil && slices.ContainsFunc(live.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID })
}

// LetsGo reports whether the step ends the dependency, with an update or a release.
func (d Dependant) LetsGo() bool {
	return (d.Action == Update && !d.Still || d.Action == Release) && d.Err == nil
}

// GoingWith returns the steps of objects that would be deleted with the object of a prune, and that the commit does not want
// either. For a deactivation, it also returns the steps of policies that would undo it. All of these come first. There are none
// while a sync ends, because an ending deletes tier by tier.
func (c Case) GoingWith(s Step) []Step {
	if c.Seen.Stance.In(Ending) {
		return nil
	}
	users, all := c.Users(s.ID)
	if !all {
		users = nil
	}
	if s.Deactivates {
		users = append(users, c.LeavingPolicies(s.ID.Name)...)
	}
	return users
}

// dependantsOf returns the dependants of each object, sorted. It reads dependencies from the commit and, for owned objects, from
// the cluster.
func dependantsOf(first order, seen Observed) map[manifest.ID][]manifest.ID {
	all := map[manifest.ID][]manifest.ID{}
	add := func(by, on manifest.ID) {
		if !slices.Contains(all[on], by) {
			all[on] = append(all[on], by)
		}
	}
	for by, edges := range first {
		for _, e := range edges {
			add(by, e.to)
		}
	}
	for by := range seen.Inventory.Entries {
		if live, exists := seen.Objects[by]; exists {
			for _, on := range seen.LiveDependencies(by, live) {
				add(by, on)
				if usage, _, _ := seen.usageOf(on); live.GetAnnotations()[ProtectAnnotation] == "true" {
					add(by, usage)
				}
			}
		}
	}
	for _, by := range all {
		slices.SortFunc(by, manifest.ID.Compare)
	}
	return all
}

// failDependants returns the plan with errors on the steps that wait for a failed step, so that they are not sent.
func (p Plan) failDependants(done []Outcome) Plan {
	failed, writes := map[manifest.ID]bool{}, map[manifest.ID]bool{}
	for _, o := range done {
		failed[o.ID] = o.Err != nil
	}
	for _, s := range p.Steps {
		failed[s.ID] = failed[s.ID] || s.Err != nil
		writes[s.ID] = s.writes()
	}
	p.Steps = slices.Clone(p.Steps)
	for again := true; again; {
		again = false
		for i, s := range p.Steps {
			at := slices.IndexFunc(s.AwaitsAll, func(id manifest.ID) bool { return failed[id] })
			if at < 0 || s.Err != nil {
				continue
			}
			code := DependencyFailed
			switch {
			case s.Action == Prune && writes[s.AwaitsAll[at]]: // the guard Unfinished holds it
				continue
			case s.Action == Prune:
				code = DependantFailed
			}
			p.Steps[i] = s.failed(code.With(s.AwaitsAll[at]))
			failed[s.ID], again = true, true
		}
	}
	return p
}

// indexDependants sets the dependants of the objects that may be pruned, and the index of the steps, which must not move
// afterwards.
func (p *drafted) indexDependants(first order, seen Observed) {
	if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.change().action == Prune }) {
		return
	}
	p.Dependants = dependantsOf(first, seen)
	p.at = make(map[manifest.ID]int, len(p.Steps))
	for i, s := range p.Steps {
		p.at[s.ID] = i
	}
}
