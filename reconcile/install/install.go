// Package install makes the objects of Headgate's own installation, from the manifests of examples. It decides which of them belong to a
// profile, what the account of an installation can do, and what an installation does with what is in the cluster already. It asks no
// cluster: package cluster reads and writes.
package install

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// A Profile is what an installation may do.
type Profile string

// The profiles. Those other than Preview run the controller.
const (
	Tenant     Profile = "tenant"     // acts as the service accounts that namespaces let it act as
	Observe    Profile = "observe"    // gets, lists and watches
	Crossplane Profile = "crossplane" // writes definitions, policies and packages
	CRDs       Profile = "crds"       // writes CRDs
	Preview    Profile = "preview"    // only previews pull requests, and has no rights in the cluster
)

// Profiles lists the profiles, the default first.
var Profiles = []string{string(Tenant), string(Observe), string(Crossplane), string(CRDs), string(Preview)}

// accounts holds the service account as which the controller acts, for the profiles that have one in their own namespace.
var accounts = map[Profile]string{Observe: "headgate-observer", Crossplane: "headgate", CRDs: "headgate"}

// Options configure an installation. Empty lists and texts leave something out.
type Options struct {
	Profile   Profile
	Namespace string // of the installation

	// Watch is the only namespace whose Syncs a controller of the profile Tenant runs; "" for all. Account is its service account, as which the
	// controller may act. The other profiles run the Syncs of their own namespace.
	Watch, Account string

	Shards []string // values of the label ShardKey; each has a Deployment of its own

	Image       string   // with its tag or digest
	PullSecrets []string // names of Secrets for the registry of the image
	CA          string   // name of a ConfigMap with certificates of authorities, besides those of the image
	EgressPorts []int64  // TCP ports that the NetworkPolicies open besides 22, 53, 443 and 6443
	CacheSize   string   // what a Pod keeps in its cache, in whole gibibytes: 20Gi; "" for DefaultCacheSize

	Syncs          []string // names of Syncs, for the bookkeeping of Crossplane and CRDs
	Secrets        []string // names of Secrets that Syncs name
	ProviderGroups []string // groups whose ClusterProviderConfigs commits hold
	CountGroups    []string // groups whose objects Headgate may list, to count what a deletion would reach

	SyncFile string // content of the file of Syncs of Preview; "" if the user creates the ConfigMap
}

// DefaultNamespace is the namespace of the manifests.
const DefaultNamespace = "headgate-system"

// DefaultCacheSize is the size of the cache in the manifests.
const DefaultCacheSize = "3Gi"

// Deployment is the name of the Deployment of the controller; PreviewDeployment is that of Preview.
const (
	Deployment        = "headgate-controller"
	PreviewDeployment = "headgate-preview"
)

// The labels of every object.
const (
	PartOf   = "app.kubernetes.io/part-of"
	Instance = "app.kubernetes.io/instance" // the namespace of the installation
)

// reserved are the namespaces of Kubernetes itself.
var reserved = []string{"kube-system", "kube-public", "kube-node-lease", "default"}

// Check returns an error for options that make no installation.
func (o Options) Check() error {
	wrong := func(flag, value, why string) error { return fmt.Errorf("--%s: %q %s", flag, value, why) }
	if !slices.Contains(Profiles, string(o.Profile)) {
		return wrong("profile", string(o.Profile), "is none of "+strings.Join(Profiles, ", "))
	}
	for flag, namespace := range map[string]string{"namespace": o.Namespace, "watch-namespace": o.Watch} {
		if namespace != "" && len(validation.IsDNS1123Label(namespace)) > 0 {
			return wrong(flag, namespace, "cannot be a namespace; use lower case letters, digits and '-', as in team-a")
		}
		if slices.Contains(reserved, namespace) && (flag == "namespace" || namespace != "default") {
			return wrong(flag, namespace, "belongs to Kubernetes; use a namespace of its own, such as "+DefaultNamespace)
		}
	}
	if o.Profile != Tenant && (o.Watch != "" || o.Account != "") {
		return fmt.Errorf("--watch-namespace and --service-account are for the profile %s; %s has its own namespace", Tenant, o.Profile)
	}
	if o.Account != "" && o.Watch == "" {
		return wrong("service-account", o.Account, "belongs to a namespace; name it with --watch-namespace")
	}
	for flag, values := range map[string][]string{
		"sync": o.Syncs, "secret": o.Secrets, "pull-secret": o.PullSecrets, "provider-group": o.ProviderGroups, "count-group": o.CountGroups,
		"ca-config-map": {o.CA}, "service-account": {o.Account},
	} {
		optional := flag == "ca-config-map" || flag == "service-account"
		for _, value := range values {
			if (value != "" || !optional) && len(validation.IsDNS1123Subdomain(value)) > 0 {
				return wrong(flag, value, "is no name; use lower case letters, digits, '-' and '.'")
			}
		}
	}
	if err := o.checkShards(); err != nil {
		return err
	}
	if len(o.Syncs) == 0 && (o.Profile == Crossplane || o.Profile == CRDs) {
		return fmt.Errorf("--sync: name the Syncs of the profile %s", o.Profile)
	}
	if o.CacheSize != "" && !cacheSizes.MatchString(o.CacheSize) {
		return wrong("cache-size", o.CacheSize, "is no whole number of gibibytes; write one as 20Gi")
	}
	for _, port := range o.EgressPorts {
		if len(validation.IsValidPortNum(int(port))) > 0 {
			return wrong("egress-port", fmt.Sprint(port), "is no port")
		}
	}
	if !reference.MatchString(o.Image) {
		return wrong("image", o.Image, "is no image; write HOST/PATH:TAG or HOST/PATH@sha256:DIGEST")
	}
	return nil
}

// reference matches an image with a tag or a digest.
var reference = regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9.:_/-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*|@sha256:[0-9a-f]{64})$`)

// Objects returns the objects of an installation in the order in which they are applied. files holds the manifests of examples.
func Objects(files fs.FS, o Options) ([]*unstructured.Unstructured, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	return o.objects(files)
}

// workload are the manifests of what runs. A shard has a copy of them.
var workload = []string{"controller/network.yaml", "controller/deployment.yaml"}

func (o Options) objects(files fs.FS) ([]*unstructured.Unstructured, error) {
	names := []string{"controller/namespace.yaml"}
	if o.Profile == Preview {
		names = append(names, "run/base/networkpolicy.yaml", "run/base/deployment.yaml")
	} else {
		names = append(names, "controller/crds/headgate.dev_syncs.yaml", "controller/rights.yaml")
		names = append(names, map[Profile][]string{
			Observe: {"observe/rbac.yaml"}, Crossplane: {"run/rights-crossplane.yaml"}, CRDs: {"run/rights-headgate.yaml"},
		}[o.Profile]...)
		names = append(names, "controller/approvals.yaml")
		names = append(names, workload...)
	}
	var all []*unstructured.Unstructured
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		text = o.withCache(text)
		if slices.Contains(workload, name) {
			text = o.withShards(text)
		}
		read, err := decode(o.inNamespace(string(text)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, u := range read {
			if u.GetKind() != "Namespace" || len(all) == 0 { // each file of rights repeats the namespace
				all = append(all, u)
			}
		}
	}
	if o.Profile == Preview {
		all = o.asPreview(all)
	} else {
		all = o.asController(all)
	}
	all = append(all, o.secretRights()...)
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return weight(a) - weight(b) }) // the workload starts with its rights
	for _, u := range all {
		o.adapt(u)
	}
	return all, nil
}

// cacheSizes matches what CacheSize may be.
var cacheSizes = regexp.MustCompile(`^[1-9][0-9]{0,3}Gi$`)

// withCache returns the manifests of what runs with another size of the cache. Its volume has 1Gi more than Headgate keeps in it, and the Pod
// has 2Gi more than that, or Kubernetes would evict it.
func (o Options) withCache(text []byte) []byte {
	var size int
	if _, err := fmt.Sscanf(o.CacheSize, "%dGi", &size); err != nil { // the manifests have the default
		return text
	}
	room := func(more int) string { return fmt.Sprintf("%dGi", size+more) }
	return []byte(strings.NewReplacer("--cache-size=3Gi", "--cache-size="+room(0), "sizeLimit: 4Gi", "sizeLimit: "+room(1), "ephemeral-storage: 6Gi", "ephemeral-storage: "+room(3)).Replace(string(text)))
}

// weight orders objects: a workload comes last.
func weight(u *unstructured.Unstructured) int {
	if u.GetKind() == "Deployment" {
		return 1
	}
	return 0
}

// inNamespace replaces the namespace and the names of Syncs in a manifest.
func (o Options) inNamespace(text string) string {
	var plain, quoted []string
	for _, name := range o.Syncs {
		plain, quoted = append(plain, "headgate-"+name), append(quoted, "'headgate-"+name+"'")
	}
	var configs strings.Builder
	for _, group := range o.ProviderGroups {
		configs.WriteString(", '" + group + "/clusterproviderconfigs'")
	}
	return strings.NewReplacer(
		DefaultNamespace, o.Namespace,
		"headgate-platform, headgate-team-shop", strings.Join(plain, ", "),
		"'headgate-platform', 'headgate-team-shop'", strings.Join(quoted, ", "),
		", 'aws.m.upbound.io/clusterproviderconfigs'", configs.String(),
	).Replace(text)
}

func decode(text string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			return nil, err
		}
		if u.Object != nil {
			all = append(all, u)
		}
	}
	return all, nil
}

// asController adds what a profile needs besides the controller itself.
func (o Options) asController(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	watched, account := o.Watch, o.Account
	var args []any
	if own := accounts[o.Profile]; own != "" {
		watched, account = o.Namespace, own
		args = append(args, "--default-service-account="+own)
	}
	if watched != "" {
		args = append(args, "--watch-namespace="+watched)
		all = o.confine(all, watched)
	}
	if account != "" {
		rule := rule("", "serviceaccounts", "impersonate", account)
		all = append(all, o.grant("headgate-impersonate", watched, Deployment, rule)...)
	}
	for _, u := range all {
		switch u.GetKind() {
		case "Deployment":
			container := containerOf(u)
			given, _ := container["args"].([]any)
			container["args"] = append(slices.Concat(given, args), o.selector(u)...)
		case "ClusterRole":
			o.chooseGroups(u)
		case "Role":
			o.nameShards(u)
		}
	}
	return all
}

// confine lets the controller read and write Syncs in one namespace only. It moves the rules for kinds with a namespace from its ClusterRole to a
// Role there.
func (o Options) confine(all []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	var inside []any
	for _, u := range all {
		if u.GetKind() != "ClusterRole" || u.GetName() != Deployment {
			continue
		}
		var everywhere []any
		rules, _ := u.Object["rules"].([]any)
		for _, r := range rules {
			if isForCluster(r) {
				everywhere = append(everywhere, r)
			} else {
				inside = append(inside, r)
			}
		}
		u.Object["rules"] = everywhere
	}
	if namespace != o.Namespace { // the election of the leader makes Events, too
		events := map[string]any{"apiGroups": []any{""}, "resources": []any{"events"}, "verbs": []any{"create"}}
		all = append(all, o.grant("headgate-controller-events", o.Namespace, Deployment, events)...)
	}
	return append(all, o.grant("headgate-controller-syncs", namespace, Deployment, inside...)...)
}

// isForCluster reports whether a rule is for kinds without a namespace.
func isForCluster(rule any) bool {
	r, _ := rule.(map[string]any)
	return slices.ContainsFunc(texts(r["resources"]), func(resource string) bool {
		return slices.Contains([]string{"namespaces", "customresourcedefinitions", "validatingadmissionpolicies", "validatingadmissionpolicybindings"}, resource)
	})
}

// chooseGroups replaces the groups of the example's provider by those of the options. Rules without groups are left out.
func (o Options) chooseGroups(role *unstructured.Unstructured) {
	groups := map[string][]string{"aws.m.upbound.io": o.ProviderGroups, "s3.aws.m.upbound.io": o.CountGroups}
	rules, _ := role.Object["rules"].([]any)
	role.Object["rules"] = slices.DeleteFunc(rules, func(one any) bool {
		r, _ := one.(map[string]any)
		of := texts(r["apiGroups"])
		if len(of) != 1 {
			return false
		}
		chosen, example := groups[of[0]]
		if example {
			r["apiGroups"] = values(chosen)
		}
		return example && len(chosen) == 0
	})
}

// secretRights lets Syncs read the Secrets that they name.
func (o Options) secretRights() []*unstructured.Unstructured {
	account := accounts[o.Profile]
	if account == "" || len(o.Secrets) == 0 {
		return nil
	}
	return o.grant("headgate-secrets", o.Namespace, account, rule("", "secrets", "get", o.Secrets...))
}

// grant returns a Role, and its binding to a service account of the installation.
func (o Options) grant(name, namespace, account string, rules ...any) []*unstructured.Unstructured {
	meta := func() map[string]any { return map[string]any{"name": name, "namespace": namespace} }
	const group, version = "rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"
	return []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": version, "kind": "Role", "metadata": meta(), "rules": rules}},
		{Object: map[string]any{
			"apiVersion": version, "kind": "RoleBinding", "metadata": meta(),
			"roleRef":  map[string]any{"apiGroup": group, "kind": "Role", "name": name},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": o.Namespace}},
		}},
	}
}

func rule(group, resource, verb string, names ...string) any {
	return map[string]any{"apiGroups": []any{group}, "resources": []any{resource}, "resourceNames": values(names), "verbs": []any{verb}}
}

// asPreview turns the workload of examples/run into one that only previews. Its account has no rights, and no token.
func (o Options) asPreview(all []*unstructured.Unstructured) []*unstructured.Unstructured {
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": false}}
	for _, u := range append(all, account) {
		if u.GetKind() == "Namespace" {
			continue
		}
		u.SetName(PreviewDeployment)
		u.SetNamespace(o.Namespace)
		for _, at := range [][]string{
			{"spec", "podSelector", "matchLabels"}, {"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"},
		} {
			if labels, has, _ := unstructured.NestedFieldNoCopy(u.Object, at...); has {
				labels.(map[string]any)["app.kubernetes.io/name"] = PreviewDeployment //nolint:forcetypeassert // a manifest of ours
			}
		}
	}
	all = slices.Insert(all, 1, account)
	for _, u := range all {
		if u.GetKind() != "Deployment" {
			continue
		}
		pod := podOf(u)
		pod["serviceAccountName"], pod["automountServiceAccountToken"] = PreviewDeployment, false
		container := containerOf(u)
		args, _ := container["args"].([]any)
		container["args"] = append(args, "--previews=fleet")
		_ = unstructured.SetNestedField(container, "3Gi", "resources", "limits", "memory") // previews run in processes of their own, 1 GiB each
	}
	if o.SyncFile != "" {
		file := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"sync.yaml": o.SyncFile}}}
		file.SetName("headgate-sync")
		file.SetNamespace(o.Namespace)
		all = slices.Insert(all, 2, file)
	}
	return all
}

// adapt gives an object the labels and the name of the installation, and a workload its image and what it mounts.
func (o Options) adapt(u *unstructured.Unstructured) {
	labels := map[string]string{}
	maps.Copy(labels, u.GetLabels())
	labels[PartOf], labels[Instance] = "headgate", o.Namespace
	u.SetLabels(labels)
	o.rename(u)
	switch u.GetKind() {
	case "Deployment":
		o.adaptPod(podOf(u))
	case "NetworkPolicy":
		egress, _, _ := unstructured.NestedSlice(u.Object, "spec", "egress")
		if len(o.EgressPorts) > 0 {
			var ports []any
			for _, port := range o.EgressPorts {
				ports = append(ports, map[string]any{"protocol": "TCP", "port": port})
			}
			_ = unstructured.SetNestedSlice(u.Object, append(egress, map[string]any{"ports": ports}), "spec", "egress")
		}
	}
}

// shared are the objects without a namespace that all installations of a cluster share.
var shared = []string{"syncs.headgate.dev", "headgate-approvals", "headgate-view", "headgate-approve"}

// IsShared reports whether all installations of a cluster share an object.
func IsShared(u *unstructured.Unstructured) bool {
	return u.GetNamespace() == "" && slices.Contains(shared, u.GetName())
}

// suffix ends the names of objects without a namespace, so that installations of several namespaces have their own.
func suffix(namespace string) string {
	if namespace == DefaultNamespace {
		return ""
	}
	return "-" + namespace
}

// rename gives an object without a namespace, and what refers to it, a name of its own.
func (o Options) rename(u *unstructured.Unstructured) {
	end := suffix(o.Namespace)
	if u.GetNamespace() == "" && u.GetKind() != "Namespace" && !IsShared(u) {
		u.SetName(u.GetName() + end)
	}
	if role, has, _ := unstructured.NestedStringMap(u.Object, "roleRef"); has && role["kind"] == "ClusterRole" {
		_ = unstructured.SetNestedField(u.Object, role["name"]+end, "roleRef", "name")
	}
	if policy, has, _ := unstructured.NestedString(u.Object, "spec", "policyName"); has && !slices.Contains(shared, policy) {
		_ = unstructured.SetNestedField(u.Object, policy+end, "spec", "policyName")
	}
}

// caDirectory is where the certificates of --ca-config-map are mounted.
const caDirectory = "/etc/headgate-ca"

func (o Options) adaptPod(pod map[string]any) {
	container := pod["containers"].([]any)[0].(map[string]any) //nolint:forcetypeassert // a manifest of ours
	container["image"] = o.Image
	if len(o.PullSecrets) > 0 {
		var secrets []any
		for _, name := range o.PullSecrets {
			secrets = append(secrets, map[string]any{"name": name})
		}
		pod["imagePullSecrets"] = secrets
	}
	if o.CA == "" {
		return
	}
	add := func(to map[string]any, key string, value any) {
		list, _ := to[key].([]any)
		to[key] = append(list, value)
	}
	// The file of the image is still read: Go reads it besides the directories.
	add(container, "env", map[string]any{"name": "SSL_CERT_DIR", "value": caDirectory})
	add(container, "volumeMounts", map[string]any{"name": "ca", "mountPath": caDirectory, "readOnly": true})
	add(pod, "volumes", map[string]any{"name": "ca", "configMap": map[string]any{"name": o.CA}})
}

func podOf(deployment *unstructured.Unstructured) map[string]any {
	pod, _, _ := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "template", "spec")
	return pod.(map[string]any) //nolint:forcetypeassert // a manifest of ours
}

func containerOf(deployment *unstructured.Unstructured) map[string]any {
	return podOf(deployment)["containers"].([]any)[0].(map[string]any) //nolint:forcetypeassert // a manifest of ours
}

func values(list []string) []any {
	all := make([]any, len(list))
	for i, text := range list {
		all[i] = text
	}
	return all
}

func texts(list any) []string {
	var all []string
	items, _ := list.([]any)
	for _, item := range items {
		text, _ := item.(string)
		all = append(all, text)
	}
	return all
}
