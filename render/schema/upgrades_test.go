//go:build upgrades

package schema

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestUpgrades judges upgrades of providers. HEADGATE_UPGRADES is a directory with a directory for each upgrade, which has the CRDs
// before and after it in old and new. The places that differ are found without Compare, and the API server's own code judges objects
// at each of them, before Compare is asked.
func TestUpgrades(t *testing.T) {
	dir := os.Getenv("HEADGATE_UPGRADES")
	if dir == "" {
		t.Fatal("HEADGATE_UPGRADES names no directory of upgrades")
	}
	upgrades, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, upgrade := range upgrades {
		t.Run(upgrade.Name(), func(t *testing.T) {
			was, is := crdsIn(t, filepath.Join(dir, upgrade.Name(), "old")), crdsIn(t, filepath.Join(dir, upgrade.Name(), "new"))
			both, changed, breaks, alarms := 0, 0, 0, 0
			for name, before := range was {
				after := is[name]
				if after == nil {
					continue
				}
				both++
				if reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) {
					continue
				}
				changed++
				old, next := versions(object(before.Object["spec"])), versions(object(after.Object["spec"]))
				from := stored(old)
				if next[from] == nil {
					t.Logf("%s: the storage version leaves", name)
					continue
				}
				var witness *Witness
				places := slices.Concat(differing(schemaOf(old[from]), schemaOf(next[from]), nil), differing(rootOf(before), rootOf(after), nil)) // the storage version may move
				for _, path := range places {
					m := mutation{path: path}
					if witness = m.witness(t.Context(), before, after); witness != nil {
						break
					}
				}
				found := slices.DeleteFunc(Compare(before, after).Breaking(), func(c Change) bool { return c.InStatus() || c.Version != from })
				switch {
				case witness != nil && len(found) == 0:
					t.Errorf("%s: missed: %.300s", name, witness.What)
				case witness == nil && len(found) > 0:
					alarms++
					t.Logf("%s: no object shows %.300v", name, found)
				case witness != nil:
					breaks++
				}
			}
			t.Logf("UPGRADE %s: %d CRDs, %d change, %d break, %d alarms without an object", upgrade.Name(), both, changed, breaks, alarms)
		})
	}
}

func crdsIn(t *testing.T, dir string) map[string]*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := yaml.Unmarshal(raw, &content); err != nil || content["kind"] != "CustomResourceDefinition" {
			continue
		}
		withoutWords(content)
		u := (&unstructured.Unstructured{Object: integers(content).(map[string]any)})
		all[u.GetName()] = u
	}
	return all
}

// integers returns a value with int64 instead of float64 where possible.
func integers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			v[key] = integers(below)
		}
	case []any:
		for i, below := range v {
			v[i] = integers(below)
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

// differing returns the paths below spec at which two schemas differ.
func differing(was, is map[string]any, path []string) [][]string {
	if reflect.DeepEqual(was, is) || len(path) > 0 && path[0] != "spec" {
		return nil
	}
	var all [][]string
	for _, key := range keysOf(was, is) {
		from, to := was[key], is[key]
		switch {
		case reflect.DeepEqual(from, to):
		case key == "properties":
			for _, name := range keysOf(object(from), object(to)) {
				below := append(slices.Clone(path), name)
				a, b := object(object(from)[name]), object(object(to)[name])
				if a != nil && b != nil {
					all = append(all, differing(a, b, below)...)
				} else if strings.Join(below, ".") != "status" {
					all = append(all, below)
				}
			}
		case key == "items" && both(from, to):
			all = append(all, differing(object(from), object(to), append(slices.Clone(path), "[]"))...)
		case key == "additionalProperties" && both(from, to):
			all = append(all, differing(object(from), object(to), append(slices.Clone(path), "*"))...)
		case len(path) > 0:
			all = append(all, path)
		}
	}
	return all[:min(len(all), 40)]
}
