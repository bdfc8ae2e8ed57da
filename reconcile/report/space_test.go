package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// losing returns an upgrade after which a number of kinds lose the same field, every third one a second field, and pairs of them other
// fields. The commit uses one kind, which loses a field that no other kind has.
func losing(kinds int) Report {
	removed := func(version, path string) plan.SchemaChange {
		return plan.SchemaChange{Rule: "field-removed", Version: version, Path: path, Breaking: true}
	}
	r := Report{Preview: &Preview{}}
	for i := range kinds {
		s := Step{Action: plan.Update, ID: manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: fmt.Sprintf("kind%03d.example.org", i)}, active: true}
		s.Breaks = append(s.Breaks, removed(fmt.Sprintf("v%d", i%2), "spec.publishConnectionDetailsTo"))
		if i%3 == 0 {
			s.Breaks = append(s.Breaks, removed("v1", "spec.region"))
		}
		if i < 20 {
			s.Breaks = append(s.Breaks, removed("v1", fmt.Sprintf("spec.field%d", i/2)))
		}
		if i == kinds-1 {
			s.Breaks = append(s.Breaks, removed("v1", "spec.mine"))
			s.UsedAt = []manifest.Origin{{Path: "mine.yaml", Line: 4}}
		}
		r.Steps = append(r.Steps, s)
	}
	return asRuled(r)
}

// The largest upgrade names the fields, however little room there is: first what all kinds share, and what the commit uses.
func TestLargestUpgrade(t *testing.T) {
	r := losing(953)
	for i := range 300 {
		r.Preview.Opens = append(r.Preview.Opens, Opening{Definition: Definition{Name: fmt.Sprintf("opens%d.example.org", i)}})
		r.Findings = append(r.Findings, manifest.Finding{Severity: manifest.Warning, Message: strings.Repeat("warning ", 40)})
	}
	for _, limit := range []int{3_000, 5_000, 20_000, 65_536} {
		c := Comment(r, limit)
		if len(c) > limit {
			t.Errorf("a comment of %d bytes is more than %d", len(c), limit)
		}
		visible, _, _ := strings.Cut(c, "<details>")
		for _, want := range []string{"**Breaks 953 schemas.**", "`spec.publishConnectionDetailsTo is removed`: all 953 kinds; used at `mine.yaml:4`", "`spec.mine is removed` (`v1`): `kind952.example.org`; used at `mine.yaml:4`"} {
			if !strings.Contains(visible, want) {
				t.Errorf("within %d bytes, the visible part does not say %q:\n%s", limit, want, visible)
			}
		}
		if limit >= 20_000 && !strings.Contains(c, "`spec.region is removed (v1)`") {
			t.Errorf("within %d bytes, the folded part names no field:\n%s", limit, c)
		}
	}
}

// The first point has items as long as anything has room, and no point announces items that are missing.
func TestWorstFirst(t *testing.T) {
	var points []point
	for i := range 20 {
		points = append(points, point{fmt.Sprintf("point %d", i), slices.Repeat([]string{"item"}, 9)})
	}
	for lines := 6; lines < 60; lines++ {
		text := listed(points, room{lines, 10_000})
		if n := linesOf(text); n > lines {
			t.Errorf("in %d lines, %d are written:\n%s", lines, n, text)
		}
		if !strings.HasPrefix(text, "\n- point 0\n  - item\n  - item\n") {
			t.Errorf("in %d lines, the worst point has no items:\n%s", lines, text)
		}
		shown := strings.Count(text, "- point")
		if counts := strings.Contains(text, "less important"); counts != (shown < len(points)) {
			t.Errorf("in %d lines, %d of %d points are shown, and others are counted: %t\n%s", lines, shown, len(points), counts, text)
		}
	}
	if text := listed(points, room{40, 30}); len(text) > 100 {
		t.Errorf("in 30 bytes, %d are written:\n%s", len(text), text)
	}
	for _, r := range []Report{everyPoint(200), pull("x", 3), upgraded(40), losing(40)} {
		c := comment{Report: r}
		for _, p := range c.points() {
			if strings.HasSuffix(strings.TrimRight(p.text, "*"), ":") {
				t.Errorf("%q says nothing without its items", p.text)
			}
		}
	}
}

// Sections have their titles in any room, and the first ones their items.
func TestWritten(t *testing.T) {
	one := func(int) string { return "- item\n" }
	sections := []section{{"A: 3", "", each(3, one)}, {"B: 3", "", each(3, one)}}
	for bytes, want := range map[int]string{
		0:   "\n#### A: 3\n\n- and 3 more\n\n#### B: 3\n\n- and 3 more\n",
		70:  "\n#### A: 3\n\n- item\n- and 2 more\n\n#### B: 3\n\n- and 3 more\n",
		500: "\n#### A: 3\n\n- item\n- item\n- item\n\n#### B: 3\n\n- item\n- item\n- item\n",
	} {
		if got := written(sections, bytes); got != want {
			t.Errorf("in %d bytes:\n%s\nwant:\n%s", bytes, got, want)
		}
	}
}
