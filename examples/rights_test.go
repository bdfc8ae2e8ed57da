package examples

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A process has the rights of a file, and no others. It remembers which of them it made use of.
type process struct {
	*testing.T

	admin  dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
	config *rest.Config // of the service account
	user   string
	sync   string // the Sync, without its type
	rights []right

	mu      sync.Mutex
	refused []string
}

// A right is one verb on one resource, of one rule of a role.
type right struct {
	namespace, group, resource, verb string // of a Role; "" of a ClusterRole

	names []string
	used  bool
}

// newProcess applies a file of examples/run with other words in place of some, and returns a process of its service account.
func newProcess(t *testing.T, config *rest.Config, file string, words ...string) *process {
	t.Helper()
	data, err := os.ReadFile("run/" + file)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{T: t, config: rest.CopyConfig(config)}
	p.reach(config)
	for _, u := range documents(t, strings.NewReplacer(words...).Replace(string(data))) {
		p.write(u)
		switch u.GetKind() {
		case "ServiceAccount":
			p.user = "system:serviceaccount:" + u.GetNamespace() + ":" + u.GetName()
		case "Role", "ClusterRole":
			var role rbac.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				for _, group := range rule.APIGroups {
					for _, resource := range rule.Resources {
						for _, verb := range rule.Verbs {
							if verb == "escalate" || verb == "bind" || verb == "impersonate" || verb == "*" || group == "*" {
								t.Errorf("%s: the verb %s on %s of the group %q", file, verb, resource, group)
							}
							p.rights = append(p.rights, right{namespace: u.GetNamespace(), group: group, resource: resource, verb: verb, names: rule.ResourceNames})
						}
					}
				}
			}
		}
	}
	p.config.Impersonate = rest.ImpersonationConfig{UserName: p.user}
	p.config = fixtures.Intercept(p.config, p.record)
	p.ready()
	return p
}

// reach connects what an administrator does.
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

func documents(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		raw, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		u := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(raw, &u.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		if u.Object != nil {
			all = append(all, u)
		}
	}
}

// write applies an object as an administrator does.
func (p *process) write(u *unstructured.Unstructured) {
	p.Helper()
	p.mapper.Reset() // a pass may have had the kind served
	mapping, err := p.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		p.Fatal(err)
	}
	if _, err := p.admin.Resource(mapping.Resource).Namespace(u.GetNamespace()).Apply(p.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "kubectl", Force: true}); err != nil {
		p.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
}

// ready waits until the authorizer and the admission policy know the file: a process may read its inventory and may not
// write any other ConfigMap.
func (p *process) ready() {
	p.Helper()
	config := rest.CopyConfig(p.config)
	config.WrapTransport = nil // this counts for nothing
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		p.Fatal(err)
	}
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("headgate-system")
	for end := time.Now().Add(fixtures.Patience); ; time.Sleep(50 * time.Millisecond) {
		_, read := maps.Get(p.Context(), "headgate-team-shop", metav1.GetOptions{})
		stray := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "stray"}}}
		_, written := maps.Create(p.Context(), stray, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsNotFound(read) && written != nil && strings.Contains(written.Error(), "does not write /configmaps stray") {
			return
		}
		if time.Now().After(end) {
			p.Fatalf("the rights are not in force: %v, %v", read, written)
		}
	}
}

// record marks the right that lets a request pass, and remembers the requests that none lets pass.
func (p *process) record(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(req)
	infos := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, failed := infos.NewRequestInfo(req)
	if err != nil || failed != nil || !info.IsResourceRequest {
		return resp, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if resp.StatusCode == http.StatusForbidden {
		p.refused = append(p.refused, fmt.Sprintf("%s %s/%s %s/%s", info.Verb, info.APIGroup, info.Resource, info.Namespace, info.Name))
		return resp, err
	}
	p.use(info, info.Verb)
	if info.Verb == "patch" && resp.StatusCode == http.StatusCreated { // an apply that creates needs both
		p.use(info, "create")
	}
	return resp, err
}

func (p *process) use(info *request.RequestInfo, verb string) {
	for i, r := range p.rights {
		switch {
		case r.verb != verb || r.group != info.APIGroup || r.resource != info.Resource && r.resource != "*":
		case r.namespace != "" && r.namespace != info.Namespace, len(r.names) > 0 && !slices.Contains(r.names, info.Name):
		default:
			p.rights[i].used = true
		}
	}
}

// ends fails on rights that are missing and on rights without a use.
func (p *process) ends(file string) {
	p.Helper()
	for _, request := range p.refused {
		p.Errorf("run/%s lacks a right: %s", file, request)
	}
	for _, r := range p.rights {
		large := r.verb == "delete" && r.resource == "configmaps" && r.namespace == "headgate-system" // of an inventory above 700 KB
		if !r.used && !large {
			p.Errorf("run/%s: nothing needs the right to %s %s/%s, in the namespace %q, of the names %q", file, r.verb, r.group, r.resource, r.namespace, r.names)
		}
	}
}

// pass makes one pass over a commit.
func (p *process) pass(commit fs.FS, exits int) {
	p.Helper()
	p.check(commit, func(r report.Report) bool { return r.Verdict.ExitCode == exits })
}

// passes makes one pass in which no object fails. That no controller of Crossplane acts is not at issue.
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
		p.Fatalf("exit code %d: %v\n%s\nrefused: %q", r.Verdict.ExitCode, err, &text, p.refused)
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

// follow watches as a loop does, until every right to watch was used, but for a resource that the sync does not own yet.
func (p *process) follow(but string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), 20*time.Second)
	defer cancel()
	var group sync.WaitGroup
	watcher := p.wired().Cluster
	group.Go(func() {
		watcher.Watch(ctx, func(map[manifest.ID]string) {}, func(err error) { p.Errorf("watch: %v", err) })
	})
	for p.waits("watch", but) && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
	}
	cancel()
	group.Wait()
}

// waits reports whether a right to a verb was not used yet.
func (p *process) waits(verb, but string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.rights, func(r right) bool { return r.verb == verb && r.resource != but && !r.used })
}

// inMemory is a Source with one commit.
type inMemory struct{ files fs.FS }

func (m inMemory) Fetch(context.Context, string) (render.Input, error) {
	return render.Input{Files: m.files, Revision: "abc", Source: render.SourceID{Repository: "example.org/platform"}}, nil
}

// locked proves that the admission policy of a file holds even where a binding grants the service account everything.
func (p *process) locked(stray ...*unstructured.Unstructured) {
	p.Helper()
	account := strings.Split(p.user, ":")
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
			if err == nil || time.Now().After(end) { // until then the authorizer trails
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

var (
	secret      = object("v1", "Secret", "default", "stray")
	ownSecret   = object("v1", "Secret", "headgate-system", "stray")
	clusterRole = object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "stray")
	settings    = object("v1", "ConfigMap", "default", "stray")
)

// tree is a commit with the files of a directory, and others in place of some; an empty one goes.
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

// The story of the quickstart where Headgate makes the CRDs: every right of the file is needed, and none is missing.
func TestRightsWhereHeadgateMakesTheCRDs(t *testing.T) {
	t.Parallel()
	p := newProcess(t, fixtures.ConfigOf(t, fixtures.OwnKubeconfig(t)), "rights-headgate.yaml",
		"s3.aws.m.upbound.io", "storage.tidewater.m.example.org", "aws.m.upbound.io", "tidewater.m.example.org")
	p.sync = "metadata: {name: platform}\nspec: {source: {repo: .}, crdOwner: Headgate, timeout: 1m, deactivation: WhenUnused}\n"
	const repository, config, policy = "quickstart/repository", "config/providerconfig.yaml", "policies/storage.yaml"
	p.pass(tree(t, repository, nil), report.ExitSuccess)
	p.follow("")

	configs := p.admin.Resource(schema.GroupVersionResource{Group: "tidewater.m.example.org", Version: "v1beta1", Resource: "clusterproviderconfigs"})
	hand := []byte(`{"spec":{"credentials":{"source":"None"}}}`)
	if _, err := configs.Patch(t.Context(), "default", types.MergePatchType, hand, metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	p.pass(tree(t, repository, nil), report.ExitSuccess)

	// An observed object needs the key, and what leaves is counted and deleted.
	observed := "apiVersion: tidewater.m.example.org/v1beta1\nkind: ClusterProviderConfig\nmetadata:\n  name: observed\n  annotations: {headgate.dev/management-policy: ObservableAndDeletable}\nspec: {credentials: {source: InjectedIdentity}}\n"
	p.write(documents(t, observed)[0])
	narrow := "apiVersion: apiextensions.crossplane.io/v1alpha1\nkind: ManagedResourceActivationPolicy\nmetadata: {name: storage}\nspec: {activate: [buckets.storage.tidewater.m.example.org]}\n"
	p.pass(tree(t, repository, map[string]string{config: observed, policy: narrow}), report.ExitSuccess)
	p.ends("rights-headgate.yaml")
	p.locked(secret, ownSecret, clusterRole, settings)
}

// The same where Crossplane makes the CRDs. Its kinds are served, and no controller acts on them, but that the deletion of
// definitions is reported.
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
			for _, u := range documents(t, string(data)) {
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
	admin.write(documents(t, composite)[0]) // which Crossplane makes of an XRD
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

	// The definition is active, and Crossplane owns its CRD. The pass that deletes the definition takes that from it.
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
	p.follow("") // the CRD that the definition left is of the sync now
	p.passes(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`)}))
	p.ends("rights-crossplane.yaml")
	p.locked(secret, ownSecret, clusterRole, settings)
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
	leaves := one("v1", "ConfigMap", "leaves", "data: {a: b}") + one("v1", "Secret", "database", "stringData: {password: hunter2}") +
		one("v1", "ServiceAccount", "leaves", "") + one(rbacV1, "Role", "leaves", "rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]") +
		one(rbacV1, "RoleBinding", "leaves", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leaves}\nsubjects: [{kind: ServiceAccount, name: leaves, namespace: shop}]")
	p.pass(tree(t, "", map[string]string{"all.yaml": stays + leaves}), report.ExitSuccess)
	p.follow("")
	p.pass(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays+leaves, `"1"`, `"2"`)}), report.ExitSuccess)
	p.pass(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`)}), report.ExitSuccess)
	p.ends("rights-objects.yaml")

	// Neither more rights than its own, nor a Secret that the policy does not name.
	more := one(rbacV1, "Role", "more", "rules: [{apiGroups: [\"\"], resources: [pods], verbs: [create]}]")
	p.pass(tree(t, "", map[string]string{"all.yaml": strings.ReplaceAll(stays, `"1"`, `"2"`) + more}), report.ExitFailed)
	other := object("v1", "Secret", "shop", "other")
	p.locked(secret, other, ownSecret, clusterRole, object("coordination.k8s.io/v1", "Lease", "shop", "stray"))
}
