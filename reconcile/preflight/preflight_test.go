package preflight

import (
	"os"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A row is a fact and what it must lead to.
type row struct {
	reason string
	got    Result
	want   Status
	says   string // part of the message or of the advice
}

func judge(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			text := tc.got.Message + "\n" + tc.got.Do
			if tc.got.Status != tc.want || !strings.Contains(text, tc.says) {
				t.Errorf("%s\ngot %s: %s\nwant %s with %q", tc.reason, tc.got.Status, text, tc.want, tc.says)
			}
			if (tc.want == Failed || tc.want == Warning) && tc.got.Do == "" {
				t.Errorf("%s: a person must read what to do", tc.got.Message)
			}
		})
	}
}

func TestVersions(t *testing.T) {
	kubernetes := func(version, set string) Result {
		return Kubernetes{Version: version, Newest: 37, Oldest: 35, Set: set}.Judge()
	}
	known := []string{"v2.0.0", "v2.4.0"}
	judge(t, map[string]row{
		"Known":           {"The newest release is known.", kubernetes("v1.37.2", ""), OK, "v1.37.2"},
		"Vendor":          {"Distributions append their own version.", kubernetes("v1.36.1+k3s1", ""), OK, "k3s1"},
		"GKE":             {"A vendor's suffix may follow a dash.", kubernetes("v1.36.1-gke.100", "1.36"), OK, ""},
		"TooNew":          {"Headgate does not know the kinds of a later release.", kubernetes("v1.38.0", ""), Warning, "update Headgate"},
		"Old":             {"The project does not maintain the release.", kubernetes("v1.30.0", ""), Warning, "does not maintain"},
		"Differs":         {"The Sync checks commits against another release.", kubernetes("v1.36.0", "1.34"), Warning, "kubernetesVersion to 1.36"},
		"Garbage":         {"A proxy may answer with anything.", kubernetes("<html>", ""), Unknown, "no release"},
		"Two":             {"Kubernetes 2 is not known.", kubernetes("v2.0.0", ""), Unknown, ""},
		"Overflow":        {"A number may be too large.", kubernetes("v1.99999999999999999999", ""), Unknown, ""},
		"Crossplane":      {"The release is known.", Crossplane{Served: true, Version: "v2.3.1", From: "the image", Known: known}.Judge(), OK, "v2.3.1"},
		"CrossplaneNew":   {"A later minor release may have other rules.", Crossplane{Served: true, Version: "v2.5.0", Known: known}.Judge(), Warning, "up to v2.4.0"},
		"CrossplaneSet":   {"The Sync follows the rules of another release.", Crossplane{Served: true, Version: "v2.3.1", Known: known, Set: "v2.4.0"}.Judge(), Warning, "crossplaneVersion to v2.3.1"},
		"CrossplanePatch": {"CRDs do not show the patch release.", Crossplane{Served: true, Version: "v2.2.1", Last: "v2.3.0", Known: known, Set: "v2.3.2"}.Judge(), OK, "v2.2.1 to v2.3.0"},
		"CrossplaneMinor": {"CRDs show the minor release.", Crossplane{Served: true, Version: "v2.2.1", Last: "v2.3.0", Known: known, Set: "v2.4.0"}.Judge(), Warning, "v2.2.1 to v2.3.0"},
		"NotKnown":        {"Without the right to list Deployments, the version is not known.", Crossplane{Served: true, Hidden: "forbidden", Known: known}.Judge(), Unknown, "deployments"},
		"One":             {"Crossplane 1 has no definitions.", Crossplane{Version: "v1.20.0", From: "the image", Known: known}.Judge(), Failed, "update Crossplane"},
		"None":            {"Without Crossplane, Headgate makes the CRDs.", Crossplane{Known: known}.Judge(), OK, "not installed"},
		"NoneButNeeded":   {"The Sync waits for a Crossplane that is not there.", Crossplane{Known: known, Needed: true}.Judge(), Failed, "install Crossplane"},
		"CrossplaneText":  {"A tag may be anything.", Crossplane{Served: true, Version: "vlatest", From: "the image", Known: known}.Judge(), Unknown, "vlatest"},
	})
}

func TestPolicies(t *testing.T) {
	policy := func(patterns ...string) crossplane.LivePolicy { return crossplane.LivePolicy{Patterns: patterns} }
	judge(t, map[string]row{
		"None":    {"There is no policy.", Policies{}.Judge(), OK, "0 policies"},
		"Default": {"Crossplane's Helm chart installs this policy.", Policies{"default": policy("*")}.Judge(), Warning, "provider.defaultActivations={}"},
		"Own":     {"A person wrote the same.", Policies{"ours": policy("a.b.c", "*")}.Judge(), Warning, "ours"},
		"Narrow":  {"A suffix is a choice.", Policies{"default": policy("*.s3.aws.m.upbound.io")}.Judge(), OK, "1 policy"},
		"Paused":  {"A paused policy activates nothing.", Policies{"default": {Patterns: []string{"*"}, Paused: true}}.Judge(), OK, ""},
	})
}

func TestObjects(t *testing.T) {
	judge(t, map[string]row{
		"NoOwner":    {"The plan holds nothing for another owner.", Holds(nil).Judge(3), OK, "3 objects"},
		"Owned":      {"Flux applies it.", Holds{"ConfigMap a/b: applied by Flux"}.Judge(3), Warning, "would hold 1 of 3 objects"},
		"ManyOwned":  {"A message names a few.", Holds(slices.Repeat([]string{"x"}, 9)).Judge(9), Warning, "and 4 more"},
		"Owners":     {"All owners exist.", Orphans(nil, 10_000), OK, "10000 CRDs"},
		"Orphan":     {"After a restore, UIDs differ.", Orphans([]Orphan{{"a.b", "ProviderRevision x"}}, 2), Warning, "a.b (ProviderRevision x)"},
		"NoObjects":  {"There is nothing to run.", Shards(nil).Judge(0, "do"), OK, "no Sync objects"},
		"Shards":     {"Each shard has a controller.", Shards(nil).Judge(2, "do"), OK, "no Sync object has"},
		"Unwatched":  {"Nobody would notice Syncs without a controller.", Shards{"1 Sync has the key b", "2 more"}.Judge(2, "do"), Warning, "1 Sync has the key b; 2 more"},
		"Unleased":   {"It is the first pass.", Lease{}.Judge(), OK, "yet"},
		"Free":       {"The last pass released it.", Lease{Exists: true}.Judge(), OK, "now"},
		"Held":       {"Another process works.", Lease{Exists: true, Holder: "pod/1", Age: 5, Duration: 60}.Judge(), Warning, "pod/1"},
		"Dead":       {"The holder did not renew it.", Lease{Exists: true, Holder: "pod/1", Age: 500, Duration: 60}.Judge(), OK, "next pass"},
		"Future":     {"The clocks differ.", Lease{Exists: true, Holder: "pod/1", Age: -4000, Duration: 60}.Judge(), Unknown, "in the future"},
		"Undated":    {"A lease may have no times.", Lease{Exists: true, Holder: "pod/1", Undated: true}.Judge(), OK, "no time"},
		"LongHolder": {"The holder's name is the text of another process.", Lease{Exists: true, Holder: strings.Repeat("x", 9000), Age: 1, Duration: 60}.Judge(), Warning, "…"},
	})
}

func TestCredentials(t *testing.T) {
	expiry := func(left int64) Expiry { return Expiry{Of: "the token", At: "2026-01-01", Left: left, Known: true} }
	renewed := expiry(600)
	renewed.Renewed = true
	gone := expiry(-1)
	gone.Renewed = true
	judge(t, map[string]row{
		"Valid":     {"It is valid for long.", expiry(400 * 24 * 3600).Judge(), OK, "2026-01-01"},
		"Soon":      {"A person has time to act.", expiry(3 * 24 * 3600).Judge(), Warning, "3 days"},
		"Expired":   {"Every request fails.", expiry(0).Judge(), Failed, "expired"},
		"Renewed":   {"The kubelet renews the token of a Pod.", renewed.Judge(), OK, "renewed"},
		"NotAnyway": {"It was not renewed.", gone.Judge(), Failed, "expired"},
		"Endless":   {"It never expires.", Expiry{Of: "the token", Endless: true}.Judge(), OK, "does not expire"},
		"Hidden":    {"It does not show it.", Expiry{Of: "the token", Hidden: "opaque"}.Judge(), Unknown, "opaque"},
		"Same":      {"A header has no fractions of a second.", Clock{Of: "the forge", Ahead: -2, Known: true}.Judge(), OK, ""},
		"Ahead":     {"The clock of the server is ahead.", Clock{Of: "the forge", Ahead: 31, Known: true}.Judge(), Warning, "31 s ahead"},
		"Behind":    {"The clock of the server is behind.", Clock{Of: "the forge", Ahead: -7200, Known: true}.Judge(), Warning, "2 h behind"},
		"NoDate":    {"A proxy may remove the header.", Clock{Of: "the forge"}.Judge(), Unknown, "no time"},
	})
}

func TestForge(t *testing.T) {
	token := func(shown, mayWrite bool, scopes ...string) Result {
		return Token{Forge: "It", Scopes: scopes, Enough: []string{"all", "write"}, Shown: shown, MayWrite: mayWrite, Right: "the scope write"}.Judge()
	}
	const posts, later = "headgate/prod/preview", "headgate/prod/platform/activation"
	protection := func(required ...string) Result {
		return Protection{Branch: "main", Required: required, Posts: posts, Later: []string{later}}.Judge()
	}
	globs := func(required ...string) Result {
		return Protection{Branch: "main", Required: required, Globs: true, Posts: posts}.Judge()
	}
	posted := func(applied bool, by ...string) Result {
		return Posted{Context: later, By: by, Applied: applied, Commit: "0123456789abcdef"}.Judge()
	}
	judge(t, map[string]row{
		"Enough":       {"One of the scopes is enough.", token(true, true, "read", "write"), OK, "read, write"},
		"TooFew":       {"No scope allows statuses.", token(false, false, "read"), Failed, "give it the scope write"},
		"NoScopes":     {"The token has no scope at all.", Token{Scopes: []string{}, Enough: []string{"all"}, Right: "the scope all"}.Judge(), Failed, "none"},
		"ReadOnly":     {"Its user may only read.", token(true, false, "write"), Failed, "not write"},
		"NotShown":     {"The forge reports nothing.", token(false, false), Unknown, "does not report"},
		"UserMayWrite": {"The forge reports only the user's rights.", token(true, true), Unknown, "scopes"},
		"Mixed":        {"Who waits for the cluster must not wait for a part of it.", MixedContexts("prod", []string{"ns/a"}, []string{"ns/b", "ns/c"}), Warning, "which ns/b, ns/c post together, is green without ns/a"},
		"MixedWithOne": {"One Sync has the pair of the cluster.", MixedContexts("prod", []string{"ns/a"}, []string{"ns/b"}), Warning, "which ns/b posts, is"},
		"Required":     {"The branch requires the status.", protection("build", posts), OK, posts},
		"NotRequired":  {"A blocked preview stops nothing.", protection("build"), Warning, "require the status " + posts},
		"Late":         {"The status comes after the merge.", protection(later), Failed, "no pull request can be merged"},
		"OtherName":    {"The name of the cluster changed.", protection("headgate/old/preview"), Warning, "headgate/old/preview"},
		"Both":         {"One of two is posted.", protection(posts, "headgate/old/preview"), Warning, "headgate/old/preview"},
		"Glob":         {"A pattern may match the context.", globs("headgate/*/preview"), OK, ""},
		"AllGlob":      {"A pattern may match everything.", globs("*"), OK, ""},
		"OtherGlob":    {"A pattern may match something else.", globs("headgate/*/other"), Warning, ""},
		"GlobNotText":  {"Elsewhere, a star is a star.", protection("*"), Warning, ""},
		"TwoStars":     {"Parts do not overlap.", Protection{Branch: "main", Required: []string{"headgate/*prod*prod/preview"}, Globs: true, Posts: posts}.Judge(), Warning, ""},
		"Pipeline":     {"Every status counts.", Protection{Branch: "main", Pipeline: true, Posts: posts}.Judge(), OK, "every status"},
		"Nothing":      {"The Sync posts none on pull requests.", Protection{Branch: "main"}.Judge(), OK, "posts none"},
		"First":        {"No status yet.", posted(false), OK, "no process"},
		"Own":          {"This cluster posted it.", posted(true, "bot"), OK, "one account"},
		"Stranger":     {"This cluster has applied nothing.", posted(false, "bot"), Warning, "no inventory"},
		"Two":          {"Two accounts post it.", posted(true, "bot", "robot"), Warning, "bot, robot"},
		"Registries":   {"All were read.", Packages([]Pulled{{Image: "a/b:v1", Host: "a"}, {Image: "a/c:v1", Host: "a"}}), OK, "2 packages of a"},
		"Refused":      {"One was refused.", Packages([]Pulled{{Image: "a/b:v1", Host: "a"}, {Image: "b/c:v1", Host: "b", Err: "401"}}), Failed, "b/c:v1: 401"},
		"NoPackage":    {"The commit names none.", Packages(nil), OK, "no package"},
	})
}

func TestRights(t *testing.T) {
	rights := func(needs Profile, allowed ...Profile) Rights {
		r := Rights{Namespace: "headgate-system", Name: "platform", Needs: needs, Allowed: map[Right]bool{}}
		for _, p := range allowed {
			for _, one := range p.Rights(r.Namespace, r.Name) {
				r.Allowed[one] = true
			}
		}
		return r
	}
	without := func(r Rights, verb, resource string) Rights {
		for one := range r.Allowed {
			if one.Verb == verb && one.Resource == resource {
				r.Allowed[one] = false
			}
		}
		return r
	}
	wanting := func(r Rights, kinds ...Wanted) Rights { r.Wanted = kinds; return r }
	secrets := rights(ByHeadgate, ByHeadgate)
	secrets.Secrets = []string{"forge"}
	hidden := rights(ByHeadgate, ByHeadgate)
	hidden.Hidden = "the repository cannot be read"
	all := map[Right]bool{}
	for _, r := range TooWide() {
		all[r] = true
	}
	judge(t, map[string]row{
		"Observe":     {"The rights of the observer.", rights(Observe, Observe).Judge(), OK, "the profile observe"},
		"Crossplane":  {"The rights of a process beside Crossplane.", rights(ByCrossplane, ByCrossplane).Judge(), OK, "crossplane"},
		"TooFew":      {"An observer cannot apply.", rights(ByCrossplane, Observe).Judge(), Failed, "rights-crossplane.yaml"},
		"Nothing":     {"The process has no right.", rights(Observe).Judge(), Failed, "no profile"},
		"OneVerb":     {"One verb is missing.", without(rights(ByHeadgate, ByHeadgate), "patch", "customresourcedefinitions").Judge(), Failed, "patch customresourcedefinitions.apiextensions.k8s.io"},
		"Merged":      {"Several verbs on one resource are one entry.", without(without(rights(ByHeadgate, ByHeadgate), "update", "leases"), "get", "leases").Judge(), Failed, "get/update leases.coordination.k8s.io headgate-platform in headgate-system"},
		"OfTheCommit": {"The commit has another kind.", wanting(rights(ByHeadgate, ByHeadgate), Wanted{Resource: "secrets", Namespaces: []string{"shop"}}).Judge(), Failed, "get/create/patch/delete secrets in shop"},
		"ObservesIt":  {"An observer only reads it.", wanting(rights(Observe, Observe), Wanted{Group: "g", Resource: "things"}).Judge(), Failed, "list/watch/get things.g"},
		"Covered":     {"The profile has the kind.", wanting(rights(ByHeadgate, ByHeadgate), Wanted{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}).Judge(), OK, "1 kind"},
		"Secret":      {"The Sync names a Secret.", secrets.Judge(), Failed, "get secrets forge in headgate-system"},
		"Hidden":      {"The commit was not read.", hidden.Judge(), Unknown, "cannot be read"},
		"Wide":        {"An administrator may do everything.", Wide(all).Judge(), Warning, "cluster-admin"},
		"Escalates":   {"It may give itself more.", Wide{TooWide()[1]: true}.Judge(), Warning, "escalate clusterroles"},
		"NotWide":     {"It may do neither.", Wide{}.Judge(), OK, ""},
	})
	if got := ProfileOf(false, render.OwnerCrossplane, false); got.Name != Objects.Name {
		t.Errorf("a commit that makes no kinds needs %s", got.Name)
	}
	if !MakesKinds(manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "aws"}) || MakesKinds(manifest.ID{Kind: "ConfigMap", Name: "a"}) {
		t.Error("a package makes kinds, and a ConfigMap does not")
	}
	many := wanting(rights(ByHeadgate), slices.Repeat([]Wanted{{Resource: "things", Namespaces: slices.Repeat([]string{"a"}, 100)}}, 100)...)
	if n := len(many.Questions()); n > 2300 {
		t.Errorf("a commit leads to %d questions", n)
	}
}

// The files are the examples that people apply. What check asks for is what they grant.
func TestProfilesAreTheExamples(t *testing.T) {
	placeholders := []string{"aws.m.upbound.io", "s3.aws.m.upbound.io", "rbac.authorization.k8s.io"}
	for _, p := range Profiles {
		data, err := os.ReadFile("../../" + p.File)
		if err != nil {
			t.Fatal(err)
		}
		granted := map[Right]bool{}
		for _, u := range fixtures.Documents(t, string(data)) {
			if u.GetKind() != "Role" && u.GetKind() != "ClusterRole" || u.GetNamespace() == "shop" {
				continue
			}
			var role rbac.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
				t.Fatal(err)
			}
			for _, r := range role.Rules {
				for _, group := range r.APIGroups {
					for _, resource := range r.Resources {
						for _, verb := range r.Verbs {
							one := Right{Verb: verb, Group: group, Resource: resource, Namespace: u.GetNamespace()}
							if len(r.ResourceNames) > 0 {
								one.Name = r.ResourceNames[0]
							}
							granted[one] = true
						}
					}
				}
			}
		}
		name := map[bool]string{true: "team-shop", false: "platform"}[p.Name == Objects.Name]
		asked := p.Rights("headgate-system", name)
		for _, r := range asked {
			every := r
			every.Resource = "*"
			if !granted[r] && !granted[every] {
				t.Errorf("%s: the profile needs %s, which the file does not grant", p.File, r)
			}
		}
		for r := range granted {
			optional := r.Resource == "events" || r.Resource == "*" || slices.Contains(placeholders, r.Group) ||
				p.Name == Objects.Name && slices.Contains([]string{"secrets", "serviceaccounts"}, r.Resource) && r.Namespace == ""
			if !optional && !slices.Contains(asked, r) {
				t.Errorf("%s grants %s, which the profile does not ask for", p.File, r)
			}
		}
	}
}

func TestCount(t *testing.T) {
	all := []Result{{Status: OK}, {Status: Unknown}, {Status: Warning}}
	if Failures(all) || Count(all)[OK] != 1 {
		t.Error("only a failed check is a failure")
	}
	if !Failures(append(all, Result{Status: Failed})) {
		t.Error("a failed check is a failure")
	}
}
