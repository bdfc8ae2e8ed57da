package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Field returns a path of keys (string) and indices (int) as text: spec.versions[0].name.
func Field(path ...any) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, step)
		}
	}
	return b.String()
}

// OriginOf returns where the value at a path of keys (string) and indices (int) begins, as in d.OriginOf("spec", "activate", 2). It
// returns the origin of the document if the place is not known. It parses the document, so call it only for messages that a user
// reads.
func (d *Document) OriginOf(path ...any) Origin { return d.origins(path)[0] }

// OriginsOf returns where each of the n items of the list at a path begins. It parses the document only once.
func (d *Document) OriginsOf(n int, path ...any) []Origin {
	items := make([][]any, n)
	for i := range items {
		items[i] = append(slices.Clone(path), i)
	}
	return d.origins(items...)
}

// OriginsAt returns where the value at each path begins. It parses the document only once.
func (d *Document) OriginsAt(paths ...[]any) []Origin { return d.origins(paths...) }

// origins returns where the values at paths begin. The Memo stores them as line numbers relative to the document.
func (d *Document) origins(paths ...[]any) []Origin {
	known, _ := d.Learn(fmt.Sprintf("lines %q", paths), func() (string, error) {
		tree, line, err := d.body.tree()
		if err != nil {
			return "", err
		}
		keeps := d.keeps()
		var lines []string
		for _, path := range paths {
			at := d.Origin
			if keeps(path) {
				at = originIn(find(tree, path), line, d.Origin)
			}
			lines = append(lines, strconv.Itoa(at.Line-d.Origin.Line))
		}
		return strings.Join(lines, " "), nil
	})
	origins := make([]Origin, len(paths))
	lines := strings.Fields(known) // empty if the places are not known
	for i := range origins {
		origins[i] = d.Origin
		if i < len(lines) {
			line, _ := strconv.Atoi(lines[i]) // the function above wrote it
			origins[i].Line += line
		}
	}
	return origins
}

// keeps returns a function that reports whether the document has the same value at a path as the tree that it was read from. Only a
// document that a tool built may differ.
func (d *Document) keeps() func(path []any) bool {
	if m, ok := d.body.(made); ok {
		return m.keeps()
	}
	return func([]any) bool { return true }
}

// originIn returns where node begins, in a tree that begins at the given line.
func originIn(node *yaml.Node, line int, otherwise Origin) Origin {
	if node == nil || node.Line == 0 {
		return otherwise
	}
	return Origin{Path: otherwise.Path, Line: line + node.Line - 1}
}

// find returns the node at a path, or nil.
func find(node *yaml.Node, path []any) *yaml.Node {
	for node != nil {
		switch {
		case node.Kind == yaml.DocumentNode && len(node.Content) > 0:
			node = node.Content[0]
		case node.Kind == yaml.AliasNode:
			node = node.Alias
		case len(path) == 0:
			return node
		default:
			node, path = child(node, path[0]), path[1:]
		}
	}
	return nil
}

func child(node *yaml.Node, step any) *yaml.Node {
	switch step := step.(type) {
	case int:
		if node.Kind == yaml.SequenceNode && step >= 0 && step < len(node.Content) {
			return node.Content[step]
		}
	case string:
		if node.Kind != yaml.MappingNode {
			return nil
		}
		for i := 0; i+1 < len(node.Content); i += 2 {
			if means, odd := misread(node.Content[i]); node.Content[i].Value == step && !odd || means == step && odd {
				return node.Content[i+1]
			}
		}
	}
	return nil
}
