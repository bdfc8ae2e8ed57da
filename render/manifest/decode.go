package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	yamltree "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/json"
)

// decodeBytes decodes the bytes of the section as the API server would, but strictly: duplicate keys are an error, and so is
// everything that the YAML library would not read.
func (s section) decodeBytes(raw []byte) (v any, err error) {
	nodes := countNodes(raw)
	if err := s.checkNodes(nodes); err != nil {
		return nil, err
	}
	defer acquireNodes(nodes)()
	if isJSON(s.path) {
		if err := s.decodeJSON(raw, &v); err != nil {
			return nil, err
		}
		return s.shallow(integral(v))
	}
	if err := s.expand(raw, nodes); err != nil {
		return nil, err
	}
	if v, err = decodeYAML(raw); err != nil {
		return nil, s.jsonError(raw, err)
	}
	if mayEndEarly(raw) {
		if err := s.endsEarly(raw); err != nil {
			return nil, err
		}
	}
	return s.shallow(v)
}

// recalled decodes a value of decodeBytes that the Memo stored as JSON.
func (s section) recalled(j []byte) (v any, err error) {
	defer acquireNodes(countNodes(j))()
	if err := utiljson.Unmarshal(j, &v); err != nil {
		return nil, s.cannotDecode(s.part.first, err)
	}
	return v, nil
}

// shallow returns v, or an error if v is nested beyond the limit.
func (s section) shallow(v any) (any, error) {
	if !within(v, s.limits.Depth) {
		return nil, s.cannotDecode(s.part.first, fmt.Errorf("it is nested more deeply than the limit of %d levels", s.limits.Depth))
	}
	return v, nil
}

func (s section) decodeJSON(raw []byte, v *any) error {
	strict, err := json.UnmarshalStrict(raw, v)
	if err != nil {
		line := s.part.first
		if ok, offset := json.SyntaxErrorOffset(err); ok {
			line = s.lineAt(raw, int(offset)-1)
		}
		return s.cannotDecode(line, err)
	}
	if len(strict) > 0 {
		return s.cannotDecode(s.part.first, strict[0])
	}
	return nil
}

// integral returns v with integers instead of floats without a fraction, which YAML can produce. JSON does not
// distinguish them, so the value survives encoding and decoding.
func integral(v any) any {
	switch v := v.(type) {
	case float64:
		if i := int64(v); float64(i) == v && i != math.MaxInt64 {
			return i
		}
	case map[string]any:
		for key, value := range v {
			v[key] = integral(value)
		}
	case []any:
		for i, value := range v {
			v[i] = integral(value)
		}
	}
	return v
}

func (s section) cannotDecode(line int, why error) error {
	return Origin{Path: s.path, Line: line}.failed("cannot decode", why)
}

// lineAt returns the line of raw[i] in the file.
func (s section) lineAt(raw []byte, i int) int {
	return s.part.line + lineIn(raw, max(0, min(i, len(raw)-1))) - 1
}

// mapping returns v if it is a mapping.
func mapping(v any, origin Origin) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok {
		return nil, origin.failed("cannot decode", errors.New("it is not an object: a manifest begins with apiVersion, kind and metadata"))
	}
	return m, nil
}

// within reports whether v is nested at most depth levels deep. The libraries stop at 10,000 levels, which bounds the recursion.
func within(v any, depth int) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if depth == 0 || !within(value, depth-1) {
				return false
			}
		}
	case []any:
		for _, value := range v {
			if depth == 0 || !within(value, depth-1) {
				return false
			}
		}
	}
	return true
}

// expand refuses aliases that expand a document beyond the size limit of a file, or beyond the node limit of a document.
func (s section) expand(raw []byte, nodes int) error {
	aliases := int64(countAliases(raw))
	if aliases*int64(len(raw)) <= s.limits.FileBytes && (aliases+1)*int64(nodes) <= int64(s.limits.Nodes) {
		return nil
	}
	var node yamltree.Node
	if err := yamltree.Unmarshal(raw, &node); err != nil {
		return s.yamlError(raw, err)
	}
	if expanded(&node, map[*yamltree.Node]int64{}) > s.limits.FileBytes {
		return s.cannotDecode(s.part.first, fmt.Errorf("its aliases expand to more than the limit of %d bytes", s.limits.FileBytes))
	}
	if n := expandedNodes(&node, map[*yamltree.Node]int64{}); n > int64(s.limits.Nodes) {
		return s.cannotDecode(s.part.first, fmt.Errorf("its aliases expand to %d nodes, and the limit is %d: raise limits.nodes if that is right", n, s.limits.Nodes))
	}
	return nil
}

// countAliases counts asterisks that may begin an alias, so never fewer than there are aliases.
func countAliases(raw []byte) int {
	n := 0
	for i := bytes.IndexByte(raw, '*'); i >= 0 && i+1 < len(raw); {
		if raw[i+1] > ' ' && (i == 0 || strings.IndexByte(" \t\n\r,[{:-", raw[i-1]) >= 0 || raw[i-1] >= 0x80) {
			n++
		}
		next := bytes.IndexByte(raw[i+1:], '*')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return n
}

// expanded returns the number of scalar bytes in a node with every alias replaced. It counts one round of a node that contains
// itself; decoding such a node is an error.
func expanded(node *yamltree.Node, known map[*yamltree.Node]int64) int64 {
	if size, ok := known[node]; ok {
		return size
	}
	known[node] = 0
	size := int64(len(node.Value)) + 1
	if node.Kind == yamltree.AliasNode {
		size = expanded(node.Alias, known)
	}
	for _, child := range node.Content {
		size = min(size+expanded(child, known), 1<<62-1)
	}
	known[node] = size
	return size
}

// mayEndEarly reports whether the YAML library may read only the first lines as the document and silently drop the
// others. It does so at a line that is less indented than the first, after a flow collection, and at a directive. A
// document that begins with a plain key in the first column can only end early at a directive.
func mayEndEarly(raw []byte) bool {
	first := blank(raw)
	if first == len(raw) {
		return false
	}
	if !atLineStart(raw, first) || classes[raw[first]] != isPlain || bytes.HasPrefix(raw, []byte("---")) {
		return true
	}
	for i := first; i < len(raw); i++ {
		next := bytes.IndexByte(raw[i:], '%')
		if next < 0 {
			break
		}
		i += next
		if atLineStart(raw, i) {
			return true
		}
	}
	return false
}

// endsEarly returns an error if there is content after the end of the document.
func (s section) endsEarly(raw []byte) error {
	var node yamltree.Node
	decoder := yamltree.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&node); err != nil {
		return s.yamlError(raw, err)
	}
	if err := decoder.Decode(&node); !errors.Is(err, io.EOF) {
		return s.yamlError(raw, fmt.Errorf("%w: the document ends before this line: check its indentation", err))
	}
	return nil
}
