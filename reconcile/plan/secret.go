package plan

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsSecret says whether an object holds what nobody is to read.
func IsSecret(id manifest.ID) bool { return id.Group == "" && id.Kind == "Secret" }

// mayShow says whether a path of a Secret hides nothing. Annotations do: the one that
// client-side apply leaves holds all of the data once more.
func mayShow(path string) bool {
	return path == "type" || path == "metadata.labels" || strings.HasPrefix(path, "metadata.labels.")
}

// Masked is an error of an API server about an object that was sent, without what a Secret
// holds: the API server quotes a value that it cannot take. It is the same error otherwise.
func Masked(err error, sent *unstructured.Unstructured) error {
	if err == nil || !IsSecret(manifest.IDOf(sent)) {
		return err
	}
	text := err.Error()
	for _, value := range secretsOf(sent) {
		text = hide(text, value)
	}
	if text == err.Error() {
		return err
	}
	return masked{err, text}
}

type masked struct {
	error
	text string
}

func (m masked) Error() string { return m.text }
func (m masked) Unwrap() error { return m.error }

// secretsOf are the values of a Secret in every form in which they may be quoted, long ones
// first: others may be parts of them.
func secretsOf(secret *unstructured.Unstructured) []string {
	var values []string
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case nil:
		case map[string]any:
			for _, child := range v {
				add(child)
			}
		case []any:
			for _, child := range v {
				add(child)
			}
		default:
			plain := fmt.Sprint(v)
			values = append(values, plain, base64.StdEncoding.EncodeToString([]byte(plain)))
			if decoded, err := base64.StdEncoding.DecodeString(plain); err == nil {
				values = append(values, string(decoded))
			}
		}
	}
	add(secret.Object["data"])
	add(secret.Object["stringData"])
	for _, v := range secret.GetAnnotations() {
		add(v)
	}
	for _, v := range values {
		values = append(values, strings.Trim(strconv.Quote(v), `"`))
	}
	values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(values)
}

// hide masks a value in a text. One of a few characters is masked where it stands alone:
// elsewhere it is part of a word.
func hide(text, value string) string {
	const few = 4
	if len(value) >= few {
		return strings.ReplaceAll(text, value, "***")
	}
	return regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(value)+`($|\W)`).ReplaceAllString(text, "${1}***${2}")
}
