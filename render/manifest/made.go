package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Made returns the document of an object that a tool made of another document, its source,
// or of no single one, which is nil. It keeps nothing of the object.
func Made(object map[string]any, origin Origin, source *Document) (*Document, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot encode: %w", origin, err)
	}
	return &Document{Origin: origin, Header: headerOf(object).ofManifest(), body: made{json: raw, source: source}}, nil
}

// made is the body of such a document.
type made struct {
	json   []byte
	source *Document
}

func (m made) decode() (v any, err error) {
	err = utiljson.Unmarshal(m.json, &v)
	return v, err
}

func (m made) recall() (any, error) { return m.decode() }

// learn asks every time: there is no content that would tell what a tool made.
func (m made) learn(_ string, ask func() (string, error)) (string, error) { return ask() }

var errNoSource = errors.New("no single document is the source of this one")

// tree is that of the source: see keeps.
func (m made) tree() (*yaml.Node, int, error) {
	if m.source == nil {
		return nil, 0, errNoSource
	}
	return m.source.body.tree()
}

// keeps says of a path whether the tool has left there what the source has, so that its
// place in the source is the right one.
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
