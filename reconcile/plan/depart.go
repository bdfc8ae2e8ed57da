package plan

import (
	"slices"

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
	if !seen.applies() {
		return
	}
	for _, id := range p.absent { // deleted by a user
		if !crossplane.IsMRD(id) {
			continue
		}
		a, _ := p.answer(Question{Ask: Departs, Of: id}, seen)
		p.leavesBehind(id, a.UID, seen)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.endsMRD() {
			p.goesByHand(*s, seen)
			continue
		}
		a, known := p.answer(Question{Ask: Departs, Of: s.ID}, seen)
		if s.Action == Prune {
			p.leavesBehind(s.ID, a.UID, seen)
		}
		crdGoes, owned := a.Count > 0, len(a.These) > 0
		needsUs := crdGoes || !known
		switch {
		case !a.Unknown.None():
			s.Err = ReasonError{OwnersUnknown.With(a.Unknown)}
		case !s.going && s.protected == needsUs:
			s.phase = DoDelete
		case !s.going && needsUs:
			s.phase = DoProtect
		case !s.going:
			s.phase = DoUnprotect
		case needsUs && a.Example != crossplane.Terminating:
			s.Waits = append(slices.Clip(s.Waits), AwaitsCrossplane.With(ProtectFinalizer))
		case owned:
			s.phase = DoDisown
		case s.Action == Release: // the release also removes our finalizer
			s.phase = DoRelease
		default:
			s.phase = DoUnprotect
		}
	}
}

// goesByHand records the CRD of an MRD that a user is deleting, unless the garbage collector deletes the CRD with it. The MRD may
// be gone before the next pass.
func (p *drafted) goesByHand(s Step, seen Observed) {
	if !crossplane.IsMRD(s.ID) || s.Action != Prune {
		return
	}
	a, _ := p.answer(Question{Ask: Departs, Of: s.ID}, seen)
	if len(a.These) == 0 || slices.Contains(seen.Objects[s.ID].GetFinalizers(), metav1.FinalizerOrphanDependents) {
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
		return !s.going || s.protected
	}
	return s.going && (s.Action == Release && s.protected || s.Action == Update && s.frees)
}
