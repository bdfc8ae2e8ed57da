package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// unwrap returns d, whose value is given, or the items of the List that it is,
// and theirs.
func unwrap(d *Document, value map[string]any) ([]*Document, error) {
	items, ok := value["items"].([]any)
	if !ok || !strings.HasSuffix(d.Header.Kind, "List") {
		return []*Document{d}, nil
	}
	node, line, err := d.body.tree()
	if err != nil {
		node = nil // decoded by another library: the origin is that of the List
	}
	return unwrapItems(d, items, node, line)
}

func unwrapItems(list *Document, items []any, node *yaml.Node, line int) ([]*Document, error) {
	var documents []*Document
	for i, v := range items {
		at := []any{"items", i}
		origin := originIn(find(node, at), line, list.Origin)
		m, err := mapping(v, origin)
		if err != nil {
			return nil, err
		}
		inherit(m, list.Header)
		d := &Document{
			Origin: origin,
			Header: headerOf(m).ofManifest(),
			body:   item{value: m, list: list.body, at: at},
		}
		nested, ok := m["items"].([]any)
		if !ok || !strings.HasSuffix(d.Header.Kind, "List") {
			documents = append(documents, d)
			continue
		}
		found, err := unwrapItems(d, nested, find(node, at), line)
		if err != nil {
			return nil, err
		}
		documents = append(documents, found...)
	}
	return documents, nil
}

// inherit gives an item of a typed list, as ConfigMapList, the kind that the API
// machinery would give it.
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
