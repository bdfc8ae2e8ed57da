package kinds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// store is a valid XRD. Tests replace a part of it.
const store = `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: stores.platform.example.org}
spec:
  group: platform.example.org
  names: {kind: Store, plural: stores}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {region: {type: string}}}}}
`

const (
	refused = "error refused a.yaml:"
	of      = ": the API server refuses CompositeResourceDefinition.apiextensions.crossplane.io/stores.platform.example.org: "
	doubt   = ": CompositeResourceDefinition.apiextensions.crossplane.io/stores.platform.example.org: "
	invalid = "the CRD that Crossplane makes from it is invalid: "
)

func TestDefinition(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, replace, by string
		legacy              bool // an XRD of Crossplane v1
		want                []string
	}{
		"Valid": {reason: "An ordinary XRD has no findings."},
		"Name": {
			reason: "The CRD has the name of the XRD, which must be plural.group.", replace: "name: stores.", by: "name: dev-stores.",
			want: []string{refused + "3" + strings.Replace(of, "/stores", "/dev-stores", 1) + "metadata.name: " + invalid + `Invalid value: "dev-stores.platform.example.org": must be spec.names.plural+"."+spec.group`},
		},
		"Claim": {
			reason: "An XRD with a scope of v2 has no claims.", replace: "  scope: Namespaced", by: "  claimNames: {kind: StoreClaim, plural: storeclaims}",
			want: []string{refused + "5" + of + "spec: Claims aren't supported in apiextensions.crossplane.io/v2"},
		},
		"SameClaim": {
			reason: "The claim and the composite resource need different names.", replace: "  scope: Namespaced", by: "  claimNames: {kind: Store, plural: storeclaims}", legacy: true,
			want: []string{refused + "5" + of + `spec: Crossplane cannot make its CRD: invalid resource claim names: "Store" conflicts with composite resource name`},
		},
		"ClaimOfAnotherClaim": {
			reason: "The CRD of a claim is checked, too.", replace: "  scope: Namespaced", by: "  claimNames: {kind: Claim, plural: a/b}", legacy: true,
			want: []string{
				refused + "3" + of + `metadata.name: ` + invalid + `Invalid value: "a/b.platform.example.org": a lowercase RFC 1123 subdomain`,
				refused + "7" + of + `spec.claimNames.plural: ` + invalid + `Invalid value: "a/b": a DNS-1035 label`,
			},
		},
		"Type": {
			reason: "The API server does not check the schema in an XRD, but refuses the CRD with a type that does not exist.", replace: "type: string", by: "type: str",
			want: []string{refused + "13" + of + "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[region].type: " + invalid + `Unsupported value: "str"`},
		},
		"NotStructural": {
			reason: "A field without a type is not structural.", replace: "region: {type: string}", by: "region: {}",
			want: []string{refused + "13" + of + "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[region].type: " + invalid + "Required value"},
		},
		"NoReferenceable": {
			reason: "One version must be referenceable, because it is the storage version.", replace: "referenceable: true", by: "referenceable: false",
			want: []string{refused + "9" + of + "spec.versions: " + invalid + "must have exactly one version marked as storage version"},
		},
		"Ignored": {
			reason: "Crossplane copies little more than properties, so a rule elsewhere holds for no object.", replace: "{type: object, properties: {spec: {",
			by: "{type: object, required: [spec], anyOf: [{required: [spec]}], properties: {extra: {type: string}, spec: {anyOf: [{required: [region]}], additionalProperties: false, typo: 1, ",
			want: []string{
				"warning object-doubtful a.yaml:13" + doubt + "spec.versions[0].schema.openAPIV3Schema.anyOf: Crossplane ignores it",
				"warning object-doubtful a.yaml:13" + doubt + "spec.versions[0].schema.openAPIV3Schema.properties.extra: Crossplane ignores it",
				"warning object-doubtful a.yaml:13" + doubt + "spec.versions[0].schema.openAPIV3Schema.properties.spec.additionalProperties: Crossplane ignores it",
				"warning object-doubtful a.yaml:13" + doubt + "spec.versions[0].schema.openAPIV3Schema.properties.spec.anyOf: Crossplane ignores it",
				"warning object-doubtful a.yaml:13" + doubt + "spec.versions[0].schema.openAPIV3Schema.properties.spec.typo: Crossplane ignores it",
			},
		},
		"NoSchema": {
			reason: "Crossplane cannot make a CRD without a schema.", replace: "openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {region: {type: string}}}}}", by: "{}",
			want: []string{refused + "13" + of + "spec.versions[0].schema.openAPIV3Schema: is required: Crossplane cannot make a CRD without it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := strings.Replace(store, tc.replace, tc.by, 1)
			if tc.legacy {
				manifest = strings.Replace(manifest, "/v2", "/v1", 1)
			}
			got := findings(t, manifest)
			short := func(a, b string) bool { return strings.HasPrefix(b, a) || strings.HasPrefix(a, b) }
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(short)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
