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
	Unverified Code = "Unverified" // the commit or its tag lacks a signature that it needs

	Rewritten Code = "Rewritten" // the commit that was applied last
	NoHistory Code = "NoHistory" // the commit that was applied last
)

// TakeAny takes an inventory over from whatever source it has.
const TakeAny = "*"

// A SourceError refuses a pass from another source than the one that the inventory records. The pass
// would prune what that source applied.
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

// checkSource refuses a commit of another source. The first source that an inventory sees is its own.
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
		is, err := from.Contains(was.Commit) // a mirror, or the repository moved
		if is || err != nil {
			return err
		}
	}
	return &SourceError{Sync: o.Inventory.Sync, Recorded: was.String(), Found: from.String()}
}

// recorded is the record of the source, once the plan is carried out.
func (p Plan) recorded(was inventory.SourceRecord) inventory.SourceRecord {
	from := p.Want.Source
	if p.Ends != NoEnding || from.Repository == "" {
		return was
	}
	next := was
	next.Repository, next.Path = from.Repository, from.Path
	if p.rewritten { // else what follows on this commit would pass as well
		return next
	}
	if from.Commit != "" || was.Repository != from.Repository {
		next.Commit = from.Commit
	}
	return next
}

// recordsSource reports whether the inventory has to be stored for the record of its source alone. A
// new commit is a reason only if the next one has to descend from it: an older one of the same history identifies the
// repository as well.
func (p Plan) recordsSource(have inventory.Inventory) bool {
	was, next := have.Record.Source, p.recorded(have.Record.Source)
	moved := was.Repository != next.Repository || was.Path != next.Path
	return have.ResourceVersion != "" && (moved || was.Commit != next.Commit && (was.Commit == "" || p.forwards))
}

// History is the guard for what a rewritten branch changes. Package plan names it because its holds decide which commit
// the inventory records.
const History GuardName = "history"

// Rewritten returns why the commit may not follow the one that was applied last. There is no reason if it descends from
// that, or if any commit may follow.
func (o Observed) Rewritten() Reason { return o.rewritten }

// checkHistory returns what Rewritten returns. It is an error if the history cannot be read: neither is the branch known to be
// rewritten then, nor is it known not to be. Where a person takes another source over, its history is another one, too.
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

// noteRewritten adds a finding about a rewritten branch of which no step is held, since nothing else reports it.
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
