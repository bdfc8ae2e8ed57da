package reconcile

import (
	"errors"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// A Sync that is renamed is two Syncs for a moment: one that ends, and another one that declares the same objects. None of them may be deleted
// because the end is faster.
func TestHeirs(t *testing.T) {
	ends, other := inventory.Sync{Namespace: "team", Name: "before"}, inventory.Sync{Namespace: "team", Name: "after"}
	id := manifest.ID{Kind: "ConfigMap", Namespace: "team", Name: "settings"}
	none, takes := map[manifest.ID]bool{}, map[manifest.ID]bool{id: true}
	main := Member{Repository: "repo", Ref: "main"}
	declares := func(owner string) func(*Peers) {
		return func(p *Peers) { p.declared(other, desired("1", "main"), takes, map[manifest.ID]string{id: owner}) }
	}
	shows := func(shows Elsewhere) func(*Peers) {
		shows.Member = main
		return func(p *Peers) { p.See(other, shows) }
	}
	fails := func(p *Peers) { p.failed(other, "1", errors.New("boom\nmore")) }
	heir := func(declares map[manifest.ID]bool) []facts.Peer {
		return []facts.Peer{{Sync: other, Declares: declares}}
	}
	elsewhere := func(heir facts.Peer) []facts.Peer {
		heir.Sync, heir.Elsewhere = other, true
		if heir.Takes == nil {
			heir.Takes = map[string]bool{}
		}
		return []facts.Peer{heir}
	}
	for name, tc := range map[string]struct {
		reason string
		as     Member
		before func(*Peers) // what the other sync did before the end
		after  func(*Peers) // and since then
		long   bool
		want   []facts.Peer
	}{
		"Takes":             {reason: "It takes over what the end would delete.", after: declares(ends.Key()), want: heir(takes)},
		"TakesFromAnother":  {reason: "The object has another owner.", after: declares(other.Key()), want: heir(none)},
		"MayNotRead":        {reason: "The object may be of the sync that ends.", after: declares(""), want: heir(takes)},
		"New":               {reason: "What it declares is not known yet.", want: heir(nil)},
		"Before":            {reason: "The push that ends one sync may give its objects to another.", before: declares(other.Key()), want: heir(nil)},
		"NewLong":           {reason: "A sync that hangs stops no end for ever.", long: true, want: heir(none)},
		"BeforeLong":        {reason: "What it declared last counts.", before: declares(ends.Key()), long: true, want: heir(takes)},
		"Broken":            {reason: "It may be corrected.", after: fails, want: []facts.Peer{{Sync: other, Reason: "boom"}}},
		"BrokenLong":        {reason: "It stops no end for ever.", before: declares(ends.Key()), after: fails, long: true, want: heir(takes)},
		"OtherRepository":   {reason: "A repository keeps nothing of another one.", as: Member{Repository: "elsewhere", Ref: "main"}, after: declares(ends.Key())},
		"OtherCluster":      {reason: "Its object is another one.", as: Member{Repository: "repo", Ref: "main", Cluster: "far"}, after: declares(ends.Key())},
		"Flux":              {reason: "Its source has not told the repository yet.", as: Member{Repository: "GitRepository/team/repo", Flux: true}, want: heir(nil)},
		"NewElsewhere":      {reason: "Its process has planned nothing.", after: shows(Elsewhere{}), long: true, want: elsewhere(facts.Peer{})},
		"TakesElsewhere":    {reason: "It takes over what the end would delete.", after: shows(Elsewhere{Planned: "1", Moves: Moves{Takes: []string{id.String()}}}), want: elsewhere(facts.Peer{Declares: none, Takes: map[string]bool{id.String(): true}})},
		"MoreElsewhere":     {reason: "It takes over more than is known.", after: shows(Elsewhere{Planned: "1", More: true, Moves: Moves{Takes: []string{id.String()}}}), want: elsewhere(facts.Peer{Takes: map[string]bool{id.String(): true}})},
		"StalledElsewhere":  {reason: "It may be corrected.", after: shows(Elsewhere{Broken: "stalled"}), want: elsewhere(facts.Peer{Reason: "stalled"})},
		"StalledLongAway":   {reason: "It stops no end for ever.", after: shows(Elsewhere{Broken: "stalled"}), long: true, want: elsewhere(facts.Peer{Declares: none})},
		"NothingElsewhere":  {reason: "It takes over nothing.", after: shows(Elsewhere{Planned: "1"}), want: elsewhere(facts.Peer{Declares: none})},
		"SuspendedOrUnseen": {reason: "A sync that writes nothing takes over nothing.", after: func(p *Peers) { p.Leave(other) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Peers{}
			if tc.as.Repository == "" {
				tc.as = main
			}
			p.Join(other, tc.as)
			if tc.before != nil {
				tc.before(p)
			}
			end := End{Member: main, Since: time.Now(), Timeout: time.Hour}
			if tc.after != nil {
				tc.after(p)
			}
			if tc.long {
				end.Timeout = -1
			}
			if diff := cmp.Diff(tc.want, p.Heirs(ends, end)); diff != "" {
				t.Errorf("%s\nheirs (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
