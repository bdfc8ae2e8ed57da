package packages_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/packages"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
)

// FuzzCommit reads arbitrary locks, ImageConfigs and contents of an installed package. A lock may only pin the commit's requests:
// it adds a digest, and the version if the commit leaves it open. A commit with a malformed lock must not request anything. An
// image may only be rewritten by the longest matching prefix, and equal bytes must lead to equal requests.
func FuzzCommit(f *testing.F) {
	digest := "sha256:" + strings.Repeat("0", 64)
	lock := "apiVersion: headgate.dev/v1alpha1\nkind: PackageLock\nmetadata: {name: packages}\npackages:\n"
	config := "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: a}\nspec: "
	locks := func(source, version, digest string) string {
		return "- {source: " + source + ", version: " + version + ", digest: \"" + digest + "\"}\n"
	}
	f.Add([]byte(lock+locks(seaSource, "v1.0.0", digest)+locks(airSource, "v1.2.0", digest)), []byte(config+"{matchImages: [{prefix: registry.example.org}], rewriteImage: {prefix: mirror.example.org}}\n"), []byte(sea))
	f.Add([]byte(lock+locks(seaSource, "v1.0.0", digest)+locks(seaSource, "v1.0.0", digest)), []byte(config+"{matchImages: [{type: Prefix, prefix: registry.example.org/acme/}], registry: {authentication: {pullSecretRef: {name: pull}}}}\n"), []byte(air))
	f.Add([]byte(lock+locks(airSource, "v0.1.0", digest)), []byte(config+"{matchImages: [{prefix: \"\"}], verification: {provider: Cosign}}\n"), []byte(sea))
	f.Add([]byte(lock+locks(seaSource, "v2.0.0", "sha256:1")), []byte(config+"{matchImages: 1, rewriteImage: []}\n"), []byte("kind: ["))
	f.Add([]byte("apiVersion: headgate.dev/v2\nkind: PackageLock\n"), []byte(nil), []byte(nil))
	f.Fuzz(func(t *testing.T, lock, config, content []byte) {
		docs, err := catalogue.Open(fstest.MapFS{
			"sea.yaml":        {Data: []byte("apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-sea}\nspec: {package: \"" + seaSource + ":v1.0.0\"}\n")},
			packages.LockFile: {Data: lock}, "config.yaml": {Data: config},
		}, "", catalogue.Options{})
		if err != nil {
			return
		}
		locked, unlocked := packages.Of(docs, false), packages.Of(docs, true)
		if diff := cmp.Diff(asked(locked.Missing()), asked(packages.Of(docs, false).Missing())); diff != "" {
			t.Errorf("the same bytes ask for something else (-first +second):\n%s", diff)
		}
		for range 2 { // before the registry's response, and with it
			pins(t, locked, unlocked)
			locked, unlocked = withSea(locked, string(content)), withSea(unlocked, string(content))
		}
	})
}

// withSea returns the commit with a response to its request for sea.
func withSea(c packages.Commit, content string) packages.Commit {
	var held []packages.Image
	for _, r := range c.Missing() {
		if r.Source == seaSource {
			var opened int
			held = append(held, answer(r, "v1.0.0", content, &opened))
		}
	}
	return c.With(held, packages.Live{})
}

// pins fails if a lock does more than pin the requests that the commit makes without it.
func pins(t *testing.T, locked, unlocked packages.Commit) {
	t.Helper()
	requests := locked.Missing()
	if _, err := locked.Catalogue(); err != nil && len(requests) > 0 {
		t.Errorf("a commit that cannot be read asks for %v: %v", asked(requests), err)
	}
	open := map[string]packages.Request{}
	for _, r := range unlocked.Missing() {
		if r.Digest != "" {
			t.Errorf("without a lock, %s has a digest", r.Source)
		}
		open[r.Source] = r
	}
	if len(open) != len(requests) {
		t.Errorf("the commit asks for %v, and for %d packages without its lock", asked(requests), len(open))
	}
	for _, r := range requests {
		free, is := open[r.Source]
		switch {
		case !is:
			t.Errorf("the lock asks for %s", r.Source)
		case r.Digest == "" && r.Version != free.Version, free.Version != "" && r.Version != free.Version:
			t.Errorf("the lock has %s in version %q instead of %q", r.Source, r.Version, free.Version)
		case r.Digest != "" && !crossplane.IsDigest(r.Digest):
			t.Errorf("%s has the digest %q", r.Source, r.Digest)
		case r.Digest != "" && free.Version == "" && !allowed(r.Version, r.Constraints):
			t.Errorf("the lock has %s in version %q, which its constraints %q do not allow", r.Source, r.Version, r.Constraints)
		}
		rewritten(t, *r.Configs, crossplane.Image(r.Source, "v1.0.0"))
	}
}

// asked returns the identities of requests.
func asked(requests []packages.Request) []string {
	var all []string
	for _, r := range requests {
		all = append(all, strings.Join(append([]string{r.Source, r.Version, r.Digest}, r.Constraints...), " "))
	}
	return all
}

// allowed reports whether all constraints allow a version.
func allowed(version string, constraints []string) bool {
	return !slices.ContainsFunc(constraints, func(text string) bool {
		c, err := semver.NewConstraint(text)
		if err != nil {
			return version != text // a digest
		}
		v, err := semver.NewVersion(version)
		return err != nil || !c.Check(v)
	})
}

// rewritten fails if an image is rewritten other than by the longest matching prefix.
func rewritten(t *testing.T, configs packages.ImageConfigs, image string) {
	t.Helper()
	longest := ""
	for _, c := range configs.Rewrites {
		if strings.HasPrefix(image, c.Prefix) && len(c.Prefix) > len(longest) {
			longest = c.Prefix
		}
	}
	best, is := configs.Rewrite(image)
	if best.Prefix != longest || is != (longest != "") {
		t.Errorf("%s is rewritten because of %q, and the longest prefix is %q", image, best.Prefix, longest)
	}
	if now := configs.Rewritten(image); now != best.Value+strings.TrimPrefix(image, longest) {
		t.Errorf("%s becomes %s", image, now)
	}
}
