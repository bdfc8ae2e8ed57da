package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/inventory"
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

// running returns the Syncs of the group of a Sync, and the loop for them.
func (f *follower) running() ([]*follower, reconcile.PreviewLoop, forge.Previews) {
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	members := slices.Clone(f.group.members)
	absent, _ := f.of.absent(members)
	loop := f.group.loop(f.of, members, absent)
	return members, loop, *loop.Requests.(requests).previews
}

// A repository's pull requests have one comment and one status for all Syncs in a process that post for the same cluster. A Sync that
// ends leaves them: its settings and its token are not used any more.
func TestFollowTogether(t *testing.T) {
	var all PullRequests
	in := Surroundings{
		Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }, Cache: t.TempDir(), PullRequests: &all,
	}
	follow := func(name, repository, spec string) (f *follower, end func()) {
		t.Helper()
		s := decode(t, "  source: {repo: \"https://git.example.org/"+repository+".git\", ref: main, path: "+name+"}\n  previews: true\n"+spec)
		s.Name = name
		one, err := New(s, in)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		wait := one.follower.start(ctx)
		end = sync.OnceFunc(func() {
			stop()
			wait()
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(end)
		return one.follower, end
	}
	const east = "  clusterName: east\n  statuses: {forge: Gitea}\n"
	second, _ := follow("b", "acme/platform", east+"  forkPreviews: {}\n  approvals: {comments: Never}\n")
	first, end := follow("a", "acme/platform", east+"  interval: 5m\n  pageURL: https://pages.example.org\n")
	members, loop, previews := second.running()
	if first.group != second.group || len(members) != 2 || members[0] != first {
		t.Errorf("two Syncs of one repository have one loop, sorted by name: %v", members)
	}
	if loop.Syncs[0].Origin != loop.Syncs[1].Origin {
		t.Error("the repository is asked once")
	}
	if previews.Name != "headgate/east" || !slices.Contains(previews.Replaces, "headgate/team/b") || len(previews.Commands) != 1 || !loop.Requests.(requests).forks || loop.Interval != time.Minute {
		t.Errorf("what one of them asks for holds for it: %+v", previews)
	}
	if previews.Poster != first.previews.Poster || previews.Pulls != first.previews.Pulls || previews.TargetURL != "https://pages.example.org" {
		t.Errorf("the first one posts: %+v", previews)
	}
	for name, tc := range map[string]struct{ repository, spec string }{
		"c": {"acme/other", east}, "d": {"acme/platform", "  clusterName: west\n  statuses: {forge: Gitea}\n"}, "e": {"acme/platform", "  clusterName: east\n  statuses: {forge: Gitea, per: Sync}\n"},
	} {
		other, _ := follow(name, tc.repository, tc.spec)
		if others, _, previews := other.running(); other.group == first.group || len(others) != 1 || name == "e" && (previews.Name != "headgate/team/e" || len(previews.Replaces) > 0) {
			t.Errorf("%s has posts of its own: %+v", name, previews)
		}
	}
	end()
	members, loop, previews = second.running()
	if len(members) != 1 || len(loop.Syncs) != 1 || len(previews.Commands) != 0 || previews.Poster != second.previews.Poster || previews.TargetURL != "" || loop.Syncs[0].Origin != reconcile.Origin(second.origin) {
		t.Errorf("after the end of the first one: %+v", previews)
	}
}

// A preview names a Sync that is told to run and does not: it would be safe without it. A Sync that is about to start is waited for.
func TestFollowAbsent(t *testing.T) {
	all := PullRequests{Tenants: true}
	in := Surroundings{
		Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }, Cache: t.TempDir(), PullRequests: &all,
	}
	object := func(name, spec string) v1alpha1.Sync {
		t.Helper()
		s := decode(t, "  source: {repo: \"https://git.example.org/acme/platform.git\", ref: main}\n  previews: true\n"+spec)
		s.Name = name
		return s
	}
	const east = "  clusterName: east\n  statuses: {forge: Gitea}\n"
	follow := func(s v1alpha1.Sync) *follower {
		t.Helper()
		one, err := New(s, in)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		wait := one.follower.start(ctx)
		t.Cleanup(func() {
			stop()
			wait()
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		})
		return one.follower
	}
	runs := follow(object("a", east))
	shows := func(when, want string, wait time.Duration) {
		t.Helper()
		members, loop, _ := runs.running()
		var names []string
		for _, one := range loop.Syncs {
			names = append(names, strings.TrimSpace(one.Reconciler.Sync.Name+" "+one.Away))
			if one.Origin != loop.Syncs[0].Origin || one.Ref != "main" {
				t.Errorf("%s: %v", when, one)
			}
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		if _, got := all.absent(members); strings.Join(names, ", ") != want || got != wait {
			t.Errorf("%s: want %s after %s, got %s after %s", when, want, wait, strings.Join(names, ", "), got)
		}
	}
	changes := func(do func()) {
		t.Helper()
		all.mu.Lock()
		for runs.group.now == nil {
			all.mu.Unlock()
			runtime.Gosched()
			all.mu.Lock()
		}
		before := runs.group.now
		all.mu.Unlock()
		do()
		<-before.ended // and another loop begins
	}
	in.Expect(object("a", east), nil)
	changes(func() { in.Expect(object("b", east), errors.New("no such account\nat all")) })
	in.Expect(object("c", "  clusterName: west\n  statuses: {forge: Gitea}\n"), errors.New("away"))
	in.Expect(object("d", "  clusterName: east\n  statuses: {forge: Gitea, per: Sync}\n"), errors.New("away"))
	other := object("e", east)
	other.Namespace = "another"
	in.Expect(other, errors.New("away"))
	shows("stalled", "a, b no such account", settle)
	changes(func() { in.Expect(object("b", east), nil) })
	shows("mended", "a, b it has not started yet", mostSettle)
	changes(func() { follow(object("b", east)) })
	shows("started", "a, b", settle)
	changes(func() { in.Expect(object("f", east), errors.New("no repository")) })
	changes(func() {
		in.Expect(object("f", "  clusterName: west\n  statuses: {forge: Gitea}\n"), errors.New("no repository"))
	})
	shows("one moved to another group", "a, b", settle)
	changes(func() { in.Expect(object("g", east), errors.New("no repository")) })
	changes(func() { in.Forget(inventory.Sync{Namespace: runs.sync.Reconciler.Sync.Namespace, Name: "g"}) })
	shows("one is gone", "a, b", settle)
}

// In a controller, Syncs of two namespaces do not post with each other's token, and neither do two shards.
func TestFollowTenants(t *testing.T) {
	all := PullRequests{Tenants: true}
	in := Surroundings{
		Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }, Cache: t.TempDir(), PullRequests: &all,
	}
	names := map[pullRequestsOf][]string{}
	for _, of := range []inventory.Sync{{Namespace: "headgate-system", Name: "a"}, {Namespace: "team-a", Name: "a"}, {Namespace: "team-a", Name: "b"}, {Namespace: "team-b", Name: "a"}} {
		s := decode(t, "  source: {repo: \"https://git.example.org/acme/platform.git\", ref: main}\n  previews: true\n  clusterName: east\n  statuses: {forge: Gitea}\n")
		s.Namespace, s.Name = of.Namespace, of.Name
		one, err := New(s, in)
		if err != nil {
			t.Fatal(err)
		}
		names[one.follower.key] = append(names[one.follower.key], one.follower.previews.Name)
		all.Shard = "blue"
		if got := all.nameOf(s); got != one.follower.previews.Name+"/blue" {
			t.Errorf("in a shard, the name is %q", got)
		}
		all.Shard = ""
	}
	got := slices.SortedFunc(maps.Values(names), func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if diff := cmp.Diff([][]string{{"headgate/east"}, {"headgate/east/team-a", "headgate/east/team-a"}, {"headgate/east/team-b"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// All repositories together have two processes of previews.
func TestPlacesOfPreviews(t *testing.T) {
	var all PullRequests
	var ends []func()
	for range PreviewsAtOnce {
		end, err := all.turn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.turn(late); err == nil || len(all.places) != cap(all.places) {
		t.Errorf("a third preview has a place: %v", err)
	}
	ends[0]()
	if end, err := all.turn(t.Context()); err != nil {
		t.Error(err)
	} else {
		end()
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
