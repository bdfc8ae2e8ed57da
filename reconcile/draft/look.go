package draft

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// leave makes a plan write nothing. A change by another writer is reported as drift. An object that the applying tool has not
// applied is a pending effect.
func (p *drafted) leave(seen facts.Observed) {
	p.Want.Findings = ofOthers(p.Want.Findings)
	p.Retained = append(p.Retained, stillThere(p.Want, seen.Live)...)
	var kept []plan.Step
	var around neighbourhood
	for _, s := range p.Steps {
		live, exists := seen.Objects[s.ID]
		deleting := exists && live.GetDeletionTimestamp() != nil
		isLeft := s.Action == plan.Keep || seen.IsCatalogue(p.asked[s.ID])
		if isLeft && !deleting {
			kept = append(kept, s)
			continue
		}
		if err := seen.Unread(s.ID); err != nil {
			p.Effects = append(p.Effects, plan.Effect{Kind: plan.Apply, On: s.ID, State: plan.Broken, Reason: reason.Of(err)})
			continue
		}
		if around == nil {
			around = neighbours(p.Want, seen.Live)
		}
		by := around.applier(s, live)
		drifted, behind := judge(s, seen)
		if behind || deleting {
			change := s
			change.Deleting = deleting
			p.Effects = append(p.Effects, plan.Effect{Kind: plan.Apply, On: s.ID, Change: &change, State: plan.Pending, By: by, Reason: reasonLeft(s, by, deleting)})
		}
		if drifted {
			s.Action, s.Would, s.Cause, s.Guard = plan.Keep, s.Action, plan.Drift, "drift"
			s.Needs, s.Waits = "", nil
			s.Reason = reason.LeftToApplier.With(by)
			kept = append(kept, s)
		}
	}
	p.Steps = kept
}

// judge reports whether a differing object was changed by another writer, and whether the commit has not been applied to it. Both
// may be true, for different fields.
func judge(s plan.Step, seen facts.Observed) (drifted, behind bool) {
	trial := seen.Trials[s.ID]
	was := seen.Inventory.Entries[s.ID].Digest == s.Digest // it has been as wanted before
	switch {
	case s.Action == plan.Create:
		return s.Cause == plan.Drift, s.Cause != plan.Drift
	case s.Err != nil:
		return false, true
	}
	return len(trial.TakenBy) > 0 || trial.Missing && was, trial.Stale || trial.Missing && !was
}

func reasonLeft(s plan.Step, by string, deleting bool) reason.Reason {
	switch {
	case deleting:
		return reason.BeingDeleted.With()
	case s.Err != nil:
		return reason.RefusedIfSent.With(reason.Of(s.Err))
	case by == "" && s.Action == plan.Update:
		return reason.DiffersUnowned.With()
	case by == "":
		return reason.AbsentUnowned.With()
	case s.Action == plan.Update:
		return reason.NotUpdated.With(by)
	case s.Needs != "":
		return reason.CreateNeedsCRD.With(by, s.Needs)
	case s.Waiting():
		return reason.CreateWaits.With(by, s.Waits)
	}
	return reason.NotCreated.With(by)
}

// withoutThose returns effects without those on objects for which others already has an awaited effect.
func withoutThose(effects, others []plan.Effect) []plan.Effect {
	ids := map[manifest.ID]bool{}
	for _, e := range others {
		ids[e.On] = ids[e.On] || e.Awaited()
	}
	return slices.DeleteFunc(effects, func(e plan.Effect) bool { return ids[e.On] })
}

// stillThere returns the definitions that the commit does not activate but whose CRDs exist, if Crossplane does not make the CRDs.
func stillThere(want render.Desired, seen facts.Live) []string {
	if want.Owner == render.OwnerCrossplane {
		return nil
	}
	var names []string
	for _, d := range want.Definitions {
		if _, exists := seen.Objects[plan.CRD(d.Name)]; exists && !d.Active {
			names = append(names, d.Name)
		}
	}
	return names
}

// ofOthers removes findings that do not hold if another tool applies the commit: Flux substitutes variables before it applies.
func ofOthers(findings []manifest.Finding) []manifest.Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f manifest.Finding) bool { return f.Rule == catalogue.RuleUnsubstituted })
}

// A neighbourhood lists which tools apply which parts of a commit, as far as live objects show it.
type neighbourhood []neighbour

type neighbour struct {
	path []string // the path of its directory
	by   string
}

func neighbours(want render.Desired, seen facts.Live) neighbourhood {
	var marked, written neighbourhood
	for _, o := range want.Objects {
		live, exists := seen.Objects[o.ID]
		if !exists {
			continue
		}
		at := strings.Split(path.Dir(o.Origin.Path), "/")
		if by := claimed(live); by != "" {
			marked = append(marked, neighbour{at, by})
		} else if by := diff.WrittenBy(live); by != "" {
			written = append(written, neighbour{at, by})
		}
	}
	if len(marked) > 0 {
		return marked
	}
	return written
}

// applier returns the tool that applies, or would apply, the object of a step. It is the tool of the object itself or, if that is
// not known, of most of its nearest neighbours in the commit.
func (n neighbourhood) applier(s plan.Step, live *metav1.PartialObjectMetadata) string {
	if live != nil {
		if by := claimed(live); by != "" {
			return by
		}
	}
	at := strings.Split(path.Dir(s.Origin.Path), "/")
	nearest, count := 0, map[string]int{}
	for _, other := range n {
		near := 0
		for near < min(len(at), len(other.path)) && at[near] == other.path[near] {
			near++
		}
		if near > nearest {
			nearest, count = near, map[string]int{}
		}
		if near == nearest {
			count[other.by]++
		}
	}
	if len(count) == 0 {
		return ""
	}
	return slices.MinFunc(slices.Collect(maps.Keys(count)), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
}

// claimed returns the tool that applies an object, by its mark or its field manager. It is never Crossplane, because Crossplane's
// own objects are not in commits.
func claimed(live metav1.Object) string {
	claim := ownership.Of(live, inventory.Sync{}, "")
	if claim.Final {
		return ""
	}
	return claim.By
}
