package report

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var breaksOne, prunesOne = approval.Ask{Claim: approval.Claim{Guard: "schema", Wants: "1"}}, approval.Ask{Claim: approval.Claim{Guard: "many", Wants: "2"}}

// asking returns a blocked comparison: a schema breaks, a guard holds a step that can be approved, and, if stuck, another hold
// cannot be approved.
func asking(stuck bool) Report {
	r := blank(inventory.Sync{Name: "platform", Namespace: "headgate-system"}, strings.Repeat("a", 40))
	r.Preview = &Preview{}
	breaks := Step{Action: plan.Update, ID: plan.CRD("buckets.example.org"), Breaks: []plan.SchemaChange{{Rule: "removed"}}, definition: true, active: true, rulings: []ruled{{guard.Schema, reason.MergeBreaks, plan.Block, 1, ""}}, claims: []approval.Ask{breaksOne}}
	held := Step{Action: plan.Hold, Would: plan.Prune, Guard: "many", ID: manifest.ID{Kind: "ConfigMap", Name: "a"}, approvable: true, claims: []approval.Ask{prunesOne}}
	r.Steps, r.Summary.Held = []Step{breaks, held}, 1
	if stuck {
		r.Steps = append(r.Steps, Step{Action: plan.Hold, Would: plan.Prune, Guard: "in use", ID: manifest.ID{Kind: "ConfigMap", Name: "b"}})
		r.Summary.Held = 2
	}
	r.ask()
	return r.On(nil)
}

func approvalBy(name, digest string) []Approved {
	return []Approved{{Digests: []string{digest}, By: name, How: []inventory.ApprovalPlace{inventory.InComment}}}
}

// If no approval can turn a required check green, people bypass the check, and then it is useless.
func TestApprovalTurnsGreen(t *testing.T) {
	r := asking(false)
	if r.Approval == nil || r.Approval.Steps != 2 || r.Approval.Digest != approval.DigestOf(r.Approval.Each) || r.Verdict.Activation.State != Failure {
		t.Fatalf("%+v", r.Approval)
	}
	green := r.Approve(approvalBy("@alice", r.Approval.Digest)).On(nil)
	if s := green.Verdict.Activation; s.State != Success || !strings.Contains(s.Description, "approved by @alice") || green.Verdict.ExitCode != 0 {
		t.Errorf("an approval of all: %+v", s)
	}
	if green.Asks() || !strings.Contains(Comment(green, 65_536), "Approved by &#64;alice with a comment: "+r.Approval.Digest) {
		t.Errorf("the comment does not say who approved:\n%s", Comment(green, 65_536))
	}
	for _, words := range []string{"any"} {
		if s := r.Approve(approvalBy("@alice", r.Approval.Digest)).On(Threshold{words}).Verdict; s.ExitCode == 0 {
			t.Errorf("--exit-on %s asks for no judgement, and an approval does not change what changes", words)
		}
	}
	for _, words := range []string{"holds", "breaking"} {
		if s := r.Approve(approvalBy("@alice", r.Approval.Digest)).On(Threshold{words}).Verdict; s.ExitCode != 0 {
			t.Errorf("--exit-on %s fails on what was approved", words)
		}
	}
	if r.Verdict.Activation.State != Failure || r.Steps[0].excused {
		t.Error("an approval changes the report that it was given")
	}
}

// One step of two is approved, so the other one still blocks.
func TestApprovalOfOneStep(t *testing.T) {
	r := asking(false).Approve(approvalBy("@alice", prunesOne.Digest())).On(nil)
	if s := r.Verdict.Activation; s.State != Failure || !r.Asks() {
		t.Errorf("%+v", s)
	}
	r = r.Approve(approvalBy("@bob", breaksOne.Digest())).On(nil)
	if s := r.Verdict.Activation; s.State != Success || !strings.Contains(s.Description, "approved by @alice, @bob") {
		t.Errorf("%+v", s)
	}
}

// A hold that cannot be approved stays red and is reported as such. The approver must not mistake a partial approval for a complete
// one.
func TestApprovalLeavesWhatCannotBeApproved(t *testing.T) {
	r := asking(true)
	green := r.Approve(approvalBy("@alice", r.Approval.Digest)).On(nil)
	if s := green.Verdict.Activation; s.State != Failure || !strings.HasPrefix(s.Description, "Blocked: holds 1 object back, which cannot be approved, approved by @alice") {
		t.Errorf("%+v", s)
	}
	if output := Comment(r, 65_536); !strings.Contains(output, "Held, and cannot be approved: 1") {
		t.Errorf("%s", output)
	}
	for _, digest := range []string{"", strings.Repeat("3", 32), r.Approval.Digest[:8], strings.ToUpper(r.Approval.Digest) + " "} {
		if r.Approve(approvalBy("@alice", digest)).On(nil).Approvals != nil {
			t.Errorf("%q approves something", digest)
		}
	}
}

// An approval in the target branch counts like one in a comment until it expires.
func TestApprovalInForce(t *testing.T) {
	r := asking(false)
	now := metav1.Unix(1_800_000_000, 0)
	a := render.Approval{Digests: []string{r.Approval.Digest}, By: "alice", Expires: metav1.Unix(1_800_000_001, 0)}
	if s := r.Approve(inForce([]render.Approval{a}, now)).On(nil).Verdict.Activation; s.State != Success {
		t.Errorf("%+v", s)
	}
	for _, at := range []metav1.Time{{}, a.Expires} {
		if s := r.Approve(inForce([]render.Approval{a}, at)).On(nil).Verdict.Activation; s.State != Failure {
			t.Errorf("at %s: %+v", at, s)
		}
	}
}

// A cluster has some of the steps of a preview, and learns from a comment which steps a digest covers. The author of a pull request
// also writes comments, so only the original list may match the digest.
func TestCovered(t *testing.T) {
	r := asking(false)
	c := Combined{Reports: []Report{r}, Target: "main", Head: strings.Repeat("e", 40)}
	digest, body, want := c.Digest(), c.Comment(65_536), r.Approval.Each
	if got, _ := Covered(digest, "main", []string{"hello", body}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	other := strings.Repeat("4", 32)
	for _, forged := range []string{
		listMark + digest + ": " + other + " -->",
		listMark + digest + ": " + strings.Join(r.Approval.Each, " ") + " " + other + " -->",
		listMark + digest + ":",
		listMark + r.Approval.Digest + ": " + strings.Join(r.Approval.Each, " ") + " -->",
		"> " + listMark + digest + ": " + strings.Join(r.Approval.Each, " "),
	} {
		if got, _ := Covered(digest, "main", []string{forged}); got != nil {
			t.Errorf("%q: %v", forged, got)
		}
	}
}

// An approval in Git covers the amount that it names. A comment covers the amounts that it listed, which its digest proves.
func TestApprovalOfAmounts(t *testing.T) {
	of := func(amount int) Report {
		r := asking(false)
		r.Steps[0].claims = []approval.Ask{{Claim: breaksOne.Claim, Amount: approval.Count(amount)}}
		r.ask()
		return r.On(nil)
	}
	r := of(3)
	for name, tc := range map[string]struct {
		upTo  int
		place inventory.ApprovalPlace
		want  State
	}{
		"Enough":  {3, inventory.InGit, Success},
		"TooFew":  {2, inventory.InGit, Failure},
		"None":    {0, inventory.InGit, Failure},
		"Comment": {0, inventory.InComment, Success},
	} {
		given := []Approved{{Digests: []string{r.Approval.Digest}, UpTo: tc.upTo, How: []inventory.ApprovalPlace{tc.place}}}
		if s := r.Approve(given).On(nil).Verdict.Activation; s.State != tc.want {
			t.Errorf("%s: %+v, want %s", name, s, tc.want)
		}
	}
	c := Combined{Reports: []Report{r}, Target: "main", Head: strings.Repeat("e", 40)}
	if _, amounts := Covered(c.Digest(), "main", []string{c.Comment(65_536)}); amounts[breaksOne.Digest()].Count() != 3 {
		t.Errorf("the comment covers %v, want 3", amounts)
	}
	more := of(4).Approval
	forged := listMark + c.Digest() + ": " + strings.Join(approval.Show(more.Each, more.Claims), " ") + " -->"
	if _, amounts := Covered(c.Digest(), "main", []string{forged}); amounts != nil {
		t.Errorf("a list with a larger amount covers %v", amounts)
	}
}
