package examples

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A process runs Headgate with only the rights of one file.
type process struct {
	*testing.T

	account *fixtures.Account
	admin   dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	config  *rest.Config // for the service account
	sync    string       // the Sync without apiVersion and kind
}

// newProcess applies a file of examples/run after replacing words, pairs of old and new strings. It returns a process with the
// rights of the service account.
func newProcess(t *testing.T, config *rest.Config, file string, words ...string) *process {
	t.Helper()
	account := fixtures.Grant(t, config, file, words...)
	p := &process{T: t, account: account, config: account.Config()}
	p.reach(config)
	return p
}

// reach creates the clients of an administrator.
func (p *process) reach(config *rest.Config) {
	p.Helper()
	var err error
	if p.admin, err = dynamic.NewForConfig(config); err != nil {
		p.Fatal(err)
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		p.Fatal(err)
	}
	p.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))
}

// write applies an object as an administrator.
func (p *process) write(u *unstructured.Unstructured) {
	p.Helper()
	p.mapper.Reset() // a pass may have made the kind served
	mapping, err := p.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := p.admin.Resource(mapping.Resource).Namespace(u.GetNamespace()).Apply(p.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "kubectl", Force: true}); err != nil {
		p.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
}

// ends fails if a right is missing or unused.
func (p *process) ends(file string) {
	p.Helper()
	for _, request := range p.account.Refused() {
		p.Errorf("run/%s lacks a right: %s", file, request)
	}
	for _, r := range p.account.Unused() {
		p.Errorf("run/%s: nothing needs the right to %s", file, r)
	}
}

// pass makes one pass over a commit and expects an exit code.
func (p *process) pass(commit fs.FS, exits int) {
	p.Helper()
	p.check(commit, func(r report.Report) bool { return r.Verdict.ExitCode == exits })
}

// passes makes one pass and expects no failed or held object. Checks may fail, because no Crossplane controller runs.
func (p *process) passes(commit fs.FS) {
	p.Helper()
	p.check(commit, func(r report.Report) bool { return r.Summary.Failed == 0 && r.Summary.Held == 0 })
}

func (p *process) check(commit fs.FS, good func(report.Report) bool) {
	p.Helper()
	w := p.wired()
	w.Source = inMemory{commit}
	r, err := w.Run(p.Context(), "")
	if err != nil || !good(r) {
		var text bytes.Buffer
		_ = report.Text{}.Write(&text, r)
		p.Fatalf("exit code %d: %v\n%s\nrefused: %q", r.Verdict.ExitCode, err, &text, p.account.Refused())
	}
}

func (p *process) wired() *target.Wired {
	p.Helper()
	syncs, err := api.Decode([]byte("apiVersion: headgate.dev/v1alpha1\nkind: Sync\n" + p.sync))
	if err != nil {
		p.Fatal(err)
	}
	w, err := target.Wire(syncs[0], nil, target.Surroundings{Cluster: p.config}, target.How{})
	if err != nil {
		p.Fatal(err)
	}
	w.Grace = time.Second
	return w
}

// follow watches like the loop until every right to watch was used. It does not wait for resource but, which the sync does not own
// yet.
func (p *process) follow(but string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Second)
	defer cancel()
	var group sync.WaitGroup
	watcher := p.wired().Cluster
	group.Go(func() {
		watcher.Watch(ctx, func(map[manifest.ID]string) {}, func(what string, err error) {
			if err != nil {
				p.Errorf("watch of %s: %v", what, err)
			}
		})
	})
	for p.waits("watch", but) && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	group.Wait()
}

// waits reports whether a right to the verb is still unused, ignoring resource but.
func (p *process) waits(verb, but string) bool {
	return slices.ContainsFunc(p.account.Unused(), func(r fixtures.Right) bool { return r.Verb == verb && r.Resource != but })
}

// unserve deletes a CRD and waits until discovery no longer lists its kind.
func (p *process) unserve(crd string) {
	p.Helper()
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if err := p.admin.Resource(crds).Delete(p.Context(), crd, metav1.DeleteOptions{}); err != nil {
		p.Fatal(err)
	}
	plural, group, _ := strings.Cut(crd, ".")
	for end := time.Now().Add(fixtures.Patience); ; time.Sleep(50 * time.Millisecond) {
		p.mapper.Reset()
		_, err := p.mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: plural})
		if meta.IsNoMatchError(err) {
			return
		}
		if time.Now().After(end) {
			p.Fatalf("%s is still served: %v", crd, err)
		}
	}
}

// long is a name too long for a key of cli-utils' inventory, so the inventory stores the object apart.
var long = strings.Repeat("a", 240)

// inMemory is a Source with one commit.
type inMemory struct{ files fs.FS }

func (m inMemory) Fetch(context.Context, string) (render.Input, error) {
	return render.Input{Files: m.files, Revision: "abc", Source: render.SourceID{Repository: "example.org/platform"}}, nil
}

// locked proves that the admission policy of a file denies stray objects even if a binding grants the service account everything.
func (p *process) locked(stray ...*unstructured.Unstructured) {
	p.Helper()
	account := strings.Split(p.account.User, ":")
	binding := map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "too-much"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account[3], "namespace": account[2]}},
	}
	p.write(&unstructured.Unstructured{Object: binding})
	config := rest.CopyConfig(p.config)
	config.WrapTransport = nil
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		p.Fatal(err)
	}
	for _, u := range stray {
		mapping, err := p.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err != nil {
			p.Fatal(err)
		}
		for end := time.Now().Add(fixtures.Patience); ; time.Sleep(50 * time.Millisecond) {
			_, err := client.Resource(mapping.Resource).Namespace(u.GetNamespace()).Create(p.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil && strings.Contains(err.Error(), "does not write") {
				break
			}
			if err == nil || apierrors.IsAlreadyExists(err) || time.Now().After(end) { // other errors are expected until the authorizer sees the binding
				p.Fatalf("%s %s/%s is written: %v", u.GetKind(), u.GetNamespace(), u.GetName(), err)
			}
		}
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// token returns a Secret into which the API server puts a token of a service account.
func token(namespace, name, account string) *unstructured.Unstructured {
	u := object("v1", "Secret", namespace, name)
	u.Object["type"] = "kubernetes.io/service-account-token"
	u.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": account})
	return u
}

var (
	secret      = object("v1", "Secret", "default", "stray")
	ownToken    = token("headgate-system", "headgate-team-shop", "headgate")
	ownSecret   = object("v1", "Secret", "headgate-system", "stray")
	clusterRole = object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "stray")
	settings    = object("v1", "ConfigMap", "default", "stray")
)

// tree returns a commit with the files of a directory. more adds or replaces files; an empty text removes one.
func tree(t *testing.T, dir string, more map[string]string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	if dir != "" {
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(os.DirFS(dir), path)
			files[path] = &fstest.MapFile{Data: data}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range more {
		if delete(files, path); text != "" {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return files
}

// The quickstart story with CRDs owned by Headgate uses every right of the file and needs no other.
func TestRightsWhereHeadgateMakesTheCRDs(t *testing.T) {
	t.Parallel()
	p := newProcess(t, fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t)), "rights-headgate.yaml",
		"s3.aws.m.upbound.io", "storage.tidewater.m.example.org", "aws.m.upbound.io", "tidewater.m.example.org")
	p.sync = "metadata: {name: platform}\nspec: {source: {repo: .}, crdOwner: Headgate, timeout: 1m, maxPrunes: 20, deactivation: WhenUnused}\n"
	const repository, config, policy = "quickstart/repository", "config/providerconfig.yaml", "policies/storage.yaml"
	p.pass(tree(t, repository, nil), report.ExitSuccess)
	p.follow("")

	configs := p.admin.Resource(schema.GroupVersionResource{Group: "tidewater.m.example.org", Version: "v1beta1", Resource: "clusterproviderconfigs"})
	hand := []byte(`{"spec":{"credentials":{"source":"None"}}}`)
	if _, err := configs.Patch(t.Context(), "default", types.MergePatchType, hand, metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	p.pass(tree(t, repository, nil), report.ExitSuccess)

	// Another client deletes a CRD, and with it the commit's object.
	p.unserve("clusterproviderconfigs.tidewater.m.example.org")
	another := "apiVersion: tidewater.m.example.org/v1beta1\nkind: ClusterProviderConfig\nmetadata: {name: " + long + "}\nspec: {credentials: {source: InjectedIdentity}}\n"
	p.pass(tree(t, repository, map[string]string{"config/another.yaml": another}), report.ExitSuccess)

	// An observe-only object needs the key. Objects that leave the commit are counted and deleted.
	observed := "apiVersion: tidewater.m.example.org/v1beta1\nkind: ClusterProviderConfig\nmetadata:\n  name: observed\n  annotations: {headgate.dev/management-policy: ObservableAndDeletable}\nspec: {credentials: {source: InjectedIdentity}}\n"
	p.write(fixtures.Documents(t, observed)[0])
	narrow := "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: storage}\nspec: {activate: [buckets.storage.tidewater.m.example.org]}\n"
	p.pass(tree(t, repository, map[string]string{config: observed, policy: narrow}), report.ExitSuccess)
	p.ends("rights-headgate.yaml")
	p.locked(secret, ownSecret, ownToken, clusterRole, settings)
}

// The quickstart story with CRDs owned by Crossplane. Their kinds are served, but no controller acts on them, except that the
// deletion of definitions is reported.
//
//test:long
func TestRightsWhereCrossplaneMakesTheCRDs(t *testing.T) {
	t.Parallel()
	config := fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t))
	admin := &process{T: t}
	admin.reach(config)
	var served []string
	for _, directory := range []fs.FS{fixtures.Corpus(t, "crossplane-core"), os.DirFS("quickstart/repository/provider-tidewater/crds")} {
		err := fs.WalkDir(directory, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".yaml") {
				return err
			}
			data, err := fs.ReadFile(directory, name)
			if err != nil {
				return err
			}
			for _, u := range fixtures.Documents(t, string(data)) {
				if u.GetKind() == "CustomResourceDefinition" {
					admin.write(u)
					served = append(served, u.GetName())
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	composite := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: shops.storage.tidewater.m.example.org}\nspec: {group: storage.tidewater.m.example.org, names: {kind: Shop, plural: shops}, scope: Cluster, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
	admin.write(fixtures.Documents(t, composite)[0]) // Crossplane creates it for an XRD
	fixtures.Served(t, config, append(served, "shops.storage.tidewater.m.example.org")...)
	fixtures.ReportTerminating(t, admin.admin)
	p := newProcess(t, config, "rights-crossplane.yaml", "s3.aws.m.upbound.io", "storage.tidewater.m.example.org", "aws.m.upbound.io", "tidewater.m.example.org")

	p.sync = "metadata: {name: team-shop}\nspec: {source: {repo: .}, crdOwner: Crossplane, timeout: 3s, maxPrunes: 20, deactivation: WhenUnused}\n"
	const buckets = "buckets.storage.tidewater.m.example.org"
	one := func(apiVersion, kind, name, spec string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: " + name + ", labels: {round: \"1\"}}\nspec: " + spec + "\n---\n"
	}
	const pkg, extensions = "pkg.crossplane.io/", "apiextensions.crossplane.io/"
	stays := one(extensions+"v1alpha1", "ManagedResourceActivationPolicy", "stays", "{activate: [none.example.org]}") +
		one(extensions+"v1alpha1", "ManagedResourceDefinition", "boats.example.org", "{group: example.org, names: {kind: Boat, plural: boats}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}")
	leaves := one(extensions+"v1alpha1", "ManagedResourceActivationPolicy", "leaves", "{activate: [none.example.org]}") +
		one(extensions+"v1alpha1", "ManagedResourceDefinition", buckets, "{group: storage.tidewater.m.example.org, names: {kind: Bucket, plural: buckets}, scope: Namespaced, versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}") +
		one(extensions+"v2", "CompositeResourceDefinition", "shops.storage.tidewater.m.example.org", "{group: storage.tidewater.m.example.org, names: {kind: Shop, plural: shops}, versions: [{name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}]}") +
		one(extensions+"v1", "Composition", "shops", "{compositeTypeRef: {apiVersion: storage.tidewater.m.example.org/v1, kind: Shop}, mode: Pipeline, pipeline: [{step: a, functionRef: {name: leaves}}]}") +
		one(pkg+"v1", "Provider", "leaves", "{package: \"registry.example.org/a/provider:v1\"}") +
		one(pkg+"v1", "Configuration", "leaves", "{package: \"registry.example.org/a/configuration:v1\"}") +
		one(pkg+"v1", "Function", "leaves", "{package: \"registry.example.org/a/function:v1\"}") +
		one(pkg+"v1beta1", "ImageConfig", "leaves", "{matchImages: [{prefix: registry.example.org}]}") +
		one(pkg+"v1beta1", "DeploymentRuntimeConfig", "leaves", "{}") +
		one("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.storage.tidewater.m.example.org", "{group: storage.tidewater.m.example.org, names: {kind: Thing, plural: things}, scope: Cluster, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}") +
		one("tidewater.m.example.org/v1beta1", "ClusterProviderConfig", "leaves", "{credentials: {source: None}}")
	p.passes(tree(t, "", map[string]string{"all.yaml": stays + leaves}))
	p.follow("customresourcedefinitions")
	p.passes(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays+leaves, `"1"`, `"2"`)}))

	// The definition is active, and Crossplane owns its CRD. The pass that deletes the definition removes Crossplane's ownership.
	mrds := admin.admin.Resource(schema.GroupVersionResource{Group: "apiextensions.crossplane.io", Version: "v1alpha1", Resource: "managedresourcedefinitions"})
	mrd, err := mrds.Patch(t.Context(), buckets, types.MergePatchType, []byte(`{"spec":{"state":"Active"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	established := []byte(`{"status":{"conditions":[{"type":"Established","status":"True","reason":"EstablishedManagedResource","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	if _, err := mrds.Patch(t.Context(), buckets, types.MergePatchType, established, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	owner := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":"apiextensions.crossplane.io/v1alpha1","kind":"ManagedResourceDefinition","name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}]}}`, buckets, mrd.GetUID())
	crds := admin.admin.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := crds.Patch(t.Context(), buckets, types.MergePatchType, owner, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p.passes(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`)}))
	p.follow("") // the sync now owns the CRD that remained after its definition
	p.passes(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`)}))

	// A kind disappears from the cluster, and then its object leaves the commit.
	late := one("tidewater.m.example.org/v1beta1", "ClusterProviderConfig", long, "{credentials: {source: None}}")
	p.passes(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`) + "\n---\n" + late}))
	p.unserve("clusterproviderconfigs.tidewater.m.example.org")
	p.passes(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`)}))
	p.ends("rights-crossplane.yaml")
	p.locked(secret, ownSecret, ownToken, clusterRole, settings)
}

// The second process writes Secrets and RBAC in one namespace.
func TestRightsToWriteObjects(t *testing.T) {
	t.Parallel()
	p := newProcess(t, fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t)), "rights-objects.yaml")
	p.sync = "metadata: {name: team-shop}\nspec: {source: {repo: .}, crdOwner: Headgate, timeout: 1m, maxPrunes: 20}\n"
	one := func(apiVersion, kind, name, rest string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: shop, labels: {round: \"1\"}}\n" + rest + "\n---\n"
	}
	const rbacV1 = "rbac.authorization.k8s.io/v1"
	stays := one("v1", "ConfigMap", "stays", "data: {a: b}")
	leaves := one("v1", "ConfigMap", long, "data: {a: b}") + one("v1", "Secret", "database", "stringData: {password: hunter2}") +
		one("v1", "ServiceAccount", "leaves", "") + one(rbacV1, "Role", "leaves", "rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]") +
		one(rbacV1, "RoleBinding", "leaves", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leaves}\nsubjects: [{kind: ServiceAccount, name: leaves, namespace: shop}]")
	p.pass(tree(t, "", map[string]string{"all.yaml": stays + leaves}), report.ExitSuccess)
	p.follow("")
	p.pass(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays+leaves, `"1"`, `"2"`)}), report.ExitSuccess)
	p.pass(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`)}), report.ExitSuccess)
	p.ends("rights-objects.yaml")

	// Headgate can grant no more rights than its own, and write no Secret that the policy does not name.
	more := one(rbacV1, "Role", "more", "rules: [{apiGroups: [\"\"], resources: [pods], verbs: [create]}]")
	p.pass(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`) + more}), report.ExitFailed)
	other := object("v1", "Secret", "shop", "other")
	p.locked(secret, other, ownSecret, ownToken, token("shop", "database", "default"), clusterRole, object("coordination.k8s.io/v1", "Lease", "shop", "stray"))
}
