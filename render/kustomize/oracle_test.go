package kustomize_test

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"
)

// kubectl returns the output of 'kubectl kustomize' for a directory, decoded as by kubectl apply.
func kubectl(t *testing.T, files map[string]string, dir string) []string {
	t.Helper()
	disk := filesys.MakeFsInMemory()
	for name, text := range files {
		if err := disk.WriteFile("/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	openapi.ResetOpenAPI()
	defer openapi.ResetOpenAPI()
	how := krusty.MakeDefaultOptions()
	how.LoadRestrictions = types.LoadRestrictionsNone
	made, err := krusty.MakeKustomizer(how).Run(disk, path.Join("/", dir))
	if err != nil {
		t.Fatalf("kustomize: %v", err)
	}
	var all []string
	for _, r := range made.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := utiljson.Unmarshal(raw, &object); err != nil {
			t.Fatal(err)
		}
		all = append(all, indented(t, object))
	}
	slices.Sort(all)
	return all
}

func indented(t *testing.T, object any) string {
	t.Helper()
	raw, err := json.MarshalIndent(object, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
        args: [--config=$(CONFIG)]
        env: [{name: A, value: "1"}, {name: B, valueFrom: {secretKeyRef: {name: token, key: t}}}]
        volumeMounts: [{name: config, mountPath: /c}]
      volumes: [{name: config, configMap: {name: settings}}]
`

// A build has the same output as kustomize for the same files, although Headgate passes none of them to kustomize unchanged.
func TestAsKustomize(t *testing.T) {
	cases := map[string]map[string]string{
		"Everything": {
			"o/kustomization.yaml": `
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
metadata: {name: o}
namePrefix: p-
nameSuffix: -s
namespace: team
resources: [../b, extra.yaml]
components: [../c]
labels: [{pairs: {tier: "1"}, includeSelectors: true, fields: [{path: spec/extra, create: true, kind: Deployment}]}]
commonLabels: {num: "123", is: "true"}
commonAnnotations: {a: "1.0", b: "null"}
images: [{name: web, newTag: "2"}]
replicas: [{name: web, count: 3}]
configMapGenerator:
- {name: settings, files: [f.txt, key=sub/f.txt], literals: [a=b=c, 'q="x y"'], envs: [e.env]}
- {name: plain, env: e.env, options: {disableNameSuffixHash: true, immutable: true, labels: {l: "1"}, annotations: {x: z}}}
- {name: inherited, behavior: merge, literals: [more=1]}
secretGenerator:
- {name: token, type: Opaque, literals: [t=s3cret], files: [bin=sub/bin]}
generatorOptions: {labels: {generated: "true"}}
patches:
- path: p.yaml
- path: ops.json
  target: {kind: Deployment, labelSelector: app=web}
- target: {kind: Deployment, name: web}
  patch: |-
    - op: replace
      path: /spec/template/spec/containers/0/args/0
      value: "on"
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec: {template: {spec: {containers: [{name: side, image: side}]}}}
  options: {allowNameChange: true}
patchesStrategicMerge:
- psm.yaml
- |-
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec: {minReadySeconds: 5}
patchesJson6902:
- target: {group: apps, version: v1, kind: Deployment, name: web}
  path: ops.yaml
- target: {group: apps, version: v1, kind: Deployment, name: web}
  patch: '[{"op":"add","path":"/metadata/annotations/z","value":"z"}]'
replacements:
- path: r.yaml
- source: {kind: ConfigMap, name: extra, fieldPath: data.v}
  targets: [{select: {kind: Deployment}, fieldPaths: ["spec.template.spec.containers.[name=web].env.[name=A].value"]}]
transformers:
- |-
  apiVersion: builtin
  kind: AnnotationsTransformer
  metadata: {name: annotate}
  annotations: {third: "3"}
  fieldSpecs: [{path: metadata/annotations, create: true}]
- t.yaml
generators: [g.yaml]
validators: [v.yaml]
sortOptions: {order: fifo}
buildMetadata: [managedByLabel]
`,
			"o/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {v: \"07\", w: yes-no, \"8\": '8'}\n---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: local, annotations: {config.kubernetes.io/local-config: 'true'}}\n",
			"o/f.txt":      "text: with\n  {{ }} ${x} and no end",
			"o/sub/f.txt":  "",
			"o/sub/bin":    "\x00\xff\x80",
			"o/e.env":      "\uFEFF# c\nE=1\n  F = 2\nG\n",
			"o/p.yaml":     "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {paused: false, template: {spec: {containers: [{name: web, env: [{name: A, value: '2'}]}]}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {w: null}\n",
			"o/ops.json":   `[{"op": "add", "path": "/spec/strategy", "value": {"type": "Recreate"}}]`,
			"o/ops.yaml":   "- {op: test, path: /spec/replicas, value: 1}\n- {op: add, path: /spec/progressDeadlineSeconds, value: 1e3}\n- {op: copy, from: /spec/replicas, path: /spec/revisionHistoryLimit}\n",
			"o/psm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone}\n$patch: delete\n",
			"o/r.yaml":     "- source: {kind: ConfigMap, name: extra, fieldPath: metadata.name}\n  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.labels.from], options: {create: true}}]\n",
			"o/t.yaml":     "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: pt}\npath: p2.yaml\ntarget: {kind: ConfigMap, name: .*}\n---\napiVersion: builtin\nkind: NamespaceTransformer\nmetadata: {name: ns, namespace: other}\nunsetOnly: true\nsetRoleBindingSubjects: none\n---\napiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: rt}\nreplacements: [{path: r2.yaml}]\n---\napiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata: {name: psmt}\npaths: [p3.yaml, '{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {a: 1}}']\n",
			"o/p2.yaml":    "- {op: add, path: /metadata/labels/p2, value: 'true'}\n",
			"o/p3.yaml":    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {b: 2.50}\n",
			"o/r2.yaml":    "source: {kind: ConfigMap, name: extra, fieldPath: data.v}\ntargets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.copied], options: {create: true}}]\n",
			"o/g.yaml":     "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: gen}\nfiles: [f.txt]\nliterals: [x=1]\n---\napiVersion: builtin\nkind: SecretGenerator\nmetadata: {name: gens}\nliterals: [x=1]\noptions: {disableNameSuffixHash: true}\n",
			"o/v.yaml":     "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: check}\nlabels: {validated-by: me}\nfieldSpecs: [{path: none/none}]\n",

			"b/kustomization.yml": "bases: [deep/]\nresources: ['./d.json']\nconfigMapGenerator: [{name: inherited, literals: [first=1]}]\nvars:\n- {name: CONFIG, objref: {kind: Service, name: web, apiVersion: v1}, fieldref: {fieldPath: spec.clusterIP}}\nimageTags: [{name: side, newTag: '9'}]\n",
			"b/d.json":            `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"clusterIP":"10.0.0.1","ports":[{"port":80}]}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"gone"}}]}`,

			"b/deep/Kustomization": "resources: [d.yaml]\n",
			"b/deep/d.yaml":        deployment,

			"c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [n.yaml]\npatches: [{path: p.yaml, target: {kind: Namespace}}]\n",
			"c/n.yaml":             "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n",
			"c/p.yaml":             "apiVersion: v1\nkind: Namespace\nmetadata: {name: any, labels: {c: 'c'}}\n",
		},
		"Origins": {
			"o/kustomization.yaml":   "buildMetadata: [originAnnotations, transformerAnnotations]\nresources: [../b, ./c.yaml]\nnamePrefix: x-\nconfigMapGenerator: [{name: g, literals: [a=b]}]\n",
			"o/c.yaml":               configMap("c"),
			"b/kustomization.yaml":   "resources: [d]\nnameSuffix: -y\n",
			"b/d/kustomization.yaml": "resources: [d.yaml]\n",
			"b/d/d.yaml":             configMap("d"),
		},
		"Scalars": {
			"o/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: x-\n",
			"o/a.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {on: "on", "1": "1"}}
data:
  octal: "0o17"
  date: "2001-01-01"
  date2: 2001-01-01
  tilde: "~"
  bom: "\uFEFFx"
  lines: "a\u2028b\nc\td"
  wide: "😀"
  block: |+
    a
    b

  folded: >-
    a
    b
other:
  int: 9007199254740993
  octal: 0777
  hex: 0xff
  float: 1.50
  exp: 1e3
  big: 1e21
  yes: yes
  "null": null
  empty: {}
  list: []
  anchor: &x {a: b}
  alias: *x
`,
		},
		"Schemas": {
			"o/kustomization.yaml": "resources: [a.yaml]\nopenapi: {path: schema.json}\ncrds: [crd.json]\nconfigurations: [names.yaml]\npatches: [{path: p.yaml}]\nnamePrefix: x-\nconfigMapGenerator: [{name: cm, literals: [a=b]}]\n",
			"o/schema.json":        listSchema,
			"o/a.yaml":             list + "  ref: {name: cm}\n  crdRef: {name: cm}\n",
			"o/p.yaml":             "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t}\nspec: {items: [{name: a, v: 2}]}\n",
			"o/names.yaml":         "nameReference: [{kind: ConfigMap, version: v1, fieldSpecs: [{kind: Thing, path: spec/ref/name}]}]\n",
			"o/crd.json":           `{"x.Thing": {"Schema": {"properties": {"kind": {}, "apiVersion": {}, "metadata": {}, "spec": {"$ref": "x.Spec"}}}}, "x.Spec": {"Schema": {"properties": {"crdRef": {"x-kubernetes-object-ref-api-version": "v1", "x-kubernetes-object-ref-kind": "ConfigMap"}}}}}`,
		},
	}
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			want := kubectl(t, files, "o")
			made, problems := build(tree(files), manifest.Limits{}, "o")
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			var got []string
			for _, d := range made.Documents {
				u, err := d.Decode()
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, indented(t, u.Object))
			}
			slices.Sort(got)
			if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
				t.Errorf("(-kustomize +Headgate):\n%s", diff)
			}
		})
	}
}

func lines(all []string) []string { return strings.Split(strings.Join(all, "\n"), "\n") }

// The list of this kind is merged by key only if the commit contains a schema.
const (
	list       = "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t}\nspec:\n  items: [{name: a, v: 1}, {name: b, v: 1}]\n"
	listSchema = `{"definitions": {"v1.Thing": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"items": {"type": "array",
"items": {"type": "object", "properties": {"name": {"type": "string"}}}, "x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge"}}}},
"x-kubernetes-group-version-kind": [{"group": "example.org", "kind": "Thing", "version": "v1"}]}}}`
)

// Schemas of one directory must not affect another one, not even concurrently.
func TestSchemasStayWhereTheyAre(t *testing.T) {
	with := tree(map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\nopenapi: {path: schema.json}\npatches: [{path: p.yaml}]\n", "schema.json": listSchema,
		"a.yaml": list, "p.yaml": "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t}\nspec: {items: [{name: a, v: 2}]}\n",
	})
	without := tree(map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml}]\n",
		"a.yaml":             list, "p.yaml": "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t}\nspec: {items: [{name: a, v: 2}]}\n",
	})
	var all sync.WaitGroup
	for i := range 12 {
		files, want := with, 2
		if i%2 == 0 {
			files, want = without, 1
		}
		all.Go(func() {
			made, problems := build(files, manifest.Limits{})
			if len(problems) > 0 {
				t.Error(problems)
				return
			}
			u, err := made.Documents[0].Decode()
			if err != nil {
				t.Error(err)
				return
			}
			spec, _ := u.Object["spec"].(map[string]any)
			if items, _ := spec["items"].([]any); len(items) != want {
				t.Errorf("want %d items after the patch, got %s", want, fmt.Sprint(spec))
			}
		})
	}
	all.Wait()
}
