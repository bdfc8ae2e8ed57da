package xpkg_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/bombs"
	"headgate.dev/headgate/render/xpkg"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const stream = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\n"

// An entry is an entry of a tarball.
type entry struct {
	name, content string
	is            byte // 0 means tar.TypeReg
	link          string
}

func tarOf(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	b, err := tarred(entries...)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func tarred(entries ...entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.is, Linkname: e.link, Mode: 0o644, Size: int64(len(e.content))}
		if e.is == 0 {
			header.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// image returns an image with some layers. The labelled layers have the label of a package layer.
func image(tb testing.TB, layers [][]byte, labelled ...int) v1.Image {
	tb.Helper()
	img := empty.Image
	labels := map[string]string{}
	for i, content := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err != nil {
			tb.Fatal(err)
		}
		digest, err := layer.Digest()
		if err != nil {
			tb.Fatal(err)
		}
		if slices.Contains(labelled, i) {
			labels["io.crossplane.xpkg:"+digest.String()] = "base"
		} else {
			labels["io.crossplane.xpkg:"+digest.String()] = "upbound"
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			tb.Fatal(err)
		}
	}
	img, err := mutate.Config(img, v1.Config{Labels: labels})
	if err != nil {
		tb.Fatal(err)
	}
	return img
}

// written returns the .xpkg file of an image.
func written(tb testing.TB, img v1.Image) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := tarball.Write(name.MustParseReference("example.org/a:b"), img, &b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// with returns a tarball with changed and additional entries.
func with(tb testing.TB, file []byte, change func(*entry), more ...entry) []byte {
	tb.Helper()
	var entries []entry
	for r := tar.NewReader(bytes.NewReader(file)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		content, readErr := io.ReadAll(r)
		if err := errors.Join(err, readErr); err != nil {
			tb.Fatal(err)
		}
		e := entry{name: header.Name, content: string(content), is: header.Typeflag}
		if change != nil {
			change(&e)
		}
		entries = append(entries, e)
	}
	return tarOf(tb, append(entries, more...)...)
}

func read(file []byte, limit int64) (string, error) {
	r, err := xpkg.Open(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(file)), nil }, limit)
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(r)
	return string(content), errors.Join(err, r.Close())
}

func TestOpen(t *testing.T) {
	packageLayer := tarOf(t, entry{name: "package.yaml", content: stream})
	other := tarOf(t, entry{name: "usr/", is: tar.TypeDir}, entry{name: "usr/package.yaml", content: "other: true\n"}, entry{name: "bin/sh", is: tar.TypeSymlink, link: "busybox"})
	cases := map[string]struct {
		reason string
		file   []byte
		want   string
	}{
		"Labelled": {
			"The layer that is marked as the package is read.",
			written(t, image(t, [][]byte{other, packageLayer, tarOf(t, entry{name: ".up/examples.yaml", content: "example"})}, 1)), stream,
		},
		"FirstOfTwo": {
			"Of two marked layers, Crossplane reads the first.",
			written(t, image(t, [][]byte{packageLayer, tarOf(t, entry{name: "package.yaml", content: "second"})}, 0, 1)), stream,
		},
		"BelowADirectory": {"Only the last element of the path counts.", written(t, image(t, [][]byte{tarOf(t, entry{name: "./a/", is: tar.TypeDir}, entry{name: "./a/package.yaml", content: stream})}, 0)), stream},
		"Flattened":       {"Without a marked layer, the whole image is read.", written(t, image(t, [][]byte{packageLayer})), stream},
		"UpperLayer": {
			"A file in an upper layer replaces one in a lower layer.",
			written(t, image(t, [][]byte{tarOf(t, entry{name: "package.yaml", content: "old"}), packageLayer})), stream,
		},
		"Whiteout": {
			"An upper layer can delete files of lower layers.",
			written(t, image(t, [][]byte{tarOf(t, entry{name: "a/package.yaml", content: "old"}, entry{name: "b/package.yaml", content: stream}), tarOf(t, entry{name: "a/.wh.package.yaml"})})), stream,
		},
		"Empty": {"An empty package file is not an error here.", written(t, image(t, [][]byte{tarOf(t, entry{name: "package.yaml"})}, 0)), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := read(tc.file, 1<<20)
			if err != nil || got != tc.want {
				t.Errorf("%s\nOpen(...): want %q, got %q, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

// Every author of a repository can write such files.
func TestOpenRefuses(t *testing.T) {
	layer := func(entries ...entry) []byte { return written(t, image(t, [][]byte{tarOf(t, entries...)}, 0)) }
	flat := func(entries ...entry) []byte { return written(t, image(t, [][]byte{tarOf(t, entries...)})) }
	good := layer(entry{name: "package.yaml", content: stream})
	changed := func(old, replacement string) []byte {
		return with(t, good, func(e *entry) { e.content = strings.ReplaceAll(e.content, old, replacement) })
	}
	many := make([][]byte, 257)
	for i := range many {
		many[i] = tarOf(t, entry{name: "a"})
	}
	var longNames []entry
	for i := range 20 {
		longNames = append(longNames, entry{name: fmt.Sprintf("d%d/.wh.%s", i, strings.Repeat("x", 900_000))})
	}
	cases := map[string]struct {
		reason string
		file   []byte
		want   string
	}{
		"NoTarball":     {"Any file can have the extension of a package.", []byte("apiVersion: v1\n"), "it is not an image in a tarball: "},
		"Cut":           {"The file is incomplete.", good[:len(good)/2], "it is not an image in a tarball: "},
		"NoManifest":    {"The tarball does not contain an image.", tarOf(t, entry{name: "package.yaml", content: stream}), "it is not an image in a tarball: file manifest.json not found"},
		"NoPackage":     {"The image does not contain a package.", layer(entry{name: "a.yaml"}), "it holds no package.yaml, so it is not a package"},
		"NoPackageFlat": {"An image without a marked layer does not contain a package either.", flat(entry{name: "a.yaml"}), "it holds no package.yaml, so it is not a package"},
		"Two":           {"With two package files, it is unclear which one applies.", layer(entry{name: "package.yaml", content: stream}, entry{name: "a/package.yaml"}), `it holds two of package.yaml, the second as "a/package.yaml"`},
		"Link":          {"A link has no content.", flat(entry{name: "package.yaml", is: tar.TypeSymlink, link: "/etc/passwd"}), "its package.yaml is not a file"},
		"LinkInLayer":   {"The layer of a package must not contain a symbolic link.", layer(entry{name: "a", is: tar.TypeSymlink, link: "../../etc/passwd"}, entry{name: "package.yaml"}), `"a" is neither a file nor a directory`},
		"HardLink":      {"The layer of a package must not contain a hard link.", layer(entry{name: "package.yaml", is: tar.TypeLink, link: "a"}), `"package.yaml" is neither a file nor a directory`},
		"Device":        {"The layer of a package must not contain a device.", layer(entry{name: "package.yaml", content: stream}, entry{name: "dev/null", is: tar.TypeChar}), `"dev/null" is neither a file nor a directory`},
		"Outside":       {"A path must not lead out of the layer.", layer(entry{name: "../package.yaml", content: stream}), `"../package.yaml" points outside of it`},
		"Absolute":      {"A path must not be absolute.", layer(entry{name: "/package.yaml", content: stream}), `"/package.yaml" points outside of it`},
		"OutsideFlat":   {"A path must not lead out of the image.", flat(entry{name: "a/../../package.yaml", content: stream}), "unsafe tar path"},
		"LinkInTarball": {"The outer tarball must contain only files.", with(t, good, nil, entry{name: "a", is: tar.TypeSymlink, link: "/etc/passwd"}), `"a" is neither a file nor a directory`},
		"OutOfTarball":  {"A path must not lead out of the outer tarball.", with(t, good, nil, entry{name: "../a"}), `"../a" points outside of it`},
		"TwiceInside":   {"The outer tarball must not contain a file twice.", with(t, good, nil, entry{name: "./manifest.json", content: "[]"}), `it contains "manifest.json" twice`},
		"OtherLayer": {
			"The content of the layer does not match the config.",
			changed(diffID(t, packageLayerOf(t)), strings.Repeat("0", 64)), "its layer is not the one that its config names",
		},
		"TwoImages": {"A package has exactly one image.", with(t, good, func(e *entry) {
			if e.name == "manifest.json" {
				e.content = "[" + strings.Trim(strings.TrimSpace(e.content), "[]") + "," + strings.Trim(strings.TrimSpace(e.content), "[]") + "]"
			}
		}), "must contain only a single image"},
		"LargeMetadata": {"The size of the manifest is limited, because it is read into memory.", with(t, good, func(e *entry) {
			if e.name == "manifest.json" {
				e.content += strings.Repeat(" ", 5<<20)
			}
		}), "its manifest is larger than 4194304 bytes"},
		"LargeConfig": {"The size of the config is limited, because it is read into memory.", with(t, good, func(e *entry) {
			if strings.HasPrefix(e.name, "sha256:") {
				e.content += strings.Repeat(" ", 5<<20)
			}
		}), "its config is larger than 4194304 bytes"},
		"ManyLayers": {"The number of layers is limited, because each is searched from the beginning.", written(t, image(t, many)), "it has 257 layers, more than the limit of 256"},
		"LongNames":  {"The length of the names of hidden files is limited, because all are kept in memory.", flat(longNames...), "the names of its files are longer than 16777216 bytes together"},
		"TooLarge":   {"The size of the package file has the same limit as in Crossplane.", layer(entry{name: "package.yaml", content: strings.Repeat("a", 1<<20+1)}), "its package.yaml is larger than the limit of 1048576 bytes"},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			got, err := read(tc.file, 1<<20)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nOpen(...): want an error with %q, got %q, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func packageLayerOf(t *testing.T) v1.Layer {
	t.Helper()
	layers, err := image(t, [][]byte{tarOf(t, entry{name: "package.yaml", content: stream})}, 0).Layers()
	if err != nil {
		t.Fatal(err)
	}
	return layers[0]
}

func diffID(t *testing.T, layer v1.Layer) string {
	t.Helper()
	id, err := layer.DiffID()
	if err != nil {
		t.Fatal(err)
	}
	return id.Hex
}

// In a registry, the annotation of the layer itself counts, as for Crossplane. The author of the image also controls the labels,
// which could show Headgate a different package than Crossplane installs.
func TestOf(t *testing.T) {
	labelled := image(t, [][]byte{tarOf(t, entry{name: "package.yaml", content: "labelled"}), tarOf(t, entry{name: "package.yaml", content: stream})}, 0)
	layers, err := labelled.Layers()
	if err != nil {
		t.Fatal(err)
	}
	annotated, err := mutate.Append(labelled, mutate.Addendum{
		Layer:       static.NewLayer(tarOf(t, entry{name: "package.yaml", content: "annotated"}), types.OCILayer),
		Annotations: map[string]string{"io.crossplane.xpkg": "base"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for want, img := range map[string]v1.Image{stream: labelled, "annotated": annotated} {
		r, err := xpkg.Of(img, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if string(got) != want || err != nil {
			t.Errorf("want %q, got %q, %v", want, got, err)
		}
		m, err := img.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if needed := len(xpkg.Needed(m.Layers)); want == stream && needed != len(layers) || want != stream && needed != 1 {
			t.Errorf("of %q %d layers are needed", want, needed)
		}
	}
}

// A small file may unpack to any size, even in parts that are not read as YAML.
func TestBombs(t *testing.T) {
	const size = 1<<30 + 1<<20
	zeros := func(entries ...string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) {
			r, w := io.Pipe()
			go func() {
				out := tar.NewWriter(w)
				var err error
				for _, name := range entries {
					err = errors.Join(err, out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size}))
					_, copyErr := io.CopyN(out, bombs.Zeros{}, size)
					err = errors.Join(err, copyErr)
				}
				w.CloseWithError(errors.Join(err, out.Close()))
			}()
			return r, nil
		}
	}
	for name, bomb := range map[string]func() (io.ReadCloser, error){
		"BeforeThePackage": zeros("a"),
		"Hidden":           zeros(".wh.a"),
	} {
		t.Run(name, func(t *testing.T) {
			img, err := mutate.AppendLayers(empty.Image, uncompressed{open: bomb})
			if err != nil {
				t.Fatal(err)
			}
			_, err = xpkg.Of(img, 1<<20)
			if err == nil || !strings.Contains(err.Error(), "it takes more than the limit of 1073741824 bytes") {
				t.Errorf("want an error that says the limit, got %v", err)
			}
		})
	}
}

// An uncompressed is a layer that is added to an image without hashing it.
type uncompressed struct {
	v1.Layer
	open func() (io.ReadCloser, error)
}

func (u uncompressed) Uncompressed() (io.ReadCloser, error) { return u.open() }
func (u uncompressed) Digest() (v1.Hash, error) {
	return v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}, nil
}
func (u uncompressed) DiffID() (v1.Hash, error)            { return u.Digest() }
func (u uncompressed) MediaType() (types.MediaType, error) { return types.DockerLayer, nil }
func (u uncompressed) Size() (int64, error)                { return 1, nil }

// FuzzOpen opens images with any metadata and a layer with any entry. The result must be exactly the entry with the name of a
// package's YAML, and never larger than the limit.
func FuzzOpen(f *testing.F) {
	f.Add(`[{"Config":"c","Layers":["l"]}]`, `{"rootfs":{"diff_ids":["sha256:00"]}}`, "package.yaml", stream)
	f.Add(`[{"Config":"c","Layers":["l","l"]}]`, `{"config":{"Labels":{"io.crossplane.xpkg:sha256:00":"base"}}}`, "a/package.yaml", "")
	f.Add(`[{"Config":"manifest.json","Layers":["c"],"LayerSources":{"sha256:00":{"digest":"sha256:00"}}}]`, "{}", "../package.yaml", stream)
	f.Fuzz(func(t *testing.T, manifest, config, name, content string) {
		const limit = 1 << 10
		layer, err := tarred(entry{name: name, content: content})
		if err != nil {
			t.Skip() // no such name
		}
		file, err := tarred(entry{name: "manifest.json", content: manifest}, entry{name: "c", content: config}, entry{name: "l", content: string(layer)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(file, limit)
		if err != nil {
			return
		}
		if got != content || len(got) > limit || path.Base(name) != "package.yaml" {
			t.Errorf("read %q from an entry %q with %q", got, name, content)
		}
	})
}
