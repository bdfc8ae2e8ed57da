package packages_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
)

// A pull request must not lose the signature of a package unseen, neither by another name of the image nor by another prefix. No
// registry is asked.
func TestDroppedSignatures(t *testing.T) {
	const (
		source = "registry.example.org/acme/provider-sea"
		digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	provider := func(name, image string) string {
		return "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "}\nspec: {package: \"" + image + "\"}\n"
	}
	imageConfig := func(name, prefix, spec string) string {
		return "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: " + name + "}\nspec: {matchImages: [{prefix: \"" + prefix + "\"}], " + spec + "}\n"
	}
	signed := func(prefix, key string) string {
		return imageConfig("signed", prefix, "verification: {provider: Cosign, cosign: {authorities: [{name: acme, key: {secretRef: {name: "+key+", key: cosign.pub}}}]}}")
	}
	tagged := provider("sea", source+":v1")
	cases := map[string]struct {
		reason     string
		base, head []string
		want       string // the message; "" if nothing drops out
	}{
		"Same": {reason: "Nothing changes.", base: []string{tagged, signed(source, "a")}, head: []string{tagged, signed(source, "a")}},
		"Digest": {
			reason: "The prefix ends with a colon, so it matches tags only.", base: []string{tagged, signed(source+":", "a")}, head: []string{provider("sea", source+digest), signed(source+":", "a")},
			want: "ImageConfig signed (1.yaml:4) requires a signature of " + source + ":v1, but with this commit nothing does: the image is " + source + digest,
		},
		"TagAndDigest": {
			reason: "Crossplane compares the name as the object has it, with its tag.", base: []string{tagged, signed(source+":", "a")}, head: []string{provider("sea", source+":v1"+digest), signed(source+":", "a")},
		},
		"OnlyDigest": {
			reason: "The tag leaves a name that keeps its digest.", base: []string{provider("sea", source+":v1"+digest), signed(source+":v1", "a")}, head: []string{provider("sea", source+digest), signed(source+":v1", "a")},
			want: "ImageConfig signed (1.yaml:4) requires a signature of " + source + ":v1" + digest + ", but with this commit nothing does: the image is " + source + digest,
		},
		"Version": {
			reason: "The prefix names one version.", base: []string{tagged, signed(source+":v1", "a")}, head: []string{provider("sea", source+":v2"), signed(source+":v1", "a")},
			want: "requires a signature of " + source + ":v1, but with this commit nothing does: the image is " + source + ":v2",
		},
		"OtherRegistry": {
			reason: "The object stays and its source changes.", base: []string{tagged, signed("registry.example.org/", "a")}, head: []string{provider("sea", "evil.example.org/sea:v1"), signed("registry.example.org/", "a")},
			want: "but with this commit nothing does: the image is evil.example.org/sea:v1",
		},
		"OtherObject": {
			reason: "The object gets another name.", base: []string{tagged, signed(source+":", "a")}, head: []string{provider("ocean", source+digest), signed(source+":", "a")},
			want: "but with this commit nothing does: the image is " + source + digest,
		},
		"Narrowed": {
			reason: "The prefix changes, and not the image.", base: []string{tagged, signed("registry.example.org/", "a")}, head: []string{tagged, signed("registry.example.org/acme/provider-air", "a")},
			want: "requires a signature of " + source + ":v1, but with this commit nothing does, because of ImageConfig signed",
		},
		"Removed": {
			reason: "The ImageConfig leaves the commit.", base: []string{tagged, signed(source, "a")}, head: []string{tagged},
			want: "requires a signature of " + source + ":v1, but with this commit nothing does",
		},
		"NotApplied": {
			reason: "An object that is not applied demands nothing.", base: []string{tagged, signed(source, "a")},
			head: []string{tagged, strings.Replace(signed(source, "a"), "{name: signed}", "{name: signed, annotations: {config.kubernetes.io/local-config: \"true\"}}", 1)},
			want: "nothing does",
		},
		"OtherKey": {
			reason: "Headgate does not know whose key it is.", base: []string{tagged, signed(source, "a")}, head: []string{tagged, signed(source, "b")},
			want: "but with this commit ImageConfig signed (1.yaml:4) demands another one",
		},
		"Overridden": {
			reason: "A longer prefix counts.", base: []string{tagged, signed(source, "a")}, head: []string{tagged, signed(source, "a"), strings.Replace(signed(source+":", "b"), "name: signed", "name: more", 1)},
			want: "but with this commit ImageConfig more (2.yaml:4) demands another one",
		},
		"Rewritten": {
			reason: "The image is pulled from elsewhere, and the prefix matches what is pulled.", base: []string{tagged, signed(source, "a")}, head: []string{tagged, signed(source, "a"), imageConfig("mirror", "registry.example.org/", "rewriteImage: {prefix: mirror.example.org/}")},
			want: "nothing does, because of ImageConfig mirror",
		},
		"NewPackage": {
			reason: "The target demands a signature of a package that is new.", base: []string{signed("registry.example.org/", "a")}, head: []string{signed("registry.example.org/other", "a"), tagged},
			want: "requires a signature of " + source + ":v1, but with this commit nothing does",
		},
		"Renamed": {reason: "Another ImageConfig makes the same demand.", base: []string{tagged, signed(source, "a")}, head: []string{tagged, strings.Replace(signed("registry.example.org/", "a"), "name: signed", "name: all", 1)}},
		"More":    {reason: "A demand that is new drops nothing.", base: []string{tagged}, head: []string{tagged, signed(source, "a")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := signaturesOf(t, tc.head).Dropped(signaturesOf(t, tc.base))
			got := ""
			for _, f := range found {
				got += f.Message
			}
			if len(found) > 1 || tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("%s\nDropped(...) is %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func signaturesOf(t *testing.T, files []string) packages.Signatures {
	t.Helper()
	tree := fstest.MapFS{}
	for i, content := range files {
		tree[string(rune('0'+i))+".yaml"] = &fstest.MapFile{Data: []byte(content)}
	}
	docs, err := catalogue.Open(tree, "", catalogue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return packages.Of(docs, false).Signatures()
}

// A lock that records another digest than the object names would have Headgate read one image, and Crossplane install the other.
func TestALockDoesNotReplaceADigest(t *testing.T) {
	named, locked := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for digest, wrong := range map[string]bool{named: false, locked: true} {
		docs, err := catalogue.Open(fstest.MapFS{
			"sea.yaml":        {Data: []byte("apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: sea}\nspec: {package: \"" + seaSource + "@sha256:" + named + "\"}\n")},
			packages.LockFile: {Data: []byte("apiVersion: headgate.dev/v1alpha1\nkind: PackageLock\npackages:\n- {source: " + seaSource + ", version: \"sha256:" + named + "\", digest: \"sha256:" + digest + "\"}\n")},
		}, "", catalogue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = packages.Of(docs, false).Catalogue()
		if got := err != nil && strings.Contains(err.Error(), "differs from the digest in version"); got != wrong {
			t.Errorf("digest %s: %v", digest[:1], err)
		}
	}
}

// A dependency has no object, so its source says which demands it had.
func TestDroppedSignaturesOfDependencies(t *testing.T) {
	opened := 0
	of := func(demand string) packages.Signatures {
		docs, err := catalogue.Open(fstest.MapFS{
			"sea.yaml":    {Data: []byte("apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: sea}\nspec: {package: \"" + seaSource + ":v1.0.0\"}\n")},
			"config.yaml": {Data: []byte("apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: signed}\nspec: {matchImages: [{prefix: \"" + demand + "\"}], verification: {provider: Cosign}}\n")},
		}, "", catalogue.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := packages.Of(docs, false)
		images := []packages.Image{answer(c.Missing()[0], "v1.0.0", sea, &opened)}
		c = c.With(images, packages.Live{})
		for _, r := range c.Missing() {
			images = append(images, answer(r, "v1.2.0", air, &opened))
		}
		return c.With(images, packages.Live{}).Signatures()
	}
	var got []string
	for _, f := range of("registry.example.org/other").Dropped(of(airSource)) {
		got = append(got, f.Message)
	}
	want := []string{"ImageConfig signed (config.yaml:4) requires a signature of " + airSource + ":v1.2.0, but with this commit nothing does, because of ImageConfig signed (config.yaml:1)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Dropped(...) (-want +got):\n%s", diff)
	}
}
