package plan

import (
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"
)

// An Effect is what Crossplane makes of the objects that a plan writes. No step of the plan sends it.
type Effect struct {
	Kind   EffectKind
	Of     manifest.ID // the object whose step has Crossplane make it at once; zero if none does
	On     manifest.ID // the object that it is made of
	Change Step        // of On, as a guard sees it

	Because []activation.Reason // of a definition: why it is active
	Package string              // the new version of the package that holds it
}

// An EffectKind is what Crossplane does.
type EffectKind string

// The kinds of effects.
const (
	// Install creates or updates what a package holds: a definition, a CRD or an XRD. It keeps what the new version
	// of the package does not hold any more.
	Install EffectKind = "install"
)

// The codes of the guards impossible and schema on package upgrades.
const (
	PackageInstalls     Code = "PackageInstalls"     // the name of the definition, and the reason of the ruling
	PackageInstallsMany Code = "PackageInstallsMany" // the same, and how many more definitions there are
)

// onEffects returns the ruling on the effects of a step. It names the first of those with the hardest answer, and
// how many more there are.
func onEffects(effects []Effect, rule func(Step) Ruling) Ruling {
	var all Ruling
	more := 0
	for _, e := range effects {
		r := rule(e.Change)
		all.Needs = append(all.Needs, r.Needs...)
		switch {
		case r.Reason.None(), all.Answer == Held && r.Answer != Held:
		case !all.Reason.None() && all.Answer == r.Answer:
			more++
		default:
			all.Answer, all.Reason, more = r.Answer, PackageInstalls.With(e.On.Name, r.Reason), 0
		}
	}
	if more > 0 {
		all.Reason = PackageInstallsMany.With(append(all.Reason.Values, more)...)
	}
	return all
}

// effectsOf returns the effects of each step.
func effectsOf(effects []Effect) map[manifest.ID][]Effect {
	of := map[manifest.ID][]Effect{}
	for _, e := range effects {
		if e.Of != (manifest.ID{}) {
			of[e.Of] = append(of[e.Of], e)
		}
	}
	return of
}
