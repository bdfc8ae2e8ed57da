package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render/manifest"
)

// Markdown writes the report of a pass or a diff: the verdict, everything that needs a person, and then the rest, folded. All
// text that a commit may control is quoted as code. A comparison is written like the comment of a preview.
func Markdown(w io.Writer, r Report) error {
	var b strings.Builder
	if r.Judgement.Word != "" {
		_, err := io.WriteString(w, Comment(r, math.MaxInt))
		return err
	}
	fmt.Fprintf(&b, "**Headgate** %s\n", escape(r.counts()))
	if r.Error != "" {
		fmt.Fprintf(&b, "\n%s\n", fenced(r.Error))
	}
	section := func(title string, action plan.Action, folded bool) {
		var lines []string
		for _, s := range r.Steps {
			if s.shownAction() == action {
				lines = append(lines, markdownStep(s))
			}
		}
		if len(lines) == 0 {
			return
		}
		if folded {
			fmt.Fprintf(&b, "\n<details><summary>%s: %d</summary>\n\n%s\n</details>\n", title, len(lines), strings.Join(lines, ""))
			return
		}
		fmt.Fprintf(&b, "\n### %s: %d\n\n%s", title, len(lines), strings.Join(lines, ""))
	}
	if len(r.Fights) > 0 {
		fmt.Fprintf(&b, "\n### Fights: %d\n\n", len(r.Fights))
	}
	for _, f := range r.Fights {
		fmt.Fprintf(&b, "- %s\n  - %s\n", code(f.ID.String()), code(words.OfFight(f)))
	}
	section("Held", plan.Hold, false)
	approve(&b, r, "")
	section("Drifted", drifted, false)
	section("Prune", plan.Prune, false)
	section("Release", plan.Release, true)
	section("Create", plan.Create, false)
	section("Update", plan.Update, false)
	section("Retained", plan.Keep, true)
	markdownChecks(&b, r.Checks)
	findings(&b, r.Findings)
	_, err := io.WriteString(w, b.String())
	return err
}

// approve explains how to approve the held steps and what blocks a comparison.
func approve(b *strings.Builder, r Report, command string) {
	a := r.Approval
	switch {
	case r.Judgement.Word != "":
		for _, given := range r.Approvals[:min(len(r.Approvals), mostApprovals)] {
			fmt.Fprintf(b, "\n%s.\n", escape(capital(given.String())))
		}
		if r.Asks() {
			r.askFor(b, command)
		}
	case a != nil:
		fmt.Fprintf(b, "\nIf this is intended (%s, held by %s), someone other than the author can approve it with `headgate approve` after the merge, or with `--approve`:\n\n%s\n",
			manifest.Count(a.Steps, "step"), guards(a.Guards), fenced(a.Line()))
	}
}

func guards(names []plan.GuardName) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = code(string(name))
	}
	if len(names) == 1 {
		return "the guard " + quoted[0]
	}
	return "the guards " + strings.Join(quoted, ", ")
}

func markdownStep(s Step) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- %s\n", code(s.ID.String()))
	detail := func(format string, args ...any) { fmt.Fprintf(&b, "  - "+format+"\n", args...) }
	switch {
	case s.stays():
		detail("%s", code(s.Reason))
	case s.Guard != "":
		detail("%s: %s", escape(string(s.Guard)), code(s.Reason))
	case s.Approved, s.Action == plan.Update && s.Reason != "":
		detail("%s", code(s.Reason))
	}
	if whose := s.whose(); whose != "" {
		detail("%s", code(whose))
	}
	if s.Action == plan.Create {
		for _, reason := range s.Because {
			detail("%s", code(Because(reason)))
		}
	}
	for _, change := range s.unsaidBreaks() {
		detail("breaks: %s", code(change))
	}
	markdownChanges(&b, s.Changes)
	for _, trouble := range []string{s.Error, s.NotReady} {
		if trouble != "" {
			detail("%s", code(trouble))
		}
	}
	return b.String()
}

func markdownChanges(b *strings.Builder, changes []diff.Change) {
	for i, c := range changes {
		if i == mostChanges {
			fmt.Fprintf(b, "  - and %d more fields\n", len(changes)-i)
			break
		}
		fmt.Fprintf(b, "  - %s: %s → %s\n", code(c.Path), code(Text{}.value(c.From)), code(Text{}.value(c.To)))
	}
}

func markdownChecks(b *strings.Builder, checks []Check) {
	if len(checks) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Waited for: %d\n\n", len(checks))
	for i, c := range checks {
		if i == mostSteps {
			fmt.Fprintf(b, "- and %d more\n", len(checks)-i)
			break
		}
		fmt.Fprintf(b, "- %s %s: %s\n", c.State, code(c.ID.String()), code(c.Reason))
		markdownChanges(b, c.Changes)
	}
}

func findings(b *strings.Builder, all []manifest.Finding) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### Findings: %d\n\n", len(all))
	for _, f := range all {
		fmt.Fprintf(b, "- %s %s: %s", f.Severity, code(f.Origin.String()), code(f.Message))
		if f.Fix != "" {
			fmt.Fprintf(b, " — %s", code(f.Fix))
		}
		b.WriteByte('\n')
	}
}

// code quotes a text as inline code, so that none of it is Markdown. Its fence is longer than any run of backticks in the text.
func code(s string) string {
	s = legible.Line(s)
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.Trim(s, "` ") != s || s == "" {
		s = " " + s + " " // otherwise a backtick would extend the fence, and outer spaces would be dropped
	}
	return fence + s + fence
}

func fenced(s string) string {
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = legible.Line(line)
	}
	return fence + "\n" + strings.Join(lines, "\n") + "\n" + fence
}

func longestRun(s string, of rune) int {
	longest, run := 0, 0
	for _, r := range s {
		if r != of {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// escape escapes our own text, which may contain a name.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "<", "&lt;", ">", "&gt;", "@", "&#64;", "`", "&#96;", "*", "\\*", "_", "\\_", "[", "\\[").Replace(legible.Line(s))
}

// escapeHTML escapes our own text in a line of HTML, where Markdown has no meaning and an @ still names a user.
func escapeHTML(s string) string {
	return strings.ReplaceAll(html.EscapeString(legible.Line(s)), "@", "&#64;")
}
