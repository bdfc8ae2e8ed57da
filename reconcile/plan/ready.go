package plan

import (
	"headgate.dev/headgate/render/crossplane"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The codes of objects that are not ready.
const (
	NotThere             Code = "NotThere"             // the object is not in the cluster yet
	NotBrought           Code = "NotBrought"           // no package has installed the definition yet
	WasDeleted           Code = "WasDeleted"           // the object was deleted
	CRDNotServed         Code = "CRDNotServed"         // an error, the CRD that was applied but is not served, and why
	BeingDeleted         Code = "BeingDeleted"         // the object is being deleted
	FieldsMigrated       Code = "FieldsMigrated"       // only the managed fields of the object were written
	StatusMessage        Code = "StatusMessage"        // the message of a condition, or of the status
	StatusIs             Code = "StatusIs"             // the status, which has no message
	ConditionIs          Code = "ConditionIs"          // a condition, its status and its message
	ConditionNotTrue     Code = "ConditionNotTrue"     // a condition that is not true and has no message
	ConditionNotReported Code = "ConditionNotReported" // a condition that the API server has not reported
	PausedByUser         Code = "PausedByUser"         // the annotation that pauses the object
	NotActivated         Code = "NotActivated"         // Crossplane has not activated the definition
	Blocked              Code = "Blocked"              // Crossplane's message about a definition that it cannot establish
	BlockedSilently      Code = "BlockedSilently"      // Crossplane cannot establish the definition and has no message
	CRDApplied           Code = "CRDApplied"           // why the CRD that Crossplane has applied for the definition is not served
	Establishing         Code = "Establishing"         // Crossplane is establishing the CRD of the definition
	NotLookedAt          Code = "NotLookedAt"          // Crossplane has not reconciled the policy
	VersionNotLookedAt   Code = "VersionNotLookedAt"   // Crossplane has not reconciled this version of the package
	Installing           Code = "Installing"           // Crossplane is installing the package
)

// WhyDefinition returns why a definition is not ready; no reason if it is.
func WhyDefinition(d crossplane.LiveDefinition) Reason {
	switch d.State() {
	case crossplane.Ready:
		return Reason{}
	case crossplane.Inactive:
		return NotActivated.With()
	case crossplane.Paused:
		return PausedByUser.With(crossplane.PausedAnnotation)
	case crossplane.Blocked:
		if d.Message == "" {
			return BlockedSilently.With()
		}
		return Blocked.With(d.Message)
	case crossplane.Pending:
		if why := WhyCRD(d.CRD); !why.None() {
			return CRDApplied.With(why)
		}
	}
	return Establishing.With()
}

// WhyCRD returns why a CRD is not served; no reason if it is.
func WhyCRD(crd crossplane.CRD) Reason {
	switch c := crd.Condition; {
	case crd.Deleting:
		return BeingDeleted.With()
	case c.Type == "":
		return Reason{}
	case c.Status == "":
		return ConditionNotReported.With(c.Type)
	default:
		return ConditionIs.With(c.Type, string(c.Status), c.Message)
	}
}

// WhyPolicy returns why a policy is not ready; no reason if it is.
func WhyPolicy(p crossplane.LivePolicy) Reason {
	switch p.State() {
	case crossplane.Ready:
		return Reason{}
	case crossplane.Paused:
		return PausedByUser.With(crossplane.PausedAnnotation)
	}
	return orMessage(p.Message, NotLookedAt)
}

// WhyPackage returns why a package is not ready; no reason if it is.
func WhyPackage(p crossplane.LivePackage) Reason {
	switch state := p.State(); {
	case state == crossplane.Ready:
		return Reason{}
	case state == crossplane.Paused:
		return PausedByUser.With(crossplane.PausedAnnotation)
	case p.Behind && p.Installed == metav1.ConditionTrue: // the message is about the previous version
		return VersionNotLookedAt.With()
	}
	return orMessage(p.Message, Installing)
}

// orMessage returns the message of a status as a reason or, without a message, the reason of a code.
func orMessage(message string, otherwise Code) Reason {
	if message == "" {
		return otherwise.With()
	}
	return StatusMessage.With(message)
}
