package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOriginOf(t *testing.T) {
	const policy = "# c\n---\n\napiVersion: v1\nkind: P\nspec: &s\n  activate:\n  - a.b\n  # c\n  - \"*.c\"\n  - >-\n    d\nalias: *s\n"
	const list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: P\n  spec:\n    activate:\n    - a\n    - b\n"
	cases := map[string]struct {
		reason string
		text   string
		path   []any
		want   int
	}{
		"Entry":       {"Lines are counted from the beginning of the file.", policy, []any{"spec", "activate", 1}, 10},
		"FirstEntry":  {"Indices count from 0.", policy, []any{"spec", "activate", 0}, 8},
		"BlockScalar": {"The line of a block scalar is the line of its indicator.", policy, []any{"spec", "activate", 2}, 11},
		"Alias":       {"Aliases are followed.", policy, []any{"alias", "activate", 0}, 8},
		"Absent":      {"For a missing field, the line is the first one of the document.", policy, []any{"spec", "deactivate", 0}, 4},
		"PastTheEnd":  {"For an index past the end, the line is the first one of the document.", policy, []any{"spec", "activate", 3}, 4},
		"WrongStep":   {"For a path that does not match the document, the line is the first one of the document.", policy, []any{"spec", 0}, 4},
		"Document":    {"An empty path is the document itself.", policy, nil, 4},
		"InList":      {"Items of a List have their own lines.", list, []any{"spec", "activate", 1}, 9},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			documents, err := Read(file("a.yaml", tc.text), "a.yaml", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			want := Origin{Path: "a.yaml", Line: tc.want}
			if got := documents[0].OriginOf(tc.path...); got != want {
				t.Errorf("%s\nOriginOf(%v): %s, want %s", tc.reason, tc.path, got, want)
			}
		})
	}
}

func TestOriginsOf(t *testing.T) {
	const policy = "apiVersion: v1\nkind: P\nspec:\n  activate: [a, b,\n    c]\n"
	documents, err := Read(file("a.yaml", policy), "a.yaml", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Origin{{"a.yaml", 4}, {"a.yaml", 4}, {"a.yaml", 5}, {"a.yaml", 1}}
	if diff := cmp.Diff(want, documents[0].OriginsOf(4, "spec", "activate")); diff != "" {
		t.Errorf("every item has its line, and what is absent that of the document\nOriginsOf(...) (-want +got):\n%s", diff)
	}
}
