package guard

import (
	"maps"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A team's sync may write only what its owner lists. Every other object of a commit is held, and no approval overrides that.
func TestAllowedKinds(t *testing.T) {
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n"
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\n"
	cases := map[string]struct {
		reason string
		listed []AllowedKind
		object string // of the commit
		want   string // part of the hold's reason; "" if the step is allowed
	}{
		"Listed":         {reason: "The kind is listed.", listed: []AllowedKind{{Kind: "ConfigMap"}}, object: settings},
		"Nothing":        {reason: "Without allowedKinds, every kind is allowed.", object: settings},
		"OtherKind":      {reason: "A list of Secrets does not allow a ConfigMap.", listed: []AllowedKind{{Kind: "Secret"}}, object: settings, want: "allowedKinds does not list ConfigMap; add"},
		"OtherGroup":     {reason: "The group is part of the kind.", listed: []AllowedKind{{Group: "apps", Kind: "ConfigMap"}}, object: settings, want: "does not list ConfigMap"},
		"CoreIsNoStar":   {reason: "An empty group means the core group, not every group.", listed: []AllowedKind{{Kind: "*"}}, object: role, want: "does not list ClusterRole.rbac.authorization.k8s.io"},
		"Stars":          {reason: "The pattern * matches every kind in namespaces.", listed: []AllowedKind{{Group: "*", Kind: "*"}}, object: settings},
		"StarsOfCluster": {reason: "The pattern * must not allow cluster-scoped objects.", listed: []AllowedKind{{Group: "*", Kind: "*"}}, object: role, want: "only in namespaces"},
		"ClusterScope":   {reason: "The entry allows cluster scope.", listed: []AllowedKind{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Cluster: true}}, object: role},
		"OnlyCluster":    {reason: "An entry for cluster scope does not allow namespaces.", listed: []AllowedKind{{Kind: "*", Cluster: true}}, object: settings, want: "does not list ConfigMap in the namespace shop"},
		"Namespace":      {reason: "The namespace is listed.", listed: []AllowedKind{{Kind: "ConfigMap", Namespaces: []string{"shop", "shop-*"}}}, object: settings},
		"OtherNamespace": {reason: "The namespace belongs to another team.", listed: []AllowedKind{{Kind: "ConfigMap", Namespaces: []string{"shop-*"}}}, object: settings, want: "in the namespace shop"},
		"NoNamespace": {
			reason: "An object without a namespace goes into the default namespace.", listed: []AllowedKind{{Kind: "ConfigMap", Namespaces: []string{"shop"}}},
			object: strings.Replace(settings, ", namespace: shop", "", 1), want: "in the namespace default",
		},
		"Name":      {reason: "The name is listed.", listed: []AllowedKind{{Kind: "ConfigMap", Names: []string{"set*"}}}, object: settings},
		"OtherName": {reason: "The name belongs to another team.", listed: []AllowedKind{{Kind: "ConfigMap", Names: []string{"team-*"}}}, object: settings, want: "with the name settings"},
		"Second":    {reason: "Each entry allows further objects.", listed: []AllowedKind{{Kind: "Secret"}, {Kind: "ConfigMap"}}, object: settings},
		"NotCombined": {
			reason: "One entry must allow both the namespace and the name.", listed: []AllowedKind{{Kind: "ConfigMap", Namespaces: []string{"a"}}, {Kind: "ConfigMap", Names: []string{"b"}}}, object: settings, want: "with the name settings",
		},
		"List": {
			reason: "The items of a list count, not the list itself.", listed: []AllowedKind{{Kind: "List"}, {Kind: "ConfigMapList"}},
			object: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: settings, namespace: shop}\n", want: "does not list ConfigMap",
		},
		"ClusterScopedWithANamespace": {
			reason: "The API server ignores the namespace of a cluster-scoped object, so it allows nothing.", listed: []AllowedKind{{Group: "*", Kind: "*", Namespaces: []string{"shop"}}},
			object: strings.Replace(role, "name: all", "name: all, namespace: shop", 1), want: "only in namespaces",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			guards := Guarding{AllowedKinds: tc.listed}.Guards()
			want := given.Desired(t, render.OwnerHeadgate, map[string]string{"object.yaml": tc.object})
			seen := given.Seen(facts.Upstream{})
			kinds := maps.Clone(seen.Kinds)
			if kinds == nil {
				kinds = map[schema.GroupKind]plan.Kind{}
			}
			kinds[schema.GroupKind{Kind: "ConfigMap"}] = plan.Kind{Version: "v1", Namespaced: true}
			kinds[schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}] = plan.Kind{Version: "v1"}
			seen.Kinds, seen.Space = kinds, "default"
			for _, o := range want.Objects {
				if o.ID.IsCRD() {
					continue
				}
				p := given.Computed(t, want, seen, guards...)
				i := stepOn(p, o.ID)
				expect(t, tc.reason, p.Steps[i], plan.Create, tc.want)

				// The same object already exists and is owned, so the step is a prune.
				u, err := o.Content()
				if err != nil {
					t.Fatal(err)
				}
				owning := seen
				owning.Objects = map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: given.Live(u, "u")}
				owning.Inventory.Entries = map[manifest.ID]inventory.Entry{o.ID: {UID: "u"}}
				p = given.Computed(t, render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{given.Wanted(t, given.CRD("others", "Other"))}}, owning, Guarding{AllowedKinds: append(tc.listed, AllowedKind{Group: "apiextensions.k8s.io", Kind: "*", Cluster: true})}.Guards()...)
				if len(tc.listed) > 0 {
					expect(t, tc.reason, p.Steps[stepOn(p, o.ID)], plan.Prune, tc.want)
				}
				owning.Terms.Release = []string{o.ID.String()} // the way out: the object stays in the cluster
				p = given.Computed(t, render.Desired{Owner: render.OwnerHeadgate, Objects: []render.Object{given.Wanted(t, given.CRD("others", "Other"))}}, owning, guards...)
				if s := p.Steps[stepOn(p, o.ID)]; s.Action != plan.Release {
					t.Errorf("%s: it cannot be released: %s: %s", tc.reason, s.Action, Sentence(s.Reason))
				}
				if p.Approval != nil && tc.want != "" {
					t.Errorf("%s: a digest is offered that lets it pass", tc.reason)
				}
			}
		})
	}
}

// A reference copies values into the namespaces of a team, so it reads no more than the team may write, unless the Sync names the
// namespaces to read from.
func TestReads(t *testing.T) {
	team := []AllowedKind{{Kind: "ConfigMap", Namespaces: []string{"shop", "shop-*"}}, {Group: "example.org", Kind: "Region", Cluster: true}}
	configMap, secret := manifest.ID{Kind: "ConfigMap", Name: "a"}, manifest.ID{Kind: "Secret", Name: "a"}
	region, node := manifest.ID{Group: "example.org", Kind: "Region", Name: "a"}, manifest.ID{Kind: "Node", Name: "a"}
	cases := map[string]struct {
		reason     string
		kinds      []AllowedKind
		namespaces []string
		id         manifest.ID
		namespace  string
		refused    bool
	}{
		"NoLimit":        {reason: "Without limits, everything can be copied.", id: secret, namespace: "platform"},
		"Own":            {reason: "The team may write it.", kinds: team, id: configMap, namespace: "shop-eu"},
		"OtherNamespace": {reason: "A tenant copied the ConfigMap of another namespace.", kinds: team, id: configMap, namespace: "platform", refused: true},
		"OtherKind":      {reason: "The kind is not listed.", kinds: team, id: secret, namespace: "shop", refused: true},
		"Cluster":        {reason: "The entry allows cluster scope.", kinds: team, id: region},
		"OtherCluster":   {reason: "Cluster-scoped objects need an entry.", kinds: team, id: node, refused: true},
		"Listed":         {reason: "The platform publishes its settings in this namespace.", kinds: team, namespaces: []string{"platform"}, id: configMap, namespace: "platform"},
		"InPlace":        {reason: "The list replaces the namespaces of allowedKinds.", kinds: team, namespaces: []string{"shop"}, id: configMap, namespace: "shop-eu", refused: true},
		"ListedKind":     {reason: "The list of namespaces allows no more kinds.", kinds: team, namespaces: []string{"platform"}, id: secret, namespace: "platform", refused: true},
		"ListedCluster":  {reason: "The list of namespaces does not limit cluster scope.", kinds: team, namespaces: []string{"platform"}, id: region},
		"OnlyNamespaces": {reason: "The list limits a Sync without allowedKinds, too.", namespaces: []string{"shop"}, id: configMap, namespace: "platform", refused: true},
		"EveryKind":      {reason: "Without allowedKinds, every kind can be copied.", namespaces: []string{"shop"}, id: secret, namespace: "shop"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reads := Reads(tc.kinds, tc.namespaces)
			if got := reads == nil || reads(tc.id, tc.namespace, true); got == tc.refused {
				t.Errorf("%s\nReads(...)(%s in %q) is %t", tc.reason, tc.id, tc.namespace, got)
			}
		})
	}
	if team[0].Namespaces[0] != "shop" {
		t.Error("the entries of the Sync have changed")
	}
}

func stepOn(p plan.Plan, id manifest.ID) int {
	for i, s := range p.Steps {
		if s.ID == id {
			return i
		}
	}
	return -1
}

// expect fails unless the step has an action or, if want is set, the guard "allowed" holds it for a reason that contains want.
func expect(t *testing.T, reason string, s plan.Step, action plan.Action, want string) {
	t.Helper()
	switch {
	case want == "" && s.Action != action:
		t.Errorf("%s\n%s: %s by %q: %s", reason, s.ID, s.Action, s.Guard, Sentence(s.Reason))
	case want != "" && (s.Action != plan.Hold || s.Would != action || s.Guard != Allowed || !strings.Contains(Sentence(s.Reason), want)):
		t.Errorf("%s\n%s: %s of %s by %q: %q; it should contain %q", reason, s.ID, s.Action, s.Would, s.Guard, Sentence(s.Reason), want)
	}
}

// A sync with activation.allow must not activate anything else: neither with a policy, nor with a definition, a CRD or a package.
func TestAllowedActivations(t *testing.T) {
	const (
		policy   = "ManagedResourceActivationPolicy team"
		provider = "Provider provider-toy"
		mrd      = "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceDefinition\nmetadata: {name: lamps.example.org}\nspec:\n  group: example.org\n  names: {kind: Lamp, plural: lamps}\n  scope: Cluster\n  state: Active\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
		crd      = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: lamps.example.org}\nspec:\n  group: example.org\n  names: {kind: Lamp, plural: lamps}\n  scope: Cluster\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n"
		image    = "apiVersion: pkg.crossplane.io/v1beta1\nkind: ImageConfig\nmetadata: {name: mirror}\nspec:\n  matchImages: [{type: Prefix, prefix: registry.example.org}]\n"
	)
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	pinned := strings.Replace(given.Provider, ":v1.0.0\n", "@"+digest+"\n  skipDependencyResolution: true\n", 1)
	dependency := strings.NewReplacer("provider-toy", "provider-family", "/toy/", "/family/").Replace(pinned)
	upbound := func(kind, apiVersion string) string {
		return "apiVersion: pkg.crossplane.io/" + apiVersion + "\nkind: " + kind + "\nmetadata: {name: sly}\nspec: {}\n"
	}
	cases := map[string]struct {
		reason string
		owner  render.Owner // "" is Crossplane
		allow  []string
		files  map[string]string
		edit   func(*render.Desired)
		up     facts.Upstream
		step   string
		want   string
	}{
		"InFull":   {reason: "The pattern is listed.", allow: []string{"b*.example.org"}, files: map[string]string{"p.yaml": given.Policy("team", given.Buckets)}, step: policy},
		"Narrower": {reason: "The pattern matches a part of what is listed.", allow: []string{"*.example.org"}, files: map[string]string{"p.yaml": given.Policy("team", "b*.example.org")}, step: policy},
		"Everything": {
			reason: "A policy applies to the whole cluster.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": given.Policy("team", given.Buckets, "*")}, step: policy,
			want: `its pattern "*" reaches beyond activation.allow of the Sync (buckets.example.org), for example to queues.example.org`,
		},
		"OfTheCluster": {
			reason: "The definitions of other teams are in the cluster but not in the commit.", allow: []string{"*.example.org"}, files: map[string]string{"p.yaml": given.Policy("team", "*")}, step: policy,
			up: facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{"zones.elsewhere.org": {}, "vaults.elsewhere.org": {}}}, want: "for example to vaults.elsewhere.org",
		},
		"OfTomorrow": {
			reason: "Another team may install a matching package later, and no pass of this sync would check it.", allow: []string{"*.example.org"},
			files: map[string]string{"p.yaml": given.Policy("team", "*.org")}, step: policy, want: `its pattern "*.org" reaches beyond`,
		},
		"Paused": {
			reason: "The policy would take effect once the annotation is removed.", allow: []string{given.Buckets},
			files: map[string]string{"p.yaml": withAnnotation(given.Policy("team", "*"), `crossplane.io/paused: "true"`)}, step: policy, want: "reaches beyond",
		},
		"NothingAllowed": {reason: "An empty list allows nothing.", files: map[string]string{"p.yaml": given.Policy("team", given.Buckets)}, step: policy, want: "(nothing)"},
		"Malformed":      {reason: "A malformed pattern matches nothing.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": given.Policy("team", "[")}, step: policy},
		"MRD":            {reason: "A definition with state Active needs no policy.", allow: []string{given.Buckets}, files: map[string]string{"m.yaml": mrd}, step: "ManagedResourceDefinition lamps.example.org", want: "it would become active"},
		"MRDAllowed":     {reason: "The definition is listed.", allow: []string{"lamps.example.org"}, files: map[string]string{"m.yaml": mrd}, step: "ManagedResourceDefinition lamps.example.org"},
		"InactiveMRD":    {reason: "An inactive definition activates nothing.", allow: []string{given.Buckets}, files: map[string]string{"m.yaml": strings.Replace(mrd, "  state: Active\n", "", 1)}, step: "ManagedResourceDefinition lamps.example.org"},
		"ActiveMRD": {
			reason: "The definition is already active.", allow: []string{given.Buckets}, files: map[string]string{"m.yaml": mrd}, step: "ManagedResourceDefinition lamps.example.org",
			up: facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{"lamps.example.org": {Active: true}}},
		},
		"CRD":              {reason: "A CRD serves its kind without any policy.", allow: []string{given.Buckets}, files: map[string]string{"c.yaml": crd}, step: "CustomResourceDefinition lamps.example.org", want: "it would serve a kind"},
		"CRDAllowed":       {reason: "The CRD is listed.", allow: []string{"lamps.*"}, files: map[string]string{"c.yaml": crd}, step: "CustomResourceDefinition lamps.example.org"},
		"ConfigOfNothing":  {reason: "ProviderConfig is exempt only inside a package.", allow: []string{given.Buckets}, files: map[string]string{"c.yaml": strings.ReplaceAll(crd, "Lamp", "ProviderConfig")}, step: "CustomResourceDefinition lamps.example.org", want: "it would serve a kind"},
		"ByHeadgate":       {reason: "This sync makes the CRDs, so each CRD is a step of its own.", owner: render.OwnerHeadgate, allow: []string{given.Buckets}, files: map[string]string{"p.yaml": given.Policy("team", "*")}, step: "CustomResourceDefinition queues.example.org", want: "it would become active"},
		"ByHeadgateInside": {reason: "The listed part of a policy is still applied.", owner: render.OwnerHeadgate, allow: []string{given.Buckets}, files: map[string]string{"p.yaml": given.Policy("team", "*")}, step: "CustomResourceDefinition buckets.example.org"},
		"Package":          {reason: "The definitions of the package stay inactive.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": pinned}, edit: pulled, step: provider},
		"Tag": {
			reason: "Another image behind the tag would activate other definitions.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": given.Provider}, edit: pulled, step: provider,
			want: "a tag can move; write registry.example.org/toy/provider-toy@sha256:1",
		},
		"TagAndDigest": {
			reason: "Crossplane pulls the digest.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": strings.Replace(pinned, "@", ":v1.0.0@", 1)}, edit: pulled, step: provider,
		},
		"ShortDigest": {
			reason: "This is no digest.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": strings.Replace(pinned, digest, "sha256:0123", 1)}, edit: pulled, step: provider, want: "needs the digest",
		},
		"PullAlways": {
			reason: "Crossplane resolves the image again and again.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": pinned + "  packagePullPolicy: Always\n"}, edit: pulled, step: provider,
			want: "packagePullPolicy: Always",
		},
		"ResolvesDependencies": {
			reason: "Crossplane chooses the versions of dependencies.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": strings.Replace(pinned, "Resolution: true", "Resolution: false", 1)}, edit: pulled, step: provider,
			want: "set skipDependencyResolution: true",
		},
		"DependencyElsewhere": {
			reason: "Crossplane does not install the dependency, and the provider needs it.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": pinned}, edit: depending("registry.example.org/family/provider-family"), step: provider,
			want: "it depends on registry.example.org/family/provider-family; add a package",
		},
		"DependencyDeclared": {
			reason: "The object of the dependency is a step of its own, which is judged alike.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": pinned, "f.yaml": dependency},
			edit: depending("registry.example.org/family/provider-family"), step: provider,
		},
		"DependencyJudged": {
			reason: "Headgate has not read the image of the dependency.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": pinned, "f.yaml": dependency},
			edit: depending("registry.example.org/family/provider-family"), step: "Provider provider-family", want: "Headgate cannot compare what it activates",
		},
		"OnlyACopy": {
			reason: "The author of the commit wrote the copy in the tree, and Crossplane installs the image.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": pinned}, step: provider,
			edit: func(d *render.Desired) {
				d.Packages[0].Installer = manifest.ID{Group: crossplane.Packages, Kind: "Provider", Name: "provider-toy"}
			},
			want: "Headgate cannot compare what it activates",
		},
		"PackageUnderOthers": {
			reason: "The default policy in the cluster would activate the definitions of this commit's package.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": given.Provider}, edit: pulled, step: provider,
			up: facts.Upstream{Policies: map[string]crossplane.LivePolicy{"default": {Patterns: []string{"*"}}}}, want: "2 definitions of it would become active",
		},
		"PackageWithoutSafeStart": {
			reason: "Without safe-start, all definitions become active under any policy.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": given.Provider}, step: provider,
			edit: func(d *render.Desired) {
				pulled(d)
				for _, of := range d.Definitions {
					of.FromCRD, of.State = true, catalogue.Active
				}
			}, want: "2 definitions of it would become active",
		},
		"PackageUnread": {
			reason: "Headgate does not know what an unread package activates.", allow: []string{"*"}, files: map[string]string{"p.yaml": given.Provider}, step: provider, edit: unread(manifest.ID{Group: crossplane.Packages, Kind: "Provider", Name: "provider-toy"}),
			want: "Headgate cannot compare what it activates",
		},
		"FunctionUnread": {
			reason: "An unread function may depend on a provider.", allow: []string{"*"}, files: map[string]string{"p.yaml": strings.ReplaceAll(given.Provider, "kind: Provider", "kind: Function")}, step: "Function provider-toy",
			edit: unread(manifest.ID{Group: crossplane.Packages, Kind: "Function", Name: "provider-toy"}), want: "Headgate cannot compare what it activates",
		},
		"PolicyOfAPackage": {
			reason: "Crossplane also installs the policies of a Configuration.", allow: []string{given.Buckets}, files: map[string]string{"p.yaml": given.Provider}, step: provider, edit: func(d *render.Desired) {
				pulled(d)
				d.Policies = append(d.Policies, catalogue.Policy{Name: "shipped", Patterns: []catalogue.Pattern{{Glob: "*.elsewhere.org"}}})
				d.Left = append(d.Left, render.Left{ID: crossplane.MRAP("shipped"), Package: d.Packages[0].Directory})
			}, want: "its policy shipped has the pattern",
		},
		"ImageConfig": {reason: "An ImageConfig that only matches images activates nothing.", allow: []string{given.Buckets}, files: map[string]string{"i.yaml": image}, step: "ImageConfig mirror"},
		"Rewrite": {
			reason: "A rewrite replaces packages of the whole cluster.", allow: []string{given.Buckets}, files: map[string]string{"i.yaml": image + "  rewriteImage: {prefix: evil.example.org}\n"}, step: "ImageConfig mirror", want: "rewriteImage",
		},
		"UnknownKind":   {reason: "Headgate does not know what Crossplane installs because of an unknown kind.", allow: []string{"*"}, files: map[string]string{"r.yaml": upbound("Bundle", "v1alpha1")}, step: "Bundle sly", want: "an object of kind Bundle"},
		"RuntimeConfig": {reason: "A DeploymentRuntimeConfig only configures pods.", allow: []string{given.Buckets}, files: map[string]string{"r.yaml": upbound("DeploymentRuntimeConfig", "v1beta1")}, step: "DeploymentRuntimeConfig sly"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			owner := render.OwnerCrossplane
			if tc.owner != "" {
				owner = tc.owner
			}
			want := given.Desired(t, owner, tc.files)
			if tc.edit != nil {
				tc.edit(&want)
			}
			p, got := given.Steps(t, want, given.Seen(tc.up), Guarding{Activation: ActivationLimit{Set: true, Allow: tc.allow}}.OfCommit()...)
			s, ok := got[tc.step]
			if !ok {
				t.Fatalf("there is no step %q among %v", tc.step, got)
			}
			expect(t, tc.reason, s, plan.Create, tc.want)
			if p.Approval != nil {
				t.Errorf("%s: a digest is offered that lets it pass", tc.reason)
			}

			_, got = given.Steps(t, want, given.Seen(tc.up), Guarding{}.OfCommit()...)
			if s := got[tc.step]; s.Action != plan.Create {
				t.Errorf("without activation.allow it is not let through: %s: %s", s.Action, Sentence(s.Reason))
			}
		})
	}
}

// A Provider that existed before may have fields of another manager, which an apply of the commit leaves.
func TestPullPolicyOfAnotherManager(t *testing.T) {
	image := "registry.example.org/toy/provider-toy@sha256:" + strings.Repeat("0", 64)
	want := given.Desired(t, render.OwnerCrossplane, map[string]string{"p.yaml": strings.Replace(given.Provider, "registry.example.org/toy/provider-toy:v1.0.0", image+"\n  skipDependencyResolution: true", 1)})
	pulled(&want)
	seen := given.Seen(facts.Upstream{})
	_, got := given.Steps(t, want, seen)
	s := got["Provider provider-toy"]
	u, err := s.Object()
	if err != nil {
		t.Fatal(err)
	}
	for policy, answer := range map[string]plan.Response{"IfNotPresent": allowed.Response(), crossplane.PullAlways: plan.Held} {
		s.After = u.DeepCopy()
		s.After.Object["spec"].(map[string]any)["packagePullPolicy"] = policy
		rule := onlyActivates(ActivationLimit{Set: true})(draft.Case{Want: want, Seen: seen})
		if r := rule(s); r.Response() != answer {
			t.Errorf("%s: %+v", policy, r)
		}
	}
}

// pulled turns the in-tree package into the image that the Provider installs.
func pulled(d *render.Desired) {
	for i := range d.Packages {
		d.Packages[i].Digest = "sha256:1"
		d.Packages[i].Installer = manifest.ID{Group: crossplane.Packages, Kind: "Provider", Name: "provider-toy"}
		d.Packages[i].Named = d.Packages[i].Installer
	}
	for _, of := range d.Definitions {
		of.Package = &d.Packages[0]
	}
}

// depending turns the in-tree package into an image with a dependency.
func depending(source string) func(*render.Desired) {
	return func(d *render.Desired) {
		pulled(d)
		d.Packages[0].Depends = []catalogue.Dependency{{Kind: "Provider", Source: source, Constraint: ">=v1.0.0"}}
	}
}

// unread makes an object's package unreadable.
func unread(id manifest.ID) func(*render.Desired) {
	return func(d *render.Desired) {
		d.Unread = []catalogue.Unread{{Installers: []manifest.ID{id}, Err: given.ErrBoom}}
	}
}

// A package revision in a commit would make Crossplane install an image whose definitions no guard has read.
func TestCommitsBringNoRevisions(t *testing.T) {
	const packages = "pkg.crossplane.io/"
	for kind, held := range map[string]bool{
		packages + "v1 ProviderRevision": true, packages + "v1 ConfigurationRevision": true, packages + "v1beta1 FunctionRevision": true, packages + "v1beta1 Lock": true,
		packages + "v1beta1 ImageConfig": false, packages + "v1beta1 DeploymentRuntimeConfig": false, "example.org/v1 ProviderRevision": false, "apps/v1 ControllerRevision": false,
	} {
		apiVersion, kind, _ := strings.Cut(kind, " ")
		want := given.Desired(t, render.OwnerCrossplane, map[string]string{"a.yaml": "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: lock}\nspec: {desiredState: Active}\n"})
		for _, guards := range [][]draft.Guard{Guarding{}.OfCommit(), Guarding{}.Guards()} {
			p, got := given.Steps(t, want, given.Seen(facts.Upstream{}), guards...)
			if s := got[kind+" lock"]; (s.Guard == Installed) != held || p.Approval != nil {
				t.Errorf("%s: %s %q, approval %v", kind, s.Action, s.Guard, p.Approval)
			}
		}
	}
}

// A deactivation also changes a package revision. Otherwise Crossplane would never restore the definitions, and the pass would wait
// for them forever.
func TestDeactivationsTouchRevisions(t *testing.T) {
	for deactivates, want := range map[bool]plan.Ruling{true: allowed, false: held(reason.OnlyCrossplaneWrites.With("ProviderRevision"))} {
		s := plan.Step{Action: plan.Update, ID: crossplane.ProviderRevision("provider-a"), Deactivates: deactivates}
		if diff := cmp.Diff(want, onlyByCrossplane(s, draft.Case{})); diff != "" {
			t.Errorf("deactivates: %t (-want +got):\n%s", deactivates, diff)
		}
	}
}
