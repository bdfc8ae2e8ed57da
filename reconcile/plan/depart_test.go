package plan

import (
	"cmp"
	"testing"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each phase of the prune of an MRD is found from what the cluster holds, so that a pass that was killed anywhere goes on
// where it was. A CRD that went with its MRD would take every custom resource along.
func TestKeepCRDs(t *testing.T) {
	mrd := crossplane.MRD("boats.example.org")
	crd := []manifest.ID{CRD("boats.example.org")}
	for name, tc := range map[string]struct {
		reason           string
		action           Action // "" is a prune
		protected, going bool
		unknown          bool // not read yet
		answer           Answer
		do               Do
		more, waits      bool
	}{
		"Alone":       {reason: "Without a CRD that would go along, the MRD is deleted.", do: DoDelete},
		"Protect":     {reason: "Else it is kept first.", answer: Answer{Count: 1, These: crd}, do: DoProtect, more: true},
		"NotAsked":    {reason: "Also while that is not known.", unknown: true, do: DoProtect, more: true},
		"Unreadable":  {reason: "An unreadable object is not deleted.", answer: Answer{Unknown: Failed.With("forbidden")}, do: DoDelete},
		"Delete":      {reason: "Then it is deleted.", protected: true, answer: Answer{Count: 1, These: crd}, do: DoDelete, more: true},
		"LeftOver":    {reason: "A finalizer that nothing needs comes off first.", protected: true, do: DoUnprotect, more: true},
		"Waits":       {reason: "Crossplane may not have seen it go yet.", protected: true, going: true, answer: Answer{Count: 1, These: crd, Example: "EstablishedManagedResource"}, waits: true},
		"WaitsOwned":  {reason: "Also where the garbage collector was faster.", protected: true, going: true, answer: Answer{Count: 1, Example: "EstablishedManagedResource"}, waits: true},
		"Disown":      {reason: "Once it has, it makes nothing the owner any more.", protected: true, going: true, answer: Answer{Count: 1, These: crd, Example: crossplane.Terminating}, do: DoDisown, more: true},
		"Unprotect":   {reason: "Only a CRD without that owner outlives the MRD.", protected: true, going: true, answer: Answer{Count: 1, Example: crossplane.Terminating}, do: DoUnprotect},
		"OtherOwner":  {reason: "A CRD that a package revision owns too loses the dead owner as well.", protected: true, going: true, answer: Answer{These: crd}, do: DoDisown, more: true},
		"GoesUnasked": {reason: "While that is not known, our finalizer stays.", protected: true, going: true, unknown: true, waits: true},
		"Wanted":      {reason: "An MRD that is wanted again and goes all the same takes its CRD along as any other.", action: Update, protected: true, going: true, answer: Answer{Count: 1, These: crd, Example: "EstablishedManagedResource"}, waits: true},
		"WantedOwned": {reason: "So the CRD is freed first.", action: Update, protected: true, going: true, answer: Answer{Count: 1, These: crd, Example: crossplane.Terminating}, do: DoDisown, more: true},
		"WantedFreed": {reason: "Then the MRD is let go, and made again.", action: Update, protected: true, going: true, answer: Answer{Count: 1, Example: crossplane.Terminating}, do: DoUnprotect, more: true},
		"WantedStays": {reason: "One that does not go just loses our finalizer.", action: Update, protected: true, unknown: true, do: DoUnprotect},
		"Leaves":      {reason: "Nor does one take its CRD along that the sync releases.", action: Release, protected: true, going: true, answer: Answer{Count: 1, These: crd, Example: "EstablishedManagedResource"}, waits: true},
		"LeavesOwned": {reason: "So the CRD is freed first.", action: Release, protected: true, going: true, answer: Answer{Count: 1, These: crd, Example: crossplane.Terminating}, do: DoDisown, more: true},
		"LeavesFreed": {reason: "Then the MRD is released.", action: Release, protected: true, going: true, answer: Answer{Count: 1, Example: crossplane.Terminating}, do: DoRelease},
		"LeavesStays": {reason: "One that does not go is released at once.", action: Release, protected: true, unknown: true, do: DoRelease},
		"GoneAlready": {reason: "Headgate sends nothing for an MRD that a user is deleting.", going: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan{Steps: []Step{{ID: mrd, Action: cmp.Or(tc.action, Prune), UID: "u", Write: Write{frees: tc.action == Update}, Removal: Removal{protected: tc.protected, Deleting: tc.going && !tc.protected}, going: tc.going}}}
			var seen Observed
			if !tc.unknown {
				seen.Answers = map[Question]Answer{{Ask: Departs, Of: mrd}: tc.answer}
			}
			p.keepCRDs(seen)
			s := p.Steps[0]
			if s.Do() != tc.do || s.More() != tc.more || s.Waiting() != tc.waits || (s.Err == nil) != tc.answer.Unknown.None() || (len(p.open) > 0) != (tc.unknown && (tc.going || tc.action == "")) {
				t.Errorf("%s\n%q, more %v, waits for %q, error %v, open questions %v", tc.reason, s.Do(), s.More(), s.Waits, s.Err, p.open)
			}
		})
	}
}

// An MRD that a user is deleting may be gone before Headgate looks again. The CRD that stays is recorded before, as it would
// be served and unmentioned for ever; a CRD that the garbage collector deletes is not reported as one that stays.
func TestMRDThatAUserDeletes(t *testing.T) {
	mrd, crd := crossplane.MRD("boats.example.org"), CRD("boats.example.org")
	for name, tc := range map[string]struct {
		reason     string
		finalizers []string
		owned      bool
		stays      bool
	}{
		"Orphan":     {reason: "kubectl delete --cascade=orphan leaves the CRD", finalizers: []string{metav1.FinalizerOrphanDependents}, owned: true, stays: true},
		"Orphaned":   {reason: "the garbage collector has removed the owner, and its finalizer not yet", finalizers: []string{metav1.FinalizerOrphanDependents}, stays: true},
		"Disowned":   {reason: "a CRD without an owner stays", finalizers: []string{"example.org/other"}, stays: true},
		"Foreground": {reason: "kubectl delete deletes the CRD, too", finalizers: []string{metav1.FinalizerDeleteDependents}, owned: true},
		"Background": {reason: "also where another finalizer delays it", finalizers: []string{"example.org/other"}, owned: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := Answer{UID: "c"}
			if tc.owned {
				a.These = []manifest.ID{crd}
			}
			seen := Observed{
				Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{mrd: {UID: "u"}}},
				Objects:   map[manifest.ID]*metav1.PartialObjectMetadata{mrd: {ObjectMeta: metav1.ObjectMeta{UID: "u", Finalizers: tc.finalizers}}},
			}
			p := Plan{Want: render.Desired{Owner: render.OwnerCrossplane}, Steps: []Step{{ID: mrd, Action: Prune, UID: "u", going: true, Removal: Removal{Deleting: true}}}}
			p.keepCRDs(seen)
			if len(p.open) != 1 || len(p.behind) > 0 {
				t.Fatalf("Before the answer, the plan asks for the fate of the CRD: %v, %v", p.open, p.behind)
			}
			seen.Answers = map[Question]Answer{{Ask: Departs, Of: mrd}: a}
			p.keepCRDs(seen)
			next := inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{}}
			p.takeLeft(&next, []Outcome{{ID: mrd, Action: Prune}})
			if e, recorded := next.Entries[crd]; recorded != tc.stays || recorded && e.UID != "c" {
				t.Errorf("%s: %+v", tc.reason, next.Entries)
			}
		})
	}
}
