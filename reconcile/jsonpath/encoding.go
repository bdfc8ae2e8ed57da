package jsonpath

import (
	"encoding/base64"
	"errors"
	"fmt"
	"unicode/utf8"
)

// HoldsBytes reports whether the API stores bytes at a place of an object, which JSON encodes as base64: data of a
// Secret, binaryData of a ConfigMap, even inside of another object, and a caBundle.
func HoldsBytes(content map[string]any, at []any) bool {
	for i, step := range at {
		of := mapping(Get(content, at[:i]))
		switch {
		case of["apiVersion"] != "v1":
		case of["kind"] == "Secret":
			return step == "data"
		case of["kind"] == "ConfigMap":
			return step == "binaryData"
		}
	}
	return at[len(at)-1] == "caBundle"
}

var errNoText = errors.New("it is not text; copy it to data of a Secret, or to binaryData of a ConfigMap")

// Decoded returns a base64 value, or a mapping of base64 values, as text. It returns any other value unchanged: the
// caBundle of some kinds is plain text.
func Decoded(value any) (any, error) {
	switch value := value.(type) {
	case string:
		raw, err := base64.StdEncoding.DecodeString(value)
		switch {
		case err != nil:
			return value, nil //nolint:nilerr // see above
		case !utf8.Valid(raw):
			return nil, errNoText
		}
		return string(raw), nil
	case map[string]any:
		all := make(map[string]any, len(value))
		for key, v := range value {
			text, err := Decoded(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			all[key] = text
		}
		return all, nil
	}
	return value, nil
}
