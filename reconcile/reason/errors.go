package reason

import (
	"errors"
	"fmt"

	"headgate.dev/headgate/reconcile/inventory"
)

// ErrMoved means that the inventory has changed since the plan was made, so that a new plan is needed.
var ErrMoved = errors.New("the inventory changed since the plan was made")

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

// An AppliedMeanwhileError refuses a pass over a commit that may be older than the last applied one.
type AppliedMeanwhileError struct{ Commit string } // the last applied one

func (e *AppliedMeanwhileError) Error() string {
	return fmt.Sprintf("another process applied commit %.12s after this one read the ref, so this one applies nothing before it has read the ref again", e.Commit)
}

// Code returns the code of the error.
func (e *AppliedMeanwhileError) Code() Code { return AppliedMeanwhile }

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

// ErrUnserved matches, with errors.Is, the error of a step whose kind nothing serves or will serve.
var ErrUnserved = errors.New("no API serves the kind")
