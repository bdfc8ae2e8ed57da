package kinds

import (
	"regexp"
	"slices"

	"headgate.dev/headgate/render/check"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// compositions checks Compositions. One of Crossplane v1, which lists resources and has no pipeline, gets one error.
type compositions struct{ check.Composable }

// Key identifies the CRD of Compositions, and the rules of this package.
func (c compositions) Key() string { return c.Composable.Key() + " composition 1" }

// Check checks a Composition.
func (c compositions) Check(o *unstructured.Unstructured) check.Result {
	first := ofFirst(o)
	r := c.Composable.Check(o)
	if first == "" || len(r.Errors) == 0 {
		return r
	}
	r.Errors = slices.DeleteFunc(r.Errors, func(p check.Problem) bool { return ofMode.MatchString(p.Field) })
	r.Errors = append(r.Errors, check.Problem{Field: first, Message: onlyFirst})
	return r
}

// Update checks a change of a Composition.
func (c compositions) Update(o, old *unstructured.Unstructured) []check.Problem {
	if updater, ok := c.Composable.(check.Updater); ok {
		return updater.Update(o, old)
	}
	return nil
}

// ofMode matches the fields that depend on how a Composition composes.
var ofMode = regexp.MustCompile(`^spec(\.(mode|resources|patchSets)\b.*)?$`)

const onlyFirst = "only Crossplane v1 composes resources without a pipeline; convert the Composition with crossplane beta convert pipeline-composition"

// ofFirst returns the field that makes a Composition one of Crossplane v1, or "".
func ofFirst(o *unstructured.Unstructured) string {
	spec, _ := o.Object["spec"].(map[string]any)
	for _, key := range []string{"resources", "patchSets"} {
		if spec[key] != nil && spec["pipeline"] == nil {
			return "spec." + key
		}
	}
	return ""
}
