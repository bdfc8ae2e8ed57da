package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
)

// A list is a section with a List. It is decoded once for all of its items.
type list struct {
	section

	origin Origin

	mu    sync.Mutex
	items []element // nil until an item is needed
}

// An element is an item of a List, or of a List inside it.
type element struct {
	header Header
	value  map[string]any
	at     []any // its path in the List
}

// elements returns the items in order. Callers share them.
func (l *list) elements() ([]element, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.items != nil {
		return l.items, nil
	}
	v, err := l.section.recall()
	if err != nil {
		return nil, err
	}
	m, err := mapping(v, l.origin)
	if err != nil {
		return nil, err
	}
	l.items, _, err = elementsOf(m, headerOf(m).ofManifest(), func([]any) Origin { return l.origin })
	return l.items, err
}

// elementsOf returns the items of a value that may be a List, and the items of nested Lists. An item that is not an object is an
// error at its origin.
func elementsOf(value map[string]any, header Header, origin func(at []any) Origin) (all []element, isList bool, err error) {
	var from func(value map[string]any, header Header, at []any) (bool, error)
	from = func(value map[string]any, header Header, at []any) (bool, error) {
		items, ok := value["items"].([]any)
		if !ok || !strings.HasSuffix(header.Kind, "List") {
			return false, nil
		}
		for i, v := range items {
			at := append(slices.Clip(at), "items", i)
			m, err := mapping(v, origin(at))
			if err != nil {
				return true, err
			}
			inherit(m, header)
			e := element{header: headerOf(m).ofManifest(), value: m, at: at}
			switch nested, err := from(m, e.header, at); {
			case err != nil:
				return true, err
			case !nested:
				all = append(all, e)
			}
		}
		return true, nil
	}
	isList, err = from(value, header, nil)
	return all, isList, err
}

// inherit sets the apiVersion and kind of an item of a typed list, such as ConfigMapList, as the API machinery would.
func inherit(m map[string]any, list Header) {
	kind := strings.TrimSuffix(list.Kind, "List")
	if _, has := m["kind"]; has || kind == "" {
		return
	}
	if _, has := m["apiVersion"]; has {
		return
	}
	m["kind"], m["apiVersion"] = kind, list.APIVersion
}

// An item is the body of an element of a list.
type item struct {
	*list

	n int
}

func (i item) element() (element, error) {
	all, err := i.elements()
	if err == nil && i.n >= len(all) {
		err = fmt.Errorf("%s: cannot read: the file has changed since it was first read", i.path)
	}
	if err != nil {
		return element{}, err
	}
	return all[i.n], nil
}

func (i item) decode() (any, error) {
	e, err := i.element()
	return runtime.DeepCopyJSON(e.value), err
}

func (i item) recall() (any, error) { return i.decode() }

func (i item) tree() (*yaml.Node, int, error) {
	e, err := i.element()
	if err != nil {
		return nil, 0, err
	}
	node, line, err := i.section.tree()
	return find(node, e.at), line, err
}

func (i item) identity() string {
	if of := i.section.identity(); of != "" {
		return of + " " + strconv.Itoa(i.n)
	}
	return ""
}

func (i item) learn(what string, ask func() (string, error)) (string, error) {
	return i.section.learn(strconv.Itoa(i.n)+" "+what, ask)
}
