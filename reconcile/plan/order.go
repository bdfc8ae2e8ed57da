package plan

import (
	"strings"

	"headgate.dev/headgate/render/crossplane"
)

// A tier is a set of kinds that may be written at the same time. Every tier is written before the next one. Objects with other
// dependencies declare them, or wait until their kind is served.
type tier int

const (
	foundations tier = iota // later objects are in them, or are instances of them
	settings                // packages read them when they start
	bindings                // bindings need existing roles, unless the writer has the right to bind
	activations             // policies go before the packages that they limit
	packages
	configurations // after packages, because Crossplane would install missing dependencies on its own
	composites     // XRDs
	compositions
	instances
	admission // webhooks: last, so that they cannot refuse objects of the same commit
)

// tierOf returns the tier of a kind.
func tierOf(group, kind string) tier {
	switch group {
	case "":
		switch kind {
		case "Namespace":
			return foundations
		case "Secret", "ConfigMap", "ServiceAccount", "ResourceQuota", "LimitRange":
			return settings
		}
	case "apiextensions.k8s.io":
		return foundations
	case "rbac.authorization.k8s.io":
		if strings.HasSuffix(kind, "Binding") {
			return bindings
		}
		return settings
	case "admissionregistration.k8s.io":
		return admission
	case crossplane.Packages:
		switch kind {
		case crossplane.KindImageConfig.Kind, crossplane.KindRuntimeConfig.Kind:
			return settings
		case crossplane.Configuration:
			return configurations
		}
		return packages
	case crossplane.Extensions:
		switch kind {
		case crossplane.KindMRD.Kind, crossplane.KindMRAP.Kind:
			return activations
		case crossplane.KindXRD.Kind:
			return composites
		}
		return compositions
	}
	if strings.HasSuffix(kind, "ProviderConfig") {
		return compositions
	}
	return instances
}

// Tier returns the number of a step's tier. Steps of a tier may be carried out at the same time. Prunes come after everything else,
// in reverse: what depends on a CRD is deleted before the CRD.
func (s Step) Tier() int {
	t := tierOf(s.ID.Group, s.ID.Kind)
	if s.Change().Action.Removes() {
		return int(admission) + 1 + int(admission-t)
	}
	return int(t)
}
