// Package count answers the questions of guards from a cluster: it counts what depends on an object, and compares what a change would
// break. It changes nothing; the only writes that it sends are dry runs.
package count

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/health"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// patience is the time limit of one count. After it, the object counts as in use.
const patience = 30 * time.Second

// A Counter answers the questions of guards for one sync: it counts what depends on objects, and compares what would change.
type Counter struct {
	*api.Client

	Health health.Checks // of the sync; they decide when objects are ready

	owner holder
}

// A holder returns the inventory of the sync, in the cluster's spelling.
type holder interface {
	Holdings(ctx context.Context) (inventory.Inventory, error)
}

// New returns a Counter for the sync of a Client.
func New(client *api.Client, owner holder) *Counter { return &Counter{Client: client, owner: owner} }

// Answer answers questions of guards. A failed count is also an answer; an error means that no question can be answered.
func (c *Counter) Answer(ctx context.Context, questions []question.Any) (question.Answers, error) {
	if c.Surface == nil {
		s, err := c.Discover(ctx)
		if err != nil {
			return nil, err
		}
		c.Surface = s
	}
	by := respondent{c, sync.OnceValues(func() ([]unstructured.Unstructured, error) { return c.usagesOf(ctx) })}
	answered, err := api.InParallel(ctx, c.Concurrency, questions, func(ctx context.Context, q question.Any) (any, error) {
		counting, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		a, err := by.answer(counting, q)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			a = question.Unknown{Why: reason.CodedError{Reason: c.unknown(err)}}
		}
		return a, nil
	})
	if err != nil {
		return nil, err
	}
	answers := make(question.Answers, len(questions))
	for i, q := range questions {
		answers[q] = answered[i]
	}
	return answers, nil
}

// unknown returns the reason why a count failed.
func (c *Counter) unknown(err error) reason.Reason {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return reason.CountTooLong.With(patience.String())
	case apierrors.IsForbidden(err):
		return reason.CountForbidden.With(err.Error())
	}
	return reason.Of(api.Cause(err))
}

// A respondent answers the questions of one round, which share the reads of Usages.
type respondent struct {
	*Counter
	usages func() ([]unstructured.Unstructured, error)
}

// A response answers the questions of one type. is reports whether q has that type.
type response func(ctx context.Context, by respondent, q question.Any) (a any, is bool, err error)

// respond returns the response to questions of type Q.
func respond[Q question.Of[A], A any](get func(by respondent, ctx context.Context, q Q) (A, error)) response {
	return func(ctx context.Context, by respondent, q question.Any) (any, bool, error) {
		typed, is := q.(Q)
		if !is {
			return nil, false, nil
		}
		a, err := get(by, ctx, typed)
		return a, true, err
	}
}

// responses are the questions that a cluster answers.
var responses = []response{
	respond(respondent.dependents),
	respond(respondent.inside),
	respond(respondent.protectors),
	respond(respondent.present),
	respond(respondent.stored),
	respond(respondent.departs),
	respond(respondent.fits),
	respond(respondent.controls),
	respond(respondent.leftovers),
	respond(respondent.applied),
	respond(respondent.ready),
}

// answer answers a question.
func (r respondent) answer(ctx context.Context, q question.Any) (any, error) {
	for _, respond := range responses {
		if a, is, err := respond(ctx, r, q); is {
			return a, err
		}
	}
	return nil, fmt.Errorf("a cluster cannot answer this question: %s", question.Text([]question.Any{q}))
}

// dependents counts what is deleted with an object or breaks without it.
func (r respondent) dependents(ctx context.Context, q question.Dependents) (question.Counted, error) {
	c := r.Counter
	id := q.Of
	switch {
	case id.IsCRD(), crossplane.IsMRD(id):
		return c.instances(ctx, id.Name)
	case crossplane.IsXRD(id):
		return c.composites(ctx, id)
	case crossplane.IsComposition(id):
		return c.composedBy(ctx, id)
	case crossplane.IsPackage(id) && id.Kind == crossplane.Function:
		return c.runBy(ctx, id)
	case crossplane.IsPackage(id):
		return c.packaged(ctx, id)
	}
	if id.Kind == "ProviderConfig" || id.Kind == "ClusterProviderConfig" {
		return c.configUsages(ctx, id)
	}
	return question.Counted{}, nil // nothing depends on objects of other kinds
}

// usagesOf returns all of Crossplane's Usages, whatever they protect.
func (c *Counter) usagesOf(ctx context.Context) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, gk := range crossplane.Usages {
		if _, served := c.Surface.Kinds[gk]; !served {
			if err := c.Surface.Known(gk); err != nil {
				return nil, err
			}
			continue
		}
		err := c.Reading(ctx, c.Surface, gk, func(gvr schema.GroupVersionResource) error {
			l, err := c.Objects.Resource(gvr).List(ctx, metav1.ListOptions{})
			if err == nil {
				all = append(all, l.Items...)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// protectors counts the Usages that name an object.
func (r respondent) protectors(ctx context.Context, q question.Protectors) (question.Counted, error) {
	c, id := r.Counter, q.Of
	all, err := r.usages()
	if err != nil || len(all) == 0 {
		return question.Counted{}, err
	}
	o, err := c.Get(ctx, c.Surface, id)
	if apierrors.IsNotFound(err) {
		return question.Counted{}, nil
	}
	if err != nil {
		return question.Counted{}, err
	}
	var t tally
	for i := range all {
		// Usages that are being deleted count, because Crossplane honours them.
		if u := &all[i]; crossplane.UsageNames(u, id, o.Labels) {
			t.add(manifest.IDOf(u))
			if why, _, _ := unstructured.NestedString(u.Object, "spec", "reason"); why != "" && t.Count == 1 {
				t.Example += fmt.Sprintf(" (%q)", why)
			}
		}
	}
	return question.Counted(t), nil
}

// present reports whether the object exists.
func (r respondent) present(ctx context.Context, q question.Present) (bool, error) {
	_, err := r.Read(ctx, q.Of)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// stored returns the versions in which objects of a CRD are stored.
func (r respondent) stored(ctx context.Context, q question.Stored) ([]string, error) {
	u, err := r.Read(ctx, q.Of)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	versions, _, err := unstructured.NestedStringSlice(u.Object, "status", "storedVersions")
	return versions, err
}

// A tally counts objects and keeps the first one as an example.
type tally question.Counted

// add counts an object. id is its identity in the cluster.
func (t *tally) add(id manifest.ID) {
	if t.Count == 0 {
		t.Example = id.Brief()
	}
	t.Count++
	t.These = append(t.These, id)
}

func (t *tally) addAll(a question.Counted) {
	if t.Count == 0 {
		t.Example = a.Example
	}
	t.Count += a.Count
	t.These = append(t.These, a.These...)
}

// instances counts the custom resources of a CRD. It reads them in the version that they are stored in, which needs no conversion
// webhook. A CRD that was never established, for example because another one has its names, has none: the API server keeps Established
// once it is True.
func (c *Counter) instances(ctx context.Context, crd string) (question.Counted, error) {
	u, err := c.Existing(ctx, plan.CRD(crd))
	if err != nil || u == nil {
		return question.Counted{}, err
	}
	if crossplane.Condition(u, "Established").Status != metav1.ConditionTrue {
		return question.Counted{}, nil
	}
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
	plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
	versions := api.ReadableVersions(u)
	if len(versions) == 0 {
		return question.Counted{}, fmt.Errorf("the CRD %s serves no version", crd)
	}
	return c.some(ctx, schema.GroupVersionResource{Group: group, Version: versions[0], Resource: plural}, kind)
}

// mostNamed is the maximum number of blocking objects to list by name. A commit rarely removes more of them together with their
// dependency.
const mostNamed = 10

// some counts the objects of a kind and lists the first of them by name.
func (c *Counter) some(ctx context.Context, gvr schema.GroupVersionResource, kind string) (question.Counted, error) {
	l, err := c.Metadata.Resource(gvr).List(ctx, metav1.ListOptions{Limit: mostNamed})
	if err != nil {
		return question.Counted{}, err
	}
	var t tally
	for _, item := range l.Items {
		t.add(manifest.ID{Group: gvr.Group, Kind: kind, Namespace: item.Namespace, Name: item.Name})
	}
	switch {
	case l.RemainingItemCount != nil:
		t.Count += *l.RemainingItemCount
	case l.Continue != "":
		t.Count++ // there are more; the server does not report how many
	}
	return question.Counted(t), nil
}

// count reads the objects of a kind in full, a page at a time, and counts those that which accepts.
func (c *Counter) count(ctx context.Context, gk schema.GroupKind, t *tally, which func(*unstructured.Unstructured) bool) error {
	options := metav1.ListOptions{Limit: 500}
	for {
		var l *unstructured.UnstructuredList
		err := c.Reading(ctx, c.Surface, gk, func(gvr schema.GroupVersionResource) (err error) {
			l, err = c.Objects.Resource(gvr).List(ctx, options)
			return err
		})
		if err != nil {
			return err
		}
		for i := range l.Items {
			if o := &l.Items[i]; which(o) {
				t.add(manifest.IDOf(o))
			}
		}
		if options.Continue = l.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// inside counts the objects in a namespace that do not belong to this sync, of every kind. The marks of the sync do not prove that
// an object belongs to it, because copies carry them, too. The sync's own inventory counts as foreign: it must not be deleted with
// the namespace.
func (r respondent) inside(ctx context.Context, q question.Inside) (question.Counted, error) {
	c, namespace := r.Counter, q.Of.Name
	if err := c.complete(); err != nil {
		return question.Counted{}, err
	}
	owned, err := c.owner.Holdings(ctx)
	if err != nil {
		return question.Counted{}, err
	}
	kinds := slices.DeleteFunc(slices.Clone(c.Surface.Listable), func(gk schema.GroupKind) bool {
		return !c.Surface.Kinds[gk].Namespaced || gk.Kind == "Event" && (gk.Group == "" || gk.Group == "events.k8s.io") ||
			gk.Group == "metrics.k8s.io" // metrics of pods; the pods themselves are counted
	})
	type listed struct {
		objects   []*metav1.PartialObjectMetadata
		forbidden error
	}
	found, err := api.InParallel(ctx, c.Concurrency, kinds, func(ctx context.Context, gk schema.GroupKind) (listed, error) {
		objects, err := c.List(ctx, c.Surface, gk, namespace, "")
		switch {
		case api.IsUnknownKind(err):
			objects, err = c.listAgain(ctx, gk, namespace)
		case apierrors.IsMethodNotSupported(err):
			return listed{}, nil
		}
		if apierrors.IsForbidden(err) { // record it, so that the reported kind does not depend on timing
			return listed{forbidden: err}, nil
		}
		return listed{objects: objects}, err
	})
	if err != nil {
		return question.Counted{}, err
	}
	var t tally
	for _, l := range found {
		if l.forbidden != nil {
			return question.Counted{}, l.forbidden
		}
		for _, o := range l.objects {
			if !owned.GoesAlong(api.IDOf(o), o) && !comesWithNamespace(api.IDOf(o)) {
				t.add(api.IDOf(o))
			}
		}
	}
	return question.Counted(t), nil
}

// discoveryLag is how long discovery may list a kind that the API server no longer serves.
const discoveryLag = 5 * time.Second

// listAgain lists a kind after the API server has answered that it does not serve it. The CRD may have been deleted since the
// discovery. A kind that a newer discovery does not list has no objects. If discovery still lists the kind after discoveryLag,
// listAgain returns the error.
func (c *Counter) listAgain(ctx context.Context, gk schema.GroupKind, namespace string) ([]*metav1.PartialObjectMetadata, error) {
	for begun := time.Now(); ; api.Sleep(ctx, 200*time.Millisecond) {
		now, err := c.Discover(ctx)
		if err != nil {
			return nil, err
		}
		if _, served := now.Kinds[gk]; !served {
			return nil, now.Known(gk)
		}
		objects, err := c.List(ctx, now, gk, namespace, "")
		if !api.IsUnknownKind(err) || ctx.Err() != nil || time.Since(begun) > discoveryLag {
			return objects, err
		}
	}
}

// complete returns an error if the discovery of a group failed.
func (c *Counter) complete() error {
	for group, err := range c.Surface.Broken {
		return fmt.Errorf("discovery of the group %s is incomplete: %w", group, err)
	}
	return nil
}

// comesWithNamespace reports whether Kubernetes creates an object in every namespace.
func comesWithNamespace(id manifest.ID) bool {
	return id.Group == "" && (id.Kind == "ConfigMap" && id.Name == "kube-root-ca.crt" ||
		id.Kind == "ServiceAccount" && id.Name == "default")
}
