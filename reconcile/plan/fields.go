package plan

import (
	"fmt"
	"strings"
	once "sync"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		if a, wanted := asked[p.Steps[i].ID]; wanted && p.Steps[i].Err == nil {
			p.fieldsOf(&p.Steps[i], a, seen)
		}
	}
}

// fieldsOf names the fields that a step gives up. A keep gives up fields that another manager took before they left the commit.
func (p *Plan) fieldsOf(s *Step, a Asked, seen Observed) {
	live, after := s.Live, s.After
	if s.Action == Keep && s.Guard == "" {
		live, after = seen.Trials[s.ID].Live, seen.Trials[s.ID].Live
	}
	if live == nil || after == nil || s.Action != Update && s.Action != Keep || len(s.Migrates) > 0 || !seen.Mine(s.ID, live) {
		return
	}
	applied, taken := ownership.Applied(live), s.Adopts
	if seen.LostFields(a, live) {
		q := Question{Ask: AppliedBefore, Of: s.ID}
		before, answered := seen.Answers[q]
		how := seen.Adopting(a, live)
		switch {
		case !answered:
			p.open = append(p.open, q)
			return
		case before.After == nil:
			if unclaimed := ownership.Unclaimed(live, after, taken, how); ownership.IsLost(live) && len(unclaimed) > 0 {
				s.stays = And(s.stays, FieldsUnknown.With(before.Unknown, unclaimed))
			}
			return
		}
		applied = ownership.Applied(before.After)
		if taken = taken.Reclaim(live, after, how, ownership.Unchanged(live, before.After)); !taken.None() {
			s.reclaim(taken, live, after)
			after = s.After
		}
	}
	for _, h := range ownership.Stays(live, after, taken, applied) {
		if s.Action == Keep { // reports do not list it
			p.Notes = append(p.Notes, manifest.Finding{
				Rule: "fields-stay", Severity: manifest.Note, Origin: s.Origin,
				Message: fmt.Sprintf("%s gives up %s; %s keeps it", s.ID, few(h.Fields), keeper(h.Manager)),
				Fix:     "remove them by hand if nothing needs them",
			})
			continue
		}
		s.stays = And(s.stays, FieldsStay.With(h.Fields, h.Manager))
	}
}

// LostFields reports whether a new commit meets managed fields that do not show all that we applied: another writer removed them, or
// took some of the fields.
func (o Observed) LostFields(a Asked, live metav1.Object) bool {
	e := o.Inventory.Entries[a.ID]
	if !o.Mine(a.ID, live) || o.AsBefore(a.Object) {
		return false
	}
	return ownership.IsLost(live) || e.Fields != "" && e.Fields != diff.OwnFields(live, ignoredBy(e, o.Inventory.Record))
}

// reclaim makes a step remove the fields of a takeover that the commit does not set any more.
func (s *Step) reclaim(t ownership.Takeover, live, after *unstructured.Unstructured) {
	s.Action, s.Adopts, s.Live, s.After = Update, t, live, after
	s.Renew, s.Unready = inventory.Entry{}, false
	if t.Goes != nil {
		s.After = after.DeepCopy() // the trial has the same object
		ownership.Remove(s.After.Object, t.Goes)
	}
	s.schema = once.OnceValue(s.compareSchema)
}

// UnknownManager is the field manager in a FieldsStay of a field that another writer changed after managed fields were lost.
const UnknownManager = ownership.Nobody

// keeper names a manager of fields in a finding.
func keeper(manager string) string {
	switch manager {
	case "":
		return "the API server"
	case UnknownManager:
		return "another writer"
	}
	return manager
}

// few returns the first fields for a finding.
func few(fields []string) string {
	const most = 8
	if len(fields) > most {
		return strings.Join(fields[:most], ", ") + ", …"
	}
	return strings.Join(fields, ", ")
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
