package count

import (
	"context"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ready returns whether an object exists and is ready for its dependants. An object that cannot be read counts as not ready.
func (r respondent) ready(ctx context.Context, q question.Ready) (question.Readiness, error) {
	c, id := r.Counter, r.Actual(q.Of)
	if _, served := c.Surface.Kinds[api.GroupKind(id)]; !served {
		return unready(c.Surface.Known(api.GroupKind(id))), nil
	}
	live, err := c.Read(ctx, id)
	switch {
	case apierrors.IsNotFound(err):
		return question.Readiness{}, nil
	case err != nil: // usually forbidden
		return unready(c.Explain(err, "get", id.Brief())), nil
	case live.GetDeletionTimestamp() != nil:
		return question.Readiness{Exists: true, NotReady: reason.BeingDeleted.With()}, nil
	}
	why, err := c.whyNotReady(ctx, id, live)
	return question.Readiness{Exists: true, NotReady: why}, err
}

// unready returns the state of an object that cannot be read. Without an error, no such object exists.
func unready(err error) question.Readiness {
	if err == nil {
		return question.Readiness{}
	}
	return question.Readiness{Exists: true, NotReady: reason.Of(err)}
}

// whyNotReady returns why an object is not ready for its dependants, or no reason if it is. For Crossplane's kinds, it does not use
// the general rules of notReady: they count objects as ready that Crossplane has not reconciled yet.
func (c *Counter) whyNotReady(ctx context.Context, id manifest.ID, live *unstructured.Unstructured) (reason.Reason, error) {
	state, _, _ := unstructured.NestedString(live.Object, "spec", "state")
	switch categories := c.Surface.Kinds[api.GroupKind(id)].Categories; {
	case c.Health.Has(api.GroupKind(id)):
		return c.NotReady(ctx, live), nil
	case crossplane.IsMRD(id):
		d := crossplane.LiveDefinition{Active: state == "Active", Established: crossplane.Condition(live, "Established").Status}
		if d.Active && d.Established != metav1.ConditionTrue {
			if err := c.Ask(ctx, id.Name, &d); err != nil && !apierrors.IsNotFound(err) {
				return reason.Reason{}, err
			}
		}
		if !d.Active { // an inactive definition is ready: only a policy can change that
			return reason.Reason{}, nil
		}
		return facts.WhyDefinition(d), nil
	case id == crossplane.MRAP(id.Name):
		return facts.WhyPolicy(crossplane.LivePolicyOf(live)), nil
	case crossplane.IsPackage(id):
		return facts.WhyPackage(crossplane.LivePackageOf(live)), nil
	case crossplane.IsXRD(id):
		return isTrue(live, "Established"), nil
	case slices.ContainsFunc([]string{"managed", "composite", "claim"}, func(c string) bool { return slices.Contains(categories, c) }):
		return isTrue(live, "Ready"), nil
	}
	return NotReady(live), nil
}

// NotReady returns why an object is not ready according to the health checks of the sync, or else its status; no reason if it is.
func (c *Counter) NotReady(ctx context.Context, u *unstructured.Unstructured) reason.Reason {
	if !c.Health.Has(u.GroupVersionKind().GroupKind()) {
		return NotReady(u)
	}
	if s := c.Compute(ctx, u); s.Status != status.CurrentStatus {
		return reason.HealthCheck.With(s.Message)
	}
	return reason.Reason{}
}

// Compute returns the status of an object of a kind with a health check. No expression takes longer than healthTime.
func (c *Counter) Compute(ctx context.Context, u *unstructured.Unstructured) *status.Result {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	return c.Health.Compute(ctx, u)
}

// healthTime is more than a thousand times what an expression takes that a person would write.
const healthTime = time.Second

// isTrue returns why a condition of an object is not true; no reason if it is.
func isTrue(u *unstructured.Unstructured, kind string) reason.Reason {
	switch c := crossplane.Condition(u, kind); {
	case c.Status == metav1.ConditionTrue:
		return reason.Reason{}
	case c.Message != "":
		return reason.StatusMessage.With(c.Message)
	case c.Reason != "":
		return reason.StatusMessage.With(c.Reason)
	}
	return reason.ConditionNotTrue.With(kind)
}

// Unestablished returns why a CRD is not served; the zero value if it is.
func Unestablished(crd *apiextensions.CustomResourceDefinition) crossplane.CRD {
	if crd.DeletionTimestamp != nil {
		return crossplane.CRD{Deleting: true}
	}
	conditions := map[apiextensions.CustomResourceDefinitionConditionType]apiextensions.CustomResourceDefinitionCondition{}
	for _, c := range crd.Status.Conditions {
		conditions[c.Type] = c
	}
	for _, condition := range []apiextensions.CustomResourceDefinitionConditionType{apiextensions.NamesAccepted, apiextensions.Established} {
		if c := conditions[condition]; c.Status != apiextensions.ConditionTrue {
			return crossplane.CRD{Condition: metav1.Condition{Type: string(condition), Status: metav1.ConditionStatus(c.Status), Message: c.Message}}
		}
	}
	return crossplane.CRD{}
}

// NotReady returns why an object is not ready according to its status; no reason if it is.
func NotReady(u *unstructured.Unstructured) reason.Reason {
	if manifest.IDOf(u).IsCRD() {
		var crd apiextensions.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
			return reason.Of(err)
		}
		return facts.WhyCRD(Unestablished(&crd))
	}
	s, err := status.Compute(u)
	switch {
	case err != nil:
		return reason.Of(err)
	case s.Status == status.CurrentStatus:
		return reason.Reason{}
	case s.Message != "":
		return reason.StatusMessage.With(s.Message)
	}
	return reason.StatusIs.With(string(s.Status))
}
