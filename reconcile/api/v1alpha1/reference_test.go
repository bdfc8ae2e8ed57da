package v1alpha1_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
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
	d.fields("spec", reflect.ValueOf(s.Spec))
	want := `# Sync

A Sync applies one path of one Git repository to one cluster. ` + "`headgate run -f FILE`" + ` reads it; an unknown field is an error with
its line. [examples/run/sync.yaml](../../../examples/run/sync.yaml) is a Sync to copy. This file is written by
` + "`go test ./reconcile/api/v1alpha1 -run TestReference -update`" + `.

| field | default | meaning |
|---|---|---|
` + strings.Join(d.rows, "")
	golden.Compare(t, reference, want)
}

// described collects the rows of fields.
type described struct {
	t        *testing.T
	comments map[string]string   // by "Type.Field", and by "Type"
	values   map[string][]string // values of enumerations, by path
	rows     []string
}

// fields adds the fields of a struct. The values of the struct are the defaults.
func (d *described) fields(path string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		at := path + "." + name
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
		if list := d.values[at]; len(list) > 0 {
			meaning += " One of `" + strings.Join(list, "`, `") + "`."
		}
		d.rows = append(d.rows, fmt.Sprintf("| `%s` | %s | %s |\n", at, initial, strings.ReplaceAll(meaning, "|", `\|`)))
		if of.Kind() == reflect.Struct {
			d.fields(at, value)
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

// text returns the first comment that is not empty, as a sentence.
func text(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if output := strings.Join(strings.Fields(g.Text()), " "); output != "" {
			output = strings.ToUpper(output[:1]) + output[1:]
			return strings.TrimSuffix(output, ".") + "."
		}
	}
	return ""
}
