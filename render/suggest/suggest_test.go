package suggest

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/lint"

	"github.com/google/go-cmp/cmp"
)

const crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s}
spec:
  group: %[2]s
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[4]s, singular: %[5]s, categories: [managed]}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// kinds are the definitions of the package: the same kinds in a legacy group and in its namespaced one, and a group below another.
var kinds = []struct{ group, kind string }{
	{"s3.example.org", "Bucket"}, {"s3.example.org", "Policy"}, {"s3.example.org", "Acl"}, {"s3.m.example.org", "Bucket"}, {"s3.m.example.org", "Policy"},
	{"sqs.example.org", "Queue"}, {"sqs.example.org", "Policy"}, {"deep.sqs.example.org", "Queue"}, {"deep.sqs.example.org", "Topic"},
}

func nameOf(group, kind string) string { return strings.ToLower(kind) + "s." + group }

// platform returns a commit with a safe-start package and more files.
func platform(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{"package/crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-a}\nspec: {capabilities: [safe-start]}\n")}}
	for _, k := range kinds {
		name := nameOf(k.group, k.kind)
		tree["package/crds/"+name+".yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, crd, name, k.group, k.kind, strings.ToLower(k.kind)+"s", strings.ToLower(k.kind))}
	}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

func object(group, kind string) string {
	return fmt.Sprintf("apiVersion: %s/v1\nkind: %s\nmetadata: {name: a, namespace: a}\n", group, kind)
}

func rendered(t *testing.T, tree fstest.MapFS) render.Desired {
	t.Helper()
	want, err := render.Render(render.Input{Files: tree}, render.Options{Owner: render.OwnerCrossplane})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// edited returns the tree after the edits of a suggestion, and those that the user must make.
func edited(t *testing.T, tree fstest.MapFS, unused bool) (after fstest.MapFS, edits []Edit) {
	t.Helper()
	read := func(name string) (string, error) {
		raw, err := fs.ReadFile(tree, name)
		return string(raw), err
	}
	edits = For(rendered(t, tree)).Edits(How{Unused: unused, Read: read, New: "policies/headgate.yaml"})
	after = maps.Clone(tree)
	for _, e := range edits {
		if e.Cannot == "" {
			after[e.Path] = &fstest.MapFile{Data: []byte(e.After)}
		}
	}
	return after, edits
}

func TestEdits(t *testing.T) {
	const head = "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: team}\nspec:\n"
	bucket := map[string]string{"a.yaml": object("s3.example.org", "Bucket")}
	cases := map[string]struct {
		reason string
		policy string // in p.yaml; "" if there is none
		files  map[string]string
		unused bool
		want   string // p.yaml or the new file after the edit; "" if nothing is edited
		cannot string
	}{
		"New": {
			reason: "A commit without a policy gets one.",
			files:  bucket,
			want:   "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata:\n  name: headgate\nspec:\n  activate:\n  - buckets.s3.example.org # a.yaml:1\n",
		},
		"Block": {
			reason: "Comments and order stay; the line stands after the last one of its group.",
			policy: head + "  activate:\n    # storage\n    - acls.s3.example.org # first\n\n    - \"queues.sqs.example.org\"\n",
			files:  bucket,
			want:   head + "  activate:\n    # storage\n    - acls.s3.example.org # first\n    - buckets.s3.example.org # a.yaml:1\n\n    - \"queues.sqs.example.org\"\n",
		},
		"WindowsLines": {
			reason: "The new line ends like the others.",
			policy: strings.ReplaceAll(head+"  activate:\n  - queues.sqs.example.org\n", "\n", "\r\n"),
			files:  bucket,
			want:   strings.ReplaceAll(head+"  activate:\n  - queues.sqs.example.org\n  - buckets.s3.example.org # a.yaml:1\n", "\n", "\r\n"),
		},
		"Flow": {
			reason: "A list in brackets stays one.",
			policy: head + "  activate: ['queues.sqs.example.org', \"acls.s3.*\"] # all\n",
			files:  bucket,
			want:   head + "  activate: ['queues.sqs.example.org', \"acls.s3.*\", buckets.s3.example.org] # all\n",
		},
		"Several": {
			reason: "Other documents of the file stay as they are.",
			policy: "# first\na: b\n---\n" + head + "  activate:\n  - queues.sqs.example.org\n---\nc: &d [e]\n",
			files:  bucket,
			want:   "# first\na: b\n---\n" + head + "  activate:\n  - queues.sqs.example.org\n  - buckets.s3.example.org # a.yaml:1\n---\nc: &d [e]\n",
		},
		"Anchor": {
			reason: "An alias may be used elsewhere, so the user must decide.",
			policy: head + "  activate: &a\n  - &b queues.sqs.example.org\n  - *b\n",
			files:  bucket,
			cannot: errWritten.Error(),
		},
		"Pattern": {
			reason: "A whole group that is used becomes a pattern; the group below it is not matched as long as not all of it is used.",
			policy: head + "  activate: [queues.sqs.example.org]\n",
			files: map[string]string{
				"a.yaml": object("s3.m.example.org", "Bucket") + "---\n" + object("s3.m.example.org", "Policy"),
				"b.yaml": object("sqs.example.org", "Policy"),
			},
			want: head + "  activate: [queues.sqs.example.org, \"*.s3.m.example.org\", policys.sqs.example.org]\n",
		},
		"Fits": {
			reason: "Without --unused, nothing leaves.",
			policy: head + "  activate: [\"*\"]\n",
			files:  bucket,
		},
		"Unused": {
			reason: "A wildcard is replaced by what is used.",
			policy: head + "  activate:\n  # everything\n  - \"*\"\n  - acls.s3.example.org\n  - nothing.example.org\n",
			files:  bucket,
			unused: true,
			want:   head + "  activate:\n  # everything\n  - buckets.s3.example.org # a.yaml:1\n  - nothing.example.org\n",
		},
		"Empty": {
			reason: "A policy needs an entry, so the user must remove the policy.",
			policy: head + "  activate:\n  - acls.s3.example.org\n",
			files:  map[string]string{"c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"},
			unused: true,
			cannot: errEmpty.Error(),
		},
		"HostilePath": {
			reason: "A path must not end the comment.",
			policy: head + "  activate:\n  - queues.sqs.example.org\n",
			files:  map[string]string{"a\n  - \"*\".yaml": object("s3.example.org", "Bucket")},
			want:   head + "  activate:\n  - queues.sqs.example.org\n  - buckets.s3.example.org # \"a\\n  - \\\"*\\\".yaml:1\"\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := platform(tc.files)
			if tc.policy != "" {
				tree["p.yaml"] = &fstest.MapFile{Data: []byte(tc.policy)}
			}
			_, edits := edited(t, tree, tc.unused)
			got, cannot := "", ""
			for _, e := range edits {
				got, cannot = e.After, e.Cannot
			}
			if cannot != tc.cannot || len(edits) > 1 {
				t.Fatalf("%s\n%d edits, cannot: %q", tc.reason, len(edits), cannot)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nafter the edit (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// What kustomize builds cannot be edited.
func TestKustomize(t *testing.T) {
	tree := platform(map[string]string{
		"a.yaml":               object("s3.example.org", "Bucket"),
		"k/kustomization.yaml": "resources: [p.yaml]\nnamePrefix: x-\n",
		"k/p.yaml":             Policy("team", []Line{{Pattern: "queues.sqs.example.org"}}),
	})
	_, edits := edited(t, tree, false)
	if len(edits) != 1 || edits[0].Cannot != errMade.Error() || len(edits[0].Add) != 1 {
		t.Errorf("edits: %+v", edits)
	}
}

// A commit that does not hold the definitions of its kinds gets no guesses.
func TestUnknown(t *testing.T) {
	s := For(rendered(t, fstest.MapFS{
		"a.yaml": {Data: []byte(object("s3.aws.m.example.org", "Bucket"))},
		"b.yaml": {Data: []byte(object("aws.m.example.org", "ProviderConfig"))},
		"c.yaml": {Data: []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {}, template: {}}\n")},
	}))
	if len(s.Unknown) != 1 || s.Unknown[0].Kind != "Bucket" || s.Unknown[0].NeededBy[0].String() != "a.yaml:1" || len(s.Smallest) > 0 {
		t.Errorf("unknown %+v, smallest %+v", s.Unknown, s.Smallest)
	}
}

// A function whose program is elsewhere may compose anything, so its step is named.
func TestFunctionsElsewhere(t *testing.T) {
	s := For(rendered(t, platform(map[string]string{"c.yaml": "apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: a}\nspec:\n  compositeTypeRef: {apiVersion: example.org/v1, kind: X}\n  mode: Pipeline\n  pipeline:\n  - step: own\n    functionRef: {name: function-of-us}\n  - step: ready\n    functionRef: {name: function-auto-ready}\n"})))
	if len(s.Unread) != 1 || s.Unread[0].Origin.String() != "c.yaml:9" {
		t.Errorf("unread: %+v", s.Unread)
	}
}

// Of random commits with random policies, the smallest policy activates exactly what is used, each of its lines is needed, and the
// edits change nothing more when they are suggested again.
func TestProperties(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		files := map[string]string{}
		used := map[string]bool{}
		for i, k := range kinds {
			if r.IntN(3) > 0 {
				continue
			}
			used[nameOf(k.group, k.kind)] = true
			files[fmt.Sprintf("o%d.yaml", i)] = object(k.group, k.kind)
		}
		if len(used) == 0 {
			continue
		}
		tree := platform(files)
		smallest := For(rendered(t, tree)).Smallest
		tree["policy.yaml"] = &fstest.MapFile{Data: []byte(Policy("smallest", smallest))}
		if got := active(rendered(t, tree)); !maps.Equal(got, used) {
			t.Fatalf("seed %d: active %v, used %v", seed, got, used)
		}
		for i := range smallest {
			if less := slices.Delete(slices.Clone(smallest), i, i+1); len(less) > 0 {
				tree["policy.yaml"] = &fstest.MapFile{Data: []byte(Policy("smallest", less))}
			} else {
				delete(tree, "policy.yaml")
			}
			if len(lint.Coverage(rendered(t, tree))) == 0 {
				t.Fatalf("seed %d: line %s is not needed", seed, smallest[i].Pattern)
			}
		}
		delete(tree, "policy.yaml")
		for i := range r.IntN(3) {
			var present []Line
			for range 1 + r.IntN(3) {
				k := kinds[r.IntN(len(kinds))]
				present = append(present, Line{Pattern: []string{nameOf(k.group, k.kind), "*." + k.group, "*", "no.example.org"}[r.IntN(4)]})
			}
			tree[fmt.Sprintf("p%d.yaml", i)] = &fstest.MapFile{Data: []byte(Policy(fmt.Sprintf("p%d", i), present))}
		}
		for _, unused := range []bool{false, true} {
			after, edits := edited(t, tree, unused)
			if slices.ContainsFunc(edits, func(e Edit) bool { return e.Cannot != "" && e.Cannot != errEmpty.Error() }) {
				t.Fatalf("seed %d: %+v", seed, edits)
			}
			now := active(rendered(t, after))
			for name := range used {
				if !now[name] {
					t.Fatalf("seed %d, unused %t: %s is used and not active", seed, unused, name)
				}
			}
			byHand := slices.ContainsFunc(edits, func(e Edit) bool { return e.Cannot != "" })
			if unused && !byHand && !maps.Equal(now, used) {
				t.Fatalf("seed %d: active %v, used %v", seed, now, used)
			}
			if _, again := edited(t, after, unused); !byHand && len(again) > 0 {
				t.Fatalf("seed %d, unused %t: suggested again: %+v", seed, unused, again)
			}
		}
	}
}

func active(want render.Desired) map[string]bool {
	all := map[string]bool{}
	for _, d := range want.Definitions {
		if d.Active {
			all[d.Name] = true
		}
	}
	return all
}

// FuzzEdit edits arbitrary files that hold a policy. What is edited must hold the patterns, and every other line.
func FuzzEdit(f *testing.F) {
	f.Add("apiVersion: a/v1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: p}\nspec:\n  activate:\n  - a.b\n  - 'c.d'\n")
	f.Add("kind: ManagedResourceActivationPolicy\nmetadata: {name: p}\nspec: {activate: [a.b, \"c.d\"]} # x")
	f.Add("- &a\r\n---\r\nkind: ManagedResourceActivationPolicy\r\nmetadata: {name: p}\r\nspec:\r\n  activate: \r\n  - \"a.b\"\r\n  - c.d")
	f.Fuzz(func(t *testing.T, text string) {
		c := change{drop: map[int][]Line{0: {{Pattern: "x.y"}}}, add: []Line{{Pattern: "*.z"}}}
		c.policy.Name = "p"
		for _, glob := range []string{"a.b", "c.d"} {
			c.policy.Patterns = append(c.policy.Patterns, catalogue.Pattern{Glob: glob})
		}
		after, err := c.edited(text)
		if err != nil {
			return
		}
		left := strings.Split(after, "\n")
		changed := 0
		for line := range strings.SplitSeq(text, "\n") {
			if !slices.Contains(left, line) {
				changed++
			}
		}
		if changed > 2 || !strings.Contains(after, `"*.z"`) {
			t.Fatalf("%d lines changed:\n%s", changed, after)
		}
	})
}
