package draft

import (
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepCRDs chooses the current phase of a step that deletes an MRD. Whether to delete the CRD that Crossplane made for it is a
// separate decision. The garbage collector removes the MRD from the owners of the CRD, which makes Crossplane reconcile. If
// Crossplane does not know about the deletion yet, it makes the MRD an owner again, and the CRD is deleted with the MRD. Therefore,
// our finalizer keeps the MRD until Crossplane has noticed the deletion:
//
//	protect ─► delete, orphaning ─► Crossplane reports Terminating ─► disown ─► unprotect
//
// If a pass is killed in between, and the commit then wants the MRD again or the sync releases it, the same phases follow. If
// Crossplane does not run, it reports nothing and the MRD stays, because the CRD and the objects in it are worth more.
func (p *drafted) keepCRDs(seen facts.Observed) {
	for i := range p.Steps {
		s := &p.Steps[i]
		if !endsMRD(*s) {
			continue
		}
		a, is := question.Get(seen.Known(), question.Departs{Of: s.ID})
		needsUs := a.Takes || is.Open
		switch {
		case is.Err != nil:
			s.Err = reason.CodedError{Reason: reason.OwnersUnknown.With(reason.Of(is.Err))}
		case !s.Terminating && s.Protected == needsUs:
			s.Phase = plan.DoDelete
		case !s.Terminating && needsUs:
			s.Phase = plan.DoProtect
		case !s.Terminating:
			s.Phase = plan.DoUnprotect
		case needsUs && a.Established != crossplane.Terminating:
			s.Waits = append(slices.Clip(s.Waits), reason.AwaitsCrossplane.With(plan.ProtectFinalizer))
		case a.Owns:
			s.Phase = plan.DoDisown
		case s.Action == plan.Release: // the release also removes our finalizer
			s.Phase = plan.DoRelease
		default:
			s.Phase = plan.DoUnprotect
		}
	}
}

// leaveCRDs records the CRDs that stay although their MRDs are deleted, by the pass or by a user.
func (p *drafted) leaveCRDs(seen facts.Observed) {
	for _, id := range p.Absent {
		p.leaveCRD(plan.Step{ID: id}, seen)
	}
	for _, s := range p.Steps {
		if s.Action == plan.Prune && s.Phase != plan.DoInactive {
			p.leaveCRD(s, seen)
		}
	}
}

// leaveCRD records the CRD of an MRD that is deleted. If a user deletes the MRD, the garbage collector may delete the CRD with it, and the
// MRD may be gone before the next pass.
func (p *drafted) leaveCRD(s plan.Step, seen facts.Observed) {
	if !crossplane.IsMRD(s.ID) {
		return
	}
	a, _ := question.Get(seen.Known(), question.Departs{Of: s.ID})
	byHand := s.Terminating && !s.Protected
	if byHand && a.Owns && !slices.Contains(seen.Objects[s.ID].GetFinalizers(), metav1.FinalizerOrphanDependents) {
		return
	}
	p.leavesBehind(s.ID, a.UID, seen)
}

// endsMRD reports whether the MRD is deleted after the step: the step deletes it, or removes our finalizer from an MRD that is
// being deleted.
func endsMRD(s plan.Step) bool {
	if !crossplane.IsMRD(s.ID) {
		return false
	}
	switch s.Action {
	case plan.Prune:
		return s.Phase != plan.DoInactive && (!s.Terminating || s.Protected)
	case plan.Release:
		return s.Terminating && s.Protected
	case plan.Update:
		return s.Terminating && s.Frees
	}
	return false
}
