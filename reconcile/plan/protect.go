package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ProtectAnnotation requests that no client can delete the dependencies of an object before the object.
const ProtectAnnotation = "headgate.dev/protect-dependencies"

// usagePrefix is the prefix of the names of Usages that Headgate adds.
const usagePrefix = "headgate-"

// isOurUsage reports whether an object is a Usage that Headgate added to protect a dependency.
func isOurUsage(id manifest.ID) bool {
	sum, ours := strings.CutPrefix(id.Name, usagePrefix)
	_, err := hex.DecodeString(sum)
	return ours && err == nil && len(sum) == 2*usageSum && crossplane.IsUsage(id.GroupKind())
}

// usageSum is the number of hash bytes in the name of a Usage.
const usageSum = 8

// ProtectFinalizer keeps two kinds of objects from being deleted: dependencies of other objects, if Crossplane serves no Usages,
// and definitions until Crossplane has noticed that their CRDs stay.
const ProtectFinalizer = "headgate.dev/protected"

// protect adds protection for the dependencies of objects that request it: a Usage for each dependency if Crossplane serves Usages,
// otherwise a finalizer on dependencies in this commit. A finalizer stays as long as an object that requested it exists, even after
// that object has left the commit.
func (o Observed) protect(objects []render.Object, answers map[manifest.ID]resolved) ([]render.Object, error) {
	if o.Stance == Looking {
		return objects, nil
	}
	asking, err := asking(objects)
	if err != nil || o.Stance.In(OnCommit) && o.commit.Owner == render.OwnerCrossplane {
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
		edges, _ := o.edges(Asked{Object: of, resolved: answers[of.ID]}) // orderOf reports the errors
		for _, e := range edges {
			if _, _, served := o.usageOf(e.to); served {
				users[e.to] = append(users[e.to], of)
			} else {
				protected[e.to] = true
			}
		}
	}
	for id := range o.Inventory.Entries {
		if live, exists := o.Objects[id]; exists && !wanted[id] {
			for _, on := range o.LiveDependencies(id, live) {
				if _, _, served := o.usageOf(on); !served && live.GetAnnotations()[ProtectAnnotation] == "true" {
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
		content.SetFinalizers(append(content.GetFinalizers(), ProtectFinalizer))
		if objects[i], err = of.With(content); err != nil {
			return nil, err
		}
	}
	for _, on := range slices.SortedFunc(maps.Keys(users), manifest.ID.Compare) {
		usage, err := o.usage(on, users[on])
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
	value, asked := of.Asks[ProtectAnnotation]
	if asked && value != "true" && value != "false" {
		return false, catalogue.Errorf(of.Origin, "%s: %s is %q, and must be \"true\" or \"false\"", of.ID, ProtectAnnotation, value)
	}
	return value == "true", nil
}

// usageOf returns the ID of the Usage that protects an object, and the object's kind. served is false if Crossplane does not serve
// Usages, or if the kind is not known. An object has only one Usage, however many dependants it has, because Crossplane leaves its
// label on an object that loses two Usages at a time.
func (o Observed) usageOf(on manifest.ID) (id manifest.ID, of Kind, served bool) {
	of, known := o.Kinds[on.GroupKind()]
	namespace := ""
	if of.Namespaced {
		namespace = cmp.Or(on.Namespace, o.Space)
	}
	sum := sha256.Sum256([]byte(o.Inventory.Sync.Key() + " " + on.String()))
	id = crossplane.Usage(of.Namespaced, namespace, usagePrefix+hex.EncodeToString(sum[:usageSum]))
	_, served = o.Kinds[id.GroupKind()]
	return id, of, served && known
}

// usage returns the Usage that blocks the deletion of an object as long as the Usage exists. The Usage depends on the object, so
// the object is not pruned before the Usage.
func (o Observed) usage(on manifest.ID, by []render.Object) (render.Object, error) {
	id, of, _ := o.usageOf(on)
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
			"reason": fmt.Sprintf("%s on it (%s)", who, ProtectAnnotation),
		},
	}}
	u.SetName(id.Name)
	u.SetNamespace(id.Namespace)
	u.SetAnnotations(depends)
	return render.NewObject(u, first.Origin)
}

// LiveDependencies returns the dependencies that a live object declares.
func (o Observed) LiveDependencies(id manifest.ID, live metav1.Object) []manifest.ID {
	of := render.Object{ID: id, Asks: live.GetAnnotations()}
	references, _ := o.references(of) // do not wait for an unreadable reference
	edges, _ := o.edges(Asked{Object: of, resolved: resolved{references: references}})
	ids := make([]manifest.ID, len(edges))
	for i, e := range edges {
		ids[i] = e.to
	}
	return ids
}

// unprotected returns warnings about dependencies that cannot be protected, because Headgate sets no finalizers on objects of
// others.
func unprotected(first order, seen Observed) []manifest.Finding {
	wanted := make(map[manifest.ID]bool, len(seen.Asked))
	for _, a := range seen.Asked {
		wanted[a.ID] = true
	}
	var found []manifest.Finding
	home := seen.Homes()
	for _, a := range seen.Asked {
		if a.Asks[ProtectAnnotation] != "true" {
			continue
		}
		for _, e := range first[a.ID] {
			if _, _, served := seen.usageOf(e.to); !served && !wanted[e.to] {
				found = append(found, manifest.Finding{
					Rule: "unprotected-dependency", Severity: manifest.Warning, Origin: a.Origin,
					Message: fmt.Sprintf("%s asks to protect the %s, which is not in this commit, and Crossplane serves no Usages that could protect it", home(a.ID), home(e.to).Brief()),
					Fix:     "declare it here, or install Crossplane with Usages",
				})
			}
		}
	}
	return found
}

// leftHeld reports whether a live definition has our finalizer although the commit wants the definition without it: an earlier pass
// that was deleting the definition was interrupted.
func leftHeld(want render.Object, live *metav1.PartialObjectMetadata) bool {
	if !crossplane.IsMRD(want.ID) || !slices.Contains(live.GetFinalizers(), ProtectFinalizer) {
		return false
	}
	content, err := want.Content()
	return err == nil && !slices.Contains(content.GetFinalizers(), ProtectFinalizer)
}

// WithProtection returns the finalizers with ours.
func WithProtection(finalizers []string) []string {
	return append(WithoutProtection(finalizers), ProtectFinalizer)
}

// WithoutProtection returns the finalizers without ours.
func WithoutProtection(finalizers []string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == ProtectFinalizer })
}
