package report

import (
	"errors"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/memory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A package that could not be read is not an empty one: no number counts its definitions as 0.
func TestUnreadPackagesAreNotKnown(t *testing.T) {
	unread := func(kind string) render.Desired {
		return render.Desired{Unread: []catalogue.Unread{{Source: "a", Installers: []manifest.ID{{Group: crossplane.Packages, Kind: kind, Name: "a"}}, Err: errors.New("no")}}}
	}
	cases := map[string]struct {
		reason          string
		before, after   render.Desired
		counts          Summary
		numbers, memory string
	}{
		"After":    {"The head upgrades to a version that cannot be read.", render.Desired{}, unread(crossplane.Provider), Summary{Active: 3, Definitions: 9, Inactive: 6}, "3 active, 6 inactive, definitions of 1 package not known", "not known, because 1 package could not be read"},
		"Before":   {"The base cannot be read, so the difference is not known.", unread(crossplane.Configuration), render.Desired{}, Summary{Active: 3, Definitions: 3}, "3 active, 0 inactive", "not known, because 1 package could not be read"},
		"Nothing":  {"The commit has no other definitions.", render.Desired{}, unread(crossplane.Provider), Summary{Unchanged: 2}, "definitions of 1 package not known", "not known, because 1 package could not be read"},
		"Function": {"A function has no definitions.", render.Desired{}, unread(crossplane.Function), Summary{Active: 1, Definitions: 1}, "1 active, 0 inactive", "about 0 MiB → 0 MiB (+0 MiB) for 0 CRDs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.counts.Unknown = tc.after.Unknown()
			if got := tc.counts.String(); got != tc.numbers {
				t.Errorf("%s\nSummary.String(): want %q, got %q", tc.reason, tc.numbers, got)
			}
			of := memory.Compare(tc.before, tc.after, nil)
			if got := of.String(); got != tc.memory || of.Differs() != (of.Unknown > 0) {
				t.Errorf("%s\nChange.String(): want %q, got %q", tc.reason, tc.memory, got)
			}
			if line := (Report{Summary: tc.counts}).Line(); !strings.Contains(line, tc.numbers) {
				t.Errorf("%s\nLine(): %q lacks %q", tc.reason, line, tc.numbers)
			}
		})
	}
}
