//test:package served minutes=1
package kubernetes_test

import (
	"strings"
	"testing"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/check/kubernetes"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func source(tb testing.TB, version string) *kubernetes.Source {
	tb.Helper()
	minor, err := render.KubernetesMinor(version)
	if err != nil {
		tb.Fatal(err)
	}
	return kubernetes.Of(minor)
}

// problemsOf returns everything that a source finds in an object: errors with a "!", warnings with a "?", and what was not checked.
func problemsOf(tb testing.TB, s *kubernetes.Source, text string) []string {
	tb.Helper()
	var o unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		tb.Fatal(err)
	}
	kind, known := s.Kind(o.GroupVersionKind().GroupKind())
	var all []check.Result
	if known {
		all = append(all, kind.Check(o.DeepCopy()), s.Every(o.DeepCopy(), kind))
	} else {
		all = append(all, s.Every(&o, nil))
	}
	var found []string
	for _, r := range all {
		for _, p := range r.Errors {
			found = append(found, "! "+p.String())
		}
		for _, p := range r.Warnings {
			found = append(found, "? "+p.String())
		}
		if r.NotChecked != "" {
			found = append(found, "- "+r.NotChecked)
		}
	}
	return found
}

func TestCheck(t *testing.T) {
	const (
		cm         = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
		secret     = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
		deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n"
		binding    = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: \"system:a\"}\n"
		role       = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\n"
	)
	label := "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character"
	subdomain := "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
	cases := map[string]struct {
		reason, version, text string
		want                  []string
	}{
		"Name":          {"Most names are DNS subdomains.", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a_b}\n", []string{`! metadata.name: "a_b" is not valid: ` + subdomain}},
		"Variable":      {"No tool fills in a variable.", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${NAME}\"}\n", []string{`! metadata.name: "${NAME}" is not valid: ` + subdomain}},
		"Namespace":     {"The name of a Namespace is a DNS label.", "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team.a}\n", []string{`! metadata.name: "team.a" is not valid: must not contain dots`}},
		"InNamespace":   {"A namespace is a DNS label, too.", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: Team}\n", []string{`! metadata.namespace: "Team" is not valid: ` + label}},
		"Unscoped":      {"Headgate leaves out the namespace of a cluster-scoped object.", "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: Team}\n", nil},
		"RoleName":      {"Names of RBAC are path segments.", "", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"system:A\"}\n", nil},
		"Labels":        {"Labels have limits.", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: \"b c\"}}\n", []string{"! metadata.labels: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"}},
		"Metadata":      {"Metadata has a type.", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {a: 1}, lables: {}, finalizers: x}\n", []string{"! metadata.finalizers: must be a list, not a string", "! metadata.labels[a]: must be a string, not a number; quote it", "! metadata.lables: unknown field; did you mean labels?"}},
		"Owner":         {"An owner needs an identity.", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: b}]}\n", []string{"! metadata.ownerReferences[0].uid: must not be empty"}},
		"Custom":        {"Objects of unknown kinds have metadata.", "", "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: A}\n", []string{`! metadata.name: "A" is not valid: ` + subdomain}},
		"Service":       {"The name of a Service could not begin with a digit.", "1.35", "apiVersion: v1\nkind: Service\nmetadata: {name: 1a}\n", []string{"- rules of Service", `! metadata.name: "1a" is not valid: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character`}},
		"NewService":    {"It can since 1.36.", "1.36", "apiVersion: v1\nkind: Service\nmetadata: {name: 1a}\n", []string{"- rules of Service"}},
		"CronJob":       {"The Jobs of a CronJob have longer names.", "", "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: " + strings.Repeat("a", 53) + "}\n", []string{"- rules of CronJob", `! metadata.name: "` + strings.Repeat("a", 53) + `" is not valid: must be no more than 52 characters`}},
		"ConfigMap":     {"A ConfigMap is checked completely.", "", cm + "data: {a.b-c_d: \"1\"}\nbinaryData: {b: AAA=}\nimmutable: true\n", nil},
		"DataKey":       {"A key has a form.", "", cm + "data: {\"k k\": v}\n", []string{"! data[k k]: a valid config key must consist of alphanumeric characters, '-', '_' or '.'"}},
		"DataTypo":      {"A ConfigMap gets no new fields.", "", cm + "dta: {a: b}\n", []string{"! dta: unknown field; did you mean data?"}},
		"DataNumber":    {"Values are strings.", "", cm + "data: {a: 1, b: true, c: null, d: {}}\n", []string{"! data[a]: must be a string, not a number; quote it", "! data[b]: must be a string, not a boolean; quote it", "! data[d]: must be a string, not a mapping"}},
		"DataTwice":     {"A key is in one of two mappings.", "", cm + "data: {a: b}\nbinaryData: {a: AAA=}\n", []string{"! data[a]: is a key of binaryData, too"}},
		"DataSize":      {"All values together have a limit.", "", cm + "data: {a: " + strings.Repeat("x", 1<<20) + ", b: x}\n", []string{"! data: its values hold 1048577 bytes, and the limit is 1048576"}},
		"Base64":        {"The values of data are encoded, and no message quotes them.", "", secret + "data: {a: \"hunter2%\"}\n", []string{"! data[a]: must be text in base64"}},
		"StringData":    {"No message quotes a value.", "", secret + "stringData: {pin: 12345678}\n", []string{"! stringData[pin]: must be a string, not a number; quote it"}},
		"TLS":           {"A type requires keys.", "", secret + "type: kubernetes.io/tls\nstringData: {tls.crt: a}\n", []string{"! data[tls.key]: is required by type kubernetes.io/tls"}},
		"Docker":        {"The credentials of a registry are JSON.", "", secret + "type: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: hunter2}\n", []string{"! data[.dockerconfigjson]: must be an object in JSON"}},
		"BasicAuth":     {"One of two keys is enough.", "", secret + "type: kubernetes.io/basic-auth\nstringData: {password: hunter2}\n", nil},
		"Token":         {"The annotation is not part of the data.", "", secret + "type: kubernetes.io/service-account-token\n", []string{"! metadata.annotations[kubernetes.io/service-account.name]: is required by type kubernetes.io/service-account-token"}},
		"NoRole":        {"A binding binds a role.", "", binding + "subjects: []\n", []string{`! roleRef.kind: cannot be ""; supported values: "ClusterRole"`, "! roleRef.name: is required"}},
		"Subjects":      {"Each kind of subject has its group; both have defaults.", "", binding + "roleRef: {kind: ClusterRole, name: a}\nsubjects:\n- {kind: ServiceAccount, name: a}\n- {kind: User, name: b, apiGroup: v1}\n- {kind: Group, name: c}\n- {kind: Robot, name: d}\n", []string{"! subjects[0].namespace: is required", `! subjects[1].apiGroup: cannot be "v1"; supported values: "rbac.authorization.k8s.io"`, `! subjects[3].kind: cannot be "Robot"; supported values: "ServiceAccount", "User", "Group"`}},
		"Rules":         {"A rule needs verbs, groups and resources.", "", role + "rules:\n- {resources: [pods]}\n- {nonResourceURLs: [/], verbs: [get]}\n", []string{"! rules[0].verbs: needs at least one verb", `! rules[0].apiGroups: needs at least one group; "" is the core group`, "! rules[1].nonResourceURLs: only a ClusterRole can have them"}},
		"Whole":         {"Workloads are not checked completely.", "", deployment + "spec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {spec: {containers: [{name: a, image: b, resources: {limits: {cpu: 1, memory: 2Gi}}, ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}], livenessProbe: {httpGet: {port: http}}}]}}}\n", []string{"- rules of Deployment"}},
		"Types":         {"Every value has a type.", "", deployment + "spec: {replicas: \"3\", minReadySeconds: 1.5, paused: \"yes\", template: {spec: {containers: {name: a}}}}\n", []string{"! spec.minReadySeconds: must be an integer, not a number", "! spec.paused: must be true or false, not a string", "! spec.replicas: must be an integer, not a string", "! spec.template.spec.containers: must be a list, not a mapping", "- rules of Deployment"}},
		"Quantities":    {"Some strings have a form.", "", deployment + "spec: {template: {spec: {containers: [{name: a, resources: {limits: {cpu: lots}}, livenessProbe: {httpGet: {port: true}}}]}}}\n", []string{"! spec.template.spec.containers[0].livenessProbe.httpGet.port: must be an integer or a string", "! spec.template.spec.containers[0].resources.limits[cpu]: must be a quantity, such as 500m or 2Gi", "- rules of Deployment"}},
		"UnknownField":  {"A newer release may know the field.", "", deployment + "spec: {replcas: 3}\n", []string{"? spec.replcas: Kubernetes 1.37 has no such field; did you mean replicas?", "- rules of Deployment"}},
		"NoField":       {"This release does not.", "1.33", deployment + "spec: {replcas: 3}\n", []string{"! spec.replcas: unknown field; did you mean replicas?", "- rules of Deployment"}},
		"NewerField":    {"A release that is not released yet may know it.", "1.99", deployment + "spec: {replcas: 3}\n", []string{"? spec.replcas: Kubernetes 1.37 has no such field; did you mean replicas?", "- rules of Deployment"}},
		"Repeated":      {"Server-side apply cannot tell two items with one key apart.", "", deployment + "spec: {template: {spec: {containers: [{name: a, env: [{name: X, value: a}, {name: X, value: b}]}, {image: b}]}}}\n", []string{"! spec.template.spec.containers[0].env[1]: has the same name as item 0: remove one of them", "- rules of Deployment"}},
		"RepeatedPorts": {"A key may consist of two fields, one with a default.", "", deployment + "spec: {template: {spec: {containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]}]}}}\n", []string{"! spec.template.spec.containers[0].ports[1]: has the same containerPort and protocol as item 0: remove one of them", "- rules of Deployment"}},
		"Removed":       {"No release that is maintained serves this.", "", "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}\n", []string{"? apiVersion: Kubernetes does not serve extensions/v1beta1 of kind Ingress since 1.22; use networking.k8s.io/v1", "- rules of Ingress"}},
		"Gone":          {"The types of some versions are gone.", "1.30", "apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: a}\n", []string{"! apiVersion: Kubernetes does not serve policy/v1beta1 of kind PodSecurityPolicy since 1.25"}},
		"Served":        {"Old releases served this.", "1.21", "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n", []string{"- rules of PodDisruptionBudget"}},
		"Later":         {"Old releases did not serve that.", "1.21", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n", []string{"! apiVersion: Kubernetes serves autoscaling/v2 of kind HorizontalPodAutoscaler from 1.23 on, and kubernetesVersion is 1.21"}},
		"Unstored":      {"A review is a question.", "", "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nmetadata: {name: a}\nspec: {token: x}\n", []string{"! no API server stores a TokenReview, so it cannot be applied"}},
		"NoKind":        {"A newer release may have the kind.", "", "apiVersion: apps/v1\nkind: Whatever\nmetadata: {name: a}\n", []string{`? kind: Kubernetes 1.37 has no such kind in group "apps"`}},
		"Definition":    {"CRDs have their own validation.", "", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.org}\nspec: {group: example.org, names: {kind: B, plural: bs}, scope: Namespaced, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n", []string{"! metadata.name: Invalid value: \"a.example.org\": must be spec.names.plural+\".\"+spec.group"}},
		"APIService":    {"The types of another program are not known.", "", "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.example.org}\n", []string{"- fields of APIService"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := problemsOf(t, source(t, tc.version), tc.text)
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if strings.Contains(strings.Join(got, "\n"), "hunter2") {
				t.Error("a message quotes a secret value")
			}
		})
	}
}

func TestKnows(t *testing.T) {
	for version, want := range map[string]map[string]check.Extent{
		"":        {"": check.Some, "apps": check.Some, "gateway.networking.k8s.io": check.None},
		"v1.34.1": {"": check.All, "networking.k8s.io": check.All, "example.org": check.None},
		"1.99":    {"apps": check.Some},
	} {
		for group, extent := range want {
			if got := source(t, version).Knows(group); got != extent {
				t.Errorf("release %q: Knows(%q) = %v, want %v", version, group, got, extent)
			}
		}
	}
}
