//test:package raced
package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDue has the rows of the table in the documentation of Due.
func TestDue(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	in := now.Add
	const minute = time.Minute
	waiting := State{At: in(30 * time.Second), Why: Time, Regular: in(30 * time.Second)}
	prompted := State{At: now, Why: Moved, Regular: in(30 * time.Second)}
	failing := State{At: in(20 * time.Second), Why: Again, Regular: in(20 * time.Second), Quiet: in(20 * time.Second), Failures: 2}
	fighting := State{At: in(30 * time.Second), Why: Time, Regular: in(30 * time.Second), Quiet: in(4 * time.Second), Prompts: 5}
	at := func(s State, d time.Duration, why Trigger) State {
		s.At, s.Why = in(d), why
		return s
	}
	cases := map[string]struct {
		reason string
		state  State
		event  Event
		times  Times
		want   Schedule
	}{
		"FirstPass": {
			reason: "A process that starts checks at once.",
			event:  Event{Kind: Begins},
			want:   Schedule{at(State{}, 0, Start), false},
		},
		"OwnWrite": {
			reason: "The watch reports what a pass wrote itself. When it has learned that, no pass is needed.",
			state:  prompted, event: Event{Kind: Timer},
			want: Schedule{at(prompted, 30*time.Second, Time), false},
		},
		"Interval": {
			reason: "The timer of an interval begins a pass.",
			state:  waiting, event: Event{Kind: Timer},
			want: Schedule{waiting, true},
		},
		"StillDrift": {
			reason: "So does that of drift which is still there.",
			state:  prompted, event: Event{Kind: Timer, Drifted: true},
			want: Schedule{prompted, true},
		},
		"Drift": {
			reason: "Drift does not wait for the interval.",
			state:  waiting, event: Event{Kind: Drift, Drifted: true},
			want: Schedule{at(waiting, 0, Moved), false},
		},
		"CheckedDrift": {
			reason: "What a pass has checked already is no reason for another one.",
			state:  waiting, event: Event{Kind: Drift},
			want: Schedule{waiting, false},
		},
		"DriftOfAFight": {
			reason: "Another writer that is as fast as Headgate does not make it write all the time.",
			state:  fighting, event: Event{Kind: Drift, Drifted: true},
			want: Schedule{at(fighting, 4*time.Second, Moved), false},
		},
		"DriftDuringABackOff": {
			reason: "Drift does not shorten the pause after an error.",
			state:  failing, event: Event{Kind: Drift, Drifted: true},
			want: Schedule{failing, false},
		},
		"SameCommit": {
			reason: "A poll that finds nothing new is no pass.",
			state:  waiting, event: Event{Kind: Newest},
			want: Schedule{waiting, false},
		},
		"NewCommit": {
			reason: "A new commit, also one that supersedes another, is applied at once.",
			state:  waiting, event: Event{Kind: Newest, Fresh: true},
			want: Schedule{at(waiting, 0, Commit), true},
		},
		"NewCommitDuringABackOff": {
			reason: "A poll does not shorten the pause after an error.",
			state:  failing, event: Event{Kind: Newest, Fresh: true},
			want: Schedule{failing, false},
		},
		"PushDuringABackOff": {
			reason: "A push may be what helps.",
			state:  failing, event: Event{Kind: Newest, Fresh: true, Pushed: true},
			want: Schedule{at(failing, 0, Commit), true},
		},
		"Needed": {
			reason: "Another sync waits for this one to hand over objects.",
			state:  waiting, event: Event{Kind: Newest, Pushed: true, Needed: true},
			want: Schedule{at(waiting, 0, Needed), true},
		},
		"Approved": {
			reason: "A person who approved waits for the pass, also after an error.",
			state:  failing, event: Event{Kind: Approved},
			want: Schedule{at(failing, 0, Answer), true},
		},
		"Interrupted": {
			reason: "A pass that made way for drift begins again because of that.",
			state:  waiting, event: Event{Kind: Stopped, Why: Moved},
			want: Schedule{at(waiting, 0, Moved), false},
		},
		"Passed": {
			reason: "The next pass begins after the interval, whether or not this one held something.",
			state:  failing, event: Event{Kind: Passed, Why: Time},
			want: Schedule{State{At: in(minute), Why: Time, Regular: in(minute), Quiet: now}, false},
		},
		"PassedWithJitter": {
			reason: "Many loops must not act at the same time.",
			event:  Event{Kind: Passed, Why: Time}, times: Times{minute, -0.1},
			want: Schedule{State{At: in(54 * time.Second), Why: Time, Regular: in(54 * time.Second), Quiet: now}, false},
		},
		"PassedAndSoon": {
			reason: "A pass that only observes asks for the next one while something is on its way.",
			event:  Event{Kind: Passed, Why: Time, Soon: 5 * time.Second},
			want:   Schedule{State{At: in(5 * time.Second), Why: Time, Regular: in(5 * time.Second), Quiet: now}, false},
		},
		"Refused": {
			reason: "What the API server refused may be accepted soon, although the commit stays as it is.",
			event:  Event{Kind: Passed, Why: Commit, Refused: true}, times: Times{time.Hour, -0.1},
			want: Schedule{State{At: in(54 * time.Second), Why: Again, Regular: in(54 * time.Second), Quiet: now, Refusals: 1}, false},
		},
		"RefusedAgain": {
			reason: "The pause doubles with every pass.",
			state:  State{Refusals: 2}, event: Event{Kind: Passed, Why: Again, Refused: true}, times: Times{Interval: time.Hour},
			want: Schedule{State{At: in(4 * minute), Why: Again, Regular: in(4 * minute), Quiet: now, Refusals: 3}, false},
		},
		"RefusedOften": {
			reason: "But it is never longer than the interval.",
			state:  State{Refusals: 9}, event: Event{Kind: Passed, Why: Again, Refused: true}, times: Times{Interval: time.Hour},
			want: Schedule{State{At: in(time.Hour), Why: Again, Regular: in(time.Hour), Quiet: now, Refusals: 10}, false},
		},
		"RefusedWithAnotherCommit": {
			reason: "Another commit begins anew.",
			state:  State{Refusals: 9}, event: Event{Kind: Passed, Why: Commit, Refused: true}, times: Times{Interval: time.Hour},
			want: Schedule{State{At: in(minute), Why: Again, Regular: in(minute), Quiet: now, Refusals: 1}, false},
		},
		"RefusedAndDrift": {
			reason: "Drift does not wait for it.",
			event:  Event{Kind: Passed, Why: Time, Refused: true, Drifted: true}, times: Times{Interval: time.Hour},
			want: Schedule{State{At: in(catchUp), Why: Moved, Regular: in(minute), Quiet: now, Refusals: 1}, false},
		},
		"AcceptedAgain": {
			reason: "A pass without refused objects ends the pause.",
			state:  State{Refusals: 3}, event: Event{Kind: Passed, Why: Again},
			want: Schedule{State{At: in(minute), Why: Time, Regular: in(minute), Quiet: now}, false},
		},
		"PassedAndPushed": {
			reason: "A push that came during the pass is next, also after an error.",
			event:  Event{Kind: Passed, Why: Commit, Fresh: true, Failed: true},
			want:   Schedule{State{At: now, Why: Commit, Regular: in(5 * time.Second), Quiet: in(5 * time.Second), Failures: 1}, false},
		},
		"PassedAndNeeded": {
			reason: "Another sync asked during the pass.",
			event:  Event{Kind: Passed, Why: Commit, Needed: true},
			want:   Schedule{State{At: now, Why: Needed, Regular: in(minute), Quiet: now}, false},
		},
		"FailedAndNeeded": {
			reason: "Another sync that asks does not end a back-off.",
			event:  Event{Kind: Passed, Why: Commit, Needed: true, Failed: true},
			want:   Schedule{State{At: in(5 * time.Second), Why: Again, Regular: in(5 * time.Second), Quiet: in(5 * time.Second), Failures: 1}, false},
		},
		"FailedAgain": {
			reason: "The pause doubles with every failure.",
			state:  failing, event: Event{Kind: Passed, Why: Again, Failed: true},
			want: Schedule{State{At: in(20 * time.Second), Why: Again, Regular: in(20 * time.Second), Quiet: in(20 * time.Second), Failures: 3}, false},
		},
		"FailedOften": {
			reason: "But not without end.",
			state:  State{Failures: 1000}, event: Event{Kind: Passed, Why: Again, Failed: true},
			want: Schedule{State{At: in(5 * minute), Why: Again, Regular: in(5 * minute), Quiet: in(5 * minute), Failures: 1001}, false},
		},
		"DriftDuringThePass": {
			reason: "What changed during the pass may be its own write, so the watch gets a moment to learn that.",
			event:  Event{Kind: Passed, Why: Time, Drifted: true},
			want:   Schedule{State{At: in(catchUp), Why: Moved, Regular: in(minute), Quiet: now}, false},
		},
		"Fight": {
			reason: "From the third pass in a row because of drift, there is a pause, which doubles.",
			state:  State{Prompts: 3}, event: Event{Kind: Passed, Why: Moved, Drifted: true},
			want: Schedule{State{At: in(2 * time.Second), Why: Moved, Regular: in(minute), Quiet: in(2 * time.Second), Prompts: 4}, false},
		},
		"AfterAFight": {
			reason: "A fight is forgotten by halves.",
			state:  State{Prompts: 5}, event: Event{Kind: Passed, Why: Time},
			want: Schedule{State{At: in(minute), Why: Time, Regular: in(minute), Quiet: now, Prompts: 2}, false},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			times := tc.times
			if times.Interval == 0 {
				times.Interval = minute
			}
			if diff := cmp.Diff(tc.want, Due(tc.state, tc.event, now, times)); diff != "" {
				t.Errorf("%s\nDue(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A person who pushes does not wait for intervals.
func TestPriorities(t *testing.T) {
	for why, want := range map[Trigger]Priority{Start: Asked, Commit: Asked, Answer: Asked, Moved: Prompt, Needed: Prompt, Time: Regular, Again: Regular} {
		if got := why.Priority(); got != want {
			t.Errorf("%s has priority %d, want %d", why, got, want)
		}
	}
}
