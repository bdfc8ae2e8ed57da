package rounds

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const admissions = "admissionregistration.k8s.io"

// The pairs of an undone create or update and a prune. Only the exceptions are pruned, whatever the two have in common: kind, group,
// namespace or name.
func TestUnfinishedAndPrunes(t *testing.T) {
	at0 := func(group, kind, namespace, name string) manifest.ID {
		return manifest.ID{Group: group, Kind: kind, Namespace: namespace, Name: name}
	}
	names := []manifest.ID{
		at0("", "ConfigMap", "team", "a"), at0("", "ConfigMap", "team", "b"), at0("", "ConfigMap", "other", "a"), at0("", "Secret", "team", "a"),
		at0("apps", "Deployment", "team", "a"), at0("example.org", "ConfigMap", "team", "a"), at0("", "Namespace", "", "team"),
		at0(plan.RBAC, "Role", "team", "a"), at0("apiextensions.k8s.io", "CustomResourceDefinition", "", "as.example.org"),
	}
	denied := reason.Refused(reason.Gate{Webhook: "w.example.org"}, errors.New("no"))
	denies := reason.Refused(reason.Gate{Policy: "p", Binding: "b"}, errors.New("no"))
	undone := map[string]struct {
		step plan.Step
		err  error // of the outcome; the step is sent if it neither waits nor is held
	}{
		"Refused":   {plan.Step{Action: plan.Create}, errors.New(`configmaps "a" already exists in team; a valid config key`)},
		"Update":    {plan.Step{Action: plan.Update}, errRefused},
		"Known":     {plan.Step{Action: plan.Update, Err: errRefused}, errRefused},
		"Unserved":  {plan.Step{Action: plan.Create, Err: reason.CodedError{Reason: reason.KindNowhere.With("x")}, Origin: manifest.Origin{Path: "x"}}, errRefused},
		"Held":      {plan.Step{Action: plan.Hold, Would: plan.Create, Judged: plan.Judged{Guard: "schema", Severity: plan.Block}}, nil},
		"HeldDrift": {plan.Step{Action: plan.Hold, Would: plan.Update, Cause: plan.Drift, Judged: plan.Judged{Guard: "flood", Severity: plan.Block}}, nil},
		"Waits":     {plan.Step{Action: plan.Create, Waits: []reason.Reason{reason.AwaitsAbsent.With()}}, nil},
		"Webhook":   {plan.Step{Action: plan.Create}, denied},
		"Policy":    {plan.Step{Action: plan.Update, Err: denies}, denies},
	}
	prunes := map[string]struct {
		step plan.Step
		goes func(failed string, of manifest.ID) bool // nil if it never goes
	}{
		"Webhook":      {plan.Step{ID: at0(admissions, "ValidatingWebhookConfiguration", "", "cfg"), Removal: plan.Removal{Webhooks: []string{"other", "w.example.org"}}}, func(f string, _ manifest.ID) bool { return f == "Webhook" }},
		"OtherWebhook": {plan.Step{ID: at0(admissions, "MutatingWebhookConfiguration", "", "w.example.org"), Removal: plan.Removal{Webhooks: []string{"v.example.org"}}}, nil},
		"Policy":       {plan.Step{ID: at0(admissions, "ValidatingAdmissionPolicy", "", "p")}, func(f string, _ manifest.ID) bool { return f == "Policy" }},
		"PolicyBound":  {plan.Step{ID: at0(admissions, "ValidatingAdmissionPolicyBinding", "", "b")}, func(f string, _ manifest.ID) bool { return f == "Policy" }},
		"OtherPolicy":  {plan.Step{ID: at0(admissions, "ValidatingAdmissionPolicy", "", "b")}, nil},
		"LikePolicy":   {plan.Step{ID: at0("", "ConfigMap", "team", "p")}, nil},
		"RoleBinding":  {plan.Step{ID: at0(plan.RBAC, "RoleBinding", "team", "a")}, func(_ string, of manifest.ID) bool { return of.Group != plan.RBAC }},
		"ClusterBound": {plan.Step{ID: at0(plan.RBAC, "ClusterRoleBinding", "", "a")}, func(_ string, of manifest.ID) bool { return of.Group != plan.RBAC }},
		"Role":         {plan.Step{ID: at0(plan.RBAC, "Role", "team", "r")}, nil},
		"Deactivation": {plan.Step{ID: plan.CRD("bs.example.org"), Deactivates: true}, nil},
		"Freed":        {plan.Step{ID: obj("freed"), Terminating: true, Removal: plan.Removal{Protected: true}}, func(string, manifest.ID) bool { return true }},
	}
	for _, id := range names {
		id.Name += "-old"
		plain := prunes["Role"]
		plain.step.ID = id
		prunes[fmt.Sprint("Plain", len(prunes))] = plain
	}
	for failure, u := range undone {
		for _, id := range names {
			for name, p := range prunes {
				first, prune := u.step, p.step
				first.ID, prune.Action, prune.UID = id, plan.Prune, "u"
				want := p.goes != nil && p.goes(failure, id)
				sent := sentBy(plan.Plan{Steps: []plan.Step{first, prune}}, map[manifest.ID]error{id: u.err})
				if got := slices.Contains(sent, prune.ID); got != want {
					t.Fatalf("%s of %s, prune %s of %s: it is sent: %t, want %t", failure, id, name, prune.ID, got, want)
				}
			}
		}
	}
}

// sentBy carries out a plan until the pass is over, and returns the objects of successful requests.
func sentBy(p plan.Plan, errs map[manifest.ID]error) []manifest.ID {
	var pass Pass
	var sent []manifest.ID
	for i := range 5 {
		now := p.Select(func(s plan.Step) bool { return !slices.Contains(sent, s.ID) })
		for i, s := range now.Steps { // as the guard does
			if why := s.WaitsFor(now.Undone(nil)); !why.None() {
				now.Steps[i].Action, now.Steps[i].Would, now.Steps[i].Guard, now.Steps[i].Reason = plan.Hold, plan.Prune, plan.Unfinished, why
			}
		}
		r := Next(pass, now, at(time.Duration(i)*10*time.Minute)) // the time is up after the first round
		var done []plan.Outcome
		for _, s := range r.Send.Steps {
			if s.Writes() {
				done = append(done, plan.Outcome{ID: s.ID, Action: s.Action, Err: errs[s.ID]})
				if errs[s.ID] == nil {
					sent = append(sent, s.ID)
				}
			}
		}
		if pass = pass.After(r, done, nil); r.Until != Again {
			break
		}
	}
	return sent
}

// Nothing waits for what is not a failed, held or waiting write.
func TestFinishedAndPrunes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		step   plan.Step
	}{
		"Applied":   {"It was created.", plan.Step{Action: plan.Create}},
		"Unready":   {"It was applied and is not ready yet.", plan.Step{Action: plan.Keep, Unready: true}},
		"Prune":     {"A held prune replaces nothing.", plan.Step{Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: "external", Severity: plan.Block}}},
		"Going":     {"It is being deleted.", plan.Step{Action: plan.Prune, Terminating: true, Removal: plan.Removal{Deleting: true}}},
		"Retained":  {"A guard keeps it on purpose.", plan.Step{Action: plan.Keep, Cause: plan.Retain, Judged: plan.Judged{Guard: "asked"}}},
		"Reported":  {"The sync only reports drift.", plan.Step{Action: plan.Keep, Would: plan.Update, Cause: plan.Drift, Judged: plan.Judged{Guard: "drift"}}},
		"Observed":  {"The sync only observes it.", plan.Step{Action: plan.Keep, Would: plan.Update, Judged: plan.Judged{Guard: draft.OnlyObserved}}},
		"Release":   {"A release replaces nothing.", plan.Step{Action: plan.Release, Err: errRefused}},
		"FailPrune": {"A failed prune replaces nothing.", plan.Step{Action: plan.Prune, Err: errRefused}},
	} {
		tc.step.ID = obj("other")
		prune := plan.Step{ID: obj("old"), Action: plan.Prune, UID: "u"}
		errs := map[manifest.ID]error{}
		if tc.step.Err != nil {
			errs[tc.step.ID] = tc.step.Err
		}
		if !slices.Contains(sentBy(plan.Plan{Steps: []plan.Step{tc.step, prune}}, errs), prune.ID) {
			t.Errorf("%s: %s But the prune waits.", name, tc.reason)
		}
	}
}

// The reason names the oldest failure, and does not change when another object fails, too.
func TestOldestFailure(t *testing.T) {
	long, short := metav1.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC), metav1.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	p := plan.Plan{UndoneSince: map[manifest.ID]metav1.Time{obj("c"): long, obj("b"): short}}
	for _, name := range []string{"a", "b", "c"} {
		p.Steps = append(p.Steps, plan.Step{ID: obj(name), Action: plan.Create, Err: errRefused})
	}
	why := plan.Step{Action: plan.Prune, ID: obj("old")}.WaitsFor(p.Undone(nil))
	if why.Code != reason.StillFails || why.Values[0] != obj("c") || why.Values[1] != long {
		t.Errorf("%s", why)
	}
}

// The digest that approves prunes does not depend on what failed.
func TestApprovalOfUnfinished(t *testing.T) {
	digest := ""
	for _, code := range []reason.Code{reason.StillFails, reason.StillHeld, reason.StillWaits} {
		s := plan.Step{Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: plan.Unfinished, Severity: plan.Block, Reason: code.With(obj(string(code)), metav1.Time{})}, ID: obj("old")}
		if of := s.Approval().Digest; digest != "" && of != digest {
			t.Errorf("%s: another failure voids the approval", code)
		} else {
			digest = of
		}
	}
}

// A prune may be what an undone write needs. Each of these deadlocks lasts until a person approves the prune, and ends then.
func TestDeadlocks(t *testing.T) {
	provider := manifest.ID{Group: "example.org", Kind: "ProviderConfig", Name: "main"}
	bucket := manifest.ID{Group: "example.org", Kind: "Bucket", Namespace: "d", Name: "last"}
	for name, tc := range map[string]struct {
		reason string
		write  plan.Step
		goes   manifest.ID
	}{
		"Quota":   {"The create exceeds the quota while the old object exists.", plan.Step{ID: obj("new"), Action: plan.Create}, obj("old")},
		"Port":    {"The old object uses the port.", plan.Step{ID: manifest.ID{Kind: "Service", Namespace: "d", Name: "new"}, Action: plan.Create}, manifest.ID{Kind: "Service", Namespace: "d", Name: "old"}},
		"Config":  {"The ProviderConfig is being deleted, which a finalizer delays until its last user is gone.", plan.Step{ID: provider, Action: plan.Update, Terminating: true}, bucket},
		"Waiting": {"It is wanted again, and waits to be created until the old one is gone.", plan.Step{ID: provider, Action: plan.Create, Terminating: true, Waits: []reason.Reason{reason.AwaitsGone.With(provider)}}, bucket},
	} {
		for _, approved := range []bool{false, true} {
			prune := plan.Step{ID: tc.goes, Action: plan.Prune, UID: "u"}
			gone := false
			for range 3 { // passes
				errs := map[manifest.ID]error{tc.write.ID: errRefused}
				p := plan.Plan{Steps: []plan.Step{tc.write, prune}}
				if gone {
					done := tc.write
					done.Waits, errs = nil, nil
					p.Steps = []plan.Step{done}
				}
				p.AskAgain = func(*plan.Plan) plan.Lifting {
					lifted := plan.Lifting{}
					if approved {
						lifted.Add(prune.Ask(plan.Ruling{Judged: plan.Judged{Guard: plan.Unfinished}}))
					}
					return lifted
				}
				sent := sentBy(p, errs)
				if slices.Contains(sent, tc.write.ID) != gone {
					t.Errorf("%s: %s It is written: %t, although the prune was sent: %t", name, tc.reason, !gone, gone)
				}
				gone = gone || slices.Contains(sent, prune.ID)
			}
			if gone != approved {
				t.Errorf("%s: %s Approved: %t, and the prune is sent: %t", name, tc.reason, approved, gone)
			}
		}
	}
}

// A person's approval counts for failures that only the requests of the pass show. It never deletes what is still held inside a
// namespace.
func TestApprovedWhileUnfinished(t *testing.T) {
	create := plan.Step{ID: obj("new"), Action: plan.Create}
	prune := plan.Step{ID: obj("old"), Action: plan.Prune, UID: "u"}
	home := plan.Step{ID: manifest.ID{Kind: "Namespace", Name: prune.ID.Namespace}, Action: plan.Prune, UID: "v"}
	for name, tc := range map[string]struct {
		approves []manifest.ID
		goes     []manifest.ID
	}{
		"None": {nil, nil},
		"All":  {[]manifest.ID{prune.ID, home.ID}, []manifest.ID{prune.ID, home.ID}},
		"One":  {[]manifest.ID{prune.ID}, []manifest.ID{prune.ID}},
		"Home": {[]manifest.ID{home.ID}, nil},
	} {
		p := plan.Plan{Steps: []plan.Step{create, prune, home}}
		p.AskAgain = func(of *plan.Plan) plan.Lifting {
			approved := plan.Lifting{}
			for _, s := range of.Steps {
				if s.IsUnfinished() && slices.Contains(tc.approves, s.ID) {
					approved.Add(s.ClaimsHeld()...)
				}
			}
			return approved
		}
		if sent := sentBy(p, map[manifest.ID]error{create.ID: errRefused}); !slices.Equal(sent, tc.goes) {
			t.Errorf("%s: %v are sent", name, sent)
		}
	}
}

// The object of a prune may be the one that the pass has just applied under another identity.
func TestAppliedUnderAnotherIdentity(t *testing.T) {
	create := plan.Step{ID: manifest.ID{Group: "events.k8s.io", Kind: "Event", Namespace: "team", Name: "e"}, Action: plan.Update}
	prune := plan.Step{ID: manifest.ID{Kind: "Event", Namespace: "team", Name: "e"}, Action: plan.Prune, UID: "same"}
	other := plan.Step{ID: obj("old"), Action: plan.Prune, UID: "other"}
	var pass Pass
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{create, prune, other}}, at(0)), []plan.Outcome{{ID: create.ID, Action: plan.Update, UID: "same"}}, nil)
	r := Next(pass, plan.Plan{Steps: []plan.Step{prune, other}}, at(time.Second))
	for _, s := range r.Send.Steps {
		if want := s.ID == other.ID; s.Writes() != want || !want && (s.Guard != plan.SameObject || s.SameAs != create.ID) {
			t.Errorf("%s %s: %s", s.Action, s.ID, s.Reason)
		}
	}
}

// The forge is asked for approvals of prunes that only the outcomes of a pass hold: the pass before recorded them.
func TestAsksPerson(t *testing.T) {
	held := func(guard plan.GuardName) plan.Plan { return plan.Plan{Held: inventory.Holds{{Guard: string(guard)}}} }
	if !held(plan.Unfinished).AsksPerson() || held("in use").AsksPerson() || !(plan.Plan{Approval: &plan.Approval{}}).AsksPerson() {
		t.Error("An approval on the pull request would not count, or the forge is asked in vain.")
	}
}

// A namespace stays while an object in it could not be deleted.
func TestNamespaceNotEmpty(t *testing.T) {
	home := plan.Step{ID: manifest.ID{Kind: "Namespace", Name: "d"}, Action: plan.Prune}
	done := []plan.Outcome{{ID: obj("a"), Action: plan.Prune, Err: errRefused}}
	other := []plan.Outcome{{ID: manifest.ID{Kind: "ConfigMap", Namespace: "e", Name: "a"}, Action: plan.Prune, Err: errRefused}, {ID: obj("b"), Action: plan.Prune}, {ID: obj("c"), Action: plan.Update, Err: errRefused}}
	if why := home.NotEmpty(done); why.Code != reason.NamespaceNotEmpty {
		t.Errorf("%s: an object in it would be deleted with it", why)
	}
	if why := home.NotEmpty(other); !why.None() {
		t.Errorf("%s: everything in it is gone", why)
	}
}

// A prune whose dependant was updated is sent after everything else, although it could be sent earlier.
func TestPruneThatWaitedIsLast(t *testing.T) {
	user, late := plan.Step{ID: obj("user"), Action: plan.Update}, plan.Step{ID: obj("late"), Action: plan.Create, Waits: []reason.Reason{reason.AwaitsAbsent.With()}}
	waits := plan.Step{ID: obj("old"), Action: plan.Prune, UID: "u", Waits: []reason.Reason{reason.AwaitsUpdate.With(user.ID)}, AwaitsAll: []manifest.ID{user.ID}}
	free := waits
	free.Waits, free.AwaitsAll = nil, nil
	var pass Pass
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{user, late, waits}}, at(0)), []plan.Outcome{{ID: user.ID, Action: plan.Update}}, nil)
	if r := Next(pass, plan.Plan{Steps: []plan.Step{late, free}}, at(time.Second)); r.Send.Writes() {
		t.Errorf("%s: %+v", r.Why, r.Send.Steps)
	}
	// It is not sent if another object failed.
	bad := plan.Step{ID: obj("bad"), Action: plan.Create}
	pass = Pass{}
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{user, bad, waits}}, at(0)), []plan.Outcome{{ID: user.ID, Action: plan.Update}, {ID: bad.ID, Action: plan.Create, Err: errRefused}}, nil)
	if r := Next(pass, plan.Plan{Steps: []plan.Step{bad, free}}, at(time.Second)); r.Send.Count(plan.Prune) > 0 {
		t.Errorf("%s: %+v", r.Why, r.Send.Steps)
	}
	// If something fails after the prunes began, those that still waited are held.
	pass = Pass{}
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{waits}}, at(0)), nil, nil)
	pass.Last.Steps = append(pass.Last.Steps, user)
	pass.Done[user.ID] = plan.Outcome{ID: user.ID, Action: plan.Update, Err: errRefused}
	if r := Next(pass, plan.Plan{Steps: []plan.Step{free}}, at(time.Second)); r.Send.Writes() {
		t.Errorf("%s: %+v", r.Why, r.Send.Steps)
	}
}

// A pass may heal the failure that held prunes when it was planned: the new schema of a CRD takes effect. The same pass then prunes.
func TestFailureHealedInThePass(t *testing.T) {
	crd := plan.Step{ID: plan.CRD("things.example.org"), Action: plan.Update}
	thing := plan.Step{ID: manifest.ID{Group: "example.org", Kind: "Thing", Name: "a"}, Action: plan.Update, Err: errRefused}
	held := plan.Step{ID: obj("old"), Action: plan.Hold, Would: plan.Prune, Judged: plan.Judged{Guard: plan.Unfinished, Severity: plan.Block}, UID: "u"}
	var pass Pass
	pass = pass.After(Next(pass, plan.Plan{Steps: []plan.Step{crd, thing, held}}, at(0)), []plan.Outcome{{ID: crd.ID, Action: plan.Update}, {ID: thing.ID, Action: plan.Update, Err: errRefused}}, nil)
	thing.Err = nil
	prune := held
	prune.Action, prune.Would, prune.Guard = plan.Prune, "", ""
	r := Next(pass, plan.Plan{Steps: []plan.Step{thing, prune}}, at(time.Second))
	if r.Why != Resumes || r.Send.Count(plan.Prune) > 0 {
		t.Fatalf("%s: %+v", r.Why, r.Send.Steps)
	}
	pass = pass.After(r, []plan.Outcome{{ID: thing.ID, Action: plan.Update}}, nil)
	if r = Next(pass, plan.Plan{Steps: []plan.Step{prune}}, at(2*time.Second)); r.Why != PrunesLast || r.Send.Count(plan.Prune) != 1 {
		t.Errorf("%s: %+v", r.Why, r.Send.Steps)
	}
}
