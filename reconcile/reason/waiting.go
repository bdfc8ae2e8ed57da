package reason

import "slices"

// The codes of steps that wait for their kind.
const (
	AwaitsCRD        Code = "AwaitsCRD"        // the CRD of the same plan that serves the kind
	PackageMayServe  Code = "PackageMayServe"  // a package that may contain the kind, and the kind
	CrossplaneComes  Code = "CrossplaneComes"  // the object of the commit that installs Crossplane, and the kind that Crossplane serves
	PackagesMayServe Code = "PackagesMayServe" // packages that may contain the kind, and the kind
	CRDHeld          Code = "CRDHeld"          // the CRD of the kind, and the guard that holds it
	PolicyHeld       Code = "PolicyHeld"       // the policy that activates the definition of the kind, and the guard that holds it
)

// The codes of steps whose kind is not served.
const (
	KindInactive     Code = "KindInactive"     // the kind, and its definition, which nothing activates
	KindNowhere      Code = "KindNowhere"      // the kind, which nothing in the commit defines
	CrossplaneAbsent Code = "CrossplaneAbsent" // the kind, which Crossplane would serve if it were installed
	KindHidden       Code = "KindHidden"       // the kind of an object that may exist although the kind is not served, and why
	KindUnreadable   Code = "KindUnreadable"   // the kind of an unreadable object, and the reason
	ObjectUnreadable Code = "ObjectUnreadable" // why an object cannot be read although others of its kind can
	CRDTerminating   Code = "CRDTerminating"   // the CRD of the kind, which is being deleted
	CRDServesNothing Code = "CRDServesNothing" // the CRD of the kind, which serves no version
	CRDRefused       Code = "CRDRefused"       // the CRD of the kind, and the message of its condition
	CRDNotYetServed  Code = "CRDNotYetServed"  // the CRD of the kind
	APIServiceEmpty  Code = "APIServiceEmpty"  // the APIService of the group, whose API server does not list the kind
)

// Is reports whether the error is an ErrUnserved.
func (p CodedError) Is(target error) bool {
	return target == ErrUnserved && slices.Contains([]Code{KindInactive, KindNowhere, KindHidden, CrossplaneAbsent}, p.Code)
}
