// Package jsonpath reads and writes single fields of objects, which references copy from one object to another.
package jsonpath

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spyzhov/ajson"
)

// Find returns the places that a JSONPath selects in an object: keys of mappings and indices of lists. The path may
// omit the root, as in kubectl.
func Find(content map[string]any, path string) ([][]any, error) {
	if strings.HasPrefix(path, ".") {
		path = "$" + path
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	root, err := ajson.Unmarshal(raw)
	if err != nil {
		return nil, err
	}
	nodes, err := root.JSONPath(path)
	if err != nil {
		return nil, errors.New("it is not a JSONPath") // the library's error quotes its input
	}
	var places [][]any
	for _, n := range nodes {
		var at []any
		for ; n.Parent() != nil; n = n.Parent() {
			if n.Parent().IsArray() {
				at = append(at, n.Index())
			} else {
				at = append(at, n.Key())
			}
		}
		if n != root || len(at) == 0 {
			return nil, errors.New("it selects no field")
		}
		slices.Reverse(at)
		places = append(places, at)
	}
	return places, nil
}

// One returns the only place that a JSONPath selects.
func One(content map[string]any, path string) ([]any, error) {
	at, err := Find(content, path)
	if err == nil && len(at) != 1 {
		err = fmt.Errorf("it selects %d fields", len(at))
	}
	if err != nil {
		return nil, err
	}
	return at[0], nil
}

// Get returns the value at a place, or nil.
func Get(content any, at []any) any {
	for _, step := range at {
		switch key := step.(type) {
		case string:
			content = mapping(content)[key]
		case int:
			list, _ := content.([]any)
			if key >= len(list) {
				return nil
			}
			content = list[key]
		}
	}
	return content
}

func mapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// Put sets an existing place to a value, or replaces a token in the text at that place.
func Put(content map[string]any, at []any, value any, token string) error {
	if token != "" {
		was, isText := Get(content, at).(string)
		if !isText || !strings.Contains(was, token) {
			return fmt.Errorf("the token %s is not in the value; add it there, or leave token out", token)
		}
		text, err := textOf(value)
		if err != nil {
			return err
		}
		value = strings.ReplaceAll(was, token, text)
	}
	last := len(at) - 1
	parent := Get(content, at[:last])
	switch key := at[last].(type) {
	case string:
		mapping(parent)[key] = value
	case int:
		if list, ok := parent.([]any); ok {
			list[key] = value
		}
	}
	return nil
}

// textOf returns a value in the form that it has inside of a text.
func textOf(value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	raw, err := json.Marshal(value)
	return string(raw), err
}
