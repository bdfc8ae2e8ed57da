package plan

import (
	"cmp"
	"testing"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
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
		unknown          bool // nobody asked yet
		answer           Answer
		do               Do
		more, waits      bool
	}{
		"Alone":       {reason: "Without a CRD that would go along, the MRD is deleted.", do: DoDelete},
		"Protect":     {reason: "Else it is kept first.", answer: Answer{Count: 1, These: crd}, do: DoProtect, more: true},
		"NotAsked":    {reason: "Also while that is not known.", unknown: true, do: DoProtect, more: true},
		"Unreadable":  {reason: "What cannot be read is not deleted.", answer: Answer{Unknown: Failed.With("forbidden")}, do: DoDelete},
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
		"GoneAlready": {reason: "What only waits for others is nothing to send for.", going: true},
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
