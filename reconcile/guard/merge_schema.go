package guard

import (
	"cmp"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"
)

// mergesSchema blocks the merge of an update that breaks a served kind which may be in use, and asks to look at others.
func mergesSchema(s plan.Step, c draft.Case) plan.Ruling {
	unused := isUnused(s, c) && (unexplained(s) || gives(s, reason.NoObjects))
	return ofSchema(s, s, unused)
}

// installsSchema does the same for what Crossplane updates with a package. Guards count objects for the step of the package, so the
// reason of the change itself must state that there are none.
func installsSchema(s plan.Step, c draft.Case) plan.Ruling {
	return ofSchema(s, c.Installer(s), isUnused(s, c) && gives(s, reason.NoObjects))
}

// isUnused reports whether the commit uses a kind nowhere, and a cluster can be asked about it.
func isUnused(s plan.Step, c draft.Case) bool { return c.Asks() && isNoted(s, reason.UnusedInCommit) }

// unexplained reports whether no guard noted anything: guards ask a cluster for the number of objects, and note nothing if there are
// none.
func unexplained(s plan.Step) bool {
	_, why := s.Explained()
	return why.None()
}

// ofSchema rules on the change of a schema by a step. by is the step on which a cluster's guards rule.
func ofSchema(s, by plan.Step, unused bool) plan.Ruling {
	broken := s.Schema().Breaking()
	switch {
	case s.Action == plan.Hold && s.Serves && len(broken) > 0:
		return held(howBroken(broken).With(s.ID.Name))
	case !applied(s), s.Action != plan.Update, crossplane.DeclaresKind(s.ID) && !s.Serves:
		return allowed
	case len(broken) > 0:
		return ofBroken(s, by, broken, unused)
	case gives(s, reason.WebhookUnseen, reason.VersionsUnseen):
		return claiming(s, by, reason.MergeStorage.With(s.ID.Name))
	}
	return ofAltered(s)
}

// ofBroken rules on a breaking change of a served kind.
func ofBroken(s, by plan.Step, broken []schema.Change, unused bool) plan.Ruling {
	onlyStatus := !slices.ContainsFunc(broken, func(c schema.Change) bool { return !c.InStatus() })
	switch {
	case onlyStatus && isNoted(s, reason.UnusedInCommit):
		return looks(reason.MergeBreaksStatus.With(s.ID.Name))
	case unused:
		return looks(reason.MergeBreaksUnused.With(s.ID.Name))
	case gives(s, reason.BreaksNoObject) && !gives(s, reason.WebhookUnseen, reason.VersionsUnseen):
		return looks(reason.MergeBreaksNoObject.With(s.ID.Name))
	}
	return claiming(s, by, howBroken(broken).With(s.ID.Name))
}

// howBroken returns the code for breaking changes: of a schema, or only because nothing converts objects between versions.
func howBroken(broken []schema.Change) reason.Code {
	if slices.ContainsFunc(broken, func(c schema.Change) bool { return !c.BetweenVersions() }) {
		return reason.MergeBreaks
	}
	return reason.MergeUnconverted
}

// claiming blocks the merge until a person approves what a cluster asks about the schema.
func claiming(s, by plan.Step, why reason.Reason) plan.Ruling {
	r := held(why)
	if by.ID == s.ID && s.Action != plan.Update { // no cluster asks
		return r
	}
	r.Claims = []approval.Ask{by.ClaimAs(Schema, approval.Breaks, plan.Update)}
	if gives(s, reason.WebhookUnseen, reason.VersionsUnseen) || by.Why().Has(reason.WebhookUnseen, reason.VersionsUnseen) {
		r.Claims = append(r.Claims, by.ClaimAs(Schema, approval.Storage, plan.Update))
	}
	return r
}

// alterations are the changes that break nothing and that a person should see, the most important first.
var alterations = []struct {
	is   func(schema.Change) bool
	code reason.Code
}{
	{ofRule(schema.Undecided), reason.MergePattern},
	{ofRule(schema.Default), reason.MergeDefault},
	{schema.Change.MergesOtherwise, reason.MergeSharing},
	{ofRule(schema.Deprecated), reason.MergeDeprecates},
	{ofRule(schema.Storage), reason.MergeMovesStorage},
}

func ofRule(rule schema.Rule) func(schema.Change) bool {
	return func(c schema.Change) bool { return c.Rule == rule }
}

// ofAltered asks to look at a change that breaks nothing.
func ofAltered(s plan.Step) plan.Ruling {
	changes := slices.DeleteFunc(slices.Clone(s.Schema().Changes), func(c schema.Change) bool { return c.Breaking })
	for _, a := range alterations {
		if i := slices.IndexFunc(changes, a.is); i >= 0 {
			return looks(a.code.With(s.ID.Name, cmp.Or(changes[i].Path, changes[i].Version, strings.Trim(changes[i].To, `"`))))
		}
	}
	return allowed
}
