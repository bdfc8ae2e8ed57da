package activation_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// aPolicy returns a policy whose patterns are on line 6 and the following lines.
func aPolicy(name string, globs ...string) catalogue.Policy {
	p := catalogue.Policy{Name: name, Origin: manifest.Origin{Path: name + ".yaml", Line: 1}}
	for i, g := range globs {
		p.Patterns = append(p.Patterns, catalogue.Pattern{Glob: g, Origin: manifest.Origin{Path: name + ".yaml", Line: 6 + i}})
	}
	return p
}

func paused(p catalogue.Policy) catalogue.Policy {
	p.Paused = true
	return p
}

// define returns the definition of a namespaced kind, as in "Bucket buckets s3.aws.m.upbound.io".
func define(kind, plural, group string) *catalogue.Definition {
	name := plural + "." + group
	return &catalogue.Definition{
		Name: name, Group: group, Kind: kind, Plural: plural, FromCRD: true,
		Document: &manifest.Document{Origin: manifest.Origin{Path: name + ".yaml", Line: 1}},
	}
}

func named(name string) *catalogue.Definition {
	return &catalogue.Definition{Name: name, Document: &manifest.Document{}}
}

func TestPatternMatches(t *testing.T) {
	cases := []struct {
		pattern, name string
		want          bool
		reason        string
	}{
		{"*", "buckets.s3.aws.m.upbound.io", true, "a star matches any run without a slash, dots included"},
		{"**", "buckets.s3.aws.m.upbound.io", true, "two are as one"},
		{"*.aws.crossplane.io", "rds.instance.aws.crossplane.io", true, "a star crosses dots"},
		{"*.upbound.io", "buckets.s3.aws.m.upbound.io", true, "so a legacy pattern matches too much"},
		{"*.aws.upbound.io", "buckets.s3.aws.m.upbound.io", false, ".m. breaks the suffix"},
		{"bucket.*", "bucket.s3", true, "a prefix"},
		{"*aws*", "x.aws.y", true, "an infix"},
		{"*bucket*.aws.*", "my-buckets.s3.aws.io", true, "several stars"},
		{"bucket?.aws.io", "buckets.aws.io", true, "one character"},
		{"bucket?.aws.io", "bucket.aws.io", false, "exactly one"},
		{"bucket[0-9].aws.io", "bucket7.aws.io", true, "a class"},
		{"[^a]*", "buckets.s3", true, "a negated class"},
		{"[!a]*", "buckets.s3", false, "not negated by an exclamation mark"},
		{"[!a]*", "a.s3", true, "but a class of two"},
		{`bucket\*.aws.io`, "bucket*.aws.io", true, "a backslash takes a star literally"},
		{`bucket\*.aws.io`, "buckets.aws.io", false, "and only so"},
		{`\buckets.s3`, "buckets.s3", true, "a backslash before anything"},
		{"!buckets.s3", "buckets.s3", false, "no negation"},
		{"{a,b}.s3", "a.s3", false, "no alternatives"},
		{"BUCKETS.*", "buckets.s3", false, "case counts"},
		{"[", "buckets.s3", false, "malformed"},
		{"[a", "a", false, "malformed"},
		{"a*[", "b", false, "malformed, which filepath.Match does not notice here"},
		{"a*[", "ab", false, "malformed"},
		{"", "buckets.s3", false, "nothing matches the empty name only"},
		{" *.s3 ", "buckets.s3", false, "spaces count"},
		{"a]b", "a]b", true, "a closing bracket alone is itself"},
		{"*/*", "a.b", false, "there is no slash in a name"},
	}
	for _, tc := range cases {
		got := decide(tc.pattern, tc.name)
		if got != tc.want {
			t.Errorf("%s: pattern %q, name %q: want %t, got %t", tc.reason, tc.pattern, tc.name, tc.want, got)
		}
		if oracle, _ := filepath.Match(tc.pattern, tc.name); oracle != tc.want {
			t.Errorf("pattern %q, name %q: filepath.Match says %t", tc.pattern, tc.name, oracle)
		}
	}
}

func decide(pattern, name string) bool {
	decisions, _ := activation.Decide(catalogue.Catalogue{
		Definitions: []*catalogue.Definition{named(name)},
		Policies:    []catalogue.Policy{aPolicy("p", pattern)},
	})
	return decisions[0].Active
}

// FuzzPattern checks that a pattern matches exactly what it matches in Crossplane, that a matching pattern has no finding, and that
// a malformed one matches nothing.
func FuzzPattern(f *testing.F) {
	for _, p := range []string{"*", "a*[", "[", "[a-", "[]a]", `\`, `a\`, "[^a]*", "*.aws.m.upbound.io", "?", "buckets.s3", "[a-b-c]", "*]*["} {
		f.Add(p, "buckets.s3.aws.m.upbound.io")
		f.Add(p, "b")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		decisions, found := activation.Decide(catalogue.Catalogue{
			Definitions: []*catalogue.Definition{named(name)},
			Policies:    []catalogue.Policy{aPolicy("p", pattern)},
		})
		want, _ := filepath.Match(pattern, name)
		if decisions[0].Active != want {
			t.Errorf("pattern %q, name %q: filepath.Match says %t", pattern, name, want)
		}
		if want != (len(found) == 0) {
			t.Errorf("pattern %q, name %q matches: %t, but %v", pattern, name, want, found)
		}
	})
}

func TestReasons(t *testing.T) {
	nop := &catalogue.Package{Name: "provider-nop", Kind: "Provider", Origin: manifest.Origin{Path: "nop/crossplane.yaml", Line: 1}}
	at := func(path string, line int) manifest.Origin { return manifest.Origin{Path: path, Line: line} }

	cases := map[string]struct {
		reason     string
		definition catalogue.Definition
		policies   []catalogue.Policy
		want       []activation.Activator
	}{
		"Nothing": {
			reason:     "A definition without an activator is inactive.",
			definition: catalogue.Definition{Name: "a.b"},
		},
		"Inactive": {
			reason:     "A policy activates a definition even if its MRD has state Inactive.",
			definition: catalogue.Definition{Name: "a.b", State: catalogue.Inactive},
			policies:   []catalogue.Policy{aPolicy("p", "*")},
			want:       []activation.Activator{{Cause: activation.Matched, Policy: "p", Pattern: "*", Origin: at("p.yaml", 6)}},
		},
		"Declared": {
			reason:     "The state of a native MRD activates it.",
			definition: catalogue.Definition{Name: "a.b", State: catalogue.Active},
			want:       []activation.Activator{{Cause: activation.Declared, Origin: at("a.b.yaml", 3)}},
		},
		"DeclaredInPackage": {
			reason:     "In a package without safe-start, a native MRD is active only because of its own state.",
			definition: catalogue.Definition{Name: "a.b", State: catalogue.Active, Package: nop},
			want:       []activation.Activator{{Cause: activation.Declared, Origin: at("a.b.yaml", 3)}},
		},
		"NoSafeStart": {
			reason:     "Without safe-start, the package activates its definitions.",
			definition: catalogue.Definition{Name: "a.b", State: catalogue.Active, FromCRD: true, Package: nop},
			want:       []activation.Activator{{Cause: activation.NoSafeStart, Package: "provider-nop", Origin: at("nop/crossplane.yaml", 1)}},
		},
		"Paused": {
			reason:     "A paused policy activates nothing.",
			definition: catalogue.Definition{Name: "a.b"},
			policies:   []catalogue.Policy{paused(aPolicy("p", "*"))},
		},
		"PausedDefinition": {
			reason:     "A paused definition is activated, too.",
			definition: catalogue.Definition{Name: "a.b", Paused: true},
			policies:   []catalogue.Policy{aPolicy("p", "a.b")},
			want:       []activation.Activator{{Cause: activation.Matched, Policy: "p", Pattern: "a.b", Origin: at("p.yaml", 6)}},
		},
		"All": {
			reason:     "All activators are listed: first the definition's own, then policies by name with their patterns as written.",
			definition: catalogue.Definition{Name: "a.b", State: catalogue.Active},
			policies:   []catalogue.Policy{aPolicy("p", "*.b", "x", "a.b"), aPolicy("q", "a.b", "a.*")},
			want: []activation.Activator{
				{Cause: activation.Declared, Origin: at("a.b.yaml", 3)},
				{Cause: activation.Matched, Policy: "p", Pattern: "*.b", Origin: at("p.yaml", 6)},
				{Cause: activation.Matched, Policy: "p", Pattern: "a.b", Origin: at("p.yaml", 8)},
				{Cause: activation.Matched, Policy: "q", Pattern: "a.b", Origin: at("q.yaml", 6)},
				{Cause: activation.Matched, Policy: "q", Pattern: "a.*", Origin: at("q.yaml", 7)},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := tc.definition
			d.Document = &manifest.Document{Origin: at("a.b.yaml", 3)}
			got, _ := activation.Decide(catalogue.Catalogue{Definitions: []*catalogue.Definition{&d}, Policies: tc.policies})
			if got[0].Active != (len(tc.want) > 0) {
				t.Errorf("%s: active: %t", tc.reason, got[0].Active)
			}
			if diff := cmp.Diff(tc.want, got[0].Reasons); diff != "" {
				t.Errorf("%s\nreasons (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	definitions := []*catalogue.Definition{
		define("Bucket", "buckets", "s3.aws.m.upbound.io"),
		define("Bucket", "buckets", "s3.aws.upbound.io"),
		define("Policy", "policies", "iam.aws.m.upbound.io"),
		define("Release", "releases", "helm.m.crossplane.io"),
		define("Instance", "instances", "rds.gcp.upbound.io"),
	}
	nop := &catalogue.Package{Name: "provider-nop", Origin: manifest.Origin{Path: "nop/crossplane.yaml", Line: 1}}
	ofNop := func(name string, paused bool) *catalogue.Definition {
		return &catalogue.Definition{
			Name: name, Group: "nop.io", State: catalogue.Active, FromCRD: true, Package: nop, Paused: paused,
			Document: &manifest.Document{Origin: manifest.Origin{Path: name + ".yaml", Line: 1}},
		}
	}
	provider := manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pkg.crossplane.io/v1", "kind": "Provider",
		"metadata": map[string]any{"name": "upbound-provider-aws-ec2"},
		"spec":     map[string]any{"package": "xpkg.upbound.io/upbound/provider-aws-ec2:v2.6.0"},
	}}}

	type finding struct {
		At, Rule string
		Severity manifest.Severity
		Fix      string
	}
	const pluralBecause = ": a definition is named by the plural"
	const groupBecause = ": a pattern matches the whole of <plural>.<group>, and this is a group"

	cases := map[string]struct {
		reason string
		in     catalogue.Catalogue
		want   []finding

		messages []string // messages of the findings; nil if they are not compared
	}{
		"AllWell": {
			reason: "A pattern that works as expected has no finding.",
			in:     catalogue.Catalogue{Definitions: definitions, Policies: []catalogue.Policy{aPolicy("p", "buckets.s3.aws.m.upbound.io", "*.helm.m.crossplane.io")}},
		},
		"Malformed": {
			reason: "Crossplane does not report a malformed pattern, and the policy is Healthy.",
			in:     catalogue.Catalogue{Definitions: definitions, Policies: []catalogue.Policy{aPolicy("p", "*", "a*[")}},
			want: []finding{
				{"p.yaml:7", "pattern-malformed", manifest.Warning, `close the "[", give the class a member, and let a character follow the "\"`},
			},
		},
		"Singular": {
			reason: "A singular is the most common mistake (crossplane/docs #982), with and without wildcards.",
			in:     catalogue.Catalogue{Definitions: definitions, Policies: []catalogue.Policy{aPolicy("p", "bucket.s3.aws.m.upbound.io", "policy.*.aws.m.upbound.io", "Bucket.s3.aws.upbound.io")}},
			want: []finding{
				{"p.yaml:6", "pattern-singular", manifest.Warning, `write "buckets.s3.aws.m.upbound.io"` + pluralBecause},
				{"p.yaml:7", "pattern-singular", manifest.Warning, `write "policies.*.aws.m.upbound.io"` + pluralBecause},
				{"p.yaml:8", "pattern-singular", manifest.Warning, `write "buckets.s3.aws.upbound.io"` + pluralBecause},
			},
		},
		"Nothing": {
			reason: "Each finding suggests the most likely correction.",
			in: catalogue.Catalogue{Definitions: definitions, Policies: []catalogue.Policy{aPolicy("p",
				"policies.iam.aws.upbound.io", "*.helm.crossplane.io", "instances.rds.gcp.m.upbound.io",
				"s3.aws.m.upbound.io", "Buckets.S3.aws.upbound.io", " *.upbound.io", "[!a]*.rds.gcp.upbound.io",
				"bukets.s3.aws.m.upbound.io", "*.iam.aw.m.upbound.io", "machines.example.org",
			)}},
			want: []finding{
				{"p.yaml:6", "pattern-matches-nothing", manifest.Warning, `write "policies.iam.aws.m.upbound.io": the namespaced kinds are in groups with .m.`},
				{"p.yaml:7", "pattern-matches-nothing", manifest.Warning, `write "*.helm.m.crossplane.io": the namespaced kinds are in groups with .m.`},
				{"p.yaml:8", "pattern-matches-nothing", manifest.Warning, `write "instances.rds.gcp.upbound.io": the commit has it only in the group without .m.`},
				{"p.yaml:9", "pattern-matches-nothing", manifest.Warning, `write "*.s3.aws.m.upbound.io"` + groupBecause},
				{"p.yaml:10", "pattern-matches-nothing", manifest.Warning, `write "buckets.s3.aws.upbound.io": names are in lower case`},
				{"p.yaml:11", "pattern-matches-nothing", manifest.Warning, `write "*.upbound.io": spaces count`},
				{"p.yaml:12", "pattern-matches-nothing", manifest.Warning, `write "[^a]*.rds.gcp.upbound.io": a class is negated by ^`},
				{"p.yaml:13", "pattern-matches-nothing", manifest.Warning, `did you mean "buckets.s3.aws.m.upbound.io"?`},
				{"p.yaml:14", "pattern-matches-nothing", manifest.Warning, `did you mean "*.iam.aws.m.upbound.io"?`},
				{"p.yaml:15", "pattern-matches-nothing", manifest.Warning, `take it out, or correct it: a pattern matches the whole of <plural>.<group>`},
			},
		},
		"Shadowed": {
			reason: "One note covers all patterns of a policy that another pattern makes superfluous, in any order; of equal patterns the first stays.",
			in: catalogue.Catalogue{Definitions: definitions, Policies: []catalogue.Policy{
				aPolicy("p", "buckets.s3.aws.m.upbound.io", "policies.iam.aws.m.upbound.io", "*.m.upbound.io"),
				aPolicy("q", "*.aws.m.upbound.io", "releases.helm.m.crossplane.io", "releases.helm.m.crossplane.io"),
			}},
			want: []finding{
				{"p.yaml:6", "pattern-shadowed", manifest.Note, "take out what is not needed, or narrow the wider pattern"},
				{"q.yaml:6", "pattern-shadowed", manifest.Note, "take out what is not needed, or narrow the wider pattern"},
				{"q.yaml:8", "pattern-shadowed", manifest.Note, "take out what is not needed"},
			},
			messages: []string{
				`2 patterns of policy p, "buckets.s3.aws.m.upbound.io" first, are not needed: they are covered by "*.m.upbound.io" of policy p (p.yaml:8)`,
				`pattern "*.aws.m.upbound.io" of policy q is not needed: it is covered by "*.m.upbound.io" of policy p (p.yaml:8)`,
				`pattern "releases.helm.m.crossplane.io" of policy q is not needed: it is covered by "releases.helm.m.crossplane.io" of policy q (q.yaml:7)`,
			},
		},
		"NotShadowed": {
			reason: "Two patterns with the same matches today may match different definitions tomorrow.",
			in:     catalogue.Catalogue{Definitions: definitions, Policies: []catalogue.Policy{aPolicy("p", "buckets.s3.*", "bucket?.s3.*", "[a-c]*.s3.*")}},
		},
		"PausedPolicy": {
			reason: "A paused policy has no effect, so its patterns are not checked.",
			in:     catalogue.Catalogue{Definitions: definitions, Policies: []catalogue.Policy{paused(aPolicy("p", "nothing", "["))}},
			want:   []finding{{"p.yaml:1", "policy-paused", manifest.Note, "take out the annotation crossplane.io/paused"}},
		},
		"Unrestricted": {
			reason: "Without safe-start, no policy can restrict a provider, so a policy that seems to try gets a warning.",
			in: catalogue.Catalogue{
				Definitions: []*catalogue.Definition{ofNop("a.nop.io", false), ofNop("b.nop.io", false)},
				Policies:    []catalogue.Policy{aPolicy("p", "a.nop.io")},
			},
			want: []finding{{"nop/crossplane.yaml:1", "policy-cannot-restrict", manifest.Warning, "use a version of the provider that declares the capability SafeStart"}},
		},
		"UnrestrictedAnyway": {
			reason: "Without safe-start, no policy can restrict a provider, and without such a policy a note is enough.",
			in: catalogue.Catalogue{
				Definitions: []*catalogue.Definition{ofNop("a.nop.io", false), ofNop("b.nop.io", true)},
				Policies:    []catalogue.Policy{aPolicy("p", "*")},
			},
			want: []finding{
				{"b.nop.io.yaml:1", "definition-paused", manifest.Note, "take out the annotation crossplane.io/paused"},
				{"nop/crossplane.yaml:1", "policy-cannot-restrict", manifest.Note, "use a version of the provider that declares the capability SafeStart"},
			},
		},
		"Partial": {
			reason: "If the commit declares no definitions, only a malformed pattern is certainly wrong.",
			in:     catalogue.Catalogue{Policies: []catalogue.Policy{aPolicy("p", "[", "a.b", "*.b")}},
			want: []finding{
				{"p.yaml:6", "pattern-malformed", manifest.Warning, `close the "[", give the class a member, and let a character follow the "\"`},
				{"p.yaml:7", "pattern-matches-nothing", manifest.Note, ""},
			},
		},
		"AbsentPackage": {
			reason: "A pattern may match an installed package that is not in the commit, unless its group is in the commit.",
			in: catalogue.Catalogue{
				Definitions: definitions, Objects: []manifest.Object{provider},
				Policies: []catalogue.Policy{aPolicy("p", "instances.ec2.aws.m.upbound.io", "bucket.s3.aws.m.upbound.io")},
			},
			want: []finding{
				{"p.yaml:6", "pattern-matches-nothing", manifest.Note, ""},
				{"p.yaml:7", "pattern-singular", manifest.Warning, `write "buckets.s3.aws.m.upbound.io"` + pluralBecause},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, found := activation.Decide(tc.in)
			var got []finding
			var messages []string
			for _, f := range found {
				messages = append(messages, f.Message)
				got = append(got, finding{f.Origin.String(), f.Rule, f.Severity, f.Fix})
				if f.Message == "" {
					t.Errorf("%s: no message", f.Origin)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nfindings (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.messages, messages); diff != "" && tc.messages != nil {
				t.Errorf("%s\nmessages (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	var c catalogue.Catalogue
	for i := range 2043 {
		c.Definitions = append(c.Definitions, define("Thing", fmt.Sprintf("things%04d", i), fmt.Sprintf("service%03d.aws.m.upbound.io", i%177)))
	}
	var globs []string
	for i := range 40 {
		globs = append(globs, c.Definitions[i*20].Name, fmt.Sprintf("*.service%03d.aws.m.upbound.io", i+50))
	}
	c.Policies = []catalogue.Policy{aPolicy("p", globs...)}
	for b.Loop() {
		activation.Decide(c)
	}
}
