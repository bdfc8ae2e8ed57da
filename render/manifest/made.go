package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Made returns the document of an object, given as JSON, that a tool built from another document, its source. source is nil if the
// tool used several documents.
func Made(object []byte, origin Origin, source *Document) (*Document, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(object, &content); err != nil {
		return nil, fmt.Errorf("%s: cannot decode: %w", origin, err)
	}
	d := &Document{Origin: origin, Header: headerOf(content).ofManifest()}
	m := made{json: object, source: source}
	if source != nil && d.Header.Kind != "Secret" {
		sum := sha256.Sum256(object)
		m.key = "made " + hex.EncodeToString(sum[:]) + " "
	}
	d.body, d.nodes = m, countNodes(object)
	if source != nil {
		d.reader = source.reader
	}
	return d, nil
}

// IsMade reports whether a tool built the document, so that no file contains it.
func (d *Document) IsMade() bool {
	_, ok := d.body.(made)
	return ok
}

// made is the body of a document that a tool built.
type made struct {
	json   []byte
	source *Document
	key    string // the key for the Memo, in addition to the source's; "" if nothing may be stored
}

func (m made) decode() (v any, err error) {
	err = utiljson.Unmarshal(m.json, &v)
	return v, err
}

func (m made) recall() (any, error) { return m.decode() }

func (m made) identity() string { return m.key }

// learn stores the answer with the source, because answers contain the places of fields.
func (m made) learn(what string, ask func() (string, error)) (string, error) {
	if m.key == "" {
		return ask()
	}
	return m.source.body.learn(m.key+what, ask)
}

var errNoSource = errors.New("no single document is the source of this one")

// tree returns the tree of the source; see keeps.
func (m made) tree() (*yaml.Node, int, error) {
	if m.source == nil {
		return nil, 0, errNoSource
	}
	return m.source.body.tree()
}

// keeps returns a function that reports whether the tool kept the source's value at a path. Only then is the place in the source
// right.
func (m made) keeps() func(path []any) bool {
	after, err := m.decode()
	if err != nil || m.source == nil {
		return func([]any) bool { return false }
	}
	before, err := m.source.body.decode()
	return func(path []any) bool {
		return err == nil && reflect.DeepEqual(valueAt(before, path), valueAt(after, path))
	}
}

func valueAt(value any, path []any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[step]
		case int:
			l, _ := value.([]any)
			if step < 0 || step >= len(l) {
				return nil
			}
			value = l[step]
		}
	}
	return value
}
