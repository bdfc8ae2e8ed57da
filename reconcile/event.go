package reconcile

import (
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/report"
)

// An Event is something that a Loop or a PreviewLoop did.
type Event struct {
	Kind     EventKind
	Because  Because         // of a pass
	Revision string          // the commit; "" if not known
	By       string          // of Superseded: the newer revision
	Pull     int             // number of a pull request
	Report   report.Report   // of Passed and Untouched
	Preview  report.Combined // of Previewed
	Took     time.Duration   // of Passed, Stopped and Previewed: the duration; of Waiting: the time so far
	For      string          // of Waiting: what the pass is waiting for; of IsSuspended: why it writes nothing; of WatchFailed and Watched: what
	Next     time.Duration   // of Passed: the time until the next pass, unless something triggers it earlier
	Err      error
}

// An EventKind is the kind of an event. Its value is the text for logs.
type EventKind string

// The kinds of events.
const (
	Began         EventKind = "pass begins"
	NewCommit     EventKind = "new commit"
	Waiting       EventKind = "pass waits" // for something that takes a long time
	Overtaken     EventKind = "commit superseded"
	Recalled      EventKind = "correcting drift from the last applied commit" // because the newest commit must not be applied
	Meanwhile     EventKind = "another process applied a commit"              // so the pass reads the ref again
	Passed        EventKind = "pass"                                          // a pass ended, with or without an error
	Untouched     EventKind = "commit changes nothing"                        // of the sync: it has the result of the last pass, and needs none
	Stopped       EventKind = "pass interrupted"                              // by the end of the loop, or by something newer
	PublishFailed EventKind = "cannot publish"
	WatchFailed   EventKind = "cannot watch"            // the next pass finds drift of that
	Watched       EventKind = "watches again"           // what it could not watch
	WebhookFailed EventKind = "cannot receive webhooks" // the next poll finds pushes
	SourceState   EventKind = "source"                  // whether the repository or the source of Flux can be read has changed: Err is why not
	IsSuspended   EventKind = "suspended"
	Unheard       EventKind = "no comment approves" // the forge does not support approvals by comment as the Sync requires

	Previewed   EventKind = "preview"                  // a preview of a pull request ended, with or without an error
	Forgotten   EventKind = "pull request is not open" // any more
	PullsFailed EventKind = "cannot preview all pull requests"
)

// A Because is the reason for a pass.
type Because = engine.Trigger

// The reasons for a pass.
const (
	Start  = engine.Start
	Time   = engine.Time
	Commit = engine.Commit
	Moved  = engine.Moved
	Again  = engine.Again
	Answer = engine.Answer
	Needed = engine.Needed
)
