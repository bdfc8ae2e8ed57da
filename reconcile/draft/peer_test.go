package draft_test

import (
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/rounds"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// If one sync of a process drops an object and another one declares it, the object is handed over. Everything else is pruned or
// held as before, because a wrong guess would delete an object or take it from its owner.
func TestPeers(t *testing.T) {
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	home := id
	home.Namespace = "default"
	theirs := inventory.Sync{Namespace: "team", Name: "other"}
	marked := given.Labelled(inventory.SyncLabel, theirs.Key())
	declares := func(takes bool) map[manifest.ID]bool { return map[manifest.ID]bool{home: takes} }
	none := map[manifest.ID]bool{}
	cases := map[string]struct {
		reason   string
		peer     facts.Peer
		declared bool // whether this sync, which is not the owner, declares the object
		adoption facts.Adoption
		ends     plan.Stance
		going    bool
		want     plan.Action
		code     reason.Code
		waits    reason.Code
		awaits   bool
	}{
		"Declares":        {reason: "The peer will take the object over.", peer: facts.Peer{Declares: declares(true)}, want: plan.Keep, code: reason.TakenOverBySync},
		"DeclaresNothing": {reason: "No commit declares the object.", peer: facts.Peer{Declares: none}, want: plan.Prune},
		"Observes":        {reason: "An observing peer would not own the object.", peer: facts.Peer{Declares: declares(false)}, want: plan.Prune},
		"Awaited":         {reason: "The commit may declare the object there.", want: plan.Prune, waits: reason.AwaitsSync, awaits: true},
		"Broken":          {reason: "The peer may be corrected.", peer: facts.Peer{Reason: "boom"}, want: plan.Prune, waits: reason.AwaitsBrokenSync, awaits: true},
		"Ends":            {reason: "The peer will take over what has no owner any more.", peer: facts.Peer{Declares: declares(true)}, ends: plan.Destroying, want: plan.Release, code: reason.TakenOverBySync},
		"EndsAlone":       {reason: "A destroy may concern this sync alone.", peer: facts.Peer{Declares: none}, ends: plan.Destroying, want: plan.Prune},
		"EndsAwaited":     {reason: "The peer may declare the object.", ends: plan.Destroying, want: plan.Prune, waits: reason.AwaitsSync, awaits: true},
		"Going":           {reason: "The object is already being deleted.", going: true, want: plan.Prune, code: reason.Deleting},

		"Elsewhere":        {reason: "No commit declares the object.", peer: facts.Peer{Elsewhere: true, Declares: none}, want: plan.Prune},
		"TakesElsewhere":   {reason: "The peer takes the object over once it has no owner.", peer: facts.Peer{Elsewhere: true, Declares: none, Takes: map[string]bool{home.String(): true}}, want: plan.Keep, code: reason.TakenOverBySync},
		"AwaitedElsewhere": {reason: "The commit may declare the object there.", peer: facts.Peer{Elsewhere: true}, want: plan.Prune, waits: reason.AwaitsSync, awaits: true},
		"GoingElsewhere":   {reason: "The object is already being deleted.", peer: facts.Peer{Elsewhere: true, Declares: none, Takes: map[string]bool{home.String(): true}}, going: true, want: plan.Prune, code: reason.Deleting},

		"LeftElsewhere": {reason: "The owner gives the object up.", peer: facts.Peer{Elsewhere: true, Gives: map[string]bool{home.String(): true}}, declared: true, want: plan.Update, code: reason.TakenOver},
		"KeptElsewhere": {reason: "What its owner declares is not known.", peer: facts.Peer{Elsewhere: true, Declares: none}, declared: true, want: plan.Hold, code: reason.OwnedByTool},
		"Left":          {reason: "The owning peer no longer declares the object.", peer: facts.Peer{Declares: none}, declared: true, want: plan.Update, code: reason.TakenOver},
		"Kept":          {reason: "Both syncs declare the object.", peer: facts.Peer{Declares: declares(true)}, declared: true, want: plan.Hold, code: reason.OwnedByTool},
		"KeptObserved":  {reason: "Both syncs declare the object, and the peer observes it.", peer: facts.Peer{Declares: declares(false)}, declared: true, want: plan.Hold, code: reason.OwnedByTool},
		"LeftAwaited":   {reason: "The owner may still declare the object.", declared: true, want: plan.Hold, code: reason.OwnedByTool, awaits: true},
		"LeftRefused":   {reason: "This sync adopts nothing.", peer: facts.Peer{Declares: none}, declared: true, adoption: facts.AdoptNone, want: plan.Hold, code: reason.OwnedByTool},
		"OfAnother":     {reason: "The owner is another sync than the known peer.", peer: facts.Peer{Sync: inventory.Sync{Namespace: "team", Name: "third"}, Declares: none}, declared: true, want: plan.Hold, code: reason.OwnedByTool},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.peer.Sync == (inventory.Sync{}) {
				tc.peer.Sync = theirs
			}
			kept := given.Wanted(t, given.ConfigMap("kept"))
			want := render.Desired{Objects: []render.Object{kept}}
			seen := facts.Observed{
				Ground: facts.Ground{
					Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{}},
					Kinds:     given.Kinds,
					Stance:    tc.ends,
				},
				Live:  facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")}},
				Given: facts.Given{Peers: []facts.Peer{tc.peer}, Terms: facts.Terms{Adoption: tc.adoption}},
			}
			if tc.going {
				now := metav1.Now()
				seen.Objects[id].DeletionTimestamp = &now
			}
			if tc.declared {
				want.Objects = []render.Object{given.Wanted(t, u)}
				seen.Objects[id] = given.Live(u, "u", marked)
				seen.Trials = map[manifest.ID]facts.Trial{id: {Live: u, After: given.ConfigMap("b")}}
			} else {
				seen.Inventory.Entries[id] = inventory.Entry{UID: "u"}
			}
			p := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
			for _, s := range p.Steps {
				if s.ID != id {
					continue
				}
				if s.Action != tc.want || s.Reason.Code != tc.code {
					t.Errorf("%s\n%s %s, want %s %s", tc.reason, s.Action, s.Reason, tc.want, tc.code)
				}
				var waits reason.Code
				for _, w := range s.Waits {
					waits = w.Code
				}
				if waits != tc.waits {
					t.Errorf("%s\nwaits for %q, want %q", tc.reason, waits, tc.waits)
				}
			}
			if awaits := len(draft.Awaits(p, seen)) > 0; awaits != tc.awaits {
				t.Errorf("%s\nasks the peer: %t", tc.reason, awaits)
			}
			if hands := len(draft.HandsTo(p, seen)) > 0; hands != (tc.want == plan.Keep) {
				t.Errorf("%s\nwakes the peer: %t", tc.reason, hands)
			}
		})
	}
}

// A sync declares its objects with their identities in the cluster, and takes over those that it may apply.
func TestDeclares(t *testing.T) {
	observed := given.ConfigMap("observed")
	observed.SetAnnotations(map[string]string{inventory.PolicyAnnotation: string(inventory.Observable)})
	want := render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("a")), given.Wanted(t, observed)}}
	for adoption, takes := range map[facts.Adoption]bool{facts.AdoptUnowned: true, facts.AdoptNone: false, facts.AdoptAll: false} {
		seen, err := demand.Ask(facts.Observed{Ground: facts.Ground{Kinds: given.Kinds}, Given: facts.Given{Terms: facts.Terms{Adoption: adoption}}}, want)
		if err != nil {
			t.Fatal(err)
		}
		all := seen.Declares(func(manifest.ID) bool { return adoption != facts.AdoptAll }) // the function stands for a sync that must not apply the object
		at := func(name string) manifest.ID { return manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: name} }
		if is, has := all[at("a")]; !has || is != takes {
			t.Errorf("%q: %v", adoption, all)
		}
		if is, has := all[at("observed")]; !has || is {
			t.Errorf("It declares what it observes, and does not take it over: %v", all)
		}
		theirs := given.Labelled(inventory.SyncLabel, "team.other")
		seen.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{}
		for _, a := range seen.Asked {
			seen.Objects[a.ID] = given.Live(given.ConfigMap(a.ID.Name), "u", theirs)
		}
		if all := seen.Takes(func(manifest.ID) bool { return adoption != facts.AdoptAll }); len(all) > 0 != takes || takes && all[at("a")] != "team.other" {
			t.Errorf("%q: of another sync, it takes over %v", adoption, all)
		}
		may := func(manifest.ID) bool { return true }
		seen.Objects, seen.Unreadable = nil, map[schema.GroupKind]error{{Kind: "ConfigMap"}: given.ErrBoom}
		if all := seen.Takes(may); len(all) > 0 != (adoption != facts.AdoptNone) {
			t.Errorf("%q: of what it could not read, it may take over %v", adoption, all)
		}
		seen.Inventory.Entries = map[manifest.ID]inventory.Entry{seen.Asked[0].ID: {UID: "u"}, seen.Asked[1].ID: {UID: "u"}}
		if all := seen.Takes(may); len(all) > 0 {
			t.Errorf("%q: of what it owns, it takes over %v", adoption, all)
		}
	}
}

// A prune that waits for a peer ends as soon as the peer owns the object. The pass announced a prune, and a release changes less.
func TestPeerTakesOverInTheMeantime(t *testing.T) {
	u := given.ConfigMap("a")
	id := manifest.IDOf(u)
	theirs := inventory.Sync{Namespace: "team", Name: "other"}
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Sync: given.Sync, ResourceVersion: "1", Entries: map[manifest.ID]inventory.Entry{id: {UID: "u"}}},
			Kinds:     given.Kinds,
		},
		Live:  facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{id: given.Live(u, "u")}},
		Given: facts.Given{Peers: []facts.Peer{{Sync: theirs}}},
	}
	want := render.Desired{Objects: []render.Object{given.Wanted(t, given.ConfigMap("kept"))}}
	times := rounds.Times{Limit: metav1.Duration{Duration: 300_000_000_000}}
	first := given.Computed(t, want, seen, guard.Guarding{}.Guards()...)
	round := rounds.Next(rounds.Pass{}, first, times)
	pass := rounds.Pass{}.After(round, []plan.Outcome{{ID: want.Objects[0].ID, Action: plan.Create}}, nil)
	for range 2 { // the round with the prune is also sent
		round = rounds.Next(pass, given.Computed(t, want, seen, guard.Guarding{}.Guards()...), times)
		pass = pass.After(round, nil, nil)
	}
	if round.Until != rounds.Again {
		t.Fatalf("The pass goes on: %v %v", round.Why, round.Until)
	}
	seen.Objects[id] = given.Live(u, "u", given.Labelled(inventory.SyncLabel, theirs.Key()))
	seen.Peers = []facts.Peer{{Sync: theirs, Declares: map[manifest.ID]bool{}}}
	for range 4 {
		round = rounds.Next(pass, given.Computed(t, want, seen, guard.Guarding{}.Guards()...), times)
		for _, s := range round.Send.Steps {
			if s.ID == id && s.Action == plan.Release && s.Writes() {
				return
			}
		}
		pass = pass.After(round, nil, nil)
	}
	t.Errorf("The object is never released: %v %v", round.Why, pass.Last.Steps)
}
