package guard

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// gone returns a commit that keeps one object, and a cluster with buckets and ConfigMaps that it does not want any more.
func gone(t *testing.T, buckets, configMaps int) (render.Desired, facts.Observed) {
	t.Helper()
	names := []string{"keep"}
	for i := range configMaps {
		names = append(names, fmt.Sprint("c", i))
	}
	seen := given.Owning(t, names...)
	seen.Kinds = maps.Clone(given.Kinds)
	seen.Kinds[schema.GroupKind{Group: "example.org", Kind: "Bucket"}] = plan.Kind{Resource: "buckets", Namespaced: true, Categories: []string{"managed"}}
	for i := range buckets {
		bucket := given.Thing("example.org/v1", "Bucket", fmt.Sprint("b", i), "spec", map[string]any{})
		id, uid := manifest.IDOf(bucket), types.UID(fmt.Sprint("bucket ", i))
		seen.Objects[id] = given.Live(bucket, uid)
		seen.Inventory.Entries[id] = inventory.Entry{UID: uid}
	}
	return render.Desired{Revision: "1", Objects: []render.Object{given.Wanted(t, given.ConfigMap("keep"))}}, seen
}

// byGuard counts the steps by the guards that hold them; "" counts the prunes.
func byGuard(p plan.Plan) map[string]int {
	counts := map[string]int{}
	for _, s := range p.Steps {
		switch s.Action {
		case plan.Prune:
			counts[""]++
		case plan.Hold:
			for _, name := range []plan.GuardName{External, Rebuilt, Many, draft.History, plan.Unfinished} {
				if s.IsHeldBy(name) {
					counts[string(name)]++
				}
			}
		}
	}
	return counts
}

// The guard many counts the prunes that other guards let pass. What it will hold once these are approved is asked at the same time.
func TestManyBesideExternal(t *testing.T) {
	want, seen := gone(t, 21, 3)
	guards := Guarding{}.Guards()
	held := given.Computed(t, want, seen, guards...)
	if got := byGuard(held); !maps.Equal(got, map[string]int{"": 3, "external": 21, "many": 21}) {
		t.Fatalf("The buckets wait, and the ConfigMaps go: %v", got)
	}
	asks := held.Approval
	if asks == nil || asks.Steps != 21 || !slices.Equal(asks.Guards, []plan.GuardName{External, Many}) {
		t.Fatalf("One digest covers both reasons of each bucket: %+v", asks)
	}
	seen.Approvals = approval.Given{inventory.OnSync: approval.Typed(asks.Digest)}
	p := given.Computed(t, want, seen, guards...)
	if got := byGuard(p); !maps.Equal(got, map[string]int{"": 24}) || p.Approval != nil {
		t.Errorf("All of them are approved: %v, and still asks for %+v", got, p.Approval)
	}
	for _, s := range p.Steps {
		if want := s.ID.Kind == "Bucket"; s.Approved != want {
			t.Errorf("%s: approved %t, want %t", s.ID, s.Approved, want)
		}
	}

	// Git approves only the deletion of external resources.
	var external []string
	for _, s := range held.Steps {
		for _, c := range s.Claims() {
			if c.Guard == string(External) {
				external = append(external, c.Digest())
			}
		}
	}
	seen.Approvals = approval.Given{inventory.InComment: approval.Typed(external...)}
	if got := byGuard(given.Computed(t, want, seen, guards...)); !maps.Equal(got, map[string]int{"many": 24}) {
		t.Errorf("Nobody was asked whether so many should go: %v", got)
	}
}

// An approval past one guard lifts no other guard, neither of the same plan nor of a later one.
func TestApprovalLiftsOneReason(t *testing.T) {
	guards := Guarding{}.Guards()
	want, seen := gone(t, 1, 0)
	bucket := manifest.ID{Group: "example.org", Kind: "Bucket", Namespace: "default", Name: "b0"}
	for id := range seen.Inventory.Entries {
		if id.Kind == "Bucket" {
			bucket = id
		}
	}
	claim := func(guard plan.GuardName) approval.Claim {
		of := approval.Claim{Guard: string(guard), Action: string(plan.Prune), Of: bucket}
		if guard == Rebuilt {
			of.Cause = approval.Object(seen.Objects[bucket].UID)
		}
		return of
	}
	rebuilt := seen
	rebuilt.Inventory.Entries = maps.Clone(seen.Inventory.Entries)
	rebuilt.Inventory.Entries[bucket] = inventory.Entry{UID: seen.Inventory.Entries[bucket].UID, Rebuilt: true}
	refused := seen
	refused.Objects = maps.Clone(seen.Objects)
	other := given.ConfigMap("other")
	broken := want
	broken.Objects = append(slices.Clone(want.Objects), given.Wanted(t, other))
	refused.Trials = map[manifest.ID]facts.Trial{manifest.IDOf(other): {Err: fmt.Errorf("refused")}}
	for name, tc := range map[string]struct {
		reason   string
		want     render.Desired
		seen     facts.Observed
		approved []plan.GuardName
		held     map[string]int
	}{
		"Both":        {"Both guards hold it.", want, rebuilt, nil, map[string]int{"external": 1, "rebuilt": 1}},
		"External":    {"Its marks alone still show that it is ours.", want, rebuilt, []plan.GuardName{External}, map[string]int{"rebuilt": 1}},
		"Rebuilt":     {"The bucket still goes with it.", want, rebuilt, []plan.GuardName{Rebuilt}, map[string]int{"external": 1}},
		"All":         {"Everything is approved.", want, rebuilt, []plan.GuardName{External, Rebuilt}, map[string]int{"": 1}},
		"Unfinished":  {"What replaces it was refused.", broken, refused, []plan.GuardName{External, Many}, map[string]int{"unfinished": 1}},
		"ReallyAll":   {"A person wants it gone all the same.", broken, refused, []plan.GuardName{External, plan.Unfinished}, map[string]int{"": 1}},
		"NotExternal": {"The bucket still goes with it.", broken, refused, []plan.GuardName{plan.Unfinished}, map[string]int{"external": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var digests []string
			for _, guard := range tc.approved {
				digests = append(digests, claim(guard).Digest())
			}
			tc.seen.Approvals = approval.Given{inventory.InComment: approval.Typed(digests...)}
			p := given.Computed(t, tc.want, tc.seen, guards...)
			if got := byGuard(p); !maps.Equal(got, tc.held) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.held)
			}
			if tc.held[""] > 0 {
				return
			}
			// The approval of the whole plan covers exactly the remaining reasons.
			tc.seen.Approvals[inventory.OnSync] = approval.UpTo(p.Approval.UpTo, p.Approval.Digest)
			if got := byGuard(given.Computed(t, tc.want, tc.seen, guards...)); got[""] != 1 {
				t.Errorf("%s\napproved as a whole: %v", tc.reason, got)
			}
		})
	}
}
