package lint

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render"
)

const toyCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s}
spec:
  group: %[2]s
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[4]s, singular: %[5]s, categories: [managed]}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// platform returns a commit with a safe-start package with two groups, and the policies of its user.
func platform(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{"package/crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-a}\nspec: {capabilities: [safe-start]}\n")}}
	for _, k := range []struct{ group, kind string }{{"s3.example.org", "Bucket"}, {"s3.example.org", "Policy"}, {"sqs.example.org", "Queue"}} {
		plural := strings.ToLower(k.kind) + "s"
		name := plural + "." + k.group
		tree["package/crds/"+name+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, toyCRD, name, k.group, k.kind, plural, strings.ToLower(k.kind))}
	}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

func policy(name string, patterns ...string) string {
	return fmt.Sprintf("apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: %s}\nspec: {activate: [%s]}\n", name, strings.Join(patterns, ", "))
}

func composition(spec string) string {
	return "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: store}\nspec:\n" + spec
}

const templated = `  mode: Pipeline
  pipeline:
  - step: render
    functionRef: {name: function-go-templating}
    input:
      apiVersion: gotemplating.fn.crossplane.io/v1beta1
      kind: GoTemplate
      source: Inline
      inline:
        template: |
          {{- /* apiVersion: s3.example.org/v1
          kind: Policy */ -}}
          # kind: Policy
          {{ range $i := until 3 }}
          ---
          metadata:
            name: a
          apiVersion: "s3.example.org/v1" # the newest
          kind: Bucket
          spec:
            of: {{ $i }}
          {{ end }}
          ---
          apiVersion: sqs.example.org/v1
          kind: Queue
`

func TestCoverage(t *testing.T) {
	const bucket = `Composition.apiextensions.crossplane.io/store uses buckets.s3.example.org, which no policy activates`
	cases := map[string]struct {
		reason string
		files  map[string]string
		stays  []string
		want   []string // "file:line severity message; fix"
	}{
		"Instance": {
			reason: "The object would wait forever for its kind.",
			files: map[string]string{
				"policy.yaml": policy("team", "queues.*"),
				"bucket.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: s3.example.org/v1\nkind: Bucket\nmetadata: {name: logs, namespace: team-a}\n",
			},
			want: []string{`bucket.yaml:5 warning Bucket.s3.example.org/team-a/logs is of buckets.s3.example.org, which no policy activates; add "buckets.s3.example.org" to spec.activate of policy team (policy.yaml:1)`},
		},
		"Homeless": {
			reason: "The finding names the object with the namespace that it gets, as in all reports.",
			files: map[string]string{
				"policy.yaml": policy("team", "queues.*"),
				"bucket.yaml": "apiVersion: s3.example.org/v1\nkind: Bucket\nmetadata: {name: logs}\n",
			},
			want: []string{`bucket.yaml:1 warning Bucket.s3.example.org/default/logs is of buckets.s3.example.org, which no policy activates; add "buckets.s3.example.org" to spec.activate of policy team (policy.yaml:1)`},
		},
		"Active": {
			reason: "A correct commit has no findings.",
			files: map[string]string{
				"policy.yaml": policy("team", "'*'"),
				"bucket.yaml": "apiVersion: s3.example.org/v1\nkind: Bucket\nmetadata: {name: logs}\n",
				"store.yaml":  composition(templated),
			},
		},
		"Stays": {
			reason: "A definition that was active stays served, whatever the policies name.",
			files:  map[string]string{"bucket.yaml": "apiVersion: s3.example.org/v1\nkind: Bucket\nmetadata: {name: logs}\n"},
			stays:  []string{"buckets.s3.example.org"},
		},
		"Resources": {
			reason: "The old mode of Compositions lists its resources directly.",
			files: map[string]string{
				"a.yaml":     policy("sqs", "queues.sqs.example.org"),
				"b.yaml":     policy("s3", "policies.s3.example.org"),
				"store.yaml": composition("  mode: Resources\n  resources:\n  - name: bucket\n    base:\n      apiVersion: s3.example.org/v1\n      kind: Bucket\n  - name: queue\n    base: {apiVersion: sqs.example.org/v1, kind: Queue}\n"),
			},
			want: []string{`store.yaml:10 warning ` + bucket + `; add "buckets.s3.example.org" to spec.activate of policy s3 (b.yaml:1)`},
		},
		"PatchAndTransform": {
			reason: "A function's input may contain resources at any depth.",
			files: map[string]string{
				"store.yaml": composition("  mode: Pipeline\n  pipeline:\n  - step: pt\n    functionRef: {name: function-patch-and-transform}\n    input:\n      apiVersion: pt.fn.crossplane.io/v1beta1\n      kind: Resources\n" +
					"      resources:\n      - name: wrapped\n        base:\n          apiVersion: kubernetes.crossplane.io/v1alpha2\n          kind: Object\n          spec:\n            forProvider:\n              manifest:\n                apiVersion: s3.example.org/v1\n                kind: Bucket\n"),
			},
			want: []string{`store.yaml:21 warning ` + bucket + `; add "buckets.s3.example.org" to spec.activate of a policy`},
		},
		"Template": {
			reason: "Template actions and comments around an object do not matter.",
			files:  map[string]string{"policy.yaml": policy("team", "queues.*"), "store.yaml": composition(templated)},
			want:   []string{`store.yaml:23 warning ` + bucket + `; add "buckets.s3.example.org" to spec.activate of policy team (policy.yaml:1)`},
		},
		"Computed": {
			reason: "A template may hide a part of an object, which is then reported as unknown.",
			files: map[string]string{
				"store.yaml": composition("  mode: Pipeline\n  pipeline:\n  - step: render\n    input:\n      kind: GoTemplate\n      inline:\n        template: |\n          apiVersion: s3.example.org/v1\n          kind: {{ .kind }}\n"),
			},
			want: []string{`store.yaml:13 note whether all that Composition.apiextensions.crossplane.io/store composes is active is not known: the template of step render computes kinds, which are not read`},
		},
		"Elsewhere": {
			reason: "A function may read its templates from files in its own image.",
			files: map[string]string{
				"store.yaml": composition("  mode: Pipeline\n  pipeline:\n  - step: render\n    input:\n      kind: GoTemplate\n      source: FileSystem\n"),
			},
			want: []string{`store.yaml:9 note whether all that Composition.apiextensions.crossplane.io/store composes is active is not known: the templates of step render are not in the commit, so they are not read`},
		},
		"Program": {
			reason: "Of other languages, only what the text names is known.",
			files: map[string]string{
				"store.yaml": composition("  mode: Pipeline\n  pipeline:\n  - step: kcl\n    input:\n      kind: KCLInput\n      spec:\n        source: |\n          items = [{apiVersion = \"s3.example.org/v1\", kind = \"Bucket\"}]\n"),
			},
			want: []string{
				`store.yaml:11 note whether all that Composition.apiextensions.crossplane.io/store composes is active is not known: the input of step kcl is a program, which is only searched for names of kinds`,
				`store.yaml:12 warning ` + bucket + `; add "buckets.s3.example.org" to spec.activate of a policy`,
			},
		},
		"Source": {
			reason: "A function may be in the commit, too.",
			files:  map[string]string{"functions/store/main.k": "# kind = \"Queue\"\nitems = [\n  {apiVersion = \"s3.example.org/v1\", kind = \"Bucket\"}\n]\n"},
			want: []string{
				`functions/store/main.k:1 note whether all that functions/store/main.k composes is active is not known: it is a program, which is only searched for names of kinds`,
				`functions/store/main.k:3 warning functions/store/main.k uses buckets.s3.example.org, which no policy activates; add "buckets.s3.example.org" to spec.activate of a policy`,
			},
		},
		"Usage": {
			reason: "Other objects name kinds, too.",
			files:  map[string]string{"usage.yaml": "apiVersion: protection.crossplane.io/v1beta1\nkind: ClusterUsage\nmetadata: {name: a}\nspec:\n  of:\n    apiVersion: s3.example.org/v1\n    kind: Bucket\n"},
			want:   []string{`usage.yaml:7 warning ClusterUsage.protection.crossplane.io/a uses buckets.s3.example.org, which no policy activates; add "buckets.s3.example.org" to spec.activate of a policy`},
		},
		"Paused": {
			reason: "A paused policy activates nothing, so adding a pattern to it would not help.",
			files: map[string]string{
				"policy.yaml": strings.Replace(policy("team", "queues.*"), "{name: team}", "{name: team, annotations: {crossplane.io/paused: \"true\"}}", 1),
				"bucket.yaml": "apiVersion: s3.example.org/v1\nkind: Bucket\nmetadata: {name: logs}\n",
			},
			want: []string{`bucket.yaml:1 warning Bucket.s3.example.org/default/logs is of buckets.s3.example.org, which no policy activates; add "buckets.s3.example.org" to spec.activate of a policy`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want, err := render.Render(render.Input{Files: platform(tc.files)}, render.Options{Owner: render.OwnerCrossplane})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range Coverage(want, tc.stays...) {
				output := fmt.Sprintf("%s %s %s", f.Origin, f.Severity, f.Message)
				if f.Fix != "" {
					output += "; " + f.Fix
				}
				got = append(got, output)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCoverage(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// In TestPartial, other repositories declare the definitions, so the active ones are unknown.
func TestPartial(t *testing.T) {
	want, err := render.Render(render.Input{Files: fstest.MapFS{"store.yaml": {Data: []byte(composition(templated))}}}, render.Options{Owner: render.OwnerCrossplane})
	if err != nil {
		t.Fatal(err)
	}
	if found := Coverage(want); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// A package has two thousand definitions, and decoding one takes milliseconds.
func TestRefusedDecodesOnce(t *testing.T) {
	files := &counted{MapFS: platform(nil), opened: map[string]int{}}
	want, err := render.Render(render.Input{Files: files}, render.Options{Owner: render.OwnerHeadgate})
	if err != nil {
		t.Fatal(err)
	}
	clear(files.opened)
	Refused(t.Context(), want)
	if len(files.opened) != 3 {
		t.Errorf("every definition is judged, got %v", files.opened)
	}
	for name, times := range files.opened {
		if times > 1 {
			t.Errorf("%s was decoded %d times", name, times)
		}
	}
}

// counted counts how often each file is opened.
type counted struct {
	fstest.MapFS

	mu     sync.Mutex
	opened map[string]int
}

func (c *counted) Open(name string) (fs.File, error) {
	c.mu.Lock()
	c.opened[name]++
	c.mu.Unlock()
	return c.MapFS.Open(name)
}

func (c *counted) ReadFile(name string) ([]byte, error) {
	c.mu.Lock()
	c.opened[name]++
	c.mu.Unlock()
	return c.MapFS.ReadFile(name)
}
