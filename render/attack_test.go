package render_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
)

// TestAttacks renders hostile repositories. The numbers refer to the list of attacks that tests have to cover. Packages git and
// kustomize test attacks on Git and on kustomize themselves. A render must either refuse the commit with its location and return no
// objects, or treat it like an honest commit.
func TestAttacks(t *testing.T) {
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink}
	}
	configMap := func(name, more string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n" + more
	}
	many := func(n int, text func(i int) string) fstest.MapFS {
		files := fstest.MapFS{}
		for i := range n {
			files[fmt.Sprintf("%03d/%05d.yaml", i/1000, i)] = file(text(i))
		}
		return files
	}
	cases := map[string]struct {
		reason string
		files  fstest.MapFS
		path   string
		limits manifest.Limits
		refuse string   // beginning or end of the first problem
		want   []string // else the objects
	}{
		"01PathUp":       {reason: "A path must stay inside the commit.", path: "a/../../etc", refuse: "../etc: is not a path inside of the commit"},
		"01PathUpPlain":  {reason: "A path must stay inside the commit.", path: "..", refuse: "..: is not a path inside of the commit"},
		"01PathAbsolute": {reason: "An absolute path starts at the root of the commit.", path: "/etc", files: fstest.MapFS{"a.yaml": file(configMap("a", ""))}, refuse: "etc: this commit has no such path"},
		"01PathLink":     {reason: "A link in a path may lead anywhere.", path: "out/kubernetes", files: fstest.MapFS{"out": link("/etc")}, refuse: "out: is a symbolic link"},
		"01PathLinkLast": {reason: "A link at the end of a path may lead anywhere.", path: "out", files: fstest.MapFS{"out": link("../..")}, refuse: "out: is a symbolic link"},
		"02Links": {
			reason: "Links may lead to secrets of the machine, into .git, to themselves or to each other: none is followed, and all are counted.",
			files: fstest.MapFS{
				"a.yaml": file(configMap("a", "")), "passwd.yaml": link("/etc/passwd"), "token.yaml": link("/var/run/secrets/kubernetes.io/serviceaccount/token"),
				"loop.yaml": link("loop.yaml"), "git.yaml": link(".git/config"), "chain.yaml": link("git.yaml"), "dir": link("/var"),
				"hooks": {Mode: fs.ModeIrregular},
			},
			want: []string{"ConfigMap/a"},
		},
		"02PackageLink":       {reason: "A link named crossplane.yaml does not make its directory a package.", files: fstest.MapFS{"crossplane.yaml": link("/etc/passwd"), "a.yaml": file(configMap("a", ""))}, want: []string{"ConfigMap/a"}},
		"02KustomizationLink": {reason: "A link named kustomization.yaml does not make its directory a kustomization.", files: fstest.MapFS{"kustomization.yaml": link("/etc/passwd"), "a.yaml": file(configMap("a", ""))}, want: []string{"ConfigMap/a"}},
		"12Nothing":           {reason: "An empty commit wants no objects; a guard prevents that everything is pruned."},
		"12WrongPath":         {reason: "A misspelt path must not count as an empty directory.", path: "clusters/prd", files: fstest.MapFS{"clusters/prod/a.yaml": file(configMap("a", ""))}, refuse: "clusters/prd: this commit has no such path"},
		"12WrongCase":         {reason: "Paths are case-sensitive.", path: "Clusters", files: fstest.MapFS{"clusters/a.yaml": file(configMap("a", ""))}, refuse: "Clusters: this commit has no such path"},
		"13ManyFiles":         {reason: "The number of files is limited.", files: many(5001, func(i int) string { return configMap(fmt.Sprintf("a%d", i), "") }), limits: manifest.Limits{Documents: 5000}, refuse: "5000 documents"},
		"13LargeFile":         {reason: "Reading a large file stops at the limit.", files: fstest.MapFS{"a.yaml": file(configMap("a", "data:\n  a: "+strings.Repeat("x", 17<<20)+"\n"))}, refuse: "a.yaml: cannot read: it is larger than the limit of 16777216 bytes for one file"},
		"13LargeIgnoreFile":   {reason: "Reading a large ignore file stops at the limit, too.", files: fstest.MapFS{".headgateignore": file(strings.Repeat("x\n", 9<<20))}, refuse: ".headgateignore: cannot read: it is larger than the limit"},
		"13Together":          {reason: "Many small files may exceed the limit together.", files: many(200, func(int) string { return "a: " + strings.Repeat("x", 1000) }), limits: manifest.Limits{TotalBytes: 100_000}, refuse: "100000 bytes together"},
		"13Deep":              {reason: "Nesting must not exhaust the stack.", files: fstest.MapFS{"a.yaml": file(configMap("a", "data: "+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+"\n"))}, refuse: "a.yaml:1: cannot decode: it is nested more deeply than the limit of 200 levels"},
		"13DeepJSON":          {reason: "Nesting in JSON must not exhaust the stack.", files: fstest.MapFS{"a.json": file(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}")}, refuse: "a.json:1: cannot decode: it is nested more deeply"},
		"13AliasBomb":         {reason: "Ten lines of aliases could decode to gigabytes.", files: fstest.MapFS{"a.yaml": file(configMap("a", laughs(12)))}, refuse: "a.yaml:1: cannot decode: document contains excessive aliasing"},
		"13AliasesOfMuch":     {reason: "One line of aliases could decode to gigabytes.", files: fstest.MapFS{"a.yaml": file(configMap("a", "data:\n  a: &a "+strings.Repeat("x", 1<<20)+"\n  b: ["+strings.Repeat("*a,", 1000)+"]\n"))}, refuse: "a.yaml:1: cannot decode: its aliases expand to more than the limit"},
		"13AliasCycle":        {reason: "A cycle of aliases has no end.", files: fstest.MapFS{"a.yaml": file(configMap("a", "data: &a\n  b: *a\n"))}, refuse: "a.yaml:"},
		"13DuplicateKey":      {reason: "Of two equal keys only one would count, and a reviewer may read the other.", files: fstest.MapFS{"a.yaml": file(configMap("a", "kind: Secret\n"))}, refuse: "a.yaml:5: cannot decode: key \"kind\" already set"},
		"13DuplicateJSON":     {reason: "JSON may also contain a key twice.", files: fstest.MapFS{"a.json": file(`{"apiVersion":"v1","kind":"ConfigMap","kind":"Secret","metadata":{"name":"a"}}`)}, refuse: "a.json:1: cannot decode: duplicate field \"kind\""},
		"13NUL":               {reason: "Some parsers stop at a NUL byte.", files: fstest.MapFS{"a.yaml": file(configMap("a", "\x00"))}, refuse: "a.yaml:5: cannot read: it holds a NUL byte"},
		"13NotUTF8":           {reason: "Some parsers replace invalid UTF-8.", files: fstest.MapFS{"a.yaml": file(configMap("a", "data: {a: caf\xe9}\n"))}, refuse: "a.yaml:5: cannot read: it is not UTF-8"},
		"13UTF16":             {reason: "Some parsers read UTF-16.", files: fstest.MapFS{"a.yaml": file("\xff\xfea\x00")}, refuse: "a.yaml:1: cannot read: it is UTF-16"},
		"13BOMAndCRLF":        {reason: "Some editors on Windows save a BOM and CRLF.", files: fstest.MapFS{"a.yaml": file("\uFEFF" + strings.ReplaceAll(configMap("a", "---\n"+configMap("b", "")), "\n", "\r\n"))}, want: []string{"ConfigMap/a", "ConfigMap/b"}},
		"13Markers": {
			reason: "A separator inside a text does not separate documents, and a real separator hides nothing.",
			files:  fstest.MapFS{"a.yaml": file(configMap("a", "data:\n  a: |\n    ---\n    kind: Secret\n") + "--- # next\n" + configMap("b", "data: {a: \"--- x\"}\n") + "...\n---\n" + configMap("c", ""))},
			want:   []string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c"},
		},
		"13AfterTheEnd": {reason: "Some libraries read only the first document and silently ignore the others.", files: fstest.MapFS{"a.yaml": file(configMap("a", "...\n"+configMap("b", "")))}, want: []string{"ConfigMap/a", "ConfigMap/b"}},
		"13Indented":    {reason: "Some libraries silently ignore the rest after an indented first line.", files: fstest.MapFS{"a.yaml": file("  " + configMap("a", ""))}, refuse: "a.yaml:"},
		"13Directive":   {reason: "Some libraries silently ignore the rest after a directive in the middle.", files: fstest.MapFS{"a.yaml": file(configMap("a", "%YAML 1.1\n---\n"+configMap("b", "")))}, refuse: "a.yaml:"},
		"13List":        {reason: "The items of nested lists are unwrapped.", files: fstest.MapFS{"a.yaml": file("apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMapList\n  items: [{metadata: {name: a}}, {metadata: {name: b}}]\n")}, want: []string{"ConfigMap/a", "ConfigMap/b"}},
		"13MergeKey":    {reason: "A kind from a merge key counts.", files: fstest.MapFS{"a.yaml": file("x: &x {kind: ConfigMap, apiVersion: v1}\n<<: *x\nmetadata: {name: a}\n")}, want: []string{"ConfigMap/a"}},
		"14Loop": {
			reason: "Two directories are bases of each other.",
			files:  fstest.MapFS{"a/kustomization.yaml": file("resources: [../b]\n"), "b/kustomization.yaml": file("resources: [../a]\n")},
			refuse: "b/kustomization.yaml:1: a cannot be built on a, which contains it or builds on it",
		},
		"14Itself":      {reason: "A directory is its own base.", files: fstest.MapFS{"a/kustomization.yaml": file("resources: [./]\n")}, refuse: "a/kustomization.yaml:1: a cannot be built on a"},
		"14Remote":      {reason: "Remote bases are not fetched.", files: fstest.MapFS{"a/kustomization.yaml": file("resources:\n- https://example.org/a.yaml\n")}, refuse: "a/kustomization.yaml:2: resources[0]: https://example.org/a.yaml is not in the commit"},
		"14Plugin":      {reason: "Plugins are not run.", files: fstest.MapFS{"a/kustomization.yaml": file("transformers:\n- '{apiVersion: x/v1, kind: Evil, metadata: {name: e}}'\n")}, refuse: "a/kustomization.yaml:2: Evil of x/v1 is not a plugin"},
		"14Helm":        {reason: "Helm is not run, whatever flags it gets.", files: fstest.MapFS{"a/kustomization.yaml": file("helmCharts: [{name: x, releaseName: --post-renderer=evil}]\n")}, refuse: "a/kustomization.yaml:1: helmCharts: charts are not inflated"},
		"14SecretFile":  {reason: "A generated ConfigMap must not read the machine's files.", files: fstest.MapFS{"a/kustomization.yaml": file("configMapGenerator: [{name: a, files: [../../../../var/run/secrets/token]}]\n")}, refuse: "a/kustomization.yaml:1: configMapGenerator[0].files[0]: ../../../../var/run/secrets/token leads out of the commit"},
		"14OutsidePath": {reason: "A base may be outside the path if it is in the commit.", path: "o", files: fstest.MapFS{"o/kustomization.yaml": file("resources: [../b]\n"), "b/kustomization.yaml": file("resources: [a.yaml]\n"), "b/a.yaml": file(configMap("a", ""))}, want: []string{"ConfigMap/a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.files == nil {
				tc.files = fstest.MapFS{}
			}
			want, err := render.Render(render.Input{Files: tc.files, Path: tc.path}, render.Options{Limits: tc.limits})
			if tc.refuse != "" {
				var problems catalogue.Errors
				if !errors.As(err, &problems) || len(problems) == 0 {
					t.Fatalf("%s\nwant a problem with the commit, got %v", tc.reason, err)
				}
				if first := problems[0].Error(); !strings.HasPrefix(first, tc.refuse) && !strings.Contains(first, "limit of "+tc.refuse) && !strings.HasSuffix(first, tc.refuse) {
					t.Errorf("%s\nwant %q…, got %s", tc.reason, tc.refuse, first)
				}
				if len(want.Objects)+len(want.Definitions) > 0 {
					t.Errorf("%s\n%d objects of a refused commit", tc.reason, len(want.Objects))
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			var got []string
			for _, o := range want.Objects {
				got = append(got, o.ID.String())
			}
			if strings.Join(got, " ") != strings.Join(tc.want, " ") {
				t.Errorf("%s\nwant %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// laughs returns a mapping of n lists, each with ten aliases of the previous one.
func laughs(n int) string {
	var b strings.Builder
	b.WriteString("data:\n  a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	return b.String()
}
