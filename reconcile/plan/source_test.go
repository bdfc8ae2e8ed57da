package plan_test

import (
	"encoding/json"
	"errors"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Two directories with the same sync name would prune each other's objects.
func TestSource(t *testing.T) {
	const last, next = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	was := inventory.SourceRecord{Repository: "example.org/team/platform", Path: "prod", Commit: last}
	from := func(edit func(*render.SourceID)) render.SourceID {
		s := render.SourceID{Repository: was.Repository, Path: was.Path, Commit: next, Contains: func(string) (bool, error) { return false, nil }}
		edit(&s)
		return s
	}
	knows := func(s *render.SourceID) { s.Contains = func(c string) (bool, error) { return c == last, nil } }
	moved := func(s *render.SourceID) { s.Repository = "mirror.example.org/platform" }
	recordedAs := func(s render.SourceID) inventory.SourceRecord {
		return inventory.SourceRecord{Repository: s.Repository, Path: s.Path, Commit: s.Commit}
	}
	cases := map[string]struct {
		reason  string
		was     inventory.SourceRecord
		from    render.SourceID
		over    string
		refused bool
		stored  bool // whether the source is stored although nothing else changes
		want    inventory.SourceRecord
	}{
		"Same":            {reason: "A new commit alone is not stored.", was: was, from: from(func(*render.SourceID) {}), want: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Commit: next}},
		"First":           {reason: "The first source for an older inventory is stored immediately, because a later one may differ.", from: from(func(*render.SourceID) {}), stored: true, want: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Commit: next}},
		"OtherPath":       {reason: "Another directory would once have pruned all objects of this one.", was: was, from: from(func(s *render.SourceID) { s.Path = "test" }), refused: true},
		"Root":            {reason: "The root is a different path, too.", was: was, from: from(func(s *render.SourceID) { s.Path = "" }), refused: true},
		"OtherPathKnown":  {reason: "Another path of the same history is another source.", was: was, from: from(func(s *render.SourceID) { s.Path = "test"; knows(s) }), refused: true},
		"OtherRepository": {reason: "Two repositories may have the same layout.", was: was, from: from(moved), refused: true},
		"Mirror":          {reason: "A mirror, or a repository that moved, contains the last applied commit.", was: was, from: from(func(s *render.SourceID) { moved(s); knows(s) }), stored: true, want: inventory.SourceRecord{Repository: "mirror.example.org/platform", Path: was.Path, Commit: next}},
		"NoCommitKnown":   {reason: "Without a recorded commit, nothing proves that the repository moved.", was: inventory.SourceRecord{Repository: was.Repository, Path: was.Path}, from: from(func(s *render.SourceID) { moved(s); s.Contains = func(string) (bool, error) { return true, nil } }), refused: true},
		"NoHistory":       {reason: "Without access to the history, nothing proves that the repository moved.", was: was, from: from(func(s *render.SourceID) { moved(s); s.Contains = nil }), refused: true},
		"Unknown":         {reason: "An unidentified source does not count as the same.", was: was, refused: true},
		"UnknownFirst":    {reason: "An unidentified source is not recorded.", from: render.SourceID{}},
		"UnknownOver":     {reason: "An unidentified source cannot take over, because it could not be recorded.", was: was, over: plan.TakeAny, refused: true},
		"TakeOver":        {reason: "A user allowed the takeover.", was: was, from: from(moved), over: plan.TakeAny, stored: true, want: inventory.SourceRecord{Repository: "mirror.example.org/platform", Path: was.Path, Commit: next}},
		"TakeOverNamed":   {reason: "The Sync names the source that it replaces.", was: was, from: from(func(s *render.SourceID) { s.Path = "test" }), over: "example.org/team/platform//prod", stored: true, want: inventory.SourceRecord{Repository: was.Repository, Path: "test", Commit: next}},
		"TakeOverOther":   {reason: "After a takeover by another source, the setting in the Sync does not take over again.", was: was, from: from(moved), over: "example.org/another", refused: true},
		"NoCommitNow":     {reason: "The last known commit stays recorded.", was: was, from: from(func(s *render.SourceID) { s.Commit = "" }), want: was},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t, "a", "b")
			seen.Inventory.ResourceVersion = "7"
			seen.Inventory.Owner = render.OwnerHeadgate
			want := render.Desired{Owner: render.OwnerHeadgate}
			for _, name := range []string{"a", "b"} {
				want.Objects = append(want.Objects, given.Wanted(t, given.ConfigMap(name)))
			}
			seen.Inventory = given.Computed(t, want, seen, guard.Guarding{}.Guards()...).Settled(seen.Inventory, nil) // everything else is recorded
			seen.Inventory.Record.Source = tc.was
			seen.Terms.TakeOver, want.Source = tc.over, tc.from
			p, err := given.Compute(want, seen, guard.Guarding{}.Guards()...)
			var refusal *plan.SourceError
			if errors.As(err, &refusal) != tc.refused || err != nil && refusal == nil {
				t.Fatalf("%s\nrefused %t, want %t: %v", tc.reason, refusal != nil, tc.refused, err)
			}
			if tc.refused {
				if diff := cmp.Diff(&plan.SourceError{Sync: given.Sync, Recorded: tc.was.String(), Found: tc.from.String()}, refusal); diff != "" {
					t.Errorf("%s\nboth sources are named (-want +got):\n%s", tc.reason, diff)
				}
				if p.Writes() || p.Remembers() {
					t.Errorf("%s\na refused pass has nothing to write", tc.reason)
				}
				seen.Ends = plan.Delete
				if _, err := given.Compute(render.Desired{Owner: render.OwnerHeadgate}, seen); err != nil {
					t.Errorf("destroy reads no source: %v", err)
				}
				return
			}
			if p.Remembers() != tc.stored {
				t.Errorf("%s\nstored %t, want %t", tc.reason, p.Remembers(), tc.stored)
			}
			for when, next := range map[string]inventory.Inventory{"before the first write": p.Intent(seen.Inventory), "after the last": p.Settled(seen.Inventory, nil)} {
				if diff := cmp.Diff(tc.want, next.Record.Source, cmpopts.EquateComparable(inventory.SourceRecord{})); diff != "" {
					t.Errorf("%s\nrecorded %s (-want +got):\n%s", tc.reason, when, diff)
				}
			}
			if tc.from.Repository != "" && tc.was.Repository == "" && recordedAs(tc.from) != tc.want {
				t.Errorf("%s\nwant the first source", tc.reason)
			}
		})
	}
}

// If the repository cannot be read, it may be a mirror. A refusal would advise the user to take the sync over.
func TestSourceThatCannotBeRead(t *testing.T) {
	unreadable := errors.New("the object is missing")
	seen := given.Owning(t, "a")
	seen.Inventory.Record.Source = inventory.SourceRecord{Repository: "example.org/team/platform", Path: "prod", Commit: "1"}
	from := render.SourceID{Repository: "mirror.example.org/platform", Path: "prod", Commit: "2", Contains: func(string) (bool, error) { return false, unreadable }}
	_, err := given.Compute(render.Desired{Source: from}, seen)
	var refusal *plan.SourceError
	if !errors.Is(err, unreadable) || errors.As(err, &refusal) {
		t.Errorf("got %v, want the error of the repository", err)
	}
}

// A destroy has no source, and keeps the record as long as objects remain.
func TestSourceStaysWhileASyncEnds(t *testing.T) {
	var was inventory.SourceRecord
	if err := json.Unmarshal([]byte(`{"repository":"example.org/a","later":1}`), &was); err != nil {
		t.Fatal(err)
	}
	p := plan.Plan{Ends: plan.Delete}
	if got := p.Settled(inventory.Inventory{Record: inventory.Record{Source: was}}, nil).Record.Source; got != was {
		t.Errorf("got %v", got)
	}
}
