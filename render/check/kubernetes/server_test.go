package kubernetes_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check/kubernetes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// What is checked completely is refused here if and only if an API server refuses it. What an API server accepts has no errors.
func TestServer(t *testing.T) {
	config := fixtures.ConfigOf(t, fixtures.StartKubernetes(t))
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := discover.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := map[schema.GroupVersionKind]metav1.APIResource{}
	scopes, s := render.KubernetesScope(), source(t, "1.37")
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue
			}
			gvk := gv.WithKind(r.Kind)
			served[gvk] = r
			if namespaced, known := scopes(gvk.GroupKind()); known && namespaced != r.Namespaced {
				t.Errorf("%s: namespaced is %t, want %t", gvk, namespaced, r.Namespaced)
			}
			if k, known := s.Kind(gvk.GroupKind()); !known || !slices.Contains(k.Versions(), gvk.Version) || k.Namespaced() != r.Namespaced {
				t.Errorf("%s is not known, or has another scope", gvk)
			}
		}
	}
	if len(served) < 60 {
		t.Fatalf("the server has %d kinds", len(served))
	}

	for name, text := range serverCases {
		t.Run(name, func(t *testing.T) {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatal(err)
			}
			found := problemsOf(t, kubernetes.Of(37), text)
			ours, whole := false, true
			for _, f := range found {
				ours = ours || strings.HasPrefix(f, "!")
				whole = whole && !strings.HasPrefix(f, "-")
			}
			r, ok := served[o.GroupVersionKind()]
			theirs := error(nil)
			if ok {
				gvr := o.GroupVersionKind().GroupVersion().WithResource(r.Name)
				var at dynamic.ResourceInterface = client.Resource(gvr)
				if r.Namespaced {
					at = client.Resource(gvr).Namespace("default")
				}
				raw, err := json.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				force := true
				_, theirs = at.Patch(t.Context(), o.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "test", Force: &force, DryRun: []string{metav1.DryRunAll}, FieldValidation: "Strict"})
			}
			refused := !ok || theirs != nil
			switch {
			case ours && !refused:
				t.Errorf("a false alarm:\n%s\n%s", strings.Join(found, "\n"), text)
			case !ours && refused && whole:
				t.Errorf("missed: %v\n%s", theirs, text)
			}
			t.Logf("ours %t, theirs %v", ours, theirs)
		})
	}
}

// serverCases are objects with one peculiarity each.
var serverCases = func() map[string]string {
	cases := map[string]string{}
	add := func(name, apiVersion, kind string, rest ...string) {
		for i, r := range rest {
			if !strings.Contains(r, "metadata:") {
				r = "metadata: {name: a}\n" + r
			}
			cases[name+string(rune('A'+i%26))+string(rune('a'+i/26))] = "apiVersion: " + apiVersion + "\nkind: " + kind + "\n" + r + "\n"
		}
	}
	add("ConfigMap", "v1", "ConfigMap",
		"data: {a: b}", "data: {a: null}", "data: null", "data: {a: 1}", "data: {a: {}}", "data: []", "dta: {a: b}", "data: {\"a b\": c}", "data: {..: c}", "data: {\"\": c}", "data: {..a: c}",
		"binaryData: {a: aGk=}", "binaryData: {a: \"%\"}", "binaryData: {a: aGk}", "binaryData: {a: b}\ndata: {a: b}", "binaryData: {a: aGk=}\ndata: {a: b}", "immutable: true", "immutable: \"yes\"", "immutable: 1",
		"data: {"+strings.Repeat("a", 253)+": b}", "data: {"+strings.Repeat("a", 254)+": b}", "status: {}",
		"metadata: {name: a, labels: {a: null}}", "metadata: {name: a, labels: {\"a b\": c}}", "metadata: {name: a, labels: {a: \"b c\"}}", "metadata: {name: a, labels: {a: 1}}", "metadata: {name: a, labels: []}",
		"metadata: {name: a, labels: {"+strings.Repeat("a", 64)+": c}}", "metadata: {name: a, labels: {a.b/c: d}}", "metadata: {name: a, labels: {a/b/c: d}}",
		"metadata: {name: a, annotations: {\"a b\": c}}", "metadata: {name: a, annotations: {A.b/c: d}}", "metadata: {name: a, annotations: {a: true}}", "metadata: {name: a, finalizers: [a]}", "metadata: {name: a, finalizers: [a.b/c]}",
		"metadata: {name: a, finalizers: [a.b/c, a.b/c]}", "metadata: {name: a, finalizers: [orphan, foregroundDeletion]}", "metadata: {name: a, finalizers: a.b/c}", "metadata: {name: a, creationTimestamp: null}",
		"metadata: {name: a, creationTimestamp: yesterday}", "metadata: {name: a, generation: -1}", "metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: b, uid: c}]}",
		"metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: b}]}", "metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: b, uid: c}, {apiVersion: v1, kind: Pod, name: d, uid: c}]}",
		"metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: b, uid: c, controller: true}, {apiVersion: v1, kind: Pod, name: d, uid: e, controller: true}]}",
		"metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Event, name: b, uid: c}]}", "metadata: {name: a, lables: {}}", "metadata: {name: a, generateName: b}", "metadata: {name: A}", "metadata: {name: a.b}", "metadata: {name: a..b}",
		"metadata: {name: -a}", "metadata: {name: "+strings.Repeat("a", 253)+"}", "metadata: {name: "+strings.Repeat("a", 254)+"}", "metadata: {name: \"1\"}", "metadata: {name: \"${A}\"}", "metadata: {name: a, namespace: default}", "data: {a: \"\\u0000\"}")
	add("Namespace", "v1", "Namespace", "spec: {}", "metadata: {name: a.b}", "metadata: {name: Team_A}", "metadata: {name: "+strings.Repeat("a", 63)+"}", "metadata: {name: "+strings.Repeat("a", 64)+"}", "spec: {finalizers: [kubernetes]}",
		"spec: {finalizers: [a]}", "spec: {finalizers: [a.b/c]}", "spec: {finalizers: [kubernetes, kubernetes]}", "spec: {finalizer: []}", "metadata: {name: a, namespace: default}", "status: {phase: Active}", "status: {phase: Odd}")
	add("Secret", "v1", "Secret", "data: {a: \"%%%\"}", "data: {a: aGk=}", "data: {a: \"\"}", "data: {a: null}", "data: {a: 1}", "stringData: {a: 1}", "stringData: {a: b}", "stringData: {\"a b\": c}", "type: 1", "type: a/b", "immutable: true",
		"type: kubernetes.io/tls", "type: kubernetes.io/tls\nstringData: {tls.crt: a, tls.key: b}", "type: kubernetes.io/tls\nstringData: {tls.crt: \"\", tls.key: \"\"}", "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: \"{}\"}",
		"type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: \"[]\"}", "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: \"null\"}", "type: kubernetes.io/dockerconfigjson", "type: kubernetes.io/dockercfg\nstringData: {.dockercfg: x}",
		"type: kubernetes.io/basic-auth", "type: kubernetes.io/basic-auth\nstringData: {username: a}", "type: kubernetes.io/ssh-auth\nstringData: {ssh-privatekey: \"\"}", "type: kubernetes.io/ssh-auth\nstringData: {ssh-privatekey: a}",
		"type: kubernetes.io/service-account-token", "type: bootstrap.kubernetes.io/token\nstringData: {a: b}", "data: {a: \"aG\\nk=\"}", "datas: {}")
	add("ServiceAccount", "v1", "ServiceAccount", "", "secrets: [{name: a}]", "secrets: [{name: a}, {name: a}]", "secrets: [a]", "imagePullSecrets: [{name: a}, {name: a}]", "automountServiceAccountToken: \"no\"", "imagePullSecret: []", "imagePullSecrets: [{}]", "secrets: [{}]")
	const rbac = "rbac.authorization.k8s.io/v1"
	add("Role", rbac, "Role", "rules: []", "rules: null", "rules: [{verbs: [get], apiGroups: [\"\"], resources: [pods]}]", "rules: [{verbs: [], apiGroups: [\"\"], resources: [pods]}]", "rules: [{verbs: [get], resources: [pods]}]", "rules: [{verbs: [get], apiGroups: [\"\"]}]",
		"rules: [{verbs: [get], nonResourceURLs: [/]}]", "rules: [{verbs: get}]", "rules: [{verb: [get]}]", "metadata: {name: \"a:B\"}", "metadata: {name: \"a%b\"}", "rules: [null]", "rules: [{}]")
	add("ClusterRole", rbac, "ClusterRole", "rules: [{verbs: [get], nonResourceURLs: [/]}]", "rules: [{verbs: [get], nonResourceURLs: [/], resources: [pods]}]", "rules: [{verbs: [get], nonResourceURLs: [/], resourceNames: [pods]}]", "aggregationRule: {}",
		"aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}", "aggregationRule: {clusterRoleSelectors: [{matchLabels: {\"a b\": c}}]}", "aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: Is}]}]}",
		"aggregationRule: {clusterRoleSelectors: [{matchExpressions: [{key: a, operator: In}]}]}", "aggregationRule: {clusterRoleSelectors: [{}]}", "aggregationRule: null")
	add("ClusterRoleBinding", rbac, "ClusterRoleBinding", "subjects: []", "roleRef: {kind: ClusterRole, name: a}", "roleRef: {kind: Role, name: a, apiGroup: rbac.authorization.k8s.io}", "roleRef: {kind: ClusterRole, name: a, apiGroup: v1}", "roleRef: {kind: ClusterRole, name: a/b, apiGroup: rbac.authorization.k8s.io}",
		"roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: ServiceAccount, name: a}]", "roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: ServiceAccount, name: a, namespace: b}]", "roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: ServiceAccount, name: A, namespace: b}]",
		"roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: ServiceAccount, name: a, namespace: B, apiGroup: \"\"}]", "roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: ServiceAccount, name: a, namespace: b, apiGroup: rbac.authorization.k8s.io}]",
		"roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: User, name: a}]", "roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: User}]", "roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: Group, name: a, apiGroup: b}]", "roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: Robot, name: a}]",
		"roleRef: {kind: ClusterRole, name: a}\nsubjects: [{kind: User, name: a}, {kind: User, name: a}]", "roleRef: [a]", "roleRef: {kind: ClusterRole, name: a}\nsubject: []", "metadata: {name: no-role}")
	add("RoleBinding", rbac, "RoleBinding", "roleRef: {kind: Role, name: a}\nsubjects: [{kind: ServiceAccount, name: a}]", "roleRef: {kind: User, name: a}", "roleRef: {kind: Role, name: \"a:b\"}")
	container := func(more string) string {
		return "spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b, " + more + "}]}}}"
	}
	add("Deployment", "apps/v1", "Deployment", container(""), container("imagePullpolicy: Always"), container("env: [{name: A, value: 1}]"), container("env: [{name: A}, {name: A}]"), container("ports: [{containerPort: \"80\"}]"), container("ports: [{containerPort: 80}, {containerPort: 80}]"),
		container("ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]"), container("ports: [{containerPort: 1e3}]"), container("ports: [{containerPort: 80.5}]"), container("resources: {limits: {cpu: 1, memory: 1Gi}}"), container("resources: {limits: {cpu: 1.5}}"), container("resources: {limits: {cpu: lots}}"),
		container("resources: {limits: {cpu: true}}"), container("livenessProbe: {httpGet: {port: true}}"), container("livenessProbe: {httpGet: {port: http}}"), container("args: [1]"), container("args: [a, a]"), container("command: a"), container("securityContext: {runAsUser: \"0\"}"), container("volumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: /a}]"),
		container("volumeMounts: [{name: a}]"), container("volumeMounts: [null]"), container("envFrom: [{configMapRef: {name: a}}, {configMapRef: {name: a}}]"), "spec: {replicas: \"1\"}", "spec: {replcas: 1}", "spec: {strategy: {rollingUpdate: {maxSurge: 25%}}}", "spec: null", "spec: []", "spec: {template: {spec: {containers: [{image: a}, {image: b}]}}}",
		"spec: {template: {spec: {tolerations: [{key: a}, {key: a}], topologySpreadConstraints: [{topologyKey: a}, {topologyKey: a}]}}}", "spec: {progressDeadlineSeconds: 99999999999}", "spec: {template: {spec: {hostAliases: [{ip: a}, {ip: a}], imagePullSecrets: [{name: a}, {name: a}]}}}", "spec: {template: {metadata: {lables: {}}}}")
	add("Service", "v1", "Service", "spec: {ports: [{port: 80}]}", "spec: {ports: [{port: 80}, {port: 80}]}", "spec: {ports: [{port: 80, targetPort: a}, {port: 80, protocol: UDP, name: b}]}", "spec: {selector: {a: 1}}", "spec: {port: []}", "metadata: {name: 1a}\nspec: {ports: [{port: 80}]}", "metadata: {name: a.b}\nspec: {ports: [{port: 80}]}", "spec: {externalIPs: [a, a]}", "spec: {clusterIPs: [None, None]}")
	add("Names", "apps/v1", "StatefulSet", "metadata: {name: a.b}")
	add("PDB", "policy/v1", "PodDisruptionBudget", "metadata: {name: A_b}\nspec: {minAvailable: 1}", "spec: {minAvailable: 50%}", "spec: {minAvailable: [1]}")
	add("CronJob", "batch/v1", "CronJob", "metadata: {name: "+strings.Repeat("a", 53)+"}\nspec: {schedule: '* * * * *'}", "spec: {shedule: '* * * * *'}")
	add("Lease", "coordination.k8s.io/v1", "Lease", "spec: {renewTime: 2006-01-02T15:04:05Z}", "spec: {renewTime: 2006-01-02T15:04:05.000000Z}", "spec: {renewTime: now}", "metadata: {name: A}")
	add("Ingress", "networking.k8s.io/v1", "Ingress", "spec: {rules: [{host: a}, {host: a}]}", "spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {serviceName: a}}]}}]}", "spec: {tls: [{hosts: [a, a]}]}", "spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}")
	add("Old", "extensions/v1beta1", "Ingress", "spec: {}")
	add("Webhook", "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "webhooks: [{name: a.b.c, clientConfig: {url: 'https://a'}, sideEffects: None, admissionReviewVersions: [v1]}]", "webhooks: [{name: a}, {name: a}]", "webhooks: [{clientConfig: {caBundle: \"%\"}}]", "webhooks: [{}]")
	add("Class", "storage.k8s.io/v1", "StorageClass", "provisioner: a.b/c\nparameters: {a: 1}", "provisioner: a.b/c\nmountOptions: a", "provisioner: a.b/c\nallowedTopologies: []")
	add("Review", "authentication.k8s.io/v1", "TokenReview", "spec: {token: a}")
	add("CRD", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "metadata: {name: as.example.org}\nspec: {group: example.org, names: {kind: A, plural: as}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}",
		"metadata: {name: b.example.org}\nspec: {group: example.org, names: {kind: A, plural: as}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}",
		"metadata: {name: as.example.org}\nspec: {group: example.org, names: {kind: A, plural: as}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: str}}}}}]}",
		"metadata: {name: as.example.org}\nspec: {group: example.org, names: {kind: A, plural: as}, scope: Namespaced, versions: [{name: v1, served: true, storage: true}]}", "metadata: {name: as.example.org}\nspec: {group: example.org, names: {kind: A, plural: as}, scope: Namespace, versons: []}",
		"metadata: {name: as.example.org, labels: {a: \"b c\"}}\nspec: {group: example.org, names: {kind: A, plural: as}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}",
		"metadata: {name: as.k8s.io}\nspec: {group: k8s.io, names: {kind: A, plural: as}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}")
	return cases
}()
