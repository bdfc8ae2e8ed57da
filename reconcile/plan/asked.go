package plan

import (
	"errors"
	"slices"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The codes of definitions that are kept.
const (
	ActivationFinal  Code = "ActivationFinal"  // no policy names the definition
	PolicyPaused     Code = "PolicyPaused"     // the policy that names the definition
	DefinitionPaused Code = "DefinitionPaused" // the definition itself is paused
)

// An Asked is one object that a pass wants in the cluster: an object of the commit, or a definition that stays active although the
// commit does not activate it any more.
type Asked struct {
	render.Object
	Because  []activation.Activator     // of a definition's CRD: why the definition is active
	Retained Reason                     // why it is wanted although the commit does not activate it; no reason if the commit does
	Paused   bool                       // leave it unchanged
	Policy   inventory.ManagementPolicy // which actions are allowed

	resolved resolved // the results of its references
}

// Ask returns the observation together with the commit, and with the objects that the commit asks for. It resolves references whose
// sources have been read, and adds the objects that protect dependencies. Compute plans for this commit. An observer calls Ask
// before it reads objects, because the result names them.
func (o Observed) Ask(commit render.Desired) (Observed, error) {
	o.commit = &commit
	answers := map[manifest.ID]resolved{}
	secret := o.secretive(commit)
	objects := make([]render.Object, 0, len(commit.Objects))
	var wrong []error
	for _, of := range commit.Objects {
		r, err := o.resolve(of, secret)
		if err != nil {
			wrong = append(wrong, catalogue.Errorf(of.Origin, "%s: %w", of.ID, err))
			continue
		}
		if !r.nameless && !o.mayObserve(r.object) {
			wrong = append(wrong, catalogue.Errorf(of.Origin, "%s: its management policy observes it, which allowedKinds and references.namespaces of the Sync do not allow; allow it there, or remove it", r.object.ID))
			continue
		}
		if r.nameless {
			r.object.ID = of.ID
		}
		if r.references != nil {
			answers[r.object.ID] = r
		}
		objects = append(objects, r.object)
	}
	if len(wrong) > 0 {
		return o, errors.Join(wrong...)
	}
	objects, err := o.protect(objects, answers)
	if err != nil {
		return o, err
	}
	if len(answers) > 0 || len(objects) > len(commit.Objects) {
		slices.SortFunc(objects, func(a, b render.Object) int { return a.ID.Compare(b.ID) })
		for i := range objects[1:] {
			if objects[i].ID == objects[i+1].ID {
				return o, catalogue.Errorf(objects[i+1].Origin, "%s, as its reference names it, is declared at %s already; remove one of them", objects[i].ID, objects[i].Origin)
			}
		}
	}
	o.Want = commit
	o.Want.Objects = objects
	o.Asked, err = askedFor(o.Want, o.Inventory)
	for i, a := range o.Asked {
		o.Asked[i].resolved = answers[a.ID]
	}
	return o, err
}

// Found returns the observation with the inventory and the existing objects, and completes the list of objects to apply. An
// existing object may request protection of its dependencies, and a rebuilt inventory may retain definitions.
func (o Observed) Found(owned inventory.Inventory, objects map[manifest.ID]*metav1.PartialObjectMetadata) (Observed, error) {
	o.Inventory, o.Objects = owned, objects
	return o.Ask(*o.commit)
}

// errNotAsked is the error of a plan without a call of Ask. Such a plan would prune everything that is owned.
var errNotAsked = errors.New("the observation is not for a commit")

// askedFor returns all objects that the commit wants, and every owned definition that the commit still declares: activation is
// final, whatever the policies say now. The order is that of want.
func askedFor(want render.Desired, have inventory.Inventory) ([]Asked, error) {
	asked := make([]Asked, 0, len(want.Objects))
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
		a := Asked{Object: o, Policy: policy}
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
		if _, owned := have.Entries[CRD(d.Name)]; !owned {
			continue
		}
		o, err := d.CRD()
		if err != nil {
			return nil, err
		}
		a := Asked{Object: o, Paused: d.Paused, Retained: ActivationFinal.With()}
		if policy := want.Pauses(d.Name); policy != "" {
			a.Retained = PolicyPaused.With(policy)
		}
		if d.Paused {
			a.Retained = DefinitionPaused.With()
		}
		asked = append(asked, a)
	}
	return asked, nil
}

// CRD returns the ID of the CRD with this name.
func CRD(name string) manifest.ID {
	return manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}
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
