package controller

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"
)

// A Sync above a ceiling is refused with the field and the limit. What it leaves out counts as its default.
func TestCeilings(t *testing.T) {
	n := func(n int) *int { return &n }
	for name, tc := range map[string]struct {
		spec v1alpha1.Spec
		most Ceilings
		want string // in the refusal; "" if there is none
	}{
		"NoLimit":            {v1alpha1.Spec{MaxPrunes: n(1000), Instances: v1alpha1.InstancesPrune, Adoption: v1alpha1.AdoptAll}, Ceilings{}, ""},
		"Below":              {v1alpha1.Spec{MaxPrunes: n(5), MaxActivations: n(50)}, Ceilings{MaxPrunes: 5, MaxActivations: 50}, ""},
		"Prunes":             {v1alpha1.Spec{MaxPrunes: n(6)}, Ceilings{MaxPrunes: 5}, "6 is above the ceiling --max-prunes 5"},
		"Activations":        {v1alpha1.Spec{MaxActivations: n(51)}, Ceilings{MaxActivations: 50}, "51 is above the ceiling --max-activations 50"},
		"DefaultActivations": {v1alpha1.Spec{}, Ceilings{MaxActivations: 99}, "its default of up to 100"},
		"DefaultPrunes":      {v1alpha1.Spec{}, Ceilings{MaxPrunes: 19}, "its default of up to 20"},
		"DefaultsBelow":      {v1alpha1.Spec{}, Ceilings{MaxPrunes: 20, MaxActivations: 100}, ""},
		"Instances":          {v1alpha1.Spec{Instances: v1alpha1.InstancesPrune}, Ceilings{Instances: "Hold"}, "--instances hold"},
		"Adoption":           {v1alpha1.Spec{Adoption: v1alpha1.AdoptAll}, Ceilings{Adoption: "AdoptIfUnowned"}, "spec.adoption: Adopt"},
		"LessAdoption":       {v1alpha1.Spec{Adoption: v1alpha1.AdoptRefuse}, Ceilings{Adoption: "AdoptIfUnowned"}, ""},
		"Comments":           {v1alpha1.Spec{}, Ceilings{Approvals: ApprovalsNever}, "comments: Never"},
		"NoComments":         {v1alpha1.Spec{Approvals: v1alpha1.Approvals{Comments: v1alpha1.CommentsNever}}, Ceilings{Approvals: ApprovalsNever}, ""},
		"Reviews":            {v1alpha1.Spec{Approvals: v1alpha1.Approvals{Comments: v1alpha1.CommentsNever, Reviews: true}}, Ceilings{Approvals: ApprovalsNever}, "comments and reviews approve nothing"},
		"ByAuthor":           {v1alpha1.Spec{Approvals: v1alpha1.Approvals{ByAuthor: v1alpha1.ByAuthorAllow}}, Ceilings{Approvals: ApprovalsOthers}, "spec.approvals.byAuthor"},
	} {
		err := tc.most.check(tc.spec)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// The audit log shows the ceilings that are set.
func TestCeilingsInTheAuditLog(t *testing.T) {
	all := Ceilings{MaxPrunes: 5, Adoption: "Refuse"}.settings()
	want := []audit.Setting{{Field: "--max-prunes", Is: "5"}, {Field: "--adoption", Is: `"Refuse"`}}
	if !slices.Equal(all, want) || len(Ceilings{}.settings()) != 0 {
		t.Errorf("%v", all)
	}
}

// The controller acts as service accounts of the namespace of the Sync only, and never as itself or as an account of Kubernetes.
func TestAccount(t *testing.T) {
	for name, tc := range map[string]struct{ namespace, named, initial, want string }{
		"Named":      {"team", "deployer", "default", "system:serviceaccount:team:deployer"},
		"Default":    {"team", "", "default", "system:serviceaccount:team:default"},
		"None":       {"team", "", "", ""},
		"Kubernetes": {"kube-system", "deployer", "", ""},
		"Itself":     {"headgate-system", "headgate-controller", "", ""},
		"Beside":     {"headgate-system", "platform", "", "system:serviceaccount:headgate-system:platform"},
		"ItsName":    {"team", "headgate-controller", "", "system:serviceaccount:team:headgate-controller"},
	} {
		s := v1alpha1.Sync{}
		s.Namespace, s.Spec.ServiceAccountName = tc.namespace, tc.named
		got, err := account(s, tc.initial, "system:serviceaccount:headgate-system:headgate-controller")
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
