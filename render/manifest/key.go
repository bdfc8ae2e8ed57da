package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A MisreadKey is a key that YAML 1.1 does not read as its author wrote it: y is true, and 012 is 10.
type MisreadKey struct {
	Written string `json:"written"`
	Means   string `json:"means"` // the key in the decoded document
	Line    int    `json:"line"`  // in the file
}

// MisreadKeys returns the unquoted keys of a document that YAML 1.1, and so the API server, reads as another text, in the order of the
// document. A document that a tool built has none: kustomize reads YAML 1.2, in which y is text.
func (d *Document) MisreadKeys() []MisreadKey {
	if d.IsMade() {
		return nil
	}
	known, err := d.Learn("misread keys", func() (string, error) {
		all := []MisreadKey{}
		if odd, err := d.mayMisread(); err != nil || !odd {
			return "[]", err
		}
		node, line, err := d.body.tree()
		if err != nil {
			return "", err
		}
		collectMisread(node, line-d.Origin.Line, &all)
		raw, err := json.Marshal(all)
		return string(raw), err
	})
	if err != nil {
		return nil // decoding the document reports the error
	}
	var all []MisreadKey
	_ = json.Unmarshal([]byte(known), &all) // the function above wrote it
	for i := range all {
		all[i].Line += d.Origin.Line
	}
	return all
}

// collectMisread does not follow aliases, because their nodes come earlier in the text.
func collectMisread(node *yaml.Node, line int, all *[]MisreadKey) {
	if node == nil {
		return
	}
	for i, child := range node.Content {
		if node.Kind == yaml.MappingNode && i%2 == 0 {
			if means, odd := misread(child); odd {
				*all = append(*all, MisreadKey{Written: child.Value, Means: means, Line: line + child.Line - 1})
			}
			continue
		}
		collectMisread(child, line, all)
	}
}

// misread returns the text that an unquoted key becomes, and whether that differs from how it is written.
func misread(key *yaml.Node) (means string, odd bool) {
	if key.Kind != yaml.ScalarNode || key.Style != 0 || !mayBeMisread(key.Value) {
		return "", false
	}
	means, ok := textOf(key)
	return means, ok && means != key.Value
}

func isMisread(key *yaml.Node) bool {
	_, odd := misread(key)
	return odd
}

// mayBeMisread reports whether a word begins as a boolean or a number does.
func mayBeMisread(word string) bool {
	return word != "" && strings.IndexByte("yYnNoOtTfF+-.0123456789", word[0]) >= 0
}

// mayMisread reports whether the document may have a key that is misread. It does not parse the document, because CRDs are large.
func (d *Document) mayMisread() (odd bool, err error) {
	source, ok := d.body.(interface {
		read(use func([]byte) error) error
	})
	if !ok {
		return false, nil
	}
	err = source.read(func(raw []byte) error {
		odd = mayMisread(raw)
		return nil
	})
	return odd, err
}

func mayMisread(raw []byte) bool {
	for rest, at := raw, 0; ; {
		i := bytes.IndexByte(rest, ':')
		if i < 0 {
			return bytes.Contains(raw, []byte("? ")) // a key that stands alone
		}
		at += i + 1
		rest = raw[at:]
		if len(rest) > 0 && strings.IndexByte(" \t\r\n", rest[0]) < 0 {
			continue
		}
		word := lastWord(raw[:at-1])
		if strings.HasPrefix(word, "*") {
			return true
		}
		if isMisread(&yaml.Node{Kind: yaml.ScalarNode, Value: word}) {
			return true
		}
	}
}

// lastWord returns the last word of a text, without the blanks after it. A key longer than a number has no meaning in YAML 1.1.
func lastWord(raw []byte) string {
	raw = bytes.TrimRight(raw, " \t")
	start := len(raw)
	for start > 0 && strings.IndexByte(" \t\r\n{[,", raw[start-1]) < 0 {
		start--
		if len(raw)-start > longestNumber {
			return ""
		}
	}
	return string(raw[start:])
}

const longestNumber = 400

// sameAs explains why a key is the same as an earlier one of its mapping.
func (s section) sameAs(first, second *yaml.Node) string {
	line := s.part.line + first.Line - 1
	text, _ := textOf(second) // colliding compared it
	one, other := isMisread(first), isMisread(second)
	switch {
	case one && written(first) == written(second):
		return fmt.Sprintf("is already set in line %d; remove one of them", line)
	case one && other:
		return fmt.Sprintf("is the same as %s in line %d: unquoted, both mean %s; quote them", written(first), line, text)
	case one:
		return fmt.Sprintf("is the same as %s in line %d, which means %s unless it is quoted; quote that, or remove one of them", written(first), line, text)
	case other:
		return fmt.Sprintf("means %s unless it is quoted, the same as %s in line %d; quote it, or remove one of them", text, written(first), line)
	}
	return fmt.Sprintf("is the same as %s in line %d: both become the text %q; remove one of them", written(first), line, text)
}
