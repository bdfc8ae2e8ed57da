package guard

import (
	"bytes"
	"strings"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mentioned holds the places in a commit that use kinds, by group and kind. The kind "" stands for every kind of the group.
type mentioned map[string]map[string][]manifest.Origin

// usedBySteps notes where the commit uses a served kind that a step breaks or keeps.
func usedBySteps(c draft.Case) func(plan.Step) plan.Ruling { return noteUses(c, c.Steps) }

// usedByEffects notes where the commit uses a served kind that a package breaks or does not contain any more.
func usedByEffects(c draft.Case) func(plan.Step) plan.Ruling {
	var changes []plan.Step
	for _, e := range c.Effects {
		if e.Kind == plan.Install {
			changes = append(changes, *e.Change)
		}
	}
	return noteUses(c, changes)
}

func noteUses(c draft.Case, steps []plan.Step) func(plan.Step) plan.Ruling {
	found := mentioned{}
	for _, s := range steps {
		if group := groupAtRisk(s); group != "" {
			if found[group] == nil {
				found[group] = map[string][]manifest.Origin{}
			}
			found[group][declaredKind(s)] = nil
		}
	}
	found.find(c.Want)
	return func(s plan.Step) plan.Ruling {
		group, kind := groupAtRisk(s), declaredKind(s)
		switch at := found[group][kind]; {
		case group == "":
			return allowed
		case len(at) > 0:
			return plan.Ruling{Judged: plan.Judged{Reason: reason.UsedInCommit.With(s.ID.Name)}, At: at}
		}
		return noted(reason.UnusedInCommit.With(s.ID.Name))
	}
}

// groupAtRisk returns the group of a served kind that a step breaks, or that stays although nothing wants it any more.
func groupAtRisk(s plan.Step) string {
	if !s.Serves || !crossplane.DeclaresKind(s.ID) {
		return ""
	}
	stays := s.Action == plan.Keep && (s.Guard != "" || s.Cause == plan.Retain)
	if !stays && len(s.Schema().Breaking()) == 0 {
		return ""
	}
	_, group, _ := strings.Cut(s.ID.Name, ".")
	return group
}

// declaredKind returns the name of the kind, if the object declares exactly one.
func declaredKind(s plan.Step) string {
	if s.Live == nil || crossplane.IsXRD(s.ID) { // the claims of an XRD have a second kind
		return ""
	}
	kind, _, _ := unstructured.NestedString(s.Live.Object, "spec", "names", "kind")
	return kind
}

// find adds the places of objects that mention the kinds, such as an object of a kind or a Composition. An object that cannot be read
// counts as a use of each.
func (u mentioned) find(want render.Desired) {
	if len(u) == 0 {
		return
	}
	for _, o := range want.Objects {
		u.look(o)
	}
	for _, l := range want.Left {
		if l.Composition != nil {
			u.look(*l.Composition)
		}
	}
}

func (u mentioned) look(o render.Object) {
	if crossplane.DeclaresKind(o.ID) || crossplane.IsMRAP(o.ID) || crossplane.IsPackage(o.ID) {
		return
	}
	text, unread := contentOf(o)
	mentions := func(word string) bool { return unread || bytes.Contains(text, []byte(word)) }
	for group, kinds := range u {
		if !mentions(group) {
			continue
		}
		for kind := range kinds {
			if mentions(kind) {
				kinds[kind] = append(kinds[kind], o.Origin)
			}
		}
	}
}

// contentOf returns the JSON of an object. unread is true if the object cannot be read.
func contentOf(o render.Object) (text []byte, unread bool) {
	u, err := o.Content()
	if err != nil {
		return nil, true
	}
	text, err = u.MarshalJSON()
	return text, err != nil
}
