package target

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
)

// wired is the follower of a Sync.
func wired(t *testing.T, spec string) *previewer {
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
	if err != nil || (hears.WakePulls != nil) != (target.previewer != nil) {
		t.Errorf("who follows pull requests hears of them: %v, %v", hears, err)
	}
	return target.previewer
}

// A fork gets only public data: no Secret, no cluster, no credentials for registries, and no registry outside of the
// list. The signatures that the cluster demands hold for it all the same.
func TestFollowForks(t *testing.T) {
	f := wired(t, "  previews: true\n  livePreviews: true\n  forkPreviews: {registries: [ghcr.io]}\n")
	if f.Reconciler.Observer == nil || f.Reconciler.Cluster == nil || f.wired[0].packages.Fork != nil || f.wired[0].packages.Installed == nil || f.wired[0].packages.Images == nil || f.Reconciler.Applier != nil {
		t.Errorf("Who may push has the cluster looked at, and nothing written: %+v", f.Reconciler)
	}
	if f.Forks.Observer != nil || f.Forks.Cluster != nil || f.Forks.CA != nil || f.wired[1].packages.Installed != nil || f.wired[1].packages.Images == nil || f.Forks.Source != reconcile.Source(f.wired[1].packages) {
		t.Errorf("A fork does not: %+v", f.Forks)
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
	if f := wired(t, "  previews: true\n"); f.Forks != nil || f.Reconciler.Observer != nil || f.Reconciler.Cluster != nil || f.wired[0].packages.Images != nil {
		t.Errorf("By default no fork is previewed, and no cluster asked: %+v", f)
	}
	if wired(t, "") != nil {
		t.Error("By default there are no previews")
	}
}

// A preview of conversion webhooks needs no CA: it would read a Secret for what both sides have.
func TestFollowWithoutCA(t *testing.T) {
	f := wired(t, "  previews: true\n  forkPreviews: {}\n  conversion: {strategy: Inject, service: {namespace: a}, caFrom: {name: tls}}\n")
	for _, r := range []reconcile.Reconciler{f.Reconciler, *f.Forks} {
		if r.CA != nil || len(r.Options.Conversion.CABundle) == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// The branch that pull requests go into, and a local repository, on which no forge is.
func TestOrigin(t *testing.T) {
	repository := newRepo(t)
	repository.push(t, "a.yaml", "a: b\n")
	s := decode(t, "  source: {repo: \""+repository.dir+"\"}\n  clusterName: east\n  statuses: {forge: Gitea, url: \"https://git.example.org\", repository: acme/platform}\n  previews: true\n")
	target, err := New(s, Surroundings{Cluster: fixtures.Config(t), Getenv: func(string) string { return canary }})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	o := target.previewer.origin
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
