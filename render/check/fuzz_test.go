package check_test

import (
	"reflect"
	"slices"
	"testing"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"
)

// Whatever an object holds, a check ends, has a place for each finding, and finds the same again: it does not change the object.
func FuzzCheck(f *testing.F) {
	f.Add(bucket1 + "spec: {region: west, rules: [{name: a}, {name: a}], tags: {a: 1}}\nstatus: {id: 1}\n")
	f.Add("apiVersion: example.org/v1\nkind: Platform\nmetadata: {name: a}\nspec: {crossplane: {compositionRef: 1}}\n")
	f.Add("apiVersion: store.example.org/v1\nkind: shop\nmetadata: {name: a}\nspec: [null]\n")
	f.Add("apiVersion: apiextensions.crossplane.io/v1\nkind: Composition\nmetadata: {name: a}\nspec: {pipeline: [{input: {apiVersion: pt.fn.crossplane.io/v1, kind: Resources, resources: [{base: {apiVersion: store.example.org/v1, kind: Bucket}, patches: [{toFieldPath: 'spec[0]..a['}]}]}}]}\n")
	f.Fuzz(func(t *testing.T, object string) {
		want, err := render.Render(render.Input{Files: declares.with("object.yaml", object).fs()}, render.Options{})
		if err != nil {
			return
		}
		source := check.Declared(want)
		first := check.Check(want.Objects, source)
		found := slices.Concat(first.Findings, check.Compositions(want.Objects, source).Findings)
		for _, one := range found {
			if one.Origin.Path == "" || one.Origin.Line < 1 || one.Message == "" {
				t.Errorf("a finding has no place: %+v", one)
			}
		}
		again := check.Check(want.Objects, source)
		if !reflect.DeepEqual(first.Findings, again.Findings) || !reflect.DeepEqual(first.Omitted, again.Omitted) {
			t.Errorf("another check finds something else:\n%+v\n%+v", first, again)
		}
		if updates := check.Updates(want.Objects, want.Objects, source); len(updates) > 0 {
			t.Errorf("nothing changes, and the change is refused: %+v", updates)
		}
	})
}
