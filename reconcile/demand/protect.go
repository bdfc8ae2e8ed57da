package demand

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protect adds protection for the dependencies of objects that request it: a Usage for each dependency if Crossplane serves Usages,
// otherwise a finalizer on dependencies in this commit. A finalizer stays as long as an object that requested it exists, even after
// that object has left the commit.
func protect(o facts.Observed, objects []render.Object, answers map[manifest.ID]facts.Resolved) ([]render.Object, error) {
	asking, err := asking(objects)
	if err != nil || o.Stance.In(plan.OnCommit) && o.Commit.Owner == render.OwnerCrossplane {
		return objects, err // Crossplane may serve Usages
	}
	wanted := make(map[manifest.ID]bool, len(objects))
	protected := map[manifest.ID]bool{}
	users := map[manifest.ID][]render.Object{} // users of each protected object
	for _, of := range objects {
		wanted[of.ID] = true
		if !asking[of.ID] {
			continue
		}
		edges, _ := edges(o.Ground, facts.Asked{Object: of, Resolved: answers[of.ID]}) // orderOf reports the errors
		for _, e := range edges {
			if _, _, served := UsageOf(o.Ground, e.To); served {
				users[e.To] = append(users[e.To], of)
			} else {
				protected[e.To] = true
			}
		}
	}
	for id := range o.Inventory.Entries {
		if live, exists := o.Objects[id]; exists && !wanted[id] {
			for _, on := range LiveDependencies(o, id, live) {
				if _, _, served := UsageOf(o.Ground, on); !served && live.GetAnnotations()[plan.ProtectAnnotation] == "true" {
					protected[on] = true
				}
			}
		}
	}
	for i, of := range objects {
		if !protected[of.ID] {
			continue
		}
		content, err := of.Content()
		if err != nil {
			return nil, err
		}
		content.SetFinalizers(append(content.GetFinalizers(), plan.ProtectFinalizer))
		if objects[i], err = of.With(content); err != nil {
			return nil, err
		}
	}
	for _, on := range slices.SortedFunc(maps.Keys(users), manifest.ID.Compare) {
		usage, err := usage(o.Ground, on, users[on])
		if err != nil {
			return nil, err
		}
		objects = append(objects, usage)
	}
	return objects, nil
}

// asking returns the objects that request protection of their dependencies.
func asking(objects []render.Object) (map[manifest.ID]bool, error) {
	all := map[manifest.ID]bool{}
	var wrong []error
	for _, of := range objects {
		asks, err := asksToProtect(of)
		if err != nil {
			wrong = append(wrong, err)
		}
		if asks {
			all[of.ID] = true
		}
	}
	return all, errors.Join(wrong...)
}

func asksToProtect(of render.Object) (bool, error) {
	value, asked := of.Asks[plan.ProtectAnnotation]
	if asked && value != "true" && value != "false" {
		return false, catalogue.Errorf(of.Origin, "%s: %s is %q, and must be \"true\" or \"false\"", of.ID, plan.ProtectAnnotation, value)
	}
	return value == "true", nil
}

// UsageOf returns the ID of the Usage that protects an object, and the object's kind. served is false if Crossplane does not serve
// Usages, or if the kind is not known. An object has only one Usage, however many dependants it has, because Crossplane leaves its
// label on an object that loses two Usages at a time.
func UsageOf(o facts.Ground, on manifest.ID) (id manifest.ID, of plan.Kind, served bool) {
	of, known := o.Kinds[on.GroupKind()]
	namespace := ""
	if of.Namespaced {
		namespace = cmp.Or(on.Namespace, o.Space)
	}
	sum := sha256.Sum256([]byte(o.Inventory.Sync.Key() + " " + on.String()))
	id = crossplane.Usage(of.Namespaced, namespace, plan.UsagePrefix+hex.EncodeToString(sum[:plan.UsageSum]))
	_, served = o.Kinds[id.GroupKind()]
	return id, of, served && known
}

// usage returns the Usage that blocks the deletion of an object as long as the Usage exists. The Usage depends on the object, so
// the object is not pruned before the Usage.
func usage(o facts.Ground, on manifest.ID, by []render.Object) (render.Object, error) {
	id, of, _ := UsageOf(o, on)
	first := slices.MinFunc(by, func(a, b render.Object) int { return a.ID.Compare(b.ID) })
	depends, err := inAnnotation(manifest.ID{Group: on.Group, Kind: on.Kind, Namespace: id.Namespace, Name: on.Name})
	if err != nil {
		return render.Object{}, catalogue.Errorf(first.Origin, "%s: %w", first.ID, err)
	}
	who := "the " + first.ID.Brief() + " depends"
	if more := len(by) - 1; more > 0 {
		who = fmt.Sprintf("the %s and %d more depend", first.ID.Brief(), more)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": id.Group + "/v1beta1",
		"kind":       id.Kind,
		"spec": map[string]any{
			"of": map[string]any{
				"apiVersion":  schema.GroupVersion{Group: on.Group, Version: of.Version}.String(),
				"kind":        on.Kind,
				"resourceRef": map[string]any{"name": on.Name},
			},
			"reason": fmt.Sprintf("%s on it (%s)", who, plan.ProtectAnnotation),
		},
	}}
	u.SetName(id.Name)
	u.SetNamespace(id.Namespace)
	u.SetAnnotations(depends)
	return render.NewObject(u, first.Origin)
}

// LiveDependencies returns the dependencies that a live object declares.
func LiveDependencies(o facts.Observed, id manifest.ID, live metav1.Object) []manifest.ID {
	of := render.Object{ID: id, Asks: live.GetAnnotations()}
	references, _ := references(o, of) // do not wait for an unreadable reference
	edges, _ := edges(o.Ground, facts.Asked{Object: of, Resolved: facts.Resolved{References: references}})
	ids := make([]manifest.ID, len(edges))
	for i, e := range edges {
		ids[i] = e.To
	}
	return ids
}

// Unprotected returns warnings about dependencies that cannot be protected, because Headgate sets no finalizers on objects of
// others.
func Unprotected(first Order, seen facts.Observed) []manifest.Finding {
	wanted := make(map[manifest.ID]bool, len(seen.Asked))
	for _, a := range seen.Asked {
		wanted[a.ID] = true
	}
	var found []manifest.Finding
	home := seen.Homes()
	for _, a := range seen.Asked {
		if a.Asks[plan.ProtectAnnotation] != "true" {
			continue
		}
		for _, e := range first[a.ID] {
			if _, _, served := UsageOf(seen.Ground, e.To); !served && !wanted[e.To] {
				found = append(found, manifest.Finding{
					Rule: "unprotected-dependency", Severity: manifest.Warning, Origin: a.Origin, About: manifest.About{Object: a.ID, Subject: e.To.String()},
					Message: fmt.Sprintf("%s asks to protect the %s, which is not in this commit, and Crossplane serves no Usages that could protect it", home(a.ID), home(e.To).Brief()),
					Fix:     "declare it here, or install Crossplane with Usages",
				})
			}
		}
	}
	return found
}

// LeftHeld reports whether a live definition has our finalizer although the commit wants the definition without it: an earlier pass
// that was deleting the definition was interrupted.
func LeftHeld(want render.Object, live *metav1.PartialObjectMetadata) bool {
	if !crossplane.IsMRD(want.ID) || !slices.Contains(live.GetFinalizers(), plan.ProtectFinalizer) {
		return false
	}
	content, err := want.Content()
	return err == nil && !slices.Contains(content.GetFinalizers(), plan.ProtectFinalizer)
}
