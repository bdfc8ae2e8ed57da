package catalogue_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// TestRefusesAlmost proves that a document which was probably meant as a manifest is an error with its line. If it were skipped,
// the objects that it declared before would be pruned.
func TestRefusesAlmost(t *testing.T) {
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	secret := object("v1", "Secret", "a")
	swap := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(secret) }
	cases := map[string]struct {
		reason string
		file   string // "" is a.yaml
		text   string
		want   string // beginning of the error
	}{
		"CaseOfAPIVersion": {"apiVersion is in lower case.", "", swap("apiVersion", "apiversion"), "a.yaml:1: the key apiversion is misspelt; write apiVersion"},
		"CaseOfKind":       {"kind is capitalized.", "", swap("kind", "Kind"), "a.yaml:2: the key Kind is misspelt; write kind"},
		"LetterMore":       {"kind has an extra letter.", "", swap("kind", "kindd"), "a.yaml:2: the key kindd is misspelt; write kind"},
		"LetterLess":       {"One letter is missing.", "", swap("apiVersion", "apiVersio"), "a.yaml:1: the key apiVersio is misspelt"},
		"LetterWrong":      {"One letter is wrong.", "", swap("kind", "kins"), "a.yaml:2: the key kins is misspelt"},
		"LettersExchanged": {"Two letters are exchanged.", "", swap("kind", "knid"), "a.yaml:2: the key knid is misspelt"},
		"Metadata":         {"Without metadata, the object has no name.", "", swap("metadata", "metdata"), "a.yaml:1: Secret has no metadata.name"},
		"TwoMisspelt":      {"Two of three keys are misspelt.", "", swap("apiVersion", "apiversion", "kind", "Kind"), "a.yaml:1: the key apiversion is misspelt"},
		"AllMisspelt":      {"All three keys are capitalized.", "", swap("apiVersion", "ApiVersion", "kind", "Kind", "metadata", "Metadata"), "a.yaml:1: the key ApiVersion is misspelt"},
		"OneAndOneNear":    {"One key is misspelt, and metadata is missing.", "", "kind: Secret\napiversion: v1\n", "a.yaml:2: the key apiversion is misspelt"},
		"NoAPIVersion":     {"apiVersion is missing.", "", swap("apiVersion: v1\n", ""), "a.yaml:1: this document has kind and metadata, but no apiVersion"},
		"NoKind":           {"kind is missing.", "", swap("kind: Secret\n", ""), "a.yaml:1: this document has apiVersion and metadata, but no kind"},
		"NoMetadata":       {"metadata is missing.", "", "apiVersion: v1\nkind: Secret\n", "a.yaml:1: Secret has no metadata.name"},
		"EmptyAPIVersion":  {"apiVersion is empty.", "", swap("v1", `""`), "a.yaml:1: apiVersion is empty"},
		"NullAPIVersion":   {"apiVersion is null.", "", swap("v1", ""), "a.yaml:1: apiVersion is empty"},
		"EmptyKind":        {"kind is empty.", "", swap("Secret", `""`), "a.yaml:2: kind is empty"},
		"NumberAPIVersion": {"apiVersion is 1 instead of v1.", "", swap("v1", "1"), "a.yaml:1: apiVersion does not have the form that a manifest needs"},
		"ListKind":         {"kind is a list, not a string.", "", swap("Secret", "[Secret]"), "a.yaml:2: kind does not have the form that a manifest needs"},
		"SecondDocument":   {"The error contains the line of the key in the file, not in its document.", "", documents("a: b", secret, swap("kind", "kindd")), "a.yaml:10: the key kindd is misspelt"},
		"JSON":             {"JSON is checked like YAML.", "a.json", `{"apiVersion": "v1", "Kind": "Secret", "metadata": {"name": "a"}}`, "a.json:1: the key Kind is misspelt"},
		"BrokenJSON":       {"A file that looks like a manifest must be valid JSON.", "a.json", `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"},}`, "a.json:1: cannot decode"},
		"Item":             {"Items of a List are checked, too.", "", "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(swap("kind", "Kind")), "\n", "\n  "), "a.yaml:5: the key Kind is misspelt"},
		"ItemsOfAList":     {"The items of a List must be a list.", "", "apiVersion: v1\nkind: List\nmetadata: {name: a}\nitems: x\n", "a.yaml:4: items of a List must be a list"},
		"ListWithoutKind":  {"A List without a kind would lose all its items.", "", "apiVersion: v1\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(secret), "\n", "\n  "), "a.yaml:3: this document has manifests as its items"},
		"BareList":         {"A YAML file must not be a bare list of manifests.", "", "- " + strings.ReplaceAll(strings.TrimSpace(secret), "\n", "\n  "), "a.yaml:1: this document is a list of manifests"},
		"BareListJSON":     {"A JSON file must not be a bare list of manifests.", "a.json", `[{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}]`, "a.json:1: this document is a list of manifests"},
		"Pointer":          {"A YAML file must not be a Git LFS pointer.", "", pointer, "a.yaml:1: cannot read: it is a Git LFS pointer"},
		"PointerJSON":      {"A JSON file must not be a Git LFS pointer.", "a.json", pointer, "a.json:1: cannot read: it is a Git LFS pointer"},
		"PointerPackage":   {"Without its metadata, a package would be read as plain CRDs.", "crossplane.yaml", pointer, "crossplane.yaml:1: cannot read: it is a Git LFS pointer"},
		"PointerIgnore":    {"Without the ignore file, ignored objects would be applied.", ".headgateignore", pointer, ".headgateignore:1: cannot read: it is a Git LFS pointer"},
		"PointerKustomize": {"Without its content, it is unknown what the kustomization builds.", "kustomization.yaml", pointer, "kustomization.yaml:1: cannot read: it is a Git LFS pointer"},
		"PackageMisspelt":  {"Without its metadata, a package would be read as plain CRDs.", "crossplane.yaml", strings.Replace(safeProvider, "apiVersion", "apiversion", 1), "crossplane.yaml:1: the key apiversion is misspelt"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			file := tc.file
			if file == "" {
				file = "a.yaml"
			}
			got := problemsOf(t, name, map[string]string{file: tc.text, "other.yaml": object("v1", "ConfigMap", "other")})
			if len(got) != 1 || !strings.HasPrefix(got[0], tc.want) {
				t.Errorf("%s\nwant one error %q, got:\n%s", tc.reason, tc.want, strings.Join(got, "\n"))
			}
		})
	}
}

// TestNoFalseAlarm proves that files of other programs, as found in public repositories, are no errors: they are skipped and
// counted.
func TestNoFalseAlarm(t *testing.T) {
	files := map[string]string{
		"chart/Chart.yaml":                 "apiVersion: v2\nname: shop\nversion: 0.1.0\nappVersion: v1\ntype: application\n",
		"chart/values.yaml":                "kind: Deployment\nmetadata:\n  labels: {a: b}\nimage: x\n",
		"chart/values.schema.json":         `{"$schema": "https://json-schema.org/draft-07/schema#", "properties": {"kind": {"type": "string"}}}`,
		"chart/ci/test-values.yaml":        "kind: DaemonSet\nmetadata: {}\n",
		"chart/templates/deployment.yaml":  "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"x\" . }}\n{{- if .Values.a }}\n{{- end }}\n",
		"chart/templates/tests/test.yaml":  "{{- if .Values.a }}\nkind: Pod\n",
		"values/prod.yaml":                 "kind: DaemonSet\nreplicas: 3\n",
		"values-prod.yaml":                 "apiVersion: apps/v1\nkind: DaemonSet\n",
		"one/kind.yaml":                    "kind: DaemonSet\nappVersion: v1\n",
		"one/apiversion.yaml":              "apiVersion: v1\ngroups: []\n",
		"one/metadata.yaml":                "metadata: {a: b}\nbind: 0.0.0.0\nfind: x y\n",
		"kubeconfig.yaml":                  "apiVersion: v1\nkind: Config\nclusters: []\nusers: []\ncontexts: []\ncurrent-context: a\n",
		"audit.yaml":                       "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: None\n",
		"kind.yaml":                        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nname: a\nnodes: []\n",
		"k3d.yaml":                         "apiVersion: k3d.io/v1alpha5\nkind: Simple\nmetadata:\n  name: a\n",
		"eksctl.yaml":                      "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata:\n  name: a\n",
		"kubeadm.yaml":                     "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n",
		"talos/machine.yaml":               "version: v1alpha1\nmachine: {type: worker}\ncluster: {}\n",
		"talos/volume.yaml":                "apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n",
		"review.json":                      `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}`,
		"kuttl/kuttl-test.yaml":            "apiVersion: kuttl.dev/v1beta1\nkind: TestSuite\ntestDirs: []\n",
		"kuttl/a/00-step.yaml":             "apiVersion: kuttl.dev/v1beta1\nkind: TestStep\ncommands: []\n",
		"kuttl/a/00-assert.yaml":           "apiVersion: v1\nkind: Pod\nstatus: {phase: Running}\n",
		"kuttl/a/00-errors.yaml":           "kind: Pod\nmetadata:\n  labels: {a: b}\n",
		"catalog-info.yaml":                "apiVersion: backstage.io/v1alpha1\nkind: Component\nmetadata:\n  name: shop\nspec: {type: service}\n",
		"score.yaml":                       "apiVersion: score.dev/v1b1\nmetadata:\n  name: a\ncontainers: {}\n",
		"skaffold.yaml":                    "apiVersion: skaffold/v4beta6\nkind: Config\nbuild: {}\n",
		"garden.yml":                       "apiVersion: garden.io/v1\nkind: Project\nname: a\n",
		"devfile.yaml":                     "apiVersion: 1.0.0\nmetadata: {generateName: a-}\n",
		"devfile2.yaml":                    "schemaVersion: 2.2.0\nmetadata: {name: a}\n",
		"grafana/datasources.yaml":         "apiVersion: 1\ndatasources: []\n",
		"grafana/dashboard.json":           `{"annotations": {"list": []}, "title": "x", "version": 1, "schemaVersion": 36, "panels": []}`,
		"gcp.json":                         `{"kind": "compute#instance", "name": "a", "metadata": {"kind": "compute#metadata"}}`,
		"gcp-list.json":                    `{"kind": "storage#objects", "items": [{"kind": "storage#object", "metadata": {}}]}`,
		"arm.json":                         `{"apiVersion": "2019-06-01", "kind": "StorageV2", "name": "a"}`,
		"cloudformation.yaml":              "AWSTemplateFormatVersion: '2010-09-09'\nMetadata: {a: b}\nResources:\n  A: {Type: x, Properties: {B: !Sub \"${A}\"}}\n",
		"docker-compose.yml":               "version: \"3\"\nservices:\n  a: {image: b}\n",
		"openapi.yaml":                     "openapi: 3.0.0\ninfo: {title: a, version: v1}\npaths: {}\n",
		"package.json":                     `{"name": "a", "version": "1.0.0", "scripts": {}}`,
		"tsconfig.json":                    "{\n  // as strict as can be\n  \"compilerOptions\": {\"strict\": true,},\n}\n",
		"settings.json":                    "{\n  \"a\": 1, /* b */\n}\n",
		"mkdocs.yml":                       "site_name: x\nextensions:\n- emoji: !!python/name:material.twemoji\n",
		"workflow.yml":                     "on: push\njobs:\n  a: {steps: [{run: \"echo ${{ github.sha }}\"}]}\n",
		"patch.yaml":                       "- op: replace\n  path: /metadata/name\n  value: x\n",
		"list.json":                        `[{"apiVersion": "v1", "kind": "Pod"}]`,
		"text.yaml":                        "just words\n",
		"memory.json":                      "{\"type\": \"a\", \"text\": \"apiVersion and kind\"}\n{\"type\": \"b\", \"kind\": \"x\"}\n",
		"terraform/name.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n",
		"terraform/if.yaml":                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n%{ if wanted }\ndata: {}\n%{ endif }\n",
		"terraform/call.yaml":              "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n${indent(2, yamlencode(data))}\n",
		"Taskfile.yml":                     "version: '3'\ntasks: {}\n",
		"overlays/local/not-built.yaml":    "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n",
		"grouped/controller-settings.yaml": "apiVersion: controller-runtime.sigs.k8s.io/v1alpha1\nkind: ControllerManagerConfig\nhealth: {}\n",
	}
	c, err := read(tree(files), "", catalogue.Options{})
	if problems, several := errors.AsType[catalogue.Errors](err); several {
		for _, p := range problems {
			t.Error(p)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	if len(c.Objects) > 0 || len(c.Findings) > 0 {
		t.Errorf("want neither objects nor findings, got %v, %v", c.Objects, c.Findings)
	}
	skipped := map[string]bool{}
	for _, o := range c.Omitted {
		skipped[o.Origin.Path] = true
	}
	for file := range files {
		if !skipped[file] {
			t.Errorf("%s is not among what is omitted", file)
		}
	}
	total := 0
	for _, n := range c.Skipped {
		total += n
	}
	if total != len(files) {
		t.Errorf("%d files, %d skipped: %v", len(files), total, c.Skipped)
	}
}

// TestOmits proves that the catalogue lists what it skipped on purpose, by identity if the document shows one, and otherwise by
// path.
func TestOmits(t *testing.T) {
	secret := object("v1", "Secret", "a")
	files := tree(map[string]string{
		".headgateignore":          "ignored.yaml\n/drafts/\n",
		".hidden.yaml":             secret,
		".hidden/deep/a.yaml":      secret,
		".hidden/notes.md":         "x",
		"a.yml.disabled":           secret,
		"ignored.yaml":             secret,
		"drafts/deep/a.yaml":       secret,
		"drafts/a.xpkg":            "x",
		"local.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: l\n  namespace: prod\n  annotations:\n    config.kubernetes.io/local-config: \"true\"\n",
		"flux.yaml":                object("source.toolkit.fluxcd.io/v1", "GitRepository", "a"),
		"sops.yaml":                secret + "data:\n  a: ENC[AES256_GCM,data:x]\nsops:\n  mac: x\n",
		"whole.yaml":               "apiVersion: ENC[AES256_GCM,data:x]\nkind: ENC[AES256_GCM,data:x]\nsops: {mac: x}\n",
		"named.yaml":               strings.Replace(secret, "name: a", "name: ENC[AES256_GCM,data:x]", 1) + "sops:\n  mac: x\n",
		"notes.yaml":               documents("a: b", object("v1", "ConfigMap", "wanted")),
		"toy/crossplane.yaml":      safeProvider,
		"toy/config.yaml":          object("v1", "ConfigMap", "shipped"),
		"toy/examples/a.yaml":      secret,
		"k/kustomization.yaml":     "resources: [a.yaml, l.yaml]\nnamespace: prod\ncomponents: [../used]\n",
		"used/kustomization.yaml":  "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\n",
		"used/a.yaml":              object("v1", "ConfigMap", "used"),
		"k/a.yaml":                 object("v1", "ConfigMap", "k"),
		"k/l.yaml":                 object("v1", "ConfigMap", "k-local") + "  annotations: {config.kubernetes.io/local-config: \"true\"}\n",
		"p/kustomization.yaml":     "resources: [a.yaml, b.yaml]\npatches:\n- target: {name: patched}\n  patch: '[{op: add, path: /metadata/annotations, value: {config.kubernetes.io/local-config: \"true\"}}]'\n",
		"p/a.yaml":                 object("v1", "ConfigMap", "patched"),
		"p/b.yaml":                 object("v1", "ConfigMap", "built"),
		"k/removed.yaml":           object("v1", "ConfigMap", "not-built"),
		"shelf/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\n",
		"shelf/a.yaml":             object("v1", "ConfigMap", "shelved"),
		"chart/Chart.yaml":         "apiVersion: v2\nname: x\n",
		"chart/templates/a.yaml":   "{{ x }}",
	})
	link(files, "link.yaml", "module")
	c, err := read(files, "", catalogue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range c.Omitted {
		text := o.Origin.String() + " " + string(o.Why)
		if o.ID.Name != "" {
			text += " " + o.ID.String()
		}
		got = append(got, text)
	}
	want := []string{
		".hidden.yaml name that begins with a dot",
		".hidden/deep/a.yaml name that begins with a dot",
		"a.yml.disabled file name with another extension after .yaml, .yml or .json",
		"chart/Chart.yaml:1 no Kubernetes manifest",
		"chart/templates/a.yaml template of a Helm chart",
		"drafts/a.xpkg listed in .headgateignore",
		"drafts/deep/a.yaml listed in .headgateignore",
		"flux.yaml:1 object of Flux or Argo CD GitRepository.source.toolkit.fluxcd.io/a",
		"ignored.yaml listed in .headgateignore",
		"k/l.yaml local configuration (config.kubernetes.io/local-config)",
		"link.yaml symbolic link",
		"local.yaml:1 local configuration (config.kubernetes.io/local-config) ConfigMap/prod/l",
		"module submodule",
		"named.yaml:1 encrypted with SOPS",
		"notes.yaml:1 no Kubernetes manifest",
		"p/a.yaml local configuration (config.kubernetes.io/local-config)",
		"shelf/a.yaml for kustomize, which builds it only where a kustomization names it",
		"shelf/kustomization.yaml for kustomize, which builds it only where a kustomization names it",
		"sops.yaml:1 encrypted with SOPS Secret/a",
		"toy/config.yaml:1 not installed from a package ConfigMap/shipped",
		"toy/crossplane.yaml:1 metadata of a package Provider.meta.pkg.crossplane.io/provider-toy",
		"toy/examples/a.yaml example, test or build input of a package",
		"whole.yaml:1 encrypted with SOPS",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Omitted (-want +got):\n%s", diff)
	}
}

// link adds a symbolic link and a submodule to a tree.
func link(files fstest.MapFS, symlink, submodule string) {
	files[symlink] = &fstest.MapFile{Data: []byte("elsewhere.yaml"), Mode: fs.ModeSymlink}
	files[submodule] = &fstest.MapFile{Mode: fs.ModeIrregular}
}

// TestDeclares proves that a skipped file shows what it declares, if it is readable, and that it may declare anything if its bytes are
// not available. Nothing is read before it is asked for.
func TestDeclares(t *testing.T) {
	files := tree(map[string]string{
		".headgateignore":      "large.yaml\n",
		".two.yaml":            documents(object("v1", "ConfigMap", "a"), "a: b", crd("buckets", "Bucket")),
		".broken.yaml":         "{{ x }}",
		".k/kustomization.yml": "namePrefix: x-\nresources: [a.yaml]\n",
		".k/a.yaml":            object("v1", "ConfigMap", "k"),
		".p.xpkg":              "no image",
		"large.yaml":           object("v1", "ConfigMap", "large") + strings.Repeat("# comment\n", 1000),
		"used.yaml":            object("v1", "ConfigMap", "used"),
	})
	link(files, ".link.yaml", ".module")
	at := &unavailable{MapFS: files}
	c, err := read(at, "", catalogue.Options{Limits: manifest.Limits{FileBytes: 4000}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".headgateignore", "used.yaml"}, slices.Compact(at.opened)); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	want := map[string][]string{
		".two.yaml":            {"ConfigMap/a", "CustomResourceDefinition.apiextensions.k8s.io/buckets.toy.example.org", "ManagedResourceDefinition.apiextensions.crossplane.io/buckets.toy.example.org"},
		".k/kustomization.yml": {"ConfigMap/x-k"}, ".k/a.yaml": {"ConfigMap/k"},
		".link.yaml": nil, ".module": nil, ".broken.yaml": nil, ".p.xpkg": nil, "large.yaml": nil,
	}
	got := map[string][]string{}
	for _, o := range c.Omitted {
		ids, err := o.Declares()
		if err != nil {
			t.Errorf("%s: %v", o.Origin, err)
		}
		got[o.Origin.Path] = nil
		for _, id := range ids {
			got[o.Origin.Path] = append(got[o.Origin.Path], id.String())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
	if c, err = read(at, "", catalogue.Options{}); err != nil {
		t.Fatal(err)
	}
	at.gone = true
	for _, o := range c.Omitted {
		if ids, err := o.Declares(); err == nil && o.Origin.Path != ".link.yaml" && o.Origin.Path != ".module" {
			t.Errorf("%s cannot be read now, and declares %v", o.Origin, ids)
		}
	}
}

// What a link leads to is never applied. But a directory that moves and leaves a link in its place is not removed, nor is a file that may
// have moved into a submodule, nor one that a failed command left without a byte.
func TestDeclaresElsewhere(t *testing.T) {
	files := tree(map[string]string{
		"apps/used.yaml":        object("v1", "ConfigMap", "used"),
		"apps/empty.yaml":       "",
		"apps/comments.yaml":    "# removed\n",
		"shared/all/one.yaml":   object("v1", "ConfigMap", "one"),
		"shared/all/.two.yaml":  object("v1", "ConfigMap", "two"),
		"shared/all/notes.text": object("v1", "ConfigMap", "notes"),
		"away.txt":              object("v1", "ConfigMap", "away"),
	})
	for link, target := range map[string]string{
		"again": "shared", "apps/dir": "../again/all", "apps/file": "../away.txt", "apps/there": "dir/one.yaml",
		"apps/gone": "../nothing", "apps/circle": "circle", "apps/out": "../../etc", "apps/absolute": "/etc/passwd", "shared/all/circle": "..",
	} {
		files[link] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink}
	}
	files["apps/module"] = &fstest.MapFile{Mode: fs.ModeIrregular}
	c, err := read(files, "apps", catalogue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, o := range c.Omitted {
		ids, err := o.Declares()
		got[strings.TrimPrefix(o.Origin.Path, "apps/")] = fmt.Sprintf("%s %v %t", o.Why, ids, err != nil)
	}
	want := map[string]string{
		"dir": "symbolic link [ConfigMap/two ConfigMap/one] false", "file": "symbolic link [ConfigMap/away] false", "there": "symbolic link [ConfigMap/one] false",
		"gone": "symbolic link [] false", "circle": "symbolic link [] false", "out": "symbolic link [] false", "absolute": "symbolic link [] false",
		"module": "submodule [] true", "empty.yaml": "empty file [] false",
	}
	if diff := cmp.Diff(want, got); diff != "" || len(c.Objects) != 1 {
		t.Errorf("%d objects, omitted (-want +got):\n%s", len(c.Objects), diff)
	}
}

// TestSkippedFilesHaveALimit proves that reading skipped files does not take longer than reading the others: beyond the limit, they may
// declare anything. The limit of the commit does not count them.
func TestSkippedFilesHaveALimit(t *testing.T) {
	large := object("v1", "ConfigMap", "a") + strings.Repeat("# comment\n", 100)
	c, err := read(tree(map[string]string{".a.yaml": large, ".b.yaml": large, "c.yaml": large}), "", catalogue.Options{Limits: manifest.Limits{TotalBytes: 1500}})
	if err != nil {
		t.Fatal(err)
	}
	unread := 0
	for _, o := range c.Omitted {
		if _, err := o.Declares(); err != nil {
			unread++
		}
	}
	if unread != 1 || len(c.Omitted) != 2 {
		t.Errorf("%d of %d skipped files are beyond the limit, want 1 of 2", unread, len(c.Omitted))
	}
}

// unavailable is a file system that records the opened files, and fails once it is gone.
type unavailable struct {
	fstest.MapFS

	opened []string
	gone   bool
}

func (u *unavailable) Open(name string) (fs.File, error) {
	f, err := u.MapFS.Open(name)
	if err != nil || u.gone {
		return nil, errors.Join(err, errors.New("gone"))
	}
	if info, err := f.Stat(); err == nil && info.Mode()&fs.ModeIrregular != 0 {
		return nil, errors.New("is a submodule")
	}
	if info, err := f.Stat(); err == nil && !info.IsDir() {
		u.opened = append(u.opened, name)
	}
	return f, nil
}

// ReadFile must not bypass Open.
func (u *unavailable) ReadFile(name string) ([]byte, error) {
	f, err := u.Open(name)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}
