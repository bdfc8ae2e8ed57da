package cluster_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"

	"k8s.io/client-go/rest"
)

// Two processes with the same sync read the same approval. One of them uses it between the plan of the other and its first write. It
// counts once: if the removal is reverted and made again, both hold it.
func TestTwoProcessesAndOneApproval(t *testing.T) {
	w := newWorld(t)
	space := w.sync.Namespace
	at := func(revision string, names string) render.Desired {
		commit := want(t, namespace(space))
		for _, name := range names {
			commit.Objects = append(commit.Objects, want(t, configMap(space, string(name), "1")).Objects...)
		}
		commit.Revision = revision
		return commit
	}
	var given approval.Given
	pass := func(config *rest.Config, commit render.Desired) report.Report {
		r := reconcilerOf(clusterOf(t, config, w, cluster.Options{}), w)
		r.Guarding.MaxPrunes = 3
		r.NoWait = true
		r.Approvals = func() approval.Given { return given }
		result, _, err := r.Carry(t.Context(), reconcile.Task{Render: func(context.Context) (render.Desired, error) { return commit, nil }})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	pass(w.config, at("1", "abcdef"))
	asks := pass(w.config, at("2", "a")).Approval
	if asks == nil {
		t.Fatal("five prunes are held")
	}
	given = approval.Given{inventory.OnSync: approval.UpTo(asks.UpTo, asks.Digest)}

	var once sync.Once
	var other report.Report
	config := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.Contains(req.URL.Path, "/leases") && req.Method != http.MethodGet {
			once.Do(func() { other = pass(w.config, at("2", "a")) })
		}
		return next.RoundTrip(req)
	})
	mine := pass(config, at("2", "a"))
	if other.Summary.Pruned != 5 || mine.Summary.Pruned != 0 || mine.Summary.Held != 0 {
		t.Errorf("one process pruned %d, the other %d and held %d", other.Summary.Pruned, mine.Summary.Pruned, mine.Summary.Held)
	}
	pass(w.config, at("3", "abcdef"))
	for range 2 {
		if again := pass(w.config, at("4", "a")); again.Summary.Held != 5 || again.Summary.Pruned != 0 {
			t.Errorf("the approval counts again: pruned %d, held %d", again.Summary.Pruned, again.Summary.Held)
		}
	}
}

// A pass carries out what an approval of a killed pass has left. The inventory shows what that is, and a user who may write it may not approve: only a
// process that reads the key of the sync can leave steps to another one.
func TestOpenStepsNeedAProof(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		forges bool
		pruned int
	}{
		"Killed": {"The process that used the approval was killed before it pruned.", false, 5},
		"Forged": {"A user wrote that an approval has left the steps.", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			space := w.sync.Namespace
			pass := func(config *rest.Config, revision, names string, given ...approval.Approval) (report.Report, error) {
				commit := want(t, namespace(space))
				for _, name := range names {
					commit.Objects = append(commit.Objects, want(t, configMap(space, string(name), "1")).Objects...)
				}
				commit.Revision = revision
				r := reconcilerOf(clusterOf(t, config, w, cluster.Options{}), w)
				r.Guarding.MaxPrunes, r.NoWait = 3, true
				r.Approvals = func() approval.Given { return approval.Given{inventory.OnCommand: given} }
				result, _, err := r.Carry(t.Context(), reconcile.Task{Render: func(context.Context) (render.Desired, error) { return commit, nil }})
				return result, err
			}
			if _, err := pass(w.config, "1", "abcdef"); err != nil {
				t.Fatal(err)
			}
			held, err := pass(w.config, "2", "a")
			if err != nil || held.Approval == nil {
				t.Fatalf("five prunes are held: %v", err)
			}
			dies := fixtures.Intercept(w.config, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
				if req.Method == http.MethodDelete {
					return nil, errors.New("the process is gone")
				}
				return next.RoundTrip(req)
			})
			if dead, _ := pass(dies, "2", "a", approval.Typed(held.Approval.Digest)...); dead.Summary.Pruned > 0 {
				t.Fatalf("it pruned %d", dead.Summary.Pruned)
			}
			w.expire(t)
			if tc.forges {
				w.patch(t, w.at(configMaps, space), "headgate-main", `{"metadata":{"annotations":{"headgate.dev/approvals":`+strconv.Quote(forged(t, w))+`}}}`)
			}
			next, err := pass(w.config, "2", "a")
			if err != nil || next.Summary.Pruned != tc.pruned || next.Summary.Held != 5-tc.pruned {
				t.Errorf("%s\nThe next pass prunes %d and holds %d: %v", tc.reason, next.Summary.Pruned, next.Summary.Held, err)
			}
		})
	}
}

// forged returns the record of approvals in an inventory as a user writes it who cannot read the key: another person has approved.
func forged(t *testing.T, w *world) string {
	t.Helper()
	record := w.inventory(t).GetAnnotations()["headgate.dev/approvals"]
	if !strings.Contains(record, `"left":[`) || !strings.Contains(record, `"proof":"`) {
		t.Fatalf("an approval has left nothing: %s", record)
	}
	return strings.Replace(record, `"left":[`, `"by":"alice","left":[`, 1)
}
