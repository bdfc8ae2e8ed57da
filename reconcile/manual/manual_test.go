package manual

import (
	"slices"
	"strings"
	"testing"
)

func TestEntries(t *testing.T) {
	all := Entries()
	e := all["DeletesObjects"]
	if want := "… would be deleted with it…; delete them first"; e.Message != want {
		t.Errorf("the message of DeletesObjects is %q, want %q", e.Message, want)
	}
	if want := "the guard in use"; e.About != want {
		t.Errorf("DeletesObjects is about %q, want %q", e.About, want)
	}
	if want := "guards/in-use.md#deletesobjects"; e.Link != want {
		t.Errorf("DeletesObjects is at %q, want %q", e.Link, want)
	}
	for code, e := range all {
		if e.Code != code || e.Message == "" || e.About == "" || e.Link == "" {
			t.Errorf("%s is explained by %+v", code, e)
		}
		if strings.Contains(e.Page, "](") || strings.Contains(e.Page, "<!--") {
			t.Errorf("the page of %s has a link or a comment, which a terminal cannot show:\n%s", code, e.Page)
		}
	}
	if e := all["AwaitsCRD"]; e.Page != "" || e.About != "Steps that wait for their kind" {
		t.Errorf("a code of no guard is explained by %+v", e)
	}
}

func TestGuards(t *testing.T) {
	g := Guards()["in use"]
	if !strings.HasPrefix(g.Title, `held by guard "in use": `) || !strings.Contains(g.Page, "You cannot approve what it holds.") {
		t.Errorf("the guard in use is explained by %+v", g)
	}
	if !slices.Contains(g.Codes, "DeletesObjects") {
		t.Errorf("the codes of the guard in use are %v", g.Codes)
	}
}
