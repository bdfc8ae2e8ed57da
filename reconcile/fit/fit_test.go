package fit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/fit"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A refused value counts as much as a lost one.
func TestRefused(t *testing.T) {
	after := given.Sized("region", "size")
	if err := unstructured.SetNestedField(after.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any), "integer",
		"schema", "openAPIV3Schema", "properties", "spec", "properties", "size", "type"); err != nil {
		t.Fatal(err)
	}
	f, err := fit.New(plan.Decoded(after), given.Sized("region", "size"), "v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		spec := map[string]any{"region": "north"}
		if name == "b" {
			spec["size"] = "large"
		}
		f.Add(t.Context(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"name": name}, "spec": spec}})
	}
	if a, err := f.Answer(false); err != nil || a.Count != 1 || len(a.Reasons) != 1 || !strings.HasPrefix(words.Of(a.Reasons[0]), "1 of 2 are refused (spec.size: ") {
		t.Errorf("%+v", a)
	}
}

// A tally counts objects without storing them. Objects that it did not see are not assumed to fit.
func TestTally(t *testing.T) {
	object := func(i int, size string) *unstructured.Unstructured {
		spec := map[string]any{"region": "north"}
		if size != "" {
			spec["size"] = size
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Bucket", "metadata": map[string]any{"name": fmt.Sprint("b", i), "namespace": "default"}, "spec": spec,
		}}
	}
	after := plan.Decoded(given.Sized("region"))
	f, err := fit.New(after, given.Sized("region", "size"), "v1")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 214 {
		size := ""
		if i%100 == 7 {
			size = "large"
		}
		f.Add(t.Context(), object(i, size))
	}
	if a, err := f.Answer(true); err != nil || a.Count != 3 || len(a.Reasons) != 1 || words.Of(a.Reasons[0]) != "3 of 214 set spec.size, which is lost, for example Bucket default/b7" {
		t.Errorf("%+v", a)
	}
	if f, err = fit.New(after, given.Sized("region", "size"), "v1"); err != nil {
		t.Fatal(err)
	}
	for i := 0; !f.Full(); i++ {
		f.Add(t.Context(), object(i, ""))
	}
	if a, err := f.Answer(true); !errors.As(err, new(fit.UncheckedError)) {
		t.Errorf("it reports that all fit, and did not look at all: %+v", a)
	}
	if a, err := f.Answer(false); err != nil || a.Count != 0 {
		t.Errorf("%+v", a)
	}
}
