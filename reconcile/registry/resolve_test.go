package registry_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/baseline"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-cmp/cmp"
)

// dependsOn returns the dependencies in a package's metadata, as pairs of a repository and a constraint.
func dependsOn(r *fixtures.Registry, kind string, pairs ...string) string {
	text := "  dependsOn:\n"
	for i := 0; i < len(pairs); i += 2 {
		text += "  - {" + kind + ": " + r.Host + "/" + pairs[i] + ", version: \"" + pairs[i+1] + "\"}\n"
	}
	return text
}

// sea returns a registry with several versions of a provider.
func sea(t *testing.T) *fixtures.Registry {
	t.Helper()
	r := start(t)
	for _, tag := range []string{"v1.0.0", "v1.4.0", "v1.10.0", "v2.0.0", "v2.1.0-rc.1", "v9", "latest"} {
		r.Push(t, "acme/provider-sea", tag, provider("provider-sea", "boats"), 0)
	}
	return r
}

func TestResolve(t *testing.T) {
	type result struct {
		Packages []string
		Rules    []string
	}
	cases := map[string]struct {
		reason string
		push   func(t *testing.T, r *fixtures.Registry)
		files  func(r *fixtures.Registry) []string
		want   result
	}{
		"Newest": {
			"Crossplane takes the newest release. A tag such as v9 is not a version, and a candidate is not a release.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v1.0.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", "")}
			},
			result{[]string{"Configuration config v1.0.0", "Provider provider-sea v2.0.0"}, nil},
		},
		"Through": {
			"Dependencies of dependencies are resolved.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "configuration", "acme/base", "=v1.0.0")), 0)
				r.Push(t, "acme/base", "v1.0.0", configuration("base", dependsOn(r, "provider", "acme/provider-sea", "<v1.5.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", "")}
			},
			result{[]string{"Configuration base v1.0.0", "Configuration config v1.0.0", "Provider provider-sea v1.4.0"}, nil},
		},
		"Skipped": {
			"skipDependencyResolution disables the resolution.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v1.0.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", "  skipDependencyResolution: true\n")}
			},
			result{[]string{"Configuration config v1.0.0"}, nil},
		},
		"Named": {
			"A version that the commit installs has priority over the newest one.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v1.0.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{
					installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", ""),
					installs("Provider", "acme-provider-sea", r.Host+"/acme/provider-sea:v1.4.0", ""),
				}
			},
			result{[]string{"Configuration config v1.0.0", "Provider provider-sea v1.4.0"}, nil},
		},
		"OtherName": {
			"An object with another name than Crossplane would choose may result in two objects for one source.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v1.0.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{
					installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", ""),
					installs("Provider", "the-sea", r.Host+"/acme/provider-sea:v1.4.0", ""),
				}
			},
			result{[]string{"Configuration config v1.0.0", "Provider provider-sea v1.4.0"}, []string{packages.RuleSource}},
		},
		"Twice": {
			"With two objects for one source, Crossplane resolves no dependencies.",
			func(*testing.T, *fixtures.Registry) {},
			func(r *fixtures.Registry) []string {
				return []string{
					installs("Provider", "a", r.Host+"/acme/provider-sea:v1.4.0", ""),
					installs("Provider", "b", r.Host+"/acme/provider-sea:v2.0.0", ""),
				}
			},
			result{[]string{"Provider provider-sea v1.4.0"}, []string{packages.RuleSource}},
		},
		"TooOld": {
			"Crossplane does not install a package whose dependency has an unsuitable version.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v2.0.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{
					installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", ""),
					installs("Provider", "acme-provider-sea", r.Host+"/acme/provider-sea:v1.4.0", ""),
				}
			},
			result{[]string{"Configuration config v1.0.0", "Provider provider-sea v1.4.0"}, []string{catalogue.RuleDependency}},
		},
		"ByChance": {
			"With two constraints, Crossplane uses the one that it reads first.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/old", "v1.0.0", configuration("old", dependsOn(r, "provider", "acme/provider-sea", "<v2.0.0")), 0)
				r.Push(t, "acme/new", "v1.0.0", configuration("new", dependsOn(r, "provider", "acme/provider-sea", ">=v1.0.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{
					installs("Configuration", "acme-old", r.Host+"/acme/old:v1.0.0", ""),
					installs("Configuration", "acme-new", r.Host+"/acme/new:v1.0.0", ""),
				}
			},
			result{[]string{"Configuration new v1.0.0", "Configuration old v1.0.0", "Provider provider-sea v1.10.0"}, []string{registry.RuleAmbiguous}},
		},
		"Conflict": {
			"No version satisfies both constraints.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/old", "v1.0.0", configuration("old", dependsOn(r, "provider", "acme/provider-sea", "<v2.0.0")), 0)
				r.Push(t, "acme/new", "v1.0.0", configuration("new", dependsOn(r, "provider", "acme/provider-sea", ">=v2.0.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{
					installs("Configuration", "acme-old", r.Host+"/acme/old:v1.0.0", ""),
					installs("Configuration", "acme-new", r.Host+"/acme/new:v1.0.0", ""),
				}
			},
			result{[]string{"Configuration new v1.0.0", "Configuration old v1.0.0"}, []string{packages.RuleUnread}},
		},
		"Circle": {
			"Crossplane installs no packages that depend on each other.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/a", "v1.0.0", configuration("a", dependsOn(r, "configuration", "acme/b", ">=v1.0.0")), 0)
				r.Push(t, "acme/b", "v1.0.0", configuration("b", dependsOn(r, "configuration", "acme/a", ">=v1.0.0")), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{installs("Configuration", "acme-a", r.Host+"/acme/a:v1.0.0", "")}
			},
			result{[]string{"Configuration a v1.0.0", "Configuration b v1.0.0"}, []string{packages.RuleCycle}},
		},
		"WrongKind": {
			"A Provider object that names a configuration never becomes healthy.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/config", "v1.0.0", configuration("config", "  {}\n"), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{installs("Provider", "config", r.Host+"/acme/config:v1.0.0", "")}
			},
			result{nil, []string{packages.RuleUnread}},
		},
		"Manual": {
			"A version that a user must activate is resolved, too.",
			func(*testing.T, *fixtures.Registry) {},
			func(r *fixtures.Registry) []string {
				return []string{installs("Provider", "sea", r.Host+"/acme/provider-sea:v1.4.0", "  revisionActivationPolicy: Manual\n")}
			},
			result{[]string{"Provider provider-sea v1.4.0"}, nil},
		},
		"Overlap": {
			"Two packages contain the same definition, and only one of them can own it.",
			func(t *testing.T, r *fixtures.Registry) {
				t.Helper()
				r.Push(t, "acme/provider-boats", "v1.0.0", provider("provider-boats", "boats"), 0)
			},
			func(r *fixtures.Registry) []string {
				return []string{
					installs("Provider", "sea", r.Host+"/acme/provider-sea:v1.4.0", ""),
					installs("Provider", "boats", r.Host+"/acme/provider-boats:v1.0.0", ""),
				}
			},
			result{[]string{"Provider provider-boats v1.0.0", "Provider provider-sea v1.4.0"}, []string{catalogue.RuleTwice}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := sea(t)
			tc.push(t, r)
			want := rendered(t, &registry.Resolver{Next: commit{files: tree(tc.files(r)...)}, Cache: t.TempDir()}, render.OwnerCrossplane)
			got := result{Rules: rules(want, manifest.Warning)}
			for _, p := range want.Packages {
				got.Packages = append(got.Packages, strings.Join([]string{p.Kind, p.Name, p.Version}, " "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nresolved (-want +got):\n%s\n%v", tc.reason, diff, want.Findings)
			}
		})
	}
}

// A policy or XRD in a configuration counts like one of the commit, and Crossplane installs it.
func TestConfigurationBringsPolicies(t *testing.T) {
	r := sea(t)
	config := configuration("config", dependsOn(r, "provider", "acme/provider-sea", "v1.4.0"))
	config["policy.yaml"] = configFile(strings.ReplaceAll(policyText, "team", "of-config"))
	r.Push(t, "acme/config", "v1.0.0", config, 0)
	files := tree(installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", ""))
	delete(files, "policy.yaml")
	want := rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()}, render.OwnerCrossplane)
	d := want.Definitions[0]
	if !d.Active || d.Reasons[0].Policy != "of-config" || !strings.HasPrefix(d.Reasons[0].Origin.Path, r.Host+"/acme/config:v1.0.0/package.yaml") {
		t.Errorf("%s is active %t because of %v", d.Name, d.Active, d.Reasons)
	}
	if len(want.Objects) != 1 || want.Objects[0].ID.Kind != "Configuration" {
		t.Errorf("Crossplane installs the rest itself, and %d objects remain to apply", len(want.Objects))
	}
	if got := d.Package.Installer.Name; got != "acme-config" {
		t.Errorf("what has the provider installed is the configuration, not %q", got)
	}
}

// A lock records the image of a version, so that the commit has the same result tomorrow.
func TestLock(t *testing.T) {
	r := sea(t)
	r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v1.0.0")), 0)
	files := tree(installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.0", ""))
	locked := rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()}, render.OwnerCrossplane)
	raw, err := packages.LockOf(locked.Packages, nil)
	if err != nil {
		t.Fatal(err)
	}
	files[packages.LockFile] = configFile(string(raw))

	r.Push(t, "acme/provider-sea", "v3.0.0", provider("provider-sea", "boats", "buoys"), 0)
	r.Push(t, "acme/config", "v1.0.0", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v3.0.0")), 0)
	want := rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()}, render.OwnerCrossplane)
	if diff := cmp.Diff(told(locked), told(want)); diff != "" || len(rules(want, manifest.Warning)) > 0 {
		t.Errorf("%v\n%s", rules(want, manifest.Note), diff)
	}
	if requests, _ := r.Asked(); strings.Contains(strings.Join(requests, " "), "tags/list") {
		t.Errorf("what is locked is not looked for: %q", requests)
	}
	want = rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir(), Tags: true}, render.OwnerCrossplane)
	if diff := cmp.Diff([]string{packages.RuleLock}, rules(want, manifest.Warning)); diff != "" || cmp.Diff(told(locked), told(want)) != "" {
		t.Errorf("a preview reports the tag that is another image now, and reads the locked one (-want +got):\n%s", diff)
	}

	files["package-0.yaml"] = configFile(installs("Configuration", "acme-config", r.Host+"/acme/config:v1.0.1", ""))
	r.Push(t, "acme/config", "v1.0.1", configuration("config", dependsOn(r, "provider", "acme/provider-sea", ">=v3.0.0")), 0)
	want = rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()}, render.OwnerCrossplane)
	if diff := cmp.Diff([]string{packages.RuleLock, packages.RuleLock}, rules(want, manifest.Warning)); diff != "" {
		t.Errorf("a lock that does not fit is said to (-want +got):\n%s", diff)
	}
}

// A version change in one line can break schemas. Crossplane installs the new version, so none of Headgate's steps shows the
// change.
func TestUpgradeBreaks(t *testing.T) {
	r := start(t)
	before, after := provider("provider-sea", "boats", "buoys"), provider("provider-sea", "boats", "buoys")
	for _, name := range []string{"crds/boats.yaml", "crds/buoys.yaml"} {
		before[name] = configFile(strings.Replace(string(before[name].Data), "type: object,", "type: object, properties: {spec: {type: object, properties: {size: {type: string}}}},", 1))
	}
	r.Push(t, "acme/provider-sea", "v1.0.0", before, 0)
	r.Push(t, "acme/provider-sea", "v1.1.0", after, 0)
	want := func(version string) render.Desired {
		files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:"+version, ""))
		return rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()}, render.OwnerCrossplane)
	}
	for to, breaks := range map[string][]string{"v1.0.0": nil, "v1.1.0": {"boats.sea.example.org v1 spec is removed"}} {
		head := want(to)
		seen, err := baseline.Baseline{Base: want("v1.0.0")}.Observe(t.Context(), head)
		if err != nil {
			t.Fatal(err)
		}
		p, err := draft.Compute(seen)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range p.Effects {
			if e.Kind != plan.Install || !e.Change.Serves {
				continue
			}
			for _, change := range e.Change.Schema().Breaking() {
				got = append(got, e.On.Name+" "+change.String())
			}
		}
		if diff := cmp.Diff(breaks, got); diff != "" {
			t.Errorf("to %s, of active definitions only (-want +got):\n%s", to, diff)
		}
	}
}

// TestUpgrades covers changes of packages other than the replacement of one version by another.
func TestUpgrades(t *testing.T) {
	r := start(t)
	broken := provider("provider-sea", "boats", "buoys")
	broken["crds/boats.yaml"] = configFile(strings.Replace(string(broken["crds/boats.yaml"].Data), "served: true", "served: maybe", 1))
	r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats", "buoys"), 0)
	r.Push(t, "acme/provider-sea", "v1.0.1", provider("provider-sea", "boats", "buoys"), 0)
	r.Push(t, "acme/provider-sea", "v2.0.0", provider("provider-sea", "buoys", "crews"), 0)
	r.Push(t, "acme/provider-sea", "v3.0.0", broken, 0)
	r.Push(t, "acme/provider-sea-boats", "v2.0.0", provider("provider-sea-boats", "boats"), 0)
	worse := provider("provider-sea-boats", "boats")
	worse["crds/boats.yaml"] = configFile(strings.Replace(string(worse["crds/boats.yaml"].Data), "Namespaced", "Cluster", 1))
	r.Push(t, "acme/provider-sea-boats", "v3.0.0", worse, 0)
	const one, two, function = "acme/provider-sea:", "acme/provider-sea-boats:", "acme/function-sea:v9.0.0"
	cases := map[string]struct {
		reason       string
		before, with []string
		want         []string
	}{
		"SameImage": {"Another tag of the same image changes nothing.", []string{one + "v1.0.0"}, []string{one + "v1.0.1"}, nil},
		"New":       {"A new package has no previous version to compare with.", nil, []string{one + "v1.0.0"}, nil},
		"Removed":   {"A package whose object is deleted is reported by a step, not here.", []string{one + "v1.0.0"}, nil, nil},
		"Drops": {
			"Active definitions that are removed are reported; new inactive ones are not.", []string{one + "v1.0.0"}, []string{one + "v2.0.0"},
			[]string{"provider-sea v1.0.0 v2.0.0", "keep boats true", "create crews false"},
		},
		"Splits": {
			"A definition that moved to another package is not removed.", []string{one + "v1.0.0"}, []string{one + "v2.0.0", two + "v2.0.0"},
			[]string{"provider-sea v1.0.0 v2.0.0", "create crews false"},
		},
		"Renamed": {
			"The definition moved to another package, which takes it over.", []string{one + "v1.0.0"}, []string{two + "v3.0.0"}, []string{"update boats true"},
		},
		"UnreadBefore": {
			"The previous version could not be read, so all its definitions look new.", []string{one + "v0.0.0"}, []string{one + "v1.0.0"}, []string{"provider-sea  v1.0.0 unknown"},
		},
		"UnreadAfter": {
			"The tag of the new version does not exist, so its effects are unknown.", []string{one + "v1.0.0"}, []string{one + "v9.0.0"}, []string{"provider-sea v1.0.0  unknown"},
		},
		"UnreadNew":      {"The definitions of the new package are unknown.", nil, []string{one + "v9.0.0"}, []string{"provider-sea   unknown"}},
		"UnreadBoth":     {"A package that is unreadable before and after does not block other changes.", []string{one + "v9.0.0"}, []string{one + "v9.0.0"}, nil},
		"UnreadFunction": {"A Function contains no definitions.", nil, []string{function}, nil},
		"UnreadMoves": {
			"The version changes, but neither version could be read.", []string{one + "v0.0.0"}, []string{one + "v9.0.0"}, []string{"provider-sea   unknown"},
		},
		"Malformed": {
			"An active definition that cannot be decoded cannot be compared.", []string{one + "v1.0.0"}, []string{one + "v3.0.0"},
			[]string{"provider-sea v1.0.0 v3.0.0 unknown"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			commitOf := func(packages []string) render.Desired {
				files := tree()
				for i, p := range packages {
					kind := "Provider"
					if p == function {
						kind = "Function"
					}
					files[fmt.Sprintf("package-%d.yaml", i)] = configFile(installs(kind, fmt.Sprint("p", i), r.Host+"/"+p, ""))
				}
				return rendered(t, &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir()}, render.OwnerCrossplane)
			}
			head := commitOf(tc.with)
			seen, err := baseline.Baseline{Base: commitOf(tc.before)}.Observe(t.Context(), head)
			if err != nil {
				t.Fatal(err)
			}
			p, err := draft.Compute(seen)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range p.Bumps {
				output := fmt.Sprintf("%s %s %s", path.Base(b.Source), b.From, b.To)
				if b.Unknown != "" {
					output += " unknown"
				}
				got = append(got, output)
			}
			for _, e := range p.Effects {
				if e.Kind == plan.Install {
					got = append(got, fmt.Sprintf("%s %s %t", e.Change.Action, strings.TrimSuffix(e.On.Name, ".sea.example.org"), e.Change.Serves))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s\n%v", tc.reason, diff, p.Notes)
			}
		})
	}
}

// A package that is installed under another name cannot be installed a second time.
func TestInstalledUnderAnotherName(t *testing.T) {
	r := sea(t)
	files := tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", ""))
	for revision, want := range map[string][]string{
		"provider-sea-d1e212fb9ee6": {registry.RuleMoved}, // another image
		"acme-sea-d1e212fb9ee6":     {packages.RuleSource, registry.RuleMoved},
	} {
		s := &registry.Resolver{Next: commit{files: files}, Cache: t.TempDir(), Installed: func(context.Context) ([]crossplane.Installed, error) {
			return []crossplane.Installed{{Source: r.Host + "/acme/provider-sea", Version: "v1.0.0", Revision: revision}}, nil
		}}
		if diff := cmp.Diff(want, rules(rendered(t, s, render.OwnerCrossplane), manifest.Warning)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", revision, diff)
		}
	}
}
