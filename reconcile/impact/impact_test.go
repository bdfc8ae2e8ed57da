package impact

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A version that is trusted by mistake is a program that nobody looked at.
func TestBump(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		from, to string
		want     Bump
	}{
		"Patch":      {"The last number is higher.", "v1.2.3", "v1.2.4", Patch},
		"Minor":      {"The second number is higher.", "v1.2.3", "v1.3.0", Minor},
		"Major":      {"The first number is higher.", "v1.2.3", "v2.0.0", Major},
		"MinorOf0":   {"A minor version of 0.x may break.", "v0.2.3", "v0.3.0", Major},
		"PatchOf0":   {"A patch of 0.x does not break.", "v0.2.3", "v0.2.4", Patch},
		"PatchOf00":  {"Every version of 0.0.x may break.", "v0.0.3", "v0.0.4", Major},
		"To1":        {"The first release may differ from 0.x in everything.", "v0.9.0", "v1.0.0", Major},
		"NoV":        {"The letter v is no part of the version.", "1.2.3", "v1.2.4", Patch},
		"Older":      {"An older program may not read what a newer one wrote.", "v1.2.4", "v1.2.3", Older},
		"Equal":      {"The tag was moved.", "v1.2.3", "v1.2.3", Other},
		"Build":      {"Builds of one version have no order.", "v1.2.3+a", "v1.2.3+b", Other},
		"Candidate":  {"A candidate is no release.", "v1.2.3", "v1.3.0-rc.1", Other},
		"Released":   {"The release follows its candidate.", "v1.3.0-rc.1", "v1.3.0", Patch},
		"Digest":     {"A digest is no version.", "v1.2.3", "sha256:abc", Other},
		"FromDigest": {"Nobody knows what ran before.", "sha256:abc", "v1.2.3", Other},
		"Unread":     {"Nobody knows what ran before.", "", "v1.2.3", Other},
		"Short":      {"A tag of two numbers moves.", "v1.2", "v1.3", Other},
		"Latest":     {"A name is no version.", "v1.2.3", "latest", Other},
	} {
		if got := BumpOf(tc.from, tc.to); got != tc.want {
			t.Errorf("%s: %s\nBumpOf(%q, %q) is %s, want %s", name, tc.reason, tc.from, tc.to, got, tc.want)
		}
	}
}

func TestTrusted(t *testing.T) {
	for name, tc := range map[string]struct {
		rules []Trust
		kind  string
		bump  Bump
		want  bool
	}{
		"Smaller":  {DefaultTrust(), "Provider", Patch, true},
		"Equal":    {DefaultTrust(), "Provider", Minor, true},
		"Larger":   {DefaultTrust(), "Provider", Major, false},
		"Other":    {[]Trust{{"Provider", Major}}, "Provider", Other, false},
		"Kind":     {[]Trust{{"Provider", Major}}, "Function", Patch, false},
		"Nobody":   {[]Trust{}, "Provider", Patch, false},
		"Function": {DefaultTrust(), "Function", Minor, false},
	} {
		if got := Trusted(tc.rules, tc.kind, tc.bump); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// A role that grants more and counts as one that lost something gives rights that nobody looked at.
func TestGrantsMore(t *testing.T) {
	rule := func(more ...any) map[string]any {
		all := map[string]any{"verbs": []any{"get", "list"}, "apiGroups": []any{""}, "resources": []any{"pods", "services"}}
		for i := 0; i < len(more); i += 2 {
			all[more[i].(string)] = more[i+1]
		}
		return all
	}
	role := func(rules ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"rules": rules}}
	}
	list := func(all ...any) []any { return all }
	for name, tc := range map[string]struct {
		reason        string
		before, after *unstructured.Unstructured
		want          bool
	}{
		"Same":         {"Nothing changes.", role(rule()), role(rule()), false},
		"LosesVerb":    {"It allows less.", role(rule()), role(rule("verbs", list("get"))), false},
		"GainsVerb":    {"It allows more.", role(rule()), role(rule("verbs", list("get", "list", "watch"))), true},
		"SwapsVerb":    {"It allows something else.", role(rule()), role(rule("verbs", list("watch"))), true},
		"LosesAll":     {"It allows nothing.", role(rule()), role(), false},
		"GainsRule":    {"It allows more.", role(rule()), role(rule(), rule("resources", list("secrets"))), true},
		"Splits":       {"Two rules allow what one did.", role(rule()), role(rule("verbs", list("get")), rule("verbs", list("list"))), false},
		"Wildcard":     {"A wildcard allowed everything.", role(rule("verbs", list("*"))), role(rule()), false},
		"GainsStar":    {"A wildcard allows everything.", role(rule()), role(rule("verbs", list("*"))), true},
		"GainsNames":   {"Names limit a rule.", role(rule()), role(rule("resourceNames", list("a"))), false},
		"LosesNames":   {"Names limited the rule.", role(rule("resourceNames", list("a"))), role(rule()), true},
		"EmptyNames":   {"An empty list limits nothing.", role(rule("resourceNames", list("a"))), role(rule("resourceNames", list())), true},
		"OtherName":    {"It allows another object.", role(rule("resourceNames", list("a"))), role(rule("resourceNames", list("b"))), true},
		"StarIsAName":  {"A name has no wildcards.", role(rule("resourceNames", list("*"))), role(rule("resourceNames", list("b"))), true},
		"OtherGroup":   {"It allows another API.", role(rule()), role(rule("apiGroups", list("apps"))), true},
		"GainsURL":     {"It allows a path.", role(rule()), role(rule("nonResourceURLs", list("/metrics"))), true},
		"UnknownField": {"Nobody knows what it allows.", role(rule()), role(rule("more", "x")), true},
		"NoMap":        {"It is malformed.", role(rule()), role("x"), true},
		"NoList":       {"It is malformed.", role(rule()), role(rule("verbs", "get")), true},
		"HadNoRules":   {"It allows more.", role(), role(rule()), true},
	} {
		if got := GrantsMore(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: %s\n%t, want %t", name, tc.reason, got, tc.want)
		}
	}
}

func TestReader(t *testing.T) {
	for key, want := range map[string]string{
		"team": "", "example.org/team": "", "app.kubernetes.io/name": "", "helm.sh/chart": "",
		"notcrossplane.io/paused": "", "crossplane.io/paused": "Crossplane", "meta.crossplane.io/a": "Crossplane",
		"kustomize.toolkit.fluxcd.io/prune": "Flux", "argocd.argoproj.io/hook": "Argo CD", "headgate.dev/a": "Headgate",
		"app.kubernetes.io/instance": "Kubernetes", "pod-security.kubernetes.io/enforce": "Kubernetes", "istio-injection": "Istio",
		"azure.workload.identity/use": "Azure", "": "", "/": "", ".": "",
	} {
		if got := Reader(key); got != want {
			t.Errorf("Reader(%q) is %q, want %q", key, got, want)
		}
	}
}

func TestPower(t *testing.T) {
	for of, want := range map[schema.GroupKind]Power{
		{Group: "kubernetes.m.crossplane.io", Kind: "Object"}:             Runs,
		{Group: "helm.crossplane.io", Kind: "Release"}:                    Runs,
		{Group: "tf.upbound.io", Kind: "Workspace"}:                       Runs,
		{Group: "helm.example.org", Kind: "Release"}:                      NoPower,
		{Group: "iam.aws.m.upbound.io", Kind: "User"}:                     Entitles,
		{Group: "s3.aws.m.upbound.io", Kind: "BucketPolicy"}:              Entitles,
		{Group: "storage.gcp.upbound.io", Kind: "BucketIAMMember"}:        Entitles,
		{Group: "authorization.azure.upbound.io", Kind: "RoleAssignment"}: Entitles,
		{Group: "s3.aws.m.upbound.io", Kind: "Bucket"}:                    NoPower,
		{Group: "ec2.aws.m.upbound.io", Kind: "KeyPair"}:                  NoPower,
	} {
		if got := PowerOf(of); got != want {
			t.Errorf("PowerOf(%s) is %q, want %q", of, got, want)
		}
	}
}
