package render_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// A commit is a set of files with hashes. It counts how often each file is opened.
type commit struct {
	fstest.MapFS

	mu     sync.Mutex
	opened map[string]int
}

func (c *commit) Hash(name string) (string, error) {
	f, ok := c.MapFS[name]
	if !ok {
		return "", fs.ErrNotExist
	}
	sum := sha256.Sum256(f.Data)
	return hex.EncodeToString(sum[:]), nil
}

func (c *commit) Open(name string) (fs.File, error) {
	if f := c.MapFS[name]; f != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.opened == nil {
			c.opened = map[string]int{}
		}
		c.opened[name]++
	}
	return c.MapFS.Open(name)
}

// rendered returns everything that is visible of a rendered commit, or the reason why it cannot be rendered.
func rendered(t *testing.T, files fs.FS, how render.Options) string {
	t.Helper()
	want, err := render.Render(render.Input{Files: files}, how)
	if err != nil {
		return err.Error()
	}
	output := string(dump(t, want))
	for _, d := range want.Definitions { // active or not
		for _, made := range []func() (render.Object, error){d.CRD, d.MRD} {
			output += made1(made())
		}
	}
	return output
}

func made1(o render.Object, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	content, err := o.Content()
	text, failed := o.Text("text", func(u *unstructured.Unstructured) (string, error) { return fmt.Sprint(u.Object), nil })
	return fmt.Sprintf("%s %s %s %t %v %v %v %s %v\n", o.ID, o.Digest, o.Origin, o.Activates, o.Problem, content, err, text, failed)
}

// pieces lists the possible contents of each file. Some are invalid.
var pieces = map[string][]string{
	"pkg/crossplane.yaml": {
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-toy\nspec:\n  capabilities: [safe-start]\n",
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-toy\n",
		"apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: other}\nspec: {capabilities: [safe-start]}\n",
		"kind: nothing of Crossplane\n",
	},
	"pkg/crds/a.yaml":        {crdOf("as", "A"), crdOf("as", "Anew"), crdOf("as", "A") + "---\n" + crdOf("bs", "B"), strings.Replace(crdOf("as", "A"), "versions:", "versions: {a: b}\n  other:", 1)},
	"pkg/crds/b.yaml":        {crdOf("bs", "B") + "  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {path: /convert}}}}\n", "# nothing\n", crdOf("bs", "B")},
	"pkg/crds/c.yaml":        {crdOf("cs", "ProviderConfig"), crdOf("cs", "C"), crdOf("cs", "C") + "broken: [\n"},
	"mrd.yaml":               {nativeMRD, strings.Replace(nativeMRD, "spec:\n", "spec:\n  state: Active\n", 1), strings.Replace(nativeMRD, "versions:", "versions: none\n  was:", 1)},
	"policy.yaml":            {policyOf("*"), policyOf("as.toy.example.org", "nothing.toy.example.org"), policyOf("[") + "---\n" + policyOf("bs.*"), "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: p}\n"},
	"list.yaml":              {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: \"${b}\"}}\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n", "apiVersion: v1\nkind: ConfigMapList\nitems:\n- {metadata: {name: a}}\n- 1\n"},
	"object.json":            {`{"apiVersion":"toy.example.org/v1","kind":"A","metadata":{"name":"x"},"spec":{"f":1.0,"g":1e3}}`, `{"apiVersion":"v1",`, `[1]`},
	"provider.yaml":          {"apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata:\n  name: provider-toy\nspec:\n  package: example.org/toy:v1\n"},
	"details.yaml":           {connectionDetails, strings.Replace(connectionDetails, "where", "nowhere", 1)},
	"kus/kustomization.yaml": {"resources: [a.yaml]\nnamePrefix: x-\n", "resources: [a.yaml, ../list.yaml]\nsecretGenerator: [{name: s, literals: [a=b]}]\n", "configMapGenerator: [{name: g, files: [../policy.yaml]}]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n", "resources: [a.yaml, ../mrd.yaml]\n", "resources: [b.yaml]\n", "kind: Kustomization\napiVersion: example.org/v1\nmetadata: {name: k}\n"},
	"kus/p.yaml":             {"[{op: add, path: /data/x, value: y}]\n", "[{op: add, path: /data/x, value: z}]\n", "[broken"},
	"kus/a.yaml":             {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: k}\ndata: {a: \"${b}\"}\n", policyOf("*.toy.example.org")},
	".headgateignore":        {"object.json\n", "pkg/crds/c.yaml\n", "*.tmp\n"},
}

// firstPieces returns a valid commit.
func firstPieces() fstest.MapFS {
	files := fstest.MapFS{}
	for name, texts := range pieces {
		files[name] = &fstest.MapFile{Data: []byte(texts[0])}
	}
	return files
}

func policyOf(patterns ...string) string { return string(policy(patterns...).Data) }

func crdOf(plural, kind string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.toy.example.org
spec:
  group: toy.example.org
  names:
    kind: %[2]s
    plural: %[1]s
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x: 1.0}
`, plural, kind)
}

// TestMemo edits a commit repeatedly and renders it twice each time: with a Memo of all previous commits, and without one.
func TestMemo(t *testing.T) {
	names := slices.Sorted(maps.Keys(pieces))
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		inMemory := new(memo.Memory) // of this history
		files := firstPieces()
		for range rapid.IntRange(1, 12).Draw(r, "commits") {
			for range rapid.IntRange(1, 4).Draw(r, "edits") {
				name := rapid.SampledFrom(names).Draw(r, "file")
				switch text := rapid.SampledFrom(pieces[name]).Draw(r, "text"); rapid.IntRange(0, 9).Draw(r, "edit") {
				case 0:
					delete(files, name)
				case 1: // the same content at another path
					files["moved/"+strings.TrimPrefix(name, "pkg/")] = &fstest.MapFile{Data: []byte(text)}
				default:
					files[name] = &fstest.MapFile{Data: []byte(text)}
				}
			}
			how := render.Options{
				Owner:      rapid.SampledFrom([]render.Owner{render.OwnerHeadgate, render.OwnerCrossplane, render.OwnerAuto}).Draw(r, "owner"),
				Conversion: rapid.SampledFrom([]render.Conversion{{}, {Strategy: render.ConversionInject, Namespace: "ns", CABundle: theCA}, {Strategy: render.ConversionNone}}).Draw(r, "conversion"),
				Limits:     rapid.SampledFrom([]manifest.Limits{{}, {}, {Depth: 6}, {Documents: 5}, {TotalBytes: 2000}}).Draw(r, "limits"),
			}
			want := rendered(t, &commit{MapFS: files}, how)

			onDisk := memo.Open(dir, "all histories")
			for name, remembered := range map[string]manifest.Memo{"memory": inMemory, "disk": onDisk} {
				how.Memo = remembered
				if diff := cmp.Diff(want, rendered(t, &commit{MapFS: files}, how)); diff != "" {
					r.Fatalf("with a memo in %s (-without +with):\n%s", name, diff)
				}
			}
			if err := onDisk.Close(); err != nil {
				r.Fatal(err)
			}
		}
	})
}

func TestUnchangedFilesAreNotRead(t *testing.T) {
	files := firstPieces()
	delete(files, "list.yaml") // this file contains a Secret
	for _, owner := range []render.Owner{render.OwnerHeadgate, render.OwnerCrossplane} {
		dir := t.TempDir()
		for process, change := range []string{"", "", "pkg/crds/b.yaml", ""} {
			if change != "" {
				files[change] = &fstest.MapFile{Data: slices.Concat(files[change].Data, []byte("# changed\n"))}
			}
			c := &commit{MapFS: files}
			learnt := memo.Open(dir, "toy")
			got := rendered(t, c, render.Options{Owner: owner, Memo: learnt})
			if err := learnt.Close(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, "as.toy.example.org") {
				t.Fatalf("not rendered: %s", got)
			}
			if process > 0 && len(c.opened) != len(strings.Fields(change)) || c.opened[change] == 0 && change != "" {
				t.Errorf("owner %s, process %d: only what changed is read, %q: read %v", owner, process, change, c.opened)
			}
		}
	}
}

func TestMemoOfAWS(t *testing.T) { fixtures.Large(t, memoOfAWS) }

func memoOfAWS(t *testing.T, provider fstest.MapFS) {
	t.Helper()
	files := withPolicy(provider, "*.s3.aws.m.upbound.io")
	learnt := new(memo.Memory)
	first := mustRender(t, &commit{MapFS: files}, render.Options{Memo: learnt})
	c := &commit{MapFS: files}
	again := mustRender(t, c, render.Options{Memo: learnt})
	if len(c.opened) > 0 {
		t.Errorf("%d files of an unchanged commit are read", len(c.opened))
	}
	if diff := cmp.Diff(string(dump(t, first)), string(dump(t, again))); diff != "" {
		t.Errorf("a definition makes the same where it is made when it is asked for (-first +again):\n%s", diff)
	}
}

func TestNoSecretIsRemembered(t *testing.T) {
	files := fstest.MapFS{
		"kustomization.yaml": file("resources: [a.yaml, b.yaml]\nreplacements:\n- source: {kind: Secret, fieldPath: stringData.a}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a]}]\n"),
		"a.yaml":             file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: plain}\n"),
		"b.yaml":             file("apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData: {a: hush}\n"),
	}
	dir := t.TempDir()
	learnt := memo.Open(dir, "toy")
	if got := rendered(t, &commit{MapFS: files}, render.Options{Memo: learnt}); strings.Count(got, "hush") == 0 {
		t.Fatalf("not rendered: %s", got)
	}
	want := mustRender(t, &commit{MapFS: files}, render.Options{Memo: learnt})
	for _, o := range want.Objects {
		made1(o, nil)
	}
	if err := learnt.Close(); err != nil {
		t.Fatal(err)
	}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if strings.Contains(string(raw), "hush") {
			t.Error("what kustomize took from a Secret is written to disk")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
