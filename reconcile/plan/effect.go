package plan

import (
	"reflect"
	"slices"

	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"
)

// An Effect is a consequence of a plan: an object that Crossplane creates or changes or, if a sync only looks, that another tool
// applies. No step of the plan sends it.
type Effect struct {
	Kind   EffectKind
	Of     manifest.ID // of Install: the object whose step makes Crossplane do it immediately; zero if none does
	On     manifest.ID // the object that it changes
	Change *Step       // of Install, Redeclare and Apply: the change; it must not be modified

	State  EffectState   // progress of the effect; "" if nothing waits for it
	Reason reason.Reason // why it does not hold yet
	By     string        // of Apply: the tool, if known

	Because []activation.Activator // of Install: why the definition is active
	Package string                 // of Install: the new version of the package
}

// An EffectKind is the kind of an effect.
type EffectKind string

// The kinds of effects.
const (
	// Install creates or updates an object of a package: a definition, a CRD or an XRD. Objects that the new version of the package
	// does not contain any more are kept.
	Install EffectKind = "install"
	// Redeclare changes a definition that nothing sends or installs, because Headgate makes no CRD of an inactive definition. It
	// occurs between two commits, never in a cluster.
	Redeclare EffectKind = "redeclare"
	// Activate makes the CRD of a definition that the commit activates.
	Activate EffectKind = "activate"
	// Deactivate makes a definition inactive, or deletes its CRD.
	Deactivate EffectKind = "deactivate"
	// Accept is the acceptance of a policy or a package by Crossplane.
	Accept EffectKind = "accept"
	// Appear is the creation of an object that Headgate only observes.
	Appear EffectKind = "appear"
	// Apply is the apply of an object of the commit by another tool, if a sync only looks.
	Apply EffectKind = "apply"
)

// An EffectState is the progress of an effect.
type EffectState string

// The states.
const (
	Holds   EffectState = "holds"
	Pending EffectState = "pending"
	Broken  EffectState = "broken"
)

// Awaited reports whether something waits for the effect.
func (e Effect) Awaited() bool { return e.State != "" }

// Has reports whether an effect of the plan is in this state.
func (p Plan) Has(state EffectState) bool {
	return slices.ContainsFunc(p.Effects, func(e Effect) bool { return e.State == state })
}

// ChangedSince reports whether the states of the effects differ from an earlier plan.
func (p Plan) ChangedSince(earlier Plan) bool {
	states := func(all []Effect) (awaited []Effect) {
		for _, e := range all {
			if e.Awaited() {
				awaited = append(awaited, Effect{Kind: e.Kind, On: e.On, State: e.State, Reason: e.Reason})
			}
		}
		return awaited
	}
	return !reflect.DeepEqual(states(p.Effects), states(earlier.Effects))
}

// A Bump is a package from a registry whose image differs from the previous one, or is not known.
type Bump struct {
	Source  string          `json:"source"`
	From    string          `json:"from,omitempty"`    // the previous version; "" if there was none, or it could not be read
	To      string          `json:"to,omitempty"`      // "" if it could not be read
	Origin  manifest.Origin `json:"origin"`            // the line in the commit that requests it
	By      manifest.ID     `json:"by,omitzero"`       // the object that names it; zero for a dependency
	Manual  bool            `json:"manual,omitempty"`  // a person must activate the new version
	Unknown string          `json:"unknown,omitempty"` // why its changes are not known
	Copy    string          `json:"copy,omitempty"`    // the directory of the copy that was compared, because the image cannot be read

	Package string `json:"-"` // the directory of the new version, as effects name it
}

// IsUnread reports whether the changes of a package are not known, and that blocks the merge.
func (b Bump) IsUnread() bool { return b.Unknown != "" && !b.IsUnseen() }

// IsUnseen reports whether a package could be read only in the new commit.
func (b Bump) IsUnseen() bool { return b.Unknown != "" && b.From == "" && b.To != "" }
