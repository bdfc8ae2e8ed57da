package rounds

import (
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A prune lingers if it only waits for deletions, and an earlier commit removed its object.
func TestLingers(t *testing.T) {
	for name, tc := range map[string]struct {
		step plan.Step
		want bool
	}{
		"Deleting":      {plan.Step{Action: plan.Prune, Removal: plan.Removal{Deleting: true, Earlier: true}}, true},
		"OfThisCommit":  {plan.Step{Action: plan.Prune, Removal: plan.Removal{Deleting: true}}, false},
		"Waits":         {plan.Step{Action: plan.Prune, Removal: plan.Removal{Earlier: true}, Waits: []reason.Reason{reason.AwaitsDependant.With(obj("a")), reason.AwaitsGone.With(obj("b")), reason.AwaitsMore.With(2)}}, true},
		"AwaitsUpdate":  {plan.Step{Action: plan.Prune, Removal: plan.Removal{Earlier: true}, Waits: []reason.Reason{reason.AwaitsGone.With(obj("a")), reason.AwaitsUpdate.With(obj("b"))}}, false},
		"Sent":          {plan.Step{Action: plan.Prune, Removal: plan.Removal{Earlier: true}}, false},
		"Held":          {plan.Step{Action: plan.Hold, Would: plan.Prune, Removal: plan.Removal{Earlier: true, Deleting: true}}, false},
		"OtherWait":     {plan.Step{Action: plan.Release, Removal: plan.Removal{Earlier: true}, Waits: []reason.Reason{reason.AwaitsGone.With(obj("a"))}}, false},
		"AwaitsItsSync": {plan.Step{Action: plan.Prune, Removal: plan.Removal{Earlier: true}, Waits: []reason.Reason{reason.AwaitsSync.With("d/b")}}, false},
	} {
		tc.step.ID = obj("goes")
		if tc.step.Lingers() != tc.want {
			t.Errorf("%s: %t", name, !tc.want)
		}
		p := plan.Plan{Steps: []plan.Step{tc.step}}
		if waits := tc.step.Waiting() && !tc.want; plan.Coming(p, nil) != waits || pending(p)[tc.step.ID] != waits {
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
		s := plan.Step{ID: obj("goes"), Action: plan.Prune, Removal: plan.Removal{Deleting: true, Since: begun, Earlier: tc.earlier}}
		var pass Pass
		r := Next(pass, plan.Plan{Steps: []plan.Step{s}}, at(tc.after))
		pass = pass.After(r, nil, nil).End(r)
		if r.Until != Finished || (pass.Last.Steps[0].Err != nil) != tc.want {
			t.Errorf("%s: %s %v", name, r.Until, pass.Last.Steps[0].Err)
		}
	}
}

// After its prunes, a pass looks for a moment whether the objects are gone.
func TestDeletionInAPass(t *testing.T) {
	s := plan.Step{ID: obj("goes"), Action: plan.Prune, UID: "u"}
	going := s
	going.Deleting, going.Since, going.Terminating = true, begun, true
	sent := plan.Outcome{ID: s.ID, Action: plan.Prune, Deleting: reason.Deleting.With("now")}
	for name, tc := range map[string]struct {
		now  plan.Plan
		at   time.Duration
		why  Why
		gone bool
	}{
		"Going":    {plan.Plan{Steps: []plan.Step{going}}, time.Second, Settles, false},
		"GoesOn":   {plan.Plan{Steps: []plan.Step{going}}, 20 * time.Second, Ends, false},
		"Gone":     {plan.Plan{Gone: []manifest.ID{s.ID}}, time.Second, Ends, true},
		"MadeAnew": {plan.Plan{Gone: []manifest.ID{s.ID}, Steps: []plan.Step{{ID: s.ID, Action: plan.Keep, UID: "other"}}}, time.Second, Ends, true},
	} {
		var pass Pass
		pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{s}}, at(0)), []plan.Outcome{sent}, nil)
		if !pass.Deletes() {
			t.Fatal("the deletion is not over")
		}
		pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{going}}, at(0)), nil, nil)
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
	later := plan.Plan{Steps: []plan.Step{{ID: obj("late"), Action: plan.Create, Waits: []reason.Reason{reason.AwaitsAbsent.With()}}}}
	pass = pass.After(Next(pass, plan.Plan{Steps: append(later.Steps, going)}, at(0)), nil, nil)
	pass = pass.After(Next(pass, later, at(time.Second)), nil, nil)
	if o, counts := pass.Done[s.ID]; !counts || o.Action != plan.Prune || !o.Deleting.None() {
		t.Errorf("It is gone in this pass, which counts it: %+v", pass.Done)
	}
}

// A deletion that waits for its finalizer shows since when.
func TestSince(t *testing.T) {
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &begun, Finalizers: []string{"f"}}}
	s, some := draft.Leaving(plan.Plan{}, plan.Step{Action: plan.Prune, Terminating: true}, live)
	if !some || !s.Deleting || s.Since != begun || s.Reason.Code != reason.DeletingFinalizers {
		t.Errorf("%+v", s)
	}
	live.Finalizers = []string{"example.org/a", "finalizer.managedresource.crossplane.io"}
	if why := facts.WhyDeleting(live); why.Code != reason.DeletingByCrossplane {
		t.Errorf("only Crossplane removes its finalizer: %s", why)
	}
}
