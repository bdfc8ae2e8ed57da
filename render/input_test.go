package render_test

import (
	"reflect"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// Documents that were read are only used with the options with which they were read.
func TestDocuments(t *testing.T) {
	files := &commit{MapFS: firstPieces()}
	in := render.Input{Files: files}
	want := mustRender(t, files, render.Options{})
	docs, err := render.Read(in, render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	in.Documents = &docs
	for range 2 { // rendering must not change them
		got, err := render.Render(in, render.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(dump(t, want)), string(dump(t, got))); diff != "" {
			t.Errorf("Render(documents) (-files +documents):\n%s", diff)
		}
	}
	_, err = render.Render(in, render.Options{Limits: manifest.Limits{Documents: 1}})
	if err == nil {
		t.Error("the limits of the options do not count once the files were read")
	}
	another := in
	another.Files = fstest.MapFS{}
	if got, err := render.Render(another, render.Options{}); err != nil || len(got.Objects) != len(want.Objects) {
		t.Errorf("the files are read again: %v, %v", got.Objects, err)
	}
}

// Equal must compare every option that affects reading. If it missed one, a commit would be rendered with documents that were read
// with other options.
func TestOptionsEqual(t *testing.T) {
	set := map[string]func(*catalogue.Options){
		"Limits":            func(o *catalogue.Options) { o.Limits.Depth = 1 },
		"Others":            func(o *catalogue.Options) { o.Others = catalogue.ApplyOthers },
		"CrossplaneVersion": func(o *catalogue.Options) { o.CrossplaneVersion = "v2.1.0" },
		"Packages":          func(o *catalogue.Options) { o.Packages = []catalogue.Declared{{Path: "a", Name: "a"}} },
	}
	for field := range reflect.TypeFor[catalogue.Options]().Fields() {
		if field.Name == "Memo" {
			continue
		}
		var one, same catalogue.Options
		if change, ok := set[field.Name]; ok {
			change(&one)
			change(&same)
		}
		if one.Equal(catalogue.Options{}) || !one.Equal(same) {
			t.Errorf("Equal does not compare %s", field.Name)
		}
	}
}
