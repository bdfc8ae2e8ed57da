package report

import (
	"fmt"
	"testing"

	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// A finding is new if the base does not have its identity, wherever it stands and whatever its message counts.
func TestDivide(t *testing.T) {
	object := func(name string) manifest.ID { return manifest.ID{Group: "example.org", Kind: "Ship", Name: name} }
	at := func(path string, line int, name, field, message string) manifest.Finding {
		return manifest.Finding{
			Rule: "refused", Severity: manifest.Warning, Origin: manifest.Origin{Path: path, Line: line},
			About: manifest.About{Object: object(name), Field: field}, Message: message,
		}
	}
	old := at("a.yaml", 3, "a", "spec.size", "1 field")
	worse := old
	worse.Severity = manifest.Error
	cases := map[string]struct {
		reason       string
		base, head   []manifest.Finding
		added, known int
	}{
		"Same":      {"Nothing changed.", []manifest.Finding{old}, []manifest.Finding{old}, 0, 1},
		"MovedFile": {"The object moved to another file, or its file was renamed.", []manifest.Finding{old}, []manifest.Finding{at("b/c.yaml", 3, "a", "spec.size", "1 field")}, 0, 1},
		"MovedLine": {"Lines were inserted before it.", []manifest.Finding{old}, []manifest.Finding{at("a.yaml", 30, "a", "spec.size", "1 field")}, 0, 1},
		"Count":     {"The message counts more.", []manifest.Finding{old}, []manifest.Finding{at("a.yaml", 3, "a", "spec.size", "2 fields")}, 0, 1},
		"Index":     {"An item was inserted before that of the field.", []manifest.Finding{at("a.yaml", 3, "a", "spec.list[0].size", "")}, []manifest.Finding{at("a.yaml", 9, "a", "spec.list[1].size", "")}, 0, 1},
		"Added":     {"Another object has it.", []manifest.Finding{old}, []manifest.Finding{old, at("a.yaml", 9, "b", "spec.size", "1 field")}, 1, 1},
		"Fixed":     {"One was fixed, and another was added.", []manifest.Finding{old}, []manifest.Finding{at("a.yaml", 3, "a", "spec.colour", "1 field")}, 1, 0},
		"OnlyFixed": {"What is fixed does not count.", []manifest.Finding{old, old}, []manifest.Finding{old}, 0, 1},
		"Twice":     {"Two in the base, and three in the head.", []manifest.Finding{old, old}, []manifest.Finding{old, old, old}, 1, 2},
		"Worse":     {"A warning became an error.", []manifest.Finding{old}, []manifest.Finding{worse}, 1, 0},
		"Milder":    {"An error became a warning.", []manifest.Finding{worse}, []manifest.Finding{old}, 0, 1},
		"Empty":     {"The base has nothing.", nil, []manifest.Finding{old}, 1, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			added, known := divide(tc.base, tc.head)
			if diff := cmp.Diff([]int{tc.added, tc.known}, []int{len(added), len(known)}); diff != "" {
				t.Errorf("%s\ndivide(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Dividing is linear: a base with ten thousand findings of one identity must not stop a preview.
func TestDivideMany(t *testing.T) {
	var base, head []manifest.Finding
	for i := range 10_000 {
		f := manifest.Finding{Rule: "refused", Severity: manifest.Error, About: manifest.About{Object: manifest.ID{Name: fmt.Sprint(i % 3)}}}
		base, head = append(base, f), append(head, f, f)
	}
	added, known := divide(base, head)
	if len(added) != 10_000 || len(known) != 10_000 {
		t.Errorf("divide(...): %d added, %d known", len(added), len(known))
	}
}
