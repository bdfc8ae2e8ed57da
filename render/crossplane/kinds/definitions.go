package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/crd"
	"headgate.dev/headgate/render/schema"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// definitions checks XRDs. The API server accepts an XRD with any schema and name, but then refuses the CRDs that Crossplane makes.
type definitions struct{ check.Kind }

// Key identifies the CRD of XRDs, and the rules of this package.
func (d definitions) Key() string {
	if keyed, ok := d.Kind.(check.Keyed); ok {
		return keyed.Key() + " definition 1"
	}
	return ""
}

// Check checks an XRD and, if the API server accepts it, the CRDs that Crossplane makes from it.
func (d definitions) Check(o *unstructured.Unstructured) check.Result {
	r := d.Kind.Check(o)
	if len(r.Errors) == 0 && r.NotChecked == "" {
		r.Errors, r.Warnings = made(o), append(r.Warnings, ignored(o)...)
	}
	return r
}

// Compares returns true: the CRD of XRDs has rules for updates.
func (d definitions) Compares() bool { return true }

// Update checks a change of an XRD.
func (d definitions) Update(o, old *unstructured.Unstructured) []check.Problem {
	if updater, ok := d.Kind.(check.Updater); ok {
		return updater.Update(o, old)
	}
	return nil
}

// made returns why Crossplane makes no CRD of an XRD, or why the API server refuses it.
func made(xrd *unstructured.Unstructured) []check.Problem {
	if without := schemaless(xrd); len(without) > 0 {
		return without
	}
	crds, err := crd.Composites(xrd)
	if err != nil {
		return []check.Problem{{Field: "spec", Message: fmt.Sprintf("Crossplane cannot make its CRD: %v", err)}}
	}
	var all []check.Problem
	for i, made := range crds {
		made.SetOwnerReferences(nil) // the XRD has no UID yet
		for _, refusal := range schema.Refusals(context.Background(), made) {
			p := check.Problem{Field: fieldOf(refusal, i > 0), Message: "the CRD that Crossplane makes from it is invalid: " + withoutList(refusal.Problem)}
			if !strings.HasPrefix(p.Field, "status.") && !slices.Contains(all, p) { // the status follows from the versions
				all = append(all, p)
			}
		}
	}
	return all
}

// schemaless reports the versions without a schema. The API server accepts them in an XRD.
func schemaless(xrd *unstructured.Unstructured) []check.Problem {
	var all []check.Problem
	versions, _, _ := unstructured.NestedSlice(xrd.Object, "spec", "versions")
	for i, v := range versions {
		version, _ := v.(map[string]any)
		if schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema"); schema == nil {
			all = append(all, check.Problem{
				Field: fmt.Sprintf("spec.versions[%d].schema.openAPIV3Schema", i), Message: "is required: Crossplane cannot make a CRD without it",
			})
		}
	}
	return all
}

// fieldOf returns the field of the XRD that becomes a field of the CRD of the composite resource or claim.
func fieldOf(refusal schema.Refusal, claim bool) string {
	field := refusal.Field
	if claim {
		field = strings.Replace(field, "spec.names", "spec.claimNames", 1)
	}
	// The API server reports a schema that all versions share like this.
	return strings.Replace(field, "spec.validation.", "spec.versions[0].schema.", 1)
}

// withoutList returns a problem without the list of versions that it quotes.
func withoutList(problem string) string {
	if _, why, quoted := strings.Cut(problem, "}]: "); quoted && strings.HasPrefix(problem, "Invalid value: [{") {
		return why
	}
	return problem
}
