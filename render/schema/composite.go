package schema

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mostName is the maximum length of a composite resource's name, because it is the value of a label.
const mostName = int64(63)

// shared lists fields that Crossplane adds to the spec of composite resources with the scope LegacyCluster, and to the spec of
// claims. Other scopes have one field for all of them.
var (
	shared = []string{
		"compositionRef", "compositionSelector", "compositionRevisionRef", "compositionRevisionSelector", "compositionUpdatePolicy",
		"writeConnectionSecretToRef", "publishConnectionDetailsTo",
	}
	ofComposites = append([]string{"resourceRefs", "claimRef", "environmentConfigRefs"}, shared...)
	ofClaims     = append([]string{"resourceRef", "compositeDeletePolicy"}, shared...)
	ofModern     = []string{"crossplane"}
)

// Composite returns the CRD that Crossplane will make for a changed XRD, for composite resources or for claims. It
// starts from the live CRD, which has the fields that Crossplane adds.
func Composite(live, xrd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	added := ofModern
	switch {
	case live.GetName() != xrd.GetName():
		added = ofClaims
	case scopeOf(xrd) == `"LegacyCluster"`:
		added = ofComposites
	}
	was := versions(object(live.Object["spec"]))
	template := was[stored(was)]
	if template == nil {
		return nil, fmt.Errorf("the CRD %s has no storage version", live.GetName())
	}
	var made []any
	for _, v := range list(object(xrd.Object["spec"])["versions"]) {
		is := object(v)
		made = append(made, map[string]any{
			"name": is["name"], "served": is["served"], "storage": is["referenceable"],
			"schema": map[string]any{"openAPIV3Schema": composite(schemaOf(template), schemaOf(is), added)},
		})
	}
	after := live.DeepCopy()
	spec := object(after.Object["spec"])
	spec["versions"] = made
	delete(spec, "conversion")
	if conversion := object(object(xrd.Object["spec"])["conversion"]); conversion != nil {
		spec["conversion"] = conversion
	}
	return after, nil
}

// composite returns the schema that Crossplane makes for one version. Crossplane copies little more than properties.
func composite(live, declared map[string]any, added []string) map[string]any {
	made := maps.Clone(live)
	take(made, declared, "x-kubernetes-validations")
	wasAll, isAll := object(live["properties"]), object(declared["properties"])
	properties := maps.Clone(wasAll)

	was, is := object(wasAll["spec"]), object(isAll["spec"])
	fields := maps.Clone(object(is["properties"]))
	if fields == nil {
		fields = map[string]any{}
	}
	for _, name := range added {
		if field, ok := object(was["properties"])[name]; ok {
			fields[name] = field
		}
	}
	spec := map[string]any{"type": "object", "properties": fields}
	take(spec, is, "required", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations", "oneOf")

	status := maps.Clone(object(wasAll["status"])) // rules of the whole object may read the fields that it gains
	if status == nil {
		status = map[string]any{"type": "object"}
	}
	all := maps.Clone(object(object(isAll["status"])["properties"]))
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, object(status["properties"]))
	status["properties"] = all

	most := mostName
	if less, ok := object(object(object(isAll["metadata"])["properties"])["name"])["maxLength"].(int64); ok {
		most = min(most, less)
	}
	properties["spec"], properties["status"] = spec, status
	properties["metadata"] = map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string", "maxLength": most}}}
	made["properties"] = properties
	return made
}

// take copies some keywords from one schema to another.
func take(into, from map[string]any, keywords ...string) {
	for _, key := range keywords {
		delete(into, key)
		if value, ok := from[key]; ok {
			into[key] = value
		}
	}
}
