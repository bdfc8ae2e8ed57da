package catalogue

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/render/manifest"
)

func TestDeclaredTwice(t *testing.T) {
	again := func(what, first, at string) twice {
		return twice{what, manifest.Origin{Path: at, Line: 1}, manifest.Origin{Path: first, Line: 1}}
	}
	cases := map[string]struct {
		reason string
		all    []twice
		want   []string
	}{
		"One":   {"A single object is rather a mistake than an alternative.", []twice{again("A/a", "x/a.yaml", "y/a.yaml")}, []string{"y/a.yaml:1: A/a is declared at x/a.yaml:1 already: remove one of them; if x and y are variants, read one of them with --path, or list the other in .headgateignore"}},
		"Files": {"Two files of one directory are no alternatives.", []twice{again("A/a", "x/a.yaml", "x/b.yaml"), again("A/b", "x/a.yaml", "x/b.yaml")}, []string{"x/b.yaml:1: A/a is declared at x/a.yaml:1 already: remove one of them, or list its file in .headgateignore", "x/b.yaml:1: A/b is declared at x/a.yaml:1 already: remove one of them, or list its file in .headgateignore"}},
		"Steps": {"The steps of a tutorial are complete, each of them.", []twice{again("A/a", "1/apis/a.yaml", "2/apis/a.yaml"), again("A/a", "1/apis/a.yaml", "3/apis/a.yaml"), again("A/b", "1/b.yaml", "2/b.yaml"), again("A/b", "1/b.yaml", "3/c.yaml")}, []string{"2/apis/a.yaml:1: 1 and 2 declare the same objects, 2 in all; the first is A/a at 1/apis/a.yaml:1 and 2/apis/a.yaml:1: if they are alternatives, such as steps, examples or variants, read one of them with --path, or list the others in .headgateignore", "3/apis/a.yaml:1: 1 and 3 declare the same objects, 2 in all; the first is A/a at 1/apis/a.yaml:1 and 3/apis/a.yaml:1: if they are alternatives, such as steps, examples or variants, read one of them with --path, or list the others in .headgateignore"}},
		"Root":  {"Examples repeat what the root declares.", []twice{again("A/a", "a.yaml", "examples/a.yaml"), again("A/b", "b.yaml", "examples/b.yaml")}, []string{"examples/a.yaml:1: the root and examples declare the same objects, 2 in all; the first is A/a at a.yaml:1 and examples/a.yaml:1: if they are alternatives, such as steps, examples or variants, read one of them with --path, or list the others in .headgateignore"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range declaredTwice(tc.all) {
				got = append(got, e.Error())
				if !e.Again {
					t.Errorf("%s\n%v is not about a second declaration", tc.reason, e)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ndeclaredTwice(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
