package plan

import (
	"errors"
	"fmt"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An Asked is one object that a pass wants to hold in the cluster: of the commit,
// or kept wanted by the ratchet.
type Asked struct {
	render.Object
	Because  []activation.Reason        // of the CRD of a definition
	Retained string                     // why it is wanted though the commit does not activate it; "" where it does
	Paused   bool                       // leave it exactly as it is
	Policy   inventory.ManagementPolicy // what may be done to it

	resolved resolved // what became of its references
}

// AskFor is everything that the commit wants, and every definition that we own and that
// the commit still declares: activation is final, whatever the policies say now. The
// order is that of want.
func AskFor(want render.Desired, have inventory.Inventory) ([]Asked, error) {
	asked := make([]Asked, 0, len(want.Objects))
	active := make(map[string]render.Definition, len(want.Definitions))
	for _, d := range want.Definitions {
		if d.Active && !d.Paused {
			active[d.Name] = d
		}
	}
	var wrong []error
	for _, o := range want.Objects {
		policy, err := policyOf(o)
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
		return asked, nil // Crossplane keeps its own CRDs
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
		a := Asked{Object: o, Paused: d.Paused, Retained: "no policy names it any more; activation is final"}
		if policy := want.Pauses(d.Name); policy != "" {
			a.Retained = "the policy " + policy + ", which names it, is paused"
		}
		if d.Paused {
			a.Retained = "its definition is paused"
		}
		asked = append(asked, a)
	}
	return asked, nil
}

// CRD is the identity of the CRD of a name.
func CRD(name string) manifest.ID {
	return manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}
}

// Sent is exactly what is sent for an object that nothing is ignored of: the object with
// our marks.
func Sent(s inventory.Sync, o render.Object) (*unstructured.Unstructured, error) {
	u, err := o.Content()
	if err != nil {
		return nil, err
	}
	if _, ok := u.Object["metadata"].(map[string]any); !ok {
		return nil, fmt.Errorf("%s: metadata is not a mapping", o.Origin)
	}
	diff.LeaveInjected(u)
	s.Own(u)
	return u, nil
}
