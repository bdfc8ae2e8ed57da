//test:package raced served minutes=3
package forge

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// reported returns a report like that of a pass.
func reported(activation, drift report.Status) report.Report {
	r := report.Report{Revision: commit, Verdict: report.Verdict{Activation: activation, Drift: drift}}
	r.Sync.Namespace, r.Sync.Name = "headgate-system", "platform"
	return r
}

var green = reported(
	report.Status{State: report.Success, Description: "43 active (+2), 2000 inactive, 1 kept"},
	report.Status{State: report.Success, Description: "no drift"},
)

// posted is a Poster that fails for some contexts.
type posted struct {
	statuses []Status
	fails    map[string]error
}

func (p *posted) Post(_ context.Context, s Status) error {
	p.statuses = append(p.statuses, s)
	return p.fails[s.Context]
}

var (
	errBoom = errors.New("boom")
	errFull = errors.New("full")
)

func TestPublish(t *testing.T) {
	type want struct {
		statuses []Status
		errs     []error // the errors that the result wraps
	}
	const activation, drift = "headgate/production/platform/activation", "headgate/production/platform/drift"
	both := []Status{
		{Commit: commit, Context: activation, State: report.Success, Description: "43 active (+2), 2000 inactive, 1 kept", TargetURL: "https://status.example.org"},
		{Commit: commit, Context: drift, State: report.Success, Description: "no drift", TargetURL: "https://status.example.org"},
	}
	saying := func(state report.State, what string) []Status {
		out := []Status{both[0], both[1]}
		for i := range out {
			out[i].State, out[i].Description = state, what
		}
		return out
	}
	cases := map[string]struct {
		reason string
		report report.Report
		fails  map[string]error
		want   want
	}{
		"Both": {
			reason: "Activation and drift are separate results, and a branch protection may require either.",
			report: green,
			want:   want{statuses: both},
		},
		"Pending": {
			reason: "The author of the push sees immediately that work has begun.",
			report: report.Seen(green.Sync, green.Revision),
			want:   want{statuses: saying(report.Pending, "seen; the pass has not ended")},
		},
		"Superseded": {
			reason: "A commit that was never applied must not stay pending forever.",
			report: report.Superseded(green.Sync, green.Revision, "fedcba9876543210fedcba9876543210fedcba98"),
			want:   want{statuses: saying(report.Error, "superseded by fedcba987654 before it was applied")},
		},
		"NoCommit": {
			reason: "If the repository cannot be fetched, no commit can have a status.",
			report: report.Failed(green.Sync, "", errBoom),
		},
		"RefusedOnce": {
			reason: "A context that has reached its limit must not prevent the other status.",
			report: green,
			fails:  map[string]error{activation: errFull},
			want:   want{statuses: both, errs: []error{errFull}},
		},
		"RefusedTwiceForOneReason": {
			reason: "Two failures with the same cause are reported once.",
			report: green,
			fails:  map[string]error{activation: errBoom, drift: errBoom},
			want:   want{statuses: both, errs: []error{errBoom}},
		},
		"Away": {
			reason: "An unavailable forge gets only one request.",
			report: green,
			fails:  map[string]error{activation: &Later{Err: errBoom}},
			want:   want{statuses: both[:1], errs: []error{errBoom}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &posted{fails: tc.fails}
			err := Statuses{Poster: p, Cluster: "production", Home: "headgate-system", TargetURL: "https://status.example.org"}.Publish(t.Context(), tc.report)
			if diff := cmp.Diff(tc.want.statuses, p.statuses); diff != "" {
				t.Errorf("%s\nPublish(...) posts (-want +got):\n%s", tc.reason, diff)
			}
			for _, target := range tc.want.errs {
				if !errors.Is(err, target) {
					t.Errorf("%s\nPublish(...): %v, want %v", tc.reason, err, target)
				}
			}
			if got := strings.Count(errText(err), "commit "); got != len(tc.want.errs) {
				t.Errorf("%s\nPublish(...): %v: %d errors, want %d", tc.reason, err, got, len(tc.want.errs))
			}
		})
	}
}

func TestPublishRefuses(t *testing.T) {
	short := green
	short.Revision = "0123456"
	cases := map[string]struct {
		reason   string
		statuses Statuses
		report   report.Report
	}{
		"NoCluster":   {"two clusters would overwrite each other", Statuses{}, green},
		"ShortCommit": {"an abbreviation may name another commit later", Statuses{Cluster: "production", Home: "headgate-system"}, short},
		"Target":      {"forges take http and https only, and a script in a link is an attack", Statuses{Cluster: "production", Home: "headgate-system", TargetURL: "javascript:alert(1)"}, green},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &posted{}
			tc.statuses.Poster = p
			if err := tc.statuses.Publish(t.Context(), tc.report); err == nil || len(p.statuses) > 0 {
				t.Errorf("%s\nPublish(...) = %v and posts %v, want an error and nothing", tc.reason, err, p.statuses)
			}
		})
	}
}

// Two syncs with the same name in different namespaces must not share a context, and no name can be so long that it looks like
// another one.
func TestNamespaces(t *testing.T) {
	of := Statuses{Cluster: "production", Home: "headgate-system"}
	var got []string
	for _, sync := range []inventory.Sync{{Namespace: "headgate-system", Name: "platform"}, {Namespace: "team", Name: "platform"}, {Namespace: "headgate-system", Name: "team.platform"}} {
		r := green
		r.Sync = sync
		statuses, err := of.Of(r)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, statuses[0].Context)
	}
	if diff := cmp.Diff([]string{"headgate/production/platform/activation", "headgate/production/team/platform/activation", "headgate/production/team.platform/activation"}, got); diff != "" {
		t.Errorf("contexts (-want +got):\n%s", diff)
	}
}

// Two syncs whose names differ only at the end must not share a context.
func TestLongContexts(t *testing.T) {
	contexts := map[string]bool{}
	for _, tail := range []string{"a", "b"} {
		r := green
		r.Sync.Name = strings.Repeat("ä", 200) + tail
		statuses, err := Statuses{Cluster: "production", Home: "headgate-system"}.Of(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statuses {
			if len(s.Context) > maxContext {
				t.Errorf("a context of %d bytes", len(s.Context))
			}
			contexts[s.Context] = true
		}
	}
	if len(contexts) != 4 {
		t.Errorf("%d contexts of 2 syncs, want 4: %v", len(contexts), contexts)
	}
}

// Publish uses only those parts of a report that the outbox stores.
func TestPublishNeedsOnlyTheVerdict(t *testing.T) {
	whole := green
	whole.Error, whole.Steps, whole.Applied = "boom", []report.Step{{Reason: "because"}}, true
	of := Statuses{Cluster: "production", Home: "headgate-system"}
	want, _ := of.Of(whole)
	got, _ := of.Of(report.Report{Sync: whole.Sync, Revision: whole.Revision, Verdict: whole.Verdict})
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("Of(...) (-whole +verdict):\n%s", diff)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
