package rounds

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var errRefused = errors.New("refused")

var begun = metav1.Unix(1_000_000, 0)

// at returns the times of a round that starts some time after the pass began. The pass has a limit of a minute and a grace of ten
// seconds.
func at(after time.Duration) Times {
	return Times{
		Now: metav1.NewTime(begun.Add(after)), Began: begun,
		Limit: metav1.Duration{Duration: time.Minute}, Grace: metav1.Duration{Duration: 10 * time.Second},
	}
}

func effectsOn(state plan.EffectState, names ...string) (effects []plan.Effect) {
	for _, name := range names {
		effects = append(effects, plan.Effect{Kind: plan.Accept, On: obj(name), State: state, Reason: reason.Failed.With("why")})
	}
	return effects
}

// A pending effect is late after the time limit, which begins again with every commit.
func TestWaits(t *testing.T) {
	var pass Pass
	for _, look := range []struct {
		reason   string
		at       time.Duration
		revision string
		effects  []plan.Effect
		late     []string
		soon     time.Duration
	}{
		{"At first no effect is late, and the next check follows soon.", 0, "a", effectsOn(plan.Pending, "x"), nil, 2 * time.Second},
		{"The longer an effect is pending, the less often it is checked.", 40 * time.Second, "a", effectsOn(plan.Pending, "x"), nil, 10 * time.Second},
		{"Every effect has its own time limit, and a new one is checked soon.", 50 * time.Second, "a", effectsOn(plan.Pending, "x", "y"), nil, 2 * time.Second},
		{"The next check is not later than the time limit.", 59 * time.Second, "a", effectsOn(plan.Pending, "x", "y"), nil, time.Second},
		{"The first effect exceeds its time limit, and the second does not.", time.Minute, "a", effectsOn(plan.Pending, "x", "y"), []string{"x"}, 2500 * time.Millisecond},
		{"A late effect stays late.", 2 * time.Minute, "a", effectsOn(plan.Pending, "x"), []string{"x"}, 0},
		{"A new commit restarts the time limit.", 3 * time.Minute, "b", effectsOn(plan.Pending, "x"), nil, 2 * time.Second},
		{"Without a pending effect, there is no time limit.", 4 * time.Minute, "b", nil, nil, 0},
		{"An effect that is pending again has a new time limit.", 5 * time.Minute, "b", effectsOn(plan.Pending, "x"), nil, 2 * time.Second},
		{"A pass does not wait for a broken effect.", 6 * time.Minute, "b", effectsOn(plan.Broken, "z"), []string{"z"}, 0},
	} {
		d := Next(pass, plan.Plan{Want: render.Desired{Revision: look.revision}, Effects: look.effects, Stance: plan.Looking}, at(look.at))
		pass = pass.After(d, nil, nil)
		var late []string
		for _, e := range pass.End(d).Last.Effects {
			if e.State == plan.Broken {
				late = append(late, e.On.Name)
			}
		}
		after := pass.PollAfter().Duration
		if diff := cmp.Diff(look.late, late); diff != "" || after != look.soon {
			t.Errorf("%s\nlate (-want +got):\n%s\nagain in %s, want %s", look.reason, diff, after, look.soon)
		}
		if again := d.Until == Again; again != (after > 0) || d.Sends() {
			t.Errorf("%s\n%s, %s", look.reason, d.Why, d.Until)
		}
	}
}

// The cases cover every row of the comments on Next and on ending.
func TestNext(t *testing.T) {
	create := plan.Step{ID: obj("a"), Action: plan.Create}
	waits := plan.Step{ID: obj("w"), Action: plan.Create, Waits: []reason.Reason{reason.Object.With(obj("toy"))}, AwaitsAny: []manifest.ID{obj("toy")}}
	ready := plan.Step{ID: obj("w"), Action: plan.Create}
	migrates := plan.Step{ID: obj("m"), Action: plan.Update, Write: plan.Write{Migrates: []string{"v1beta1"}}}
	unready := plan.Step{ID: obj("a"), Action: plan.Keep, Unready: true}
	prune := plan.Step{ID: obj("a"), Action: plan.Prune, UID: "u"}
	other := plan.Step{ID: obj("b"), Action: plan.Prune, UID: "u"}
	held := plan.Step{ID: obj("a"), Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "many", Severity: plan.Block}}
	clears := plan.Step{ID: obj("a"), Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "in use", Severity: plan.Block, Clears: plan.ClearsWithOther}}
	deleting := plan.Step{ID: obj("a"), Action: plan.Prune, UID: "u", Removal: plan.Removal{Deleting: true}}
	gains := plan.Step{ID: plan.CRD("things.example.org"), Action: plan.Update}
	accepted := plan.Step{ID: manifest.ID{Group: "example.org", Kind: "Thing", Name: "t"}, Action: plan.Update}
	refused := accepted
	refused.Err = errRefused
	inactive := plan.Step{ID: crossplane.MRD("boats.example.org"), Action: plan.Create, Write: plan.Write{Activates: true}}
	activates := plan.Step{ID: inactive.ID, Action: plan.Update, Write: plan.Write{Activates: true}}
	leaves := plan.Step{ID: inactive.ID, Action: plan.Prune, UID: "u", Phase: plan.DoProtect}
	leaving := plan.Step{ID: inactive.ID, Action: plan.Prune, UID: "u", Removal: plan.Removal{Protected: true}, Terminating: true, Waits: []reason.Reason{reason.AwaitsCrossplane.With("f")}}
	phase := func(s plan.Step) []plan.Outcome {
		return []plan.Outcome{{ID: s.ID, Action: s.Action, Did: s.Do(), More: true}}
	}
	of := func(steps ...plan.Step) plan.Plan { return plan.Plan{Steps: steps, Version: "1"} }
	checked := func(p plan.Plan, state plan.EffectState) plan.Plan { p.Effects = effectsOn(state, "toy"); return p }
	ends := func(steps ...plan.Step) plan.Plan {
		return plan.Plan{Steps: steps, Version: "1", Stance: plan.Destroying}
	}
	gone := func(p plan.Plan) plan.Plan { p.Gone = []manifest.ID{obj("b")}; return p }
	looks := func(state plan.EffectState) plan.Plan {
		return plan.Plan{Stance: plan.Looking, Effects: effectsOn(state, "toy")}
	}
	ok := func(s plan.Step) []plan.Outcome { return []plan.Outcome{{ID: s.ID, Action: s.Action}} }
	bad := func(s plan.Step) []plan.Outcome { return []plan.Outcome{{ID: s.ID, Action: s.Action, Err: errRefused}} }

	type round struct {
		now   plan.Plan
		at    time.Duration
		done  []plan.Outcome
		err   error
		hurry bool // set for this round and all later rounds
	}
	cases := map[string]struct {
		reason string
		before []round
		now    plan.Plan
		at     time.Duration
		why    Why
		sends  []string
		until  Until
	}{
		"Looks":        {"In a pass that only observes, nothing is sent.", nil, looks(plan.Pending), 0, Awaits, nil, Again},
		"LooksLate":    {"A pass that only observes waits until the time limit only.", []round{{now: looks(plan.Pending)}}, looks(plan.Pending), time.Minute, Ends, nil, Finished},
		"LooksHeld":    {"A pass that only observes does not wait once the effect holds.", nil, looks(plan.Holds), 0, Ends, nil, Finished},
		"First":        {"A plan without anything to wait for takes one round.", nil, of(create), 0, Begins, []string{"a"}, Finished},
		"FirstChecked": {"After a write, its effects are checked.", nil, checked(of(create), plan.Holds), 0, Begins, []string{"a"}, Again},
		"NothingToDo":  {"Without a write, effects that hold are not checked again.", nil, checked(of(), plan.Holds), 0, Begins, nil, Finished},
		"StillPending": {"Without a write, a pending effect is checked again.", nil, checked(of(), plan.Pending), 0, Begins, nil, Again},
		"FirstWaits":   {"A waiting step is sent in a later round.", nil, of(create, waits), 0, Begins, []string{"a", "w"}, Again},
		"Migrates":     {"Managed fields are migrated before anything is applied.", nil, of(create, migrates), 0, Migrates, []string{"m"}, Again},
		"MigratesOnce": {"If the migration of an object fails, only this object fails.", []round{{now: of(migrates), done: bad(migrates)}}, of(create, migrates), 0, Begins, []string{"a", "m"}, Again},
		"Moved":        {"After a conflict on the inventory, the round is repeated.", []round{{now: of(create), err: reason.ErrMoved}}, of(create), 0, Begins, []string{"a"}, Finished},
		"Resumes": {
			"A later round sends only the steps that waited.", []round{{now: of(create, waits), done: ok(create)}},
			of(plan.Step{ID: obj("a"), Action: plan.Update}, plan.Step{ID: obj("new"), Action: plan.Create}, ready), time.Second, Resumes, []string{"w"}, Again,
		},
		"ResumesNoMore": {
			"A pass ends at its time limit, even if steps could be sent.",
			[]round{{now: of(create, waits), done: ok(create)}}, of(ready), time.Minute, TimeIsUp, nil, Late,
		},
		"Awaits":   {"Nothing is sent while the pass waits.", []round{{now: of(create, waits), done: ok(create)}}, of(waits), time.Second, Awaits, nil, Again},
		"Settles":  {"A broken effect is checked again for a while, because Crossplane retries.", []round{{now: checked(of(create), plan.Pending), done: ok(create)}}, checked(of(), plan.Broken), time.Second, Settles, nil, Again},
		"Broken":   {"A broken effect is not checked again without limit.", []round{{now: checked(of(create), plan.Pending), done: ok(create)}, {now: checked(of(), plan.Broken), at: time.Second}}, checked(of(), plan.Broken), 12 * time.Second, Ends, nil, Finished},
		"TimeIsUp": {"A waiting step is not waited for without limit.", []round{{now: of(create, waits), done: ok(create)}}, of(waits), time.Minute, Ends, nil, Finished},
		"LateForItself": {
			"An effect that becomes pending later has the time limit of the pass.",
			[]round{{now: of(create, waits), done: ok(create)}, {now: checked(of(waits), plan.Pending), at: 50 * time.Second}},
			checked(of(waits), plan.Pending), time.Minute, TimeIsUp, nil, Late,
		},
		"Readies": {"The readiness of an object applied in an earlier round is checked last.", []round{{now: of(create, waits), done: []plan.Outcome{{ID: obj("a"), Unknown: true}}}}, of(unready, plan.Step{ID: obj("w"), Action: plan.Keep}), time.Second, Ends, []string{"a"}, Finished},

		"RefusedBySchema": {
			"An object that sets a field that its CRD gains in this commit is sent again.", []round{{now: of(gains, refused), done: []plan.Outcome{{ID: gains.ID, Action: plan.Update}}}},
			of(accepted), time.Second, Resumes, []string{"t"}, Again,
		},
		"RefusedByOthers": {
			"A refusal that is not due to a schema of this pass waits for the next pass.", []round{{now: of(other, refused), done: bad(refused)}, {now: of(other, accepted), done: ok(other), at: time.Second}},
			of(accepted), 2 * time.Second, Ends, nil, Finished,
		},

		"NextPhase":    {"The next phase follows at once: an MRD is applied, and then made Active.", []round{{now: of(inactive), done: phase(inactive)}}, of(activates), time.Second, Resumes, []string{"boats.example.org"}, Again},
		"PhasesEnd":    {"The number of phases is limited, because another writer may undo each phase.", slices.Repeat([]round{{now: of(activates), done: phase(activates)}}, mostPhases), of(activates), time.Second, Ends, nil, Finished},
		"PhaseDone":    {"Another writer may complete the next phase.", []round{{now: of(inactive), done: phase(inactive)}}, of(), time.Second, Ends, nil, Finished},
		"PhaseFails":   {"After a failed step, the next phase is left to the next pass.", []round{{now: of(inactive), done: bad(inactive)}}, of(activates), time.Second, Ends, nil, Finished},
		"PhaseTurns":   {"A prune does not follow a create as its next phase.", []round{{now: of(inactive), done: phase(inactive)}}, of(leaves), time.Second, Ends, nil, Finished},
		"PhaseWaits":   {"The next phase may have to wait for Crossplane.", []round{{now: of(leaves), done: phase(leaves)}}, of(leaving), time.Second, Awaits, nil, Again},
		"EndsInPhases": {"A deletion of everything has phases, too.", []round{{now: ends(leaves), done: phase(leaves)}}, ends(leaves), time.Second, Deletes, []string{"boats.example.org"}, Again},
		"EndWaits":     {"A deletion of everything may have to wait for Crossplane.", []round{{now: ends(leaves), done: phase(leaves)}}, ends(leaving), time.Second, Going, nil, Again},
		"EndPhasesEnd": {"The number of phases of a deletion is limited.", slices.Repeat([]round{{now: ends(leaves), done: phase(leaves)}}, mostPhases), ends(leaves), time.Second, Stuck, nil, Finished},

		"PrunesAlone": {"A plan of prunes only takes one round.", nil, of(prune), 0, Begins, []string{"a"}, Finished},
		"PrunesLater": {"An object is pruned only after its replacement exists.", nil, of(ready, prune), 0, Begins, []string{"w"}, Again},
		"PrunesLast":  {"Prunes are planned again and sent last.", []round{{now: of(ready, prune), done: ok(ready)}}, of(prune), time.Second, PrunesLast, []string{"a"}, Again},
		"PrunesOnce":  {"A failed prune is not sent again in the same pass.", []round{{now: of(ready, prune), done: ok(ready)}, {now: of(prune), done: bad(prune), at: time.Second}}, of(prune), 2 * time.Second, Ends, nil, Finished},
		"PrunesMoved": {"After a conflict on the inventory, the prunes are sent again.", []round{{now: of(ready, prune), done: ok(ready)}, {now: of(prune), err: reason.ErrMoved, at: time.Second}}, of(prune), 2 * time.Second, PrunesLast, []string{"a"}, Again},
		"PrunesMovedOn": {
			"The number of conflicts is limited, even after the time limit.", slices.Concat([]round{{now: of(ready, prune), done: ok(ready)}}, slices.Repeat([]round{{now: of(prune), err: reason.ErrMoved, at: time.Minute}}, 3)),
			of(prune), time.Minute, Ends, nil, Finished,
		},
		"PrunesShown":    {"Only prunes that the first plan contained are sent.", []round{{now: of(ready, prune), done: ok(ready)}}, of(prune, other), time.Second, PrunesLast, []string{"a"}, Again},
		"PrunesWait":     {"Prunes wait for waiting steps, because a Provider may still add the kind of the replacement.", []round{{now: of(waits, prune)}}, of(waits, prune), time.Second, Awaits, nil, Again},
		"PrunesAtTheEnd": {"Prunes are sent when the time limit is reached.", []round{{now: of(waits, prune)}}, of(waits, prune), time.Minute, PrunesLast, []string{"a"}, Again},
		"PrunesHeld":     {"An object that a guard holds meanwhile is not pruned.", []round{{now: of(ready, prune), done: ok(ready)}}, of(held), time.Second, PrunesLast, []string{"a"}, Again},
		"PrunesRetries":  {"A new schema may still make the API server accept the replacement.", []round{{now: of(gains, refused, prune), done: slices.Concat(ok(gains), bad(refused))}}, of(refused, prune), time.Second, Settles, nil, Again},
		"Hurry":          {"A pass in a hurry does not wait before it prunes.", []round{{now: of(waits, prune), hurry: true}}, of(waits, prune), time.Second, PrunesLast, []string{"a"}, Again},
		"HurryEnds":      {"A pass in a hurry ends if there is nothing to send.", []round{{now: of(waits), hurry: true}}, of(waits), time.Second, Ends, nil, Finished},

		"StillRefused": {
			"The API server may use a new schema only after a moment.", []round{{now: of(gains, refused), done: []plan.Outcome{{ID: gains.ID, Action: plan.Update}}}},
			of(refused), time.Second, Settles, nil, Again,
		},
		"RefusedForGood": {
			"The time for a new schema to take effect is limited.", []round{{now: of(gains, refused), done: []plan.Outcome{{ID: gains.ID, Action: plan.Update}}}, {now: of(refused), at: time.Second}},
			of(refused), 12 * time.Second, Ends, nil, Finished,
		},
		"RefusedAgain": {
			"A refused step is sent at most three times.", slices.Concat([]round{{now: of(gains, accepted), done: slices.Concat(bad(accepted), ok(gains))}}, slices.Repeat([]round{{now: of(accepted), done: bad(accepted)}}, 2)),
			of(accepted), time.Second, Ends, nil, Finished,
		},
		"Migrated": {
			"After its managed fields are migrated, the object is applied.", []round{{now: of(gains, accepted), done: slices.Concat(bad(accepted), ok(gains))}, {now: of(gains, accepted), done: []plan.Outcome{{ID: accepted.ID, Did: plan.DoMigrate}}}},
			of(accepted), time.Second, Resumes, []string{"t"}, Again,
		},

		"Tier":         {"A deletion of everything sends all prunes that are possible.", nil, ends(prune, other), 0, Deletes, []string{"a", "b"}, Again},
		"Going":        {"The next prunes wait until deleted objects are gone.", []round{{now: ends(prune), done: ok(prune)}}, ends(deleting), time.Second, Going, nil, Again},
		"GoingAnyway":  {"A pass also waits for an object that another writer deleted.", nil, ends(deleting), 0, Going, nil, Again},
		"GoesTooLong":  {"The wait for deleted objects is limited.", []round{{now: ends(prune), done: ok(prune)}}, ends(deleting), time.Minute, TimeIsUp, nil, Late},
		"SomethingNew": {"A step that was not sent yet is sent at once.", []round{{now: ends(prune), done: ok(prune)}}, ends(deleting, other), time.Second, Deletes, []string{"a", "b"}, Again},
		"Fails":        {"A failed prune is sent again.", []round{{now: ends(prune), done: bad(prune)}}, ends(prune), time.Second, Deletes, []string{"a"}, Again},
		"FailsThrice":  {"A failed prune is sent at most three times.", slices.Repeat([]round{{now: ends(prune), done: bad(prune)}}, 3), ends(prune), time.Second, Stuck, nil, Finished},
		"Held":         {"A held step ends a deletion of everything.", nil, ends(held), 0, Stuck, nil, Finished},
		"Clears":       {"A pass waits for a hold that may end without a user.", []round{{now: ends(other, clears), done: ok(other)}}, ends(clears), time.Second, Settles, nil, Again},
		"ClearsLate":   {"The wait for a hold is limited.", []round{{now: ends(other, clears), done: ok(other)}, {now: ends(clears), at: time.Second}}, ends(clears), 12 * time.Second, Stuck, nil, Finished},
		"Forgets":      {"The inventory entry of a deleted object is removed, even if another object is held.", []round{{now: ends(other, held), done: ok(other)}}, gone(ends(held)), time.Second, Stuck, []string{"a"}, Finished},
		"AllGone":      {"Once no object is owned, the inventory is deleted.", []round{{now: ends(prune), done: ok(prune)}}, ends(), time.Second, Ends, nil, Finished},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pass Pass
			now := at(tc.at)
			for _, r := range tc.before {
				then := at(r.at)
				then.Hurry, now.Hurry = r.hurry, r.hurry
				pass = pass.After(Next(pass, r.now, then), r.done, r.err)
			}
			d := Next(pass, tc.now, now)
			var sends []string
			for _, s := range d.Send.Steps {
				sends = append(sends, s.ID.Name)
			}
			if diff := cmp.Diff(tc.sends, sends); diff != "" || d.Why != tc.why || d.Until != tc.until {
				t.Errorf("%s\n%q, %s; want %q, %s\nsends (-want +got):\n%s", tc.reason, d.Why, d.Until, tc.why, tc.until, diff)
			}
		})
	}
}

// A revision of a package makes Crossplane deactivate what the first plan showed. If that showed no deactivation, a later round touches none.
func TestNothingIsTakenBackUnasked(t *testing.T) {
	revision := crossplane.ProviderRevision("toy-1")
	for name, tc := range map[string]struct {
		first plan.Plan
		want  bool
	}{
		"Nothing": {plan.Plan{Steps: []plan.Step{{ID: plan.CRD("things.example.org"), Action: plan.Create}}, Effects: []plan.Effect{{On: revision, Kind: plan.Activate}}}, false},
		"Step":    {plan.Plan{Steps: []plan.Step{{ID: plan.CRD("things.example.org"), Deactivates: true}}}, true},
		"Effect":  {plan.Plan{Effects: []plan.Effect{{On: plan.CRD("things.example.org"), Kind: plan.Deactivate}}}, true},
	} {
		if got := (Pass{First: tc.first}).takesBack()(revision); got != tc.want {
			t.Errorf("%s: the revision is touched: %t", name, got)
		}
	}
}

// Whatever later observations find, a pass writes only what its first plan showed, and loses no outcome.
func TestPassKeepsItsPromise(t *testing.T) {
	for seed := range uint64(3000) {
		next := rand.New(rand.NewPCG(seed, seed)).IntN
		some := func() plan.Plan {
			p := plan.Plan{Version: "1"}
			for i := range 4 {
				s := plan.Step{ID: manifest.ID{Group: "example.org", Kind: "Thing", Name: fmt.Sprint("o", i)}, UID: types.UID(fmt.Sprint(next(2)))}
				if i == 0 {
					s.ID = plan.CRD("things.example.org")
				}
				s.Action = []plan.Action{plan.Create, plan.Update, plan.Keep, plan.Prune, plan.Hold}[next(5)]
				if next(3) == 0 {
					s.Waits = []reason.Reason{reason.AwaitsMore.With(1)}
				}
				s.Deactivates = s.Action != plan.Create && next(5) == 0
				if next(6) == 0 {
					s.Err = reason.ErrUnserved
				}
				if next(4) > 0 {
					p.Steps = append(p.Steps, s)
				}
			}
			p.Effects = effectsOn([]plan.EffectState{plan.Pending, plan.Holds, plan.Broken}[next(3)], "toy")
			return p
		}
		var pass Pass
		after := time.Duration(0)
		for range 12 {
			begun := pass.Begun()
			d := Next(pass, some(), at(after))
			for _, s := range d.Send.Steps {
				first := slices.IndexFunc(pass.First.Steps, func(f plan.Step) bool { return f.ID == s.ID })
				_, sent := pass.Done[s.ID]
				refused := slices.ContainsFunc(pass.Last.Steps, func(l plan.Step) bool { return l.ID == s.ID && l.Err != nil }) // a new schema may accept it now
				shown := first >= 0 && (refused || pass.Done[s.ID].More && (pass.sent[s.ID].Action == plan.Prune) == (s.Action == plan.Prune) || pass.First.Steps[first].Waiting() || pass.First.Steps[first].Deactivates || pass.First.Steps[first].Err != nil || pass.Done[s.ID].Err != nil ||
					pass.First.Steps[first].Action == plan.Prune && s.Action == plan.Prune && !sent)
				if begun && s.Writes() && !shown && !(first >= 0 && s.Deactivates) {
					t.Fatalf("seed %d: %s %s is written, and the first plan did not show it: %+v", seed, s.Action, s.ID, pass.First.Steps)
				}
			}
			var done []plan.Outcome
			for _, s := range d.Send.Steps {
				if s.Writes() && next(4) > 0 {
					o := plan.Outcome{ID: s.ID, Action: s.Action, Err: s.Err, Unknown: next(5) == 0, More: next(5) == 0}
					if next(4) == 0 {
						o.Err = errors.New("boom")
					}
					done = append(done, o)
				}
			}
			var err error
			if next(6) == 0 {
				err = reason.ErrMoved
			}
			before := fmt.Sprintf("%+v", pass.Last.Steps)
			followed := pass.After(d, done, err)
			if now := fmt.Sprintf("%+v", pass.Last.Steps); now != before {
				t.Fatalf("seed %d: After changed the pass that it was called on:\n%s\n%s", seed, before, now)
			}
			for _, o := range done {
				if _, known := followed.Done[o.ID]; !known && d.Why != Migrates {
					t.Fatalf("seed %d: the outcome of %s is lost", seed, o.ID)
				}
			}
			if d.Until != Again && followed.Begun() {
				break
			}
			pass, after = followed, after+time.Duration(next(20))*time.Second
		}
	}
}

// The next pass over the same commit does not wait for effects that are already late.
func TestLateStaysLate(t *testing.T) {
	first := plan.Plan{Steps: []plan.Step{{ID: obj("a"), Action: plan.Create}}, Effects: effectsOn(plan.Pending, "x")}
	var pass Pass
	for i, look := range []struct {
		now   plan.Plan
		at    time.Duration
		until Until
	}{
		{first, 0, Again},
		{plan.Plan{Effects: effectsOn(plan.Pending, "x", "y")}, 50 * time.Second, Again},
		{plan.Plan{Effects: effectsOn(plan.Pending, "x", "y")}, time.Minute, Late},
	} {
		d := Next(pass, look.now, at(look.at))
		pass = pass.After(d, nil, nil)
		if d.Until != look.until {
			t.Fatalf("round %d: %s, %s", i, d.Why, d.Until)
		}
		if d.Until == Late {
			pass = pass.End(d)
		}
	}
	if d := Next(Pass{Waits: pass.Waits}, plan.Plan{Effects: effectsOn(plan.Pending, "x", "y")}, at(61*time.Second)); d.Until != Finished {
		t.Errorf("%s, %s", d.Why, d.Until)
	}
}

// A definition that could not be deactivated is left to the next pass, because nothing has changed that would allow it.
func TestFailedPhase(t *testing.T) {
	taken := plan.Step{ID: obj("a"), Action: plan.Prune, Deactivates: true}
	now := plan.Plan{Steps: []plan.Step{taken}, Effects: effectsOn(plan.Pending, "x")}
	pass := Pass{}
	pass = pass.After(Next(pass, now, at(0)), []plan.Outcome{{ID: obj("a"), Action: plan.Prune, Err: errRefused}}, nil)
	if d := Next(pass, now, at(time.Second)); d.Send.Writes() {
		t.Errorf("%s: it is sent again", d.Why)
	}
}

// A renamed object stays while its replacement cannot be created, even if the creation failed in an earlier round.
func TestReplacementFailed(t *testing.T) {
	from := plan.Step{ID: obj("old"), Action: plan.Prune, UID: "u"}
	to := plan.Step{ID: obj("new"), Action: plan.Create, Origin: manifest.Origin{Path: "settings.yaml", Line: 1}}
	for name, created := range map[string]error{"Created": nil, "Refused": errRefused} {
		var pass Pass
		pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{to, from}}, at(0)), []plan.Outcome{{ID: to.ID, Action: plan.Create, Err: created}}, nil)
		d := Next(pass, plan.Plan{Steps: []plan.Step{from}}, at(time.Second))
		if len(d.Send.Steps) != 1 || d.Send.Steps[0].IsUnfinished() != (created != nil) {
			t.Errorf("%s: %s %+v", name, d.Why, d.Send.Steps)
		}
	}
}

// A replacement that still waits has not replaced anything, not even in a pass that does not wait.
func TestReplacementWaits(t *testing.T) {
	from := plan.Step{ID: obj("old"), Action: plan.Prune, UID: "u"}
	to := plan.Step{ID: obj("new"), Action: plan.Create, Waits: []reason.Reason{reason.AwaitsAbsent.With()}, Origin: manifest.Origin{Path: "new.yaml", Line: 1}}
	beside := plan.Step{ID: obj("beside"), Action: plan.Update}
	hurried := func(after time.Duration) Times {
		t := at(after)
		t.Hurry = true
		return t
	}
	var pass Pass
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{beside, to, from}}, hurried(0)), []plan.Outcome{{ID: beside.ID, Action: plan.Update}}, nil)
	d := Next(pass, plan.Plan{Steps: []plan.Step{to, from}}, hurried(time.Second))
	if d.Why != PrunesLast || d.Send.Writes() {
		t.Fatalf("%s: %+v", d.Why, d.Send.Steps)
	}
	pass = pass.After(d, nil, nil)
	d = Next(pass, plan.Plan{Steps: []plan.Step{to, from}}, hurried(2*time.Second))
	if pass = pass.End(d); d.Until != Finished || d.Send.Writes() {
		t.Errorf("%s, %s: %+v", d.Why, d.Until, d.Send.Steps)
	}
	for _, s := range pass.Plan().Steps {
		if s.ID == from.ID && (s.Err != nil || s.Reason.Code != reason.StillWaits) {
			t.Errorf("It waits, and nothing failed: %+v", s)
		}
	}
	ready := to
	ready.Waits = nil
	if d = Next(pass, plan.Plan{Steps: []plan.Step{ready, from}}, at(3*time.Second)); len(d.Send.Steps) != 1 || d.Send.Steps[0].ID != to.ID {
		t.Errorf("The create goes on, and the next pass prunes: %s %+v", d.Why, d.Send.Steps)
	}
}

// A prune that waited for others is not sent if its replacement has failed in the meantime.
func TestReplacementFailedWhileAPruneWaits(t *testing.T) {
	from := plan.Step{ID: obj("old"), Action: plan.Prune, UID: "u", Waits: []reason.Reason{reason.AwaitsGone.With()}, AwaitsAll: []manifest.ID{obj("user")}}
	user := plan.Step{ID: obj("user"), Action: plan.Prune, UID: "v"}
	user.ID.Kind = "Bucket"
	from.AwaitsAll[0] = user.ID
	to := plan.Step{ID: obj("new"), Action: plan.Create, Origin: manifest.Origin{Path: "new.yaml", Line: 1}}
	var pass Pass
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{to, user, from}}, at(0)), []plan.Outcome{{ID: to.ID, Action: plan.Create, Err: errRefused}}, nil)
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{user, from}}, at(time.Second)), []plan.Outcome{{ID: user.ID, Action: plan.Prune}}, nil)
	goes := from
	goes.Waits, goes.AwaitsAll = nil, nil
	if d := Next(pass, plan.Plan{Steps: []plan.Step{goes}}, at(2*time.Second)); d.Send.Writes() && d.Send.Steps[0].Err == nil {
		t.Errorf("%s: %+v", d.Why, d.Send.Steps)
	}
}

// Objects that a webhook may have refused are sent again after this pass has pruned the webhook.
func TestPrunedWebhook(t *testing.T) {
	refused := plan.Step{ID: manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "a"}, Action: plan.Create}
	webhook := plan.Step{ID: manifest.ID{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "w"}, Action: plan.Prune, UID: "u", Removal: plan.Removal{Webhooks: []string{"w.example.org"}}}
	var pass Pass
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{refused, webhook}}, at(0)), []plan.Outcome{{ID: refused.ID, Action: plan.Create, Err: reason.Refused(reason.Gate{Webhook: "w.example.org"}, errRefused)}}, nil)
	d := Next(pass, plan.Plan{Steps: []plan.Step{refused, webhook}}, at(time.Second))
	if d.Why != PrunesLast || !d.Send.Writes() {
		t.Fatalf("%s: %+v", d.Why, d.Send.Steps)
	}
	pass = pass.After(d, []plan.Outcome{{ID: webhook.ID, Action: plan.Prune}}, nil)
	if d = Next(pass, plan.Plan{Steps: []plan.Step{refused}}, at(2*time.Second)); d.Why != Resumes || !d.Send.Writes() {
		t.Errorf("%s: %+v", d.Why, d.Send.Steps)
	}
}

// If the prune of an MRD has begun and a guard then keeps the MRD because it is in use, the MRD is not reported as pruned.
func TestPruneHeldHalfWay(t *testing.T) {
	mrd := crossplane.MRD("boats.example.org")
	begun := plan.Step{ID: mrd, Action: plan.Prune, UID: "u", Phase: plan.DoProtect}
	for name, stays := range map[string]plan.Step{
		"Held":     {ID: mrd, Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "in use", Severity: plan.Block}, UID: "u"},
		"Retained": {ID: mrd, Action: plan.Keep, Cause: plan.Retain, Judged: plan.Judged{Guard: "asked"}, UID: "u"},
	} {
		var pass Pass
		pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{begun}}, at(0)), []plan.Outcome{{ID: mrd, Action: plan.Prune, Did: plan.DoProtect, More: true}}, nil)
		d := Next(pass, plan.Plan{Steps: []plan.Step{stays}}, at(time.Second))
		pass = pass.After(d, nil, nil).End(d)
		s := pass.Plan().Steps[0]
		if len(pass.Outcomes()) > 0 || s.Action != stays.Action || s.Guard != stays.Guard || d.Until != Finished {
			t.Errorf("%s: %s; %s by %q, outcomes %v", name, d.Why, s.Action, s.Guard, pass.Outcomes())
		}
	}
}

// If a guard holds the activation of an MRD that was created, the MRD is not reported as active.
func TestActivationHeldHalfWay(t *testing.T) {
	mrd := crossplane.MRD("boats.example.org")
	create := plan.Step{ID: mrd, Action: plan.Create, Write: plan.Write{Activates: true}}
	var pass Pass
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{create}}, at(0)), []plan.Outcome{{ID: mrd, Action: plan.Create, Did: plan.DoApply, More: true}}, nil)
	d := Next(pass, plan.Plan{Steps: []plan.Step{{ID: mrd, Action: plan.Hold, Would: plan.Update, Judged: plan.Judged{Guard: "flood", Severity: plan.Block}}}}, at(time.Second))
	pass = pass.After(d, nil, nil).End(d)
	if o := pass.Outcomes(); len(o) != 1 || !o[0].More || d.Until != Finished {
		t.Errorf("%s: %+v", d.Why, o)
	}
}

// If a webhook that is down refuses many renamed objects, each of the old objects stays.
func TestManyReplacementsFail(t *testing.T) {
	pass, prunes := refusedRenames(50)
	for _, s := range Next(pass, prunes, at(time.Second)).Send.Steps {
		if !s.IsUnfinished() {
			t.Fatalf("%s is pruned", s.ID)
		}
	}
}

// BenchmarkRefusedRenames plans the prunes of two thousand renames that the API server refused.
func BenchmarkRefusedRenames(b *testing.B) {
	pass, prunes := refusedRenames(2000)
	for b.Loop() {
		Next(pass, prunes, at(time.Second))
	}
}

// refusedRenames returns a pass in which the API server refused to create many renamed objects, and the plan of its prunes.
func refusedRenames(many int) (Pass, plan.Plan) {
	var creates, prunes []plan.Step
	var done []plan.Outcome
	for i := range many {
		creates = append(creates, plan.Step{ID: obj(fmt.Sprint("new", i)), Action: plan.Create})
		prunes = append(prunes, plan.Step{ID: obj(fmt.Sprint("old", i)), Action: plan.Prune, UID: "u"})
		done = append(done, plan.Outcome{ID: creates[i].ID, Action: plan.Create, Err: errRefused})
	}
	var pass Pass
	return pass.After(Next(pass, plan.Plan{Steps: slices.Concat(creates, prunes)}, at(0)), done, nil), plan.Plan{Steps: prunes}
}
