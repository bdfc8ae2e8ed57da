package plan

import (
	"testing"
)

// If Headgate makes the CRDs, a held definition is still updated.
func TestDeactivateOurs(t *testing.T) {
	id := CRD("buckets.example.org")
	held := Step{Action: Hold, Would: Prune, Guard: "in use", Reason: Failed.With("2 live objects"), Deactivates: true, ID: id}
	held.otherwise = &Step{Action: Update, ID: id, Cause: Retain}
	p := Plan{Steps: []Step{held}, Retained: []string{"buckets.example.org"}}
	p.concludeDeactivation()
	if s := p.Steps[0]; s.Action != Update || s.Reason.String() != "Failed(2 live objects)" || len(p.Retained) != 1 {
		t.Errorf("a CRD that is in use gets the update of its provider: %s %q, %v", s.Action, s.Reason, p.Retained)
	}
	p.Steps[0] = held
	p.Steps[0].Action = Prune
	if p.concludeDeactivation(); p.Steps[0].Action != Prune || len(p.Retained) != 0 {
		t.Errorf("one that is not goes: %s, %v", p.Steps[0].Action, p.Retained)
	}
}
