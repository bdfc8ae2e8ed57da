package guard

import (
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// signatures asks to look at signatures of packages that the base demands and the commit does not.
func signatures(c draft.Case) []plan.Ruling {
	var all []plan.Ruling
	for _, f := range c.Want.Unsigned(baseOf(c)) {
		r := looks(reason.DropsSignature.With(f.Message))
		r.At = []manifest.Origin{f.Origin}
		all = append(all, r)
	}
	return all
}

// unconfirmed asks to look at schemas that only the commit keeps, because no registry can be read.
func unconfirmed(c draft.Case) []plan.Ruling {
	var all []plan.Ruling
	for _, claim := range c.Want.Claims(baseOf(c)) {
		if n := len(claim.Adds); n > 0 {
			r := looks(reason.SchemasUnconfirmed.With(claim.Package.Source))
			r.Amount = approval.Count(n)
			all = append(all, r)
		}
	}
	return all
}

// controls asks to look at upgrades of packages whose active revision has not taken over all objects since an earlier upgrade.
// Crossplane may not finish the next upgrade, either.
func controls(c draft.Case) []plan.Ruling {
	var all []plan.Ruling
	for _, b := range c.Bumps {
		if b.By == (manifest.ID{}) || !c.Asks() {
			continue
		}
		r := plan.Ruling{Of: b.By, At: []manifest.Origin{b.Origin}}
		switch a, is := question.Get(c.Seen.Known(), question.Controls{Of: b.By}); {
		case is.Err != nil:
			r.Reason = reason.ControlUnknown.With(b.By.Name, reason.Of(is.Err))
		case a.Count > 0:
			r.Severity, r.Amount = plan.Look, approval.Count(int(a.Count))
			r.Reason = reason.ControlledByAnother.With(b.By.Name, a.Count, a.Example)
		default:
			continue
		}
		all = append(all, r)
	}
	return all
}
