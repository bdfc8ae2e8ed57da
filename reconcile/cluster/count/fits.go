package count

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/fit"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// judgedAtOnce is the number of objects to read with one request and to hold in memory.
const judgedAtOnce = 50

// fits reads the objects of a CRD, or of the CRDs of an XRD, and counts those that a new definition would make invalid.
func (r respondent) fits(ctx context.Context, q question.Fits) (question.Misfits, error) {
	c := r.Counter
	crds := []manifest.ID{q.Of}
	if crossplane.IsXRD(q.Of) {
		xrd, err := c.Existing(ctx, q.Of)
		if err != nil || xrd == nil {
			return question.Misfits{}, err
		}
		crds = facts.CRDsOf(xrd)
	}
	var all question.Misfits
	var unchecked error
	for _, crd := range crds {
		a, err := c.fit(ctx, q.After, crd)
		if errors.As(err, new(fit.UncheckedError)) {
			unchecked = cmp.Or(unchecked, err)
		} else if err != nil {
			return question.Misfits{}, err
		}
		all = all.And(a)
	}
	if all.Count > 0 { // a misfit is known, whatever was not checked
		return all, nil
	}
	return all, unchecked
}

// fit reads the objects of one CRD, a page at a time.
func (c *Counter) fit(ctx context.Context, after plan.FullDefinition, of manifest.ID) (question.Misfits, error) {
	crd, err := c.Existing(ctx, of)
	if err != nil || crd == nil {
		return question.Misfits{}, err
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions := api.ReadableVersions(crd)
	if len(versions) == 0 {
		return question.Misfits{}, fmt.Errorf("the CRD %s serves no version", of.Name)
	}
	fitting, err := fit.New(after, crd, versions[0])
	if err != nil {
		return question.Misfits{}, err
	}
	at := c.Objects.Resource(schema.GroupVersionResource{Group: group, Version: versions[0], Resource: plural})
	for options := (metav1.ListOptions{Limit: judgedAtOnce}); ; {
		page, err := at.List(ctx, options)
		if err != nil {
			return question.Misfits{}, err
		}
		for i := range page.Items {
			fitting.Add(ctx, &page.Items[i])
		}
		if ctx.Err() != nil { // objects that CEL did not check must not count as fitting
			return question.Misfits{}, ctx.Err()
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" || fitting.Full() {
			return fitting.Answer(options.Continue != "")
		}
	}
}
