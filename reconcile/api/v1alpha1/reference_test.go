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
	want := `# Sync

<!-- Written by: go test ./reconcile/api/v1alpha1 -run TestReference -update -->

A Sync applies one path of one Git repository to one cluster. ` + "`headgate run -f FILE`" + ` reads it; an unknown field is an error with
its line. Copy [examples/run/sync.yaml](../../../examples/run/sync.yaml), which shows every field.

` + "`metadata.name` and `metadata.namespace` (default `headgate-system`)" + ` identify the sync: only this sync updates and prunes what it applied.
Its inventory is in that namespace.
` + strings.Join(d.sections, "")
	golden.Compare(t, reference, want)
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
		case of.Kind() == reflect.Struct && !shared:
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
