package report

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/render/manifest"
)

// A reviewer clicks on a location. A hostile path or run URL must not break out of its link.
func TestLinks(t *testing.T) {
	held := Step{Action: "hold", Would: "prune", Guard: "many", ID: id("x"), Origin: &manifest.Origin{Path: "a]b`c.yaml", Line: 3}, Reason: "x"}
	c := Combine([]Report{previewed("prod", held)})
	if output := c.Comment(65_536); strings.Contains(output, "](") {
		t.Errorf("without a forge there are links:\n%s", output)
	}
	c.Links = Links{Run: "https://example.org/run (1)", File: func(commit, path string, line int) string {
		return fmt.Sprintf("https://example.org/%.4s/%d/%d", commit, len(path), line)
	}}
	output := c.Comment(65_536)
	for _, want := range []string{"[``a]b`c.yaml:3``](https://example.org/aaaa/10/3)", " [Details](https://example.org/run%20%281%29)."} {
		if !strings.Contains(output, want) {
			t.Errorf("the comment lacks %s:\n%s", want, output)
		}
	}
	c = Combine([]Report{previewed("prod", held), previewed("test", held, creating("y.example.org"))})
	c.Links = Links{Run: "https://example.org/run", File: func(string, string, int) string { return "https://example.org/file" }}
	if output := c.Comment(65_536); strings.Count(output, "](https://example.org/file)") < 4 || strings.Count(output, "[Details]") != 1 {
		t.Errorf("of several syncs:\n%s", output)
	}
}
