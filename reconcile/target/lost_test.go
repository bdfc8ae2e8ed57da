package target

import (
	"os/exec"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A commit may seem to declare less than its author believes: a file is still there in another form or place. Its object must stay, because nobody
// removed it. Whether the commit is an error, or the object is retained or held, is for other tests.
func TestReadAsLess(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		script string // changes the directory apps with one.yaml and two.yaml; SPACE is the namespace
	}{
		"Symlink":       {"A file becomes a link.", "mkdir shared; git mv apps/one.yaml shared/; ln -s ../shared/one.yaml apps/one.yaml"},
		"SymlinkInside": {"A file becomes a link to a file with another extension.", "git mv apps/one.yaml apps/one.txt; ln -s one.txt apps/one.yaml"},
		"LinkedDir":     {"A directory moves out of the path and leaves a link.", "mkdir -p shared/all; git mv apps/one.yaml shared/all/; ln -s shared again; ln -s ../again/all apps/sub"},
		"Submodule":     {"A file may have moved into a submodule.", "git rm -q apps/one.yaml; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),apps/sub; mkdir apps/sub"},
		"EmptyFile":     {"A file is empty.", ": > apps/one.yaml"},
		"PathIsLink":    {"The path itself becomes a link.", "git mv apps v2; ln -s v2 apps"},
		"Empty":         {"The directory has no manifest left.", "git rm -q apps/*.yaml; mkdir -p apps; touch apps/.gitkeep"},
		"Gone":          {"The directory is gone.", "git rm -q apps/*.yaml; rm -rf apps"},
		"Blank":         {"The files are empty.", ": > apps/one.yaml; : > apps/two.yaml"},
		"LFS":           {"A file is a pointer.", "printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n' > apps/one.yaml"},
		"RemoteBase":    {"A kustomization reads a base from elsewhere.", "printf 'resources: [two.yaml, \"https://example.org/a.yaml\"]\n' > apps/kustomization.yaml; git rm -q apps/one.yaml"},
		"NoResources":   {"A kustomization lists nothing.", "printf 'resources: []\n' > apps/kustomization.yaml"},
		"EmptyKustom":   {"A kustomization is empty.", ": > apps/kustomization.yaml"},
		"KustomNoFile":  {"A kustomization lists a file that does not exist.", "printf 'resources: [two.yaml, onee.yaml]\n' > apps/kustomization.yaml"},
		"Ignored":       {"A file is ignored.", "echo one.yaml > apps/.headgateignore"},
		"IgnoredAll":    {"All is ignored.", "echo '*' > .headgateignore"},
		"Local":         {"An object is for a program.", "sed -i 's/annotations: {}/annotations: {config.kubernetes.io\\/local-config: \"true\"}/' apps/one.yaml"},
		"UTF16":         {"An editor writes UTF-16.", "(printf '\\377\\376'; iconv -t UTF-16LE apps/one.yaml) > x; mv x apps/one.yaml"},
		"BOM":           {"An editor writes a byte order mark.", "(printf '\\357\\273\\277'; cat apps/one.yaml) > x; mv x apps/one.yaml"},
		"CR":            {"An editor writes carriage returns.", "tr '\\n' '\\r' < apps/one.yaml > x; mv x apps/one.yaml"},
		"CRLF":          {"An editor writes both.", "sed -i 's/$/\\r/' apps/one.yaml"},
		"EndOfDocument": {"What follows an end of a document is another one.", "(cat apps/two.yaml; echo ...; cat apps/one.yaml) > x; git rm -q apps/one.yaml; mv x apps/two.yaml"},
		"Indented":      {"A separator is indented.", "(cat apps/two.yaml; echo ' ---'; cat apps/one.yaml) > x; git rm -q apps/one.yaml; mv x apps/two.yaml"},
		"Directive":     {"A file has a directive.", "(echo '%YAML 1.2'; echo ---; cat apps/one.yaml) > x; mv x apps/one.yaml"},
		"SOPS":          {"A file is encrypted.", "printf 'sops: {mac: x, version: 3.9.0}\n' >> apps/one.yaml"},
		"Extension":     {"A file has another extension.", "git mv apps/one.yaml apps/one.yaml.tpl"},
		"UpperCase":     {"A file has an extension in capitals.", "git mv apps/one.yaml apps/one.YAML"},
		"Hidden":        {"A file is hidden.", "git mv apps/one.yaml apps/.one.yaml"},
		"HiddenDir":     {"A directory is hidden.", "mkdir apps/.a; git mv apps/one.yaml apps/.a/one.yaml"},
		"Kindless":      {"A key is misspelt.", "sed -i 's/kind:/knd:/' apps/one.yaml"},
		"KindCase":      {"A key has another case.", "sed -i 's/kind:/Kind:/' apps/one.yaml"},
		"Merge":         {"A merge conflict is committed.", "sed -i '1i <<<<<<< HEAD' apps/one.yaml"},
		"Chart":         {"The directory becomes a chart.", "printf 'apiVersion: v2\nname: a\nversion: 1.0.0\n' > apps/Chart.yaml; mkdir apps/templates; git mv apps/one.yaml apps/templates/one.yaml"},
		"Template":      {"A file becomes a template.", "sed -i 's/name: one/name: {{ .Values.one }}/' apps/one.yaml"},
		"Package":       {"The directory becomes a package.", "printf 'apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: a}\n' > apps/crossplane.yaml"},
		"Examples":      {"The directory becomes a package, and a file an example of it.", "printf 'apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: a}\n' > apps/crossplane.yaml; mkdir apps/examples; git mv apps/one.yaml apps/examples/"},
		"Project":       {"The directory becomes a project.", "printf 'apiVersion: meta.dev.upbound.io/v1alpha1\nkind: Project\nmetadata: {name: a}\nspec: {}\n' > apps/upbound.yaml"},
		"Nested":        {"An object is in a List with a misspelt key.", "(echo 'apiVersion: v1'; echo 'kind: List'; echo 'itms:'; sed 's/^/  /; 1s/^ /-/' apps/one.yaml) > x; mv x apps/one.yaml"},
		"GenerateName":  {"The name is generated.", "sed -i 's/name: one/generateName: one/' apps/one.yaml"},
		"JSON":          {"A file is JSON with two documents.", "printf '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"two\",\"namespace\":\"SPACE\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"one\",\"namespace\":\"SPACE\"}}' > apps/two.json; git rm -q apps/*.yaml"},
		"Attributes":    {"The export leaves a file out.", "echo 'apps/one.yaml export-ignore' > .gitattributes"},
		"Anchor":        {"The document is an alias.", "printf 'a: &a\\n' > x; sed 's/^/  /' apps/one.yaml >> x; printf 'b: *a\\n' >> x; mv x apps/one.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApplying(t, "less-"+strings.ToLower(name))
			a.pushAll(t, map[string]string{"apps/one.yaml": a.settings("one", ""), "apps/two.yaml": a.settings("two", "")})
			a.to.repository.Path = "apps"
			a.once(t)
			before, err := a.live.CoreV1().ConfigMaps(a.space).Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sh := exec.CommandContext(t.Context(), "sh", "-ec", strings.ReplaceAll(tc.script, "SPACE", a.space)+"\ngit add -A; git -c user.name=a -c user.email=a@example.org commit -qm x")
			sh.Dir = a.dir
			if out, err := sh.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for range 2 {
				if r, err := a.to.Once(t.Context()); r.Summary.Pruned > 0 {
					t.Errorf("%s\nit prunes: %q, %v", tc.reason, lines(r), err)
				}
			}
			after, err := a.live.CoreV1().ConfigMaps(a.space).Get(t.Context(), "one", metav1.GetOptions{})
			if err != nil || after.UID != before.UID {
				t.Errorf("%s\nthe object is another one: %v", tc.reason, err)
			}
		})
	}
}
