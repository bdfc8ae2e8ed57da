package kustomize_test

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/kustomize"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// tree returns the files of a commit. A name that ends with " ->" is a link.
func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		name, link := strings.CutSuffix(name, " ->")
		m[name] = &fstest.MapFile{Data: []byte(strings.TrimPrefix(text, "\n"))}
		if link {
			m[name].Mode = fs.ModeSymlink
		}
	}
	return m
}

// directories returns all directories with a kustomization.
func directories(files fs.FS) []string {
	var found []string
	_ = fs.WalkDir(files, ".", func(name string, _ fs.DirEntry, err error) error {
		if _, ok := kustomize.FileName(func(other string) bool { return other == path.Base(name) }); ok {
			found = append(found, path.Dir(name))
		}
		return err
	})
	slices.Sort(found)
	return slices.Compact(found)
}

func build(files fs.FS, limits manifest.Limits, dirs ...string) (kustomize.Build, []kustomize.Error) {
	if len(dirs) == 0 {
		dirs = directories(files)
	}
	return kustomize.Directories(files, manifest.NewReader(files, limits, nil), dirs)
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  a: b\n"
}

const policy = `
# what the team uses
apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceActivationPolicy
metadata:
  name: team
spec:
  activate:
  - buckets.example.org
  - queues.example.org
`

func TestDirectories(t *testing.T) {
	type result struct {
		Objects  []string // kind name@origin
		Local    []string
		Unbuilt  []string
		Findings []string // rule@origin
	}
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   result
		unread []string
	}{
		"Overlay": {
			reason: "An object's location is the beginning of its source document, whatever the build changed.",
			files: map[string]string{
				"base/kustomization.yaml":        "resources: [a.yaml, more]\n",
				"base/a.yaml":                    configMap("a") + "---\n" + configMap("b"),
				"base/more/kustomization.yml":    "resources:\n- c.yaml\n",
				"base/more/c.yaml":               configMap("c"),
				"overlay/prod/Kustomization":     "namePrefix: prod-\nnamespace: prod\nresources:\n- ../../base\n- d.yaml\n",
				"overlay/prod/d.yaml":            "# a comment\n\n" + configMap("d"),
				"overlay/prod/not-named.yaml":    configMap("e"),
				"overlay/prod/notes/readme.yaml": configMap("f"),
			},
			want: result{
				Objects:  []string{"ConfigMap prod-a@base/a.yaml:1", "ConfigMap prod-b@base/a.yaml:8", "ConfigMap prod-c@base/more/c.yaml:1", "ConfigMap prod-d@overlay/prod/d.yaml:3"},
				Findings: []string{"kustomization-base@base/kustomization.yaml:1", "kustomization-base@base/more/kustomization.yml:1"},
			},
			unread: []string{"overlay/prod/not-named.yaml", "overlay/prod/notes/readme.yaml"},
		},
		"ClusterScoped": {
			reason: "kustomize does not know that a policy has no namespace.",
			files:  map[string]string{"kustomization.yaml": "resources: [policy.yaml]\nnamespace: team\n", "policy.yaml": policy},
			want:   result{Objects: []string{"ManagedResourceActivationPolicy team@policy.yaml:2"}},
		},
		"Generated": {
			reason: "An object that no file declares has the location of the line that generates it.",
			files: map[string]string{
				"kustomization.yaml": `
configMapGenerator:
- name: settings
  files: [settings.properties, key=deep/key.txt]
- name: environment
  envs: [a.env]
secretGenerator:
- name: token
  literals: [token=x]
  options: {annotations: {mine: kept}}
generatorOptions:
  disableNameSuffixHash: true
`,
				"settings.properties": "a=b\n",
				"deep/key.txt":        "key",
				"a.env":               "A=1\nB=2\n",
			},
			want: result{Objects: []string{
				"ConfigMap environment@kustomization.yaml:4", "ConfigMap settings@kustomization.yaml:2", "Secret token@kustomization.yaml:7",
			}},
		},
		"Component": {
			reason: "A component changes what others build, and contributes nothing itself.",
			files: map[string]string{
				"app/kustomization.yaml":   "resources: [a.yaml]\ncomponents: [../with-b]\n",
				"app/a.yaml":               configMap("a"),
				"with-b/kustomization.yml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [b.yaml]\nnameSuffix: -x\n",
				"with-b/b.yaml":            configMap("b"),
				"unused/kustomization.yml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [c.yaml]\n",
				"unused/c.yaml":            configMap("c"),
			},
			want: result{
				Objects: []string{"ConfigMap a-x@app/a.yaml:1", "ConfigMap b-x@with-b/b.yaml:1"},
				Unbuilt: []string{"unused"},
			},
		},
		"LocalOnly": {
			reason: "A document that only serves the build, such as the source of a replacement, is counted and not applied.",
			files: map[string]string{
				"kustomization.yaml": `
resources: [a.yaml, local.yaml]
replacements:
- source: {kind: ConfigMap, name: local, fieldPath: data.a}
  targets: [{select: {kind: ConfigMap, name: a}, fieldPaths: [data.a]}]
`,
				"a.yaml":     configMap("a"),
				"local.yaml": strings.Replace(configMap("local"), "\ndata:", "\n  annotations: {config.kubernetes.io/local-config: \"true\"}\ndata:", 1),
			},
			want: result{Objects: []string{"ConfigMap a@a.yaml:1"}, Local: []string{"local.yaml"}},
		},
		"Deleted": {
			reason: "A patch may delete an object, and the others must keep their locations.",
			files: map[string]string{
				"kustomization.yaml": "resources: [a.yaml]\npatches:\n- patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, $patch: delete}'\n",
				"a.yaml":             strings.Join([]string{configMap("a"), configMap("b"), configMap("c")}, "---\n"),
			},
			want: result{Objects: []string{"ConfigMap a@a.yaml:1", "ConfigMap c@a.yaml:15"}},
		},
		"AnnotationsReplaced": {
			reason: "If a patch removes all annotations, the kustomization is the best location.",
			files: map[string]string{
				"app/kustomization.yaml": "resources: [a.yaml]\npatches:\n- target: {name: a}\n  patch: '[{op: add, path: /metadata/annotations, value: {x: y}}]'\n",
				"app/a.yaml":             configMap("a"),
			},
			want: result{Objects: []string{"ConfigMap a@app/kustomization.yaml:1"}},
		},
		"Empty": {
			reason: "A kustomization may build nothing.",
			files:  map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "# to come\n"},
		},
		"ListsAndNoEnd": {
			reason: "The items of a List are unwrapped, and a file need not end with a line break.",
			files: map[string]string{
				"kustomization.yaml": "resources: [a.json, b.yaml]",
				"a.json":             `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}]}`,
				"b.yaml":             "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: c}\n- metadata: {name: d}",
			},
			want: result{Objects: []string{"ConfigMap a@a.json:1", "ConfigMap b@a.json:1", "ConfigMap c@b.yaml:4", "ConfigMap d@b.yaml:5"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := tree(tc.files)
			made, problems := build(files, manifest.Limits{})
			if len(problems) > 0 {
				t.Fatalf("%s\n%v", tc.reason, problems)
			}
			got := result{Local: made.LocalFiles, Unbuilt: made.Unbuilt}
			for _, d := range made.Documents {
				got.Objects = append(got.Objects, fmt.Sprintf("%s %s@%s", d.Header.Kind, d.Header.Name, d.Origin))
				u, err := d.Decode()
				if err != nil {
					t.Fatal(err)
				}
				if d.Header.Kind == "ManagedResourceActivationPolicy" && u.GetNamespace() != "" {
					t.Errorf("policy %s is in namespace %s", d.Header.Name, u.GetNamespace())
				}
				if text := fmt.Sprint(u.Object); strings.Contains(text, "kustomized-from") {
					t.Errorf("%s bears our mark: %s", d.Header.Name, text)
				}
			}
			slices.Sort(got.Objects)
			for _, f := range made.Findings {
				got.Findings = append(got.Findings, f.Rule+"@"+f.Origin.String())
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDirectories(...) (-want +got):\n%s", tc.reason, diff)
			}
			for name := range files {
				read := !slices.Contains(tc.unread, name)
				if strings.HasPrefix(name, "unused/") && !strings.Contains(name, "kustom") {
					continue // the file was checked, and therefore read
				}
				if made.Reads[name] != read {
					t.Errorf("%s took part: want %t, got %t", name, read, made.Reads[name])
				}
			}
		})
	}
}

// Objects keep the lines of their source unless kustomize changed them.
func TestLines(t *testing.T) {
	files := map[string]string{
		"kustomization.yaml": "resources: [policy.yaml]\nnamePrefix: a-\ncommonAnnotations: {a: b}\n",
		"policy.yaml":        policy,
	}
	pattern := func() manifest.Origin {
		made, problems := build(tree(files), manifest.Limits{})
		if len(problems) > 0 || len(made.Documents) != 1 {
			t.Fatal(problems)
		}
		return made.Documents[0].OriginOf("spec", "activate", 1)
	}
	if got := pattern(); got.Line != 9 {
		t.Errorf("the second pattern is in line 9, got %s", got)
	}
	files["kustomization.yaml"] += "patches:\n- target: {kind: ManagedResourceActivationPolicy}\n  patch: '[{op: add, path: /spec/activate/-, value: tables.example.org}]'\n"
	if got := pattern(); got.Line != 9 {
		t.Errorf("a patch has added another one, and the second is still in line 9, got %s", got)
	}
	files["kustomization.yaml"] += "- target: {kind: ManagedResourceActivationPolicy}\n  patch: '[{op: remove, path: /spec/activate/0}]'\n"
	if got := pattern(); got.Line != 2 {
		t.Errorf("a patch has moved the patterns, so the document has to do: line 2, got %s", got)
	}
}

func TestManyCRDs(t *testing.T) {
	var crds strings.Builder
	for i := range 301 {
		fmt.Fprintf(&crds, "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x%d.example.org}\n", i)
	}
	made, problems := build(tree(map[string]string{"kustomization.yaml": "resources: [crds.yaml]", "crds.yaml": crds.String()}), manifest.Limits{})
	if len(problems) > 0 || len(made.Findings) != 1 || made.Findings[0].Rule != kustomize.RuleManyCRDs || len(made.Documents) != 301 {
		t.Errorf("a waiting user should learn the reason: %v, %v", made.Findings, problems)
	}
}
