package controller

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/audit"
)

// Ceilings limit what a Sync may ask for. A Sync above one of them does not run: a limit that is lowered in silence would surprise whoever
// wrote it. The zero value limits nothing.
type Ceilings struct {
	MaxActivations, MaxPrunes int    // 0 for no limit
	Instances                 string // a value of Instances; "" for no limit
	Adoption                  string // a value of v1alpha1.Adoption; "" for no limit
	Approvals                 string // ApprovalsNever or ApprovalsOthers; "" for no limit
}

// The ceilings of approvals.
const (
	ApprovalsNever  = "Never"  // nobody approves, except in the repository
	ApprovalsOthers = "Others" // the author of a change does not approve it
)

// The numbers that a Sync has if it leaves the fields out.
const (
	defaultActivations = 100
	defaultPrunes      = 20 // at most
)

// The values of fields, from the one that allows the least.
var (
	adoptions = []string{string(v1alpha1.AdoptRefuse), string(v1alpha1.AdoptIfUnowned), string(v1alpha1.AdoptAll)}
	instances = []string{string(v1alpha1.InstancesHold), string(v1alpha1.InstancesPrune)}
)

// settings returns the ceilings that are set, for the audit log.
func (c Ceilings) settings() []audit.Setting {
	var all []audit.Setting
	for _, one := range []struct {
		flag  string
		value any
	}{
		{"--max-activations", c.MaxActivations}, {"--max-prunes", c.MaxPrunes}, {"--instances", c.Instances}, {"--adoption", c.Adoption}, {"--approvals", c.Approvals},
	} {
		if one.value != "" && one.value != 0 {
			all = append(all, audit.Setting{Field: one.flag, Is: fmt.Sprintf("%#v", one.value)})
		}
	}
	return all
}

// check returns a refusal for a Sync that asks for more.
func (c Ceilings) check(s v1alpha1.Spec) error {
	for _, n := range []struct {
		field, flag string
		value       *int
		initial     int
		most        int
	}{
		{"spec.maxActivations", "--max-activations", s.MaxActivations, defaultActivations, c.MaxActivations},
		{"spec.maxPrunes", "--max-prunes", s.MaxPrunes, defaultPrunes, c.MaxPrunes},
	} {
		switch {
		case n.most == 0:
		case n.value == nil && n.initial > n.most:
			return refuse(v1alpha1.ReasonAboveCeiling, "%s: is missing, and its default of up to %d is above the ceiling %s %d of the controller: set it", n.field, n.initial, n.flag, n.most)
		case n.value != nil && *n.value > n.most:
			return refuse(v1alpha1.ReasonAboveCeiling, "%s: %d is above the ceiling %s %d of the controller", n.field, *n.value, n.flag, n.most)
		}
	}
	for _, w := range []struct {
		field, flag, value, most string
		order                    []string
	}{
		{"spec.instances", "--instances", string(s.Instances), c.Instances, instances},
		{"spec.adoption", "--adoption", string(s.Adoption), c.Adoption, adoptions},
	} {
		if w.most != "" && slices.Index(w.order, w.value) > slices.Index(w.order, w.most) {
			return refuse(v1alpha1.ReasonAboveCeiling, "%s: %s is above the ceiling %s %s of the controller", w.field, w.value, w.flag, strings.ToLower(w.most))
		}
	}
	return c.checkApprovals(s.Approvals)
}

func (c Ceilings) checkApprovals(a v1alpha1.Approvals) error {
	switch {
	case c.Approvals == ApprovalsNever && (a.Comments != v1alpha1.CommentsNever || a.Reviews):
		return refuse(v1alpha1.ReasonAboveCeiling, "spec.approvals.comments: comments and reviews approve nothing here, by the ceiling --approvals never of the controller: set comments: Never")
	case c.Approvals == ApprovalsOthers && a.ByAuthor == v1alpha1.ByAuthorAllow:
		return refuse(v1alpha1.ReasonAboveCeiling, "spec.approvals.byAuthor: Allow is above the ceiling --approvals others of the controller")
	}
	return nil
}
