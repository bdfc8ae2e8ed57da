package guard

import (
	"errors"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A policy was approved while it activated some definitions. Before the pass, the package gains more of them, or others. They stay
// closed until a person has seen them.
func TestApprovedFloodGrows(t *testing.T) {
	policies := map[string]string{"policies/team.yaml": given.Policy("team", "*.aws.example.org")}
	want := family(t, render.OwnerCrossplane, "safe-start", policies)
	const limit = 20
	compute := func(seen facts.Observed) plan.Plan {
		return given.Computed(t, want, seen, Guarding{MaxActivations: limit}.Guards()...)
	}
	seen := given.Seen(facts.Upstream{})
	asks := compute(seen).Approval
	if asks == nil || asks.UpTo == 0 || !strings.HasSuffix(asks.Line(), " up to 150") {
		t.Fatalf("asks for %+v", asks)
	}
	definitions := func(names ...string) facts.Observed {
		seen := given.Seen(facts.Upstream{})
		for _, name := range names {
			if seen.Upstream.Definitions == nil {
				seen.Upstream.Definitions = map[string]crossplane.LiveDefinition{}
			}
			seen.Upstream.Definitions[name] = crossplane.LiveDefinition{}
		}
		return seen
	}
	_, shown := approval.Shown(approval.Show(approval.DigestsOf(asks.Claims), asks.Claims))
	for _, tc := range []struct {
		reason string
		seen   facts.Observed
		given  approval.Approval
		passes bool
	}{
		{"The number that the report printed.", seen, approval.Approval{Digests: []string{asks.Digest}, UpTo: 150}, true},
		{"A digest alone opens nothing.", seen, approval.Approval{Digests: []string{asks.Digest}}, false},
		{"A smaller number.", seen, approval.Approval{Digests: []string{asks.Digest}, UpTo: 149}, false},
		{"One more appeared in the cluster.", definitions("t999.aws.example.org"), approval.Approval{Digests: []string{asks.Digest}, UpTo: 150}, false},
		{"The names in a comment.", seen, approval.Approval{ID: "c", Digests: approval.DigestsOf(asks.Claims), Shown: shown}, true},
		{"A name that the comment did not show.", definitions("t999.aws.example.org"), approval.Approval{ID: "c", Digests: approval.DigestsOf(asks.Claims), Shown: shown}, false},
	} {
		place := inventory.OnSync
		if tc.given.ID != "" {
			place = inventory.InComment
		}
		tc.seen.Inventory.ResourceVersion = "1"
		tc.seen.Approvals = approval.Given{place: {tc.given}}
		p := compute(tc.seen)
		if passes := p.Count(plan.Hold) == 0; passes != tc.passes {
			t.Errorf("%s It passes: %t; held %s, asks %s", tc.reason, passes, p.Steps[0].Why(), askedIn(p))
			continue
		}
		says := ""
		for _, n := range p.Notes {
			says += n.Message + "; " + n.Fix + "\n"
		}
		if tc.passes == strings.Contains(says, "the held steps now activate or break") || !tc.passes && !strings.Contains(says, p.Approval.Line()) {
			t.Errorf("%s The notes say:\n%s", tc.reason, says)
		}
	}
}

// A package was read, and its dependency was not. What is known of it can be counted, and the number is not that of the whole: nobody
// approves "up to 150".
func TestCountOfAPackageThatIsReadInPart(t *testing.T) {
	id := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-aws"}
	want := family(t, render.OwnerCrossplane, "safe-start", map[string]string{
		"policies/all.yaml": given.Policy("all", "*"),
		"provider.yaml":     "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-aws\nspec:\n  package: registry.example.org/aws/provider-aws:v1.0.0\n",
	})
	want.Unread = []catalogue.Unread{{Source: "registry.example.org/aws/base", Installers: []manifest.ID{id}, Err: errors.New("403")}}
	seen := given.Seen(facts.Upstream{Policies: map[string]crossplane.LivePolicy{"all": {Patterns: []string{"*"}}}})
	seen.Objects[crossplane.MRAP("all")] = given.Live(policyObject("all", "*"), "u")
	p, got := given.Steps(t, want, seen, Guarding{}.Guards()...)
	s := got["Provider provider-aws"]
	if s.Guard != Flood {
		t.Fatalf("%s %q %s", s.Action, s.Guard, s.Reason)
	}
	for _, c := range p.Approval.Claims {
		if c.Of == id && c.Cause != approval.Uncounted {
			t.Errorf("%s: the approval covers %q", s.Reason, approval.Line(string(c.Cause), c.Amount.Count()))
		}
	}
	if s.Reason.Code != reason.PackageActivatesMany {
		t.Errorf("%s", s.Reason)
	}
}

// askedIn returns the causes and amounts that a plan asks about.
func askedIn(p plan.Plan) string {
	if p.Approval == nil {
		return ""
	}
	var all []string
	for _, c := range p.Approval.Claims {
		all = append(all, approval.Line(string(c.Cause), c.Amount.Count()))
	}
	return strings.Join(all, ", ")
}

// An approval is of an object. It outlives a move of its file, and not another name of the object, of its namespace or of its kind.
func TestApprovalOfARenamedObject(t *testing.T) {
	commit := func(file, kind, namespace, name, value string) render.Desired {
		return given.Desired(t, render.OwnerHeadgate, map[string]string{file: "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ndata: {a: " + value + "}\n"})
	}
	rewritten := func(want render.Desired, approvals ...approval.Approval) plan.Plan {
		want.Revision = "2"
		seen := given.Seen(facts.Upstream{})
		seen.Inventory.ResourceVersion = "1"
		seen.Approvals = approval.Given{inventory.InComment: approvals}
		asks := draft.Guard{Name: "asks", Phase: draft.Writes, Approvable: true, Rule: draft.Each(func(plan.Step, draft.Case) plan.Ruling {
			return plan.Ruling{Judged: plan.Judged{Severity: plan.Block}}
		})}
		return given.Computed(t, want, seen, asks)
	}
	asked := rewritten(commit("a.yaml", "ConfigMap", "team", "settings", "x")).Approval
	if asked == nil {
		t.Fatal("nothing is held")
	}
	saw := approval.Approval{ID: "comment", Digests: append(approval.DigestsOf(asked.Claims), asked.Digest)}
	for _, tc := range []struct {
		reason string
		want   render.Desired
		passes bool
	}{
		{"The same.", commit("a.yaml", "ConfigMap", "team", "settings", "x"), true},
		{"Another file.", commit("moved/b.yaml", "ConfigMap", "team", "settings", "x"), true},
		{"Another name.", commit("a.yaml", "ConfigMap", "team", "other", "x"), false},
		{"Another namespace.", commit("a.yaml", "ConfigMap", "prod", "settings", "x"), false},
		{"Another kind.", commit("a.yaml", "Secret", "team", "settings", "eA=="), false},
		{"Other content.", commit("a.yaml", "ConfigMap", "team", "settings", "z"), false},
	} {
		if p := rewritten(tc.want, saw); (p.Count(plan.Hold) == 0) != tc.passes {
			t.Errorf("%s It passes: %t", tc.reason, p.Count(plan.Hold) == 0)
		}
	}
}
