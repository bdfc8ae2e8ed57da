package plan

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/inventory"
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
		at0(rbac, "Role", "team", "a"), at0("apiextensions.k8s.io", "CustomResourceDefinition", "", "as.example.org"),
	}
	denied := Refused(Gate{Webhook: "w.example.org"}, errors.New("no"))
	denies := Refused(Gate{Policy: "p", Binding: "b"}, errors.New("no"))
	undone := map[string]struct {
		step Step
		err  error // of the outcome; the step is sent if it neither waits nor is held
	}{
		"Refused":   {Step{Action: Create}, errors.New(`configmaps "a" already exists in team; a valid config key`)},
		"Update":    {Step{Action: Update}, errRefused},
		"Known":     {Step{Action: Update, Err: errRefused}, errRefused},
		"Unserved":  {Step{Action: Create, Err: ReasonError{KindNowhere.With("x")}, Origin: manifest.Origin{Path: "x"}}, errRefused},
		"Held":      {Step{Action: Hold, Would: Create, Guard: "schema"}, nil},
		"HeldDrift": {Step{Action: Hold, Would: Update, Cause: Drift, Guard: "flood"}, nil},
		"Waits":     {Step{Action: Create, Waits: []Reason{AwaitsAbsent.With()}}, nil},
		"Webhook":   {Step{Action: Create}, denied},
		"Policy":    {Step{Action: Update, Err: denies}, denies},
	}
	prunes := map[string]struct {
		step Step
		goes func(failed string, of manifest.ID) bool // nil if it never goes
	}{
		"Webhook":      {Step{ID: at0(admissions, "ValidatingWebhookConfiguration", "", "cfg"), Removal: Removal{Webhooks: []string{"other", "w.example.org"}}}, func(f string, _ manifest.ID) bool { return f == "Webhook" }},
		"OtherWebhook": {Step{ID: at0(admissions, "MutatingWebhookConfiguration", "", "w.example.org"), Removal: Removal{Webhooks: []string{"v.example.org"}}}, nil},
		"Policy":       {Step{ID: at0(admissions, "ValidatingAdmissionPolicy", "", "p")}, func(f string, _ manifest.ID) bool { return f == "Policy" }},
		"PolicyBound":  {Step{ID: at0(admissions, "ValidatingAdmissionPolicyBinding", "", "b")}, func(f string, _ manifest.ID) bool { return f == "Policy" }},
		"OtherPolicy":  {Step{ID: at0(admissions, "ValidatingAdmissionPolicy", "", "b")}, nil},
		"LikePolicy":   {Step{ID: at0("", "ConfigMap", "team", "p")}, nil},
		"RoleBinding":  {Step{ID: at0(rbac, "RoleBinding", "team", "a")}, func(_ string, of manifest.ID) bool { return of.Group != rbac }},
		"ClusterBound": {Step{ID: at0(rbac, "ClusterRoleBinding", "", "a")}, func(_ string, of manifest.ID) bool { return of.Group != rbac }},
		"Role":         {Step{ID: at0(rbac, "Role", "team", "r")}, nil},
		"Deactivation": {Step{ID: CRD("bs.example.org"), Deactivates: true}, nil},
		"Freed":        {Step{ID: obj("freed"), Terminating: true, Removal: Removal{Protected: true}}, func(string, manifest.ID) bool { return true }},
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
				first.ID, prune.Action, prune.UID = id, Prune, "u"
				want := p.goes != nil && p.goes(failure, id)
				sent := sentBy(Plan{Steps: []Step{first, prune}}, map[manifest.ID]error{id: u.err})
				if got := slices.Contains(sent, prune.ID); got != want {
					t.Fatalf("%s of %s, prune %s of %s: it is sent: %t, want %t", failure, id, name, prune.ID, got, want)
				}
			}
		}
	}
}

// sentBy carries out a plan until the pass is over, and returns the objects of successful requests.
func sentBy(p Plan, errs map[manifest.ID]error) []manifest.ID {
	var pass Pass
	var sent []manifest.ID
	for i := range 5 {
		now := p.Select(func(s Step) bool { return !slices.Contains(sent, s.ID) })
		for i, s := range now.Steps { // as the guard does
			if why := s.WaitsFor(now.Undone(nil)); !why.None() {
				now.Steps[i].Action, now.Steps[i].Would, now.Steps[i].Guard, now.Steps[i].Reason = Hold, Prune, Unfinished, why
			}
		}
		r := Next(pass, now, at(time.Duration(i)*10*time.Minute)) // the time is up after the first round
		var done []Outcome
		for _, s := range r.Send.Steps {
			if s.Writes() {
				done = append(done, Outcome{ID: s.ID, Action: s.Action, Err: errs[s.ID]})
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
		step   Step
	}{
		"Applied":   {"It was created.", Step{Action: Create}},
		"Unready":   {"It was applied and is not ready yet.", Step{Action: Keep, Unready: true}},
		"Prune":     {"A held prune replaces nothing.", Step{Action: Hold, Would: Prune, Guard: "external"}},
		"Going":     {"It is being deleted.", Step{Action: Prune, Terminating: true, Removal: Removal{Deleting: true}}},
		"Retained":  {"A guard keeps it on purpose.", Step{Action: Keep, Cause: Retain, Guard: "asked"}},
		"Reported":  {"The sync only reports drift.", Step{Action: Keep, Would: Update, Cause: Drift, Guard: "drift"}},
		"Observed":  {"The sync only observes it.", Step{Action: Keep, Would: Update, Guard: OnlyObserved}},
		"Release":   {"A release replaces nothing.", Step{Action: Release, Err: errRefused}},
		"FailPrune": {"A failed prune replaces nothing.", Step{Action: Prune, Err: errRefused}},
	} {
		tc.step.ID = obj("other")
		prune := Step{ID: obj("old"), Action: Prune, UID: "u"}
		errs := map[manifest.ID]error{}
		if tc.step.Err != nil {
			errs[tc.step.ID] = tc.step.Err
		}
		if !slices.Contains(sentBy(Plan{Steps: []Step{tc.step, prune}}, errs), prune.ID) {
			t.Errorf("%s: %s But the prune waits.", name, tc.reason)
		}
	}
}

// The reason names the oldest failure, and does not change when another object fails, too.
func TestOldestFailure(t *testing.T) {
	long, short := metav1.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC), metav1.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)
	p := Plan{UndoneSince: map[manifest.ID]metav1.Time{obj("c"): long, obj("b"): short}}
	for _, name := range []string{"a", "b", "c"} {
		p.Steps = append(p.Steps, Step{ID: obj(name), Action: Create, Err: errRefused})
	}
	why := Step{Action: Prune, ID: obj("old")}.WaitsFor(p.Undone(nil))
	if why.Code != StillFails || why.Values[0] != obj("c") || why.Values[1] != long {
		t.Errorf("%s", why)
	}
}

// The digest that approves prunes does not depend on what failed.
func TestApprovalOfUnfinished(t *testing.T) {
	digest := ""
	for _, code := range []Code{StillFails, StillHeld, StillWaits} {
		s := Step{Action: Hold, Would: Prune, Guard: Unfinished, ID: obj("old"), Reason: code.With(obj(string(code)), metav1.Time{})}
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
		write  Step
		goes   manifest.ID
	}{
		"Quota":   {"The create exceeds the quota while the old object exists.", Step{ID: obj("new"), Action: Create}, obj("old")},
		"Port":    {"The old object uses the port.", Step{ID: manifest.ID{Kind: "Service", Namespace: "d", Name: "new"}, Action: Create}, manifest.ID{Kind: "Service", Namespace: "d", Name: "old"}},
		"Config":  {"The ProviderConfig is being deleted, which a finalizer delays until its last user is gone.", Step{ID: provider, Action: Update, Terminating: true}, bucket},
		"Waiting": {"It is wanted again, and waits to be created until the old one is gone.", Step{ID: provider, Action: Create, Terminating: true, Waits: []Reason{AwaitsGone.With(provider)}}, bucket},
	} {
		for _, approved := range []bool{false, true} {
			prune := Step{ID: tc.goes, Action: Prune, UID: "u"}
			gone := false
			for range 3 { // passes
				errs := map[manifest.ID]error{tc.write.ID: errRefused}
				p := Plan{Steps: []Step{tc.write, prune}}
				if gone {
					done := tc.write
					done.Waits, errs = nil, nil
					p.Steps = []Step{done}
				}
				p.AskAgain = func(*Plan) Lifting {
					lifted := Lifting{}
					if approved {
						lifted.Add(prune.ask(Ruling{Guard: Unfinished}))
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
	create := Step{ID: obj("new"), Action: Create}
	prune := Step{ID: obj("old"), Action: Prune, UID: "u"}
	home := Step{ID: manifest.ID{Kind: "Namespace", Name: prune.ID.Namespace}, Action: Prune, UID: "v"}
	for name, tc := range map[string]struct {
		approves []manifest.ID
		goes     []manifest.ID
	}{
		"None": {nil, nil},
		"All":  {[]manifest.ID{prune.ID, home.ID}, []manifest.ID{prune.ID, home.ID}},
		"One":  {[]manifest.ID{prune.ID}, []manifest.ID{prune.ID}},
		"Home": {[]manifest.ID{home.ID}, nil},
	} {
		p := Plan{Steps: []Step{create, prune, home}}
		p.AskAgain = func(of *Plan) Lifting {
			approved := Lifting{}
			for _, s := range of.Steps {
				if s.isUnfinished() && slices.Contains(tc.approves, s.ID) {
					approved.Add(s.claims()...)
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
	create := Step{ID: manifest.ID{Group: "events.k8s.io", Kind: "Event", Namespace: "team", Name: "e"}, Action: Update}
	prune := Step{ID: manifest.ID{Kind: "Event", Namespace: "team", Name: "e"}, Action: Prune, UID: "same"}
	other := Step{ID: obj("old"), Action: Prune, UID: "other"}
	var pass Pass
	pass = pass.After(Next(pass, Plan{Steps: []Step{create, prune, other}}, at(0)), []Outcome{{ID: create.ID, Action: Update, UID: "same"}}, nil)
	r := Next(pass, Plan{Steps: []Step{prune, other}}, at(time.Second))
	for _, s := range r.Send.Steps {
		if want := s.ID == other.ID; s.Writes() != want || !want && (s.Guard != SameObject || s.SameAs != create.ID) {
			t.Errorf("%s %s: %s", s.Action, s.ID, s.Reason)
		}
	}
}

// The forge is asked for approvals of prunes that only the outcomes of a pass hold: the pass before recorded them.
func TestAsksPerson(t *testing.T) {
	held := func(guard GuardName) Plan { return Plan{Held: inventory.Holds{{Guard: string(guard)}}} }
	if !held(Unfinished).AsksPerson() || held("in use").AsksPerson() || !(Plan{Approval: &Approval{}}).AsksPerson() {
		t.Error("An approval on the pull request would not count, or the forge is asked in vain.")
	}
}

// A namespace stays while an object in it could not be deleted.
func TestNamespaceNotEmpty(t *testing.T) {
	home := Step{ID: manifest.ID{Kind: "Namespace", Name: "d"}, Action: Prune}
	done := []Outcome{{ID: obj("a"), Action: Prune, Err: errRefused}}
	other := []Outcome{{ID: manifest.ID{Kind: "ConfigMap", Namespace: "e", Name: "a"}, Action: Prune, Err: errRefused}, {ID: obj("b"), Action: Prune}, {ID: obj("c"), Action: Update, Err: errRefused}}
	if why := home.NotEmpty(done); why.Code != NamespaceNotEmpty {
		t.Errorf("%s: an object in it would be deleted with it", why)
	}
	if why := home.NotEmpty(other); !why.None() {
		t.Errorf("%s: everything in it is gone", why)
	}
}

// A prune whose dependant was updated is sent after everything else, although it could be sent earlier.
func TestPruneThatWaitedIsLast(t *testing.T) {
	user, late := Step{ID: obj("user"), Action: Update}, Step{ID: obj("late"), Action: Create, Waits: []Reason{AwaitsAbsent.With()}}
	waits := Step{ID: obj("old"), Action: Prune, UID: "u", Waits: []Reason{AwaitsUpdate.With(user.ID)}, AwaitsAll: []manifest.ID{user.ID}}
	free := waits
	free.Waits, free.AwaitsAll = nil, nil
	var pass Pass
	pass = pass.After(Next(pass, Plan{Steps: []Step{user, late, waits}}, at(0)), []Outcome{{ID: user.ID, Action: Update}}, nil)
	if r := Next(pass, Plan{Steps: []Step{late, free}}, at(time.Second)); r.Send.Writes() {
		t.Errorf("%s: %+v", r.Why, r.Send.Steps)
	}
	// It is not sent if another object failed.
	bad := Step{ID: obj("bad"), Action: Create}
	pass = Pass{}
	pass = pass.After(Next(pass, Plan{Steps: []Step{user, bad, waits}}, at(0)), []Outcome{{ID: user.ID, Action: Update}, {ID: bad.ID, Action: Create, Err: errRefused}}, nil)
	if r := Next(pass, Plan{Steps: []Step{bad, free}}, at(time.Second)); r.Send.Count(Prune) > 0 {
		t.Errorf("%s: %+v", r.Why, r.Send.Steps)
	}
	// If something fails after the prunes began, those that still waited are held.
	pass = Pass{}
	pass = pass.After(Next(pass, Plan{Steps: []Step{waits}}, at(0)), nil, nil)
	pass.Last.Steps = append(pass.Last.Steps, user)
	pass.Done[user.ID] = Outcome{ID: user.ID, Action: Update, Err: errRefused}
	if r := Next(pass, Plan{Steps: []Step{free}}, at(time.Second)); r.Send.Writes() {
		t.Errorf("%s: %+v", r.Why, r.Send.Steps)
	}
}

// A pass may heal the failure that held prunes when it was planned: the new schema of a CRD takes effect. The same pass then prunes.
func TestFailureHealedInThePass(t *testing.T) {
	crd := Step{ID: CRD("things.example.org"), Action: Update}
	thing := Step{ID: manifest.ID{Group: "example.org", Kind: "Thing", Name: "a"}, Action: Update, Err: errRefused}
	held := Step{ID: obj("old"), Action: Hold, Would: Prune, Guard: Unfinished, UID: "u"}
	var pass Pass
	pass = pass.After(Next(pass, Plan{Steps: []Step{crd, thing, held}}, at(0)), []Outcome{{ID: crd.ID, Action: Update}, {ID: thing.ID, Action: Update, Err: errRefused}}, nil)
	thing.Err = nil
	prune := held
	prune.Action, prune.Would, prune.Guard = Prune, "", ""
	r := Next(pass, Plan{Steps: []Step{thing, prune}}, at(time.Second))
	if r.Why != Resumes || r.Send.Count(Prune) > 0 {
		t.Fatalf("%s: %+v", r.Why, r.Send.Steps)
	}
	pass = pass.After(r, []Outcome{{ID: thing.ID, Action: Update}}, nil)
	if r = Next(pass, Plan{Steps: []Step{prune}}, at(2*time.Second)); r.Why != PrunesLast || r.Send.Count(Prune) != 1 {
		t.Errorf("%s: %+v", r.Why, r.Send.Steps)
	}
}
