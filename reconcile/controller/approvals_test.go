package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/inventory"

	core "k8s.io/api/core/v1"
)

// Whoever may change a Sync could have written an approval in another name before the admission policy checked it.
func TestUnchecked(t *testing.T) {
	since := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	now := since.Add(time.Hour)
	for name, tc := range map[string]struct {
		reason  string
		by      string
		at      time.Time
		because string // why it does not count; "" if it counts
	}{
		"Checked":  {"The policy was in force.", "alice", since.Add(31 * time.Second), ""},
		"Nameless": {"The policy compares the name with the user.", "", now, "is not written as DIGEST by USER at TIME"},
		"Timeless": {"Without a time, it may be older than the policy.", "alice", time.Time{}, "has no time"},
		"Old":      {"An API server enforces a new policy after a while.", "alice", since.Add(30 * time.Second), "approve again after 2026-01-31T12:00:30Z"},
		"Early":    {"A clock may be ahead by a minute, and not by more.", "alice", now.Add(time.Minute), "future"},
		"Ahead":    {"A clock may be ahead by a minute.", "alice", now.Add(59 * time.Second), ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := v1alpha1.GivenApproval{By: tc.by}
			if !tc.at.IsZero() {
				a.At = tc.at.Format(time.RFC3339)
			}
			if why := unchecked(a, since, now); (why == "") != (tc.because == "") || !strings.Contains(why, tc.because) {
				t.Errorf("%s\ngot %q, want %q", tc.reason, why, tc.because)
			}
		})
	}
}

// The inventory remembers every approval that is used, and so an annotation must not be as long as the API server lets it be. One that is
// too long approves nothing, and forgets nothing that was used.
func TestLongAnnotation(t *testing.T) {
	for bytes, read := range map[int]bool{4096: true, 4097: false} {
		j := &subject{object: &v1alpha1.Sync{}, of: &controller{Options: Options{Ceilings: Ceilings{Approvals: ApprovalsNever}}, events: make(chan *core.Event, 9)}}
		j.object.Annotations = map[string]string{v1alpha1.ApproveAnnotation: strings.Repeat("d", bytes)}
		given := j.approvals()
		if all, is := given[inventory.OnSync]; is != read || len(all) > 0 {
			t.Errorf("%d bytes: %+v", bytes, given)
		}
		if told := len(j.of.events) == 1; told == read {
			t.Errorf("%d bytes: %d Events", bytes, len(j.of.events))
		}
	}
}

// The controller reads the annotation as the admission policy does. A text that the policy compared as a whole is one approval or none.
func TestEntries(t *testing.T) {
	d, e := strings.Repeat("a", 32), strings.Repeat("b", 32)
	const at = " at 2026-01-31T12:00:00Z"
	for text, want := range map[string][]v1alpha1.GivenApproval{
		"":                          nil,
		",\n,,":                     nil,
		d + " by alice" + at + "\n": {{Digest: d, By: "alice", At: "2026-01-31T12:00:00Z"}},
		d + " up to 12 by alice" + at + ", " + e + " by Bob B" + at: {{Digest: d, UpTo: "12", By: "alice", At: "2026-01-31T12:00:00Z"}, {Digest: e, By: "Bob B", At: "2026-01-31T12:00:00Z"}},

		d + " by mallory " + e + " by alice" + at:   {{Digest: d + " by mallory " + e + " by alice" + at}}, // the user "mallory bb… by alice"
		d + " by mallory up to 99" + at:             {{Digest: d + " by mallory up to 99" + at}},           // the user "mallory up to 99"
		d + " by mallory  m" + at:                   {{Digest: d + " by mallory  m" + at}},
		d + " by alice" + at + " " + e:              {{Digest: d + " by alice" + at + " " + e}},
		d + ", by alice" + at:                       {{Digest: d}, {Digest: "by alice" + at}},
		d + " by alice" + at + " at later, up to 9": {{Digest: d, By: "alice", At: "2026-01-31T12:00:00Z at later"}, {Digest: "up to 9"}},
	} {
		if got := entries(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
