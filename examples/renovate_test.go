package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
)

// A renovate is the part of a Renovate configuration that decides what its manager for Crossplane proposes.
type renovate struct {
	Crossplane struct {
		Patterns []string `json:"managerFilePatterns"`
	} `json:"crossplane"`
	Rules []struct {
		Names []string `json:"matchPackageNames"`
		Group string   `json:"groupName"`
	} `json:"packageRules"`
}

// pattern compiles a regular expression that is written between slashes, as in Renovate.
func pattern(t *testing.T, text string) *regexp.Regexp {
	t.Helper()
	if len(text) < 2 || text[0] != '/' || text[len(text)-1] != '/' {
		t.Fatalf("%s is no regular expression between slashes", text)
	}
	return regexp.MustCompile(text[1 : len(text)-1])
}

// proposal returns the files as Renovate rewrites them for packages with newer versions, and the branches on which it proposes
// them. Like Renovate's manager for Crossplane, it replaces the tag in spec.package of every object in group pkg.crossplane.io.
func (r renovate) proposal(t *testing.T, files fstest.MapFS, newer map[string]string) (fstest.MapFS, []string) {
	t.Helper()
	after, branches := maps.Clone(files), map[string]bool{}
	for name, file := range files {
		if !slices.ContainsFunc(r.Crossplane.Patterns, func(p string) bool { return pattern(t, p).MatchString(name) }) {
			continue
		}
		text := string(file.Data)
		for document := range strings.SplitSeq(text, "\n---\n") {
			var object struct {
				APIVersion, Kind string
				Spec             struct{ Package string }
			}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			source, _ := crossplane.SplitImage(object.Spec.Package)
			to, has := newer[crossplane.ImageName(object.Spec.Package)]
			if !strings.HasPrefix(object.APIVersion, "pkg.crossplane.io/v") || !has {
				continue
			}
			text = strings.Replace(text, object.Spec.Package, source+":"+to, 1)
			branch := crossplane.ImageName(source)
			for _, rule := range r.Rules {
				if slices.ContainsFunc(rule.Names, func(p string) bool { return pattern(t, p).MatchString(source) }) {
					branch = rule.Group
				}
			}
			branches[branch] = true
		}
		after[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return after, slices.Sorted(maps.Keys(branches))
}

// twoCommits holds the files of two commits, by ref.
type twoCommits map[string]fs.FS

func (c twoCommits) Fetch(_ context.Context, ref string) (render.Input, error) {
	return render.Input{Revision: ref, Files: c[ref]}, nil
}

func sea(spec, version string) fstest.MapFS {
	return packageOf("provider-sea", "sea.example.org", "boats", "Boat", spec, version)
}

// packageOf returns a provider package with one kind. version holds the fields of its only version besides the schema.
func packageOf(name, group, plural, kind, spec, version string) fstest.MapFS {
	crd := fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[1]s}
spec:
  group: %[1]s
  names: {kind: %[3]s, listKind: %[3]sList, plural: %[2]s, singular: %[4]s, categories: [managed]}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true%[6]s
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%[5]s}}}}}
`, group, plural, kind, strings.ToLower(kind), spec, version)
	return fstest.MapFS{
		"crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: " + name + "}\nspec: {capabilities: [safe-start]}\n")},
		"crds/one.yaml":   {Data: []byte(crd)},
	}
}

// TestRenovate previews ten bumps as Renovate proposes them. Only safe ones merge without a person.
func TestRenovate(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	images := fixtures.StartRegistry(t)
	push := func(name, tag string, files fstest.MapFS) { images.Push(t, "acme/"+name, tag, files, 0) }
	const fields = "size: {type: string}, region: {type: string, default: north}"
	for tag, files := range map[string]fstest.MapFS{
		"v1.0.0": sea(fields, ""),
		"v1.0.1": sea(fields, ""),
		"v1.1.0": sea(fields+", depth: {type: integer}", ""),
		"v1.2.0": sea(strings.Replace(fields, "north", "south", 1), ""),
		"v1.3.0": sea(fields, "\n    deprecated: true"),
		"v2.0.0": sea("region: {type: string, default: north}", ""),
		"v3.0.0": packageOf("provider-sea", "sea.example.org", "ships", "Ship", fields, ""),
	} {
		push("provider-sea", tag, files)
	}
	for name, tags := range map[string]map[string]fstest.MapFS{
		"provider-helm":       {"v0.21.0": fixtures.Corpus(t, "provider-helm-older"), "v1.0.0": fixtures.Corpus(t, "provider-helm")},
		"provider-kubernetes": {"v1.0.0": fixtures.Corpus(t, "provider-kubernetes-v1.0.0"), "v1.2.1": fixtures.Corpus(t, "provider-kubernetes")},
		"provider-aws-s3": {
			"v2.6.0": packageOf("provider-aws-s3", "s3.aws.example.org", "buckets", "Bucket", "a: {type: string}", ""),
			"v2.6.1": packageOf("provider-aws-s3", "s3.aws.example.org", "buckets", "Bucket", "a: {type: string}, b: {type: string}", ""),
			"v3.0.0": packageOf("provider-aws-s3", "s3.aws.example.org", "buckets", "Bucket", "b: {type: string}", ""),
		},
		"provider-aws-sqs": {
			"v2.6.0": packageOf("provider-aws-sqs", "sqs.aws.example.org", "queues", "Queue", "a: {type: string}", ""),
			"v2.6.1": packageOf("provider-aws-sqs", "sqs.aws.example.org", "queues", "Queue", "a: {type: string}", ""),
			"v3.0.0": packageOf("provider-aws-sqs", "sqs.aws.example.org", "queues", "Queue", "a: {type: string}", ""),
		},
	} {
		for tag, files := range tags {
			push(name, tag, files)
		}
	}

	raw, err := os.ReadFile("renovate/renovate.json")
	if err != nil {
		t.Fatal(err)
	}
	var bot renovate
	if err := json.Unmarshal(raw, &bot); err != nil {
		t.Fatal(err)
	}
	platform := fstest.MapFS{}
	for name, file := range treeOf(t, "renovate/platform") {
		text := strings.ReplaceAll(string(file.Data), "packages.example.org/", images.Host+"/")
		platform["platform/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	for name, tc := range map[string]struct {
		reason string
		newer  map[string]string
		branch string
		want   report.Word
	}{
		"Patch":       {"The patch release changes nothing.", map[string]string{"provider-sea": "v1.0.1"}, "provider-sea", report.Safe},
		"Field":       {"A kind gains a field.", map[string]string{"provider-sea": "v1.1.0"}, "provider-sea", report.Safe},
		"Default":     {"Objects that omit the field get another default.", map[string]string{"provider-sea": "v1.2.0"}, "provider-sea", report.Look},
		"Deprecated":  {"A deprecated version will be removed one day.", map[string]string{"provider-sea": "v1.3.0"}, "provider-sea", report.Look},
		"Removed":     {"A field of existing objects is removed.", map[string]string{"provider-sea": "v2.0.0"}, "provider-sea", report.Blocked},
		"Dropped":     {"The release drops a kind.", map[string]string{"provider-sea": "v3.0.0"}, "provider-sea", report.Blocked},
		"Helm":        {"The real provider removes a field that nothing in the repository uses but that objects may use.", map[string]string{"provider-helm": "v1.0.0"}, "provider-helm", report.Blocked},
		"Kubernetes":  {"The real provider gains safe-start, so that policies decide from now on.", map[string]string{"provider-kubernetes": "v1.2.1"}, "provider-kubernetes", report.Look},
		"Family":      {"Renovate proposes the providers of a family in one pull request.", map[string]string{"provider-aws-s3": "v2.6.1", "provider-aws-sqs": "v2.6.1"}, "provider-family-aws", report.Safe},
		"FamilyMajor": {"One provider of the family removes a field.", map[string]string{"provider-aws-s3": "v3.0.0", "provider-aws-sqs": "v3.0.0"}, "provider-family-aws", report.Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			after, branches := bot.proposal(t, platform, tc.newer)
			if diff := cmp.Diff([]string{tc.branch}, branches); diff != "" {
				t.Errorf("branches (-want +got):\n%s", diff)
			}
			how := render.Options{Owner: render.OwnerCrossplane}
			r := reconcile.Reconciler{Options: how, Source: &registry.Resolver{Next: twoCommits{"base": platform, "head": after}, How: how, Cache: t.TempDir()}}
			result, err := r.Preview(t.Context(), reconcile.Pull{Base: "base", Head: "head"})
			if err != nil {
				t.Fatal(err)
			}
			if result.Judgement.Word != tc.want {
				t.Errorf("%s\nit is %s, want %s: %v", tc.reason, result.Judgement.Word, tc.want, result.Judgement.Because)
			}
		})
	}
}

// The workflow locks before it previews, and merges only if the preview says so.
func TestRenovateWorkflow(t *testing.T) {
	if diff := cmp.Diff([]string{"headgate lock platform", "headgate preview --target main --comment --status -o json > preview.json"}, commands(t, "renovate/headgate.yaml")); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
