package reconcile

import (
	"context"
	"errors"
	"testing"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

var (
	asking    = inventory.Sync{Namespace: "team", Name: "asks"}
	another   = inventory.Sync{Namespace: "team", Name: "other"}
	last      = map[manifest.ID]bool{{Kind: "ConfigMap", Namespace: "team", Name: "declared"}: true}
	owned     = map[manifest.ID]bool{{Kind: "ConfigMap", Namespace: "team", Name: "owned"}: true}
	looks     = map[manifest.ID]bool{{Kind: "ConfigMap", Namespace: "team", Name: "declared"}: false} // without taking it over
	ownedOnly = map[manifest.ID]bool{{Kind: "ConfigMap", Namespace: "team", Name: "declared"}: false, {Kind: "ConfigMap", Namespace: "team", Name: "owned"}: true}
	both      = map[manifest.ID]bool{{Kind: "ConfigMap", Namespace: "team", Name: "declared"}: true, {Kind: "ConfigMap", Namespace: "team", Name: "owned"}: true}
)

// A dead Git host or a broken directory must stop the prunes of the syncs that share the branch, for a while, and of no others.
func TestPeersAreWaitedFor(t *testing.T) {
	boom := errors.New("boom\nand more")
	rendered := func(p *Peers, revision string) { p.declared(another, desired(revision, "main"), last, nil) }
	took := func(p *Peers, owner string) {
		p.declared(another, desired("new", "main"), last, map[manifest.ID]string{{Kind: "ConfigMap", Namespace: "team", Name: "declared"}: owner})
	}
	flux, found := Member{Flux: true}, func(p *Peers, repository, branch string, stale error) { p.Found(another, repository, branch, stale) }
	cases := map[string]struct {
		reason string
		as     Member // the other sync; the asking one follows main of "repo"
		inTurn bool
		does   func(p *Peers) // what the other sync has done before
		over   bool           // the wait is over
		unread error          // why its inventory cannot be read
		want   []facts.Peer
	}{
		"Rendered":        {reason: "Its commit is known.", does: func(p *Peers) { rendered(p, "new") }, want: []facts.Peer{{Sync: another, Declares: last}}},
		"Hangs":           {reason: "It may declare what this sync prunes.", want: []facts.Peer{{Sync: another}}},
		"HangsLong":       {reason: "It owns what it applied, and nothing else is known.", over: true, want: []facts.Peer{{Sync: another, Declares: owned}}},
		"Behind":          {reason: "Its last commit is another one.", does: func(p *Peers) { rendered(p, "old") }, want: []facts.Peer{{Sync: another}}},
		"BehindLong":      {reason: "Its last commit and its inventory count.", does: func(p *Peers) { rendered(p, "old") }, over: true, want: []facts.Peer{{Sync: another, Declares: both}}},
		"Broken":          {reason: "The reason is named in one line.", does: func(p *Peers) { p.failed(another, "new", boom) }, want: []facts.Peer{{Sync: another, Reason: "boom"}}},
		"DeadHost":        {reason: "So is a host that does not answer.", does: func(p *Peers) { p.fetched(another, boom) }, want: []facts.Peer{{Sync: another, Reason: "boom"}}},
		"DeadHostLong":    {reason: "It does not stop the prunes for ever.", does: func(p *Peers) { p.fetched(another, boom) }, over: true, want: []facts.Peer{{Sync: another, Declares: owned}}},
		"UnreadInventory": {reason: "Nothing shows what it keeps.", over: true, unread: boom, want: []facts.Peer{{Sync: another, Reason: "boom"}}},

		"OtherRepository":     {reason: "One commit cannot change both.", as: Member{Repository: "elsewhere", Ref: "main"}},
		"OtherRepositoryDead": {reason: "Its host stops nobody.", as: Member{Repository: "elsewhere", Ref: "main"}, does: func(p *Peers) { p.fetched(another, boom) }},
		"OtherBranch":         {reason: "One commit cannot change both.", as: Member{Repository: "repo", Ref: "prod"}},
		"PerhapsSameBranch":   {reason: "The name of the default branch is not known yet.", as: Member{Repository: "repo"}, want: []facts.Peer{{Sync: another}}},
		"SameBranch":          {reason: "The default branch has this name.", as: Member{Repository: "repo"}, does: func(p *Peers) { rendered(p, "new") }, want: []facts.Peer{{Sync: another, Declares: last}}},
		"OtherDefault":        {reason: "The default branch has another name.", as: Member{Repository: "repo"}, does: func(p *Peers) { p.declared(another, desired("new", "trunk"), last, nil) }},

		"Elsewhere":        {reason: "Its cluster has another object of that name.", as: Member{Repository: "repo", Ref: "main", Cluster: "far"}, does: func(p *Peers) { rendered(p, "new") }},
		"PerhapsElsewhere": {reason: "Its cluster may be this one.", as: Member{Repository: "repo", Ref: "main", Cluster: AnyCluster}, want: []facts.Peer{{Sync: another}}},
		"PerhapsHere":      {reason: "It saw no object of this sync.", as: Member{Repository: "repo", Ref: "main", Cluster: AnyCluster}, does: func(p *Peers) { rendered(p, "new") }, want: []facts.Peer{{Sync: another, Declares: looks}}},
		"PerhapsOfAnother": {reason: "It saw an object of a sync that is not this one.", as: Member{Repository: "repo", Ref: "main", Cluster: AnyCluster}, does: func(p *Peers) { took(p, another.Key()) }, want: []facts.Peer{{Sync: another, Declares: looks}}},
		"Here":             {reason: "It saw an object of this sync, so the cluster is the same.", as: Member{Repository: "repo", Ref: "main", Cluster: AnyCluster}, does: func(p *Peers) { took(p, asking.Key()) }, want: []facts.Peer{{Sync: another, Declares: last}}},
		"MayNotRead":       {reason: "It may not read the object, which may be of this sync.", as: Member{Repository: "repo", Ref: "main", Cluster: AnyCluster}, does: func(p *Peers) { took(p, "") }, want: []facts.Peer{{Sync: another, Declares: last}}},
		"PerhapsHereLong":  {reason: "A cluster that is away does not keep what it declared.", as: Member{Repository: "repo", Ref: "main", Cluster: AnyCluster}, does: func(p *Peers) { rendered(p, "old") }, over: true, want: []facts.Peer{{Sync: another, Declares: ownedOnly}}},

		"Flux":          {reason: "Flux names the repository, and the branch.", as: flux, does: func(p *Peers) { found(p, "repo", "refs/heads/main", nil); rendered(p, "new") }, want: []facts.Peer{{Sync: another, Declares: last}}},
		"FluxBehind":    {reason: "Flux fetches the commit when its interval is over.", as: flux, does: func(p *Peers) { found(p, "repo", "main", nil); rendered(p, "old") }, over: true, want: []facts.Peer{{Sync: another}}},
		"FluxStale":     {reason: "Flux fetches no commit, for this reason.", as: flux, does: func(p *Peers) { found(p, "repo", "main", boom); rendered(p, "old") }, want: []facts.Peer{{Sync: another, Reason: "boom"}}},
		"FluxStaleLong": {reason: "That stops no prunes for ever.", as: flux, does: func(p *Peers) { found(p, "repo", "main", boom); rendered(p, "old") }, over: true, want: []facts.Peer{{Sync: another, Declares: both}}},
		"FluxUnread":    {reason: "Its repository is not known yet.", as: flux, want: []facts.Peer{{Sync: another}}},
		"FluxMissing":   {reason: "Without a source, it has no repository, and stops nobody.", as: flux, does: func(p *Peers) { p.Missing(another, "GitRepository/a/b") }},
		"FluxDeleted":   {reason: "The source may come back.", as: flux, does: func(p *Peers) { found(p, "repo", "main", nil); p.Missing(another, "GitRepository/a/b") }, want: []facts.Peer{{Sync: another}}},
		"FluxElsewhere": {reason: "One commit cannot change both.", as: flux, does: func(p *Peers) { found(p, "elsewhere", "main", nil) }},
		"FluxPinned":    {reason: "A commit is no branch.", as: flux, does: func(p *Peers) { found(p, "repo", "0123abc", nil) }},

		"InTurn":         {reason: "It renders when it is asked.", inTurn: true, as: Member{Declare: func(context.Context) error { return nil }}, want: []facts.Peer{{Sync: another}}},
		"InTurnBroken":   {reason: "Nothing changes while the others wait.", inTurn: true, does: func(p *Peers) { p.failed(another, "new", boom) }, want: []facts.Peer{{Sync: another, Declares: owned}}},
		"InTurnDeadHost": {reason: "A host that hangs is asked once, not by every sync.", inTurn: true, does: func(p *Peers) { p.fetched(another, boom) }, want: []facts.Peer{{Sync: another, Declares: owned}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Peers{InTurn: tc.inTurn}
			p.Join(asking, Member{Repository: "repo", Ref: "main"})
			if tc.as.Repository == "" && !tc.as.Flux {
				tc.as.Repository, tc.as.Ref = "repo", "main"
			}
			p.Join(another, tc.as)
			p.declared(asking, desired("new", "main"), nil, nil)
			if tc.does != nil {
				tc.does(p)
			}
			w := wait{revision: "new", timeout: 1 << 40, owned: func(context.Context, inventory.Sync) (map[manifest.ID]bool, error) {
				if tc.unread != nil {
					return nil, tc.unread
				}
				return owned, nil
			}}
			if tc.over {
				w.timeout = 0
			}
			var waits []inventory.Sync
			for _, peer := range p.others(asking, "new") {
				if peer.Declares == nil {
					waits = append(waits, peer.Sync)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // do not wait a moment for the other sync
			p.ask(ctx, asking, w, waits)
			if diff := cmp.Diff(tc.want, p.others(asking, "new")); diff != "" {
				t.Errorf("%s\nothers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A prune must wait for each sync that the same commit may change, however its Sync is written; and for no other one.
func TestSpellings(t *testing.T) {
	main := Member{Repository: "git.example.org/platform", Ref: "main"}
	with := func(edit func(*Member)) Member {
		m := main
		edit(&m)
		return m
	}
	ref := func(ref string) Member { return with(func(m *Member) { m.Ref = ref }) }
	for name, tc := range map[string]struct {
		ours, theirs   Member
		branch, behind string // of what they have rendered
		shares         bool
	}{
		"Same":            {ours: main, theirs: main, shares: true},
		"Full":            {ours: main, theirs: ref("refs/heads/main"), branch: "main", shares: true},
		"Heads":           {ours: ref("heads/main"), theirs: main, branch: "main", shares: true},
		"BothFull":        {ours: ref("refs/heads/main"), theirs: ref("refs/heads/main"), branch: "main", shares: true},
		"Default":         {ours: main, theirs: ref(""), branch: "main", shares: true},
		"Head":            {ours: main, theirs: ref("HEAD"), branch: "main", shares: true},
		"DefaultKnown":    {ours: main, theirs: ref("HEAD"), branch: "main", behind: "main", shares: true},
		"OtherDefault":    {ours: main, theirs: ref(""), branch: "main", behind: "trunk"},
		"OursIsDefault":   {ours: ref(""), theirs: main, branch: "main", shares: true},
		"OursIsAnother":   {ours: ref(""), theirs: main, branch: "trunk"},
		"OtherBranch":     {ours: main, theirs: ref("prod"), branch: "main"},
		"OtherFull":       {ours: main, theirs: ref("refs/heads/prod"), branch: "main"},
		"Tag":             {ours: main, theirs: ref("refs/tags/main"), branch: "main"},
		"SameTag":         {ours: ref("v1"), theirs: ref("v1"), shares: true},
		"Range":           {ours: ref("semver:>=1"), theirs: main},
		"Case":            {ours: main, theirs: with(func(m *Member) { m.Repository = "git.example.org/Platform" }), branch: "main", shares: true},
		"OtherRepository": {ours: main, theirs: with(func(m *Member) { m.Repository += "s" }), branch: "main"},
		"CaseOfABranch":   {ours: main, theirs: ref("Main"), branch: "main"},
		"OtherCluster":    {ours: main, theirs: with(func(m *Member) { m.Cluster = "far" }), branch: "main"},
		"SameCluster":     {ours: with(func(m *Member) { m.Cluster = "far" }), theirs: with(func(m *Member) { m.Cluster = "far" }), branch: "main", shares: true},
		"OursIsAny":       {ours: with(func(m *Member) { m.Cluster = AnyCluster }), theirs: main, branch: "main", shares: true},
		"AnyCluster":      {ours: main, theirs: with(func(m *Member) { m.Cluster = AnyCluster }), branch: "main", shares: true},
	} {
		ours, theirs := &member{Member: tc.ours, branch: tc.branch}, &member{Member: tc.theirs, branch: tc.behind}
		if got := theirs.sharesBranch(ours); got != tc.shares {
			t.Errorf("%s: one commit changes both: %t, want %t", name, got, tc.shares)
		}
	}
}

// A wait is for one commit: the next one may move other objects.
func TestEveryCommitIsWaitedForAnew(t *testing.T) {
	p := &Peers{}
	p.Join(asking, Member{Repository: "repo"})
	p.Join(another, Member{Repository: "repo"})
	p.fetched(another, errors.New("boom"))
	reads := 0
	over := wait{revision: "new", owned: func(context.Context, inventory.Sync) (map[manifest.ID]bool, error) { reads++; return owned, nil }}
	if !p.ask(t.Context(), asking, over, []inventory.Sync{another}) || reads != 1 {
		t.Errorf("the inventory was read %d times", reads)
	}
	if of := p.others(asking, "newer"); of[0].Declares != nil {
		t.Errorf("the wait for the next commit is over: %v", of)
	}
}

// A sync of another process shows only what it takes over. A prune waits until it has planned the commit, however long its process is away.
func TestPeersElsewhere(t *testing.T) {
	none, takes := map[manifest.ID]bool{}, map[string]bool{"ConfigMap/team/moves": true}
	main, moves, nothing := Member{Repository: "repo", Ref: "main"}, Moves{Takes: []string{"ConfigMap/team/moves"}}, map[string]bool{}
	cases := map[string]struct {
		reason string
		shows  Elsewhere
		over   bool // the wait is over
		want   []facts.Peer
	}{
		"Planned":      {reason: "The object moves to it.", shows: Elsewhere{Member: main, Planned: "new", Moves: moves}, want: []facts.Peer{{Sync: another, Elsewhere: true, Declares: none, Takes: takes, Gives: nothing}}},
		"Behind":       {reason: "The commit may declare the object there.", shows: Elsewhere{Member: main, Planned: "old"}, want: []facts.Peer{{Sync: another, Elsewhere: true, Takes: nothing, Gives: nothing}}},
		"BehindLong":   {reason: "Its process is away, and comes back.", shows: Elsewhere{Member: main, Planned: "old"}, over: true, want: []facts.Peer{{Sync: another, Elsewhere: true, Takes: nothing, Gives: nothing}}},
		"Broken":       {reason: "It may be corrected.", shows: Elsewhere{Member: main, Tried: "new", Broken: "boom"}, want: []facts.Peer{{Sync: another, Elsewhere: true, Takes: nothing, Gives: nothing, Reason: "boom"}}},
		"BrokenLong":   {reason: "It does not stop prunes for ever, and what it took over before counts.", shows: Elsewhere{Member: main, Planned: "old", Moves: moves, Tried: "new", Broken: "boom"}, over: true, want: []facts.Peer{{Sync: another, Elsewhere: true, Declares: none, Takes: takes, Gives: nothing}}},
		"BrokenOther":  {reason: "It has not tried this commit.", shows: Elsewhere{Member: main, Tried: "old", Broken: "boom"}, over: true, want: []facts.Peer{{Sync: another, Elsewhere: true, Takes: nothing, Gives: nothing, Reason: "boom"}}},
		"More":         {reason: "It does not show all that it takes over.", shows: Elsewhere{Member: main, Planned: "new", Moves: moves, More: true}, over: true, want: []facts.Peer{{Sync: another, Elsewhere: true, Takes: takes, Gives: nothing}}},
		"OtherBranch":  {reason: "One commit cannot change both.", shows: Elsewhere{Member: Member{Repository: "repo", Ref: "prod"}}},
		"OtherDefault": {reason: "The default branch has another name.", shows: Elsewhere{Member: Member{Repository: "repo"}, Planned: "old", Branch: "trunk"}},
		"AnyDefault":   {reason: "The default branch may have this name.", shows: Elsewhere{Member: Member{Repository: "repo"}}, want: []facts.Peer{{Sync: another, Elsewhere: true, Takes: nothing, Gives: nothing}}},
		"AnyPlace":     {reason: "Its kubeconfig may name this cluster by another address.", shows: Elsewhere{Member: Member{Repository: "repo", Ref: "main", Cluster: AnyCluster}}, want: []facts.Peer{{Sync: another, Elsewhere: true, Takes: nothing, Gives: nothing}}},
		"OtherPlace":   {reason: "They do not write the same objects.", shows: Elsewhere{Member: Member{Repository: "repo", Ref: "main", Cluster: "far"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &Peers{}
			p.Join(asking, main)
			p.declared(asking, desired("new", "main"), nil, nil)
			p.See(another, tc.shows)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			w := wait{revision: "new", timeout: 1 << 40, owned: func(context.Context, inventory.Sync) (map[manifest.ID]bool, error) {
				return nil, errors.New("the inventory is not for this process")
			}}
			if tc.over {
				w.timeout = 0
			}
			for _, peer := range p.others(asking, "new") {
				if peer.Declares == nil {
					p.ask(ctx, asking, w, []inventory.Sync{another})
				}
			}
			if diff := cmp.Diff(tc.want, p.others(asking, "new")); diff != "" {
				t.Errorf("%s\nothers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What a sync of another process shows wakes those that wait for it, and no others.
func TestElsewhereWakes(t *testing.T) {
	main := Member{Repository: "repo", Ref: "main"}
	for name, tc := range map[string]struct {
		prepare func(p *Peers)
		wakes   bool
	}{
		"Nothing": {func(*Peers) {}, false},
		"Prunes":  {func(p *Peers) { p.planned(asking, nil, true) }, true},
		"TakesOver": {func(p *Peers) {
			p.declared(asking, desired("new", "main"), nil, map[manifest.ID]string{{Kind: "ConfigMap", Namespace: "team", Name: "moves"}: another.Key()})
		}, true},
		"OtherBranch": {func(p *Peers) { p.Join(asking, Member{Repository: "repo", Ref: "prod"}); p.planned(asking, nil, true) }, false},
		"Again":       {func(p *Peers) { p.See(another, Elsewhere{Member: main, Planned: "new"}); p.planned(asking, nil, true) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Peers{}
			p.Join(asking, main)
			p.declared(asking, desired("new", "main"), nil, nil)
			tc.prepare(p)
			p.See(another, Elsewhere{Member: main, Planned: "new"})
			woken := false
			p.woken(asking).Listen(func() { woken = true })
			if woken != tc.wakes {
				t.Errorf("woken: %t", woken)
			}
		})
	}
}

// A pass over an older commit, because the newest one waits for a dependency, does not hide what the newest one declares.
func TestOlderCommitDeclaresNothing(t *testing.T) {
	p := &Peers{}
	p.Join(asking, Member{Repository: "repo"})
	p.declared(asking, desired("new", "main"), both, map[manifest.ID]string{{Kind: "ConfigMap", Namespace: "team", Name: "moves"}: another.Key()})
	p.fetched(asking, errors.New("waits"))
	p.declared(asking, desired("old", "main"), last, nil)
	if shows := p.Shows(asking); shows.Planned != "new" || shows.Branch != "main" || len(shows.Takes) != 1 || !p.Knows(asking, "new") {
		t.Errorf("%+v", shows)
	}
	p.fetched(asking, nil)
	p.declared(asking, desired("old", "main"), last, nil)
	if !p.Knows(asking, "old") {
		t.Error("a branch that was reset declares what it declared before")
	}
}

func desired(revision, branch string) render.Desired {
	return render.Desired{Revision: revision, Source: render.SourceID{Branch: branch}}
}
