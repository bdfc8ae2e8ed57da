package catalogue

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// A Helm chart is a directory with a Chart.yaml. Its templates are not YAML.
const (
	chartFile      = "Chart.yaml"
	chartTemplates = "templates"
)

// templateOf returns which template a file is that cannot be read, or "". A template that is valid YAML is read like any other file.
func (w *walk) templateOf(name string) Why {
	raw, err := w.reader.Bytes(name)
	switch {
	case err != nil:
		return ""
	case directive.Match(raw):
		return Placeholders
	case w.isInChart(name) && bytes.Contains(raw, []byte("{{")):
		return HelmTemplate
	}
	return ""
}

// isInChart reports whether a file is in the templates of a Helm chart.
func (w *walk) isInChart(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if path.Base(dir) == chartTemplates && w.isFile(path.Join(path.Dir(dir), chartFile)) {
			return true
		}
	}
	return false
}

// directive matches what only a template of Terraform contains: %{ if x }, and a call, as in ${jsonencode(x)}.
var directive = regexp.MustCompile(`%\{~?[ \t]*(if|else|endif|for|endfor)\b|[^$]\$\{~?[ \t]*[a-z0-9_]+\(`)

// isPlaceholder reports whether a template engine, such as Terraform's, fills in the identity of a document. No API server accepts it as
// it is.
func isPlaceholder(h manifest.Header) bool {
	texts := []string{h.APIVersion, h.Kind, h.Namespace}
	if !anyName[h.ID().Group] {
		texts = append(texts, h.Name)
	}
	return slices.ContainsFunc(texts, placeholder.MatchString)
}

// anyName lists groups of Kubernetes whose objects may have any name.
var anyName = map[string]bool{"rbac.authorization.k8s.io": true, "policy": true, "certificates.k8s.io": true}

// programs lists the API groups of documents that programs read from files. No API server serves them.
var programs = map[string]bool{
	"admission.k8s.io":                     true, // AdmissionReview
	"apiserver.config.k8s.io":              true,
	"apiserver.k8s.io":                     true,
	"audit.k8s.io":                         true,
	"backstage.io":                         true,
	"builtin":                              true, // transformers of kustomize
	"chainsaw.kyverno.io":                  true,
	"cli.kyverno.io":                       true,
	"client.authentication.k8s.io":         true,
	"controller-runtime.sigs.k8s.io":       true,
	"credentialprovider.kubelet.k8s.io":    true,
	"ctlptl.dev":                           true,
	"eksctl.io":                            true,
	"garden.io":                            true,
	"imagepolicy.k8s.io":                   true,
	"imgpkg.carvel.dev":                    true,
	"k0sctl.k0sproject.io":                 true,
	"k3d.io":                               true,
	"kapp.k14s.io":                         true,
	"kbld.k14s.io":                         true,
	"kind.x-k8s.io":                        true,
	"kpt.dev":                              true,
	"krew.googlecontainertools.github.com": true,
	"kubeadm.k8s.io":                       true,
	"kubecontrollermanager.config.k8s.io":  true,
	"kubelet.config.k8s.io":                true,
	"kubeone.k8c.io":                       true,
	"kubeproxy.config.k8s.io":              true,
	"kubescheduler.config.k8s.io":          true,
	"kuttl.dev":                            true,
	"score.dev":                            true,
	"scorecard.operatorframework.io":       true,
	"skaffold":                             true,
	"vendir.k14s.io":                       true,
}

// isProgram reports whether a document is for a program: by its group, or because it is a kubeconfig.
func isProgram(group, version, kind string) bool {
	return programs[group] || group == "" && version == "v1" && kind == "Config"
}

var (
	versions    = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
	valuesFiles = regexp.MustCompile(`(?i)(^|[-_.])values([-_.]|$)`)
	kuttlSteps  = regexp.MustCompile(`^[0-9]+-(assert|errors?)(-[^/]*)?$`)
)

func isVersion(version string) bool { return versions.MatchString(version) }

// lacksName reports whether a document needs a name but has none.
func lacksName(what fate, h manifest.Header) bool {
	switch what {
	case native, converted, policy, webhook, apply:
		return h.Name == ""
	}
	return false
}

// isForProgram reports whether a document without a name is for a program: by its file name, or because Kubernetes has no such
// version. The core group has only version v1; Talos uses v1alpha1 there.
func isForProgram(d *manifest.Document) bool {
	version := d.Header.Version()
	return isProgramFile(d.Origin.Path) || !isVersion(version) || d.Header.ID().Group == "" && version != "v1"
}

// isProgramFile reports whether a program reads a file, whatever its content: values of a Helm chart, or an assertion of kuttl.
func isProgramFile(name string) bool {
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	return valuesFiles.MatchString(base) || kuttlSteps.MatchString(base) || path.Base(name) == chartFile
}
