package install

import (
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/examples"
	"headgate.dev/headgate/fixtures/golden"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	for _, o := range []Options{initial(Tenant), team, initial(Observe), initial(Crossplane), initial(CRDs), initial(Preview)} {
		lines, err := Reach(objects(t, o))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("# " + strings.TrimSpace(string(o.Profile)+" "+o.Watch) + "\n" + strings.Join(lines, "\n") + "\n\n")
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
