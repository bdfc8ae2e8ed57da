package check_test

import (
	"maps"
	"strings"
	"testing"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/check/kubernetes"

	"github.com/google/go-cmp/cmp"
)

// declares is a commit with a definition, a CRD and two XRDs.
var declares = files{
	"bucket.yaml": `apiVersion: apiextensions.crossplane.io/v1alpha1
kind: ManagedResourceDefinition
metadata: {name: buckets.store.example.org}
spec:
  group: store.example.org
  names: {kind: Bucket, plural: buckets}
  scope: Namespaced
  versions:
  - {name: v1beta1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [region]
            x-kubernetes-validations:
            - {rule: "self.size < 10 || self.region == 'north'", message: only the north has large buckets}
            - {rule: "self.region == oldSelf.region", message: the region is immutable}
            properties:
              region: {type: string, enum: [north, south]}
              size: {type: integer, default: 1}
              tags: {type: object, additionalProperties: {type: string}}
              owner: {type: string, format: email}
              template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              rules:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}}}
          status: {type: object, required: [id], properties: {id: {type: string}}}
`,
	"shop.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.store.example.org}
spec:
  group: store.example.org
  names: {kind: Shop, plural: shops, singular: shop, listKind: ShopList}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {open: {type: boolean}}}}}}}
`,
	"platform.yaml": `apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: platforms.example.org}
spec:
  group: example.org
  names: {kind: Platform, plural: platforms}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [tier], properties: {tier: {type: string}}}}}}
---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xdatabases.example.org}
spec:
  group: example.org
  names: {kind: XDatabase, plural: xdatabases}
  claimNames: {kind: Database, plural: databases}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`,
}

// with returns the files of a commit with one more.
func (f files) with(name, text string) files {
	all := files{name: text}
	maps.Copy(all, f)
	return all
}

// desired renders files.
func (f files) desired(tb testing.TB) render.Desired {
	tb.Helper()
	want, err := render.Render(render.Input{Files: f.fs()}, render.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return want
}

func TestDeclared(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		want   []string // line: message
	}{
		"Good":         {"A valid object has no findings; defaults count before rules.", bucket1 + "spec: {region: south, tags: {a.b/c: x}}\n", nil},
		"Unknown":      {"Server-side apply refuses unknown fields.", bucket1 + "spec:\n  region: south\n  regoin: south\n", []string{"6: spec.regoin: unknown field; did you mean region?"}},
		"Written":      {"The author wrote y.", bucket1 + "spec:\n  region: south\n  tags:\n    y: 1\n  y: 1\n", []string{"7: spec.tags.y: must be of type string, not integer", "8: spec.y: unknown field"}},
		"Type":         {"A string is no integer.", bucket1 + "spec:\n  region: south\n  size: large\n", []string{`6: spec.size: must be of type integer, not string`}},
		"Enum":         {"The schema lists the values.", bucket1 + "spec:\n  region: west\n", []string{`5: spec.region: cannot be "west"; supported values: "north", "south"`}},
		"FormatList":   {"Schema validation does not look at a list for a text with a format.", bucket1 + "spec:\n  region: south\n  owner: [jane@example.org]\n", []string{"6: spec.owner: must be of type string, not a list"}},
		"Embedded":     {"The metadata of an embedded object has a schema.", bucket1 + "spec:\n  region: south\n  template: {apiVersion: v1, kind: A, metadata: {nam: a}}\n", []string{"6: spec.template.metadata.nam: unknown field"}},
		"EmbeddedType": {"The metadata of an embedded object has a schema.", bucket1 + "spec:\n  region: south\n  template: {apiVersion: v1, kind: A, metadata: {labels: {a: 1}}}\n", []string{"6: spec.template.metadata: has a field of the wrong type"}},
		"Null":         {"Server-side apply keeps a null.", bucket1 + "spec: {region: south, tags: null}\n", []string{`4: spec.tags: must be of type object, not null`}},
		"NullDefault":  {"A default replaces a null.", bucket1 + "spec: {region: south, size: null}\n", nil},
		"Required":     {"The line is where the parent begins.", bucket1 + "spec:\n  size: 1\n", []string{"5: spec.region: is required"}},
		"Rule":         {"A rule of CEL refuses the object.", bucket1 + "spec:\n  region: south\n  size: 20\n", []string{"5: spec: only the north has large buckets"}},
		"Twice":        {"The list is a map.", bucket1 + "spec:\n  region: south\n  rules:\n  - {name: a}\n  - {name: a}\n", []string{"8: spec.rules[1]: is there twice"}},
		"Status":       {"An apply of the object does not set its status.", bucket1 + "spec: {region: south}\nstatus: {}\n", nil},
		"StatusField":  {"Server-side apply refuses unknown fields, also of a status.", bucket1 + "spec: {region: south}\nstatus: {size: 1}\n", []string{"5: status.size: unknown field"}},
		"Unserved":     {"No version of that name is served.", strings.Replace(bucket1, "/v1", "/v1beta1", 1) + "spec: {region: south}\n", []string{"1: the API server does not serve Bucket of store.example.org in v1beta1"}},
		"ClusterScope": {"A CRD of the commit declares a kind.", "apiVersion: store.example.org/v1\nkind: Shop\nmetadata: {name: a}\nspec: {open: \"yes\"}\n", []string{`4: spec.open: must be of type boolean, not string`}},
		"Composite":    {"Crossplane adds spec.crossplane.", "apiVersion: example.org/v1\nkind: Platform\nmetadata: {name: a}\nspec: {tier: gold, crossplane: {compositionRef: {name: b}}}\n", nil},
		"OldField":     {"A composite resource of v2 has no compositionRef.", "apiVersion: example.org/v1\nkind: Platform\nmetadata: {name: a}\nspec: {tier: gold, compositionRef: {name: b}}\n", []string{"4: spec.compositionRef: unknown field"}},
		"Legacy":       {"A composite resource of v1 has a compositionRef.", "apiVersion: example.org/v1\nkind: XDatabase\nmetadata: {name: a}\nspec: {size: 1, compositionRef: {name: b}}\n", nil},
		"LegacyNull":   {"The XRD's own default is the default of the field.", "apiVersion: example.org/v1\nkind: XDatabase\nmetadata: {name: a}\nspec: {size: 1, compositionUpdatePolicy: null}\n", nil},
		"Claim":        {"The claim has the fields of the composite resource.", "apiVersion: example.org/v1\nkind: Database\nmetadata: {name: a}\nspec: {size: big, compositionRef: {name: b}}\n", []string{`4: spec.size: must be of type integer, not string`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := declares.with("object.yaml", tc.object).desired(t)
			var got []string
			for _, f := range check.Check(want.Objects, check.Declared(want)).Findings {
				message := f.Message
				if i := strings.Index(message, "/a: "); i >= 0 {
					message = message[i+len("/a: "):]
				}
				got = append(got, strings.TrimPrefix(f.Origin.String(), "object.yaml:")+": "+message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCheck(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The kinds of a package are all kinds of its group, unless another package was not read.
func TestExtent(t *testing.T) {
	all := files{"p/crossplane.yaml": "apiVersion: meta.pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: store}\n", "p/bucket.yaml": declares["bucket.yaml"]}
	want := all.desired(t)
	if got := check.Declared(want).Knows("store.example.org"); got != check.All {
		t.Errorf("the package is known, and its group to extent %d", got)
	}
	want.Unread = []catalogue.Unread{{Source: "example.org/another"}}
	if got := check.Declared(want).Knows("store.example.org"); got != check.Some {
		t.Errorf("another package was not read, and the group is known to extent %d", got)
	}
}

func TestCompositions(t *testing.T) {
	const head = `apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: a}
spec:
  compositeTypeRef: {apiVersion: elsewhere.example.org/v1, kind: Platform}
  mode: Pipeline
  pipeline:
  - step: compose
    functionRef: {name: patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      patchSets:
      - {name: size, patches: [{fromFieldPath: spec.size, toFieldPath: spec.size}]}
      resources:
      - name: bucket
        base:
          apiVersion: store.example.org/v1
          kind: Bucket
`
	cases := map[string]struct {
		reason string
		rest   string // after the kind of the base
		want   []string
	}{
		"Bare":      {"A patch may add what is required.", "", nil},
		"Unknown":   {"No patch removes a field.", "          spec:\n            regoin: north\n", []string{"21: spec.pipeline[0].input.resources[0].base.spec.regoin: unknown field; did you mean region?"}},
		"Type":      {"Nothing else writes the field.", "          spec:\n            size: big\n", []string{"21: spec.pipeline[0].input.resources[0].base.spec.size: must be of type integer, not string"}},
		"Enum":      {"Nothing else writes the field.", "          spec:\n            region: west\n", []string{`21: spec.pipeline[0].input.resources[0].base.spec.region: cannot be "west"; supported values: "north", "south"`}},
		"Embedded":  {"The metadata of an embedded object is an object.", "          spec:\n            template: {apiVersion: v1, kind: A, metadata: [a]}\n", []string{"21: spec.pipeline[0].input.resources[0].base.spec.template.metadata: has a field of the wrong type"}},
		"Patched":   {"The patch replaces the value.", "          spec: {region: west}\n        patches:\n        - {type: FromCompositeFieldPath, fromFieldPath: spec.region}\n", nil},
		"PatchSet":  {"The patch of the set replaces the value.", "          spec: {size: big}\n        patches:\n        - {type: PatchSet, patchSetName: size}\n", nil},
		"Lacks":     {"The field does not exist.", "        patches:\n        - fromFieldPath: spec.region\n          toFieldPath: spec.regoin\n", []string{"22: spec.pipeline[0].input.resources[0].patches[0].toFieldPath: Bucket has no field spec.regoin: spec.regoin is not in its schema; did you mean region?"}},
		"LacksItem": {"The items of the list have no such field.", "        patches:\n        - fromFieldPath: spec.region\n          toFieldPath: spec.rules[0].nam\n", []string{"22: spec.pipeline[0].input.resources[0].patches[0].toFieldPath: Bucket has no field spec.rules[0].nam: spec.rules[0].nam is not in its schema; did you mean name?"}},
		"Key":       {"A map takes any key.", "        patches:\n        - {fromFieldPath: a, toFieldPath: 'spec.tags[a.b/c]'}\n        - {fromFieldPath: a, toFieldPath: 'metadata.annotations[a.b/c]'}\n        - {fromFieldPath: a, toFieldPath: 'spec.rules[*].name'}\n", nil},
		"Back":      {"The patch writes the composite resource.", "        patches:\n        - {type: ToCompositeFieldPath, fromFieldPath: status.id, toFieldPath: status.bucket}\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := declares.with("composition.yaml", head+tc.rest).desired(t)
			var got []string
			for _, f := range check.Compositions(want.Objects, check.Declared(want)).Findings {
				_, message, _ := strings.Cut(f.Message, " describes: ")
				got = append(got, strings.TrimPrefix(f.Origin.String(), "composition.yaml:")+": "+message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCompositions(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	want := declares.with("composition.yaml", strings.Replace(head, "store.example.org/v1\n", "store.example.org/v1/x\n", 1)).desired(t)
	found := check.Compositions(want.Objects, check.Declared(want)).Findings
	if len(found) != 1 || !strings.Contains(found[0].Message, `base.apiVersion: "store.example.org/v1/x" is no apiVersion`) {
		t.Errorf("a malformed apiVersion: %+v", found)
	}
}

// A Composition is judged against the kinds that its sources know: those of its resources, and that of its composite resources.
func TestComposed(t *testing.T) {
	const head = `apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: a}
spec:
  compositeTypeRef: {apiVersion: example.org/v1, kind: Platform}
  pipeline:
  - step: compose
    functionRef: {name: patch-and-transform}
    input:
      apiVersion: pt.fn.crossplane.io/v1beta1
      kind: Resources
      environment:
        patches: [{type: ENVIRONMENT, fromFieldPath: spec.tier, toFieldPath: spec.anything}]
      resources:
      - base:
          BASE
        patches:
        - PATCH
`
	const bucket, bare = "{apiVersion: store.example.org/v1, kind: Bucket}", "{fromFieldPath: spec.tier, toFieldPath: spec.region}"
	const found = "spec.pipeline[0].input.resources[0]."
	some := []string{"1 composed resource checked without " + check.NotPatched}
	cases := map[string]struct {
		reason      string
		base, patch string
		want        []string
		omitted     []string
	}{
		"Fits":       {"Nothing is wrong.", bucket, bare, nil, some},
		"Kind":       {"Its group is known completely.", "{apiVersion: whole.example.org/v1, kind: Buckte}", bare, []string{"error " + found + "base.kind: whole.example.org has no kind Buckte (did you mean Bucket?)"}, nil},
		"Case":       {"Kinds are case-sensitive.", "{apiVersion: store.example.org/v1, kind: bucket}", bare, []string{"error " + found + "base.kind: store.example.org has no kind bucket (write Bucket: upper and lower case count)"}, nil},
		"Elsewhere":  {"Another commit may have its CRD.", "{apiVersion: s3.example.org/v1, kind: Bucket}", bare, nil, []string{"1 composed resource of Bucket.s3.example.org not checked: its CRD is not in this commit"}},
		"Near":       {"It may be another kind.", "{apiVersion: store.example.org/v1, kind: Buckett}", bare, []string{"warning " + found + "base.kind: nothing in this commit declares kind Buckett of store.example.org, and Bucket is similar (correct the kind if you mean Bucket)"}, []string{"1 composed resource of Buckett.store.example.org not checked: its CRD is not in this commit"}},
		"Version":    {"The API server does not serve it.", "{apiVersion: store.example.org/v1beta1, kind: Bucket}", bare, []string{"error " + found + "base.apiVersion: the API server does not serve Bucket of store.example.org in v1beta1 (use v1)"}, nil},
		"Future":     {"A newer release may serve it.", "{apiVersion: autoscaling/v3, kind: HorizontalPodAutoscaler}", "{fromFieldPath: spec.tier, toFieldPath: spec.any}", []string{"warning " + found + "base.apiVersion: no release that Headgate knows serves HorizontalPodAutoscaler of autoscaling in v3 (use v2, v1, v2beta2 or v2beta1)"}, []string{"1 composed resource of HorizontalPodAutoscaler.autoscaling not checked: no release that Headgate knows serves their versions"}},
		"Patched":    {"The patch decides.", "{apiVersion: store.example.org/v9, kind: Bucket}", "{fromFieldPath: spec.tier, toFieldPath: apiVersion}", nil, nil},
		"Kubernetes": {"ConfigMaps gain no fields.", "{apiVersion: v1, kind: ConfigMap, dta: {a: b}, data: {a: 1}}", "{fromFieldPath: spec.tier, toFieldPath: data.b}", []string{"error " + found + "base.data[a]: must be a string, not a number; quote it", "error " + found + "base.dta: unknown field; did you mean data?"}, some},
		"Later":      {"A newer release may have the field.", "{apiVersion: v1, kind: Service, spec: {typ: a}}", "{fromFieldPath: spec.tier, toFieldPath: spec.any}", []string{"warning " + found + "base.spec.typ: Kubernetes 1.37 has no such field; did you mean type?"}, some},
		"LacksData":  {"ConfigMaps gain no fields.", "{apiVersion: v1, kind: ConfigMap}", "{fromFieldPath: spec.tier, toFieldPath: dta.b}", []string{"error " + found + "patches[0].toFieldPath: ConfigMap has no field dta.b: dta is an unknown field; did you mean data?"}, some},

		"Reads":     {"The API server prunes the field.", bucket, "{fromFieldPath: spec.teir, toFieldPath: spec.region}", []string{"warning " + found + "patches[0].fromFieldPath: Platform has no field spec.teir, so the patch never does anything: spec.teir is not in its schema; did you mean tier?"}, some},
		"Required":  {"The function fails.", bucket, "{fromFieldPath: spec.teir, toFieldPath: spec.region, policy: {fromFieldPath: Required}}", []string{"error " + found + "patches[0].fromFieldPath: Platform has no field spec.teir: spec.teir is not in its schema; did you mean tier?"}, some},
		"Added":     {"Crossplane adds fields.", bucket, "{fromFieldPath: spec.crossplane.compositionRef.name, toFieldPath: spec.region}", nil, some},
		"Metadata":  {"Every object has metadata.", bucket, "{fromFieldPath: 'metadata.labels[any]', toFieldPath: 'metadata.labels[any]'}", nil, some},
		"Combines":  {"Each variable is a field.", bucket, "{type: CombineFromComposite, combine: {variables: [{fromFieldPath: spec.tier}, {fromFieldPath: spec.no}]}, toFieldPath: spec.region}", []string{"warning " + found + "patches[0].combine.variables[1].fromFieldPath: Platform has no field spec.no, so the patch never does anything: spec.no is not in its schema"}, some},
		"Writes":    {"The API server refuses the status.", bucket, "{type: ToCompositeFieldPath, fromFieldPath: status.id, toFieldPath: status.id}", []string{"error " + found + "patches[0].toFieldPath: Platform has no field status.id: status.id is not in its schema"}, some},
		"ReadsBack": {"A Bucket has no such field.", bucket, "{type: ToCompositeFieldPath, fromFieldPath: status.arn, toFieldPath: spec.tier}", []string{"warning " + found + "patches[0].fromFieldPath: Bucket has no field status.arn, so the patch never does anything: status.arn is not in its schema"}, some},
		"Context":   {"The environment has no schema.", bucket, "{type: FromEnvironmentFieldPath, fromFieldPath: any, toFieldPath: spec.region}", nil, some},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("BASE", tc.base, "PATCH", tc.patch, "ENVIRONMENT", "FromCompositeFieldPath").Replace(head)
			want := declares.with("composition.yaml", text).desired(t)
			r := check.Compositions(want.Objects, check.Declared(want), kubernetes.Of(0), shop{})
			var got, omitted []string
			for _, f := range r.Findings {
				_, message, _ := strings.Cut(f.Message, ": ")
				message = string(f.Severity) + " " + message
				if f.Fix != "" {
					message += " (" + f.Fix + ")"
				}
				got = append(got, message)
			}
			for _, o := range r.Omitted {
				omitted = append(omitted, o.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCompositions(...) (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.omitted, omitted); diff != "" {
				t.Errorf("%s\nOmitted (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A commit with several declarations of a kind is in error, and none of them judges its objects.
func TestRepeated(t *testing.T) {
	all := declares.with("object.yaml", bucket1+"spec: {regoin: north}\n")
	all["other.yaml"] = strings.ReplaceAll(declares["bucket.yaml"], "region", "regoin")
	want, err := render.Render(render.Input{Files: all.fs()}, render.Options{Lints: true})
	if err == nil {
		t.Error("the definition is declared twice")
	}
	if r := check.Check(want.Objects, check.Declared(want)); len(r.Findings) != 0 || len(r.Omitted) == 0 {
		t.Errorf("%+v", r)
	}
}

// A rule that compares an object with the one before refuses an update. CRDs that live elsewhere count as those of the commit.
func TestUpdates(t *testing.T) {
	const north, south = bucket1 + "spec: {region: north}\n", bucket1 + "spec:\n  region: south\n"
	before, want := declares.with("object.yaml", north).desired(t), declares.with("object.yaml", south).desired(t)
	found := check.Updates(before.Objects, want.Objects, check.Declared(want))
	if len(found) != 1 || found[0].Origin.Line != 5 || !strings.HasSuffix(found[0].Message, "spec: the region is immutable") {
		t.Errorf("%+v", found)
	}
	if found := check.Updates(want.Objects, want.Objects, check.Declared(want)); len(found) != 0 {
		t.Errorf("nothing changes: %+v", found)
	}
}

func TestSchemas(t *testing.T) {
	all := files{"apply/a.yaml": bucket1 + "spec: {region: west}\n", "elsewhere/README.md": "# Schemas\n", "text/a.yaml": "a: 1\n"}
	for name, text := range declares {
		all["elsewhere/"+name] = text
	}
	for _, schemas := range [][]string{{"elsewhere"}, {"elsewhere/bucket.yaml"}} {
		want, err := render.Render(render.Input{Files: all.fs(), Path: "apply"}, render.Options{Schemas: schemas})
		if err != nil {
			t.Fatal(err)
		}
		if r := check.Check(want.Objects, check.Declared(want)); len(want.Objects) != 1 || len(r.Findings) != 1 || len(r.Omitted) != 0 {
			t.Errorf("%q: %d objects: %+v", schemas, len(want.Objects), r)
		}
	}
	for _, schemas := range []string{"text", "nowhere", "elsewhere/README.md"} {
		_, err := render.Render(render.Input{Files: all.fs(), Path: "apply"}, render.Options{Schemas: []string{schemas}})
		if err == nil || !strings.HasPrefix(err.Error(), schemas) {
			t.Errorf("%s: %v", schemas, err)
		}
	}
}

const bucket1 = "apiVersion: store.example.org/v1\nkind: Bucket\nmetadata: {name: a}\n"

// The kind of an XRD may be any text, because another check reports a bad one.
func TestKindOfSeveralWords(t *testing.T) {
	xrd := strings.Replace(`apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: as.example.org}
spec:
  group: example.org
  names: {kind: KIND, plural: as}
  versions: [{name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}]
`, "KIND", "A kind of words", 1)
	want, err := render.Render(render.Input{Files: files{"xrd.yaml": xrd}.fs()}, render.Options{Owner: render.OwnerCrossplane})
	if err != nil {
		t.Fatal(err)
	}
	if kinds := check.Declared(want).Kinds("example.org"); len(kinds) != 1 || kinds[0].Kind != "A kind of words" {
		t.Errorf("the kinds of the group are %v", kinds)
	}
}
