package diff

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Mask hides values of Secrets, in a Secret itself and wherever they were copied from one.
type Mask struct {
	Secret bool     // the object is a Secret
	Paths  []string // as of a Change; what is below them, too
	Values []string // in every form in which they may be quoted
}

// Covers reports whether a change at a path would show something hidden.
func (h Mask) Covers(path string) bool {
	return h.Secret && !mayShow(path) || slices.ContainsFunc(h.Paths, func(p string) bool { return isBelow(path, p) || isBelow(p, path) })
}

func isBelow(path, of string) bool {
	rest, below := strings.CutPrefix(path, of)
	return below && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Text returns a text in which nothing hidden can be read.
func (h Mask) Text(text string) string {
	for _, v := range h.Values {
		text = hide(text, v)
	}
	return text
}

// mayShow reports whether a path of a Secret hides nothing. Annotations do: the one that
// client-side apply leaves holds all of the data once more.
func mayShow(path string) bool {
	return path == "type" || path == "metadata.labels" || strings.HasPrefix(path, "metadata.labels.")
}

// Err returns an error in whose text nothing hidden can be read. It wraps err.
func (h Mask) Err(err error) error {
	if err == nil {
		return nil
	}
	text := h.Text(err.Error())
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

// SecretForms returns the values of a Secret in every form in which an API server may quote them, the longest first:
// others may be parts of them.
func SecretForms(secret *unstructured.Unstructured) []string {
	values := Forms(secret.Object["data"])
	values = append(values, Forms(secret.Object["stringData"])...)
	for _, v := range secret.GetAnnotations() {
		values = append(values, Forms(v)...)
	}
	return LongestFirst(values)
}

// Forms returns the values inside a value in every form in which an API server may quote them, the longest first.
func Forms(value any) []string {
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
	return LongestFirst(values)
}

// LongestFirst returns values, and how Go quotes them, each once. Longer ones come first, because others may be parts
// of them.
func LongestFirst(values []string) []string {
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
	if len(value) >= few || !utf8.ValidString(value) { // no regular expression can match it
		return strings.ReplaceAll(text, value, "***")
	}
	return regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(value)+`($|\W)`).ReplaceAllString(text, "${1}***${2}")
}
