package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Field is a path of keys (string) and indices (int) as people write it:
// spec.versions[0].name.
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

// OriginOf is where the value at a path of keys (string) and indices (int) begins,
// as in d.OriginOf("spec", "activate", 2). It is the origin of the document where
// that cannot be told. The document is parsed for it, so ask where a person
// will read the answer.
func (d *Document) OriginOf(path ...any) Origin { return d.origins(path)[0] }

// OriginsOf is where each of the n items of the list at a path begins. It parses the
// document once.
func (d *Document) OriginsOf(n int, path ...any) []Origin {
	items := make([][]any, n)
	for i := range items {
		items[i] = append(slices.Clone(path), i)
	}
	return d.origins(items...)
}

// origins are where the values at paths begin. They are learnt as lines, counted from that
// of the document.
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
	lines := strings.Fields(known) // none where that cannot be told
	for i := range origins {
		origins[i] = d.Origin
		if i < len(lines) {
			line, _ := strconv.Atoi(lines[i]) // it was written above
			origins[i].Line += line
		}
	}
	return origins
}

// keeps returns a function that reports whether the document has the same value at a path as the tree that it was read
// from. Only the document of a tool's output may differ.
func (d *Document) keeps() func(path []any) bool {
	if m, ok := d.body.(made); ok {
		return m.keeps()
	}
	return func([]any) bool { return true }
}

// originIn is where node begins in a tree that begins at the given line.
func originIn(node *yaml.Node, line int, otherwise Origin) Origin {
	if node == nil || node.Line == 0 {
		return otherwise
	}
	return Origin{Path: otherwise.Path, Line: line + node.Line - 1}
}

// find is the node at a path, or nil.
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
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	}
	return nil
}
