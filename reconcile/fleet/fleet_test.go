//test:package raced
package fleet

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"

	"github.com/google/go-cmp/cmp"
)

// The audit log shows what people decide in a Sync: that it is suspended, by whom and why, and each setting that lets it do more or less
// than before. A change that decides nothing has no line.
func TestDecided(t *testing.T) {
	shop := func(edit ...func(*v1alpha1.Spec)) *v1alpha1.Sync {
		s := &v1alpha1.Sync{}
		s.Namespace, s.Name, s.Spec.Source.Repo = "team", "shop", "https://git.example.org/shop"
		for _, one := range edit {
			one(&s.Spec)
		}
		return s
	}
	suspended := func(s *v1alpha1.Spec) {
		s.Suspend, s.Suspension = true, &v1alpha1.Suspension{By: "ann", Why: "migration"}
	}
	took := func(s *v1alpha1.Spec) { s.Source.TakeOver = "https://git.example.org/old" }
	prunes := func(s *v1alpha1.Spec) { s.Instances = v1alpha1.InstancesPrune }
	holds := func(s *v1alpha1.Spec) { s.Instances = v1alpha1.InstancesHold }
	repo := audit.Setting{Field: "spec.source.repo", Is: `"https://git.example.org/shop"`}
	configured := func(all ...audit.Setting) audit.Entry {
		return audit.Entry{Event: audit.Configured, Sync: "team/shop", Settings: all}
	}
	for name, tc := range map[string]struct {
		before, now *v1alpha1.Sync
		want        []audit.Entry
	}{
		"First":       {nil, shop(), []audit.Entry{configured(repo)}},
		"FirstWith":   {nil, shop(prunes), []audit.Entry{configured(audit.Setting{Field: "spec.instances", Is: `"Prune"`}, repo)}},
		"TakeOver":    {shop(), shop(took), []audit.Entry{configured(audit.Setting{Field: "spec.source.takeOver", Is: `"https://git.example.org/old"`})}},
		"TakenBack":   {shop(took), shop(), []audit.Entry{configured(audit.Setting{Field: "spec.source.takeOver", Was: `"https://git.example.org/old"`})}},
		"Instances":   {shop(holds), shop(prunes), []audit.Entry{configured(audit.Setting{Field: "spec.instances", Is: `"Prune"`})}},
		"TheDefault":  {shop(), shop(holds), nil},
		"Adoption":    {shop(func(s *v1alpha1.Spec) { s.Adoption = v1alpha1.AdoptRefuse }), shop(func(s *v1alpha1.Spec) { s.Adoption = v1alpha1.AdoptAll }), []audit.Entry{configured(audit.Setting{Field: "spec.adoption", Was: `"Refuse"`, Is: `"Adopt"`})}},
		"MaxPrunes":   {shop(), shop(func(s *v1alpha1.Spec) { s.MaxPrunes = new(500) }), []audit.Entry{configured(audit.Setting{Field: "spec.maxPrunes", Is: "500"})}},
		"Approvers":   {shop(), shop(func(s *v1alpha1.Spec) { s.Approvals.ByAuthor = v1alpha1.ByAuthorAllow }), []audit.Entry{configured(audit.Setting{Field: "spec.approvals", Is: `{"trailers":"Never","byAuthor":"Allow"}`})}},
		"Identity":    {shop(), shop(func(s *v1alpha1.Spec) { s.ServiceAccountName = "admin" }), []audit.Entry{configured(audit.Setting{Field: "spec.serviceAccountName", Is: `"admin"`})}},
		"Interval":    {shop(), shop(func(s *v1alpha1.Spec) { s.Interval = "7m" }), nil},
		"Suspended":   {shop(), shop(suspended), []audit.Entry{{Event: audit.Suspended, Sync: "team/shop", By: "ann", Reason: "migration"}}},
		"WithoutName": {shop(), shop(func(s *v1alpha1.Spec) { s.Suspend = true }), []audit.Entry{{Event: audit.Suspended, Sync: "team/shop"}}},
		"Resumed":     {shop(suspended), shop(), []audit.Entry{{Event: audit.Resumed, Sync: "team/shop"}}},
		"Both":        {shop(suspended), shop(took), []audit.Entry{{Event: audit.Resumed, Sync: "team/shop"}, configured(audit.Setting{Field: "spec.source.takeOver", Is: `"https://git.example.org/old"`})}},
		"Same":        {shop(took), shop(took), nil},
	} {
		if diff := cmp.Diff(tc.want, Decided(tc.before, tc.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
