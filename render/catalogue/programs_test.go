package catalogue

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Programs of functions are read for the kinds that they name. Tests, examples, generated models, ignored and hidden files compose nothing.
func TestPrograms(t *testing.T) {
	files := fstest.MapFS{"upbound.yaml": {Data: []byte("apiVersion: meta.dev.upbound.io/v2alpha1\nkind: Project\nmetadata: {name: a}\n")}}
	for _, name := range []string{
		"functions/net/main.k", "functions/net/model/io/vpc.k", "functions/py/main.py", "functions/py/test/main.py", "functions/t/a.yaml.gotmpl",
		"tests/main.k", "scripts/main.py", ".up/x.k", "other/x.cue", "other/x.go", "ignored/x.k", "function/fn.py", "chart/templates/_x.tpl",
	} {
		files[name] = &fstest.MapFile{}
	}
	files[".headgateignore"] = &fstest.MapFile{Data: []byte("ignored/\n")}
	documents, err := Open(files, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, problems := documents.Catalogue()
	if err := problems.OrNil(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range c.Programs {
		got = append(got, s.Path+" "+string(s.Language))
	}
	want := []string{
		"function/fn.py Python", "functions/net/main.k KCL", "functions/py/main.py Python", "functions/t/a.yaml.gotmpl Go template", "other/x.cue CUE",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Programs (-want +got):\n%s", diff)
	}
}
