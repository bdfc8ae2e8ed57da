package plan

import (
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
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
	case was.Path == from.Path && from.Repository != "" && was.Commit != "" && from.Contains != nil && from.Contains(was.Commit):
		return nil // a mirror, or the repository moved
	case from.Repository != "" && (o.Terms.TakeOver == TakeAny || o.Terms.TakeOver == was.String()):
		return nil
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
	if from.Commit != "" || was.Repository != from.Repository {
		next.Commit = from.Commit
	}
	return next
}

// recordsSource reports whether the inventory has to be stored for the record of its source alone. A
// new commit is no reason: an older one of the same history identifies the repository as well.
func (p Plan) recordsSource(have inventory.Inventory) bool {
	was, next := have.Record.Source, p.recorded(have.Record.Source)
	return have.ResourceVersion != "" && (was.Repository != next.Repository || was.Path != next.Path || was.Commit == "" && next.Commit != "")
}
