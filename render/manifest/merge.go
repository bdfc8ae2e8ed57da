package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	yamltree "go.yaml.in/yaml/v3"
)

// A repetition is a key that YAML does not allow a second time, or that kubectl and YAML 1.1 read differently.
type repetition struct {
	line int // in the document, from 1
	text string
}

func (r repetition) Error() string { return r.text }

// checkMerges checks the keys of mappings that others are merged into. It allows a key after << that overrides a merged key, which
// the strict decoder of the YAML library refuses. merges is false for a document without merge keys, which checkMerges does not
// check. The error is a repetition.
func checkMerges(raw []byte) (merges bool, err error) {
	var root yamltree.Node
	if !bytes.Contains(raw, []byte("<<")) || yamltree.Unmarshal(raw, &root) != nil {
		return false, nil //nolint:nilerr // the other library reports it better
	}
	c := mergeCheck{keys: map[*yamltree.Node]map[string]bool{}}
	err = c.check(&root)
	return c.merges, err
}

// A mergeCheck walks a syntax tree. It does not follow aliases, because their nodes come earlier in the text.
type mergeCheck struct {
	keys   map[*yamltree.Node]map[string]bool // of a mapping, with those merged into it
	merges bool
}

func (c *mergeCheck) check(node *yamltree.Node) error {
	if node.Kind == yamltree.MappingNode {
		if err := c.mapping(node); err != nil {
			return err
		}
	}
	for _, child := range node.Content {
		if err := c.check(child); err != nil {
			return err
		}
	}
	return nil
}

func (c *mergeCheck) mapping(node *yamltree.Node) error {
	own, merged := map[string]*yamltree.Node{}, map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := resolved(node.Content[i])
		if !isMerge(key) {
			text, ok := textOf(key)
			if first := own[text]; ok && first != nil && sameKey(first, key) {
				return repetition{key.Line, fmt.Sprintf("the key %s is set twice; remove one of them", written(key))}
			}
			if ok { // the decoder reports any other key
				own[text] = key
			}
			continue
		}
		c.merges = true
		for _, text := range slices.Sorted(maps.Keys(c.mergedBy(node.Content[i+1]))) {
			switch first := own[text]; {
			case first != nil:
				return repetition{first.Line, fmt.Sprintf("the key %s is set before <<, which merges the same key, and tools disagree which of them counts; write << first", written(first))}
			case merged[text]:
				return repetition{key.Line, fmt.Sprintf("two keys << of this mapping merge %q; write one << with a list, whose first mapping counts", text)}
			}
			merged[text] = true
		}
	}
	return nil
}

// mergedBy returns the keys that the value of a merge key merges.
func (c *mergeCheck) mergedBy(value *yamltree.Node) map[string]bool {
	value = resolved(value)
	if known, ok := c.keys[value]; ok {
		return known
	}
	all := map[string]bool{}
	c.keys[value] = all // a mapping that contains itself is an error of the decoder
	add := func(from *yamltree.Node) {
		for text := range c.mergedBy(from) {
			all[text] = true
		}
	}
	switch value.Kind {
	case yamltree.SequenceNode:
		for _, one := range value.Content {
			add(one)
		}
	case yamltree.MappingNode:
		for i := 0; i+1 < len(value.Content); i += 2 {
			if key := resolved(value.Content[i]); isMerge(key) {
				add(value.Content[i+1])
			} else if text, ok := textOf(key); ok {
				all[text] = true
			}
		}
	}
	return all
}

func isMerge(key *yamltree.Node) bool {
	return key.Tag == "!!merge" || key.Value == "<<" && key.Style == 0
}

// resolved returns the node that an alias stands for.
func resolved(node *yamltree.Node) *yamltree.Node {
	for node.Kind == yamltree.AliasNode {
		node = node.Alias
	}
	return node
}
