package uses

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/render/catalogue"

	"github.com/google/go-cmp/cmp"
)

// found returns the objects in texts as "line apiVersion kind".
func found(all []InText) (got []string) {
	for _, f := range all {
		got = append(got, fmt.Sprintf("%d %s %s", f.Line, f.APIVersion, f.Kind))
	}
	return got
}

func TestInTemplate(t *testing.T) {
	cases := map[string]struct {
		reason, template string
		want             []string
	}{
		"Conditional": {
			reason:   "An action on the same line decides only whether the line counts.",
			template: "apiVersion: a/v1\n{{ if .x }}kind: B{{ end }}\n",
			want:     []string{"1 a/v1 B"},
		},
		"Alternatives": {
			reason:   "A template may choose between kinds; each of them is used.",
			template: "apiVersion: a/v1\nkind: {{ if .x }}B{{ else if .y }}C{{- else }}D{{ end }}\n",
			want:     []string{"1 a/v1 B", "1 a/v1 C", "1 a/v1 D"},
		},
		"Computed": {
			reason:   "A part that the template computes is not known.",
			template: "apiVersion: a/v1\nkind: {{ $kind }}List\n",
			want:     []string{"1 a/v1 {{ $kind }}List"},
		},
		"WindowsLines": {
			reason:   "A template may have Windows line ends.",
			template: "---\r\napiVersion: a/v1\r\nkind: \"B\"\r\n---\r\nkind: C\r\napiVersion: b/v1 # new\r\n",
			want:     []string{"2 a/v1 B", "4 b/v1 C"},
		},
		"Flow": {
			reason:   "An object may stand on one line.",
			template: "- base: {apiVersion: a/v1, kind: B}\n  of: { \"kind\": \"C\", \"apiVersion\": \"b/v1\" }\n",
			want:     []string{"0 a/v1 B", "1 b/v1 C"},
		},
		"Anchor": {
			reason:   "An alias has the value of its anchor.",
			template: "apiVersion: &a a/v1\nkind: B\n---\napiVersion: *a\nkind: C\n",
			want:     []string{"1 a/v1 B", "4 a/v1 C"},
		},
		"Nested": {
			reason:   "Both the wrapper and what it wraps are objects.",
			template: "apiVersion: a/v1\nkind: Object\nspec:\n  manifest:\n    kind: C\n    apiVersion: b/v1\n",
			want:     []string{"1 a/v1 Object", "4 b/v1 C"},
		},
		"Remark": {
			reason:   "A remark names nothing.",
			template: "{{/* apiVersion: a/v1\nkind: B */}}\n# kind: C\napiVersion: a/v1\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, found(InTemplate(tc.template))); diff != "" {
				t.Errorf("%s\nInTemplate(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInProgram(t *testing.T) {
	cases := map[string]struct {
		reason, program string
		in              catalogue.Language
		want            []string
	}{
		"KCL": {
			reason:  "KCL assigns; a comment names nothing.",
			in:      catalogue.KCL,
			program: "# {apiVersion = \"a/v1\", kind = \"C\"}\nitems = [{\n  apiVersion = \"a/v1\" # kind = \"C\"\n  spec = {providerConfigRef = {kind = \"ProviderConfig\"}}\n  kind = 'B'\n}]\n",
			want:    []string{"4 a/v1 B"},
		},
		"Python": {
			reason:  "Python has dictionaries, keywords, fields, annotations and constants.",
			in:      catalogue.Python,
			program: "API = \"a/v1\"\nx = {\"apiVersion\": API, \"kind\": \"B\"}\ny = K(api_version=\"b/v1\", kind=\"C\")\nz[\"kind\"] = \"D\"\nz[\"apiVersion\"] = \"c/v1\"\nclass E:\n  kind: str = 'E'\n  apiVersion: Optional[str] = 'd/v1'\nif x.kind == \"F\": pass\n",
			want:    []string{"1 a/v1 B", "2 b/v1 C", "3 c/v1 D", "6 d/v1 E"},
		},
		"CUE": {
			reason:  "CUE has definitions that begin with #.",
			in:      catalogue.CUE,
			program: "// kind: \"C\"\n#Base: {apiVersion: \"a/v1\", kind: \"B\"}\n",
			want:    []string{"1 a/v1 B"},
		},
		"Computed": {
			reason:  "What a program computes is not known.",
			in:      catalogue.Python,
			program: "{\"apiVersion\": f\"{g}/v1\", \"kind\": \"B\"}\n{apiVersion = \"${g}/v1\", kind = \"B\"}\n{\"apiVersion\": version, \"kind\": \"B\"}\n",
		},
		"Inside": {
			reason:  "A program may hold YAML.",
			in:      catalogue.Python,
			program: "x = yaml.load('''\napiVersion: a/v1\nkind: B\n''')\n",
			want:    []string{"2 a/v1 B"},
		},
		"Apart": {
			reason:  "Halves in different brackets do not belong together.",
			in:      catalogue.KCL,
			program: "[{apiVersion = \"a/v1\"}, {kind = \"B\"}, {apiVersion = \"c/v1\", spec = {kind = \"D\"}}]",
		},
		"ModelsOfKCL": {
			reason:  "Generated models name the group in reverse; the m of a namespaced group is joined to the label before it.",
			in:      catalogue.KCL,
			program: "import models.io.upbound.awsm.ec2.v1beta1 as ec2\nimport models.com.example.v1\nx = ec2.VPC{\n}\ny = v1.Thing {}\nother.VPC{}\n",
			want:    []string{"2 ec2.awsm.upbound.io/v1beta1 VPC", "2 ec2.aws.m.upbound.io/v1beta1 VPC", "4 example.com/v1 Thing"},
		},
		"ModelsOfPython": {
			reason:  "Generated models of Python name the kind in lower case.",
			in:      catalogue.Python,
			program: "from .model.io.upbound.m.aws.ec2.vpc import v1beta1 as vpcv1\nfrom .model.io.upbound.m.aws.ec2.subnet import (\n    v1beta1 as s,\n)\n",
			want:    []string{"0 ec2.aws.m.upbound.io/v1beta1 vpc", "1 ec2.aws.m.upbound.io/v1beta1 subnet"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, found(inProgram(tc.program, languageNamed(tc.in)))); diff != "" {
				t.Errorf("%s\ninProgram(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzInTemplate reads arbitrary templates. Every object must have a valid line. A plain object must be found if the rest of the
// template does not change its indentation.
func FuzzInTemplate(f *testing.F) {
	f.Add("{{ range . }}\napiVersion: a/v1\n{{ end }}\nkind: B\n")
	f.Add("- apiVersion: 'a'\n  kind: \"b\n-  - kind: c\n")
	f.Add("{{/* x\n*/}}\nkind: {{ .a }}\r\napiVersion: a # b")
	f.Add("a: {apiVersion: {{ if . }}a{{ else }}b{{ end }}, kind: &b *c}\nkind: *b")
	f.Fuzz(func(t *testing.T, template string) {
		lines := strings.Split(template, "\n")
		for _, u := range InTemplate(template) {
			if u.Line >= len(lines) || u.Kind == "" || u.APIVersion == "" {
				t.Fatalf("%+v of %d lines", u, len(lines))
			}
		}
		if strings.Contains(template, "{{") {
			return // a comment may not end
		}
		all := InTemplate(template + "\n---\napiVersion: s3.example.org/v1\nkind: Bucket\n")
		if n := len(all); n == 0 || all[n-1] != (InText{APIVersion: "s3.example.org/v1", Kind: "Bucket", Line: len(lines) + 2}) {
			t.Fatalf("the last is not found: %+v", all)
		}
	})
}

// FuzzInProgram reads arbitrary programs. Every object must have a valid line and a kind of the text. An object at the beginning must
// be found, whatever follows.
func FuzzInProgram(f *testing.F) {
	f.Add("x = {\"apiVersion\": API, kind: str = f'{b}'}\n'''a\nkind: b''' \"\\", "#")
	f.Add("import models.io.a.bm.v1 as c\nc.D{}\nfrom .model.a.b import (\n v1)", "//")
	f.Add("]}kind=\"\"]'\n\\", "")
	f.Fuzz(func(t *testing.T, program, comment string) {
		first := InText{APIVersion: "s3.example.org/v1", Kind: "Bucket"}
		all := inProgram("{apiVersion = \"s3.example.org/v1\", kind = \"Bucket\"}\n"+program, language{comment})
		if comment != "" && comment != "#" && comment != "//" {
			return
		}
		if len(all) == 0 || all[0] != first {
			t.Fatalf("the first is not found: %+v", all)
		}
		for _, u := range all {
			if u.Line > strings.Count(program, "\n")+1 || u.Line < 0 || u.Kind == "" || !strings.Contains(program+first.Kind, u.Kind) {
				t.Fatalf("%+v", u)
			}
		}
	})
}

// A hostile text takes time in proportion to its size. The test has no clock: a text of a million bytes that took the square
// of it would not end.
func TestHostileTexts(t *testing.T) {
	const size = 1 << 20
	for _, unit := range []string{"kind: ", "{{", "{{/*", "\"", "'''", "[", "kind=", "\n ", "apiVersion: {{ if a }}", "{apiVersion: a, kind: ", "import models.a.v1\nv1.A{", "kind: \\"} {
		text := strings.Repeat(unit, size/len(unit))
		InTemplate(text)
		inProgram(text, language{"#"})
	}
	var deep strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&deep, "%skind: a\n", strings.Repeat(" ", i))
	}
	InTemplate(deep.String())
}
