//test:package raced minutes=1
package registry_test

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const metadata = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-sea}\n"

// tarred returns a tarball with one entry.
func tarred(t *testing.T, header tar.Header, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	header.Size, header.Mode = int64(len(content)), 0o644
	if err := w.WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// imageOf returns an image with one layer, which holds the package.
func imageOf(t *testing.T, content []byte, annotations map[string]string) v1.Image {
	t.Helper()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{Layer: layer, MediaType: types.OCILayer, Annotations: annotations})
	if err != nil {
		t.Fatal(err)
	}
	return img
}

var isBase = map[string]string{"io.crossplane.xpkg": "base"}

// A commit can name any image, and its author may control the registry. Headgate trusts nothing in an image, and no image may
// prevent a render for Crossplane.
//
//test:unraced
func TestHostileImages(t *testing.T) {
	file := func(name, content string) []byte {
		return tarred(t, tar.Header{Name: name, Typeflag: tar.TypeReg}, content)
	}
	cases := map[string]struct {
		reason string
		image  v1.Image
		want   string
	}{
		"Good":      {"A valid package is read, which shows that the other cases fail for their own reason.", imageOf(t, file("package.yaml", metadata), isBase), ""},
		"Flattened": {"An image without a marked layer is read as a whole.", imageOf(t, file("package.yaml", metadata), nil), ""},
		"NoPackage": {"The image contains no package file.", imageOf(t, file("a.yaml", metadata), isBase), "it holds no package.yaml, so it is not a package"},
		"Outside":   {"A path leads out of the image.", imageOf(t, file("../package.yaml", metadata), isBase), "points outside of it"},
		"Absolute":  {"A path is absolute.", imageOf(t, file("/package.yaml", metadata), isBase), "points outside of it"},
		"Link": {"The package file is a symbolic link.", imageOf(t, tarred(t, tar.Header{Name: "package.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, ""), isBase),
			"is neither a file nor a directory"},
		"HardLink": {"The package file is a hard link.", imageOf(t, tarred(t, tar.Header{Name: "package.yaml", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""), isBase),
			"is neither a file nor a directory"},
		"Device":      {"The image contains a device.", imageOf(t, tarred(t, tar.Header{Name: "dev/sda", Typeflag: tar.TypeBlock}, ""), isBase), "is neither a file nor a directory"},
		"NoMetadata":  {"The package has no metadata.", imageOf(t, file("package.yaml", "apiVersion: v1\nkind: List\nitems: []\n"), isBase), "has no metadata, so it is not a package"},
		"TwoMetadata": {"The package has metadata twice.", imageOf(t, file("package.yaml", metadata+"---\n"+metadata), isBase), "a package has one metadata document"},
		"Unknown": {"The package contains a kind that Crossplane cannot decode.", imageOf(t, file("package.yaml", metadata+"---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"), isBase),
			"is not a kind that Crossplane can decode in a package"},
		"Broken":   {"The package file is not YAML.", imageOf(t, file("package.yaml", metadata+"---\na: [\n"), isBase), "/package.yaml:5: "},
		"NotText":  {"The package file is not text.", imageOf(t, file("package.yaml", "\x00"), isBase), "it holds a NUL byte"},
		"NotTar":   {"The layer is not a tarball.", imageOf(t, []byte("abc"), isBase), "cannot be read"},
		"NoLayers": {"The image has no layers.", mutate.MediaType(empty.Image, types.OCIManifestSchema1), "it is not an image with layers"},
		"Bomb":     {"The package file is larger than Crossplane accepts.", imageOf(t, file("package.yaml", metadata+strings.Repeat("#\n", 101<<20)), isBase), "is larger than the limit of 209715200 bytes"},
	}
	r := start(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			repository := "acme/" + strings.ToLower(name)
			r.PushImage(t, repository, "v1.0.0", tc.image)
			want := rendered(t, source(t, r.Host+"/"+repository+":v1.0.0"), render.OwnerCrossplane)
			if tc.want == "" {
				if len(want.Packages) != 1 || len(want.Unread) > 0 {
					t.Errorf("%s: %v, %v", tc.reason, want.Packages, want.Unread)
				}
				return
			}
			if len(want.Unread) != 1 || len(want.Definitions) > 0 || !strings.Contains(want.Unread[0].Err.Error(), tc.want) {
				t.Errorf("%s\nwant %q, got %v, and %d definitions", tc.reason, tc.want, want.Unread, len(want.Definitions))
			}
		})
	}
}

func source(t *testing.T, image string) *registry.Resolver {
	t.Helper()
	return &registry.Resolver{Next: commit{files: tree(installs("Provider", "provider-sea", image, ""))}, Cache: t.TempDir()}
}

// Headgate hashes the responses of a registry; the digests that it sends do not count.
func TestLyingRegistry(t *testing.T) {
	lies := map[string]struct {
		reason string
		answer func(w http.ResponseWriter, req *http.Request) bool
		want   string
	}{
		"Layer": {"The registry returns another layer than the manifest names.", func(w http.ResponseWriter, req *http.Request) bool {
			if strings.Contains(req.URL.Path, "/blobs/") {
				_, _ = io.WriteString(w, "{}")
			}
			return strings.Contains(req.URL.Path, "/blobs/")
		}, "error verifying"},
		"Endless": {"The registry returns an endless blob.", func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.Contains(req.URL.Path, "/blobs/") {
				return false
			}
			for req.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					break
				}
			}
			return true
		}, "it is larger than the"},
		"Manifest": {"The registry returns another manifest than the one with the digest.", func(w http.ResponseWriter, req *http.Request) bool {
			if strings.Contains(req.URL.Path, "/manifests/sha256:") {
				w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
				_, _ = io.WriteString(w, `{"schemaVersion":2}`)
				return true
			}
			return false
		}, "does not match requested digest"},
		"Page": {"The registry returns a page, which the error quotes on one line.", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, strings.Repeat("<p>\x1b[31m\n", 1000))
			return true
		}, "418"},
	}
	for name, tc := range lies {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			r.PushImage(t, "acme/provider-sea", "v1.0.0", imageOf(t, tarred(t, tar.Header{Name: "package.yaml", Typeflag: tar.TypeReg}, metadata), isBase))
			r.Through(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if !tc.answer(w, req) {
						next.ServeHTTP(w, req)
					}
				})
			})
			want := rendered(t, source(t, r.Host+"/acme/provider-sea:v1.0.0"), render.OwnerCrossplane)
			if len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), tc.want) {
				t.Fatalf("%s\nwant %q, got %v", tc.reason, tc.want, want.Unread)
			}
			if text := want.Unread[0].Err.Error(); strings.ContainsAny(text, "\x1b\n") || len(text) > 600 {
				t.Errorf("%q", text)
			}
		})
	}
}

// A commit must not make Headgate send requests to addresses that only this machine can reach.
func TestNoLinkLocal(t *testing.T) {
	start(t)
	want := rendered(t, source(t, "169.254.169.254/latest/meta-data:v1"), render.OwnerCrossplane)
	if len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), "refusing to connect to 169.254.169.254") {
		t.Errorf("%v", want.Unread)
	}
}

// For an image with several platforms, Headgate reads the one that Crossplane installs.
func TestIndex(t *testing.T) {
	r := start(t)
	good := imageOf(t, tarred(t, tar.Header{Name: "package.yaml", Typeflag: tar.TypeReg}, metadata), isBase)
	other := imageOf(t, tarred(t, tar.Header{Name: "other", Typeflag: tar.TypeReg}, ""), isBase)
	arm, amd := v1.Platform{OS: "linux", Architecture: "arm64"}, v1.Platform{OS: "linux", Architecture: "amd64"}
	both := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: other, Descriptor: v1.Descriptor{Platform: &arm}},
		mutate.IndexAddendum{Add: good, Descriptor: v1.Descriptor{Platform: &amd}})
	digest := r.PushIndex(t, "acme/provider-sea", "v1.0.0", both)
	want := rendered(t, source(t, r.Host+"/acme/provider-sea:v1.0.0"), render.OwnerCrossplane)
	if len(want.Packages) != 1 || want.Packages[0].Digest != digest {
		t.Errorf("%v, %v", want.Packages, want.Unread)
	}
	r.PushIndex(t, "acme/arm", "v1.0.0", mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: good, Descriptor: v1.Descriptor{Platform: &arm}}))
	want = rendered(t, source(t, r.Host+"/acme/arm:v1.0.0"), render.OwnerCrossplane)
	if len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), "none of its 1 images is for linux/amd64") {
		t.Errorf("%v", want.Unread)
	}
}
