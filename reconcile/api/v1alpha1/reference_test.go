package v1alpha1_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/golden"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
)

const reference = "README.md"

// TestReference compares the reference of a Sync with the types and their comments. With -update it writes the reference. The test
// fails on a field without a comment, because the field would be undocumented.
func TestReference(t *testing.T) {
	var s v1alpha1.Sync
	s.Default()
	d := described{t: t, comments: comments(t), values: map[string][]string{}}
	for _, e := range s.Spec.Enumerations() {
		d.values[e.Field] = e.Values
	}
	d.section("spec", reflect.ValueOf(s.Spec))
	for _, shared := range []any{v1alpha1.Token{}, v1alpha1.SecretRef{}} {
		d.section(reflect.TypeOf(shared).Name(), reflect.ValueOf(shared))
	}
	d.section("status", reflect.ValueOf(v1alpha1.Status{}))
	want := `# Sync

<!-- Written by: go test ./reconcile/api/v1alpha1 -run TestReference -update -->

A Sync applies one path of one Git repository to one cluster. ` + "`headgate run -f FILE`" + ` reads it; an unknown field is an error with
its line. Copy [examples/run/sync.yaml](../../../examples/run/sync.yaml), which shows every field.

` + "`metadata.name` and `metadata.namespace` (default `headgate-system`)" + ` identify the sync: only this sync updates and prunes what it applied.
Its inventory is in that namespace.

The same Sync is an [object of a cluster](#sync-objects), which ` + "`headgate controller`" + ` runs.
` + strings.Join(d.sections, "") + objects + "| condition | meaning |\n|---|---|\n" + constants(t, "Condition") + `
The reasons are the [codes of reports](../../manual/codes.md) and:

| reason | of which condition, and when |
|---|---|
` + constants(t, "Reason") + `
Events have the reasons of conditions, and:

| reason | when |
|---|---|
` + constants(t, "Event")
	golden.Compare(t, reference, want)
}

// objects explains Sync objects.
const objects = "\n## Sync objects\n\n" +
	"Apply the CRD with `kubectl apply --server-side -f examples/controller/crds`. It needs Kubernetes 1.29 or newer. The API server then refuses a\n" +
	"Sync that `headgate run` would refuse, and fills in the same defaults. An object differs from a file in five points:\n\n" +
	"- It names no directory in `source.repo` and no environment variable: whoever may write Syncs could read the files and tokens of the\n" +
	"  controller. Name Secrets of its namespace.\n" +
	"- Words such as `Correct` are written as here, and not in lower case.\n" +
	"- `approvals.trailers` and `approvals.signers` are refused, because they have no effect.\n" +
	"- An annotation `headgate.dev/approve` that is no approval approves nothing; a file with it is refused.\n" +
	"- `ignore` has at most 100 rules with 100 paths each, `packages` at most 64, and `approvals.targets` at most 100.\n\n" +
	"The API server does not compare paths of `packages` that are written differently, such as `a` and `a/`. The controller does, and a Sync that\n" +
	"only it refuses is Stalled.\n\n" +
	"| you want | with Headgate | with kubectl |\n|---|---|---|\n" +
	"| to see whether all is right | `headgate get syncs -A` | `kubectl get syncs -A` |\n" +
	"| to know why not | `headgate status sync shop -n team` | `kubectl describe sync shop -n team` |\n" +
	"| a pass now | `headgate reconcile sync shop -n team` | `kubectl annotate --overwrite sync shop -n team reconcile.fluxcd.io/requestedAt=\"$(date +%s)\"` |\n" +
	"| to approve what is held | `headgate approve sync shop -n team DIGEST` | `kubectl annotate --overwrite sync shop -n team headgate.dev/approve='DIGEST by USER at TIME'` |\n" +
	"| to stop passes | `headgate suspend sync shop -n team` | `kubectl patch sync shop -n team --type merge -p '{\"spec\":{\"suspend\":true}}'` |\n" +
	"| to see what happened | `headgate events sync shop -n team` | `kubectl events -n team --for sync/shop` |\n\n" +
	"The status shows the first 20 holds, each with its guard, reason, digest and time, the first 20 objects that drifted, with the fields, 50 policies with\n" +
	"the number of definitions that each activates, and the last ten passes. It stays below 200 kB; with 2,000 holds it usually has 5 kB. The\n" +
	"inventory, which status names, has the owned objects. A pass that finds nothing new writes no status.\n\n" +
	"Ready, Reconciling and Stalled are those of kstatus, so Flux and cli-utils can wait for a Sync. A failure makes Ready False. A hold does so only if it\n" +
	"keeps a create or an update that the commit asks for from the cluster; a held prune sets only Held.\n\n"

// constants returns a row with the value of each constant whose name begins with a prefix.
func constants(t *testing.T, prefix string) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "object.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	ast.Inspect(file, func(n ast.Node) bool {
		c, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(c.Names[0].Name, prefix) {
			return true
		}
		meaning := text(c.Doc, c.Comment)
		if meaning == "" {
			t.Errorf("%s has no comment", c.Names[0].Name)
		}
		value := strings.Trim(c.Values[0].(*ast.BasicLit).Value, `"`)
		fmt.Fprintf(&b, "| `%s` | %s |\n", value, strings.TrimPrefix(meaning, c.Names[0].Name+" "))
		return false
	})
	return b.String()
}

// described collects a section for every object of a Sync.
type described struct {
	t        *testing.T
	comments map[string]string   // by "Type.Field", and by "Type"
	values   map[string][]string // values of enumerations, by path
	sections []string
	rows     []row // of the current section
}

type row struct{ field, initial, meaning string }

// section adds a section with the fields of a struct, and a section for every struct in it.
func (d *described) section(path string, v reflect.Value) {
	at := len(d.sections)
	d.sections = append(d.sections, "")
	outer := d.rows
	d.rows = nil
	d.fields(path, "", v)
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n", path)
	if slices.ContainsFunc(d.rows, func(r row) bool { return r.initial != "" }) {
		b.WriteString("| field | default | meaning |\n|---|---|---|\n")
		for _, r := range d.rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.field, r.initial, r.meaning)
		}
	} else {
		b.WriteString("| field | meaning |\n|---|---|\n")
		for _, r := range d.rows {
			fmt.Fprintf(&b, "| `%s` | %s |\n", r.field, r.meaning)
		}
	}
	d.sections[at] = b.String()
	d.rows = outer
}

// fields adds the fields of a struct to the current section, whose path is root. The values of the struct are the defaults.
func (d *described) fields(root, path string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		of := f.Type
		value := v.Field(i)
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				at += "[]"
			}
			of = of.Elem()
			value = reflect.Zero(of)
		}
		meaning := d.comments[v.Type().Name()+"."+f.Name]
		if meaning == "" {
			meaning = d.comments[of.Name()]
		}
		if meaning == "" {
			d.t.Errorf("%s (%s.%s) has no comment, neither the field nor its type", at, v.Type().Name(), f.Name)
		}
		initial := ""
		if of.Kind() != reflect.Struct && !value.IsZero() {
			initial = fmt.Sprintf("`%v`", value)
		}
		if list := d.values[root+"."+at]; len(list) > 0 {
			meaning += " One of `" + strings.Join(list, "`, `") + "`."
		}
		shared := of == reflect.TypeFor[v1alpha1.Token]() || of == reflect.TypeFor[v1alpha1.SecretRef]()
		inner := of.Kind() == reflect.Struct && !shared && root == "spec"
		switch {
		case shared:
			meaning += fmt.Sprintf(" [Fields](#%s)", strings.ToLower(of.Name()))
		case inner:
			meaning += fmt.Sprintf(" [Fields](#spec%s)", strings.ToLower(strings.TrimSuffix(at, "[]")))
		}
		d.rows = append(d.rows, row{at, initial, strings.ReplaceAll(meaning, "|", `\|`)})
		switch {
		case inner:
			d.section(root+"."+at, value)
		case of.Kind() == reflect.Struct && !shared && of.PkgPath() == reflect.TypeFor[v1alpha1.Sync]().PkgPath():
			d.fields(root, at, value)
		}
	}
}

// comments reads the comments of all types and fields of the package and joins each into one line.
func comments(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			types, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range types.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					all[s.Name.Name] = text(s.Doc, types.Doc)
					describe(all, s)
				}
			}
		}
	}
	return all
}

func describe(all map[string]string, s *ast.TypeSpec) {
	of, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range of.Fields.List {
		for _, name := range f.Names {
			all[s.Name.Name+"."+name.Name] = text(f.Doc, f.Comment)
		}
	}
}

// marker matches the lines of comments that controller-gen reads.
var marker = regexp.MustCompile(`(?m)^\+.*$`)

// text returns the first comment that is not empty, as a sentence.
func text(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if output := strings.Join(strings.Fields(marker.ReplaceAllString(g.Text(), "")), " "); output != "" {
			output = strings.ToUpper(output[:1]) + output[1:]
			return strings.TrimSuffix(output, ".") + "."
		}
	}
	return ""
}
