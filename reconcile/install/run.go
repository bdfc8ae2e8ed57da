package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"
)

// A Cluster reads and writes objects. Get returns nil for what does not exist, and List nothing for kinds that are not served.
type Cluster interface {
	Get(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error)
	List(ctx context.Context, kind kinds.GroupVersionKind, labels, fields string) ([]*unstructured.Unstructured, error)
	Serves(kind kinds.GroupVersionKind) (bool, error)
	Apply(ctx context.Context, u *unstructured.Unstructured) (changed bool, err error)
	Delete(ctx context.Context, live *unstructured.Unstructured) error
	Wait(ctx context.Context, objects []*unstructured.Unstructured, within time.Duration) error
	Gone(ctx context.Context, objects []*unstructured.Unstructured, within time.Duration, why func(*unstructured.Unstructured) string) error
}

// A Run is one installation or its end.
type Run struct {
	Cluster Cluster
	Timeout time.Duration                 // of each wait
	NoWait  bool                          // do not wait for Pods
	DryRun  bool                          // write nothing
	Say     func(done, object string)     // is called for each object
	Note    func(format string, a ...any) // is called for what a person should know
}

// Brief names an object for people.
func Brief(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

// Install applies the objects of an installation, and deletes what an earlier one of the same namespace left. It can be repeated.
func (r Run) Install(ctx context.Context, namespace string, wanted []*unstructured.Unstructured) error {
	applied, err := r.admit(ctx, wanted)
	if err != nil {
		return err
	}
	for _, u := range applied {
		if err := r.apply(ctx, u); err != nil {
			return fmt.Errorf("%s: %w", Brief(u), err)
		}
	}
	live, err := r.owned(ctx, namespace)
	if err != nil {
		return err
	}
	if err := r.delete(ctx, Left(live, wanted), "deleted, because this installation does not need it:"); err != nil {
		return err
	}
	if err := r.noteUnwatched(ctx, namespace, wanted); err != nil {
		return err
	}
	if r.NoWait || r.DryRun {
		return nil
	}
	if err := r.Cluster.Wait(ctx, of("Deployment", applied), r.Timeout); err != nil {
		return fmt.Errorf("the objects are applied, and the controller does not run yet: %w; look at its Pods: kubectl describe replicasets,pods -n %s", err, namespace)
	}
	return nil
}

// admit returns the objects to apply, or why not to install. It writes nothing.
func (r Run) admit(ctx context.Context, wanted []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	deployments, err := r.controllers(ctx)
	if err == nil {
		err = Beside(wanted, deployments)
	}
	if err != nil {
		return nil, err
	}
	var applied []*unstructured.Unstructured
	for _, u := range wanted {
		if served, err := r.Cluster.Serves(u.GroupVersionKind()); err != nil || !served {
			return nil, orElse(err, fmt.Errorf("the API server does not serve %s %s: Headgate needs Kubernetes 1.30 or newer", u.GetAPIVersion(), u.GetKind()))
		}
		live, err := r.Cluster.Get(ctx, u)
		if err == nil {
			err = Helm(live, "helm upgrade")
		}
		applies := true
		if err == nil && live != nil {
			applies, err = r.overwrites(ctx, live, u)
		}
		if err != nil {
			return nil, err
		}
		if applies {
			applied = append(applied, u)
		}
	}
	return applied, nil
}

// overwrites reports whether to apply an object that exists.
func (r Run) overwrites(ctx context.Context, live, wanted *unstructured.Unstructured) (bool, error) {
	switch {
	case live.GetDeletionTimestamp() != nil:
		return false, fmt.Errorf("%s is being deleted: wait until it is gone", Brief(live))
	case live.GetKind() == "Namespace" && live.GetLabels()[PartOf] == "":
		r.Note("the namespace %s existed before, and its labels stay: it may not enforce the Pod Security profile restricted", live.GetName())
		return false, nil
	case live.GetKind() != "CustomResourceDefinition":
		return true, nil
	}
	syncs, err := r.Cluster.List(ctx, SyncKind, "", "")
	if err != nil {
		return false, err
	}
	applies, lacks, err := Upgrades(ctx, live, wanted, syncs)
	if err == nil && !applies {
		r.Note("the CRD %s is of a newer version and stays as it is. This version ignores: %s", live.GetName(), strings.Join(lacks, ", "))
	}
	return applies, err
}

func (r Run) apply(ctx context.Context, u *unstructured.Unstructured) error {
	if r.DryRun {
		r.Say("would be applied", Brief(u))
		return nil
	}
	changed, err := r.Cluster.Apply(ctx, u)
	if err != nil {
		return err
	}
	r.Say(map[bool]string{true: "applied", false: "unchanged"}[changed], Brief(u))
	if u.GetKind() == "CustomResourceDefinition" {
		return r.Cluster.Wait(ctx, []*unstructured.Unstructured{u}, r.Timeout)
	}
	return nil
}

// controllers returns the Deployments of controllers in all namespaces.
func (r Run) controllers(ctx context.Context) ([]*unstructured.Unstructured, error) {
	return r.Cluster.List(ctx, Kinds[0], "", "metadata.name="+Deployment)
}

// owned returns the objects of an installation that exist. Those of other objects, such as the EndpointSlices that Kubernetes makes for a
// Service and gives its labels, go with these.
func (r Run) owned(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, kind := range Kinds {
		found, err := r.Cluster.List(ctx, kind, Selector(namespace), "")
		if err != nil {
			return nil, err
		}
		all = append(all, slices.DeleteFunc(found, func(u *unstructured.Unstructured) bool { return len(u.GetOwnerReferences()) > 0 })...)
	}
	return all, nil
}

func (r Run) delete(ctx context.Context, all []*unstructured.Unstructured, word string) error {
	for _, u := range all {
		if r.DryRun {
			r.Say("would be deleted", Brief(u))
			continue
		}
		if err := r.Cluster.Delete(ctx, u); err != nil {
			return fmt.Errorf("%s: %w", Brief(u), err)
		}
		r.Say(word, Brief(u))
	}
	return nil
}

// A Removal is what 'headgate uninstall' finds.
type Removal struct {
	Namespace  string
	Deployment *unstructured.Unstructured   // nil if an earlier removal deleted it
	Owned      []*unstructured.Unstructured // what is deleted, in this order
	Syncs      []*unstructured.Unstructured // those that the installation runs
	Alone      bool                         // there is no other installation
	CRD        *unstructured.Unstructured   // nil if it stays
	Everything []*unstructured.Unstructured // all Syncs of the cluster
}

// Removal returns what the removal of an installation would delete and keep. It is an error if the installation may not be removed now.
// with reports whether its Syncs are deleted first.
func (r Run) Removal(ctx context.Context, namespace string, with bool) (Removal, error) {
	found := Removal{Namespace: namespace}
	controllers, err := r.controllers(ctx)
	if err != nil {
		return found, err
	}
	found.Alone = !slices.ContainsFunc(controllers, func(u *unstructured.Unstructured) bool { return u.GetNamespace() != namespace })
	owned, err := r.owned(ctx, namespace)
	if err != nil {
		return found, err
	}
	for _, u := range owned {
		if err := Helm(u, "helm uninstall"); err != nil {
			return found, err
		}
		if u.GetKind() == "Deployment" && u.GetName() == Deployment {
			found.Deployment = u
		}
	}
	found.Owned = slices.DeleteFunc(owned, func(u *unstructured.Unstructured) bool {
		return !strings.HasPrefix(u.GetName(), "headgate") || IsShared(u) && !found.Alone
	})
	if len(found.Owned) == 0 {
		return found, fmt.Errorf("there is no installation in the namespace %s: name its namespace with -n", namespace)
	}
	if found.Everything, err = r.Cluster.List(ctx, SyncKind, "", ""); err != nil {
		return found, err
	}
	if found.Deployment != nil {
		found.Syncs = Watched(found.Deployment, found.Everything)
	}
	if waiting := Waiting(found.Syncs); len(waiting) > 0 && !with {
		return found, fmt.Errorf("these Syncs are being deleted, and only the controller can finish that: %s. Wait until they are gone, or keep what they applied: set their spec.deletionPolicy to Orphan", strings.Join(waiting, ", "))
	}
	rest := len(found.Everything)
	if with {
		rest -= len(found.Syncs)
	}
	if rest == 0 && found.Alone {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(CRDKind)
		crd.SetName(shared[0])
		found.CRD, err = r.Cluster.Get(ctx, crd)
	}
	return found, err
}

// Uninstall removes an installation. With its Syncs, it deletes these first, while the controller can still delete what they applied.
// Everything else that they applied stays.
func (r Run) Uninstall(ctx context.Context, found Removal, with bool) error {
	if with {
		if err := r.delete(ctx, found.Syncs, "deleted"); err != nil {
			return err
		}
		if !r.DryRun {
			if err := r.Cluster.Gone(ctx, found.Syncs, r.Timeout, WhyStill); err != nil {
				return fmt.Errorf("the installation stays, because its controller has to finish: %w", err)
			}
		}
	}
	first := of("Deployment", found.Owned)
	if err := r.delete(ctx, first, "deleted"); err != nil {
		return err
	}
	if !r.NoWait && !r.DryRun {
		if err := r.ended(ctx, found.Namespace); err != nil {
			return err
		}
	}
	rest := slices.DeleteFunc(slices.Clone(found.Owned), func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })
	if found.CRD != nil {
		rest = append(rest, found.CRD)
	}
	if err := r.delete(ctx, rest, "deleted"); err != nil || r.NoWait || r.DryRun {
		return err
	}
	return r.gone(ctx, rest)
}

// gone waits until deleted objects are gone: the API server deletes a CRD later, and until then another installation would be refused.
func (r Run) gone(ctx context.Context, deleted []*unstructured.Unstructured) error {
	return r.Cluster.Gone(ctx, deleted, r.Timeout, func(*unstructured.Unstructured) string { return "" })
}

// ended waits until the Pods of an installation are gone, so that they write what they have begun with their rights.
func (r Run) ended(ctx context.Context, namespace string) error {
	const label = "app.kubernetes.io/name"
	pods, err := r.Cluster.List(ctx, PodKind, label, "metadata.namespace="+namespace)
	if err != nil {
		return err
	}
	return r.gone(ctx, slices.DeleteFunc(pods, func(u *unstructured.Unstructured) bool {
		name := u.GetLabels()[label]
		return name != PreviewDeployment && name != Deployment && !strings.HasPrefix(name, Deployment+"-")
	}))
}

// Kept returns lines about what stays in the cluster.
func (r Removal) Kept(with bool) []string {
	lines := []string{"The objects that Syncs applied stay, and so does the namespace " + r.Namespace + ", in which Syncs may have their inventories and keys."}
	if with {
		lines[0] = "What the Syncs with deletionPolicy Delete applied is deleted; what the others applied stays, and so does the namespace " + r.Namespace + "."
	}
	rest := len(r.Everything)
	if with {
		rest -= len(r.Syncs)
	}
	switch {
	case rest > 0 && r.Deployment != nil && !with:
		lines = append(lines, fmt.Sprintf("The CRD and %s stay. After 'headgate install', they go on where they stopped.", counted(rest)))
	case rest > 0:
		lines = append(lines, fmt.Sprintf("The CRD and %s stay.", counted(rest)))
	case !r.Alone:
		lines = append(lines, "The CRD stays, because another installation needs it.")
	}
	if waits := Deletes(r.Syncs); len(waits) > 0 && !with {
		lines = append(lines, "Without a controller, the deletion of these Syncs waits: "+strings.Join(waits, ", ")+".")
	}
	return lines
}

func counted(n int) string {
	if n == 1 {
		return "1 Sync"
	}
	return fmt.Sprintf("%d Syncs", n)
}

// of returns the objects of a kind.
func of(kind string, all []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(all), func(u *unstructured.Unstructured) bool { return u.GetKind() != kind })
}

func orElse(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
