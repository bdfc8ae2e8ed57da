package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlmap "go.yaml.in/yaml/v2"
	yamltree "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A collision is a JSON key that results from two keys of a YAML mapping.
type collision string

func (c collision) Error() string {
	return fmt.Sprintf("two keys become the same text %q; remove one of them", string(c))
}

// decodeYAML decodes YAML as sigs.k8s.io/yaml and the API server do: to the values of the JSON library. The keys of mappings become
// text. If two keys become the same text, those choose one at random; decodeYAML returns an error.
func decodeYAML(raw []byte) (any, error) {
	var v any
	if strict := yamlmap.UnmarshalStrict(raw, &v); strict != nil {
		switch merges, err := checkMerges(raw); {
		case err != nil:
			return nil, err
		case !merges:
			return nil, strict
		}
		v = nil
		if err := yamlmap.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
	}
	return asJSON(v)
}

// asJSON converts a value of the YAML library to a value of the JSON library. It may reuse the value.
func asJSON(v any) (any, error) {
	var err error
	switch v := v.(type) {
	case map[any]any:
		made := make(map[string]any, len(v))
		for k, value := range v {
			key, err := keyText(k)
			if err != nil {
				return nil, err
			}
			if !utf8.ValidString(key) {
				text, err := throughJSON(key)
				if err != nil {
					return nil, err
				}
				key, _ = text.(string) // JSON keeps text as text
			}
			if _, twice := made[key]; twice {
				return nil, collision(key)
			}
			if made[key], err = asJSON(value); err != nil {
				return nil, err
			}
		}
		return made, nil
	case []any:
		for i := range v {
			if v[i], err = asJSON(v[i]); err != nil {
				return nil, err
			}
		}
		return v, nil
	case nil, bool, int64:
		return v, nil
	case int:
		return int64(v), nil
	case string:
		if utf8.ValidString(v) {
			return v, nil
		}
	}
	return throughJSON(v)
}

// throughJSON lets the JSON libraries convert a scalar that they write differently.
func throughJSON(v any) (back any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	err = utiljson.Unmarshal(raw, &back)
	return back, err
}

// keyText returns the JSON key for a YAML key.
func keyText(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case int:
		return strconv.Itoa(k), nil
	case int64:
		return strconv.FormatInt(k, 10), nil
	case float64:
		switch text := strconv.FormatFloat(k, 'g', -1, 32); text { // 32 bits, as in sigs.k8s.io/yaml
		case "+Inf":
			return ".inf", nil
		case "-Inf":
			return "-.inf", nil
		case "NaN":
			return ".nan", nil
		default:
			return text, nil
		}
	case bool:
		return strconv.FormatBool(k), nil
	}
	return "", fmt.Errorf("unsupported map key of type %T", k) // as in sigs.k8s.io/yaml
}

// jsonError adds the line to an error of decodeYAML.
func (s section) jsonError(raw []byte, err error) error {
	if again, ok := errors.AsType[repetition](err); ok {
		return s.cannotDecode(s.part.line+again.line-1, again)
	}
	var key collision
	collides, twice := errors.As(err, &key), strings.Contains(err.Error(), "already set in map")
	var node yamltree.Node
	if (collides || twice) && yamltree.Unmarshal(raw, &node) == nil {
		first, second := colliding(&node, map[*yamltree.Node]bool{})
		if second != nil && (collides || isMisread(first) || isMisread(second)) {
			return s.cannotDecode(s.part.line+second.Line-1, fmt.Errorf("the key %s %s", written(second), s.sameAs(first, second)))
		}
	}
	if collides {
		return s.cannotDecode(s.part.first, err)
	}
	return s.yamlError(raw, err)
}

// written returns a key as its author wrote it.
func written(key *yamltree.Node) string {
	if key.Style&(yamltree.DoubleQuotedStyle|yamltree.SingleQuotedStyle) != 0 {
		return strconv.Quote(key.Value)
	}
	return key.Value
}

// colliding returns the first two keys, in the order of the text, that become the same text.
func colliding(node *yamltree.Node, seen map[*yamltree.Node]bool) (first, second *yamltree.Node) {
	if seen[node] {
		return nil, nil
	}
	seen[node] = true
	if node.Kind == yamltree.MappingNode {
		if first, second := collidingIn(node, map[string]*yamltree.Node{}, 0); second != nil {
			return first, second
		}
	}
	for _, child := range node.Content {
		if first, second := colliding(child, seen); second != nil {
			return first, second
		}
	}
	return nil, nil
}

// collidingIn compares the keys of a mapping, including those that are merged into it.
func collidingIn(node *yamltree.Node, known map[string]*yamltree.Node, merges int) (first, second *yamltree.Node) {
	if merges > 10 {
		return nil, nil
	}
	var merged []*yamltree.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := resolved(node.Content[i]), node.Content[i+1]
		if isMerge(key) {
			merged = append(merged, value)
			continue
		}
		text, ok := textOf(key)
		if !ok {
			continue
		}
		other, twice := known[text]
		if twice && (merges == 0 || !sameKey(other, key)) { // a key overrides the same key of a merged mapping
			return other, key
		}
		known[text] = key
	}
	for _, from := range merged {
		from = resolved(from)
		list := []*yamltree.Node{from}
		if from.Kind == yamltree.SequenceNode {
			list = from.Content
		}
		for _, one := range list {
			one = resolved(one)
			if one.Kind != yamltree.MappingNode {
				continue
			}
			if first, second := collidingIn(one, known, merges+1); second != nil {
				return first, second
			}
		}
	}
	return nil, nil
}

// textOf returns the text that a key becomes.
func textOf(key *yamltree.Node) (string, bool) {
	k, ok := valueOf(key)
	if !ok {
		return "", false
	}
	text, err := keyText(k)
	return text, err == nil
}

func sameKey(a, b *yamltree.Node) bool {
	one, _ := valueOf(a)
	other, _ := valueOf(b)
	return one == other
}

// valueOf returns the value of a scalar, as the library reads it that decodes documents.
func valueOf(key *yamltree.Node) (any, bool) {
	if key.Kind != yamltree.ScalarNode {
		return nil, false
	}
	if key.Style&(yamltree.DoubleQuotedStyle|yamltree.SingleQuotedStyle|yamltree.LiteralStyle|yamltree.FoldedStyle) != 0 {
		return key.Value, true
	}
	text := key.Value
	if key.Style&yamltree.TaggedStyle != 0 {
		text = key.Tag + " " + text
	}
	var k any
	if yamlmap.Unmarshal([]byte(text), &k) != nil {
		return nil, false
	}
	return k, true
}

// unfitLine returns the line of the first key or value, in the order of the text, that JSON cannot represent or that does not have
// the type of its tag; 0 if there is none.
func unfitLine(raw []byte) int {
	var node yamltree.Node
	if yamltree.Unmarshal(raw, &node) != nil {
		return 0
	}
	if n := unfit(&node); n != nil {
		return n.Line
	}
	return 0
}

// unfit does not follow aliases, because their nodes come earlier in the text. So it need not remember visited nodes.
func unfit(node *yamltree.Node) *yamltree.Node {
	if node.Kind == yamltree.ScalarNode {
		v, ok := valueOf(node)
		if f, isFloat := v.(float64); !ok || isFloat && (math.IsInf(f, 0) || math.IsNaN(f)) {
			return node
		}
	}
	for i, child := range node.Content {
		if node.Kind == yamltree.MappingNode && i%2 == 0 {
			if _, ok := textOf(resolved(child)); !ok {
				return child
			}
			continue
		}
		if n := unfit(child); n != nil {
			return n
		}
	}
	return nil
}
