// Package engine decides when the passes of a sync begin, runs the passes of all syncs of a process on a number of workers, and says how
// old an answer may be that they share. It knows nothing of plans and clusters; package reconcile makes the passes.
//
//	event ─Due─► when, why ─Queue─► a run works ─Pause─► it waits, and others work
package engine

import "time"

// A Trigger is why a pass begins. Its value is the text for logs.
type Trigger string

// The reasons for a pass.
const (
	Start  Trigger = "start"
	Time   Trigger = "interval"
	Commit Trigger = "commit"
	Moved  Trigger = "drift"
	Again  Trigger = "retry"
	Answer Trigger = "approval"
	Needed Trigger = "another sync" // another sync of this process waits for the newest commit, or hands over objects
)

// Priority returns the priority of a pass that begins for a reason.
func (r Trigger) Priority() Priority {
	switch r {
	case Start, Commit, Answer:
		return Asked
	case Moved, Needed:
		return Prompt
	case Time, Again:
	}
	return Regular
}

// A State is what decides when the next pass of a sync begins. The zero value is that of a sync without a pass.
type State struct {
	At       time.Time // of the next pass, unless something makes it begin earlier
	Why      Trigger
	Regular  time.Time // At, if no drift made it earlier
	Quiet    time.Time // no pass because of drift begins before
	Prompts  int       // passes in a row because of drift
	Failures int       // failed passes in a row
	Refusals int       // passes in a row that left refused objects, since the last commit
}

// An Event is something that may begin a pass.
type Event struct {
	Kind    EventKind
	Drifted bool // objects changed since a pass checked them
	Fresh   bool // the newest commit is not that of the last pass; of Passed: and a push announced it during the pass
	Pushed  bool // of Newest: a push announced it, or another sync asked for it
	Needed  bool // another sync waits for a pass

	// Of Passed and Stopped:

	Why     Trigger       // of the pass that ended; of Stopped: or of the one that it made way for
	Failed  bool          // for a reason that may be gone in the next pass. A commit that cannot be applied is no failure
	Refused bool          // the API server refused objects, or they were not ready in time, perhaps for a reason outside of the commit: their CRD was being deleted
	Soon    time.Duration // the pass asks for the next one after this time, if that is less than the interval
}

// An EventKind is the kind of an Event.
type EventKind int

// The kinds of events.
const (
	Begins   EventKind = iota // the loop begins
	Timer                     // At is reached
	Drift                     // the watch reported objects
	Newest                    // a look found the newest commit
	Approved                  // a person may have approved what is held
	Passed                    // a pass ended
	Stopped                   // a pass was interrupted
)

// Times are the settings that Due depends on.
type Times struct {
	Interval time.Duration
	Jitter   float64 // changes intervals and pauses by this share, up to a tenth, so that many loops do not act at the same time
}

const (
	firstPause   = 5 * time.Second // after an error
	mostPause    = 5 * time.Minute
	catchUp      = 500 * time.Millisecond // how long the watcher may need to learn what a pass has written
	freePrompts  = 3                      // passes in a row because of drift before they are slowed down
	afterRefusal = time.Minute
)

// A Schedule is the state after an event, and whether a pass begins now, for the reason Why.
type Schedule struct {
	State

	Run bool
}

// Due decides when the next pass begins, and why:
//
//	event     if                                                  the next pass
//	Begins                                                        at once: start
//	Timer     it is because of drift, and nothing differs now     after the interval, as before the drift
//	Timer     otherwise                                           begins
//	Drift     nothing differs, or the next pass begins earlier    stays
//	Drift     otherwise                                           at once, or after the pause of a fight or a failure: drift
//	Newest    the last pass was over it, and no sync needs one    stays
//	Newest    passes fail, and nobody pushed                      stays: polls do not shorten a back-off
//	Newest    it is another commit                                begins: commit
//	Newest    another sync needs a pass                           begins: another sync
//	Approved                                                      begins: approval
//	Stopped                                                       at once: for what it made way for, or for the same reason
//	Passed    a push announced another commit meanwhile           at once: commit
//	Passed    another sync needs a pass, and this one succeeded   at once: another sync
//	Passed    it failed                                           after a pause that doubles with every failure: retry
//	Passed    objects differ that it did not check                after a moment, or the pause of a fight: drift
//	Passed    objects were refused, or not ready in time          after a minute that doubles with every such pass: retry
//	Passed    otherwise, also with holds                          after the interval, or sooner if the pass asks for that: interval
//
// No pause is longer than the interval, except the one after failures. That of refused objects begins anew with every commit.
//
// The pause of a fight begins with the third pass in a row because of drift: another writer changes the objects as often as Headgate
// does. It doubles with every further one. A suspended sync has no loop, and so no events. A commit that is superseded is a Newest.
func Due(s State, e Event, now time.Time, t Times) Schedule {
	switch e.Kind {
	case Begins, Stopped:
		return s.next(now, orStart(e.Why))
	case Timer:
		if s.Why == Moved && !e.Drifted { // the watch has learned that it was our own write
			return s.next(s.Regular, Time)
		}
		return Schedule{s, true}
	case Drift:
		at := later(now, s.Quiet)
		if !e.Drifted || !at.Before(s.At) {
			return Schedule{s, false}
		}
		return s.next(at, Moved)
	case Newest:
		return s.newest(e, now)
	case Approved:
		s.At, s.Why = now, Answer
		return Schedule{s, true}
	case Passed:
	}
	s = s.counted(e, now, t)
	switch again := later(now.Add(catchUp), s.Quiet); {
	case e.Fresh:
		return s.next(now, Commit)
	case e.Needed && !e.Failed:
		return s.next(now, Needed)
	case e.Failed:
		return s.next(s.Regular, Again)
	case e.Drifted && again.Before(s.Regular):
		return s.next(again, Moved)
	case e.Refused:
		return s.next(s.Regular, Again)
	}
	return s.next(s.Regular, Time)
}

// next returns the decision that the next pass begins at a time.
func (s State) next(at time.Time, why Trigger) Schedule {
	s.At, s.Why = at, why
	return Schedule{s, false}
}

// newest decides after a look for the newest commit.
func (s State) newest(e Event, now time.Time) Schedule {
	switch {
	case !e.Fresh && !e.Needed, s.Failures > 0 && !e.Pushed:
		return Schedule{s, false}
	case e.Fresh:
		s.At, s.Why = now, Commit
	default:
		s.At, s.Why = now, Needed
	}
	return Schedule{s, true}
}

// counted counts a pass that ended, and sets the times that follow from the counts.
func (s State) counted(e Event, now time.Time, t Times) State {
	if e.Failed {
		s.Failures++
		pause := t.vary(BackOff(s.Failures, min(firstPause, t.Interval), max(mostPause, t.Interval)))
		s.Quiet, s.Regular = now.Add(pause), now.Add(pause)
		return s
	}
	s.Failures = 0
	if e.Why == Moved {
		s.Prompts++
	} else {
		s.Prompts /= 2
	}
	s.Quiet = now
	if s.Prompts >= freePrompts {
		s.Quiet = now.Add(BackOff(s.Prompts-freePrompts+1, time.Second, t.Interval))
	}
	s.Refusals = e.refusals(s.Refusals)
	next := t.vary(BackOff(s.Refusals, afterRefusal, t.Interval))
	if e.Soon > 0 {
		next = min(next, e.Soon)
	}
	s.Regular = now.Add(next)
	return s
}

// refusals counts a pass with refused objects.
func (e Event) refusals(before int) int {
	switch {
	case !e.Refused:
		return 0
	case e.Why == Commit:
		return 1
	}
	return before + 1
}

// vary changes a delay by the jitter.
func (t Times) vary(d time.Duration) time.Duration { return time.Duration(float64(d) * (1 + t.Jitter)) }

// BackOff returns a delay that doubles with every failure, up to most, which it is without a failure, too.
func BackOff(failures int, first, most time.Duration) time.Duration {
	if failures == 0 || failures > 16 {
		return most
	}
	return min(first<<(failures-1), most)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func orStart(r Trigger) Trigger {
	if r == "" {
		return Start
	}
	return r
}
