package plan

import (
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

// TakeAny takes over an inventory from any source.
const TakeAny = "*"

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
	return fmt.Sprintf("the sync %s applies %s, and this is %s, so nothing is written; give this sync another name, or take the sync over with --take-over (in a Sync: spec.source.takeOver: %q)",
		e.Sync, e.Recorded, found, e.Recorded)
}

// checkSource refuses a commit of another source. An inventory without a recorded source accepts any.
func (o Observed) checkSource(from render.SourceID) error {
	was := o.Inventory.Record.Source
	switch {
	case o.Offline, o.Looks, o.Ends != NoEnding: // nothing is written, or nothing is read from a source
		return nil
	case was.Repository == "", was.Repository == from.Repository && was.Path == from.Path:
		return nil
	case from.Repository != "" && (o.Terms.TakeOver == TakeAny || o.Terms.TakeOver == was.String()):
		return nil
	case was.Path == from.Path && from.Repository != "" && was.Commit != "" && from.Contains != nil:
		is, err := from.Contains(was.Commit) // a mirror, or the repository has moved
		if is || err != nil {
			return err
		}
	}
	return &SourceError{Sync: o.Inventory.Sync, Recorded: was.String(), Found: from.String()}
}

// recorded returns the record of the source to store after the plan was carried out.
func (p Plan) recorded(was inventory.SourceRecord) inventory.SourceRecord {
	from := p.Want.Source
	if p.Ends != NoEnding || from.Repository == "" {
		return was
	}
	next := was
	next.Repository, next.Path = from.Repository, from.Path
	if p.rewritten { // otherwise, later commits on top of this one would also be accepted
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
	moved := was.Repository != next.Repository || was.Path != next.Path
	return have.ResourceVersion != "" && (moved || was.Commit != next.Commit && (was.Commit == "" || p.forwards))
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
	moved := was.Repository != from.Repository || was.Path != from.Path
	accepted := moved && (o.Terms.TakeOver == TakeAny || was.String() == o.Terms.TakeOver)
	switch {
	case !o.Terms.FastForward, o.Offline, o.Looks, o.Ends != NoEnding:
		return Reason{}, nil
	case was.Commit == "", was.Commit == from.Commit, accepted:
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
func (p *Plan) holdsHistory() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Action == Hold && s.Guard == History })
}

// noteRewritten adds a finding about a rewritten branch if no step is held for it, because nothing else would report it.
func (p *Plan) noteRewritten(seen Observed) {
	if !p.rewritten || p.holdsHistory() {
		return
	}
	p.Notes = append(p.Notes, manifest.Finding{
		Rule: "history", Severity: manifest.Warning,
		Message: fmt.Sprintf("the branch was rewritten: this commit does not descend from %.12s, which was applied last", seen.Inventory.Record.Source.Commit),
		Fix:     "push a commit that descends from that, or approve the next change that is held for it",
	})
}
