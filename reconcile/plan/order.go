package plan

import (
	"strings"

	"headgate.dev/headgate/render/crossplane"
)

// A tier is a set of kinds that may be written at the same time. Every tier is written before
// the next one; what needs more than that says so, or waits for its kind to be served.
type tier int

const (
	foundations tier = iota // what later objects live in, or are instances of
	settings                // what packages read when they start
	bindings                // without the right to bind, a role has to be there
	activations             // policies go before the packages that they limit
	packages
	configurations // Crossplane would install on its own what they depend on and is not there yet
	composites     // XRDs
	compositions
	instances
	admission // webhooks: last, so that they cannot refuse what comes with them
)

// tierOf is the tier of an object of a kind.
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

// Tier numbers the set of steps that may be carried out at the same time. Prunes come
// after everything else, in reverse: what depends on a CRD goes before the CRD.
func (s Step) Tier() int {
	t := tierOf(s.ID.Group, s.ID.Kind)
	if s.Action == Prune || s.Action == Release || s.Action == Hold && s.Would == Prune {
		return int(admission) + 1 + int(admission-t)
	}
	return int(t)
}
