package cluster_test

import (
	"context"
	"net/http"
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
