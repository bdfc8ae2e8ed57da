package install

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/examples"
	"headgate.dev/headgate/fixtures/golden"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const chart = "../../examples/chart/"

// Words that stand for the values of a release, and are replaced by templates.
const (
	aNamespace = "xNAMESPACEx"
	aWatch     = "xWATCHx"
	anAccount  = "xACCOUNTx"
	anImage    = "xIMAGEx"
	aPull      = "xPULLx"
	aCA        = "xCAx"
	aSync      = "xSYNCx"
	aSecret    = "xSECRETx"
	aProvider  = "xPROVIDERx"
	aCount     = "xCOUNTx"
	aFile      = "xFILEx"
	aShard     = "xSHARDx"
	aPort      = 1
)

// A variant is a part of the chart: what one profile creates.
type variant struct {
	file, condition string
	edit            func(*Options)
}

var variants = []variant{
	{"tenant", `and (eq .Values.profile "tenant") (not .Values.watchNamespace)`, func(*Options) {}},
	{"tenant-namespace", `and (eq .Values.profile "tenant") .Values.watchNamespace`, func(o *Options) { o.Watch, o.Account = aWatch, anAccount }},
	{"observe", `eq .Values.profile "observe"`, func(o *Options) { o.Profile = Observe }},
	{"crossplane", `eq .Values.profile "crossplane"`, func(o *Options) { o.Profile = Crossplane }},
	{"crds", `eq .Values.profile "crds"`, func(o *Options) { o.Profile = CRDs }},
	{"preview", `eq .Values.profile "preview"`, func(o *Options) { o.Profile, o.Shards = Preview, nil }},
}

// options returns options whose values are the words.
func (v variant) options() Options {
	o := Options{
		Profile: Tenant, Namespace: aNamespace, Image: anImage, PullSecrets: []string{aPull}, CA: aCA, EgressPorts: []int64{aPort},
		Syncs: []string{aSync}, Secrets: []string{aSecret}, ProviderGroups: []string{aProvider}, CountGroups: []string{aCount}, SyncFile: aFile,
		Shards: []string{aShard},
	}
	v.edit(&o)
	return o
}

// The chart is made of the objects of 'headgate install'. TestChart of examples renders it with Helm, and compares.
func TestChartIsGenerated(t *testing.T) {
	var shared []string
	var notes strings.Builder
	names := names
	for _, v := range variants {
		all, err := v.options().objects(examples.Manifests)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, u := range all {
			defined := definitions{variant: v.file}
			if u.GetKind() == "ValidatingAdmissionPolicy" && !IsShared(u) {
				u = &unstructured.Unstructured{Object: defined.moved(u.Object).(map[string]any)}
			}
			text := defined.used(templateOf(t, u))
			names += defined.text.String()
			switch {
			case IsShared(u) && v.file == "tenant":
				shared = append(shared, text)
			case !IsShared(u):
				parts = append(parts, text)
			}
		}
		golden.Compare(t, chart+"templates/"+v.file+".yaml", only(v.condition, strings.Join(parts, "")))
		reach, err := Reach(all)
		if err != nil {
			t.Fatal(err)
		}
		notes.WriteString(only(v.condition, templated(escaped(strings.Join(reach, "\n")))+"\n"))
	}
	golden.Compare(t, chart+"templates/shared.yaml", only(`and .Values.shared (ne .Values.profile "preview")`, strings.Join(shared, "")))
	golden.Compare(t, chart+"templates/NOTES.txt", notes.String())
	golden.Compare(t, chart+"templates/_names.tpl", names)
	golden.Compare(t, chart+"values.schema.json", schemaOfValues(t))
	golden.Compare(t, chart+"README.md", chartReadme(t))
}

func only(condition, text string) string {
	return "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
}

// escaped returns a text that a template prints as it is.
func escaped(text string) string {
	return strings.NewReplacer("{{", `{{ "{{" }}`, "}}", `{{ "}}" }}`).Replace(text)
}

// templateOf returns an object as a template.
func templateOf(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	if u.GetKind() == "CustomResourceDefinition" {
		u = u.DeepCopy()
		notes := u.GetAnnotations()
		notes["helm.sh/resource-policy"] = "keep" // all Syncs go with it
		u.SetAnnotations(notes)
	}
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte("---\n" + templated(escaped(string(text))))
	if strings.HasPrefix(u.GetName(), Deployment+"-"+aShard) {
		return "{{- range .Values.shards }}\n" + inRange.Replace(string(text)) + "{{- end }}\n"
	}
	conditions := map[string]string{
		"Namespace xNAMESPACEx":             ".Values.createNamespace",
		"ConfigMap headgate-sync":           ".Values.syncFile",
		"Role headgate-secrets":             ".Values.secrets",
		"Role headgate-controller-events":   "ne .Values.watchNamespace .Release.Namespace",
		"Role headgate-impersonate xWATCHx": ".Values.serviceAccount",
	}
	for _, id := range []string{u.GetKind() + " " + u.GetName(), u.GetKind() + " " + u.GetName() + " " + u.GetNamespace()} {
		if condition := conditions[strings.Replace(id, "RoleBinding", "Role", 1)]; condition != "" {
			return only(condition, string(text))
		}
	}
	return string(text)
}

// inRange makes a template one of each shard: there, the dot is the name of the shard.
var inRange = strings.NewReplacer(".Values", "$.Values", ".Release", "$.Release", `" . }}`, `" $ }}`, aShard, "{{ . }}")

// definitions are texts with lists of names in them. Each is a definition of its own, because YAML quotes and folds a text in ways that a
// template cannot follow.
type definitions struct {
	variant string
	n       int
	text    strings.Builder
}

// moved returns a value in which such texts are replaced by words.
func (d *definitions) moved(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out[key] = d.moved(v[key])
		}
		return out
	case []any:
		var out []any
		for _, item := range v {
			out = append(out, d.moved(item))
		}
		return out
	case string:
		if !strings.Contains(v, aSync) && !strings.Contains(v, aProvider) {
			return v
		}
		fmt.Fprintf(&d.text, "{{- define \"headgate.%s.%d\" }}%s{{ end }}\n", d.variant, d.n, templated(escaped(v)))
		d.n++
		return fmt.Sprintf("xDEFINED%dx", d.n-1)
	}
	return value
}

var definedWord = regexp.MustCompile(`xDEFINED(\d)x`)

// used replaces the words of a YAML text by their definitions.
func (d *definitions) used(text string) string {
	return definedWord.ReplaceAllString(text, `{{ include "headgate.`+d.variant+`.${1}" . | toJson }}`)
}

// blocks are the parts of a YAML text that depend on values that may be empty.
var blocks = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?m)^- apiGroups:\n  - ` + aProvider + `\n((?:  .*\n)*)`), "{{- with .Values.providerGroups }}\n- apiGroups: {{ toJson . }}\n${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^- apiGroups:\n  - ` + aCount + `\n((?:  .*\n)*)`), "{{- with .Values.countGroups }}\n- apiGroups: {{ toJson . }}\n${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- headgate-` + aSync + `\n`), "${1}{{- range .Values.syncs }}\n${1}- headgate-{{ . }}\n${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- ` + aSecret + `\n`), "${1}{{- range .Values.secrets }}\n${1}- {{ . }}\n${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)imagePullSecrets:\n *- name: ` + aPull + `\n`), "${1}{{- with .Values.imagePullSecrets }}\n${1}imagePullSecrets:\n${1}{{- range . }}\n${1}- name: {{ . }}\n${1}{{- end }}\n${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- name: SSL_CERT_DIR\n.*\n`), "${1}{{- if .Values.caConfigMap }}\n${0}${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- mountPath: /etc/headgate-ca\n.*\n.*\n`), "${1}{{- if .Values.caConfigMap }}\n${0}${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- configMap:\n *name: ` + aCA + `\n.*\n`), "${1}{{- if .Values.caConfigMap }}\n${0}${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- --watch-label-selector=!.*\n`), "${1}{{- if .Values.shards }}\n${0}${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- headgate-controller-` + aShard + `(.*)\n`), "${1}{{- range .Values.shards }}\n${1}- headgate-controller-{{ . }}${2}\n${1}{{- end }}\n"},
	{regexp.MustCompile(`(?m)^( *)- ports:\n *- port: 1\n.*\n`), "${1}{{- with .Values.egressPorts }}\n${1}- ports:\n${1}  {{- range . }}\n${1}  - port: {{ . }}\n${1}    protocol: TCP\n${1}  {{- end }}\n${1}{{- end }}\n"},
}

// templated replaces the words of a text by templates.
func templated(text string) string {
	for _, b := range blocks {
		text = b.pattern.ReplaceAllString(text, b.with)
	}
	return strings.NewReplacer(
		"-"+aNamespace, `{{ include "headgate.suffix" . }}`,
		aNamespace, "{{ .Release.Namespace }}",
		aWatch, "{{ .Values.watchNamespace }}",
		anAccount, "{{ .Values.serviceAccount }}",
		anImage, `{{ include "headgate.image" . }}`,
		aCA, "{{ .Values.caConfigMap }}",
		"'headgate-"+aSync+"'", `{{ include "headgate.syncs" . }}`,
		", '"+aProvider+"/clusterproviderconfigs'", `{{ range .Values.providerGroups }}, '{{ . }}/clusterproviderconfigs'{{ end }}`,
		" (headgate-"+aSync+")", ` ({{ range $i, $s := .Values.syncs }}{{ if $i }}, {{ end }}headgate-{{ $s }}{{ end }})`,
		", headgate-controller-"+aShard+webhooks, "{{ range .Values.shards }}, headgate-controller-{{ . }}"+webhooks+"{{ end }}",
		", headgate-controller-"+aShard, "{{ range .Values.shards }}, headgate-controller-{{ . }}{{ end }}",
		"("+aSecret+")", "({{ join \", \" .Values.secrets }})",
		aProvider, "{{ join \", \" .Values.providerGroups }}",
		aCount, "{{ join \", \" .Values.countGroups }}",
		aFile, "{{ toJson .Values.syncFile }}",
		"--cache-size=3Gi", "--cache-size={{ .Values.cacheSize }}",
		"sizeLimit: 4Gi", `sizeLimit: {{ trimSuffix "Gi" .Values.cacheSize | add 1 }}Gi`,
		"ephemeral-storage: 6Gi", `ephemeral-storage: {{ trimSuffix "Gi" .Values.cacheSize | add 3 }}Gi`,
	).Replace(text)
}

const names = `{{- define "headgate.suffix" }}{{ if ne .Release.Namespace "headgate-system" }}-{{ .Release.Namespace }}{{ end }}{{ end }}
{{- define "headgate.image" }}{{ .Values.image.registry }}/{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}{{ end }}
{{- define "headgate.syncs" }}{{ range $i, $s := .Values.syncs }}{{ if $i }}, {{ end }}'headgate-{{ $s }}'{{ end }}{{ end }}
`

// schemaOfValues returns the JSON schema of the values: their types, and the names that they may hold.
func schemaOfValues(t *testing.T) string {
	t.Helper()
	const name, digest = `^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`, `^(sha256:[0-9a-f]{64})?$`
	text := func(pattern string) map[string]any { return map[string]any{"type": "string", "pattern": pattern} }
	optional := text(`^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$`)
	list := func(least int) map[string]any {
		return map[string]any{"type": "array", "items": text(name), "minItems": least, "uniqueItems": true}
	}
	shard := text(fmt.Sprintf(`^[a-z0-9]([a-z0-9-]{0,%d}[a-z0-9])?$`, mostShard-2))
	shard["not"] = map[string]any{"pattern": "(^|-)" + strings.TrimPrefix(webhooks, "-") + "$"}
	shards := map[string]any{"type": "array", "items": shard, "uniqueItems": true}
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	}
	root := object(map[string]any{
		"profile": map[string]any{"enum": Profiles}, "watchNamespace": optional, "serviceAccount": optional,
		"image":            object(map[string]any{"registry": text(`^[a-z0-9][a-zA-Z0-9.:_/-]*$`), "repository": text(`^[a-z0-9][a-z0-9._/-]*$`), "tag": text(`^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$`), "digest": text(digest)}),
		"imagePullSecrets": list(0), "caConfigMap": optional, "syncs": list(1), "secrets": list(0), "providerGroups": list(0), "countGroups": list(0),
		"cacheSize":   text(cacheSizes.String()),
		"egressPorts": map[string]any{"type": "array", "items": map[string]any{"type": "integer", "minimum": 1, "maximum": 65535}},
		"shards":      shards,
		"syncFile":    map[string]any{"type": "string"}, "shared": map[string]any{"type": "boolean"}, "createNamespace": map[string]any{"type": "boolean"},
		"global": map[string]any{"type": "object"}, // Helm adds it to a chart that another one depends on
	})
	root["$schema"] = "https://json-schema.org/draft-07/schema#"
	other := map[string]any{"properties": map[string]any{"profile": map[string]any{"const": "tenant"}}}
	root["if"] = map[string]any{"not": other}
	root["then"] = map[string]any{"properties": map[string]any{"watchNamespace": map[string]any{"const": ""}, "serviceAccount": map[string]any{"const": ""}}}
	root["allOf"] = []any{map[string]any{
		"if":   map[string]any{"properties": map[string]any{"profile": map[string]any{"const": Preview}}},
		"then": map[string]any{"properties": map[string]any{"shards": map[string]any{"maxItems": 0}}},
	}}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}

// chartReadme returns the README of the chart, with a row for each value.
func chartReadme(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(chart + "values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(`# Headgate with Helm

<!-- Written by: go test ./reconcile/install -run TestChartIsGenerated -update -->

The chart creates the objects that ` + "`headgate install --export`" + ` prints for the same settings. A test renders it with Helm, and compares
every object.

` + "```sh" + `
kubectl create namespace headgate-system
kubectl label namespace headgate-system pod-security.kubernetes.io/enforce=restricted
helm install headgate examples/chart -n headgate-system
helm template headgate examples/chart -n headgate-system --set createNamespace=true | kubectl apply --server-side -f -
` + "```" + `

The notes of a release list what someone with a stolen token of it could do. ` + "`helm uninstall`" + ` keeps the CRD, the Syncs, and everything
that they applied. A release of a second namespace sets ` + "`shared: false`" + `, and another ` + "`watchNamespace`" + ` than the first.

| value | default | |
|---|---|---|
`)
	var values map[string]any
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	comment, parent := "", ""
	for line := range strings.SplitSeq(string(data), "\n") {
		text := strings.TrimSpace(line)
		key, value, isKey := strings.Cut(text, ":")
		switch {
		case strings.HasPrefix(text, "# "):
			comment = strings.TrimPrefix(text, "# ")
			continue
		case !isKey:
			continue
		case strings.TrimSpace(value) == "":
			parent = key + "."
			continue
		case !strings.HasPrefix(line, " "):
			parent = ""
		}
		if comment == "" {
			t.Errorf("values.yaml: %s has no comment", key)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", parent+key, strings.TrimSpace(value), comment)
		comment = ""
	}
	return b.String()
}

// Every value is in the schema.
func TestValuesHaveASchema(t *testing.T) {
	data, err := os.ReadFile(chart + "values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	var known struct{ Properties map[string]any }
	if err := yaml.Unmarshal(data, &values); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(schemaOfValues(t)), &known); err != nil {
		t.Fatal(err)
	}
	for name := range values {
		if known.Properties[name] == nil {
			t.Errorf("the schema lacks %s", name)
		}
	}
	if left := slices.DeleteFunc(slices.Collect(maps.Keys(known.Properties)), func(name string) bool { return values[name] != nil || name == "global" }); len(left) > 0 {
		t.Errorf("values.yaml lacks %s", left)
	}
}
