package facts

import (
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WhyDefinition returns why a definition is not ready; no reason if it is.
func WhyDefinition(d crossplane.LiveDefinition) reason.Reason {
	switch d.State() {
	case crossplane.Ready:
		return reason.Reason{}
	case crossplane.Inactive:
		return reason.NotActivated.With()
	case crossplane.Paused:
		return reason.PausedByUser.With(crossplane.PausedAnnotation)
	case crossplane.Blocked:
		if d.Message == "" {
			return reason.BlockedSilently.With()
		}
		return reason.Blocked.With(d.Message)
	case crossplane.Pending:
		if why := WhyCRD(d.CRD); !why.None() {
			return reason.CRDApplied.With(why)
		}
	}
	return reason.Establishing.With()
}

// WhyCRD returns why a CRD is not served; no reason if it is.
func WhyCRD(crd crossplane.CRD) reason.Reason {
	switch c := crd.Condition; {
	case crd.Deleting:
		return reason.BeingDeleted.With()
	case c.Type == "":
		return reason.Reason{}
	case c.Status == "":
		return reason.ConditionNotReported.With(c.Type)
	default:
		return reason.ConditionIs.With(c.Type, string(c.Status), c.Message)
	}
}

// WhyPolicy returns why a policy is not ready; no reason if it is.
func WhyPolicy(p crossplane.LivePolicy) reason.Reason {
	switch p.State() {
	case crossplane.Ready:
		return reason.Reason{}
	case crossplane.Paused:
		return reason.PausedByUser.With(crossplane.PausedAnnotation)
	}
	return orMessage(p.Message, reason.NotLookedAt)
}

// WhyPackage returns why a package is not ready; no reason if it is.
func WhyPackage(p crossplane.LivePackage) reason.Reason {
	switch state := p.State(); {
	case state == crossplane.Ready:
		return reason.Reason{}
	case state == crossplane.Paused:
		return reason.PausedByUser.With(crossplane.PausedAnnotation)
	case p.Behind && p.Installed == metav1.ConditionTrue: // the message is about the previous version
		return reason.VersionNotLookedAt.With()
	}
	return orMessage(p.Message, reason.Installing)
}

// orMessage returns the message of a status as a reason or, without a message, the reason of a code.
func orMessage(message string, otherwise reason.Code) reason.Reason {
	if message == "" {
		return otherwise.With()
	}
	return reason.StatusMessage.With(message)
}
