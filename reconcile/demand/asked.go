// Package demand resolves what a commit asks for against the facts: its objects with their references, namespaces, dependencies and
// protection.
package demand

import (
	"errors"
	"slices"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Ask returns the observation together with the commit, and with the objects that the commit asks for. It resolves references whose
// sources have been read, and adds the objects that protect dependencies. Compute plans for this commit. An observer calls Ask
// before it reads objects, because the result names them.
func Ask(o facts.Observed, commit render.Desired) (facts.Observed, error) {
	o.Commit = &commit
	objects, answers, err := resolved(o, commit)
	if err == nil {
		objects, err = protect(o, objects, answers)
	}
	if err != nil {
		return o, err
	}
	return askingFor(o, objects, answers)
}

// AskOthers is Ask for a commit that other tools apply. What only Headgate does with an object is not asked for.
func AskOthers(o facts.Observed, commit render.Desired) (facts.Observed, error) {
	o.Commit = &commit
	objects, answers, err := resolved(o, commit)
	if err != nil {
		return o, err
	}
	o, err = askingFor(o, objects, answers)
	for i := range o.Asked {
		o.Asked[i].Policy, o.Asked[i].Activates = inventory.Default, false
	}
	return o, err
}

// resolved returns the objects of a commit with their references, and the results of the references.
func resolved(o facts.Observed, commit render.Desired) ([]render.Object, map[manifest.ID]facts.Resolved, error) {
	answers := map[manifest.ID]facts.Resolved{}
	secret := secretive(o, commit)
	objects := make([]render.Object, 0, len(commit.Objects))
	var wrong []error
	for _, of := range commit.Objects {
		of, err := inServedVersion(o.Kinds, of)
		if err != nil {
			return nil, nil, err
		}
		r, err := resolve(o, of, secret)
		if err != nil {
			wrong = append(wrong, catalogue.Errorf(of.Origin, "%s: %w", of.ID, err))
			continue
		}
		if !r.Nameless && !mayObserve(o, r.Object) {
			wrong = append(wrong, catalogue.Errorf(of.Origin, "%s: its management policy observes it, which allowedKinds and references.namespaces of the Sync do not allow; allow it there, or remove it", r.Object.ID))
			continue
		}
		if r.Nameless {
			r.Object.ID = of.ID
		}
		if r.References != nil {
			answers[r.Object.ID] = r
		}
		objects = append(objects, r.Object)
	}
	return objects, answers, errors.Join(wrong...)
}

// askingFor returns the observation with the objects of its commit, as their references complete them.
func askingFor(o facts.Observed, objects []render.Object, answers map[manifest.ID]facts.Resolved) (facts.Observed, error) {
	if len(answers) > 0 || len(objects) > len(o.Commit.Objects) {
		slices.SortFunc(objects, func(a, b render.Object) int { return a.ID.Compare(b.ID) })
		for i := range objects[1:] {
			if objects[i].ID == objects[i+1].ID {
				return o, catalogue.Errorf(objects[i+1].Origin, "%s, as its reference names it, is declared at %s already; remove one of them", objects[i].ID, objects[i].Origin)
			}
		}
	}
	o.Want = *o.Commit
	o.Want.Objects = objects
	var err error
	o.Asked, err = askedFor(o.Want, o.Inventory)
	for i, a := range o.Asked {
		o.Asked[i].Resolved = answers[a.ID]
	}
	return o, err
}

// Found returns the observation with the inventory and the existing objects, and completes the list of objects to apply. An
// existing object may request protection of its dependencies, and a rebuilt inventory may retain definitions.
func Found(o facts.Observed, owned inventory.Inventory, objects map[manifest.ID]*metav1.PartialObjectMetadata) (facts.Observed, error) {
	o.Inventory, o.Objects = owned, objects
	return Ask(o, *o.Commit)
}

// ErrNotAsked is the error of a plan without a call of Ask. Such a plan would prune everything that is owned.
var ErrNotAsked = errors.New("the observation is not for a commit")

// askedFor returns all objects that the commit wants, and every owned definition that the commit still declares: activation is
// final, whatever the policies say now. The order is that of want.
func askedFor(want render.Desired, have inventory.Inventory) ([]facts.Asked, error) {
	asked := make([]facts.Asked, 0, len(want.Objects))
	active := make(map[string]render.DecidedDefinition, len(want.Definitions))
	for _, d := range want.Definitions {
		if d.Active && !d.Paused {
			active[d.Name] = d
		}
	}
	var wrong []error
	for _, o := range want.Objects {
		policy, err := inventory.PolicyOf(o)
		if err != nil {
			wrong = append(wrong, err)
		}
		a := facts.Asked{Object: o, Policy: policy}
		if o.Definition != "" {
			a.Because = active[o.Definition].Reasons
		}
		asked = append(asked, a)
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	if want.Owner == render.OwnerCrossplane {
		return asked, nil // Crossplane keeps the CRDs that it makes
	}
	for _, d := range want.Definitions {
		if _, ok := active[d.Name]; ok {
			continue
		}
		if _, owned := have.Entries[plan.CRD(d.Name)]; !owned {
			continue
		}
		o, err := d.CRD()
		if err != nil {
			return nil, err
		}
		a := facts.Asked{Object: o, Paused: d.Paused, Retained: reason.ActivationFinal.With()}
		if policy := want.Pauses(d.Name); policy != "" {
			a.Retained = reason.PolicyPaused.With(policy)
		}
		if d.Paused {
			a.Retained = reason.DefinitionPaused.With()
		}
		asked = append(asked, a)
	}
	return asked, nil
}

// Sent returns an object exactly as it is sent if none of its fields are ignored: the object with our marks.
func Sent(s inventory.Sync, o render.Object) (*unstructured.Unstructured, error) {
	u, err := o.Content()
	if err != nil {
		return nil, err
	}
	if _, ok := u.Object["metadata"].(map[string]any); !ok {
		return nil, catalogue.Errorf(o.Origin, "metadata is not a mapping")
	}
	diff.LeaveInjected(u)
	manifest.DropPlaceholderCA(u) // drop it from objects without references, too
	manifest.EncodeStringData(u)
	s.Own(u)
	return u, nil
}
