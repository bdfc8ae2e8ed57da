package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Where an inventory does not fit into one ConfigMap, that keeps every key, so that other
// tools see the whole set, and siblings keep the values. Siblings are named by what is in
// them and never change: the one write of the inventory goes from one set of values to the
// next, and a crash before or after it leaves nothing but siblings that nobody names.

const (
	// siblingsAnnotation names the siblings of an inventory.
	siblingsAnnotation = "headgate.dev/inventory-values"
	// siblingLabel is on a sibling: the key of the sync.
	siblingLabel = "headgate.dev/inventory-values-of"
)

// A layout is an inventory as it is stored.
type layout struct {
	data     map[string]string            // of the ConfigMap itself
	siblings map[string]map[string]string // by name
}

// layoutOf lays the data of an inventory out. What has no room is an error.
func layoutOf(s plan.Sync, data map[string]string) (layout, error) {
	if sizeOf(data) <= mostBytes {
		return layout{data: data}, nil
	}
	l := layout{data: make(map[string]string, len(data)), siblings: map[string]map[string]string{}}
	for key := range data {
		l.data[key] = ""
	}
	if size := sizeOf(l.data); size > mostBytes {
		return layout{}, fmt.Errorf("the inventory of %s would take %d KB for the names of its %d objects alone, and %d KB is the most; split the sync",
			s, size>>10, len(data), mostBytes>>10)
	}
	for n := sizeOf(data)/(mostBytes*3/4) + 1; ; n++ {
		if parts := parted(data, n); !slices.ContainsFunc(parts, func(part map[string]string) bool { return sizeOf(part) > mostBytes }) {
			for _, part := range parts {
				l.siblings[siblingName(s, part)] = part
			}
			return l, nil
		}
	}
}

// parted deals data out to n parts. A key keeps its part while n is the same, so that what
// changes little is written little.
func parted(data map[string]string, n int) []map[string]string {
	parts := make([]map[string]string, n)
	for i := range parts {
		parts[i] = map[string]string{}
	}
	for key, value := range data {
		h := fnv.New32a()
		_, _ = h.Write([]byte(key)) // which never fails
		parts[int(h.Sum32()>>1)%n][key] = value
	}
	return parts
}

func sizeOf(data map[string]string) int {
	size := 0
	for key, value := range data {
		size += len(key) + len(value)
	}
	return size
}

// siblingName is unlike the name of any inventory, and tells what is in the sibling.
func siblingName(s plan.Sync, data map[string]string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%q:%q\n", key, data[key])
	}
	return "values-" + hex.EncodeToString(h.Sum(nil)[:16]) + "." + inventoryName(s)
}

// siblingsOf are the names of the siblings of a stored inventory.
func siblingsOf(m *corev1.ConfigMap) []string {
	if m == nil || m.Annotations[siblingsAnnotation] == "" {
		return nil
	}
	return strings.Split(m.Annotations[siblingsAnnotation], ",")
}

// data is the data of an inventory, with the values of its siblings. It is not whole where a
// sibling is gone, or is not what it was: then those values are empty. known are siblings
// that were read or written before; those of this inventory come back.
func (c *Cluster) data(ctx context.Context, m *corev1.ConfigMap, known map[string]map[string]string) (data map[string]string, siblings map[string]map[string]string, whole bool, err error) {
	names := siblingsOf(m)
	if len(names) == 0 {
		return m.Data, nil, true, nil
	}
	data, siblings, whole = maps.Clone(m.Data), map[string]map[string]string{}, true
	for _, name := range names {
		values, ok := known[name]
		if !ok {
			sibling, err := c.core.ConfigMaps(m.Namespace).Get(ctx, name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err), err == nil && siblingName(c.sync, sibling.Data) != name:
				whole = false
				continue
			case err != nil:
				return nil, nil, false, c.explain(err, "get", "the ConfigMap "+m.Namespace+"/"+name+" of the inventory")
			}
			values = sibling.Data
		}
		siblings[name] = values
		for key, value := range values {
			if _, listed := data[key]; listed {
				data[key] = value
			}
		}
	}
	return data, siblings, whole, nil
}

// storeSiblings creates the siblings of a layout that are not there yet.
func (c *Cluster) storeSiblings(ctx context.Context, l layout) error {
	maps := c.core.ConfigMaps(c.sync.Namespace)
	have := siblingsOf(c.stored)
	for name, values := range l.siblings {
		if slices.Contains(have, name) && c.siblings[name] != nil {
			continue
		}
		final := true
		m := &corev1.ConfigMap{Data: values, Immutable: &final}
		m.Namespace, m.Name = c.sync.Namespace, name
		m.Labels = map[string]string{siblingLabel: c.sync.Key()}
		create := func() error {
			return retry(ctx, func() error {
				_, err := maps.Create(ctx, m, metav1.CreateOptions{FieldManager: plan.Manager})
				return err
			})
		}
		err := create()
		if apierrors.IsAlreadyExists(err) { // of a pass that did not get further, or forged
			there, getErr := maps.Get(ctx, name, metav1.GetOptions{})
			if err = getErr; err == nil && siblingName(c.sync, there.Data) != name {
				if err = maps.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &there.UID}}); err == nil {
					err = create()
				}
			}
		}
		if err != nil {
			return c.explain(err, "create", "the ConfigMap "+m.Namespace+"/"+name+" of the inventory")
		}
	}
	return nil
}

// sweep deletes the siblings that the inventory does not name. It fails silently: the next
// one that is stored sweeps again.
func (c *Cluster) sweep(ctx context.Context, l layout) {
	at := c.metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(c.sync.Namespace)
	found, err := at.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{siblingLabel: c.sync.Key()}.String()})
	if err != nil {
		return
	}
	for _, o := range found.Items {
		if _, named := l.siblings[o.Name]; !named {
			_ = at.Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}})
		}
	}
}
