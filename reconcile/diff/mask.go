package diff

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Mask hides values of Secrets, both in the Secret and in objects that they were copied to.
type Mask struct {
	Secret bool     // the object is a Secret
	Paths  []string // in the notation of a Change; a path covers everything below it
	Values []string // in every form in which an API server may quote them
}

// And returns the mask that hides what either of two masks hides.
func (h Mask) And(other Mask) Mask {
	return Mask{h.Secret || other.Secret, slices.Concat(h.Paths, other.Paths), LongestFirst(slices.Concat(h.Values, other.Values))}
}

// Covers reports whether a change at a path would reveal a hidden value.
func (h Mask) Covers(path string) bool {
	return h.Secret && !mayShow(path) || slices.ContainsFunc(h.Paths, func(p string) bool { return isBelow(path, p) || isBelow(p, path) })
}

// isBelow reports whether a path is another one, or a field or an item below it.
func isBelow(path, of string) bool {
	return path == of || strings.HasPrefix(path, of+".") || strings.HasPrefix(path, of+"[")
}

// Text returns a text with all hidden values masked.
func (h Mask) Text(text string) string {
	for _, v := range h.Values {
		text = hide(text, v)
	}
	return text
}

// mayShow reports whether a path of a Secret is safe to show. Annotations are not: the one of client-side apply
// repeats all of the data.
func mayShow(path string) bool {
	return path == "type" || path == "metadata.labels" || strings.HasPrefix(path, "metadata.labels.")
}

// Err returns an error with all hidden values masked. It wraps err.
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

// SecretForms returns the values of a Secret in every form in which an API server may quote them. The longest come
// first, because others may be parts of them.
func SecretForms(secret *unstructured.Unstructured) []string {
	values := Forms(secret.Object["data"])
	values = append(values, Forms(secret.Object["stringData"])...)
	for _, v := range secret.GetAnnotations() {
		values = append(values, Forms(v)...)
	}
	return LongestFirst(values)
}

// Forms returns the scalars inside a value in every form in which an API server may quote them, the longest first.
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
			values = append(values, base64.StdEncoding.EncodeToString([]byte(plain)))
			values = append(values, Spellings(plain)...)
			if decoded, err := base64.StdEncoding.DecodeString(plain); err == nil {
				values = append(values, Spellings(string(decoded))...)
			}
		}
	}
	add(value)
	return LongestFirst(values)
}

// Spellings returns secrets in every form in which a program may write them, alone or inside of a longer text: quoted
// by Go or JSON, once or twice, and in base64. The longest come first, because others may be parts of them.
func Spellings(secrets ...string) []string {
	quoted := LongestFirst(quotesOf(secrets))
	all := quotesOf(quoted)
	for _, secret := range quoted {
		if len(secret) >= 6 { // the base64 of a shorter secret may occur in any text
			all = append(all, base64Of(secret)...)
		}
	}
	return LongestFirst(all)
}

// quotesOf returns texts together with their forms quoted by Go and JSON, without the quotation marks.
func quotesOf(texts []string) []string {
	unquoted := func(s string) string { return s[1 : len(s)-1] }
	var all []string
	for _, text := range texts {
		all = append(all, text, unquoted(strconv.Quote(text)), unquoted(strconv.QuoteToASCII(text)))
		if quoted, err := json.Marshal(text); err == nil { // json.Marshal writes < as \u003c
			all = append(all, unquoted(string(quoted)))
		}
		var plain bytes.Buffer
		unescaped := json.NewEncoder(&plain)
		unescaped.SetEscapeHTML(false)
		if unescaped.Encode(text) == nil { //nolint:errchkjson // a string always encodes
			all = append(all, unquoted(strings.TrimSpace(plain.String())))
		}
	}
	return all
}

// base64Of returns the base64 of a secret, and the part that occurs in the base64 of every longer text with the secret.
func base64Of(secret string) []string {
	var all []string
	for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		all = append(all, alphabet.EncodeToString([]byte(secret)), alphabet.WithPadding(base64.NoPadding).EncodeToString([]byte(secret)))
		for before := range 3 { // bytes before the secret in a group of three
			encoded := alphabet.EncodeToString([]byte("xx"[:before] + secret))
			from, to := (before*8+5)/6, (before+len(secret))*8/6 // characters that depend on the secret alone
			if to-from >= 8 {
				all = append(all, encoded[from:to])
			}
		}
	}
	return all
}

// LongestFirst returns values, each once. Longer ones come first, because others may be parts of them.
func LongestFirst(values []string) []string {
	values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(values)
}

// hide masks a value in a text. It masks a value of few characters only as a whole word, because it may be part of other words.
func hide(text, value string) string {
	const few = 4
	if len(value) >= few || !utf8.ValidString(value) { // few is long enough; no regular expression can match invalid UTF-8
		return strings.ReplaceAll(text, value, "***")
	}
	return regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(value)+`($|\W)`).ReplaceAllString(text, "${1}***${2}")
}
