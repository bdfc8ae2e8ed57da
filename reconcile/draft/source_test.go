package draft_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/record"
	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		object  string // the UID of the Sync object
		refused bool
		stored  bool // whether the source is stored although nothing else changes
		want    inventory.SourceRecord
	}{
		"Same":             {reason: "A new commit alone is not stored.", was: was, from: from(func(*render.SourceID) {}), want: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Commit: next}},
		"First":            {reason: "The first source for an older inventory is stored immediately, because a later one may differ.", from: from(func(*render.SourceID) {}), stored: true, want: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Commit: next}},
		"OtherPath":        {reason: "Another directory would once have pruned all objects of this one.", was: was, from: from(func(s *render.SourceID) { s.Path = "test" }), refused: true},
		"Root":             {reason: "The root is a different path, too.", was: was, from: from(func(s *render.SourceID) { s.Path = "" }), refused: true},
		"OtherPathKnown":   {reason: "Another path of the same history is another source.", was: was, from: from(func(s *render.SourceID) { s.Path = "test"; knows(s) }), refused: true},
		"OtherRepository":  {reason: "Two repositories may have the same layout.", was: was, from: from(moved), refused: true},
		"Mirror":           {reason: "A mirror, or a repository that moved, contains the last applied commit.", was: was, from: from(func(s *render.SourceID) { moved(s); knows(s) }), stored: true, want: inventory.SourceRecord{Repository: "mirror.example.org/platform", Path: was.Path, Commit: next}},
		"NoCommitKnown":    {reason: "Without a recorded commit, nothing proves that the repository moved.", was: inventory.SourceRecord{Repository: was.Repository, Path: was.Path}, from: from(func(s *render.SourceID) { moved(s); s.Contains = func(string) (bool, error) { return true, nil } }), refused: true},
		"NoHistory":        {reason: "Without access to the history, nothing proves that the repository moved.", was: was, from: from(func(s *render.SourceID) { moved(s); s.Contains = nil }), refused: true},
		"Unknown":          {reason: "An unidentified source does not count as the same.", was: was, refused: true},
		"UnknownFirst":     {reason: "An unidentified source is not recorded.", from: render.SourceID{}},
		"UnknownOver":      {reason: "An unidentified source cannot take over, because it could not be recorded.", was: was, over: was.String(), refused: true},
		"TakeOver":         {reason: "A user allowed the takeover.", was: was, from: from(moved), over: was.String(), stored: true, want: inventory.SourceRecord{Repository: "mirror.example.org/platform", Path: was.Path, Commit: next, Taken: 1}},
		"TakeOverNamed":    {reason: "The Sync names the source that it replaces.", was: was, from: from(func(s *render.SourceID) { s.Path = "test" }), over: "example.org/team/platform//prod", stored: true, want: inventory.SourceRecord{Repository: was.Repository, Path: "test", Commit: next, Taken: 1}},
		"TakeOverOther":    {reason: "After a takeover by another source, the setting in the Sync does not take over again.", was: was, from: from(moved), over: "example.org/another", refused: true},
		"ObjectFirst":      {reason: "The first pass of a Sync object records it.", was: was, object: "uid", from: from(func(*render.SourceID) {}), stored: true, want: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Commit: next, Object: "uid"}},
		"ObjectRolledBack": {reason: "A person changed the ref of a Sync object, for example to roll back.", was: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Ref: "main", Commit: last, Object: "uid"}, object: "uid", from: from(func(s *render.SourceID) { s.Ref = "v1" }), stored: true, want: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Ref: "v1", Commit: next, Object: "uid"}},
		"ObjectMoved":      {reason: "The same for its path.", was: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Commit: last, Object: "uid"}, object: "uid", from: from(func(s *render.SourceID) { s.Path = "test" }), stored: true, want: inventory.SourceRecord{Repository: was.Repository, Path: "test", Commit: next, Object: "uid"}},
		"ObjectElsewhere":  {reason: "Another repository is not the same source, whoever names it.", was: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Commit: last, Object: "uid"}, object: "uid", from: from(moved), refused: true},
		"ObjectAnew":       {reason: "An object that was created again under the name is another one.", was: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Ref: "main", Commit: last, Object: "uid"}, object: "other", from: from(func(s *render.SourceID) { s.Ref = "v1" }), refused: true},
		"NoObject":         {reason: "A file has no UID, and proves nothing.", was: inventory.SourceRecord{Repository: was.Repository, Path: was.Path, Ref: "main", Commit: last}, from: from(func(s *render.SourceID) { s.Ref = "v1" }), refused: true},
		"NoCommitNow":      {reason: "The last known commit stays recorded.", was: was, from: from(func(s *render.SourceID) { s.Commit = "" }), want: was},
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
			seen.Inventory = record.Settled(given.Computed(t, want, seen, guard.Guarding{}.Guards()...), seen.Inventory, nil) // everything else is recorded
			seen.Inventory.Record.Source = tc.was
			seen.Terms.TakeOver, seen.Terms.Object, want.Source = tc.over, tc.object, tc.from
			p, err := given.Compute(want, seen, guard.Guarding{}.Guards()...)
			var refusal *reason.SourceError
			if errors.As(err, &refusal) != tc.refused || err != nil && refusal == nil {
				t.Fatalf("%s\nrefused %t, want %t: %v", tc.reason, refusal != nil, tc.refused, err)
			}
			if tc.refused {
				if diff := cmp.Diff(&reason.SourceError{Sync: given.Sync, Recorded: tc.was.String(), Found: tc.from.String()}, refusal); diff != "" {
					t.Errorf("%s\nboth sources are named (-want +got):\n%s", tc.reason, diff)
				}
				if p.Writes() || p.Remembers() {
					t.Errorf("%s\na refused pass has nothing to write", tc.reason)
				}
				seen.Stance = plan.Destroying
				if _, err := given.Compute(render.Desired{Owner: render.OwnerHeadgate}, seen); err != nil {
					t.Errorf("destroy reads no source: %v", err)
				}
				return
			}
			if p.Remembers() != tc.stored {
				t.Errorf("%s\nstored %t, want %t", tc.reason, p.Remembers(), tc.stored)
			}
			for when, next := range map[string]inventory.Inventory{"before the first write": record.Intent(p, seen.Inventory), "after the last": record.Settled(p, seen.Inventory, nil)} {
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
	var refusal *reason.SourceError
	if !errors.Is(err, unreadable) || errors.As(err, &refusal) {
		t.Errorf("got %v, want the error of the repository", err)
	}
}

// Two processes that apply two commits in turn would do so for ever. A Sync object that leads back to an older commit and forward again is one
// process, and a person decided each of its turns.
func TestCommitsInTurn(t *testing.T) {
	const uid = "4f7c"
	for name, tc := range map[string]struct {
		was, now string // the UIDs of the Sync objects
		refused  bool
	}{
		"Files":       {"", "", true},
		"SameObject":  {uid, uid, false},
		"OtherObject": {"another", uid, true},
		"AfterAFile":  {"", uid, true},
		"NowAFile":    {uid, "", true},
	} {
		seen := given.Owning(t, "a")
		seen.Now = metav1.NewTime(time.Unix(1_800_000_000, 0))
		for _, commit := range []string{"a", "b", "a", "b"} {
			seen.Inventory.History = append(seen.Inventory.History, inventory.Past{Revision: commit, Updated: 1, When: seen.Now})
		}
		seen.Inventory.Record.Source = inventory.SourceRecord{Repository: "example.org/platform", Ref: "main", Branch: "main", Commit: "b", Object: tc.was}
		seen.Terms.Object = tc.now
		from := render.SourceID{Repository: "example.org/platform", Ref: "main", Branch: "main", Commit: "a"}
		_, err := given.Compute(render.Desired{Revision: "a", Source: from, Owner: seen.Inventory.Owner}, seen)
		if _, is := errors.AsType[*reason.TurnsError](err); is != tc.refused {
			t.Errorf("%s: %v, want a refusal: %t", name, err, tc.refused)
		}
	}
}

// A destroy has no source, and keeps the record as long as objects remain.
func TestSourceStaysWhileASyncEnds(t *testing.T) {
	var was inventory.SourceRecord
	if err := json.Unmarshal([]byte(`{"repository":"example.org/a","later":1}`), &was); err != nil {
		t.Fatal(err)
	}
	p := plan.Plan{Stance: plan.Destroying}
	if got := record.Settled(p, inventory.Inventory{Record: inventory.Record{Source: was}}, nil).Record.Source; got != was {
		t.Errorf("got %v", got)
	}
}

// Two processes with one name, repository and path would prune each other's objects if they followed different branches.
func TestRefOfSource(t *testing.T) {
	const last, next = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	type follows struct{ ref, branch string }
	main, feature := follows{"main", "main"}, follows{"feature", "feature"}
	detached, defaults := follows{render.Detached, ""}, follows{render.DefaultRef, "main"}
	cases := map[string]struct {
		reason    string
		was, from follows
		related   bool
		moved     bool // the repository has another address
		taken     int  // how often the inventory was taken over
		over      string
		refused   bool
		recorded  follows
	}{
		"Same":             {reason: "The branch has a new commit, or it was rewritten.", was: main, from: main, recorded: main},
		"Other":            {reason: "A copied file often names a branch that is one commit ahead.", was: main, from: feature, related: true, refused: true},
		"Unrecorded":       {reason: "An older inventory has no ref, and gets the first one.", from: feature, recorded: feature},
		"Range":            {reason: "The tag that a range resolves to changes with every release.", was: follows{ref: ">=1.2"}, from: follows{ref: ">=1.2"}, recorded: follows{ref: ">=1.2"}},
		"OtherRange":       {reason: "Two ranges select different tags.", was: follows{ref: ">=1.2"}, from: follows{ref: ">=2"}, related: true, refused: true},
		"Default":          {reason: "The default branch and its name are one branch, as in a checkout of it.", was: defaults, from: main, recorded: main},
		"DefaultAgain":     {reason: "", was: main, from: defaults, recorded: defaults},
		"DefaultRenamed":   {reason: "The forge renamed the default branch of a sync without a ref.", was: follows{render.DefaultRef, "master"}, from: defaults, recorded: defaults},
		"DefaultUnknown":   {reason: "A server need not tell the name of the default branch.", was: follows{ref: render.DefaultRef}, from: follows{ref: render.DefaultRef}, recorded: follows{ref: render.DefaultRef}},
		"NotDefault":       {reason: "The default branch is another one.", was: defaults, from: feature, related: true, refused: true},
		"NoLongerDefault":  {reason: "The default branch changed, and another process still follows the old one.", was: follows{render.DefaultRef, "develop"}, from: main, refused: true},
		"Pinned":           {reason: "A person names an older or newer commit of the branch.", was: main, from: detached, related: true, recorded: main},
		"PinnedElsewhere":  {reason: "The commit belongs to another branch.", was: main, from: detached, refused: true},
		"PinnedNext":       {reason: "The next tag of a release.", was: detached, from: detached, related: true, recorded: detached},
		"PinnedOther":      {reason: "A checkout of another branch, by a job of another pipeline.", was: detached, from: detached, refused: true},
		"PinnedNoMore":     {reason: "The sync follows a branch from now on.", was: detached, from: main, related: true, recorded: main},
		"PinnedNoMoreElse": {reason: "The branch does not contain the commit.", was: detached, from: main, refused: true},
		"Mirror":           {reason: "A mirror of the same branch.", was: main, from: main, moved: true, recorded: main},
		"MirrorOther":      {reason: "Another branch of a mirror contains the commit, too.", was: main, from: feature, moved: true, refused: true},
		"TakeOver":         {reason: "A person names the recorded source with its ref.", was: main, from: feature, over: "example.org/platform//prod?ref=main", recorded: feature},
		"TakeOverNoRef":    {reason: "The setting of an older version names no ref.", was: main, from: feature, over: "example.org/platform//prod", refused: true},
		"TakeOverAny":      {reason: "Two processes that take over anything would do so in turn.", was: main, from: feature, over: "*", refused: true},
		"TakeOverAgain":    {reason: "The branches took over from each other. Both settings are still there, and have no effect.", was: main, from: feature, taken: 2, over: "example.org/platform//prod?ref=main", refused: true},
		"TakeOverAnew":     {reason: "A person takes over again, with the name in the message.", was: main, from: feature, taken: 2, over: "example.org/platform//prod?ref=main&taken=2", recorded: feature},
		"TakeOverPinned":   {reason: "A pinned commit has a name, too.", was: detached, from: feature, over: "example.org/platform//prod?commit=" + last, recorded: feature},
		"TakeOverSame":     {reason: "The setting has no effect on the recorded source itself.", was: main, from: main, over: "example.org/platform//prod?ref=main", recorded: main},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t, "a")
			seen.Inventory.ResourceVersion, seen.Inventory.Owner = "7", render.OwnerHeadgate
			want := render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{given.Wanted(t, given.ConfigMap("a"))}}
			seen.Inventory = record.Settled(given.Computed(t, want, seen), seen.Inventory, nil)
			was := inventory.SourceRecord{Repository: "example.org/platform", Path: "prod", Ref: tc.was.ref, Branch: tc.was.branch, Commit: last, Taken: tc.taken}
			seen.Inventory.Record.Source, seen.Terms.TakeOver = was, tc.over
			want.Source = render.SourceID{
				Repository: was.Repository, Path: was.Path, Ref: tc.from.ref, Branch: tc.from.branch, Commit: next,
				Contains: func(string) (bool, error) { return true, nil },
				Related:  func(c string) (bool, error) { return tc.related && c == last, nil },
			}
			if tc.moved {
				want.Source.Repository = "mirror.example.org/platform"
			}
			p, err := given.Compute(want, seen)
			var refusal *reason.SourceError
			if errors.As(err, &refusal) != tc.refused || err != nil && refusal == nil {
				t.Fatalf("%s\nrefused %t, want %t: %v", tc.reason, refusal != nil, tc.refused, err)
			}
			if tc.refused {
				if !strings.Contains(err.Error(), fmt.Sprintf("--take-over='%s'", was)) || !strings.Contains(err.Error(), want.Source.String()) {
					t.Errorf("%s\nthe message names both sources and the value: %v", tc.reason, err)
				}
				return
			}
			expected := was
			expected.Repository, expected.Ref, expected.Branch, expected.Commit = want.Source.Repository, tc.recorded.ref, tc.recorded.branch, next
			if over := tc.over != "" && tc.was != tc.from; over {
				expected.Taken++
			}
			for when, next := range map[string]inventory.Inventory{"before the first write": record.Intent(p, seen.Inventory), "after the last": record.Settled(p, seen.Inventory, nil)} {
				if diff := cmp.Diff(expected, next.Record.Source, cmpopts.EquateComparable(inventory.SourceRecord{})); diff != "" {
					t.Errorf("%s\nrecorded %s (-want +got):\n%s", tc.reason, when, diff)
				}
			}
			if stored := expected.Ref != was.Ref || expected.Branch != was.Branch || tc.moved; p.Remembers() != stored {
				t.Errorf("%s\nstored %t, want %t: another process must see the ref at once", tc.reason, p.Remembers(), stored)
			}
		})
	}
}

// If the history cannot be read, it is not known whether a pinned commit belongs to the source. A refusal would advise the user to
// take the sync over.
func TestPinnedCommitThatCannotBeCompared(t *testing.T) {
	shallow := errors.New("the clone is shallow")
	seen := given.Owning(t, "a")
	seen.Inventory.Record.Source = inventory.SourceRecord{Repository: "example.org/platform", Ref: "main", Commit: "1"}
	from := render.SourceID{Repository: "example.org/platform", Ref: render.Detached, Commit: "2", Related: func(string) (bool, error) { return false, shallow }}
	if _, err := given.Compute(render.Desired{Source: from}, seen); !errors.Is(err, shallow) {
		t.Errorf("got %v, want the error of the repository", err)
	}
}

// A pass must not undo a newer commit that another process has applied. No one can tell which commit is newer, except by reading the ref
// after the other commit was applied.
func TestAppliedMeanwhile(t *testing.T) {
	const this, other, third = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222", "3333333333333333333333333333333333333333"
	for name, tc := range map[string]struct {
		reason                string
		applied, this, before string // "nil" if the loop knew none
		refuse                bool
	}{
		"First":        {"Nothing was applied, or the inventory is lost.", "", this, other, false},
		"NoCommit":     {"A directory outside of Git has no commits.", other, "", this, false},
		"Same":         {"The other process applied the same commit.", this, this, other, false},
		"Named":        {"A person names a commit, or a process begins.", other, this, "nil", false},
		"Next":         {"The ref moved, forward or back: it was read after the other commit was applied.", other, this, other, false},
		"Older":        {"The other process may have read the ref later.", other, this, third, true},
		"OlderApplied": {"This process applied its commit itself, before the other one was.", other, this, this, true},
		"Restored":     {"A backup of etcd brought back an older inventory, and the ref is read once more.", other, this, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t, "a")
			seen.Inventory.Record.Source = inventory.SourceRecord{Repository: "example.org/a", Commit: tc.applied}
			if tc.before != "nil" {
				seen.AppliedBefore = &tc.before
			}
			want := render.Desired{Revision: tc.this, Source: render.SourceID{Repository: "example.org/a", Commit: tc.this}, Objects: []render.Object{given.Wanted(t, given.ConfigMap("a"))}}
			p, err := given.Compute(want, seen)
			var meanwhile *reason.AppliedMeanwhileError
			if errors.As(err, &meanwhile) != tc.refuse || err != nil && (meanwhile == nil || meanwhile.Commit != tc.applied || !strings.Contains(err.Error(), tc.applied[:12])) {
				t.Errorf("%s\nrefused %t, want %t: %v", tc.reason, meanwhile != nil, tc.refuse, err)
			}
			if err == nil && p.Applied != tc.applied {
				t.Errorf("%s\nthe plan names the last applied commit %q, want %q", tc.reason, p.Applied, tc.applied)
			}
			if tc.refuse { // the other process has a clone of a mirror, and this one has not fetched the commit
				seen.Inventory.Record.Source.Repository = "example.org/mirror"
				want.Source.Contains = func(string) (bool, error) { return false, nil }
				if _, err := given.Compute(want, seen); !errors.As(err, &meanwhile) {
					t.Errorf("%s\nfrom a mirror: %v", tc.reason, err)
				}
			}
			seen.Stance = plan.Destroying
			if _, err := given.Compute(render.Desired{}, seen); err != nil {
				t.Errorf("destroy is not refused: %v", err)
			}
		})
	}
}

// Two processes of one source can still apply two commits in turn, such as pinned ones of one branch, or those of a mirror that is
// behind. Each of them would prune what the other has in addition.
func TestTwoCommitsInTurn(t *testing.T) {
	const a, b = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	now := metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	before := func(minutes int) metav1.Time { return metav1.NewTime(now.Add(-time.Duration(minutes) * time.Minute)) }
	for name, tc := range map[string]struct {
		reason string
		commit string
		age    int // of the last pass, in minutes
		refuse string
	}{
		"Older":     {"", a, 1, "222222222222"},
		"Newer":     {"The one that was last does not know that the other is wrong, either.", b, 59, "111111111111"},
		"Another":   {"A new commit ends it.", "3", 1, ""},
		"Rested":    {"The other process may be gone.", a, 60, ""},
		"FastClock": {"The clock of the other machine is ahead.", a, -10, "222222222222"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := given.Owning(t, "a", "b")
			seen.Now = now
			for _, commit := range []string{a, b, a, b} {
				seen.Inventory.History = append(seen.Inventory.History, inventory.Past{Revision: commit, Pruned: 1, When: before(tc.age)})
			}
			want := render.Desired{Revision: tc.commit, Source: render.SourceID{Repository: "example.org/a", Commit: tc.commit}, Objects: []render.Object{given.Wanted(t, given.ConfigMap("a"))}}
			_, err := given.Compute(want, seen)
			var turns *reason.TurnsError
			if errors.As(err, &turns) != (tc.refuse != "") || err != nil && (turns == nil || !strings.Contains(err.Error(), tc.refuse) || !strings.Contains(err.Error(), tc.commit[:12])) {
				t.Errorf("%s\nwant a refusal that names %q, got %v", tc.reason, tc.refuse, err)
			}
			seen.Stance = plan.Destroying
			if _, err := given.Compute(render.Desired{}, seen); err != nil {
				t.Errorf("destroy is not refused: %v", err)
			}
		})
	}
}
