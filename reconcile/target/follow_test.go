package target

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/forge"
)

// wired returns the follower of a Sync.
func wired(t *testing.T, spec string) *follower {
	t.Helper()
	target, err := New(decode(t, "  clusterName: east\n  statuses: {forge: Gitea}\n  source: {repo: \"https://git.example.org/acme/platform.git\", ref: main, webhook: {}}\n"+spec), Surroundings{
		Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }, Cache: t.TempDir(),
		KeyFiles: map[string]string{"acme/cosign.pub": "acme.pub"}, TrustedRoot: "trusted_root.json",
	})
	if err != nil {
		t.Fatal(err)
	}
	if target.wired.packages.Installed == nil || target.wired.packages.Images == nil {
		t.Error("passes ask the cluster for what decides about packages")
	}
	hears, err := target.Subscriber()
	if err != nil || (hears.WakePulls != nil) != (target.follower != nil) {
		t.Errorf("who follows pull requests hears of them: %v, %v", hears, err)
	}
	return target.follower
}

// A fork gets only public data: no Secret, no cluster, no registry credentials, and no registry outside the list. The cluster's
// demands for signatures still apply to it.
func TestFollowForks(t *testing.T) {
	f := wired(t, "  previews: true\n  livePreviews: true\n  forkPreviews: {registries: [ghcr.io]}\n")
	if f.sync.Reconciler.Observer == nil || f.sync.Reconciler.Cluster == nil || f.wired[0].packages.Fork != nil || f.wired[0].packages.Installed == nil || f.wired[0].packages.Images == nil || f.sync.Reconciler.Applier != nil {
		t.Errorf("Who may push has the cluster looked at, and nothing written: %+v", f.sync.Reconciler)
	}
	if f.sync.Forks.Observer != nil || f.sync.Forks.Cluster != nil || f.sync.Forks.CA != nil || f.wired[1].packages.Installed != nil || f.wired[1].packages.Images == nil || f.sync.Forks.Source != reconcile.Source(f.wired[1].packages) {
		t.Errorf("A fork does not: %+v", f.sync.Forks)
	}
	for _, s := range f.wired {
		if s.packages.KeyFiles["acme/cosign.pub"] != "acme.pub" || s.packages.TrustedRoot != "trusted_root.json" {
			t.Errorf("Forks may know public signing identities, too: %+v", s)
		}
	}
	if fork := f.wired[1].packages.Fork; fork == nil || len(fork.Registries) != 1 || fork.Registries[0] != "ghcr.io" {
		t.Errorf("Nor is any registry asked but those that are named: %+v", fork)
	}
	if f.origin.heads.Limits != ofHeads(f.origin.into.Limits) || f.origin.into.Limits.Object != 0 || f.origin.into.Cache != f.origin.heads.Cache || !strings.HasSuffix(f.origin.heads.Cache, "previews") {
		t.Errorf("The size of a head is bounded, and separate from passes: %+v", f.origin)
	}
	if f := wired(t, "  previews: true\n"); f.sync.Forks != nil || f.sync.Reconciler.Observer != nil || f.sync.Reconciler.Cluster != nil || f.wired[0].packages.Images != nil {
		t.Errorf("By default no fork is previewed, and no cluster asked: %+v", f)
	}
	if wired(t, "") != nil {
		t.Error("By default there are no previews")
	}
}

// A preview needs no CA of conversion webhooks, because the CA is the same on both sides and reading it would need a Secret.
func TestFollowWithoutCA(t *testing.T) {
	f := wired(t, "  previews: true\n  forkPreviews: {}\n  conversion: {strategy: Inject, service: {namespace: a}, caFrom: {name: tls}}\n")
	for _, r := range []reconcile.Reconciler{f.sync.Reconciler, *f.sync.Forks} {
		if r.CA != nil || len(r.Options.Conversion.CABundle) == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// An origin resolves the target branch of pull requests; a local repository belongs to no forge.
func TestOrigin(t *testing.T) {
	repository := newRepo(t)
	repository.push(t, "a.yaml", "a: b\n")
	s := decode(t, "  source: {repo: \""+repository.dir+"\"}\n  clusterName: east\n  statuses: {forge: Gitea, url: \"https://git.example.org\", repository: acme/platform}\n  previews: true\n")
	target, err := New(s, Surroundings{Cluster: fixtures.Config(t), Getenv: func(string) string { return canary }})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	o := target.follower.origin
	branch, tip, err := o.Tip(t.Context(), "")
	if err != nil || branch == "" || len(tip) != 40 {
		t.Errorf("Tip(...) is %q, %q, %v", branch, tip, err)
	}
	if branch, _, err := o.Tip(t.Context(), tip); branch != "" || err != nil {
		t.Errorf("Nothing is merged into a commit: %q, %v", branch, err)
	}
	if base, err := o.MergeBase(context.Background(), tip, tip); err != nil || base != tip {
		t.Errorf("MergeBase(...) is %q, %v", base, err)
	}
}

// A repository's pull requests have one comment and one status for all Syncs in a process that post for the same cluster.
func TestFollowTogether(t *testing.T) {
	var all PullRequests
	in := Surroundings{
		Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }, Cache: t.TempDir(), PullRequests: &all,
	}
	follow := func(name, repository, spec string) *follower {
		t.Helper()
		s := decode(t, "  source: {repo: \"https://git.example.org/"+repository+".git\", ref: main, path: "+name+"}\n  previews: true\n"+spec)
		s.Name = name
		one, err := New(s, in)
		if err != nil {
			t.Fatal(err)
		}
		return one.follower
	}
	const east = "  clusterName: east\n  statuses: {forge: Gitea}\n"
	first := follow("a", "acme/platform", east+"  interval: 5m\n")
	second := follow("b", "acme/platform", east+"  forkPreviews: {}\n  approvals: {comments: Never}\n")
	if first.of != second.of || !first.runs() || second.runs() || len(first.of.Syncs) != 2 {
		t.Errorf("two Syncs of one repository have one loop: %+v", first.of)
	}
	if first.of.Syncs[0].Origin != first.of.Syncs[1].Origin {
		t.Error("the repository is asked once")
	}
	if first.of.previews.Name != "headgate/east" || !slices.Contains(first.of.previews.Replaces, "headgate/team/b") || len(first.of.previews.Commands) != 1 || !first.of.forks || first.of.Interval != time.Minute {
		t.Errorf("what one of them asks for holds for it: %+v", first.of.previews)
	}
	for _, other := range []*follower{
		follow("c", "acme/other", east), follow("d", "acme/platform", "  clusterName: west\n  statuses: {forge: Gitea}\n"),
		follow("e", "acme/platform", "  clusterName: east\n  statuses: {forge: Gitea, per: Sync}\n"),
	} {
		if other.of == first.of || len(other.of.Syncs) != 1 {
			t.Errorf("%s has posts of its own: %+v", other.sync.Reconciler.Sync.Name, other.of)
		}
		if of := other.sync.Reconciler.Sync; of.Name == "e" && (other.of.previews.Name != "headgate/team/e" || len(other.of.previews.Replaces) > 0) {
			t.Errorf("per: Sync is as it was: %+v", other.of.previews)
		}
	}
	if len(first.of.Syncs) != 2 {
		t.Errorf("%d Syncs", len(first.of.Syncs))
	}
}

// Headgate comments from one process: a Sync with previews of its own is no Sync of a process that previews for many clusters.
func TestOneCommenter(t *testing.T) {
	in := Surroundings{
		Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }, Cache: t.TempDir(), PullRequests: &PullRequests{Name: "fleet"},
	}
	const spec = "  clusterName: east\n  source: {repo: \"https://git.example.org/acme/platform.git\"}\n  statuses: {forge: Gitea}\n"
	for previews, want := range map[string]string{"": "", "  previews: true\n": "spec.previews", "  previews: true\n  livePreviews: true\n": "spec.previews"} {
		one, err := New(decode(t, spec+previews), in)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error about %q", previews, err, want)
		}
		if err == nil && !one.Previews() {
			t.Error("it previews")
		}
	}
}

// The commits of a merge queue are previewed like pull requests, and first, because merges wait for them.
func TestQueuedHeads(t *testing.T) {
	const head, queued = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v3/repos/acme/platform/pulls":
			_, _ = fmt.Fprintf(w, `[{"number":7,"head":{"sha":%q,"repo":{"id":1}},"base":{"ref":"main","repo":{"id":1}}}]`, head)
		case "/api/v3/repos/acme/platform/git/matching-refs/heads/gh-readonly-queue/":
			_, _ = fmt.Fprintf(w, `[{"ref":"refs/heads/gh-readonly-queue/main/pr-7-%s","object":{"sha":%q}}]`, head, queued)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	pulls, err := forge.Account{Repository: forge.Repository{Kind: forge.KindGitHub, Base: server.URL, Owner: "acme", Name: "platform"}, Token: forge.Token(canary)}.Pulls()
	if err != nil {
		t.Fatal(err)
	}
	open, err := requests{pulls: pulls}.Open(t.Context())
	if err != nil || len(open) != 2 || open[0].Head != queued || !open[0].Queued || open[1].Head != head || open[1].Queued {
		t.Errorf("%+v, %v", open, err)
	}
}
