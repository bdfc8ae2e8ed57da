package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/audit"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/target"

	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Protection is the admission policy, with its binding, that lets only certain users write the annotation for approvals, and only in
// their own name. An API server without it lets everybody write it who may change a Sync.
type Protection struct {
	Policy  admission.ValidatingAdmissionPolicy
	Binding admission.ValidatingAdmissionPolicyBinding
}

const (
	untilInForce   = 30 * time.Second // how long an API server may take until it enforces a new policy
	skew           = time.Minute      // by which the clock of a user may be ahead
	mostAnnotation = 4096             // bytes of the annotation: the inventory remembers every approval that is used
)

// since returns when the protection began; the zero time if the cluster does not have it as it is here. An approval that is older was not
// checked.
func (p Protection) since(ctx context.Context, from client.Reader) time.Time {
	policy, binding := &admission.ValidatingAdmissionPolicy{}, &admission.ValidatingAdmissionPolicyBinding{}
	if from.Get(ctx, client.ObjectKeyFromObject(&p.Policy), policy) != nil || from.Get(ctx, client.ObjectKeyFromObject(&p.Binding), binding) != nil {
		return time.Time{}
	}
	same := equality.Semantic.DeepEqual(policy.Spec, p.Policy.Spec) && equality.Semantic.DeepEqual(binding.Spec, p.Binding.Spec)
	if !same || policy.DeletionTimestamp != nil || binding.DeletionTimestamp != nil {
		return time.Time{}
	}
	if since := binding.CreationTimestamp.Time; since.After(policy.CreationTimestamp.Time) {
		return since
	}
	return policy.CreationTimestamp.Time
}

// approvals returns the approvals on the object that count: those that a user gave in his own name since the protection is in force. Without
// a protection they are not known, so none counts and none is forgotten.
func (j *subject) approvals() approval.Given {
	j.mu.Lock()
	object := j.object
	j.mu.Unlock()
	annotation := object.Annotations[v1alpha1.ApproveAnnotation]
	if len(annotation) > mostAnnotation {
		j.event(core.EventTypeWarning, v1alpha1.EventApprovalsDoNotCount, fmt.Sprintf("the annotation %s has more than %d bytes, so nothing in it approves; take out the approvals that were used", v1alpha1.ApproveAnnotation, mostAnnotation))
		return approval.Given{}
	}
	given := entries(annotation)
	if len(given) == 0 || j.of.Ceilings.Approvals == ApprovalsNever {
		return approval.Given{inventory.OnSync: nil}
	}
	ctx, cancel := context.WithTimeout(j.of.running, answerTime)
	defer cancel()
	since := j.of.Protection.since(ctx, j.of.direct)
	if since.IsZero() {
		for _, a := range given {
			j.record(audit.Entry{Event: audit.ApprovalRefused, By: a.By, Digest: a.Digest, Reason: "the admission policy is not in force"})
		}
		j.event(core.EventTypeWarning, v1alpha1.EventApprovalsDoNotCount, "the annotation "+v1alpha1.ApproveAnnotation+" approves nothing while the admission policy "+j.of.Protection.Policy.Name+" and its binding are not there as in examples/controller")
		return approval.Given{}
	}
	var counted []approval.Approval
	for _, a := range given {
		if why := unchecked(a, since, time.Now()); why != "" {
			j.event(core.EventTypeWarning, v1alpha1.EventApprovalsDoNotCount, fmt.Sprintf("the approval of %s does not count: %s", a.Digest, why))
			j.record(audit.Entry{Event: audit.ApprovalRefused, By: a.By, Digest: a.Digest, At: a.At, Reason: why})
			continue
		}
		j.record(audit.Entry{Event: audit.ApprovalGiven, By: a.By, Digest: a.Digest, At: a.At})
		counted = append(counted, target.Written(a))
	}
	return approval.Given{inventory.OnSync: counted}
}

// entries returns the approvals in an annotation as the admission policy reads it, which compares each text between two commas with the
// name of the user. A text that holds something else as well, such as a user name with a digest in it, names no user.
func entries(annotation string) []v1alpha1.GivenApproval {
	var all []v1alpha1.GivenApproval
	for text := range strings.SplitSeq(annotation, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		one := v1alpha1.ApprovalsIn(text)
		if len(one) != 1 || one[0].String() != text {
			one = []v1alpha1.GivenApproval{{Digest: legible.Short(text, v1alpha1.LongestName)}}
		}
		all = append(all, one[0])
	}
	return all
}

// unchecked returns why a protection that began at a time has not checked an approval; "" if it has.
func unchecked(a v1alpha1.GivenApproval, since, now time.Time) string {
	at, err := time.Parse(time.RFC3339, a.At)
	switch {
	case a.By == "":
		return "it is not written as DIGEST by USER at TIME"
	case err != nil:
		return "it has no time like 2026-01-31T12:00:00Z"
	case !at.After(since.Add(untilInForce)):
		return "the admission policy was not in force yet; approve again after " + since.Add(untilInForce).UTC().Format(time.RFC3339)
	case !at.Before(now.Add(skew)):
		return "its time is in the future"
	}
	return ""
}
