package kustomize_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// A lookout detects network access, started programs and written files.
type lookout struct {
	requests []string
	ran      string // what the programs that replace git and others wrote
	temp     string
}

func (l *lookout) RoundTrip(req *http.Request) (*http.Response, error) {
	l.requests = append(l.requests, "went to the network: "+req.URL.String())
	return nil, errors.New("there is no network")
}

func newLookout(tb testing.TB) *lookout {
	tb.Helper()
	l := &lookout{ran: filepath.Join(tb.TempDir(), "ran"), temp: tb.TempDir()}
	bin := tb.TempDir()
	for _, program := range []string{"git", "helm", "docker", "podman", "sh", "kustomize", "evil", "Evil"} {
		script := "#!/bin/sh\necho " + program + ` "$@" >> ` + l.ran + "\nexit 1\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Setenv("PATH", bin)
	tb.Setenv("TMPDIR", l.temp)
	tb.Setenv("KUSTOMIZE_PLUGIN_HOME", bin)
	before := http.DefaultTransport
	http.DefaultTransport = l
	tb.Cleanup(func() { http.DefaultTransport = before })
	return l
}

// seen returns what was detected since the previous call.
func (l *lookout) seen() []string {
	all := l.requests
	l.requests = nil
	if output, err := os.ReadFile(l.ran); err == nil {
		all = append(all, "ran a program: "+string(output))
		_ = os.Remove(l.ran)
	}
	left, err := os.ReadDir(l.temp)
	if err != nil {
		all = append(all, err.Error())
	}
	for _, entry := range left {
		all = append(all, "wrote a file: "+entry.Name())
		_ = os.RemoveAll(filepath.Join(l.temp, entry.Name()))
	}
	return all
}

// The lookout must be able to detect something: kustomize itself does all of it with a remote base.
func TestLookout(t *testing.T) {
	l := newLookout(t)
	disk := filesys.MakeFsInMemory()
	_ = disk.WriteFile("/kustomization.yaml", []byte("resources: [https://example.org/a/b]"))
	if _, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, "/"); err == nil {
		t.Fatal("no error")
	}
	seen := strings.Join(l.seen(), "\n")
	for _, want := range []string{"went to the network: https://example.org/a/b", "ran a program: git init"} {
		if !strings.Contains(seen, want) {
			t.Errorf("want %q, got %s", want, seen)
		}
	}
	if err := os.WriteFile(filepath.Join(os.TempDir(), "x"), nil, 0o600); err != nil || len(l.seen()) != 1 {
		t.Errorf("a file was not seen: %v", err)
	}
}

func TestRefused(t *testing.T) {
	const (
		component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
		kustom    = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	)
	// files that every case may use
	common := map[string]string{
		"app/cm.yaml":             configMap("a"),
		"app/sub/x.yaml":          configMap("x"),
		"base/kustomization.yml":  "resources: [b.yaml]\n",
		"base/b.yaml":             configMap("b"),
		"part/kustomization.yml":  component + "resources: [c.yaml]\n",
		"part/c.yaml":             configMap("c"),
		"stale/kustomization.yml": "resources: [../base]\npatches:\n- {target: {kind: ConfigMap}, patch: '[{op: add, path: /data/x, value: x}]'}\n- {target: {kind: ConfigMap}, patch: '[{op: remove, path: /data/gone}]'}\n",
		"app/link.yaml ->":        "../../etc/passwd",
		"linked ->":               "/etc",
		"app/function.yaml":       "apiVersion: example.org/v1\nkind: Fn\nmetadata:\n  name: fn\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: example.org/fn}\n",
		"app/exec.yaml":           "apiVersion: builtin\nkind: PatchTransformer\nmetadata:\n  name: fn\n  annotations:\n    config.kubernetes.io/function: \"exec: {path: ./evil}\"\n",
		"app/helm.yaml":           "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: h}\nname: x\nrepo: https://charts.example.org\n",
		"app/plugin.yaml":         "apiVersion: someteam.example.com/v1\nkind: Evil\nmetadata: {name: e}\n",
		"app/replace.yaml":        "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata:\n  name: r\nreplacements:\n- path: https://example.org/r.yaml\n",
		"app/patching.yaml":       "apiVersion: builtin\nkind: PatchTransformer\nmetadata:\n  name: p\nPath: http://example.org/p.yaml\n",
		"app/adding.yaml":         "apiVersion: builtin\nkind: ValueAddTransformer\nmetadata:\n  name: p\ntargetFilePath: /etc/passwd\n",
		"app/loop.yaml":           "A: {Schema: {properties: {b: {$ref: B}}}}\nB: {Schema: {properties: {a: {$ref: A}}}}\n",
		"app/circle.yaml":         "definitions: {A: {$ref: '#/definitions/B'}, B: {$ref: '#/definitions/A'}}\n",
		"app/internal.yaml":       strings.Replace(configMap("i"), "\ndata:", "\n  annotations: {internal.config.kubernetes.io/needsHashSuffix: enabled}\ndata:", 1),
		"app/notes.yaml":          "hello: there\n",
		"app/bomb.yaml":           bomb(),
		"app/cycle.yaml":          "apiVersion: v1\nkind: ConfigMap\nmetadata: &m\n  name: a\n  annotations: *m\n",
	}
	cases := map[string]struct {
		reason string
		text   string // of app/kustomization.yaml
		want   []string
	}{
		"RemoteFile":      {"kustomize would download the file.", "resources:\n- https://user:hunter2@example.org/a.yaml?token=hunter2\n", []string{"app/kustomization.yaml:2: resources[0]: https://example.org/a.yaml is not in the commit"}},
		"RemoteBase":      {"kustomize would run git.", "resources:\n- cm.yaml\n- github.com/example/repo//deploy?ref=main\n", []string{"app/kustomization.yaml:3: resources[1]: github.com/example/repo//deploy is not in the commit"}},
		"RemoteCase":      {"A host may be in upper case.", "resources: [GitHub.com/example/repo]\n", []string{"app/kustomization.yaml:1: resources[0]: GitHub.com/example/repo is not in the commit"}},
		"RemoteSSH":       {"No protocol is allowed.", "resources: ['git@example.org:a/b', 'ssh://git@example.org/a/b', 'git::https://example.org/a/b', 'file:///etc/a/b', 'org-1@host/a/b']\n", []string{"app/kustomization.yaml:1: resources[0]: ", "app/kustomization.yaml:1: resources[1]: ", "app/kustomization.yaml:1: resources[2]: ", "app/kustomization.yaml:1: resources[3]: ", "app/kustomization.yaml:1: resources[4]: "}},
		"RemoteComponent": {"A component must be in the commit, too.", "components: [https://github.com/example/repo//c]\n", []string{"app/kustomization.yaml:1: components[0]: "}},
		"OldBases":        {"The deprecated field bases is checked, too.", "bases: [github.com/example/repo]\n", []string{"app/kustomization.yaml:1: bases[0]: "}},
		"Absolute":        {"An absolute path is outside the commit.", "resources: [/etc/passwd]\nbases: [~/x]\n", []string{"app/kustomization.yaml:1: resources[0]: /etc/passwd is an absolute path", "app/kustomization.yaml:2: bases[0]: ~/x is an absolute path"}},
		"Escape":          {"A relative path must not lead out of the commit.", "resources: [../../etc]\n", []string{"app/kustomization.yaml:1: resources[0]: ../../etc leads out of the commit"}},
		"EscapeAndBack":   {"A path must not leave the commit even if it returns.", "resources: [../../app/cm.yaml]\n", []string{"app/kustomization.yaml:1: resources[0]: ../../app/cm.yaml leads out of the commit"}},
		"Missing":         {"A misspelt file name must be an error.", "resources:\n- cm.yml\n", []string{"app/kustomization.yaml:2: resources[0]: this commit has no app/cm.yml"}},
		"Merged":          {"YAML reads two badly indented items as one.", "resources:\n- ../base\n - ../part\n", []string{"app/kustomization.yaml:2: resources[0]: this commit has no "}},
		"Link":            {"A symbolic link may lead out of the commit.", "resources: [link.yaml, ../linked/passwd]\n", []string{"app/kustomization.yaml:1: resources[0]: app/link.yaml is a symbolic link", "app/kustomization.yaml:1: resources[1]: linked is a symbolic link"}},
		"ThroughAFile":    {"A file has no entries.", "resources: [cm.yaml/x]\n", []string{"app/kustomization.yaml:1: resources[0]: app/cm.yaml is no directory"}},
		"NoKustomization": {"kustomize does not read a directory without a kustomization.", "resources: [sub]\n", []string{"app/kustomization.yaml:1: app/sub is a directory without a kustomization.yaml"}},
		"Itself":          {"A kustomization that includes itself would be endless.", "resources: [.]\n", []string{"app/kustomization.yaml:1: app cannot be built on app"}},
		"Around":          {"kustomize refuses a kustomization that includes its parent directory.", "resources: [..]\n", []string{"app/kustomization.yaml:1: app cannot be built on ."}},
		"FileByName":      {"A resource must name the directory, not its kustomization file.", "resources: [../base/kustomization.yml]\n", []string{"base/kustomization.yml:1: this is not a Kubernetes manifest"}},
		"NoManifest":      {"A file may be something else than a manifest, such as the values of a chart.", "resources: [notes.yaml]\n", []string{"app/notes.yaml:1: this is not a Kubernetes manifest"}},
		"PartAsResource":  {"A Component is not a resource, and a resource is not a Component.", "resources: [../part]\ncomponents: [../base, cm.yaml]\n", []string{"app/kustomization.yaml:1: resources[0]: part is a Component", "app/kustomization.yaml:2: components[0]: base is not a Component", "app/kustomization.yaml:2: components[1]: app/cm.yaml is a file"}},
		"Null":            {"A list item must not be empty.", "resources:\n-\n", []string{"app/kustomization.yaml:2: resources[0]: is empty"}},
		"Unknown":         {"A misspelt field has no effect, so it must be an error.", "resources: [cm.yaml]\npatchs: []\n", []string{`app/kustomization.yaml:2: unknown field "patchs"`}},
		"UnknownDeep":     {"A misspelt field at any depth is an error.", "resources: [cm.yaml]\npatches:\n- pth: x\n", []string{`app/kustomization.yaml:3: unknown field "patches[0].pth"`}},
		"OtherCase":       {"kustomize accepts Resources for resources, but other tools do not.", "Resources: [cm.yaml]\n", []string{`app/kustomization.yaml:1: unknown field "Resources"`}},
		"Twice":           {"Only one of two equal keys would count.", "resources: [cm.yaml]\nresources: []\n", []string{"app/kustomization.yaml:2: cannot decode: key \"resources\" already set"}},
		"OtherType":       {"A field must have the right type.", "resources: cm.yaml\n", []string{"app/kustomization.yaml:1: cannot unmarshal string into Go struct field Kustomization.resources"}},
		"OtherVersion":    {"An unknown version may have another meaning.", "apiVersion: kustomize.config.k8s.io/v1\nkind: Kustomization\nresources: [cm.yaml]\n", []string{"app/kustomization.yaml:1: apiVersion for Kustomization should be kustomize.config.k8s.io/v1beta1"}},
		"OtherKind":       {"An unknown kind is an error.", "kind: Kustomisation\n", []string{"app/kustomization.yaml:1: kind should be Kustomization or Component"}},
		"Nothing":         {"An empty file must be an error.", "# nothing\n", []string{"app/kustomization.yaml:1: the kustomization is empty"}},
		"TwoDocuments":    {"kustomize would read only the first document.", kustom + "---\n" + kustom, []string{"app/kustomization.yaml:4: a kustomization is one document"}},
		"Helm":            {"kustomize would run helm, which downloads charts.", "helmCharts: [{name: x, repo: https://example.org}]\nhelmGlobals: {chartHome: x}\nhelmChartInflationGenerator: [{chartName: x}]\n", []string{"app/kustomization.yaml:1: helmCharts: charts are not inflated", "app/kustomization.yaml:2: helmGlobals: ", "app/kustomization.yaml:3: helmChartInflationGenerator: "}},
		"HelmPlugin":      {"A chart in a generator file is refused, too.", "generators: [helm.yaml]\n", []string{"app/helm.yaml:1: charts are not inflated"}},
		"HelmInline":      {"A chart in an inline generator is refused, too.", "generators:\n- |\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {name: h}\n", []string{"app/kustomization.yaml:2: charts are not inflated"}},
		"Function":        {"kustomize would run a container.", "transformers: [function.yaml]\n", []string{"app/function.yaml:6: Fn fn is a function: Headgate runs no container, program or script"}},
		"FunctionBuiltin": {"A function is refused even if its kind has a built-in name.", "validators: [exec.yaml]\n", []string{"app/exec.yaml:6: PatchTransformer fn is a function"}},
		"ExecPlugin":      {"kustomize would run a program of the machine.", "transformers: [plugin.yaml]\ngenerators: [plugin.yaml]\nvalidators: [plugin.yaml]\n", []string{"app/plugin.yaml:1: Evil of someteam.example.com/v1 is not a plugin", "app/plugin.yaml:1: Evil of", "app/plugin.yaml:1: Evil of"}},
		"PluginInline":    {"An inline plugin is refused, too.", "transformers:\n- '{apiVersion: x/v1, kind: Evil, metadata: {name: e}}'\n", []string{"app/kustomization.yaml:2: Evil of x/v1 is not a plugin"}},
		"PluginRemote":    {"kustomize would download the plugin.", "generators: [github.com/a/b]\ntransformers: [https://example.org/t.yaml]\n", []string{"app/kustomization.yaml:1: generators[0]: ", "app/kustomization.yaml:2: transformers[0]: "}},
		"PluginDirectory": {"kustomize would build the directory.", "transformers: [../base]\n", []string{"app/kustomization.yaml:1: transformers[0]: base is a directory: name its files"}},
		"PluginPath":      {"A file that a plugin names must be in the commit, too.", "transformers: [replace.yaml]\n", []string{"app/replace.yaml:6: replacements[0].path: https://example.org/r.yaml is not in the commit"}},
		"PluginCase":      {"kustomize accepts Path for path.", "transformers: [patching.yaml]\n", []string{`app/patching.yaml:5: unknown field "Path"`}},
		"PluginHost":      {"A plugin must not read files outside the commit.", "transformers: [adding.yaml]\n", []string{"app/adding.yaml:5: targetFilePath: /etc/passwd is an absolute path"}},
		"PatchPath":       {"A file that a patch names must be in the commit.", "patches: [{path: https://example.org/p.yaml}]\npatchesJson6902: [{path: /etc/passwd, target: {name: a, version: v1, kind: ConfigMap}}]\npatchesStrategicMerge: [../../p.yaml]\n", []string{"app/kustomization.yaml:1: patches[0].path: ", "app/kustomization.yaml:2: patchesJson6902[0].path: ", "app/kustomization.yaml:3: patchesStrategicMerge[0]: "}},
		"ReplacementPath": {"A file that a replacement names must be in the commit.", "replacements: [{path: https://example.org/p.yaml}]\n", []string{"app/kustomization.yaml:1: replacements[0].path: "}},
		"SchemaPath":      {"A file with a schema or a configuration must be in the commit.", "openapi: {path: https://example.org/s.json}\ncrds: [http://example.org/c.json]\nconfigurations: [/etc/passwd]\n", []string{"app/kustomization.yaml:1: openapi.path: ", "app/kustomization.yaml:2: crds[0]: ", "app/kustomization.yaml:3: configurations[0]: "}},
		"GeneratorPath": {"A generator must not put files of the machine into a Secret.", "configMapGenerator:\n- {name: a, files: [/etc/passwd, k=https://example.org/x, a=b=c]}\n- {name: b, envs: [/proc/self/environ], env: /etc/environment}\nsecretGenerator:\n- {name: c, files: [../../../etc/shadow, link.yaml]}\n", []string{
			"app/kustomization.yaml:2: configMapGenerator[0].files[0]: /etc/passwd is an absolute path",
			"app/kustomization.yaml:2: configMapGenerator[0].files[1]: https://example.org/x is not in the commit",
			"app/kustomization.yaml:2: configMapGenerator[0].files[2]: must be a path, or KEY=PATH",
			"app/kustomization.yaml:3: configMapGenerator[1].envs[0]: ", "app/kustomization.yaml:3: configMapGenerator[1].env: ",
			"app/kustomization.yaml:5: secretGenerator[0].files[0]: ", "app/kustomization.yaml:5: secretGenerator[0].files[1]: app/link.yaml is a symbolic link",
		}},
		"UnknownOpenAPI": {"Unknown fields of openapi are an error, too.", "openapi: {paht: x}\n", []string{"app/kustomization.yaml:1: openapi.paht: is not known"}},
		"EndlessTypes":   {"kustomize would follow the types until its stack overflows, which stops the process.", "crds: [loop.yaml]\n", []string{"app/loop.yaml:1: the type A refers to itself"}},
		"EndlessSchema":  {"kustomize would follow the references without end.", "openapi: {path: circle.yaml}\n", []string{"app/circle.yaml:1: the reference #/definitions/A leads back to itself"}},
		"Internal":       {"kustomize would rename the object at every change.", "resources: [internal.yaml]\n", []string{"app/internal.yaml:1: the annotation internal.config.kubernetes.io/needsHashSuffix of ConfigMap i"}},
		"AliasBomb":      {"Aliases in a few lines could expand to gigabytes.", "resources: [bomb.yaml]\npatches: [{path: bomb.yaml}]\n", []string{"app/bomb.yaml:", "app/bomb.yaml:"}},
		"AliasCycle":     {"A cycle of aliases would expand without end.", "resources: [cycle.yaml]\n", []string{"app/cycle.yaml:"}},
		"AliasInline":    {"Aliases in an inline patch are limited, too.", "patches:\n- patch: |\n    a: &a [*a]\n", []string{"app/kustomization.yaml:2: patches[0].patch: inline:1: cannot decode"}},
		"BrokenInline":   {"An inline patch must be valid YAML.", "patches:\n- patch: |\n    a: [\n", []string{"app/kustomization.yaml:2: patches[0].patch: inline:"}},
		"NoTarget":       {"Errors of kustomize contain paths of the commit.", "resources: [cm.yaml]\npatches:\n- path: ../base/b.yaml\n", []string{"app/kustomization.yaml:3: patches[0]: kustomize cannot build it: no resource matches strategic merge patch \"ConfigMap.v1.[noGrp]/b.[noNs]\""}},
		"Conflict":       {"Errors about conflicts contain paths of the commit, too.", "resources: [cm.yaml, ../base]\nnamePrefix: x-\nconfigMapGenerator: [{name: a}]\n", []string{"app/kustomization.yaml:3: configMapGenerator[0]: kustomize cannot build it: merging from generator"}},
		"InBase":         {"The base has the error, not what builds on it.", "resources: [../stale]\nnamePrefix: x-\npatches: []\n", []string{"stale/kustomization.yml:4: patches[1]: kustomize cannot build it: error in remove for path: '/data/gone'"}},
		"SourceGone":     {"The error of a replacement names neither its file nor its line.", "resources: [cm.yaml]\nreplacements:\n- source: {kind: ConfigMap, fieldPath: data.a}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a]}]\n- source: {kind: ConfigMap, fieldPath: data.gone}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.a]}]\n", []string{"app/kustomization.yaml:5: replacements[1]: kustomize cannot build it: fieldPath `data.gone` is missing"}},
	}
	l := newLookout(t)
	for _, name := range slices.Sorted(keys(cases)) {
		tc := cases[name]
		t.Run(name, func(t *testing.T) {
			files := tree(common)
			files["app/kustomization.yaml"] = &fstest.MapFile{Data: []byte(tc.text)}
			made, problems := build(files, manifest.Limits{}, "app")
			if len(made.Documents) > 0 {
				t.Errorf("%s: %d documents of a refused build", tc.reason, len(made.Documents))
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.Err.Error())
				if strings.Contains(p.Err.Error(), "hunter2") {
					t.Errorf("an error repeats a secret: %v", p.Err)
				}
				if !strings.HasPrefix(p.Err.Error(), p.Origin.Path) {
					t.Errorf("the text begins with the place: %v", p.Err)
				}
			}
			if len(got) != len(tc.want) {
				t.Fatalf("%s\nwant %d problems, got:\n%s", tc.reason, len(tc.want), strings.Join(got, "\n"))
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("%s\nproblem %d: want %q…, got %q", tc.reason, i, want, got[i])
				}
			}
			if seen := l.seen(); len(seen) > 0 {
				t.Error(seen)
			}
		})
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// bomb returns the "billion laughs".
func bomb() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String()
}

// A directory may have the name of a host: a path that begins with a dot is only a path.
func TestCalledAsAHost(t *testing.T) {
	l := newLookout(t)
	made, problems := build(tree(map[string]string{
		"kustomization.yaml":                "resources: [./github.com/a/b, ./http/x.yaml, 'what?ref=main', 'a:b']\n",
		"github.com/a/b/kustomization.yaml": "resources: [c.yaml]\n",
		"github.com/a/b/c.yaml":             configMap("c"),
		"http/x.yaml":                       configMap("x"),
		"what?ref=main/kustomization.yaml":  "resources: [d.yaml]\n",
		"what?ref=main/d.yaml":              configMap("d"),
		"a:b/kustomization.yaml":            "resources: [e.git.yaml]\n",
		"a:b/e.git.yaml":                    configMap("e"),
	}), manifest.Limits{}, ".")
	if len(problems) > 0 || len(made.Documents) != 4 {
		t.Errorf("want 4 objects, got %d, %v", len(made.Documents), problems)
	}
	if seen := l.seen(); len(seen) > 0 {
		t.Error(seen)
	}
}

// doubling returns n directories. Each one builds the previous one twice.
func doubling(n int) map[string]string {
	files := map[string]string{"00/kustomization.yaml": "resources: [a.yaml]", "00/a.yaml": configMap("a")}
	for i := 1; i < n; i++ {
		for _, side := range []string{"a", "b"} {
			files[fmt.Sprintf("%02d%s/kustomization.yaml", i, side)] = fmt.Sprintf("namePrefix: %s\nresources: [../%02d]", side, i-1)
		}
		files[fmt.Sprintf("%02d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../%02da, ../%02db]", i, i)
	}
	return files
}

// Kustomizations that use each other multiply their objects, and patches copy them.
func TestBounds(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  func() map[string]string
		limits manifest.Limits
		want   string
	}{
		"Doubling": {
			reason: "Twenty small directories grow to a million objects.",
			files:  func() map[string]string { return doubling(20) },
			want:   "kustomization.yaml:1: it is built of more than 10000 directories",
		},
		"Documents": {
			reason: "The number of built objects is limited.",
			files:  func() map[string]string { return doubling(6) },
			limits: manifest.Limits{Documents: 20},
			want:   "05/kustomization.yaml:1: it is built of more than the limit of 20 documents",
		},
		"Bytes": {
			reason: "The size of built objects is limited.",
			files: func() map[string]string {
				return map[string]string{
					"a/kustomization.yaml": "namePrefix: a\nresources: [../c]", "b/kustomization.yaml": "resources: [../a, ../c]\nnamePrefix: b\n",
					"c/kustomization.yaml": "resources: [c.yaml]", "c/c.yaml": configMap("c") + "  x: " + strings.Repeat("x", 1000),
				}
			},
			limits: manifest.Limits{TotalBytes: 2000},
			want:   "b/kustomization.yaml:1: it is built of more than the limit of 2000 bytes",
		},
		"Deep": {
			reason: "The depth of bases is limited.",
			files: func() map[string]string {
				files := map[string]string{"000/kustomization.yaml": "resources: [a.yaml]", "000/a.yaml": configMap("a")}
				for i := 1; i < 150; i++ {
					files[fmt.Sprintf("%03d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../%03d]", i-1)
				}
				return files
			},
			want: "100/kustomization.yaml:1: kustomizations are nested more than 100 deep",
		},
		"Copies": {
			reason: "Thirty lines of a patch double an object thirty times.",
			files: func() map[string]string {
				var patch strings.Builder
				for i := range 30 {
					fmt.Fprintf(&patch, "- {op: copy, from: /data, path: /data/a%d}\n", i)
				}
				return map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml, target: {name: a}}]", "a.yaml": configMap("a"), "p.yaml": patch.String()}
			},
			want: "kustomize cannot build it: Unable to complete the copy",
		},
		"FileTooLarge": {
			reason: "The size limit for files also applies to files in a generated ConfigMap.",
			files: func() map[string]string {
				return map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: [x.txt]}]", "x.txt": strings.Repeat("x", 200)}
			},
			limits: manifest.Limits{FileBytes: 100},
			want:   "x.txt: cannot read: it is larger than the limit of 100 bytes for one file",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, problems := build(tree(tc.files()), tc.limits)
			var all []string
			for _, p := range problems {
				all = append(all, p.Err.Error())
			}
			text := strings.Join(all, "\n")
			if tc.want == "" && text != "" || !strings.Contains(text, tc.want) {
				t.Errorf("%s\nwant %q, got:\n%s", tc.reason, tc.want, text)
			}
		})
	}
}

// The error of a failed build contains nothing from a Secret.
func TestErrorsKeepSecrets(t *testing.T) {
	for name, text := range map[string]string{
		"Generator": "secretGenerator: [{name: a, literals: ['canary']}]\n",
		"Twice":     "secretGenerator: [{name: a, literals: [x=canary, x=canary]}]\n",
		"Patch":     "resources: [a.yaml]\npatches: [{patch: 'canary: canary'}]\n",
		"Both":      "resources: [a.yaml]\npatches: [{patch: 'canary: canary', path: a.yaml}]\n",
		"NoTarget":  "resources: [a.yaml]\npatches: [{patch: '{apiVersion: v1, kind: Secret, metadata: {name: x}, stringData: {a: canary}}'}]\n",
		"JSONPatch": "resources: [a.yaml]\npatches: [{patch: '[{op: add, path: /data/none, value: canary}]'}]\n",
		"JSON6902":  "resources: [a.yaml]\npatchesJson6902: [{target: {name: a, version: v1, kind: ConfigMap}, patch: '{op: canary}'}]\n",
		"Strategic": "resources: [a.yaml]\npatchesStrategicMerge: ['{kind: canary}']\n",
		"Plugin":    "resources: [a.yaml]\ntransformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: x}\n  patch: 'canary: canary'\n",
		"Env":       "secretGenerator: [{name: a, envs: [a.env]}]\n",
		"Validator": "resources: [a.yaml]\nvalidators:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: x}\n  target: {name: a}\n  patch: '[{op: add, path: /data/z, value: canary}]'\n",
		"Delimiter": "resources: [a.yaml]\nreplacements: [{sourceValue: canary, targets: [{select: {name: a}, fieldPaths: [data]}]}, {source: {name: a, kind: ConfigMap, fieldPath: data.s, options: {delimiter: /, index: 7}}, targets: [{select: {name: a}, fieldPaths: [data.a]}]}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := build(tree(map[string]string{"kustomization.yaml": text, "a.yaml": configMap("a") + "  s: canary/x\n", "a.env": "A\xff=canary\n"}), manifest.Limits{})
			if len(problems) == 0 {
				t.Fatal("no error")
			}
			for _, p := range problems {
				if strings.Contains(p.Err.Error(), "canary") {
					t.Errorf("an error repeats what may be a secret: %v", p.Err)
				}
			}
		})
	}
}

// Every field of a kustomization that is a string, or a list or map of strings, must be known, because a field of a later kustomize
// version may be a path.
func TestFieldsOfAKustomization(t *testing.T) {
	var got []string
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(path, of.Elem())
		case reflect.Map:
			walk(path+".*", of.Elem())
		case reflect.String, reflect.Interface:
			got = append(got, path)
		case reflect.Struct:
			for f := range of.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				switch {
				case !f.IsExported():
				case name == "":
					walk(path, f.Type)
				default:
					walk(strings.TrimPrefix(path+"."+name, "."), f.Type)
				}
			}
		default:
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[types.Kustomization]()} {
		walk("", of)
	}
	golden := filepath.Join("testdata", "fields.txt")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSpace(string(want)), "\n")
	for i, line := range known {
		known[i], _, _ = strings.Cut(line, " ") // the description follows the name
	}
	if diff := cmp.Diff(known, got); diff != "" {
		t.Errorf("a field of a kustomization is new, or gone: does it hold a path? (-want +got):\n%s", diff)
	}
}
