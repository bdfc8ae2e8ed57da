package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster/api"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// If an inventory does not fit into one ConfigMap, the ConfigMap keeps every key, so that other tools see the whole set, and
// siblings keep the values. Siblings are named by their content and never change. A single write of the inventory switches from one
// set of values to the next. A crash before or after it leaves only siblings without a reference.
//
// Entries whose ID cannot be written as a key of cli-utils are also in siblings. Other tools do not see those. A key that they
// cannot parse would make them refuse the whole inventory, and a key that reads back as another object would make them delete that
// object.

const (
	// siblingsAnnotation names the siblings of an inventory.
	siblingsAnnotation = "headgate.dev/inventory-values"
	// apartAnnotation names the siblings with entries that cannot have a key in the inventory.
	apartAnnotation = "headgate.dev/inventory-entries"
	// siblingLabel marks a sibling. Its value is the key of the sync.
	siblingLabel = render.ValuesLabel
)

// A layout describes how an inventory is stored.
type layout struct {
	data     map[string]string            // the data of the ConfigMap itself
	siblings map[string]map[string]string // by name
	values   []string                     // names of siblings with the values of data, sorted
	apart    []string                     // names of siblings with entries that have no key in data, sorted
}

// layoutOf returns the layout for the data of an inventory and for the entries that cannot have a key. It returns an error if there
// is not enough room.
func layoutOf(s inventory.Sync, data, apart map[string]string) (layout, error) {
	l := layout{data: data, siblings: map[string]map[string]string{}}
	if len(apart) > 0 {
		l.apart = l.add(s, apart)
	}
	if sizeOf(data) <= mostBytes {
		return l, nil
	}
	l.data = make(map[string]string, len(data))
	for key := range data {
		l.data[key] = ""
	}
	if size := sizeOf(l.data); size > mostBytes {
		return layout{}, fmt.Errorf("the inventory of %s would take %d KB for the names of its %d objects alone, which is more than %d KB; split the sync",
			s, size>>10, len(data), mostBytes>>10)
	}
	l.values = l.add(s, data)
	return l, nil
}

// add adds siblings that hold data, and returns their names.
func (l *layout) add(s inventory.Sync, data map[string]string) []string {
	for n := sizeOf(data)/(mostBytes*3/4) + 1; ; n++ {
		parts := parted(data, n)
		if slices.ContainsFunc(parts, func(part map[string]string) bool { return sizeOf(part) > mostBytes }) {
			continue
		}
		names := make([]string, len(parts))
		for i, part := range parts {
			names[i] = siblingName(s, part)
			l.siblings[names[i]] = part
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
}

// parted splits data into n parts. A key stays in the same part while n is the same, so that few siblings change with few values.
func parted(data map[string]string, n int) []map[string]string {
	parts := make([]map[string]string, n)
	for i := range parts {
		parts[i] = map[string]string{}
	}
	for key, value := range data {
		h := fnv.New32a()
		_, _ = h.Write([]byte(key)) // never fails
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

// siblingName returns a name that differs from the name of any inventory and depends on the content of the sibling.
func siblingName(s inventory.Sync, data map[string]string) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%q:%q\n", key, data[key])
	}
	return render.ValuesPrefix + hex.EncodeToString(h.Sum(nil)[:16]) + "." + api.InventoryName(s)
}

// siblingsOf returns the names of the siblings that an annotation of a stored inventory lists.
func siblingsOf(m *corev1.ConfigMap, annotation string) []string {
	if m == nil || m.Annotations[annotation] == "" {
		return nil
	}
	return strings.Split(m.Annotations[annotation], ",")
}

// allSiblingsOf returns the names of all siblings of a stored inventory.
func allSiblingsOf(m *corev1.ConfigMap) []string {
	return slices.Concat(siblingsOf(m, siblingsAnnotation), siblingsOf(m, apartAnnotation))
}

// A Content is the content of an inventory and its siblings.
type Content struct {
	Entries  map[manifest.ID]inventory.Entry
	Siblings map[string]map[string]string // by name
	Whole    bool                         // no sibling is missing or changed; otherwise values are empty
	lost     bool                         // entries are missing, too
}

// ContentOf returns the content of an inventory and its siblings. known are siblings that were read or written before.
func (c *Store) ContentOf(ctx context.Context, m *corev1.ConfigMap, known map[string]map[string]string) (Content, error) {
	made := Content{Siblings: map[string]map[string]string{}, Whole: true}
	data := m.Data
	if names := siblingsOf(m, siblingsAnnotation); len(names) > 0 {
		data = maps.Clone(m.Data)
		for _, name := range names {
			values, err := c.sibling(ctx, name, known)
			if err != nil {
				return made, err
			}
			if values == nil {
				made.Whole = false
				continue
			}
			made.Siblings[name] = values
			for key, value := range values {
				if _, listed := data[key]; listed {
					data[key] = value
				}
			}
		}
	}
	var err error
	if made.Entries, err = inventory.Entries(data); err != nil {
		return made, unreadable(m, err)
	}
	for _, name := range siblingsOf(m, apartAnnotation) {
		values, err := c.sibling(ctx, name, known)
		if err != nil {
			return made, err
		}
		if values == nil {
			made.Whole, made.lost = false, true
			continue
		}
		made.Siblings[name] = values
		apart, err := inventory.EntriesApart(values)
		if err != nil {
			return made, unreadable(m, err)
		}
		maps.Copy(made.Entries, apart)
	}
	return made, nil
}

func unreadable(m *corev1.ConfigMap, err error) error {
	return fmt.Errorf("the inventory ConfigMap %s/%s cannot be read, so no object is changed; remove that key from its data: %w", m.Namespace, m.Name, err)
}

// sibling returns the data of a sibling. It returns nil if the sibling is missing or was changed.
func (c *Store) sibling(ctx context.Context, name string, known map[string]map[string]string) (map[string]string, error) {
	if values, ok := known[name]; ok {
		return values, nil
	}
	m, err := c.Core.ConfigMaps(c.Sync.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && siblingName(c.Sync, m.Data) != name:
		return nil, nil
	case err != nil:
		return nil, c.Explain(err, "get", "the ConfigMap "+c.Sync.Namespace+"/"+name+" of the inventory")
	case m.Data == nil:
		return map[string]string{}, nil // an empty part
	}
	return m.Data, nil
}

// storeSiblings creates the missing siblings of a layout.
func (c *Store) storeSiblings(ctx context.Context, l layout) error {
	maps := c.Core.ConfigMaps(c.Sync.Namespace)
	have := allSiblingsOf(c.stored)
	for name, values := range l.siblings {
		if slices.Contains(have, name) && c.siblings[name] != nil {
			continue
		}
		final := true
		m := &corev1.ConfigMap{Data: values, Immutable: &final}
		m.Namespace, m.Name = c.Sync.Namespace, name
		m.Labels = map[string]string{siblingLabel: c.Sync.Key()}
		create := func() error {
			return api.Retry(ctx, func() error {
				_, err := maps.Create(ctx, m, metav1.CreateOptions{FieldManager: inventory.Manager})
				return err
			})
		}
		err := create()
		if apierrors.IsAlreadyExists(err) { // left by a pass that was interrupted, or forged
			there, getErr := maps.Get(ctx, name, metav1.GetOptions{})
			if err = getErr; err == nil && siblingName(c.Sync, there.Data) != name {
				if err = maps.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &there.UID}}); err == nil {
					err = create()
				}
			}
		}
		if err != nil {
			return c.Explain(err, "create", "the ConfigMap "+m.Namespace+"/"+name+" of the inventory")
		}
	}
	return nil
}

// sweep deletes the siblings that are not in the layout. Failures are ignored, because the next write with siblings sweeps again.
func (c *Store) sweep(ctx context.Context, l layout) {
	at := c.Metadata.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(c.Sync.Namespace)
	found, err := at.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{siblingLabel: c.Sync.Key()}.String()})
	if err != nil {
		return
	}
	for _, o := range found.Items {
		if _, named := l.siblings[o.Name]; !named {
			_ = at.Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}})
		}
	}
}
