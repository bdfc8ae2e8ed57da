package reconcile

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// moving returns CRDs of provider-upjet-aws v2.6.0 and the same CRDs as in the previous release. The corpus has only one release,
// so the test resets the storage version to the one that the next release moved.
func moving(t *testing.T, most int) (before, after fstest.MapFS) {
	t.Helper()
	aws := fixtures.Largest(t)
	before, after = fstest.MapFS{"crossplane.yaml": aws["crossplane.yaml"]}, fstest.MapFS{"crossplane.yaml": aws["crossplane.yaml"]}
	for _, path := range slices.SortedFunc(maps.Keys(aws), func(a, b string) int { return len(aws[a].Data) - len(aws[b].Data) }) {
		data := aws[path].Data
		if len(after) > most || !bytes.Contains(data, []byte("\n    name: v1beta1\n")) || !bytes.Contains(data, []byte("\n    name: v1beta2\n")) {
			continue
		}
		swapped := strings.NewReplacer("\n    storage: true", "\n    storage: false", "\n    storage: false", "\n    storage: true").Replace(string(data))
		before[path], after[path] = &fstest.MapFile{Data: []byte(swapped)}, aws[path]
	}
	return before, after
}

type trees map[string]fstest.MapFS

func (s trees) Fetch(_ context.Context, ref string) (render.Input, error) {
	return render.Input{Revision: ref, Files: s[ref]}, nil
}

// A provider upgrade moves the storage version of its kinds. The conversion decides whether fields are lost. The installed image
// determines it; for a copy in the tree, which may differ from the image, the answer is unknown.
//
//test:unraced
func TestStorageMovesInAnUpgrade(t *testing.T) {
	before, after := moving(t, 5)
	registryHost := fixtures.StartRegistry(t)
	for tag, files := range map[string]fstest.MapFS{"v2.5.0": before, "v2.6.0": after} {
		registryHost.Push(t, "acme/unconverted", tag, files, 0)
		patched := maps.Clone(files)
		for path, file := range files {
			if path != "crossplane.yaml" {
				patched[path] = &fstest.MapFile{Data: fixtures.Converted(file.Data)}
			}
		}
		registryHost.Push(t, "acme/provider-aws", tag, patched, 0)
	}
	policy := "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: all}\nspec: {activate: [\"*\"]}\n"
	provider := func(name, tag string) string {
		return fmt.Sprintf("apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-aws}\nspec: {package: %s/acme/%s:%s}\n", registryHost.Host, name, tag)
	}
	commit := func(image, tag string, tree fstest.MapFS) fstest.MapFS {
		files := fstest.MapFS{"policy.yaml": {Data: []byte(policy)}}
		if image != "" {
			files["provider.yaml"] = &fstest.MapFile{Data: []byte(provider(image, tag))}
		}
		maps.Copy(files, fixtures.Below("aws", tree))
		return files
	}
	cases := map[string]struct {
		reason string
		owner  render.Owner
		image  string
		tree   bool
		breaks int
		warns  bool
		moves  int // number of kinds that change in an upgrade
	}{
		"Image":               {reason: "In the published image, a webhook converts every kind.", owner: render.OwnerCrossplane, image: "provider-aws", moves: 5},
		"ImageWithoutWebhook": {reason: "Without the webhook, nothing converts the stored objects.", owner: render.OwnerCrossplane, image: "unconverted", breaks: 5, moves: 5},
		"Tree":                {reason: "Headgate applies the copy without a webhook, so nothing converts.", owner: render.OwnerHeadgate, tree: true, breaks: 5},
		"TreeOfCrossplane":    {reason: "A Provider elsewhere may install a patched image of the same package.", owner: render.OwnerCrossplane, tree: true, warns: true},
		"Both":                {reason: "Crossplane installs the image, not the copy.", owner: render.OwnerCrossplane, image: "provider-aws", tree: true, moves: 5},
		"BothAuto":            {reason: "A Provider means that Crossplane installs the image.", owner: render.OwnerAuto, image: "provider-aws", tree: true, moves: 5},
		"BothWithoutWebhook":  {reason: "Without the webhook, nothing converts the stored objects.", owner: render.OwnerCrossplane, image: "unconverted", tree: true, breaks: 5, moves: 5},
		"BothOfHeadgate":      {reason: "Headgate applies the copy and reads no image.", owner: render.OwnerHeadgate, image: "provider-aws", tree: true, breaks: 5},
		"BothUnread":          {reason: "The image cannot be read, and the copy may differ from the installed package.", owner: render.OwnerCrossplane, image: "provider-gone", tree: true, warns: true, moves: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was, is := fstest.MapFS(nil), fstest.MapFS(nil)
			if tc.tree {
				was, is = before, after
			}
			how := render.Options{Owner: tc.owner}
			r := Reconciler{Options: how, Source: &registry.Resolver{
				Next: trees{"base": commit(tc.image, "v2.5.0", was), "head": commit(tc.image, "v2.6.0", is)}, How: how, Cache: t.TempDir(),
			}}
			result, err := r.Compare(t.Context(), "base", "head")
			if err != nil {
				t.Fatal(err)
			}
			breaks := map[string]bool{}
			for _, s := range result.Steps {
				collect(breaks, s)
			}
			for _, u := range result.Upgrades {
				collect(breaks, u)
			}
			warns := slices.ContainsFunc(result.Findings, func(f manifest.Finding) bool { return f.Rule == "conversion-unknown" })
			if diff := cmp.Diff([]any{tc.breaks, tc.warns, tc.moves}, []any{len(breaks), warns, len(result.Upgrades)}); diff != "" {
				t.Errorf("%s\nkinds that lose fields, a warning, and kinds that change in an upgrade (-want +got):\n%s%v", tc.reason, diff, result.Findings)
			}
		})
	}
}

func collect(breaks map[string]bool, s report.Step) {
	for _, b := range s.Breaks {
		if b.Rule == "not-converted" {
			breaks[s.ID.Name] = true
		}
	}
}
