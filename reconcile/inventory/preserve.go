package inventory

import (
	"encoding/json"
	"reflect"
	"strings"
)

// unknown holds the fields of a JSON object that this binary does not know, as one JSON object, or "". It is a string
// so that structs with it stay comparable.
type unknown string

// unmarshal decodes an object into known and returns the fields that known has no name for.
func unmarshal(data []byte, known any) (unknown, error) {
	if err := json.Unmarshal(data, known); err != nil {
		return "", err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return "", err
	}
	t := reflect.TypeOf(known).Elem()
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for field := range fields {
			if strings.EqualFold(field, name) { // encoding/json ignores case, too, so known already has this field
				delete(fields, field)
			}
		}
	}
	if len(fields) == 0 {
		return "", nil
	}
	rest, err := json.Marshal(fields)
	return unknown(rest), err
}

// marshal encodes an object together with the fields that were preserved.
func marshal(known any, rest unknown) ([]byte, error) {
	data, err := json.Marshal(known)
	switch {
	case err != nil || rest == "":
		return data, err
	case len(data) == len("{}"):
		return []byte(rest), nil
	}
	return append(append(data[:len(data)-1], ','), rest[1:]...), nil
}
