package schema

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Refusal is a reason why an API server refuses an object.
type Refusal struct {
	Field   string // spec.names.plural
	Problem string
}

// Refusals returns why an API server refuses to create a CRD, using the API server's own libraries. Unknown fields count, because
// server-side apply refuses them. Refusals does not change the CRD.
func Refusals(ctx context.Context, crd *unstructured.Unstructured) []Refusal {
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(crd.Object, &v1, true); err != nil {
		strict, ok := runtime.AsStrictDecodingError(err)
		if !ok {
			return []Refusal{{Problem: err.Error()}}
		}
		if found := unknown(strict.Errors()); len(found) > 0 {
			return found
		}
	}
	v1.Namespace = "" // a write to a cluster-scoped resource clears it
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&v1)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&v1, &internal, nil); err != nil {
		return []Refusal{{Problem: err.Error()}}
	}
	internal.Status = apiextensions.CustomResourceDefinitionStatus{} // as the API server does before validation
	for _, v := range internal.Spec.Versions {
		if v.Storage {
			internal.Status.StoredVersions = []string{v.Name}
			break
		}
	}
	var all []Refusal
	for _, e := range crdvalidation.ValidateCustomResourceDefinition(ctx, &internal) {
		all = append(all, Refusal{Field: e.Field, Problem: selfType.ReplaceAllString(e.ErrorBody(), "self")})
	}
	return all
}

// selfType matches the name of the type of self, with a number that differs in each validation.
var selfType = regexp.MustCompile(`\bselfType\d+\b`)

// statusSubresource matches the fields below the status subresource, which server-side apply leaves out without an error.
var statusSubresource = regexp.MustCompile(`^spec\.versions\[\d+\]\.subresources\.status\.`)

var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// unknown returns a refusal for each unknown or duplicate field that the API server refuses.
func unknown(errs []error) []Refusal {
	var all []Refusal
	for _, err := range errs {
		m := unknownField.FindStringSubmatch(err.Error())
		switch {
		case m == nil:
			all = append(all, Refusal{Problem: err.Error()})
		case !statusSubresource.MatchString(m[1]):
			all = append(all, Refusal{Field: m[1], Problem: "unknown field"})
		}
	}
	return all
}

// Path returns the keys on the path to the field, up to the first index or map key.
func (r Refusal) Path() []any {
	plain, _, _ := strings.Cut(r.Field, "[")
	var path []any
	for key := range strings.SplitSeq(plain, ".") {
		if key == "" {
			break
		}
		path = append(path, key)
	}
	return slices.Clip(path)
}

func (r Refusal) String() string {
	if r.Field == "" {
		return r.Problem
	}
	return r.Field + ": " + r.Problem
}
