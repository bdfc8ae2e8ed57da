package draft

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// restOfTurns is how many minutes two commits rest that were applied in turn. Another commit is applied at once.
const restOfTurns = 60

// checkedSource returns the observation with the results of the checks of its source.
func checkedSource(o facts.Observed) (_ facts.Observed, err error) {
	if o.TakesOver, err = checkSource(o, o.Want.Source); err == nil {
		o.Rewritten, err = checkHistory(o)
	}
	return o, err
}

// checkSource refuses a commit that may be older than the last applied one, one of another source, and one that is applied in turn with
// another one. It reports whether the source takes over the inventory from the recorded one.
func checkSource(o facts.Observed, from render.SourceID) (takesOver bool, err error) {
	was := o.Inventory.Record.Source
	if was.MayBeNewer(from.Commit, o.AppliedBefore) { // first: a clone that lacks the other commit cannot tell whether its repository has it
		return false, &reason.AppliedMeanwhileError{Commit: was.Commit}
	}
	same, err := sameSource(was, from, o.Terms.Object)
	switch {
	case err != nil:
		return false, err
	case !same && (from.Repository == "" || o.Terms.TakeOver != was.String()):
		return false, &reason.SourceError{Sync: o.Inventory.Sync, Recorded: was.String(), Found: from.String()}
	}
	this := cmp.Or(o.Want.Revision, from.Commit)
	other, last := inventory.Turns(o.Inventory.History, this)
	if other == "" || sameObject(was, o.Terms.Object) || o.Now.Sub(last.Time).Minutes() >= restOfTurns {
		return !same, nil
	}
	return false, &reason.TurnsError{Sync: o.Inventory.Sync, This: this, Other: other, When: last.UTC().Format("2006-01-02T15:04:05Z"), Minutes: restOfTurns, From: from.String()}
}

// sameSource reports whether a source is the recorded one. An inventory without a recorded source accepts any. Another path or ref of the
// repository is the same source for the Sync object that was recorded, because a person changed that object.
func sameSource(was inventory.SourceRecord, from render.SourceID, object string) (bool, error) {
	switch {
	case was.Repository == "":
		return true, nil
	case from.Repository == "", was.Path != from.Path && !sameObject(was, object):
		return false, nil
	case was.Repository == from.Repository:
	case was.Commit == "" || from.Contains == nil:
		return false, nil
	default:
		is, err := from.Contains(was.Commit) // a mirror, or the repository has moved
		if !is || err != nil {
			return false, err
		}
	}
	if sameObject(was, object) {
		return true, nil
	}
	return sameRef(was, from)
}

// sameObject reports whether a Sync object made the last pass, too. Then a person goes back and forth between commits, and not two processes.
func sameObject(was inventory.SourceRecord, object string) bool {
	return object != "" && was.Object == object
}

// sameRef reports whether a source follows the recorded ref. A record of an older format has none, and accepts any. A commit that no
// branch names is compared by its history.
func sameRef(was inventory.SourceRecord, from render.SourceID) (bool, error) {
	switch {
	case was.Ref == "":
		return true, nil
	case was.Ref == render.Detached, from.Ref == render.Detached:
		if was.Commit == "" || from.Related == nil {
			return false, nil
		}
		return from.Related(was.Commit)
	}
	return was.Ref == from.Ref || was.Branch != "" && was.Branch == from.Branch, nil
}

// History is the guard for changes by a rewritten branch. Package plan names it because its holds decide which commit the inventory
// records.
const History plan.GuardName = "history"

// checkHistory returns why the commit may not follow the last applied one. It returns an error if the history cannot be read,
// because then it is not known whether the branch was rewritten. If a person has taken over another source, the histories differ and
// are not compared.
func checkHistory(o facts.Observed) (reason.Reason, error) {
	was, from := o.Inventory.Record.Source, o.Want.Source
	switch {
	case !o.Terms.FastForward, was.Commit == "", was.Commit == from.Commit, o.TakesOver:
		return reason.Reason{}, nil
	case from.Descends == nil:
		return reason.NoHistory.With(was.Commit), nil
	}
	descends, err := from.Descends(was.Commit)
	if err != nil {
		return reason.Reason{}, fmt.Errorf("it is not known whether this commit descends from %.12s, which was applied last: %w", was.Commit, err)
	}
	if descends {
		return reason.Reason{}, nil
	}
	return reason.Rewritten.With(was.Commit), nil
}

// holdsHistory reports whether a step is held because the branch was rewritten.
func (p *drafted) holdsHistory() bool {
	return slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.IsHeldBy(History) })
}

// noteRewritten adds a finding about a rewritten branch if no step is held for it, because nothing else would report it.
func (p *drafted) noteRewritten(seen facts.Ground) {
	if !p.Rewritten || p.holdsHistory() {
		return
	}
	p.Notes = append(p.Notes, manifest.Finding{
		Rule: "history", Severity: manifest.Warning, About: manifest.About{},
		Message: fmt.Sprintf("the branch was rewritten: this commit does not descend from %.12s, which was applied last", seen.Inventory.Record.Source.Commit),
		Fix:     "push a commit that descends from that, or approve the next change that is held for it",
	})
}
