package diff_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A change shows nothing of a field into which a Secret was copied, and nothing of the field's parents, wherever in the field the
// change is.
func TestHidden(t *testing.T) {
	h := diff.Mask{Paths: []string{"spec.auth.password"}, Values: diff.Forms("s3cr3t")}
	for path, want := range map[string]bool{
		"spec.auth.password": true, "spec.auth.password.more": true, "spec.auth": true, "spec": true, "spec.auth.password[0]": true,
		"spec.auth.passwords": false, "spec.authority": false, "data": false,
	} {
		if h.Covers(path) != want {
			t.Errorf("%s: hidden is %t, want %t", path, !want, want)
		}
	}
	for _, text := range []string{"it is s3cr3t", "it is czNjcjN0"} {
		if got := h.Text(text); got != "it is ***" {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

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
		"Plain":    {"A quoted value is masked.", secret, "got 31337173", "got ***"},
		"Decoded":  {"A decoded value is masked.", secret, `got "hunter2"!`, `got "***"!`},
		"Encoded":  {"An encoded value is masked.", secret, "got aHVudGVyMg==", "got ***"},
		"Escaped":  {"An escaped value is masked.", secret, `got "two\nlines"`, `got "***"`},
		"Short":    {"A single character is masked only as a whole quoted value, not inside a word.", secret, `expected "x", not xerox (x)`, `expected "***", not xerox (***)`},
		"Nothing":  {"A message without a value stays unchanged.", secret, "field is immutable", "field is immutable"},
		"NoSecret": {"Values of objects other than Secrets stay visible.", other, "got 31337173", "got 31337173"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := errors.New(tc.text)
			got := facts.MaskOf(tc.sent).Err(err)
			if got.Error() != tc.want || !errors.Is(got, err) {
				t.Errorf("%s\nMasked(%q) = %q, want %q", tc.reason, tc.text, got, tc.want)
			}
		})
	}
}

// A secret is hidden at any position of an encoded text, and however often it was quoted.
func TestSpellings(t *testing.T) {
	const secret = "pä<ss>&\"wörd7"
	h := diff.Mask{Values: diff.Spellings(secret)}
	object, err := json.Marshal(map[string]string{"password": secret})
	if err != nil {
		t.Fatal(err)
	}
	for before := range 3 {
		inside := strings.Repeat("x", before) + secret + "y"
		for how, text := range map[string]string{
			"base64": base64.StdEncoding.EncodeToString([]byte(inside)), "URL": base64.RawURLEncoding.EncodeToString([]byte(inside)),
			"twice": fmt.Sprintf("%q", object), "ASCII": fmt.Sprintf("%+q", inside), "object": base64.StdEncoding.EncodeToString(object),
		} {
			got := h.Text(text)
			decoded, _ := base64.StdEncoding.DecodeString(got) // the readable part
			if !strings.Contains(got, "***") || strings.Contains(got+string(decoded), "wörd") || strings.Contains(got, `\u003css`) {
				t.Errorf("%s of %s shows %s", how, text, got)
			}
		}
	}
}
