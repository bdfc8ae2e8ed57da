package v1alpha1_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// The API server knows the range of each number, and refuses the same fields of a Sync that only observes. Otherwise an object with a
// new field would be stored, and the sync would stop.
func TestNumbersOnServer(t *testing.T) {
	data, err := os.ReadFile(crdFile)
	var crd apiextensions.CustomResourceDefinition
	if err == nil {
		err = yaml.UnmarshalStrict(data, &crd)
	}
	if err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	whole := v1alpha1.Spec{Statuses: &v1alpha1.Statuses{App: &v1alpha1.App{}}, Conversion: v1alpha1.Conversion{Service: &v1alpha1.Service{}}}
	numbers := whole.Numbers()
	for _, n := range numbers {
		at := spec
		for name := range strings.SplitSeq(strings.TrimPrefix(n.Field, "spec."), ".") {
			at = at.Properties[name]
		}
		if at.Minimum == nil || at.Maximum == nil || int64(*at.Minimum) != n.Least || int64(*at.Maximum) != n.Most {
			t.Errorf("%s has no markers Minimum=%d and Maximum=%d", n.Field, n.Least, n.Most)
		}
		refused := slices.ContainsFunc(spec.XValidations, func(rule apiextensions.ValidationRule) bool {
			return rule.Rule == fmt.Sprintf("self.managementPolicy != 'Observable' || !has(self.%s)", strings.TrimPrefix(n.Field, "spec."))
		})
		if refused != n.Writes {
			t.Errorf("%s: the API server refuses it for a Sync that only observes: %t, and Validate: %t", n.Field, refused, n.Writes)
		}
	}
	if len(numbers) < 9 {
		t.Errorf("the Spec has %d numbers, fewer than when this test was written", len(numbers))
	}
}
