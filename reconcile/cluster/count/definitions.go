package count

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"

	core "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// Policies returns the policies of the cluster by name, with one request; nil if there are none.
func (c *Counter) Policies(ctx context.Context, s *api.Surface) (map[string]crossplane.LivePolicy, error) {
	var all map[string]crossplane.LivePolicy
	err := c.EachOf(ctx, s, crossplane.KindMRAP, func(u *unstructured.Unstructured) {
		if all == nil {
			all = map[string]crossplane.LivePolicy{}
		}
		all[u.GetName()] = crossplane.LivePolicyOf(u)
	})
	return all, err
}

// Ask reads why one definition is not established.
func (c *Counter) Ask(ctx context.Context, name string, l *crossplane.LiveDefinition) (err error) {
	if l.Established == metav1.ConditionUnknown {
		l.CRD, err = c.pending(ctx, name)
		return err
	}
	u, err := c.Read(ctx, crossplane.MRD(name))
	if err != nil {
		return c.Explain(err, "get", "ManagedResourceDefinition "+name)
	}
	l.Paused = crossplane.IsPaused(u)
	if l.Established == metav1.ConditionFalse && !l.Paused {
		l.Message = c.blocked(ctx, u)
	}
	return nil
}

// blocked returns why Crossplane does not make the CRD of a definition. The condition hardly says more than that there are events.
// Without the right to read these, blocked returns the condition's message.
func (c *Counter) blocked(ctx context.Context, mrd *unstructured.Unstructured) string {
	text := crossplane.Condition(mrd, "Established").Message
	events, err := c.Core.Events("").List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.kind": crossplane.KindMRD.Kind, "involvedObject.uid": string(mrd.GetUID()), "type": core.EventTypeWarning,
	}.String()})
	if err != nil || len(events.Items) == 0 {
		return text
	}
	newest := slices.MaxFunc(events.Items, func(a, b core.Event) int { return cmp.Compare(at(a), at(b)) })
	return strings.TrimPrefix(text+": "+newest.Message, ": ")
}

// at returns when an event was last seen, in seconds.
func at(e core.Event) int64 {
	if e.Series != nil {
		return e.Series.LastObservedTime.Unix()
	}
	return max(e.LastTimestamp.Unix(), e.EventTime.Unix())
}

// pending returns why the CRD of a definition is not served.
func (c *Counter) pending(ctx context.Context, name string) (crossplane.CRD, error) {
	u, err := c.Read(ctx, plan.CRD(name))
	if err != nil {
		return crossplane.CRD{}, c.Explain(err, "get", "CustomResourceDefinition "+name)
	}
	var crd apiextensions.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd); err != nil {
		return crossplane.CRD{}, err
	}
	return Unestablished(&crd), nil
}
