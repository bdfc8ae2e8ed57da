package plan

import (
	"testing"
	"time"

	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A prune lingers if it only waits for deletions, and an earlier commit removed its object.
func TestLingers(t *testing.T) {
	for name, tc := range map[string]struct {
		step Step
		want bool
	}{
		"Deleting":      {Step{Action: Prune, Removal: Removal{Deleting: true, Earlier: true}}, true},
		"OfThisCommit":  {Step{Action: Prune, Removal: Removal{Deleting: true}}, false},
		"Waits":         {Step{Action: Prune, Removal: Removal{Earlier: true}, Waits: []Reason{AwaitsDependant.With(obj("a")), AwaitsGone.With(obj("b")), AwaitsMore.With(2)}}, true},
		"AwaitsUpdate":  {Step{Action: Prune, Removal: Removal{Earlier: true}, Waits: []Reason{AwaitsGone.With(obj("a")), AwaitsUpdate.With(obj("b"))}}, false},
		"Sent":          {Step{Action: Prune, Removal: Removal{Earlier: true}}, false},
		"Held":          {Step{Action: Hold, Would: Prune, Removal: Removal{Earlier: true, Deleting: true}}, false},
		"OtherWait":     {Step{Action: Release, Removal: Removal{Earlier: true}, Waits: []Reason{AwaitsGone.With(obj("a"))}}, false},
		"AwaitsItsSync": {Step{Action: Prune, Removal: Removal{Earlier: true}, Waits: []Reason{AwaitsSync.With("d/b")}}, false},
	} {
		tc.step.ID = obj("goes")
		if tc.step.Lingers() != tc.want {
			t.Errorf("%s: %t", name, !tc.want)
		}
		p := Plan{Steps: []Step{tc.step}}
		if waits := tc.step.Waiting() && !tc.want; p.Coming(nil) != waits || p.pending()[tc.step.ID] != waits {
			t.Errorf("%s: a pass waits: %t", name, !waits)
		}
	}
}

// A deletion is late after the time limit, for the commit that removed the object.
func TestLateDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		after   time.Duration
		earlier bool
		want    bool
	}{
		"InTime":  {time.Minute - time.Second, false, false},
		"Late":    {time.Minute, false, true},
		"Earlier": {time.Hour, true, false},
	} {
		s := Step{ID: obj("goes"), Action: Prune, Removal: Removal{Deleting: true, Since: begun, Earlier: tc.earlier}}
		var pass Pass
		r := Next(pass, Plan{Steps: []Step{s}}, at(tc.after))
		pass = pass.After(r, nil, nil).End(r)
		if r.Until != Finished || (pass.Last.Steps[0].Err != nil) != tc.want {
			t.Errorf("%s: %s %v", name, r.Until, pass.Last.Steps[0].Err)
		}
	}
}

// After its prunes, a pass looks for a moment whether the objects are gone.
func TestDeletionInAPass(t *testing.T) {
	s := Step{ID: obj("goes"), Action: Prune, UID: "u"}
	going := s
	going.Deleting, going.Since, going.Terminating = true, begun, true
	sent := Outcome{ID: s.ID, Action: Prune, Deleting: Deleting.With("now")}
	for name, tc := range map[string]struct {
		now  Plan
		at   time.Duration
		why  Why
		gone bool
	}{
		"Going":    {Plan{Steps: []Step{going}}, time.Second, Settles, false},
		"GoesOn":   {Plan{Steps: []Step{going}}, 20 * time.Second, Ends, false},
		"Gone":     {Plan{Gone: []manifest.ID{s.ID}}, time.Second, Ends, true},
		"MadeAnew": {Plan{Gone: []manifest.ID{s.ID}, Steps: []Step{{ID: s.ID, Action: Keep, UID: "other"}}}, time.Second, Ends, true},
	} {
		var pass Pass
		pass = pass.After(Next(pass, Plan{Steps: []Step{s}}, at(0)), []Outcome{sent}, nil)
		if !pass.Deletes() {
			t.Fatal("the deletion is not over")
		}
		pass = pass.After(Next(pass, Plan{Steps: []Step{going}}, at(0)), nil, nil)
		r := Next(pass, tc.now, at(tc.at))
		if r.Why != tc.why || r.Sends() != tc.gone || len(r.Send.Gone) != len(tc.now.Gone) {
			t.Errorf("%s: %s, sends %t", name, r.Why, r.Sends())
		}
		if pass = pass.After(r, nil, nil); pass.Deletes() == tc.gone || pass.outcomes()[0].Deleting.None() != tc.gone {
			t.Errorf("%s: %+v", name, pass.outcomes())
		}
	}
	// Its deletion began before this pass.
	var pass Pass
	later := Plan{Steps: []Step{{ID: obj("late"), Action: Create, Waits: []Reason{AwaitsAbsent.With()}}}}
	pass = pass.After(Next(pass, Plan{Steps: append(later.Steps, going)}, at(0)), nil, nil)
	pass = pass.After(Next(pass, later, at(time.Second)), nil, nil)
	if o, counts := pass.Done[s.ID]; !counts || o.Action != Prune || !o.Deleting.None() {
		t.Errorf("It is gone in this pass, which counts it: %+v", pass.Done)
	}
}

// A deletion that waits for its finalizer shows since when.
func TestSince(t *testing.T) {
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &begun, Finalizers: []string{"f"}}}
	s, some := Plan{}.leaving(Step{Action: Prune, Terminating: true}, live, false)
	if !some || !s.Deleting || s.Since != begun || s.Reason.Code != DeletingFinalizers {
		t.Errorf("%+v", s)
	}
	live.Finalizers = []string{"example.org/a", "finalizer.managedresource.crossplane.io"}
	if why := WhyDeleting(live); why.Code != DeletingByCrossplane {
		t.Errorf("only Crossplane removes its finalizer: %s", why)
	}
}
