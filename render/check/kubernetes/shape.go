package kubernetes

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const unknownField = "unknown field"

// A shape is what does not fit a type. No message contains a value, because it may be secret.
type shape struct {
	wrong   []check.Problem // values of another type
	unknown []check.Problem // fields that the type does not have
}

// shapeOf compares an object with its type, except its metadata.
func shapeOf(o *unstructured.Unstructured, t reflect.Type) shape {
	var s shape
	known := fieldsOf(t)
	for _, key := range slices.Sorted(maps.Keys(o.Object)) {
		if key != "metadata" {
			s.member(key, o.Object[key], known, nil)
		}
	}
	return s
}

// add adds a problem.
func add(to *[]check.Problem, at *field.Path, message string) {
	*to = append(*to, check.Problem{Field: at.String(), Message: message})
}

// member compares the value of a key with the field of that name.
func (s *shape) member(key string, v any, known map[string]reflect.Type, at *field.Path) {
	below := field.NewPath(key)
	if at != nil {
		below = at.Child(key)
	}
	t, ok := known[key]
	if ok {
		s.value(v, t, below)
		return
	}
	message := unknownField
	if near := manifest.Meant(key, slices.Collect(maps.Keys(known))); near != "" {
		message += "; did you mean " + near + "?"
	}
	add(&s.unknown, below, message)
}

// value compares a value with a type.
func (s *shape) value(v any, t reflect.Type, at *field.Path) {
	if v == nil { // the API server drops it
		return
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if of := reflect.PointerTo(t); of.Implements(decoder) || of.Implements(textDecoder) {
		s.decoded(v, t, at)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		s.object(v, t, at)
	case reflect.Map:
		s.mapping(v, t.Elem(), at)
	case reflect.Slice:
		s.list(v, t.Elem(), at)
	case reflect.Interface:
	default:
		if wanted := scalar(v, t); wanted != "" {
			s.add(v, wanted, at)
		}
	}
}

var (
	decoder     = reflect.TypeFor[json.Unmarshaler]()
	textDecoder = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// formats describes types that are written as a scalar.
var formats = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():  "a quantity, such as 500m or 2Gi",
	reflect.TypeFor[intstr.IntOrString](): "an integer or a string",
	reflect.TypeFor[metav1.Time]():        "a time, such as 2006-01-02T15:04:05Z",
	reflect.TypeFor[metav1.MicroTime]():   "a time, such as 2006-01-02T15:04:05.000000Z",
	reflect.TypeFor[metav1.Duration]():    "a duration, such as 1m30s",
}

// decoded lets a type decode a value.
func (s *shape) decoded(v any, t reflect.Type, at *field.Path) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err == nil {
		return
	}
	wanted, known := formats[t]
	if !known {
		wanted = "a " + t.Name()
	}
	add(&s.wrong, at, "must be "+wanted)
}

func (s *shape) object(v any, t reflect.Type, at *field.Path) {
	m, ok := v.(map[string]any)
	if !ok {
		s.add(v, "a mapping", at)
		return
	}
	known := fieldsOf(t)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		s.member(key, m[key], known, at)
	}
}

func (s *shape) mapping(v any, t reflect.Type, at *field.Path) {
	m, ok := v.(map[string]any)
	if !ok {
		s.add(v, "a mapping", at)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		s.value(m[key], t, at.Key(key))
	}
}

func (s *shape) list(v any, t reflect.Type, at *field.Path) {
	if t.Kind() == reflect.Uint8 {
		text, ok := v.(string)
		if _, err := base64.StdEncoding.DecodeString(text); !ok || err != nil {
			add(&s.wrong, at, "must be text in base64")
		}
		return
	}
	l, ok := v.([]any)
	if !ok {
		s.add(v, "a list", at)
		return
	}
	for i, item := range l {
		s.value(item, t, at.Index(i))
	}
}

// add reports a value of another type.
func (s *shape) add(v any, wanted string, at *field.Path) {
	message := "must be " + wanted + ", not " + nameOf(v)
	if wanted == text && (nameOf(v) == "a number" || nameOf(v) == "a boolean") {
		message += "; quote it"
	}
	add(&s.wrong, at, message)
}

const text = "a string"

// nameOf returns the name of the type of a value.
func nameOf(v any) string {
	switch v.(type) {
	case string:
		return text
	case bool:
		return "a boolean"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	}
	return "a number"
}

// scalar returns what a type wants instead of a value, or "" if the value fits.
func scalar(v any, t reflect.Type) (wanted string) {
	switch t.Kind() {
	case reflect.String:
		if _, ok := v.(string); !ok {
			return text
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return "true or false"
		}
	case reflect.Float32, reflect.Float64:
		if nameOf(v) != "a number" {
			return "a number"
		}
	default:
		return integer(v, t)
	}
	return ""
}

func integer(v any, t reflect.Type) (wanted string) {
	n, ok := v.(int64)
	if f, isFloat := v.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		n, ok = int64(f), true
	}
	switch {
	case !ok:
		return "an integer"
	case reflect.Zero(t).CanInt() && !reflect.Zero(t).OverflowInt(n),
		reflect.Zero(t).CanUint() && n >= 0 && !reflect.Zero(t).OverflowUint(uint64(n)):
		return ""
	}
	return "an integer of " + t.Kind().String()
}

var knownFields sync.Map // the results of fieldsOf

// fieldsOf returns the types of the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if known, ok := knownFields.Load(t); ok {
		return known.(map[string]reflect.Type) //nolint:forcetypeassert // nothing else is stored
	}
	all := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name != "":
			all[name] = f.Type
		case f.Type.Kind() == reflect.Struct: // inline
			maps.Copy(all, fieldsOf(f.Type))
		}
	}
	knownFields.Store(t, all)
	return all
}
