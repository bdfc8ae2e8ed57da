package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Header is the part of a document that can be known without decoding it.
type Header struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	Local      bool // annotated as local, so not applied
	Paused     bool // annotated as paused for Crossplane
	Hook       bool // annotated as a hook of Argo CD or Helm
	Unsynced   bool // annotated as nothing that Argo CD applies
	Spec       SpecHeader
}

// PausedAnnotation is the annotation of an object that Crossplane does not reconcile. All other names of Crossplane are in package
// crossplane, which imports this package.
const PausedAnnotation = "crossplane.io/paused"

// The annotations of hooks, as Argo CD reads them: every value makes a hook, except two.
const (
	argoHook = "argocd.argoproj.io/hook"
	helmHook = "helm.sh/hook"

	hookSkip       = "Skip"        // Argo CD does not apply the object
	hookCRDInstall = "crd-install" // Helm 2 installed such a CRD before all others
)

const localConfig = "config.kubernetes.io/local-config"

// annotate reads an annotation of the header.
func (h *Header) annotate(key, value string) {
	switch key {
	case localConfig:
		h.Local = value == "true"
	case PausedAnnotation:
		h.Paused = value == "true"
	case argoHook:
		h.Unsynced = strings.TrimSpace(value) == hookSkip
		h.Hook = h.Hook || !h.Unsynced
	case helmHook:
		h.Hook = h.Hook || strings.TrimSpace(value) != hookCRDInstall
	}
}

// A SpecHeader holds the fields that identify definitions (CRDs and MRDs). A field is empty if the document has no such string.
type SpecHeader struct {
	Group  string // spec.group
	Kind   string // spec.names.kind
	Plural string // spec.names.plural
	Scope  string // spec.scope
	State  string // spec.state
}

// headerOf returns the header of a decoded document. Scan never returns a different header.
func headerOf(m map[string]any) Header {
	spec := func(path ...string) string {
		s, _, _ := unstructured.NestedString(m, append([]string{"spec"}, path...)...)
		return s
	}
	u := unstructured.Unstructured{Object: m}
	h := Header{
		APIVersion: u.GetAPIVersion(),
		Kind:       u.GetKind(),
		Namespace:  u.GetNamespace(),
		Name:       u.GetName(),
		Spec: SpecHeader{
			Group:  spec("group"),
			Kind:   spec("names", "kind"),
			Plural: spec("names", "plural"),
			Scope:  spec("scope"),
			State:  spec("state"),
		},
	}
	if of, _ := m["spec"].(map[string]any); h.Spec.State == "" && of["state"] != nil && of["state"] != "" {
		h.Spec.State = fmt.Sprint(of["state"]) // not text, so an invalid state, but not unset
	}
	for key, value := range u.GetAnnotations() {
		h.annotate(key, value)
	}
	return h
}

// ID returns the identity of the object that the document is about.
func (h Header) ID() ID {
	group, _ := h.groupVersion()
	return ID{Group: group, Kind: h.Kind, Namespace: h.Namespace, Name: h.Name}
}

// Version returns the version of the API of the object: "v1" of "apps/v1".
func (h Header) Version() string {
	_, version := h.groupVersion()
	return version
}

func (h Header) groupVersion() (group, version string) {
	group, version, ok := strings.Cut(h.APIVersion, "/")
	if !ok {
		return "", h.APIVersion
	}
	return group, version
}

// ofManifest returns h if it is the header of a Kubernetes manifest, or else an empty header.
func (h Header) ofManifest() Header {
	if h.APIVersion == "" || h.Kind == "" {
		return Header{}
	}
	return h
}
