package guard

import (
	"slices"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/schema"
)

// The codes of the guard schema on merges.
const (
	MergeBreaks         reason.Code = "MergeBreaks"         // the definition whose schema breaks, and may be in use
	MergeUnconverted    reason.Code = "MergeUnconverted"    // the definition whose objects nothing converts
	MergeStorage        reason.Code = "MergeStorage"        // what may make stored objects unreadable
	MergeBreaksUnused   reason.Code = "MergeBreaksUnused"   // the definition whose schema breaks, and that nothing uses
	MergeBreaksNoObject reason.Code = "MergeBreaksNoObject" // the definition whose schema breaks, and that all objects fit
	MergeBreaksStatus   reason.Code = "MergeBreaksStatus"   // the definition whose status breaks, and that nothing in the commit uses
	MergePattern        reason.Code = "MergePattern"        // the definition with a pattern that may refuse more
	MergeDefault        reason.Code = "MergeDefault"        // the definition whose defaults change
	MergeSharing        reason.Code = "MergeSharing"        // the definition with lists or maps that merge in another way
	MergeDeprecates     reason.Code = "MergeDeprecates"     // the definition with a version that becomes deprecated
	MergeMovesStorage   reason.Code = "MergeMovesStorage"   // the definition whose objects are stored in another version
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
func isUnused(s plan.Step, c draft.Case) bool { return c.Asks() && isNoted(s, UnusedInCommit) }

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
		return blocks(howBroken(broken).With(s.ID.Name))
	case !applied(s), s.Action != plan.Update, crossplane.DeclaresKind(s.ID) && !s.Serves:
		return allowed
	case len(broken) > 0:
		return ofBroken(s, by, broken, unused)
	case gives(s, WebhookUnseen, VersionsUnseen):
		return claiming(s, by, MergeStorage.With(s.ID.Name))
	}
	return ofAltered(s)
}

// ofBroken rules on a breaking change of a served kind.
func ofBroken(s, by plan.Step, broken []schema.Change, unused bool) plan.Ruling {
	onlyStatus := !slices.ContainsFunc(broken, func(c schema.Change) bool { return !c.InStatus() })
	switch {
	case onlyStatus && isNoted(s, UnusedInCommit):
		return looks(MergeBreaksStatus.With(s.ID.Name))
	case unused:
		return looks(MergeBreaksUnused.With(s.ID.Name))
	case gives(s, BreaksNoObject) && !gives(s, WebhookUnseen, VersionsUnseen):
		return looks(MergeBreaksNoObject.With(s.ID.Name))
	}
	return claiming(s, by, howBroken(broken).With(s.ID.Name))
}

// howBroken returns the code for breaking changes: of a schema, or only because nothing converts objects between versions.
func howBroken(broken []schema.Change) reason.Code {
	if slices.ContainsFunc(broken, func(c schema.Change) bool { return !BetweenVersions(c) }) {
		return MergeBreaks
	}
	return MergeUnconverted
}

// claiming blocks the merge until a person approves what a cluster asks about the schema.
func claiming(s, by plan.Step, why reason.Reason) plan.Ruling {
	r := blocks(why)
	if by.ID == s.ID && s.Action != plan.Update { // no cluster asks
		return r
	}
	r.Claims = []approval.Ask{by.ClaimAs(Schema, Breaks, plan.Update)}
	if gives(s, WebhookUnseen, VersionsUnseen) || Has(by.Why(), WebhookUnseen, VersionsUnseen) {
		r.Claims = append(r.Claims, by.ClaimAs(Schema, Storage, plan.Update))
	}
	return r
}

// alterations are the changes that break nothing and that a person should see, the most important first.
var alterations = []struct {
	is   func(schema.Change) bool
	code reason.Code
}{
	{ofRule(schema.Undecided), MergePattern},
	{ofRule(schema.Default), MergeDefault},
	{sharesOtherwise, MergeSharing},
	{ofRule(schema.Deprecated), MergeDeprecates},
	{ofRule(schema.Storage), MergeMovesStorage},
}

func ofRule(rule schema.Rule) func(schema.Change) bool {
	return func(c schema.Change) bool { return c.Rule == rule }
}

// ofAltered asks to look at a change that breaks nothing.
func ofAltered(s plan.Step) plan.Ruling {
	changes := slices.DeleteFunc(slices.Clone(s.Schema().Changes), func(c schema.Change) bool { return c.Breaking })
	for _, a := range alterations {
		if slices.ContainsFunc(changes, a.is) {
			return looks(a.code.With(s.ID.Name))
		}
	}
	return allowed
}

// ChangesBehaviour reports whether a change that breaks nothing changes what the API server does with an object.
func ChangesBehaviour(c schema.Change) bool {
	return c.Rule == schema.Default || c.Rule == schema.Undecided || sharesOtherwise(c)
}

// BetweenVersions reports whether a change concerns two versions between which nothing converts objects.
func BetweenVersions(c schema.Change) bool {
	switch c.Rule {
	case schema.Unconverted, schema.Unshared:
		return true
	case schema.Storage:
		return c.Breaking
	}
	return false
}

// sharesOtherwise reports whether a change makes server-side apply replace a list or a map that it merged before.
func sharesOtherwise(c schema.Change) bool {
	switch c.Rule {
	case "x-kubernetes-list-type":
		return c.From == `"map"` || c.From == `"set"`
	case "x-kubernetes-list-map-keys":
		return c.From != "" && c.To != ""
	case "x-kubernetes-map-type":
		return c.To == `"atomic"`
	}
	return false
}
