package plan

import (
	"slices"

	"headgate.dev/headgate/render/crossplane"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of MRDs that are not deleted yet.
const (
	OwnersUnknown    Code = "OwnersUnknown"    // why the effect on the CRD is not known
	AwaitsCrossplane Code = "AwaitsCrossplane" // the finalizer that keeps the MRD until Crossplane has seen it go
)

// keepCRDs chooses the due phase of a step that deletes an MRD. The CRD that Crossplane made for it is a separate
// decision. The garbage collector takes the MRD out of the owners of the CRD; that wakes Crossplane, which may not know
// about the deletion yet and makes the MRD the owner once more. Then the CRD is deleted with it. So our finalizer keeps
// the MRD until Crossplane has seen it:
//
//	protect ─► delete, orphaning ─► Crossplane reports Terminating ─► disown ─► unprotect
//
// An MRD that a pass was killed over goes the same way if the commit wants it again, or the sync releases it, meanwhile.
// A Crossplane that does not run reports nothing. Then the MRD waits for it: the CRD, and what is stored in it, is worth more.
func (p *Plan) keepCRDs(seen Observed) {
	if seen.Offline || seen.Looks {
		return
	}
	for _, id := range p.absent { // a user deleted it
		if !crossplane.IsMRD(id) {
			continue
		}
		q := Question{Ask: Departs, Of: id}
		a, known := seen.Answers[q]
		if !known {
			p.open = append(p.open, q)
		}
		p.leavesBehind(id, a.UID, seen)
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if !s.departs() {
			p.goesByHand(*s, seen)
			continue
		}
		q := Question{Ask: Departs, Of: s.ID}
		a, known := seen.Answers[q]
		if !known {
			p.open = append(p.open, q)
		}
		if s.Action == Prune {
			p.leavesBehind(s.ID, a.UID, seen)
		}
		crdGoes, owned := a.Count > 0, len(a.These) > 0
		switch {
		case !a.Unknown.None():
			s.Err = ReasonError{OwnersUnknown.With(a.Unknown)}
		case !s.going && !s.protected && (crdGoes || !known):
			s.phase = DoProtect
		case !s.going && s.protected && !crdGoes && known:
			s.phase = DoUnprotect
		case !s.going:
			s.phase = DoDelete
		case !known || crdGoes && a.Example != crossplane.Terminating:
			s.Waits = append(slices.Clip(s.Waits), AwaitsCrossplane.With(ProtectFinalizer))
		case owned:
			s.phase = DoDisown
		case s.Action == Release: // which takes our finalizer off, too
			s.phase = DoRelease
		default:
			s.phase = DoUnprotect
		}
	}
}

// goesByHand records the CRD of an MRD that a user is deleting, unless the garbage collector deletes the CRD, too. The MRD
// may be gone before another pass sees it.
func (p *Plan) goesByHand(s Step, seen Observed) {
	if !crossplane.IsMRD(s.ID) || s.Action != Prune {
		return
	}
	q := Question{Ask: Departs, Of: s.ID}
	a, known := seen.Answers[q]
	if !known {
		p.open = append(p.open, q)
	}
	if len(a.These) == 0 || slices.Contains(seen.Objects[s.ID].GetFinalizers(), metav1.FinalizerOrphanDependents) {
		p.leavesBehind(s.ID, a.UID, seen)
	}
}

// departs reports whether an MRD is gone once the step is done: the step deletes it, or takes our finalizer from one that is
// being deleted.
func (s Step) departs() bool {
	switch {
	case !crossplane.IsMRD(s.ID):
		return false
	case s.Action == Prune:
		return !s.going || s.protected
	}
	return s.going && (s.Action == Release && s.protected || s.Action == Update && s.frees)
}
