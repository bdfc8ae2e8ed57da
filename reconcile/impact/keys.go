// Package impact knows what an object affects beyond itself: which tools read a label or an annotation, which kinds change nothing
// that exists when an object is new, and whether a change of RBAC only takes rights away. It knows nothing of plans or clusters.
package impact

import (
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
)

// tools are the tools that read labels and annotations, by the domain of the key.
var tools = map[string]string{
	"headgate.dev": "Headgate",

	crossplane.Domain: "Crossplane",
	"upbound.io":      "Crossplane",

	"fluxcd.io":    "Flux",
	"argoproj.io":  "Argo CD",
	"helm.sh":      "Helm",
	"gke.io":       "Config Sync",
	"cattle.io":    "Rancher",
	"weave.works":  "Weave GitOps",
	"oam.dev":      "KubeVela",
	"gitlab.com":   "GitLab",
	"backstage.io": "Backstage",

	"k8s.io":        "Kubernetes",
	"kubernetes.io": "Kubernetes",
	"openshift.io":  "OpenShift",

	"amazonaws.com":     "AWS",
	"azure.com":         "Azure",
	"workload.identity": "Azure",
	"google.com":        "Google Cloud",

	"kyverno.io":            "Kyverno",
	"gatekeeper.sh":         "Gatekeeper",
	"openpolicyagent.org":   "Gatekeeper",
	"cert-manager.io":       "cert-manager",
	"external-secrets.io":   "External Secrets",
	"hashicorp.com":         "Vault",
	"bitnami.com":           "Sealed Secrets",
	"emberstack.com":        "Reflector",
	"appscode.com":          "Config Syncer",
	"stakater.com":          "Reloader",
	"istio.io":              "Istio",
	"linkerd.io":            "Linkerd",
	"cilium.io":             "Cilium",
	"projectcalico.org":     "Calico",
	"traefik.io":            "Traefik",
	"konghq.com":            "Kong",
	"nginx.org":             "NGINX",
	"getambassador.io":      "Emissary",
	"tailscale.com":         "Tailscale",
	"prometheus.io":         "Prometheus",
	"opentelemetry.io":      "OpenTelemetry",
	"datadoghq.com":         "Datadog",
	"dapr.io":               "Dapr",
	"keda.sh":               "KEDA",
	"knative.dev":           "Knative",
	"tekton.dev":            "Tekton",
	"karpenter.sh":          "Karpenter",
	"velero.io":             "Velero",
	"longhorn.io":           "Longhorn",
	"cluster-management.io": "Open Cluster Management",
}

// plainKeys are keys without a domain that tools read.
var plainKeys = map[string]string{
	"istio-injection":    "Istio",
	"aadpodidbinding":    "Azure",
	"grafana_dashboard":  "Grafana",
	"grafana_datasource": "Grafana",
	"control-plane":      "Kubernetes",
}

// descriptive are keys in the domain of a tool that only describe an object.
var descriptive = []string{
	"app.kubernetes.io/name", "app.kubernetes.io/version", "app.kubernetes.io/component", "app.kubernetes.io/part-of",
	"kubernetes.io/description", "helm.sh/chart",
}

// Reader returns the tool that reads a label or an annotation, or "" if no known tool does.
func Reader(key string) string {
	domain, _, has := strings.Cut(key, "/")
	switch {
	case slices.Contains(descriptive, key):
		return ""
	case !has:
		return plainKeys[key]
	}
	for ; domain != ""; _, domain, _ = strings.Cut(domain, ".") {
		if tool := tools[domain]; tool != "" {
			return tool
		}
	}
	return ""
}

// The prefix of the labels of Pod Security, and the levels that allow less than no label at all.
const podSecurity = "pod-security.kubernetes.io/"

var restrictive = []string{"restricted", "baseline", "latest"}

// orders are keys that order the applies of a tool, which a new object may have.
var orders = []string{"argocd.argoproj.io/sync-wave"}

// NewReader is Reader for a key of a new object, on which some keys have no effect that a person has to see.
func NewReader(key, value string) string {
	switch {
	case slices.Contains(orders, key), strings.HasPrefix(key, podSecurity) && slices.Contains(restrictive, value):
		return ""
	}
	return Reader(key)
}
