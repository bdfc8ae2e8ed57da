package plan

import (
	"fmt"
	"slices"
	once "sync"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What leaves Git leaves the cluster, or the plan names it. Package ownership has the rules; this file adds what only the last
// applied commit shows, and gives every update a reason.

// The codes of updates that change the managers of fields.
const (
	FieldsReclaimed Code = "FieldsReclaimed" // the number of fields, and the field managers that have them since our managed fields were lost
	FieldsUnknown   Code = "FieldsUnknown"   // why the last applied commit is not known, and the fields that stay
	FieldsStay      Code = "FieldsStay"      // fields that the update gives up, and who keeps them
	FieldsGained    Code = "FieldsGained"    // fields that the update begins to manage
	VersionManaged  Code = "VersionManaged"  // the version of managed fields
	NoValueChanges  Code = "NoValueChanges"  // no value
	NotInSource     Code = "NotInSource"     // no value: the last applied commit cannot be rendered again
)

// fields names the fields that updates give up. If managed fields were lost, the last applied commit shows which fields left Git.
func (p *Plan) fields(seen Observed) {
	if seen.Offline || seen.Looks || p.Ends != NoEnding {
		return
	}
	asked := make(map[manifest.ID]Asked, len(seen.Asked))
	for _, a := range seen.Asked {
		asked[a.ID] = a
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		a, wanted := asked[s.ID]
		if !wanted || s.Action != Update || s.Err != nil || s.Live == nil || s.After == nil || len(s.Migrates) > 0 || !seen.Mine(s.ID, s.Live) {
			continue
		}
		applied := ownership.Applied(s.Live)
		if seen.lostFields(s.ID, s.Live) && !seen.AsBefore(a.Object) {
			q := Question{Ask: AppliedBefore, Of: s.ID}
			before, answered := seen.Answers[q]
			how := seen.Adopting(a, s.Live)
			switch {
			case !answered:
				p.open = append(p.open, q)
				continue
			case before.After == nil:
				if unclaimed := ownership.Unclaimed(s.Live, s.After, s.Adopts, how); ownership.IsLost(s.Live) && len(unclaimed) > 0 {
					s.stays = And(s.stays, FieldsUnknown.With(before.Unknown, few(unclaimed)))
				}
				continue
			}
			applied = ownership.Applied(before.After)
			s.reclaim(s.Adopts.Reclaim(s.Live, s.After, how, applied))
		}
		for _, h := range ownership.Stays(s.Live, s.After, s.Adopts, applied) {
			keeps := "the API server sets a default"
			if h.Manager != "" {
				keeps = h.Manager + " keeps it"
			}
			s.stays = And(s.stays, FieldsStay.With(few(h.Fields), keeps))
		}
	}
}

// lostFields reports whether our managed fields are not those that we left, so that they do not show all that we applied: another
// writer removed them, or took some of the fields.
func (o Observed) lostFields(id manifest.ID, live metav1.Object) bool {
	e := o.Inventory.Entries[id]
	return ownership.IsLost(live) || e.Fields != "" && e.Fields != diff.OwnFields(live, ignoredBy(e, o.Inventory.Record))
}

// reclaim makes an update remove the fields of a takeover that the commit does not set any more.
func (s *Step) reclaim(t ownership.Takeover) {
	s.Adopts = t
	if t.Goes == nil || t.Goes.Empty() {
		return
	}
	after := s.After.DeepCopy() // the trial has the same object
	ownership.Remove(after.Object, t.Goes)
	s.After = after
	if s.schema != nil {
		s.schema = once.OnceValue(s.compareSchema)
	}
}

// few returns the first fields, and how many there are besides.
func few(fields []string) []string {
	const most = 8
	if len(fields) <= most {
		return fields
	}
	return append(slices.Clone(fields[:most]), fmt.Sprintf("and %d more", len(fields)-most))
}

// Explained returns the changes of a step and its reason. Every update that is sent has one of them.
func (s Step) Explained() ([]diff.Change, Reason) {
	changes, why := s.Changes(), And(s.Why(), s.stays)
	if s.Action != Update || s.Err != nil || s.Waiting() || len(changes) > 0 || !why.None() {
		return changes, why
	}
	if s.Live == nil || s.After == nil {
		return nil, NoValueChanges.With()
	}
	gained, version := ownership.Gained(s.Live, s.After), ownership.VersionOf(s.After)
	switch {
	case len(gained) > 0:
		return nil, FieldsGained.With(few(gained))
	case version != ownership.VersionOf(s.Live):
		return nil, VersionManaged.With(version)
	}
	return nil, NoValueChanges.With()
}
