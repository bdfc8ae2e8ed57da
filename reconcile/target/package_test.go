package target

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"headgate.dev/headgate/fixtures"
)

// A repository names an image in a registry that requires credentials, which are in a Secret. Headgate applies the CRDs of active
// definitions. The CRDs stay when the package can no longer be read.
func TestPackageWithPullSecret(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	config := fixtures.Config(t)
	core1, err := corev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core1.Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pulling"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	packages := fixtures.StartRegistry(t)
	packages.Want("robot", canary)
	crd := func(plural, kind string) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %[1]s.pulling.example.org}\nspec:\n  group: pulling.example.org\n"+
			"  names: {kind: %[2]s, plural: %[1]s}\n  scope: Namespaced\n  versions:\n  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n", plural, kind)}
	}
	packages.Push(t, "acme/provider-sea", "v1.0.0", fstest.MapFS{
		"crossplane.yaml": {Data: []byte("apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-sea}\nspec: {capabilities: [safe-start]}\n")},
		"boats.yaml":      crd("boats", "Boat"), "buoys.yaml": crd("buoys", "Buoy"),
	}, 0)
	secret := &core.Secret{ObjectMeta: metav1.ObjectMeta{Name: "pull"}, Data: map[string][]byte{
		".dockerconfigjson": []byte(`{"auths":{"` + packages.Host + `":{"username":"robot","password":"` + canary + `"}}}`),
	}}
	if _, err := core1.Secrets("pulling").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	repository := newRepo(t)
	repository.push(t, "provider.yaml", "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-sea}\nspec:\n  package: "+packages.Host+"/acme/provider-sea:v1.0.0\n  packagePullSecrets: [{name: pull}]\n")
	repository.push(t, "policy.yaml", "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: team}\nspec: {activate: [boats.pulling.example.org]}\n")
	s := decode(t, fmt.Sprintf("  source: {repo: %q}\n  crdOwner: Headgate\n", repository.dir))
	s.Namespace, s.Name = "pulling", "pulling"
	var hidden []string
	target, err := New(s, Surroundings{Cluster: config, Cache: t.TempDir(), Secret: func(value string) { hidden = append(hidden, value) }})
	if err != nil {
		t.Fatal(err)
	}
	live, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	made := func() (names []string) {
		t.Helper()
		l, err := live.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range l.Items {
			if strings.HasSuffix(item.GetName(), ".pulling.example.org") {
				names = append(names, item.GetName())
			}
		}
		return names
	}
	r, err := target.Once(t.Context())
	if err != nil || r.Summary.Created != 1 || len(r.Packages) != 1 {
		t.Fatalf("One CRD of the package is made: %v\n%+v", err, r)
	}
	if got := made(); !slices.Equal(got, []string{"boats.pulling.example.org"}) {
		t.Errorf("%q are there", got)
	}
	if !slices.Contains(hidden, canary) {
		t.Error("what masks logs has not heard of the password")
	}

	packages.Fail(http.StatusServiceUnavailable)
	if r, err = target.Once(t.Context()); err != nil || r.Summary.Updated+r.Summary.Pruned > 0 {
		t.Errorf("A registry that is down stops no pass: %v\n%+v", err, r)
	}
	packages.Fail(0)
	repository.push(t, "provider.yaml", "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: provider-sea}\nspec:\n  package: "+packages.Host+"/acme/provider-sea:v9.9.9\n")
	if r, err = target.Once(t.Context()); err == nil || !strings.Contains(r.Verdict.Activation.Description, "provider.yaml:5: package "+packages.Host+"/acme/provider-sea:v9.9.9 cannot be read") {
		t.Errorf("A package that is nowhere is an error of the commit: %v\n%+v", err, r.Verdict)
	}
	if got := made(); len(got) != 1 {
		t.Errorf("what is not known is pruned: %q are left", got)
	}
}
