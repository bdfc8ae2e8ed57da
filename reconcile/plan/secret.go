package plan

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mayShow says whether a path of a Secret hides nothing. Annotations do: the one that
// client-side apply leaves holds all of the data once more.
func mayShow(path string) bool {
	return path == "type" || path == "metadata.labels" || strings.HasPrefix(path, "metadata.labels.")
}

// Masked is an error of an API server about an object that was sent, without what a Secret
// holds: the API server quotes a value that it cannot take. It is the same error otherwise.
func Masked(err error, sent *unstructured.Unstructured) error {
	if err == nil {
		return nil
	}
	h := hidden{values: copiedSecrets(sent)}
	if manifest.IDOf(sent).IsSecret() {
		h.values = secretsOf(sent)
	}
	return h.masked(err)
}

// Masked is an error about the object without what was copied into it of Secrets.
func (a Asked) Masked(err error) error { return a.resolved.hidden.masked(err) }

// Masked is an error about the object without what was copied into it of Secrets.
func (s Step) Masked(err error) error { return s.hidden.masked(err) }

func (h hidden) masked(err error) error {
	if err == nil {
		return nil
	}
	text := h.in(err.Error())
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
	values := formsOf(secret.Object["data"])
	values = append(values, formsOf(secret.Object["stringData"])...)
	for _, v := range secret.GetAnnotations() {
		values = append(values, formsOf(v)...)
	}
	return longFirst(values)
}

// formsOf are the values in a value, in every form in which they may be quoted, long ones first.
func formsOf(value any) []string {
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
	add(value)
	return longFirst(values)
}

func longFirst(values []string) []string {
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
	if len(value) >= few || !utf8.ValidString(value) { // of which there is no regular expression
		return strings.ReplaceAll(text, value, "***")
	}
	return regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(value)+`($|\W)`).ReplaceAllString(text, "${1}***${2}")
}
