package crossplane

import (
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A State is the progress of Crossplane with an object.
type State string

// The states.
const (
	Ready    State = "ready"    // or as ready as the object is meant to become
	Pending  State = "pending"  // Crossplane is working on the object, or has not begun
	Inactive State = "inactive" // a definition that no policy activates
	Blocked  State = "blocked"  // Crossplane reports an error that does not go away by itself
	Paused   State = "paused"   // a user paused it, and it is not ready
)

// A LiveDefinition is an MRD as it is in the cluster.
type LiveDefinition struct {
	Active      bool
	Paused      bool
	Established metav1.ConditionStatus // "" if Crossplane has not reported it
	Message     string                 // why it is not established, if Crossplane reports it
	CRD         CRD                    // set while Crossplane is establishing the definition
	Revision    string                 // the package revision that controls it; "" if none does
}

// A CRD describes why an API server does not serve a CRD. The zero value means that it is served, or that nothing is known.
type CRD struct {
	Deleting  bool
	Condition metav1.Condition // the first condition that is not true; without a status if the API server has not reported it
}

// Terminating is the reason of the condition Established of an MRD whose deletion Crossplane has noticed.
const Terminating = "TerminatingManagedResource"

// State returns the state of the definition. Crossplane distinguishes pending from blocked by the status of
// the condition, Unknown or False: the reason is the same.
func (d LiveDefinition) State() State {
	switch {
	case !d.Active:
		return Inactive
	case d.Established == metav1.ConditionTrue:
		return Ready
	case d.Paused:
		return Paused
	case d.Established == metav1.ConditionFalse:
		return Blocked
	}
	return Pending
}

// A LivePolicy is an MRAP as it is in the cluster.
type LivePolicy struct {
	Patterns []string
	Paused   bool
	Healthy  metav1.ConditionStatus
	Awaits   bool // the CRDs of what it activates are not established, which not every Crossplane reports
	Message  string
}

// LivePolicyOf reads an MRAP.
func LivePolicyOf(u *unstructured.Unstructured) LivePolicy {
	healthy := Condition(u, "Healthy")
	globs, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "activate")
	established := Condition(u, "Established")
	p := LivePolicy{Patterns: globs, Paused: IsPaused(u), Healthy: healthy.Status, Message: healthy.Message, Awaits: awaits(established)}
	if p.Message == "" && p.Awaits {
		p.Message = established.Message
	}
	return p
}

// awaits reports whether the condition Established of a policy shows that CRDs are not established. Releases up to v2.4 set the condition
// only if they cannot list definitions or if the policy is deleted, and never clear it, so these reasons do not count.
func awaits(established metav1.Condition) bool {
	switch established.Reason {
	case "", "BlockedManagedResourceActivationPolicy", "TerminatingManagedResourceActivationPolicy":
		return false
	}
	return established.Status != metav1.ConditionTrue
}

// State returns the state of the policy. A paused policy is Paused even if Crossplane once reported it as healthy.
func (p LivePolicy) State() State {
	switch {
	case p.Paused:
		return Paused
	case p.Healthy == metav1.ConditionTrue && !p.Awaits:
		return Ready
	case p.Healthy != metav1.ConditionTrue && p.Message != "":
		return Blocked
	}
	return Pending
}

// Matches reports whether the policy activates the definition with this name.
func (p LivePolicy) Matches(name string) bool {
	return !p.Paused && slices.ContainsFunc(p.Patterns, func(pattern string) bool { return Matches(pattern, name) })
}

// Matching returns the patterns that activate the definition with this name.
func (p LivePolicy) Matching(name string) []string {
	if !p.Matches(name) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Patterns), func(pattern string) bool { return !Matches(pattern, name) })
}

// Wildcards returns the patterns of the policy that may match unknown definitions.
func (p LivePolicy) Wildcards() []string {
	if p.Paused {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(p.Patterns), func(pattern string) bool {
		_, malformed := path.Match(pattern, "")
		return malformed != nil || !strings.ContainsAny(pattern, `*?[\`)
	})
}

// Matches reports whether a pattern of a policy activates the definition with this name. On every operating system, it matches as
// filepath.Match does on Linux. A malformed pattern matches nothing, as in Crossplane.
func Matches(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}

// A LivePackage is a Provider, Configuration or Function as it is in the cluster.
type LivePackage struct {
	Installed, Healthy metav1.ConditionStatus
	Paused             bool
	Reason             string // of the deciding condition
	Message            string
	Image, Revision    string // that Crossplane handled last; "" if it has not handled any
	Behind             bool   // the object requests another image than Image
}

// The reasons of a package that is unhealthy and stays so without a user's action.
const (
	AwaitingActivation = "AwaitingActivation"      // no definition of a provider is active, which is fine
	InactiveRevision   = "InactivePackageRevision" // its revision waits for a user
)

// LivePackageOf reads a Provider, Configuration or Function.
func LivePackageOf(u *unstructured.Unstructured) LivePackage {
	installed, healthy := Condition(u, "Installed"), Condition(u, "Healthy")
	p := LivePackage{Installed: installed.Status, Healthy: healthy.Status, Paused: IsPaused(u), Reason: healthy.Reason, Message: healthy.Message}
	if installed.Status != metav1.ConditionTrue {
		p.Reason, p.Message = installed.Reason, installed.Message
	}
	p.Image, _, _ = unstructured.NestedString(u.Object, "status", "currentIdentifier")
	p.Revision, _, _ = unstructured.NestedString(u.Object, "status", "currentRevision")
	image, _, _ := unstructured.NestedString(u.Object, "spec", "package")
	p.Behind = p.Image != "" && p.Image != image
	return p
}

// State returns the state of the package. A package is never blocked: Crossplane also reports a package that it has just started
// with as unhealthy, and only time shows the difference.
func (p LivePackage) State() State {
	switch {
	case p.Behind && p.Paused:
		return Paused
	case p.Behind:
		return Pending
	case p.Installed == metav1.ConditionTrue && p.Healthy == metav1.ConditionTrue:
		return Ready
	case p.Reason == AwaitingActivation, p.Reason == InactiveRevision:
		return Ready
	case p.Paused:
		return Paused
	}
	return Pending
}

// Condition returns a condition in the status of an object; zero if the object does not have it.
func Condition(u *unstructured.Unstructured, kind string) metav1.Condition {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range list {
		m, _ := item.(map[string]any)
		if m["type"] != kind {
			continue
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
	}
	return metav1.Condition{}
}

// IsPaused reports whether Crossplane does not reconcile an object.
func IsPaused(o metav1.Object) bool { return o.GetAnnotations()[PausedAnnotation] == "true" }

// RevisionOf returns the name of the package revision that controls an object, if any.
func RevisionOf(o metav1.Object) (name string, ok bool) {
	ref := metav1.GetControllerOf(o)
	if ref == nil || !strings.HasPrefix(ref.APIVersion, Packages+"/") {
		return "", false
	}
	return ref.Name, true
}

// ProviderOf returns the identity of the Provider that owns a package revision; zero if none does.
func ProviderOf(revision metav1.Object) manifest.ID {
	var id manifest.ID
	for _, owner := range revision.GetOwnerReferences() {
		if owner.Kind == Provider {
			id = idOf(KindProvider, owner.Name)
		}
	}
	return id
}

// IsActiveRevision reports whether Crossplane runs a package revision.
func IsActiveRevision(u *unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(u.Object, "spec", "desiredState")
	return state == "Active" && !IsPaused(u)
}
