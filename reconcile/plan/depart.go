package plan

import (
	"slices"

	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of MRDs that are not deleted yet.
const (
	OwnersUnknown    Code = "OwnersUnknown"    // why the effect on the CRD is not known
	AwaitsCrossplane Code = "AwaitsCrossplane" // the finalizer that keeps the MRD until Crossplane has noticed the deletion
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
func (p *drafted) keepCRDs(seen Observed) {
	for _, id := range p.Absent { // deleted by a user
		if !crossplane.IsMRD(id) {
			continue
		}
		a, _ := question.Get(seen.Known(), question.Departs{Of: id})
		p.leavesBehind(id, a.UID, seen)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.endsMRD() {
			p.goesByHand(*s, seen)
			continue
		}
		a, is := question.Get(seen.Known(), question.Departs{Of: s.ID})
		if s.Action == Prune {
			p.leavesBehind(s.ID, a.UID, seen)
		}
		needsUs := a.Takes || is.Open
		switch {
		case is.Err != nil:
			s.Err = ReasonError{OwnersUnknown.With(ReasonOf(is.Err))}
		case !s.Terminating && s.Protected == needsUs:
			s.Phase = DoDelete
		case !s.Terminating && needsUs:
			s.Phase = DoProtect
		case !s.Terminating:
			s.Phase = DoUnprotect
		case needsUs && a.Established != crossplane.Terminating:
			s.Waits = append(slices.Clip(s.Waits), AwaitsCrossplane.With(ProtectFinalizer))
		case a.Owns:
			s.Phase = DoDisown
		case s.Action == Release: // the release also removes our finalizer
			s.Phase = DoRelease
		default:
			s.Phase = DoUnprotect
		}
	}
}

// goesByHand records the CRD of an MRD that a user is deleting, unless the garbage collector deletes the CRD with it. The MRD may
// be gone before the next pass.
func (p *drafted) goesByHand(s Step, seen Observed) {
	if !crossplane.IsMRD(s.ID) || s.Action != Prune {
		return
	}
	a, _ := question.Get(seen.Known(), question.Departs{Of: s.ID})
	if !a.Owns || slices.Contains(seen.Objects[s.ID].GetFinalizers(), metav1.FinalizerOrphanDependents) {
		p.leavesBehind(s.ID, a.UID, seen)
	}
}

// endsMRD reports whether the MRD is deleted after the step: the step deletes it, or removes our finalizer from an MRD that is
// being deleted.
func (s Step) endsMRD() bool {
	switch {
	case !crossplane.IsMRD(s.ID):
		return false
	case s.Action == Prune:
		return !s.Terminating || s.Protected
	}
	return s.Terminating && (s.Action == Release && s.Protected || s.Action == Update && s.Frees)
}
