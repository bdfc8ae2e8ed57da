package reconcile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/impact"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
)

// commits holds the commits of a repository, by ref.
type commits map[string]fs.FS

func (c commits) Fetch(_ context.Context, ref string) (render.Input, error) {
	return render.Input{Revision: ref, Files: c[ref]}, nil
}

// TestUpgrades previews upgrades of real providers. The comments must explain everything to a reviewer who has never
// seen one.
func TestUpgrades(t *testing.T) {
	cases := map[string]struct {
		reason       string
		older, newer string
		activate     string
		says, never  []string
		unset        bool // conversions are unknown
	}{
		"HelmGainsNamespacedKinds": {
			reason: "A pattern * activates everything in the new version, and the old kind loses a field.",
			older:  "provider-helm-older", newer: "provider-helm", activate: "*",
			says: []string{
				"### ⛔ Blocked: breaks 1 schema, activates by a wildcard releases.helm.m.crossplane.io\n",
				"\n#### Becomes active: 1\n\nThis cannot be undone: ",
				"\n- `releases.helm.m.crossplane.io`\n  - `policy platform matches with \"*\" (policy.yaml:5)`\n",
				"\n- `releases.helm.crossplane.io` in `provider/crds/helm.crossplane.io_releases.yaml:2`\n  - `spec.publishConnectionDetailsTo is removed (v1alpha1, v1beta1)`\n",
				"<summary>create 4 CRDs: <code>clusterproviderconfigs.helm.m.crossplane.io</code> and 3 more</summary>",
				"\n+ v1beta1 spec.forProvider.plainHTTP: {\"type\":\"boolean\"}\n",
			},
			never: []string{"openAPIV3Schema", "\"description\"", "#### Is deleted"},
		},
		"HelmWithANarrowPolicy": {
			reason: "A definition that no pattern matches stays inactive.",
			older:  "provider-helm-older", newer: "provider-helm", activate: "releases.helm.crossplane.io",
			says:  []string{"### ⛔ Blocked: breaks 1 schema\n", "Definitions after the merge: 1 active, 1 inactive."},
			never: []string{"Becomes active", "create CRD `releases."},
		},
		"KubernetesBreaksNothing": {
			reason: "A usual upgrade is safe.",
			older:  "provider-kubernetes-v1.0.0", newer: "provider-kubernetes", activate: "*",
			says: []string{
				"### ✅ Safe: changes 4 objects; no schema breaks\n",
				"Definitions after the merge: 4 active, 0 inactive.",
				"\n1 definition differs only in descriptions or in what generators write.\n",
				"<summary>update 3 CRDs: <code>clusterproviderconfigs.kubernetes.m.crossplane.io</code> and 2 more, all in the same way</summary>",
			},
			never: []string{"Schemas that break", "Becomes active", "Memory of an API server", "Held", "Findings"},
		},
		"KubernetesWithoutConversion": {
			reason: "Only the cluster knows the service of a webhook, but the schemas can still be compared.",
			older:  "provider-kubernetes-v1.0.0", newer: "provider-kubernetes", activate: "objects.kubernetes.crossplane.io", unset: true,
			says: []string{
				"### 👀 Look: keeps active without a policy objects.kubernetes.m.crossplane.io and 2 more definitions; no schema breaks\n",
				"**Safe-start is new in `provider-kubernetes`:** from now on",
				"#### Older findings: 1\n\nThe target has 1 warning already.",
			},
			never: []string{"cannot be rendered", "adds 1 warning"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := commits{}
			for ref, archive := range map[string]string{"older": tc.older, "newer": tc.newer} {
				files := fixtures.Below("provider", fixtures.Corpus(t, archive))
				files["policy.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\n" +
					"metadata: {name: platform}\nspec:\n  activate: [\"" + tc.activate + "\"]\n")}
				of[ref] = files
			}
			// Without a cluster, the service of the provider's webhook is unknown.
			r := Reconciler{Source: of, Sync: inventory.Sync{Name: "platform"}}
			if !tc.unset {
				r.Options.Conversion.Strategy = render.ConversionNone
			}
			made, err := r.Preview(t.Context(), Pull{Base: "older", Head: "newer"})
			if err != nil {
				t.Fatal(err)
			}
			output := report.Comment(made, 65_536)
			for _, want := range tc.says {
				if !strings.Contains(output, want) {
					t.Errorf("%s\nthe comment does not say %q", tc.reason, want)
				}
			}
			for _, never := range tc.never {
				if strings.Contains(output, never) {
					t.Errorf("%s\nthe comment says %q", tc.reason, never)
				}
			}
			if len(output) > 8_000 {
				t.Errorf("no person reads %d bytes", len(output))
			}
			if n := fixtures.VisibleLines(output); n > 25 {
				t.Errorf("no person reads %d lines", n)
			}
			if t.Failed() {
				t.Log(output)
			}
		})
	}
}

// images holds commits that name a package by its version, and the registry's responses.
type images struct {
	commits
	versions map[string][]byte // YAML streams
}

func (i images) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := i.commits.Fetch(ctx, ref)
	if err != nil {
		return in, err
	}
	in.Packages = []packages.Image{}
	docs, err := render.Read(in, render.Options{})
	if err != nil {
		return in, err
	}
	for _, request := range docs.With(in, render.Options{}).Missing() {
		stream := i.versions[request.Version]
		in.Packages = append(in.Packages, packages.Image{
			Request: request, Version: request.Version, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(stream)),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(stream)), nil },
		})
	}
	return in, err
}

// streamOf returns the YAML stream of a package, as in its image.
func streamOf(files fstest.MapFS) []byte {
	documents := [][]byte{files["crossplane.yaml"].Data}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Dir(name) == "crds" {
			documents = append(documents, files[name].Data)
		}
	}
	return bytes.Join(documents, []byte("\n---\n"))
}

// trusting trusts every release, so that the verdict is about schemas.
var trusting = guard.Guarding{Trust: []impact.Trust{{Kind: "Provider", Bump: impact.Major}, {Kind: "Configuration", Bump: impact.Major}}}

// TestUpgradesBehindOneLine previews the same upgrades with the packages in the tree, and with one line that names an image. The
// verdict must be the same.
func TestUpgradesBehindOneLine(t *testing.T) {
	cases := map[string]struct {
		older, newer, activate string
		headline               string
		limit                  int
	}{
		"Helm":           {"provider-helm-older", "provider-helm", "*", "⛔ Blocked: breaks 1 schema, activates by a wildcard releases.helm.m.crossplane.io, installs it v1.0.0 → v2.0.0\n", 6_000},
		"HelmNarrow":     {"provider-helm-older", "provider-helm", "releases.helm.crossplane.io", "⛔ Blocked: breaks 1 schema, installs it v1.0.0 → v2.0.0\n", 6_000},
		"HelmNowhere":    {"provider-helm-older", "provider-helm", "none.example.org", "⛔ Blocked: breaks 1 schema, keeps active without a policy releases.helm.crossplane.io, installs it v1.0.0 → v2.0.0\n", 6_000},
		"Kubernetes":     {"provider-kubernetes-v1.0.0", "provider-kubernetes", "*", "✅ Safe: installs it v1.0.0 → v2.0.0; no schema breaks\n", 6_000},
		"KubernetesBack": {"provider-kubernetes", "provider-kubernetes-v1.0.0", "*", "⛔ Blocked: breaks 3 schemas, installs it v1.0.0 → v2.0.0\n", 8_000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := &fstest.MapFile{Data: []byte("apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\n" +
				"metadata: {name: platform}\nspec:\n  activate: [\"" + tc.activate + "\"]\n")}
			tree, named, beside := commits{}, images{commits{}, map[string][]byte{}}, commits{}
			for ref, archive := range map[string]string{"v1.0.0": tc.older, "v2.0.0": tc.newer} {
				files := fixtures.Corpus(t, archive)
				inTree := fixtures.Below("provider", files)
				inTree["policy.yaml"] = policy
				tree[ref], named.versions[ref] = inTree, streamOf(files)
				copied := maps.Clone(inTree)
				of, _, _ := strings.Cut(tc.newer, "-v")
				copied["provider.yaml"] = &fstest.MapFile{Data: []byte(
					"apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec:\n  package: registry.example.org/acme/" + of + ":" + ref + "\n")}
				beside[ref] = copied
				named.commits[ref] = fstest.MapFS{"policy.yaml": policy, "provider.yaml": &fstest.MapFile{Data: []byte(
					"apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: it}\nspec:\n  package: registry.example.org/acme/it:" + ref + "\n")}}
			}
			preview := func(source Source) report.Report {
				r := Reconciler{Source: source, Sync: inventory.Sync{Name: "platform"}, Guarding: trusting, Options: render.Options{
					Owner: render.OwnerCrossplane, Conversion: render.Conversion{Strategy: render.ConversionNone},
				}}
				made, err := r.Preview(t.Context(), Pull{Base: "v1.0.0", Head: "v2.0.0"})
				if err != nil {
					t.Fatal(err)
				}
				return made
			}
			a, b := preview(tree), preview(named)
			judged := func(r report.Report) (lines []string) {
				for _, s := range r.Breaking() {
					for _, change := range s.Breaks {
						lines = append(lines, s.ID.Name+" "+change.String())
					}
				}
				for _, o := range r.Preview.Opens {
					lines = append(lines, o.Name+" becomes active")
				}
				slices.Sort(lines)
				return append(lines, r.Preview.Memory.String())
			}
			if diff := cmp.Diff(judged(a), judged(b)); diff != "" {
				t.Errorf("behind one line it is judged otherwise (-tree +line):\n%s", diff)
			}
			c := preview(beside)
			if diff := cmp.Diff(judged(a), judged(c)); diff != "" {
				t.Errorf("a copy beside a Provider whose image cannot be read is judged otherwise (-tree +beside):\n%s\n%s", diff, report.Comment(c, 65_536))
			}
			if a.Judgement.Word != c.Judgement.Word {
				t.Errorf("beside its copy it is %s, want %s", c.Judgement.Word, a.Judgement.Word)
			}
			output := report.Comment(b, 65_536)
			if !strings.Contains(output, "### "+tc.headline) {
				t.Errorf("the headline is not %q", tc.headline)
			}
			for _, s := range b.Breaking() {
				if s.Origin == nil || s.Origin.String() != "provider.yaml:5" {
					t.Errorf("%s breaks at %v, and a reviewer sees provider.yaml:5", s.ID.Name, s.Origin)
				}
			}
			if len(output) > tc.limit {
				t.Errorf("no person reads %d bytes", len(output))
			}
			if t.Failed() {
				t.Log(output)
			}
		})
	}
}

// counting is a cluster in which one object of every kind exists.
type counting struct{ Observer }

func (counting) Answer(_ context.Context, questions []question.Any) (question.Answers, error) {
	all := question.Answers{}
	for _, q := range questions {
		switch q.(type) {
		case question.Of[question.Counted]:
			all[q] = question.Counted{Count: 1}
		case question.Fits:
			all[q] = question.Misfits{Count: 1}
		case question.Present:
			all[q] = true
		default:
			all[q] = q.Nothing()
		}
	}
	return all, nil
}

// A breaking change counts only if its kind may have objects.
func TestBreaksWhatIsServed(t *testing.T) {
	schema := func(fields string) string {
		return "    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + fields + "}}}}}\n"
	}
	xrd := func(fields string) string {
		return "apiVersion: apiextensions.crossplane.io/v2\nkind: CompositeResourceDefinition\nmetadata: {name: apps.example.org}\nspec:\n" +
			"  group: example.org\n  names: {kind: App, plural: apps}\n  versions:\n  - name: v1\n    served: true\n    referenceable: true\n" + schema(fields)
	}
	mrd := func(fields string) string {
		return "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceDefinition\nmetadata: {name: boats.example.org}\nspec:\n" +
			"  group: example.org\n  names: {kind: Boat, plural: boats}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n" + schema(fields)
	}
	policy := func(pattern string) string {
		return "---\napiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: team}\nspec:\n  activate: [\"" + pattern + "\"]\n"
	}
	const more, less = "size: {type: string}, name: {type: string}", "name: {type: string}"
	cases := map[string]struct {
		reason     string
		base, head string
		live       bool
		want       string
	}{
		"XRD":      {"Every team may have objects of an XRD.", xrd(more), xrd(less), false, "Blocked: breaks 1 schema; 1 object"},
		"Active":   {"An active definition has a CRD.", mrd(more) + policy("b*"), mrd(less) + policy("b*"), false, "Blocked: breaks 1 schema; 1 active, 0 inactive"},
		"Inactive": {"An inactive definition has no CRD.", mrd(more) + policy("x*"), mrd(less) + policy("x*"), false, "Safe: changes 1 object, 1 inactive one breaks; 0 active, 1 inactive"},
		"Retained": {
			"A definition that no policy names any more stays active.", mrd(more) + policy("b*"), mrd(less) + policy("x*"), false,
			"Blocked: breaks 1 schema, adds x* to policy team, adds 1 warning, keeps active without a policy boats.example.org; 0 active, 0 inactive, 1 kept",
		},
		"Opens": {"The definition is activated by the change, so it has no objects yet.", mrd(more) + policy("x*"), mrd(less) + policy("b*"), false, "Look: activates by a wildcard boats.example.org, adds b* to policy team, 1 inactive one breaks; 1 active (+1), 0 inactive"},
		"OpensWhatIsThere": {
			"Another live policy activates the definition already.", mrd(more) + policy("x*"), mrd(less) + policy("b*"), true,
			"Blocked: holds 1 object back, breaks 1 schema, activates by a wildcard boats.example.org, adds b* to policy team; 1 active (+1), 0 inactive",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := commits{"base": fstest.MapFS{"a.yaml": {Data: []byte(tc.base)}}, "head": fstest.MapFS{"a.yaml": {Data: []byte(tc.head)}}}
			r := Reconciler{Source: of, Sync: inventory.Sync{Name: "platform"}, Options: render.Options{Owner: render.OwnerCrossplane}}
			if tc.live {
				r.Observer = counting{}
			}
			made, err := r.Preview(t.Context(), Pull{Base: "base", Head: "head"})
			if err != nil {
				t.Fatal(err)
			}
			if got := made.Verdict.Activation.Description; got != tc.want {
				t.Errorf("%s\nthe status is %q, want %q", tc.reason, got, tc.want)
			}
			if output := report.Comment(made, 65_536); tc.live && !strings.Contains(output, "### ⛔ Blocked: holds 1 object back, breaks 1 schema, activates by a wildcard") {
				t.Errorf("%s\n%s", tc.reason, output)
			}
		})
	}
}
