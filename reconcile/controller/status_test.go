package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"

	fluxkstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

var (
	noon  = metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	later = metav1.NewTime(noon.Add(time.Hour))

	team = inventory.Sync{Namespace: "team", Name: "shop"}
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567"
	digest = "3f786850e387550fdab836ed7e6dc881"
)

func id(name string) manifest.ID {
	return manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: name}
}

func hold(would plan.Action, name string) plan.Step {
	return plan.Step{Action: plan.Hold, Would: would, Cause: plan.Commit, Judged: plan.Judged{Guard: "many", Severity: plan.Block, Reason: reason.Failed.With("boom")}, ID: id(name)}
}

// passed returns the event of a pass that carried out steps.
func passed(steps []plan.Step, done ...plan.Outcome) reconcile.Event {
	p := plan.Plan{Sync: team, Want: render.Desired{Revision: commit}, Steps: steps}
	return reconcile.Event{Kind: reconcile.Passed, Revision: commit, Report: report.New(p, done, true), Took: time.Second}
}

// withheld returns the event of a pass over a suspended Sync.
func withheld(action plan.Action) reconcile.Event {
	p := plan.Plan{Sync: team, Want: render.Desired{Revision: commit}, Steps: []plan.Step{{Action: action, Cause: plan.Commit, ID: id("a")}}}
	return reconcile.Event{Kind: reconcile.Passed, Revision: commit, Report: report.New(p, nil, false).Suspend("suspended"), Took: time.Second}
}

// A suspension past its end is overdue, and the condition goes with it.
func TestSuspendedCondition(t *testing.T) {
	s := v1alpha1.Sync{Spec: v1alpha1.Spec{Suspend: true, Suspension: &v1alpha1.Suspension{Until: &later, By: "alice", Why: "migration"}}}
	s.Name, s.Namespace = team.Name, team.Namespace
	for name, tc := range map[string]struct {
		now  metav1.Time
		want string
	}{
		"Before": {noon, "True Suspended"},
		"At":     {later, "True Overdue"},
		"After":  {metav1.NewTime(later.Add(time.Hour)), "True Overdue"},
	} {
		got := suspended(v1alpha1.Status{}, s, tc.now)
		message := got.Conditions[0].Message
		if conditions(got)["Suspended"] != tc.want || !strings.Contains(message, "until 2026-01-31T13:00:00Z by alice: migration; 'headgate resume sync shop -n team'") {
			t.Errorf("%s: %v, want %s: %s", name, conditions(got), tc.want, message)
		}
		s := s
		s.Spec.Suspend = false
		if after := suspended(got, s, tc.now); len(after.Conditions) > 0 {
			t.Errorf("%s: after resume: %v", name, conditions(after))
		}
	}
}

// conditions returns the conditions of a status as "Type=Status Reason".
func conditions(s v1alpha1.Status) map[string]string {
	all := map[string]string{}
	for _, c := range s.Conditions {
		all[c.Type] = string(c.Status) + " " + c.Reason
	}
	return all
}

// judge returns what cli-utils and Flux conclude from a status. The test fails if they differ.
func judge(t *testing.T, s v1alpha1.Status, generation int64) string {
	t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.Sync{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: team.Name, Namespace: team.Namespace, Generation: generation},
		Status:     s,
	})
	if err != nil {
		t.Fatal(err)
	}
	one, err := status.Compute(&unstructured.Unstructured{Object: u})
	if err != nil {
		t.Fatal(err)
	}
	other, err := fluxkstatus.Compute(&unstructured.Unstructured{Object: u})
	if err != nil {
		t.Fatal(err)
	}
	if one.Status.String() != other.Status.String() {
		t.Errorf("cli-utils computes %s, Flux %s", one.Status, other.Status)
	}
	return one.Status.String()
}

func TestStatusAfter(t *testing.T) {
	ready := passed(nil)
	before, _ := at(v1alpha1.Status{}, 1, noon).after(ready)
	fight := passed(nil)
	fight.Report = fight.Report.After(report.Summary{Corrected: 3}, []facts.Fight{{ID: id("a"), Path: "data.key", Manager: "other", Times: 3}})
	failed := passed([]plan.Step{{Action: plan.Create, Cause: plan.Commit, ID: id("a")}}, plan.Outcome{ID: id("a"), Action: plan.Create, Err: errors.New("boom")})
	slow := passed([]plan.Step{{Action: plan.Create, Cause: plan.Commit, ID: id("a")}}, plan.Outcome{ID: id("a"), Action: plan.Create, NotReady: reason.NotThere.With()})
	waits := passed([]plan.Step{{Action: plan.Create, Cause: plan.Commit, ID: id("a"), Waits: []reason.Reason{reason.AwaitsAbsent.With(reason.Object.With(id("b")))}}})
	stopped := reconcile.Event{Kind: reconcile.Passed, Revision: commit, Report: report.Failed(team, commit, errors.New("boom")), Err: errors.New("boom")}
	differs := passed([]plan.Step{{Action: plan.Keep, Would: plan.Update, Cause: plan.Drift, Judged: plan.Judged{Guard: "drift"}, ID: id("a")}})
	const noDrift, nothingHeld = "False NoDrift", "False NothingHeld"

	for name, tc := range map[string]struct {
		reason string
		before v1alpha1.Status
		events []reconcile.Event
		want   map[string]string
		judged string
	}{
		"New": {
			reason: "A Sync without a pass is not ready yet.",
			events: []reconcile.Event{{Kind: reconcile.Began}},
			want:   map[string]string{"Ready": "Unknown Progressing", "Reconciling": "True Progressing"}, judged: "InProgress",
		},
		"Succeeded": {
			reason: "A pass without problems makes the Sync ready.",
			events: []reconcile.Event{{Kind: reconcile.Began}, ready},
			want:   map[string]string{"Ready": "True Succeeded", "Held": nothingHeld, "Drifted": noDrift}, judged: "Current",
		},
		"NewCommit": {
			reason: "While a new commit is applied, the Sync is not as Git wants it.",
			before: before, events: []reconcile.Event{{Kind: reconcile.Began}, {Kind: reconcile.NewCommit, Revision: strings.Repeat("f", 40)}},
			want: map[string]string{"Ready": "True Succeeded", "Reconciling": "True Progressing", "Held": nothingHeld, "Drifted": noDrift}, judged: "InProgress",
		},
		"TakeOver": {
			reason: "The commit is new to another leader, and not to the Sync.",
			before: before, events: []reconcile.Event{{Kind: reconcile.Began}, {Kind: reconcile.NewCommit, Revision: commit}},
			want: map[string]string{"Ready": "True Succeeded", "Held": nothingHeld, "Drifted": noDrift}, judged: "Current",
		},
		"Failed": {
			reason: "A failure makes the Sync unready, and another pass follows.",
			before: before, events: []reconcile.Event{failed},
			want: map[string]string{"Ready": "False Failed", "Reconciling": "True Retrying", "Held": nothingHeld, "Drifted": noDrift}, judged: "InProgress",
		},
		"NotReady": {
			reason: "An object that is not ready in time makes the Sync unready.",
			before: before, events: []reconcile.Event{slow},
			want: map[string]string{"Ready": "False NotReady", "Reconciling": "True Retrying", "Held": nothingHeld, "Drifted": noDrift}, judged: "InProgress",
		},
		"Stopped": {
			reason: "A pass that stopped knows nothing of holds and drift.",
			before: before, events: []reconcile.Event{stopped},
			want: map[string]string{"Ready": "False Failed", "Reconciling": "True Retrying", "Held": nothingHeld, "Drifted": noDrift}, judged: "InProgress",
		},
		"Waits": {
			reason: "A step that waits is neither a failure nor a success.",
			before: before, events: []reconcile.Event{waits},
			want: map[string]string{"Ready": "Unknown Progressing", "Reconciling": "True Progressing", "Held": nothingHeld, "Drifted": noDrift}, judged: "InProgress",
		},
		"HeldUpdate": {
			reason: "A held update keeps the cluster from what the commit asks for. No retry helps, and neither does another spec.",
			before: before, events: []reconcile.Event{passed([]plan.Step{hold(plan.Update, "a")})},
			want: map[string]string{"Ready": "False Held", "Held": "True Failed", "Drifted": noDrift}, judged: "InProgress",
		},
		"HeldPrune": {
			reason: "A held prune keeps nothing from the cluster that the commit asks for.",
			before: before, events: []reconcile.Event{passed([]plan.Step{hold(plan.Prune, "a")})},
			want: map[string]string{"Ready": "True Succeeded", "Held": "True Failed", "Drifted": noDrift}, judged: "Current",
		},
		"HeldAndFailed": {
			reason: "A failure precedes a hold, because it may need no person.",
			before: before, events: []reconcile.Event{passed([]plan.Step{hold(plan.Update, "b"), {Action: plan.Create, ID: id("a")}}, plan.Outcome{ID: id("a"), Action: plan.Create, Err: errors.New("boom")})},
			want: map[string]string{"Ready": "False Failed", "Reconciling": "True Retrying", "Held": "True Failed", "Drifted": noDrift}, judged: "InProgress",
		},
		"Differs": {
			reason: "Drift that is only reported does not make the Sync unready.",
			before: before, events: []reconcile.Event{differs},
			want: map[string]string{"Ready": "True Succeeded", "Held": nothingHeld, "Drifted": "True Differs"}, judged: "Current",
		},
		"Fight": {
			reason: "A writer that undoes three corrections is drift, even if the last correction stands.",
			before: before, events: []reconcile.Event{fight},
			want: map[string]string{"Ready": "True Succeeded", "Held": nothingHeld, "Drifted": "True Fight"}, judged: "Current",
		},
		"Suspended": {
			reason: "A suspended Sync whose commit is not in the cluster is not ready, and does not seem to work.",
			before: before, events: []reconcile.Event{withheld(plan.Create)},
			want: map[string]string{"Ready": "False Suspended", "Held": nothingHeld, "Drifted": noDrift}, judged: "InProgress",
		},
		"SuspendedPrune": {
			reason: "What leaves the commit is there for longer, and everything that it asks for is there.",
			before: before, events: []reconcile.Event{withheld(plan.Prune)},
			want: map[string]string{"Ready": "True Succeeded", "Held": nothingHeld, "Drifted": noDrift}, judged: "Current",
		},
		"SuspendedQuietly": {
			reason: "Nothing waits for the end of the suspension.",
			before: before, events: []reconcile.Event{withheld(plan.Keep)},
			want: map[string]string{"Ready": "True Succeeded", "Held": nothingHeld, "Drifted": noDrift}, judged: "Current",
		},
		"SourceSuspended": {
			reason: "A source without newer artifacts does not make unready what is applied.",
			before: before, events: []reconcile.Event{{Kind: reconcile.SourceState, Err: errors.New("it is suspended")}, ready},
			want: map[string]string{"Ready": "True Succeeded", "Held": nothingHeld, "Drifted": noDrift, "SourceReady": "False SourceNotReady"}, judged: "Current",
		},
		"SourceResumed": {
			reason: "A source that is ready is not mentioned.",
			before: before, events: []reconcile.Event{{Kind: reconcile.SourceState, Err: errors.New("it is suspended")}, {Kind: reconcile.SourceState}},
			want: map[string]string{"Ready": "True Succeeded", "Held": nothingHeld, "Drifted": noDrift}, judged: "Current",
		},
		"Changed": {
			reason: "A pass over another generation shows nothing of the new one.",
			before: stalled(before, 0, "InvalidSpec", "boom"), events: []reconcile.Event{{Kind: reconcile.Began}},
			want: map[string]string{"Ready": "Unknown Progressing", "Reconciling": "True Progressing", "Held": nothingHeld, "Drifted": noDrift}, judged: "InProgress",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.before
			for _, e := range tc.events {
				got, _ = at(got, 1, later).after(e)
			}
			if diff := cmp.Diff(tc.want, conditions(got)); diff != "" {
				t.Errorf("%s\nconditions (-want +got):\n%s", tc.reason, diff)
			}
			if judged := judge(t, got, 1); judged != tc.judged {
				t.Errorf("%s\nkstatus computes %s, want %s", tc.reason, judged, tc.judged)
			}
			for _, c := range got.Conditions {
				if !codes.MatchString(c.Reason) || c.ObservedGeneration > 1 {
					t.Errorf("condition %+v", c)
				}
			}
			if again, changed := at(got, 1, metav1.NewTime(later.Add(time.Hour))).after(tc.events[len(tc.events)-1]); changed && len(got.Passes) == len(before.Passes) {
				t.Errorf("the same event changes the status again (-before +after):\n%s", cmp.Diff(got, again))
			}
		})
	}
}

// codes matches the reasons of conditions.
var codes = regexp.MustCompile(`^[A-Z][A-Za-z]*$`)

func TestStalled(t *testing.T) {
	s, _ := at(v1alpha1.Status{}, 1, noon).after(passed(nil))
	got := stalled(s, 2, "InvalidSpec", "spec.source.repo: is missing")
	want := map[string]string{"Ready": "False InvalidSpec", "Stalled": "True InvalidSpec", "Held": "False NothingHeld", "Drifted": "False NoDrift"}
	if diff := cmp.Diff(want, conditions(got)); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if judged := judge(t, got, 2); judged != "Failed" {
		t.Errorf("kstatus computes %s, want Failed", judged)
	}
	if judged := judge(t, got, 3); judged != "InProgress" {
		t.Errorf("kstatus computes %s for a generation that nobody has read, want InProgress", judged)
	}
	got, _ = after(got, 3, "", passed(nil))
	if judged := judge(t, got, 3); judged != "Current" {
		t.Errorf("kstatus computes %s after a pass, want Current", judged)
	}
}

// Ready names the first failed object with its cause and what to do; a pass that only holds is not a failure.
func TestStatusSays(t *testing.T) {
	create := plan.Step{Action: plan.Create, Cause: plan.Commit, ID: id("a"), Origin: manifest.Origin{Path: "a.yaml", Line: 3}}
	slow := passed([]plan.Step{create}, plan.Outcome{ID: id("a"), Action: plan.Create, NotReady: reason.NotThere.With()})
	long := passed([]plan.Step{create}, plan.Outcome{ID: id("a"), Action: plan.Create, Err: errors.New(strings.Repeat("boom ", 1000))})
	for name, tc := range map[string]struct {
		reason string
		event  reconcile.Event
		parts  []string
		result string
	}{
		"Failed": {"A person needs the object, its place, the cause and what to do.", long, []string{"1 failed: a; ", "ConfigMap/team/a (a.yaml:3): boom boom", "each pass tries again"}, "failure"},
		"Slow":   {"So does one whose object is not ready.", slow, []string{"ConfigMap/team/a (a.yaml:3): ", "kubectl describe"}, "failure"},
		"Held":   {"A hold waits for a person, and nothing failed.", passed([]plan.Step{hold(plan.Prune, "a")}), nil, "held"},
	} {
		s, _ := at(v1alpha1.Status{}, 1, noon).after(tc.event)
		ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady).Message
		for _, part := range tc.parts {
			if !strings.Contains(ready, part) {
				t.Errorf("%s: %s\nReady has %q, without %q", name, tc.reason, ready, part)
			}
		}
		if got := s.Passes[0].Result; got != tc.result {
			t.Errorf("%s: %s\nthe result is %q, want %q", name, tc.reason, got, tc.result)
		}
	}
}

// Revisions: the last one that was tried, and the last one in which nothing failed.
func TestRevisions(t *testing.T) {
	next := strings.Repeat("f", 40)
	failed := reconcile.Event{Kind: reconcile.Passed, Revision: next, Report: report.Failed(team, next, errors.New("boom"))}
	for name, tc := range map[string]struct {
		reason           string
		events           []reconcile.Event
		attempted, added string
	}{
		"Applied":   {"The commit of a good pass is applied.", []reconcile.Event{passed(nil)}, commit, commit},
		"Held":      {"A held step does not unapply the rest of the commit.", []reconcile.Event{passed([]plan.Step{hold(plan.Update, "a")})}, commit, commit},
		"Failed":    {"A failed commit is only tried.", []reconcile.Event{passed(nil), failed}, next, commit},
		"Untouched": {"A commit that changes nothing is applied without a pass.", []reconcile.Event{passed(nil), {Kind: reconcile.Untouched, Revision: next}}, next, next},
	} {
		var s v1alpha1.Status
		for _, e := range tc.events {
			s, _ = at(s, 1, noon).after(e)
		}
		if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready.Status == metav1.ConditionTrue && ready.Message != ofCommit(tc.added)+"0 objects" {
			t.Errorf("%s: %s Ready has %q", name, tc.reason, ready.Message)
		}
		if s.LastAttemptedRevision != tc.attempted || s.LastAppliedRevision != tc.added {
			t.Errorf("%s: %s attempted %s, applied %s", name, tc.reason, s.LastAttemptedRevision, s.LastAppliedRevision)
		}
	}
}

// A quiet pass does not change the status, so the controller writes nothing.
func TestQuietPass(t *testing.T) {
	first, changed := at(v1alpha1.Status{}, 1, noon).after(passed(nil))
	if !changed || len(first.Passes) != 1 {
		t.Fatalf("the first pass does not change the status: %+v", first)
	}
	for _, e := range []reconcile.Event{{Kind: reconcile.Began}, passed(nil), {Kind: reconcile.PublishFailed}} {
		if got, changed := at(first, 1, later).after(e); changed {
			t.Errorf("%s changes the status (-before +after):\n%s", e.Kind, cmp.Diff(first, got))
		}
	}
}

// A status shows the first holds and how to approve them, the drift with its fields, and the policies.
func TestStatusShows(t *testing.T) {
	p := plan.Plan{Sync: team, Want: render.Desired{Revision: commit}, Steps: []plan.Step{hold(plan.Update, "a"), hold(plan.Update, "b")}}
	r := report.New(p, nil, true)
	r.Definitions = []report.Definition{
		{Name: "x", Active: true, Because: []activation.Activator{{Policy: "all", Pattern: "*"}, {Policy: "all", Pattern: "x"}}},
		{Name: "y", Active: true, Because: []activation.Activator{{Policy: "all", Pattern: "*"}, {Policy: "y", Pattern: "y"}}},
	}
	s, _ := at(v1alpha1.Status{}, 1, noon).after(reconcile.Event{Kind: reconcile.Passed, Report: r})
	want := []v1alpha1.HeldSteps{{
		Guard: "many", Reason: "Failed", Message: "boom", Action: "update", Count: 2, Objects: []string{"ConfigMap/team/a", "ConfigMap/team/b"}, Since: noon, Revision: commit,
	}}
	if diff := cmp.Diff(want, s.Holds); diff != "" {
		t.Errorf("holds (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]v1alpha1.PolicyActivation{{Policy: "all", Active: 2}, {Policy: "y", Active: 1}}, s.Activation); diff != "" {
		t.Errorf("activation (-want +got):\n%s", diff)
	}
	if s.Counts.Held != 2 || s.Inventory.Name != "headgate-shop" {
		t.Errorf("counts %+v, inventory %+v", s.Counts, s.Inventory)
	}
}

// Held names what the first guard holds, and both ways to approve it.
func TestHeldMessage(t *testing.T) {
	holds := []v1alpha1.HeldSteps{{Guard: "many", Action: "prune", Count: 4, Objects: []string{"ConfigMap/team/a", "ConfigMap/team/b", "ConfigMap/team/c"}, Message: "4 prunes are more than 3"}}
	for digest, want := range map[string]string{
		"":     "",
		"d035": "; to approve: headgate approve sync shop -n team 'd035 up to 4', or kubectl annotate sync shop -n team --overwrite headgate.dev/approve='d035 up to 4 by USER at TIME'",
	} {
		holds[0].Digest, holds[0].UpTo = digest, 4
		want = `5 held; guard "many" holds prune of ConfigMap/team/a, ConfigMap/team/b, ConfigMap/team/c and 1 more: 4 prunes are more than 3` + want
		if got := heldMessage(5, holds, team); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// An approval that fits no hold would count years later, if exactly the same is held again. Held shows it until a person takes it out.
func TestUnneededApproval(t *testing.T) {
	const other = "ffffffffffffffffffffffffffffffff"
	kept := plan.Step{Action: plan.Keep, ID: id("a")}
	held := hold(plan.Prune, "a")
	of := func(digests ...string) string {
		var all []string
		for _, d := range digests {
			all = append(all, d+" by alice at 2026-01-31T12:00:00Z")
		}
		return strings.Join(all, ", ")
	}
	for name, tc := range map[string]struct {
		reason  string
		step    plan.Step
		approve string
		shows   string // "" if nothing is shown
	}{
		"None":    {"There is no approval.", kept, "", ""},
		"Used":    {"The held step was approved, and is over.", kept, of(digest), digest},
		"Fits":    {"The approval of what is held is needed, also if it does not count yet.", held, of(digest), ""},
		"Another": {"One of two approvals fits.", held, of(digest, other), other},
		"Ugly":    {"A hostile author writes no control characters into the status.", kept, "\x1b[2J" + strings.Repeat("x", 4000), "[2J"},
	} {
		t.Run(name, func(t *testing.T) {
			e := passed([]plan.Step{tc.step})
			change := at(v1alpha1.Status{}, 1, noon)
			change.approve = tc.approve
			s, _ := change.after(e)
			for i := range s.Holds {
				s.Holds[i].Digest = digest // as the plan of a pass has it
			}
			got := unneeded(tc.approve, s.Holds, team)
			if (got == "") != (tc.shows == "") || !strings.Contains(got, tc.shows) || len(got) > v1alpha1.LongestMessage {
				t.Errorf("%s\n%q, want %q", tc.reason, got, tc.shows)
			}
			if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionHeld); strings.ContainsAny(c.Message, "\x1b") || len(c.Message) > 2*v1alpha1.LongestMessage {
				t.Errorf("%s\nHeld has %q", tc.reason, c.Message)
			}
		})
	}
}

// An ordinary status with thousands of holds is a few kilobytes.
func TestManyHolds(t *testing.T) {
	var steps []plan.Step
	for i := range 2000 {
		s := hold(plan.Prune, fmt.Sprintf("settings-%d", i))
		s.Reason = reason.Failed.With(fmt.Sprintf("%d live objects", i))
		steps = append(steps, s)
	}
	s, _ := at(v1alpha1.Status{}, 1, noon).after(passed(steps))
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if most := 8 << 10; len(data) > most {
		t.Errorf("the status has %d bytes, more than %d", len(data), most)
	}
	t.Logf("%d bytes", len(data))
}

// The status stays small, whatever the report holds. A hostile author cannot write control characters into it, and neither can a server.
func TestStatusIsBounded(t *testing.T) {
	ugly := strings.Repeat("\x1b[2J\u202e\xff<b>`", 100)
	var steps []plan.Step
	for i := range 2000 {
		s := hold(plan.Update, fmt.Sprintf("%d-%s", i, ugly))
		s.Reason = reason.Failed.With(fmt.Sprint(i) + ugly)
		s.Guard = plan.GuardName(ugly)
		steps = append(steps, s, plan.Step{Action: plan.Keep, Would: plan.Update, Cause: plan.Drift, Judged: plan.Judged{Guard: "drift"}, ID: id(fmt.Sprintf("drift-%d", i) + ugly)})
	}
	e := passed(steps)
	for i := range 2000 {
		policy := fmt.Sprint(i) + ugly
		e.Report.Definitions = append(e.Report.Definitions, report.Definition{Name: policy, Active: true, Because: []activation.Activator{{Policy: policy}}})
	}
	e.Report.Verdict.Activation.Description, e.Report.Verdict.Drift.Description = ugly, ugly
	var s v1alpha1.Status
	for i := range 12 {
		e.Report.Revision = fmt.Sprint(i) + ugly
		s, _ = at(s, 1, noon).after(e)
	}
	s = stalled(s, 1, "InvalidSpec", ugly)
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if most := 192 << 10; len(data) > most {
		t.Errorf("the status has %d bytes, more than %d", len(data), most)
	}
	if text := string(data); strings.ContainsAny(text, "\x1b\u202e") || strings.Contains(text, `\u001b`) || strings.Contains(text, `\u202e`) {
		t.Errorf("the status has control characters: %.300q", data)
	}
	if len(s.Holds) != v1alpha1.MostHolds || s.Counts.Held != 2000 || len(s.Drift) != v1alpha1.MostDrift || len(s.Passes) != v1alpha1.MostPasses {
		t.Errorf("%d holds, %d held, %d drifted, %d passes", len(s.Holds), s.Counts.Held, len(s.Drift), len(s.Passes))
	}
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionHeld); len(c.Message) > 2*v1alpha1.LongestMessage {
		t.Errorf("the message of Held has %d bytes", len(c.Message))
	}
	t.Logf("%d bytes", len(data))
}

// What moves belongs to a spec: other Syncs would prune by what another one declared.
func TestAnotherSpecMovesNothing(t *testing.T) {
	was := v1alpha1.Status{ObservedGeneration: 1, Moves: &v1alpha1.Moves{Revision: "a"}}
	if same, _ := after(was, 1, "", reconcile.Event{Kind: reconcile.NewCommit}); same.Moves == nil {
		t.Error("the same spec: a new process forgets what it shows")
	}
	if began, _ := after(was, 2, "", reconcile.Event{Kind: reconcile.Began}); began.Moves != nil {
		t.Error("a new spec shows what moves because of the old one")
	}
	if no := stalled(was, 2, "InvalidSpec", "wrong"); no.Moves != nil {
		t.Error("a Sync that does not run shows what moves because of the old spec")
	}
}
