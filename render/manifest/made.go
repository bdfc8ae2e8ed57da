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

var errSpecDiffers = errors.New("the tool has changed the spec, so the lines of its source say nothing")

// tree is that of the source, whose places are right for as long as the tool has changed
// nothing but metadata.
func (m made) tree() (*yaml.Node, int, error) {
	if m.source == nil {
		return nil, 0, errSpecDiffers
	}
	before, err := m.source.body.decode()
	if err != nil {
		return nil, 0, err
	}
	after, err := m.decode()
	if err != nil {
		return nil, 0, err
	}
	if !reflect.DeepEqual(specOf(before), specOf(after)) {
		return nil, 0, errSpecDiffers
	}
	return m.source.body.tree()
}

func specOf(v any) any {
	m, _ := v.(map[string]any)
	return m["spec"]
}
