package plan

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// The codes of commits that are not applied.
const (
	Unverified Code = "Unverified" // the commit or its tag lacks a required signature

	Rewritten Code = "Rewritten" // the commit that was applied last
	NoHistory Code = "NoHistory" // the commit that was applied last
)

// A SourceError refuses a pass over another source than the one in the inventory. The pass would prune the objects of that source.
type SourceError struct {
	Sync     inventory.Sync
	Recorded string
	Found    string
}

func (e *SourceError) Error() string {
	found := e.Found
	if found == "" {
		found = "a source that cannot be identified"
	}
	return fmt.Sprintf("the sync %s applies %s, and this is %s, so nothing is written; give this sync another name, or take the sync over with --take-over='%s' (in a Sync: spec.source.takeOver: %q)",
		e.Sync, e.Recorded, found, e.Recorded, e.Recorded)
}

// A TurnsError refuses a pass over a commit that is applied in turn with another one. Each of them would prune the objects of the
// other.
type TurnsError struct {
	Sync        inventory.Sync
	This, Other string
	From        string // the source of This
	When        string // when one of them was applied last
	Minutes     int    // how long both rest after that
}

func (e *TurnsError) Error() string {
	return fmt.Sprintf("the sync %s applied the commits %.12s and %.12s in turn, the last time at %s, so neither is applied for %d minutes after that; this is %.12s of %s, so another process applies %.12s under the same name: stop one of them, or give it another name; then push a new commit, or wait",
		e.Sync, e.This, e.Other, e.When, e.Minutes, e.This, e.From, e.Other)
}

// restOfTurns is how many minutes two commits rest that were applied in turn. Another commit is applied at once.
const restOfTurns = 60

// checkedSource returns the observation with the results of the checks of its source.
func (o Observed) checkedSource() (_ Observed, err error) {
	if o.takesOver, err = o.checkSource(o.Want.Source); err == nil {
		o.rewritten, err = o.checkHistory()
	}
	return o, err
}

// checkSource refuses a commit of another source, and one that is applied in turn with another one. It reports whether the source
// takes over the inventory from the recorded one.
func (o Observed) checkSource(from render.SourceID) (takesOver bool, err error) {
	was := o.Inventory.Record.Source
	same, err := sameSource(was, from)
	switch {
	case err != nil:
		return false, err
	case !same && (from.Repository == "" || o.Terms.TakeOver != was.String()):
		return false, &SourceError{Sync: o.Inventory.Sync, Recorded: was.String(), Found: from.String()}
	}
	this := cmp.Or(o.Want.Revision, from.Commit)
	other, last := inventory.Turns(o.Inventory.History, this)
	if other == "" || o.Now.Sub(last.Time).Minutes() >= restOfTurns {
		return !same, nil
	}
	return false, &TurnsError{Sync: o.Inventory.Sync, This: this, Other: other, When: last.UTC().Format("2006-01-02T15:04:05Z"), Minutes: restOfTurns, From: from.String()}
}

// sameSource reports whether a source is the recorded one. An inventory without a recorded source accepts any.
func sameSource(was inventory.SourceRecord, from render.SourceID) (bool, error) {
	switch {
	case was.Repository == "":
		return true, nil
	case was.Path != from.Path, from.Repository == "":
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
	return sameRef(was, from)
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

// recorded returns the record of the source to store after the plan was carried out.
func (p Plan) recorded(was inventory.SourceRecord) inventory.SourceRecord {
	from := p.Want.Source
	if p.Stance.In(Ending) || from.Repository == "" {
		return was
	}
	next := was
	next.Repository, next.Path = from.Repository, from.Path
	if p.TakesOver {
		next.Taken++
	}
	if p.TakesOver || was.Ref == "" || from.Ref != render.Detached { // otherwise, the record keeps its branch
		next.Ref, next.Branch = from.Ref, from.Branch
	}
	if p.Rewritten { // otherwise, later commits on top of this one would also be accepted
		return next
	}
	if from.Commit != "" || was.Repository != from.Repository {
		next.Commit = from.Commit
	}
	return next
}

// recordsSource reports whether the inventory must be stored only for the record of its source. A new commit is a reason only if
// the next one must descend from it. To identify the repository, any older commit of the same history will do.
func (p Plan) recordsSource(have inventory.Inventory) bool {
	was, next := have.Record.Source, p.recorded(have.Record.Source)
	moved := was.Repository != next.Repository || was.Path != next.Path || was.Ref != next.Ref || was.Branch != next.Branch || was.Taken != next.Taken
	return have.ResourceVersion != "" && (moved || was.Commit != next.Commit && (was.Commit == "" || p.Forwards))
}

// History is the guard for changes by a rewritten branch. Package plan names it because its holds decide which commit the inventory
// records.
const History GuardName = "history"

// Rewritten returns why the commit may not follow the last applied one; no reason if it descends from that one, or if any commit
// may follow.
func (o Observed) Rewritten() Reason { return o.rewritten }

// checkHistory computes the result of Rewritten. It returns an error if the history cannot be read, because then it is not known
// whether the branch was rewritten. If a person has taken over another source, the histories differ and are not compared.
func (o Observed) checkHistory() (Reason, error) {
	was, from := o.Inventory.Record.Source, o.Want.Source
	switch {
	case !o.Terms.FastForward:
		return Reason{}, nil
	case was.Commit == "", was.Commit == from.Commit, o.takesOver:
		return Reason{}, nil
	case from.Descends == nil:
		return NoHistory.With(was.Commit), nil
	}
	descends, err := from.Descends(was.Commit)
	if err != nil {
		return Reason{}, fmt.Errorf("it is not known whether this commit descends from %.12s, which was applied last: %w", was.Commit, err)
	}
	if descends {
		return Reason{}, nil
	}
	return Rewritten.With(was.Commit), nil
}

// holdsHistory reports whether a step is held because the branch was rewritten.
func (p *drafted) holdsHistory() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.IsHeldBy(History) })
}

// noteRewritten adds a finding about a rewritten branch if no step is held for it, because nothing else would report it.
func (p *drafted) noteRewritten(seen Observed) {
	if !p.Rewritten || p.holdsHistory() {
		return
	}
	p.Notes = append(p.Notes, manifest.Finding{
		Rule: "history", Severity: manifest.Warning,
		Message: fmt.Sprintf("the branch was rewritten: this commit does not descend from %.12s, which was applied last", seen.Inventory.Record.Source.Commit),
		Fix:     "push a commit that descends from that, or approve the next change that is held for it",
	})
}
