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
	const choose = ": if they are alternatives, such as steps, examples or variants, read one of them with --path, or list the others in .headgateignore"
	cases := map[string]struct {
		reason  string
		all     []twice
		objects map[string]int
		want    []string
	}{
		"One":   {"A single object is rather a mistake than an alternative.", []twice{again("A/a", "x/a.yaml", "y/a.yaml")}, nil, []string{"y/a.yaml:1: A/a is declared at x/a.yaml:1 already: remove one of them; if x and y are variants, read one of them with --path, or list the other in .headgateignore"}},
		"Same":  {"One file is no alternative.", []twice{again("A/a", "x.yaml", "x.yaml"), again("A/b", "x.yaml", "x.yaml")}, nil, []string{"x.yaml:1: A/a is declared at x.yaml:1 already: remove one of them", "x.yaml:1: A/b is declared at x.yaml:1 already: remove one of them"}},
		"Files": {"Files of one directory may be alternatives, too.", []twice{again("A/a", "x/a.yaml", "x/b.yaml"), again("A/b", "x/a.yaml", "x/b.yaml")}, nil, []string{"x/b.yaml:1: x/a.yaml and x/b.yaml declare the same objects, 2 in all; the first is A/a at x/a.yaml:1 and x/b.yaml:1" + choose}},
		"Steps": {"The steps of a tutorial are complete, each of them. The last two share one more object.", []twice{again("A/a", "1/apis/a.yaml", "2/apis/a.yaml"), again("A/c", "2/c.yaml", "3/c.yaml"), again("A/a", "1/apis/a.yaml", "3/apis/a.yaml"), again("A/b", "1/b.yaml", "2/b.yaml"), again("A/b", "1/b.yaml", "3/c.yaml")}, map[string]int{"1/apis/a.yaml": 1, "1/b.yaml": 1, "2/apis/a.yaml": 1, "2/b.yaml": 1, "2/c.yaml": 1, "3/apis/a.yaml": 1, "3/c.yaml": 2}, []string{"2/apis/a.yaml:1: 1, 2 and 3 declare the same objects, 3 in all; the first is A/a at 1/apis/a.yaml:1 and 2/apis/a.yaml:1" + choose}},
		"Root":  {"Examples repeat what the root declares.", []twice{again("A/a", "a.yaml", "examples/a.yaml"), again("A/b", "b.yaml", "examples/b.yaml")}, map[string]int{"a.yaml": 1, "b.yaml": 1, "c.yaml": 1, "examples/a.yaml": 1, "examples/b.yaml": 1}, []string{"examples/a.yaml:1: the root and examples declare the same objects, 2 in all; the first is A/a at a.yaml:1 and examples/a.yaml:1" + choose}},
		"Few": {"Two of many objects are mistakes, not alternatives.", []twice{again("A/a", "x/a.yaml", "y/a.yaml"), again("A/b", "x/b.yaml", "y/b.yaml")}, map[string]int{"x/a.yaml": 5, "y/a.yaml": 5}, []string{
			"y/a.yaml:1: A/a is declared at x/a.yaml:1 already: remove one of them; if x and y are variants, read one of them with --path, or list the other in .headgateignore",
			"y/b.yaml:1: A/b is declared at x/b.yaml:1 already: remove one of them; if x and y are variants, read one of them with --path, or list the other in .headgateignore",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range declaredTwice(tc.all, tc.objects) {
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
