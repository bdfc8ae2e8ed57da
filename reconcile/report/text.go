package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/manifest"
)

// Text writes a report for a terminal. The zero value writes plain text and shortens lists of similar steps.
type Text struct {
	Colour bool
	Full   bool // show every step and every change
	Apart  bool // leave out the error, which the caller writes elsewhere
}

// The maximum number of similar things to show, unless Full is set.
const (
	mostSteps   = 40 // steps per action
	mostChanges = 8  // changes per object
	mostValue   = 60 // characters per value
)

// A look is the presentation of an action. The glyph and the word show the action even without colour.
type look struct{ glyph, colour string }

var looks = map[plan.Action]look{
	plan.Create: {"+", "\x1b[32m"},
	plan.Update: {"~", "\x1b[33m"},
	plan.Prune:  {"-", "\x1b[31m"},
	plan.Hold:   {"!", "\x1b[35m"},

	plan.Release: {"o", "\x1b[33m"},
	plan.Keep:    {"=", "\x1b[2m"},
	drifted:      {"=", "\x1b[35m"},
	deleting:     {"-", "\x1b[2m"},
	dropped:      {"-", "\x1b[31m"},
}

// drifted is the displayed action of drift that is only reported.
const drifted plan.Action = "drift"

// deleting is the displayed action of a prune that waits for a deletion.
const deleting plan.Action = "deleting"

// dropped is the displayed action of a definition that a new version of a package no longer contains.
const dropped plan.Action = "drop"

// shownAction returns the displayed action of a step.
func (s Step) shownAction() plan.Action {
	if s.stays() {
		return drifted
	}
	if s.Package != "" && s.Action == plan.Keep {
		return dropped
	}
	if s.Deleting {
		return deleting
	}
	return s.Action
}

// order is the order of actions in a text. Steps that need a person come last, next to the summary.
var order = []plan.Action{plan.Keep, plan.Create, plan.Update, plan.Release, plan.Prune, deleting, drifted, plan.Hold}

// Write writes the report. Its last line is always the summary.
func (t Text) Write(w io.Writer, r Report) error {
	var b strings.Builder
	for _, action := range order {
		t.steps(&b, r, action)
	}
	t.upgrades(&b, r.Upgrades)
	t.openings(&b, r)
	for _, a := range r.Used() {
		fmt.Fprintf(&b, "%s\n", legible.Line(a.String()))
	}
	if a := r.Approval; a != nil && r.Judgement.Word != "" {
		if r.Asks() {
			fmt.Fprintf(&b, "%s %s\n    approves exactly what blocks this and can be approved: with 'headgate approve --write' in the target, or with 'headgate approve' after the merge\n", t.paint("! approve", looks[plan.Hold].colour), a.Line())
		}
	} else if a != nil {
		fmt.Fprintf(&b, "%s %s\n    lets exactly the %s pass that %s holds, once: with --approve, or with 'headgate approve'\n",
			t.paint("! approve", looks[plan.Hold].colour), a.Line(), manifest.Count(a.Steps, "step"), strings.Join(a.Names(), ", "))
	}
	t.checks(&b, r.Checks)
	for _, f := range r.Fights {
		fmt.Fprintf(&b, "%s %s\n    %s\n", t.paint("! fight ", looks[drifted].colour), legible.Line(f.ID.String()), legible.Line(words.OfFight(f)))
	}
	t.findings(&b, r.Findings)
	switch older := r.older(); {
	case older == "":
	case t.Full:
		fmt.Fprintf(&b, "%s\n", older)
		t.findings(&b, r.Known)
	default:
		fmt.Fprintf(&b, "%s (--full shows them)\n", older)
	}
	if r.unchecked() > 0 {
		fmt.Fprintf(&b, "no longer checked, because the commit has no schema of them any more: %s\n", legible.Line(strings.Join(r.Preview.Unchecked, ", ")))
	}
	for _, why := range slices.Sorted(maps.Keys(r.Skipped)) {
		if t.Full || why.Surprises() {
			fmt.Fprintf(&b, "skipped: %d × %s\n", r.Skipped[why], why)
		}
	}
	t.versions(&b, r.Preview)
	if r.Error != "" && !t.Apart {
		for line := range strings.SplitSeq(r.Error, "\n") {
			fmt.Fprintf(&b, "%s\n", t.paint("error: "+legible.Line(line), "\x1b[31m"))
		}
	}
	fmt.Fprintln(&b, r.Line())
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Text) steps(b *strings.Builder, r Report, action plan.Action) {
	shown, more, most := 0, 0, mostSteps
	if t.Full {
		most = len(r.Steps)
	}
	for _, s := range r.Steps {
		if s.shownAction() != action {
			continue
		}
		if shown == most && s.Error == "" && s.NotReady == "" {
			more++
			continue
		}
		if s.Error == "" {
			shown++
		}
		t.step(b, s)
	}
	if more > 0 {
		fmt.Fprintf(b, "%s … and %d more to %s (--full shows all)\n", looks[action].glyph, more, action)
	}
}

// openings writes the definitions that Crossplane activates without a visible step.
func (t Text) openings(b *strings.Builder, r Report) {
	if r.Preview == nil {
		return
	}
	created := map[string]bool{}
	for _, s := range r.Steps {
		created[s.ID.Name] = created[s.ID.Name] || s.Action == plan.Create && len(s.Because) > 0
	}
	silent := slices.DeleteFunc(slices.Clone(r.Preview.Opens), func(o Opening) bool { return created[o.Name] })
	for _, g := range opened(silent) {
		most := mostChanges
		if t.Full {
			most = len(g.names)
		}
		l := looks[plan.Create]
		fmt.Fprintf(b, "%s %s\n    %s: %s\n", t.paint(l.glyph+" activate", l.colour), legible.Line(g.cause()), legible.Line(g.by.Origin.String()), legible.Line(someOf(g.names, most)))
	}
}

// upgrades writes the noticeable changes that Crossplane makes for new versions of packages.
func (t Text) upgrades(b *strings.Builder, upgrades []Step) {
	shown, more := 0, 0
	for _, s := range upgrades {
		minds := s.active && (s.Action == plan.Keep || len(s.Breaks) > 0)
		if !t.Full && (!minds || shown == mostSteps) {
			more++
			continue
		}
		shown++
		l := looks[s.shownAction()]
		fmt.Fprintf(b, "%s %s\n    in %s (%s)\n", t.paint(fmt.Sprintf("%s %-6s", l.glyph, s.shownAction()), l.colour), legible.Line(s.ID.String()), legible.Line(s.Package), legible.Line(s.Origin.String()))
		if s.Reason != "" {
			fmt.Fprintf(b, "    %s\n", legible.Line(s.Reason))
		}
		t.breaks(b, merged(s.Breaks))
		if len(s.Breaks) == 0 {
			t.changes(b, s.Changes, false)
		}
	}
	if more > 0 {
		fmt.Fprintf(b, "~ … and %s in new versions of packages (--full shows all)\n", moreOf(more, "definition more changes", "definitions more change"))
	}
}

func (t Text) breaks(b *strings.Builder, changes []string) {
	for i, change := range changes {
		if i == mostChanges && !t.Full {
			fmt.Fprintf(b, "    … and %d more (--full shows all)\n", len(changes)-i)
			break
		}
		fmt.Fprintf(b, "    breaks: %s\n", legible.Line(change))
	}
}

func (t Text) step(b *strings.Builder, s Step) {
	l := looks[s.shownAction()]
	fmt.Fprintf(b, "%s %s\n", t.paint(fmt.Sprintf("%s %-6s", l.glyph, s.shownAction()), l.colour), legible.Line(s.ID.String()))
	detail := func(format string, args ...any) { fmt.Fprintf(b, "    "+format+"\n", args...) }
	switch {
	case s.Action == plan.Hold:
		detail("%s held by guard %q: %s", s.Would, s.Guard, legible.Line(s.Reason))
		if s.before != "" {
			detail("%s", s.before)
		}
	case s.stays(), s.Deleting && s.Reason != "" && s.Error == "", s.Action == plan.Release && s.Reason != "":
		detail("%s", legible.Line(s.Reason))
	case s.Guard != "":
		detail("kept: %s", legible.Line(s.Reason))
	case s.Reason != "" && !s.restated:
		detail("note: %s", legible.Line(s.Reason))
	}
	if whose := s.whose(); whose != "" {
		detail("%s", legible.Line(whose))
	}
	if s.Action == plan.Create {
		for _, reason := range s.Because {
			detail("%s", legible.Line(Because(reason)))
		}
	}
	t.breaks(b, s.unsaidBreaks())
	t.changes(b, s.Changes, len(s.TakesFrom) > 1)
	if s.NotReached {
		detail("not reached before the pass stopped")
	}
	if s.Waits != "" && s.Error == "" { // the error has the same text
		detail("waits for %s", legible.Line(s.Waits))
	}
	if s.NotReady != "" {
		detail("%s", t.paint("not ready: "+legible.Line(s.NotReady), "\x1b[31m"))
	}
	if s.Error != "" {
		detail("%s", t.paint("error: "+legible.Line(s.Error), "\x1b[31m"))
	}
}

// unsaidBreaks returns the breaking changes of a served kind that the reason of the step does not name, because it
// comes from another guard.
func (s Step) unsaidBreaks() []string {
	if !s.active {
		return nil
	}
	return merged(slices.DeleteFunc(slices.Clone(s.Breaks), func(c plan.SchemaChange) bool { return strings.Contains(s.Reason, c.String()) }))
}

// onlyObserved are the codes of observe-only objects.
var onlyObserved = []reason.Code{reason.ObservedRefused, reason.ObservedDiffers, reason.OnlyLookedAt}

// whose describes the role of other writers in a step.
func (s Step) whose() string {
	by := strings.Join(s.TakesFrom, ", ")
	switch {
	case slices.Contains(onlyObserved, s.Code): // never applied, so it did not drift
		return ""
	case s.Cause != plan.Drift && by != "":
		return "takes fields from " + by
	case s.Cause != plan.Drift:
		return ""
	case s.Action == plan.Create, s.Would == plan.Create:
		return "drift: another writer deleted it"
	case by != "":
		return "drift: changed by " + by
	}
	return "drift: another writer changed it"
}

// changes writes the changes of an object, each with its writer if the writers differ.
func (t Text) changes(b *strings.Builder, changes []diff.Change, whose bool) {
	for i, c := range changes {
		if i == mostChanges && !t.Full {
			fmt.Fprintf(b, "    … and %d more fields (--full shows all)\n", len(changes)-i)
			break
		}
		by := ""
		if whose && c.By != "" {
			by = fmt.Sprintf(" (%s)", legible.Line(c.By))
		}
		fmt.Fprintf(b, "    %s: %s → %s%s\n", legible.Line(c.Path), t.value(c.From), t.value(c.To), by)
	}
}

func (t Text) value(v string) string {
	if v == "" {
		return "(none)"
	}
	runes := []rune(legible.Line(v))
	if len(runes) > mostValue && !t.Full {
		return string(runes[:mostValue-1]) + "…"
	}
	return string(runes)
}

func (t Text) checks(b *strings.Builder, checks []Check) {
	for i, c := range checks {
		if i == mostSteps && !t.Full {
			fmt.Fprintf(b, "? … and %d more to wait for (--full shows all)\n", len(checks)-i)
			break
		}
		glyph, colour := "?", "\x1b[33m"
		if c.State == plan.Broken {
			glyph, colour = "!", "\x1b[31m"
		}
		fmt.Fprintf(b, "%s %s: %s\n", t.paint(fmt.Sprintf("%s %-7s", glyph, c.State), colour), legible.Line(c.ID.String()), legible.Line(c.Reason))
		t.changes(b, c.Changes, false)
	}
}

func (t Text) findings(b *strings.Builder, findings []manifest.Finding) {
	for _, f := range findings {
		colour := map[manifest.Severity]string{manifest.Error: "\x1b[31m", manifest.Warning: "\x1b[33m"}[f.Severity]
		place := ""
		if f.Origin.Path != "" { // findings about the cluster have no place in the commit
			place = legible.Line(f.Origin.String()) + ": "
		}
		fmt.Fprintf(b, "%s %s%s", t.paint(string(f.Severity)+":", colour), place, legible.Line(f.Message))
		if f.Fix != "" {
			fmt.Fprintf(b, "; %s", legible.Line(f.Fix))
		}
		b.WriteByte('\n')
	}
}

// Findings writes only findings. The last line is always their summary, with what was not checked.
func (t Text) Findings(w io.Writer, found []manifest.Finding, notChecked check.Omissions) error {
	var b strings.Builder
	t.findings(&b, found)
	line := "Summary: " + cmp.Or(bySeverity(found), "no findings")
	if len(notChecked) > 0 {
		line += " · " + legible.Line(notChecked.String())
	}
	fmt.Fprintln(&b, line)
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Text) paint(s, colour string) string {
	if !t.Colour || colour == "" {
		return s
	}
	return colour + s + "\x1b[0m"
}

// Because describes one reason for an activation.
func Because(r activation.Activator) string { return "active: " + because(r) }

func because(r activation.Activator) string {
	switch r.Cause {
	case activation.Matched:
		return fmt.Sprintf("policy %s matches with %q (%s)", r.Policy, r.Pattern, r.Origin)
	case activation.MatchedInCluster:
		return fmt.Sprintf("policy %s in the cluster matches with %q", r.Policy, r.Pattern)
	case activation.NoSafeStart:
		return fmt.Sprintf("package %s has no safe-start, so all of it is (%s)", r.Package, r.Origin)
	}
	return fmt.Sprintf("its own state says so (%s)", r.Origin)
}

// Line returns the summary, in the same form even if nothing changed.
func (r Report) Line() string { return "Summary: " + r.counts() }

func (r Report) counts() string {
	c := r.Summary
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	done := []string{"to create", "to update", "to prune", "to release", "to deactivate"}
	if r.Applied {
		done = []string{"created", "updated", "pruned", "released", "deactivated"}
	}
	add(c.Created, done[0])
	add(c.Updated, done[1])
	add(c.Pruned, done[2])
	add(c.Deleting, "deleting")
	add(c.Released, done[3])
	add(c.Deactivated, done[4])
	add(c.Reported, "drifted")
	add(len(r.Fights), "fought over")
	add(c.Held, "held")
	add(c.Failed, "failed")
	add(c.NotReady, "not ready")
	add(c.NotReached, "not reached")
	add(c.Waiting, "waiting")
	add(c.Broken, "broken")
	add(c.Pending, "pending")
	switch {
	case r.Error != "":
		parts = append([]string{"stopped by an error"}, parts...)
	case len(parts) == 0 && r.blind():
		parts = append(parts, "nothing to compare with")
	case len(parts) == 0:
		parts = append(parts, "no changes")
	}
	add(c.Unchanged, "unchanged")
	if r.Suspended != "" {
		parts = append(parts, r.Suspended)
	}
	line := strings.Join(parts, ", ")
	if r.Judgement.Word != "" && r.Error == "" {
		line = fmt.Sprintf("%s: %s · %s", r.Judgement.Word, legible.Line(r.grounds()), line)
	} else if r.Judgement.Word != "" {
		line = fmt.Sprintf("%s: %s", r.Judgement.Word, line)
	}
	if c.Definitions+c.Unknown > 0 {
		line += " · " + c.String()
	}
	if len(r.NotChecked) > 0 {
		line += " · " + legible.Line(r.NotChecked.String())
	}
	if r.Revision != "" {
		line += " · " + r.Revision[:min(len(r.Revision), 12)]
	}
	return line
}
