package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/examples"
	"headgate.dev/headgate/fixtures/golden"

	"github.com/google/go-cmp/cmp"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const image = "ghcr.io/headgate-dev/headgate@sha256:0000000000000000000000000000000000000000000000000000000000000000"

// initial returns the options of 'headgate install' without flags.
func initial(profile Profile) Options {
	return Options{Profile: profile, Namespace: DefaultNamespace, Image: image, Syncs: []string{"platform"}}
}

func objects(t *testing.T, o Options) []*unstructured.Unstructured {
	t.Helper()
	all, err := Objects(examples.Manifests, o)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// byID returns objects by kind, namespace and name, as JSON reads them.
func byID(t *testing.T, all []*unstructured.Unstructured) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, u := range all {
		id := u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
		if found[id] != nil {
			t.Errorf("%s is there twice", id)
		}
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			t.Fatal(err)
		}
		var object any
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		found[id] = object
	}
	return found
}

// Users of kustomize get what users of 'headgate install --export' get.
func TestKustomizeBase(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../examples/controller")
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	base, err := decode(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(byID(t, base), byID(t, objects(t, initial(Tenant)))); diff != "" {
		t.Errorf("the base and 'headgate install --export' (-base +install):\n%s", diff)
	}
}

// What a stolen token can do is a promise of each profile. Read a change of these files as a change of it.
func TestReach(t *testing.T) {
	team := initial(Tenant)
	team.Watch, team.Account = "team-a", "deployer"
	var b strings.Builder
	shards := initial(Tenant)
	shards.Shards = []string{"a", "b"}
	for _, o := range []Options{initial(Tenant), team, shards, initial(Observe), initial(Crossplane), initial(CRDs), initial(Preview)} {
		lines, err := Reach(objects(t, o))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("# " + strings.Join(strings.Fields(string(o.Profile)+" "+o.Watch+" "+strings.Join(o.Shards, " ")), " ") + "\n" + strings.Join(lines, "\n") + "\n\n")
	}
	golden.Compare(t, "testdata/reach.txt", b.String())
}

// A second installation shares only what all installations share.
func TestAnotherNamespace(t *testing.T) {
	for _, profile := range Profiles {
		first, second := initial(Profile(profile)), initial(Profile(profile))
		second.Namespace = "team-headgate"
		others := byID(t, objects(t, second))
		for id := range byID(t, objects(t, first)) {
			_, name, _ := strings.Cut(id, "/")
			if others[id] != nil && !slices.Contains(shared, name) {
				t.Errorf("%s: %s belongs to both", profile, id)
			}
		}
		for _, u := range objects(t, second) {
			text, err := yaml.Marshal(u.Object)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), DefaultNamespace) {
				t.Errorf("%s: %s %s names %s:\n%s", profile, u.GetKind(), u.GetName(), DefaultNamespace, text)
			}
			if u.GetKind() == "ClusterRoleBinding" {
				role, _, _ := unstructured.NestedString(u.Object, "roleRef", "name")
				if others["ClusterRole /"+role] == nil {
					t.Errorf("%s: %s is bound to %s, which is not there", profile, u.GetName(), role)
				}
			}
		}
	}
}

// Names of examples are no part of an installation, and an empty list of names is not a right to all of them.
func TestNoPlaceholders(t *testing.T) {
	for _, profile := range Profiles {
		o := initial(Profile(profile))
		o.Syncs = []string{"one", "two"}
		for _, u := range objects(t, o) {
			text, err := yaml.Marshal(u.Object["rules"])
			if err != nil {
				t.Fatal(err)
			}
			spec, err := yaml.Marshal(u.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"platform", "team-shop", "upbound", "resourceNames: []", "apiGroups: []"} {
				if u.GetKind() != "CustomResourceDefinition" && strings.Contains(string(text)+string(spec), word) {
					t.Errorf("%s: %s %s has %q:\n%s%s", profile, u.GetKind(), u.GetName(), word, text, spec)
				}
			}
		}
	}
}

// Kubernetes evicts a Pod whose cache is larger than its volume, or whose files together are more than it may have: whatever the size of the
// cache, both have room for it.
func TestCacheSizeAndVolumesAgree(t *testing.T) {
	for _, profile := range Profiles {
		for size, want := range map[string]string{"": "3Gi of 4Gi and 6Gi", "3Gi": "3Gi of 4Gi and 6Gi", "20Gi": "20Gi of 21Gi and 23Gi"} {
			o := initial(Profile(profile))
			if o.CacheSize = size; o.Profile != Preview {
				o.Shards = []string{"a"}
			}
			found := 0
			for _, u := range objects(t, o) {
				if u.GetKind() != "Deployment" {
					continue
				}
				found++
				got := ""
				for _, arg := range texts(containerOf(u)["args"]) {
					if is, has := strings.CutPrefix(arg, "--cache-size="); has {
						got += is
					}
				}
				for _, v := range podOf(u)["volumes"].([]any) {
					if volume := v.(map[string]any); volume["name"] == "cache" {
						limit, _, _ := unstructured.NestedString(volume, "emptyDir", "sizeLimit")
						got += " of " + limit
					}
				}
				node, _, _ := unstructured.NestedString(containerOf(u), "resources", "limits", "ephemeral-storage")
				if got += " and " + node; got != want {
					t.Errorf("%s, --cache-size %q: %s has %s, want %s", profile, size, u.GetName(), got, want)
				}
			}
			if found == 0 {
				t.Errorf("%s has no workload", profile)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   func(*Options)
		want   string
	}{
		"Initial":       {"Without flags, the options are valid.", func(*Options) {}, ""},
		"Digest":        {"An image may have a digest.", func(o *Options) { o.Image = image }, ""},
		"NoTag":         {"An image without a tag is another one tomorrow.", func(o *Options) { o.Image = "example.org/headgate" }, "--image"},
		"PortOnly":      {"The port of a registry is no tag.", func(o *Options) { o.Image = "example.org:5000/headgate" }, "--image"},
		"Injected":      {"A value cannot add YAML.", func(o *Options) { o.Image = "a:b\nprivileged: true" }, "--image"},
		"KubeSystem":    {"The controller refuses Syncs of kube-system, and everybody reads the namespace default.", func(o *Options) { o.Namespace = "kube-system" }, "--namespace"},
		"Quote":         {"A name with a quote would end a text of the admission policy.", func(o *Options) { o.Syncs = []string{"a' || true || 'b"} }, "--sync"},
		"NoSyncs":       {"A list without names would be a right to all of them.", func(o *Options) { o.Profile, o.Syncs = Crossplane, nil }, "--sync"},
		"EmptyName":     {"An empty name is no name.", func(o *Options) { o.Syncs = []string{""} }, "--sync"},
		"Group":         {"A wildcard is no group.", func(o *Options) { o.CountGroups = []string{"*"} }, "--count-group"},
		"Profile":       {"An unknown profile has no rights to grant.", func(o *Options) { o.Profile = "admin" }, "--profile"},
		"Watch":         {"Only tenants have another namespace.", func(o *Options) { o.Profile, o.Watch = CRDs, "team-a" }, "--watch-namespace"},
		"AccountAlone":  {"An account belongs to a namespace.", func(o *Options) { o.Account = "deployer" }, "--service-account"},
		"WatchReserved": {"The controller acts as no account of kube-system.", func(o *Options) { o.Watch = "kube-system" }, "--watch-namespace"},
		"Shard":         {"The key of a shard is part of names.", func(o *Options) { o.Shards = []string{"team-a", "0"} }, ""},
		"ShardUpper":    {"No lease has this name.", func(o *Options) { o.Shards = []string{"Team"} }, "--shard"},
		"ShardEmpty":    {"Every shard has a name.", func(o *Options) { o.Shards = []string{""} }, "--shard"},
		"ShardInjected": {"A value cannot add YAML.", func(o *Options) { o.Shards = []string{"a\nprivileged: true"} }, "--shard"},
		"ShardLongest":  {"The name of its Service has 63 characters.", func(o *Options) { o.Shards = []string{strings.Repeat("a", 34)} }, ""},
		"ShardLong":     {"It has 64.", func(o *Options) { o.Shards = []string{strings.Repeat("a", 35)} }, "use at most 34"},
		"ShardEnds":     {"The Service of metrics of one would be the Service for webhooks of another.", func(o *Options) { o.Shards = []string{"a-webhooks"} }, "for webhooks"},
		"ShardWebhooks": {"This Service is that of the first Deployment.", func(o *Options) { o.Shards = []string{"webhooks"} }, "for webhooks"},
		"ShardTwice":    {"A Sync has one controller.", func(o *Options) { o.Shards = []string{"a", "b", "a"} }, "twice"},
		"ShardPreview":  {"A file has no shards.", func(o *Options) { o.Profile, o.Shards = Preview, []string{"a"} }, "--shard"},
		"Cache":         {"A cache has a size.", func(o *Options) { o.CacheSize = "20Gi" }, ""},
		"CacheMega":     {"The volume is larger by whole gibibytes.", func(o *Options) { o.CacheSize = "512Mi" }, "--cache-size"},
		"CacheNone":     {"Without a cache, nothing can be fetched.", func(o *Options) { o.CacheSize = "0Gi" }, "--cache-size"},
		"CacheInjected": {"A value cannot add YAML.", func(o *Options) { o.CacheSize = "3Gi\n- --approvals=all" }, "--cache-size"},
		"Port":          {"A port has a number.", func(o *Options) { o.EgressPorts = []int64{70000} }, "--egress-port"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := initial(Tenant)
			o.Image = "ghcr.io/headgate-dev/headgate:v1.0.0"
			tc.edit(&o)
			err := o.Check()
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nCheck() = %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}

// Lists and certificates of the options reach the Pod, and nothing else changes.
func TestSettings(t *testing.T) {
	o := initial(CRDs)
	o.PullSecrets, o.CA, o.EgressPorts = []string{"registry"}, "authorities", []int64{3000}
	o.Secrets, o.ProviderGroups, o.CountGroups = []string{"forge"}, []string{"aws.m.upbound.io"}, []string{"s3.aws.m.upbound.io", "ec2.aws.m.upbound.io"}
	before, after := byID(t, objects(t, initial(CRDs))), byID(t, objects(t, o))
	var changed []string
	for id, object := range after {
		if !cmp.Equal(before[id], object) {
			changed = append(changed, id)
		}
	}
	slices.Sort(changed)
	want := []string{
		"ClusterRole /headgate", "Deployment headgate-system/headgate-controller", "NetworkPolicy headgate-system/headgate-controller",
		"Role headgate-system/headgate-secrets", "RoleBinding headgate-system/headgate-secrets", "ValidatingAdmissionPolicy /headgate",
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), changed); diff != "" {
		t.Errorf("(-want +changed):\n%s", diff)
	}
	text, err := yaml.Marshal(after)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"SSL_CERT_DIR", "name: authorities", "imagePullSecrets:\n", "port: 3000", "- forge", "'aws.m.upbound.io/clusterproviderconfigs'", "- ec2.aws.m.upbound.io"} {
		if !strings.Contains(string(text), word) {
			t.Errorf("no %s", word)
		}
	}
}

// The page about security lists what the NetworkPolicies open.
func TestNetwork(t *testing.T) {
	o := initial(Tenant)
	o.Shards, o.EgressPorts = []string{"a"}, []int64{3000}
	previews := initial(Preview)
	previews.EgressPorts = o.EgressPorts
	everywhere := []string{"DNS", "22", "443", "6443", "3000"}
	flux := "9090 of app=source-controller in flux-system"
	want := map[string][]string{"headgate-controller": append(slices.Clone(everywhere), flux), "headgate-controller-a": append(slices.Clone(everywhere), flux), "headgate-preview": everywhere}
	got := map[string][]string{}
	for _, u := range append(objects(t, o), objects(t, previews)...) {
		var policy networking.NetworkPolicy
		if u.GetKind() != "NetworkPolicy" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &policy); err != nil {
			t.Fatal(err)
		}
		if len(policy.Spec.PolicyTypes) != 2 {
			t.Errorf("%s limits only %v", policy.Name, policy.Spec.PolicyTypes)
		}
		for _, rule := range policy.Spec.Egress {
			for _, port := range rule.Ports {
				opened := port.Port.String()
				for _, to := range rule.To {
					opened += fmt.Sprintf(" of app=%s in %s", to.PodSelector.MatchLabels["app"], to.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
				}
				if opened == "53" {
					opened = "DNS"
				}
				if !slices.Contains(got[policy.Name], opened) {
					got[policy.Name] = append(got[policy.Name], opened)
				}
			}
		}
	}
	for name := range want {
		slices.Sort(want[name])
		slices.Sort(got[name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is open (-want +got):\n%s", diff)
	}
}
