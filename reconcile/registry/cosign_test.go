package registry_test

import (
	"archive/tar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// byCosign holds the output of cosign v3.0.6: a public key, and an OCI layout with a package. Its signature is under a tag
// (--new-bundle-format=false) and in a bundle that refers to the package.
const byCosign = "testdata/cosign"

// refName is the annotation with the name of an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// TestCosign checks that Headgate reads signatures as cosign writes them, and not only as our own tests do. HEADGATE_COSIGN=PROGRAM
// records them again.
func TestCosign(t *testing.T) {
	if program := os.Getenv("HEADGATE_COSIGN"); program != "" {
		record(t, program)
	}
	written := recorded(t)
	other := filepath.Join(t.TempDir(), "other.pub")
	if err := os.WriteFile(other, newSigner(t).pem(t), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := imageOf(t, tarred(t, tar.Header{Name: "package.yaml", Typeflag: tar.TypeReg}, metadata+"# changed\n"), isBase)
	its, err := changed.Digest()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := written["package"].Digest()
	if err != nil {
		t.Fatal(err)
	}
	tag := func(of v1.Hash) string { return "sha256-" + of.Hex + ".sig" }
	cases := map[string]struct {
		reason string
		push   map[string]v1.Image // by tag
		key    string
		want   string // error of a package that is not read; "" if it is read
	}{
		"Tag":       {"cosign v2 writes the signature to a tag, which Crossplane reads.", map[string]v1.Image{"v1.0.0": written["package"], tag(signed): written["signature"]}, "cosign.pub", ""},
		"Bundle":    {"cosign v3 writes a bundle.", map[string]v1.Image{"v1.0.0": written["package"], "bundle": written["bundle"]}, "cosign.pub", ""},
		"Both":      {"An image may have both forms of signature.", map[string]v1.Image{"v1.0.0": written["package"], tag(signed): written["signature"], "bundle": written["bundle"]}, "cosign.pub", ""},
		"OtherKey":  {"Another key signed the image.", map[string]v1.Image{"v1.0.0": written["package"], tag(signed): written["signature"], "bundle": written["bundle"]}, other, "no signature is accepted"},
		"Unsigned":  {"The image is unsigned.", map[string]v1.Image{"v1.0.0": written["package"]}, "cosign.pub", "the image has no signature"},
		"Changed":   {"An unsigned image was pushed to the tag of a signed one.", map[string]v1.Image{"v1.0.0": changed, tag(signed): written["signature"], "bundle": written["bundle"]}, "cosign.pub", "the image has no signature"},
		"Moved":     {"The signature was copied to the tag of another image.", map[string]v1.Image{"v1.0.0": changed, tag(its): written["signature"]}, "cosign.pub", "it is the signature of another image"},
		"Referring": {"The bundle was changed to refer to another image.", map[string]v1.Image{"v1.0.0": changed, "bundle": referringTo(t, written["bundle"], changed)}, "cosign.pub", "no signature is accepted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_CONFIG", t.TempDir())
			r := fixtures.StartAuthenticatedRegistry(t) // not all of these registries support referrers
			for tag, img := range tc.push {
				r.PushImage(t, "acme/provider-sea", tag, img)
			}
			key := tc.key
			if !filepath.IsAbs(key) {
				key = filepath.Join(byCosign, key)
			}
			s := &registry.Resolver{Next: demanding(r, byAcme), Cache: t.TempDir(), Keychain: only{r.Host}, KeyFiles: map[string]string{"acme/cosign.pub": key}}
			want := rendered(t, s, render.OwnerCrossplane)
			if tc.want != "" {
				if len(want.Unread) != 1 || len(want.Packages) > 0 || !strings.Contains(want.Unread[0].Err.Error(), tc.want) {
					t.Errorf("%s: want %q, got %v", tc.reason, tc.want, want.Unread)
				}
				return
			}
			if len(want.Packages) != 1 || len(want.Unread) > 0 {
				t.Errorf("%s: %v", tc.reason, want.Unread)
			}
			var lines []string
			for _, f := range want.Findings {
				if f.Severity == manifest.Warning && f.Rule == registry.RuleSignature {
					lines = append(lines, f.Rule)
				}
			}
			if diff := cmp.Diff([]string{registry.RuleSignature}, lines); diff != "" {
				t.Errorf("none of them is in a log, which Crossplane wants (-want +got):\n%s", diff)
			}
		})
	}
}

// referringTo returns a copy of an image that refers to another image.
func referringTo(t *testing.T, img, about v1.Image) v1.Image {
	t.Helper()
	digest, err := about.Digest()
	if err != nil {
		t.Fatal(err)
	}
	m, err := about.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	refers, ok := mutate.Subject(img, v1.Descriptor{MediaType: m.MediaType, Digest: digest}).(v1.Image)
	if !ok {
		t.Fatal("an image with a subject is an image")
	}
	return refers
}

// recorded returns the images of the layout, by name.
func recorded(t *testing.T) map[string]v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(filepath.Join(byCosign, "layout"))
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, m := range manifests.Manifests {
		if images[m.Annotations[refName]], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return images
}

// record signs a package with cosign and stores the result.
func record(t *testing.T, program string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("DOCKER_CONFIG", home)
	r := start(t)
	repository := r.Host + "/acme/provider-sea"
	digest := r.PushImage(t, "acme/provider-sea", "v1.0.0", imageOf(t, tarred(t, tar.Header{Name: "package.yaml", Typeflag: tar.TypeReg}, metadata), isBase))
	cosign := func(args ...string) {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "COSIGN_PASSWORD="}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("cosign %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	cosign("generate-key-pair")
	for _, bundle := range []string{"false", "true"} {
		cosign("sign", "-y", "--key", "cosign.key", "--tlog-upload=false", "--use-signing-config=false", "--allow-http-registry", "--new-bundle-format="+bundle, repository+"@"+digest)
	}
	ref, err := name.NewDigest(repository + "@" + digest)
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := remote.Referrers(ref)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := referrers.IndexManifest()
	if err != nil || len(manifests.Manifests) != 1 {
		t.Fatalf("one image refers to it: %v, %v", manifests, err)
	}
	to := filepath.Join(byCosign, "layout")
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	path, err := layout.Write(to, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for called, at := range map[string]name.Reference{
		"package":   ref,
		"signature": ref.Tag("sha256-" + strings.TrimPrefix(digest, "sha256:") + ".sig"),
		"bundle":    ref.Digest(manifests.Manifests[0].Digest.String()),
	} {
		img, err := remote.Image(at, remote.WithAuth(authn.Anonymous))
		if err == nil {
			err = path.AppendImage(img, layout.WithAnnotations(map[string]string{refName: called}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	public, err := os.ReadFile(filepath.Join(home, "cosign.pub"))
	if err == nil {
		err = os.WriteFile(filepath.Join(byCosign, "cosign.pub"), public, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
