package check_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"testing/fstest"

	"headgate.dev/headgate/reconcile/memo"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/check"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// counting is a Source that counts the objects that it checks.
type counting struct {
	shop
	asked map[string]int
}

func (c counting) Kind(schema.GroupKind) (check.Kind, bool) { return counted{c, bucket{}}, true }
func (c counting) EveryKey(check.Kind) string               { return "counting" }

func (c counting) Every(*unstructured.Unstructured, check.Kind) check.Result {
	c.asked["every"]++
	return check.Result{}
}

type counted struct {
	of counting
	bucket
}

func (counted) Key() string    { return "counted" }
func (counted) Compares() bool { return true }

func (c counted) Check(*unstructured.Unstructured) check.Result {
	c.of.asked["check"]++
	return check.Result{}
}

func (c counted) Update(_, old *unstructured.Unstructured) []check.Problem {
	c.of.asked["update"]++
	return []check.Problem{{Field: "spec", Message: fmt.Sprint("was ", old.Object["spec"])}}
}

// hashed is a file system like that of Git.
type hashed struct{ fstest.MapFS }

func (f hashed) Hash(name string) (string, error) {
	data, err := f.ReadFile(name)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// Previews of thousands of objects must not decode them again.
func TestChecksAreRemembered(t *testing.T) {
	kept := new(memo.Memory)
	commit := func(spec string) []render.Object {
		file := "apiVersion: whole.example.org/v1\nkind: Bucket\nmetadata: {name: logs}\nspec: " + spec + "\n"
		want, err := render.Render(render.Input{Files: hashed{fstest.MapFS{"logs.yaml": {Data: []byte(file)}}}}, render.Options{Memo: kept})
		if err != nil {
			t.Fatal(err)
		}
		return want.Objects
	}
	source := counting{asked: map[string]int{}}
	for range 2 {
		after := commit("c")
		check.Check(after, source)
		for _, before := range []string{"a", "b"} {
			found := check.Updates(commit(before), after, source)
			if want := "the API server refuses the change of Bucket.whole.example.org/logs: spec: was " + before; len(found) != 1 || found[0].Message != want {
				t.Errorf("got %v, want %q", found, want)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"every": 1, "check": 1, "update": 2}, source.asked); diff != "" {
		t.Errorf("decoded objects (-want +got):\n%s", diff)
	}
}
