package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/outbox"
	"headgate.dev/headgate/reconcile/report"
)

// giteaStatus is a status as Gitea returns it.
type giteaStatus struct {
	ID          int64  `json:"id"`
	Context     string `json:"context"`
	State       string `json:"status"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
}

// saidOf returns all statuses of a commit, oldest first.
func saidOf(t *testing.T, g *fixtures.Gitea, repo, commit string) []giteaStatus {
	t.Helper()
	var all []giteaStatus
	g.Call(t, http.MethodGet, "/repos/"+g.Owner+"/"+repo+"/commits/"+commit+"/statuses?limit=50", nil, &all)
	slices.SortFunc(all, func(a, b giteaStatus) int { return int(a.ID - b.ID) })
	return all
}

func reported(commit string, activation, drift report.Status) report.Report {
	r := report.Report{Revision: commit, Verdict: report.Verdict{Activation: activation, Drift: drift}}
	r.Sync.Namespace, r.Sync.Name = "headgate-system", "platform"
	return r
}

const (
	activation = "headgate/production/platform/activation"
	drift      = "headgate/production/platform/drift"
)

var (
	active  = report.Status{State: report.Success, Description: "43 active (+2), 2000 inactive"}
	noDrift = report.Status{State: report.Success, Description: "no drift"}
	drifted = report.Status{State: report.Failure, Description: "1 drifted: buckets.s3.aws.m.upbound.io"}
)

func statuses(t *testing.T, cloned, token string) forge.Statuses {
	t.Helper()
	at, err := forge.RepositoryOf(cloned, "")
	if err != nil {
		t.Fatal(err)
	}
	at.Kind = forge.KindGitea
	poster, err := forge.Account{Repository: at, Token: forge.Token(token)}.Poster()
	if err != nil {
		t.Fatal(err)
	}
	return forge.Statuses{Poster: poster, Cluster: "production", Home: "headgate-system", TargetURL: "https://status.example.org/platform"}
}

// A real Gitea confirms everything that the fakes assume.
func TestGitea(t *testing.T) {
	g := fixtures.StartGitea(t)
	cloned := g.CreateRepo(t, "platform")
	first := g.Commit(t, "platform", "policy.yaml", "patterns: [buckets.*]\n")
	older := g.Commit(t, "platform", "policy.yaml", "patterns: [queues.*]\n")
	newer := g.Commit(t, "platform", "policy.yaml", "patterns: [topics.*]\n")

	t.Run("LifeOfACommit", func(t *testing.T) {
		pass := func(r report.Report) {
			t.Helper()
			// A new publisher each time, as after a restart, must list the statuses.
			if err := statuses(t, cloned, g.Token).Publish(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		applied := reported(first, active, noDrift)
		pass(report.Seen(applied.Sync, applied.Revision))
		pass(applied)
		pass(applied) // nothing new
		pass(reported(first, active, drifted))
		pass(applied) // and back, probably within the same second
		pass(applied)
		var got []string
		for _, s := range saidOf(t, g, "platform", first) {
			got = append(got, s.Context+" "+s.State+": "+s.Description)
			if s.TargetURL != "https://status.example.org/platform" {
				t.Errorf("target URL %q", s.TargetURL)
			}
		}
		want := []string{
			activation + " pending: seen; the pass has not ended", drift + " pending: seen; the pass has not ended",
			activation + " success: " + active.Description, drift + " success: no drift",
			drift + " failure: " + drifted.Description,
			drift + " success: no drift",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("statuses of the commit (-want +got):\n%s", diff)
		}
	})

	t.Run("Superseded", func(t *testing.T) {
		s := statuses(t, cloned, g.Token)
		pending := seenOf(reported(older, active, noDrift))
		for _, r := range []report.Report{pending, report.Superseded(pending.Sync, pending.Revision, newer)} {
			if err := s.Publish(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		var combined struct {
			State    string        `json:"state"`
			Statuses []giteaStatus `json:"statuses"`
		}
		g.Call(t, http.MethodGet, "/repos/"+g.Owner+"/platform/commits/"+older+"/status", nil, &combined)
		for _, s := range combined.Statuses {
			if s.State != "error" || s.Description != "superseded by "+newer[:12]+" before it was applied" {
				t.Errorf("%s is %s: %s", s.Context, s.State, s.Description)
			}
		}
		if len(combined.Statuses) != 2 || combined.State == "pending" {
			t.Errorf("%d statuses, the commit is %s", len(combined.Statuses), combined.State)
		}
	})

	t.Run("ManyStatuses", func(t *testing.T) {
		busy := newer
		s := statuses(t, cloned, g.Token)
		for i := range 28 { // more than one page of 50
			d := report.Status{State: report.Failure, Description: strings.Repeat("|", i+1)}
			if err := s.Publish(t.Context(), reported(busy, d, d)); err != nil {
				t.Fatal(err)
			}
		}
		last := report.Status{State: report.Failure, Description: strings.Repeat("|", 28)}
		if err := statuses(t, cloned, g.Token).Publish(t.Context(), reported(busy, last, last)); err != nil {
			t.Fatal(err)
		}
		var all []giteaStatus
		for _, page := range []string{"1", "2", "3"} {
			var some []giteaStatus
			g.Call(t, http.MethodGet, "/repos/"+g.Owner+"/platform/commits/"+busy+"/statuses?limit=50&page="+page, nil, &some)
			all = append(all, some...)
		}
		if len(all) != 56 {
			t.Errorf("%d statuses, want 56: what stands there was found on no page", len(all))
		}
	})

	t.Run("Rights", func(t *testing.T) {
		stranger := g.User(t, "stranger", "write:repository")
		reader := g.User(t, "reader", "read:repository")
		cases := map[string]struct {
			reason string
			cloned string
			commit string
			token  string
			says   string
		}{
			"WrongToken":   {"a typo", cloned, first, "0123456789abcdef0123456789abcdef01234567", "401"},
			"NoScope":      {"The token is mistyped.", cloned, first, reader, "write:repository"},
			"NoWrite":      {"The token has read access only.", cloned, first, stranger, "write access"},
			"NoRepository": {"The token has the right scope, but its user has no access to the repository.", strings.Replace(cloned, "platform", "nothing", 1), first, g.Token, "404"},
			"NoCommit":     {"The repository was renamed, was deleted or never existed.", cloned, strings.Repeat("5", 40), g.Token, "404"},
		}
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				err := statuses(t, tc.cloned, tc.token).Publish(t.Context(), reported(tc.commit, drifted, drifted))
				if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), tc.token) {
					t.Errorf("%s\nPublish(...) = %v, want %q in it and no token", tc.reason, err, tc.says)
				}
				if _, passes := errors.AsType[*forge.Later](err); passes {
					t.Errorf("%s\nPublish(...) = %v passes", tc.reason, err)
				}
			})
		}
	})

	t.Run("Outage", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "outbox")
		now := time.Now()
		box := func() *outbox.Outbox {
			return &outbox.Outbox{Next: statuses(t, cloned, g.Token), Dir: dir, Now: func() time.Time { return now }, OnError: func(err error) { t.Log(err) }}
		}
		one := g.Commit(t, "platform", "outage.yaml", "a: 1\n")
		two := g.Commit(t, "platform", "outage.yaml", "a: 2\n")
		before := box()
		publish := func(r report.Report) {
			t.Helper()
			if err := before.Publish(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		publish(seenOf(reported(one, active, noDrift)))
		g.Stop(t)
		publish(supersededOf(reported(one, active, noDrift), two))
		publish(seenOf(reported(two, active, noDrift)))
		publish(reported(two, active, drifted))
		publish(reported(two, active, noDrift))
		if n := before.Waiting(); n != 2 {
			t.Fatalf("%d commits wait, want 2", n)
		}

		g.Start(t)
		after := box() // Headgate was restarted, too
		now = now.Add(time.Hour)
		if _, waits := after.Flush(t.Context()); waits {
			t.Errorf("%d commits still wait", after.Waiting())
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("the outbox holds %v (%v)", left, err)
		}
		states := func(commit string) (out []string) {
			for _, s := range saidOf(t, g, "platform", commit) {
				out = append(out, s.Context+" "+s.State)
			}
			return out
		}
		if diff := cmp.Diff([]string{activation + " pending", drift + " pending", activation + " error", drift + " error"}, states(one)); diff != "" {
			t.Errorf("statuses of the first commit (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{activation + " success", drift + " success"}, states(two)); diff != "" {
			t.Errorf("statuses of the second commit (-want +got):\n%s", diff)
		}
	})

	t.Run("StoppedWhileWeSpeak", func(t *testing.T) {
		now := time.Now()
		box := &outbox.Outbox{Next: statuses(t, cloned, g.Token), Dir: t.TempDir(), Now: func() time.Time { return now }}
		torn := older
		var last report.Status
		stopped := make(chan struct{})
		for i := range 60 {
			if i == 10 {
				go func() {
					g.Stop(t)
					close(stopped)
				}()
			}
			last = report.Status{State: report.Failure, Description: fmt.Sprintf("%d held", i)}
			// Gitea returns 401 to a valid token while it shuts down. A newer report follows.
			if err := box.Publish(t.Context(), reported(torn, last, last)); err != nil && !strings.Contains(err.Error(), "(401)") {
				t.Errorf("report %d: %v", i, err)
			}
		}
		<-stopped
		g.Start(t)
		now = now.Add(time.Hour)
		if _, waits := box.Flush(t.Context()); waits {
			t.Error("it still waits")
		}
		current := map[string]string{}
		for _, s := range saidOf(t, g, "platform", torn) {
			current[s.Context] = s.Description
		}
		if diff := cmp.Diff(map[string]string{activation: last.Description, drift: last.Description}, current); diff != "" {
			t.Errorf("what stands on the commit (-want +got):\n%s", diff)
		}
	})
}

func seenOf(r report.Report) report.Report { return report.Seen(r.Sync, r.Revision) }

func supersededOf(r report.Report, by string) report.Report {
	return report.Superseded(r.Sync, r.Revision, by)
}
