//test:package raced
package board

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"

	"github.com/google/go-cmp/cmp"
)

// A noticeboard notes what is posted.
type noticeboard struct {
	mu    sync.Mutex
	posts []string
	err   error
}

func (n *noticeboard) Publish(_ context.Context, r report.Report) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if r.Sync != (inventory.Sync{}) {
		n.posts = append(n.posts, "of "+r.Sync.String())
	}
	n.posts = append(n.posts, fmt.Sprintf("%s: %s: %s | %s: %s", r.Revision,
		r.Verdict.Activation.State, r.Verdict.Activation.Description, r.Verdict.Drift.State, r.Verdict.Drift.Description))
	return n.err
}

// taken returns what was posted since the last call.
func (n *noticeboard) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { n.posts = nil }()
	return n.posts
}

// says is what a sync concludes.
func says(commit, state string) report.Report {
	r := report.Report{Revision: commit}
	r.Verdict.Activation, r.Verdict.Drift = report.Status{State: report.Success, Description: "4 objects"}, report.Status{State: report.Success, Description: "no drift"}
	switch state {
	case "pending":
		return report.Seen(inventory.Sync{}, commit)
	case "superseded":
		return report.Superseded(inventory.Sync{}, commit, "z")
	case "failed":
		r.Verdict.Activation = report.Status{State: report.Failure, Description: "1 failed: x"}
		r.Verdict.ExitCode = report.ExitFailed
	case "holds":
		r.Verdict.Activation.Description = "1 held: y"
		r.Verdict.ExitCode = report.ExitHeld
	}
	return r
}

const (
	open  = "pending: not all of 3 syncs have ended with the commit"
	fine  = "success: 3 syncs are as the commit wants"
	quiet = "success: no drift in 3 syncs"
)

func late(who string) string { return "pending: " + who + " not taken up this commit yet" }

func TestBoard(t *testing.T) {
	type step struct {
		sync, commit, state string
		want                []string
	}
	for name, tc := range map[string]struct {
		reason string
		open   []string
		steps  []step
	}{
		"Untouched": {
			reason: "A commit that changes no sync gets one final pair, once all have taken it up.",
			steps:  []step{{"a", "1", "", nil}, {"b", "1", "", nil}, {"c", "1", "", []string{"1: " + fine + " | " + quiet}}, {"a", "1", "", nil}},
		},
		"OneWorks": {
			reason: "It is pending from the first pass to the last, whatever ends in between.",
			steps: []step{
				{"a", "1", "pending", []string{"1: " + open + " | " + open}}, {"b", "1", "pending", nil}, {"c", "1", "", nil}, {"a", "1", "", nil},
				{"b", "1", "", []string{"1: " + fine + " | " + quiet}},
			},
		},
		"OneIsRed": {
			reason: "The worst sync is named at once, and other texts wait until all have ended.",
			steps: []step{
				{"a", "1", "pending", []string{"1: " + open + " | " + open}},
				{"c", "1", "failed", []string{"1: failure: c: 1 failed: x | " + open}}, {"b", "1", "failed", nil},
				{"a", "1", "", []string{"1: failure: b and 1 more of 3: 1 failed: x | " + quiet}},
				{"b", "1", "", []string{"1: failure: c: 1 failed: x | " + quiet}}, {"c", "1", "", []string{"1: " + fine + " | " + quiet}},
			},
		},
		"RedFirst": {
			reason: "What is not known yet is not green beside a failure.",
			steps:  []step{{"c", "1", "failed", []string{"1: failure: c: 1 failed: x | " + late("a and b have")}}},
		},
		"OneIsLate": {
			reason: "A sync that cannot read the commit is named, so that who waits for the status knows whom to ask.",
			steps: []step{
				{"a", "1", "pending", []string{"1: " + open + " | " + open}}, {"b", "1", "", nil},
				{"a", "1", "", []string{"1: " + late("c has") + " | " + late("c has")}}, {"b", "1", "", nil},
				{"c", "1", "pending", nil}, {"c", "1", "", []string{"1: " + fine + " | " + quiet}},
			},
		},
		"NextCommit": {
			reason: "A commit that arrives has no final status yet that could be lost.",
			steps: []step{
				{"a", "1", "", nil}, {"b", "1", "", nil}, {"c", "1", "", []string{"1: " + fine + " | " + quiet}},
				{"b", "2", "", []string{"2: " + late("a and c have") + " | " + late("a and c have")}}, {"b", "2", "", nil},
				{"a", "2", "", []string{"2: " + late("c has") + " | " + late("c has")}}, {"c", "2", "", []string{"2: " + fine + " | " + quiet}},
			},
		},
		"OneHolds": {
			reason: "A success names what is still held.",
			steps:  []step{{"a", "1", "", nil}, {"b", "1", "holds", nil}, {"c", "1", "", []string{"1: success: b: 1 held: y | " + quiet}}},
		},
		"Superseded": {
			reason: "A commit that not every sync has taken up gets a final status, and what a sync says of an older one counts no more.",
			steps: []step{
				{"a", "1", "pending", []string{"1: " + open + " | " + open}}, {"b", "1", "", nil}, {"a", "1", "superseded", nil},
				{"a", "2", "", []string{"1: error: superseded by 2 before it was applied | error: superseded by 2 before it was applied", "2: " + late("b and c have") + " | " + late("b and c have")}},
				{"b", "1", "failed", nil}, {"b", "2", "", []string{"2: " + late("c has") + " | " + late("c has")}}, {"c", "2", "", []string{"2: " + fine + " | " + quiet}},
			},
		},
		"NeverPosted": {
			reason: "Others may wait for a commit of which nothing was posted yet.",
			steps: []step{
				{"a", "1", "", nil}, {"a", "2", "", []string{"1: error: superseded by 2 before it was applied | error: superseded by 2 before it was applied", "2: " + late("b and c have") + " | " + late("b and c have")}},
			},
		},
		"Reset": {
			reason: "A branch that is reset to a known commit has that as its newest one.",
			steps: []step{
				{"a", "1", "", nil}, {"b", "1", "", nil}, {"c", "1", "", []string{"1: " + fine + " | " + quiet}},
				{"a", "2", "pending", []string{"2: " + open + " | " + open}},
				{"a", "1", "", []string{"2: error: superseded by 1 before it was applied | error: superseded by 1 before it was applied", "1: " + fine + " | " + quiet}},
			},
		},
		"Restarted": {
			reason: "A process that begins replaces no final status by a pending one, and ends what an earlier one left pending.",
			open:   []string{"0"},
			steps: []step{
				{"a", "1", "", []string{"0: error: superseded by 1 before it was applied | error: superseded by 1 before it was applied"}},
				{"b", "1", "", nil}, {"c", "1", "", []string{"1: " + fine + " | " + quiet}},
			},
		},
		"NoCommit": {
			reason: "Without a commit, there is nothing to post to.",
			steps:  []step{{"a", "", "failed", nil}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			next := &noticeboard{}
			b := &Board{Next: next, Open: tc.open}
			syncs := map[string]*Member{}
			for _, name := range []string{"a", "b", "c"} {
				syncs[name] = b.Join(inventory.Sync{Namespace: "n", Name: name}, "main")
			}
			for i, s := range tc.steps {
				if err := syncs[s.sync].Publish(t.Context(), says(s.commit, s.state)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(s.want, next.taken()); diff != "" {
					t.Fatalf("%s\nafter step %d, %s %s: posted (-want +got):\n%s", tc.reason, i, s.sync, s.state, diff)
				}
			}
		})
	}
}

// A Sync may not run yet, or not any more. A green status without it would tell that the cluster has the commit.
func TestBoardWaitsForWhoIsExpected(t *testing.T) {
	next, a, other := &noticeboard{}, inventory.Sync{Namespace: "n", Name: "a"}, inventory.Sync{Namespace: "n", Name: "b"}
	expected := map[inventory.Sync]string{a: "main", other: "main", {Namespace: "n", Name: "c"}: "another branch"}
	b := &Board{Next: next, Expected: func() map[inventory.Sync]string { return maps.Clone(expected) }}
	first := b.Join(a, "main")
	posted := func(when string, m *Member, commit, state string, want ...string) {
		t.Helper()
		if err := m.Publish(t.Context(), says(commit, state)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, next.taken()); diff != "" {
			t.Errorf("%s: posted (-want +got):\n%s", when, diff)
		}
	}
	posted("nothing is known of the other sync", first, "1", "")
	second := b.Join(other, "main")
	posted("both have the commit", second, "1", "", "1: success: 2 syncs are as the commit wants | success: no drift in 2 syncs")
	second.Leave()
	posted("one is stalled", first, "2", "", "2: "+late("b has")+" | "+late("b has"))
	delete(expected, other)
	posted("it is gone", first, "2", "", "2: success: 4 objects | success: no drift")
}

// One sync may be at a branch that others do not follow. A commit of both branches has one status.
func TestBoardOfTwoBranches(t *testing.T) {
	next := &noticeboard{}
	b := &Board{Next: next}
	a, other := b.Join(inventory.Sync{Namespace: "n", Name: "a"}, "main"), b.Join(inventory.Sync{Namespace: "n", Name: "b"}, "other")
	publish := func(m *Member, commit, state string) {
		t.Helper()
		if err := m.Publish(t.Context(), says(commit, state)); err != nil {
			t.Fatal(err)
		}
	}
	publish(a, "1", "")
	publish(other, "1", "failed")
	publish(a, "2", "")
	want := []string{
		"1: success: 4 objects | success: no drift", // nobody knows yet where the other branch is
		"1: failure: b: 1 failed: x | success: no drift in 2 syncs",
		"1: failure: 1 failed: x | success: no drift", "2: success: 4 objects | success: no drift",
	}
	got := next.taken()
	slices.Sort(got[2:])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("posted (-want +got):\n%s", diff)
	}
	other.Leave()
	publish(a, "3", "")
	if diff := cmp.Diff([]string{"3: success: 4 objects | success: no drift"}, next.taken()); diff != "" {
		t.Errorf("a sync that has left counts no more (-want +got):\n%s", diff)
	}
}

// Posts do not grow with syncs, whatever the order in which hundreds of them say what.
func TestBoardOfMany(t *testing.T) {
	const n = 500
	next := &noticeboard{}
	b := &Board{Next: next}
	syncs := make([]*Member, n)
	for i := range syncs {
		syncs[i] = b.Join(inventory.Sync{Namespace: "n", Name: fmt.Sprint("s", i)}, "main")
	}
	for _, commit := range []string{"1", "2", "3"} {
		var passes sync.WaitGroup
		for i, m := range syncs {
			passes.Go(func() {
				states := []string{""} // untouched
				switch {
				case i == 17:
					states = []string{"pending", "failed"}
				case i%2 == 0:
					states = []string{"pending", "", "holds", ""}
				}
				for _, state := range states {
					if err := m.Publish(t.Context(), says(commit, state)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		passes.Wait()
		posts := next.taken()
		want := commit + ": failure: s17: 1 failed: x | success: no drift in 500 syncs"
		if len(posts) > 5 || len(posts) == 0 || posts[len(posts)-1] != want {
			t.Errorf("%d posts for %d syncs, the last of which must name the red one: %q", len(posts), n, posts)
		}
	}
}

// A forge that refuses is reported to the sync whose report it was, and the board goes on.
func TestBoardOfARefusingForge(t *testing.T) {
	next := &noticeboard{err: errors.New("refused")}
	b := &Board{Next: next}
	a := b.Join(inventory.Sync{Namespace: "n", Name: "a"}, "main")
	if err := a.Publish(t.Context(), says("1", "pending")); !errors.Is(err, next.err) {
		t.Errorf("got %v", err)
	}
	next.err = nil
	if err := a.Publish(t.Context(), says("1", "")); err != nil || len(next.taken()) != 2 {
		t.Errorf("got %v", err)
	}
}
