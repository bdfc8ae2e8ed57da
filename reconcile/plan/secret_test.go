package plan

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMasked(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a"},
		"data":       map[string]any{"a": "aHVudGVyMg=="}, // hunter2
		"stringData": map[string]any{"b": int64(31337173), "c": "x", "d": "two\nlines"},
	}}
	other := secret.DeepCopy()
	other.SetKind("ConfigMap")
	cases := map[string]struct {
		reason string
		sent   *unstructured.Unstructured
		text   string
		want   string
	}{
		"Plain":    {"What is quoted is masked.", secret, "got 31337173", "got ***"},
		"Decoded":  {"Also decoded.", secret, `got "hunter2"!`, `got "***"!`},
		"Encoded":  {"And as it is.", secret, "got aHVudGVyMg==", "got ***"},
		"Escaped":  {"And escaped.", secret, `got "two\nlines"`, `got "***"`},
		"Short":    {"A single character is no part of a word.", secret, `expected "x", not xerox (x)`, `expected "***", not xerox (***)`},
		"Nothing":  {"Without a value nothing is masked.", secret, "field is immutable", "field is immutable"},
		"NoSecret": {"What others hold is shown.", other, "got 31337173", "got 31337173"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := errors.New(tc.text)
			got := Masked(err, tc.sent)
			if got.Error() != tc.want || !errors.Is(got, err) {
				t.Errorf("%s\nMasked(%q) = %q, want %q", tc.reason, tc.text, got, tc.want)
			}
		})
	}
}

// kubectl leaves a copy of what it applied in an annotation. Whoever reads the inventory must
// not be able to try values against a mark that was made of it.
func TestMarkTellsNoSecret(t *testing.T) {
	u := configMap("a")
	plain := Mark(live(u, "u"))
	if Mark(live(u, "u", annotated("kubectl.kubernetes.io/last-applied-configuration", "hunter2"))) != plain {
		t.Error("the mark tells what the annotation holds")
	}
	if Mark(live(u, "u", annotated("example.org/other", "hunter2"))) == plain {
		t.Error("other annotations are part of the mark")
	}
}
