package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// Comment returns the comment on a pull request within a limit in bytes. At most mostVisible lines tell a reviewer what matters.
// A folded part has every item and as many differences as fit. All text that a commit may control is quoted.
func Comment(r Report, limit int) string { return commentOf(r, limit, "", Links{}) }

// commentOf is Comment with an additional line about other syncs.
func commentOf(r Report, limit int, others string, links Links) string {
	const reserve = 600 // for the text below, and for the counts above the differences
	c := comment{Report: r, others: others, links: links}
	limit -= len(links.list) + reserve
	visible := c.visible(limit / 2)
	glossary := glossaryOf(visible)
	limit -= len(visible) + len(glossary)
	parts := written(c.sections(), limit)
	folded, left := c.differences(limit - len(parts))
	if left > 0 {
		folded += fmt.Sprintf("\n%s not shown: there is no more room here. `headgate preview -o markdown` shows all.\n", moreOf(left, "difference is", "differences are"))
	}
	if parts+folded != "" {
		folded = fmt.Sprintf("\n<details><summary>Item by item</summary>\n%s%s\n</details>\n", parts, folded)
	}
	return visible + folded + glossary + links.list
}

// A comment is a report in Markdown.
type comment struct {
	Report
	others string // a line about other syncs; may be empty
	links  Links
}

// mostOfError is the maximum number of visible lines of an error.
const mostOfError = 8

// visible returns the part that is not folded, in about so many bytes.
func (c comment) visible(bytes int) string {
	var top, bottom strings.Builder
	fmt.Fprintf(&top, "### %s\n", c.headline())
	fmt.Fprintf(&top, "\nHeadgate preview of %s. %s\n", code(c.Sync.Name), strings.TrimSpace(c.between()+" "+c.others)+c.links.run()+c.moved())
	if lines := strings.Split(clip(c.Error, 4000), "\n"); c.Error != "" {
		if n := len(lines); n > mostOfError {
			lines = append(lines[:mostOfError], fmt.Sprintf("… and %d more lines; headgate lint shows all", n-mostOfError))
		}
		fmt.Fprintf(&top, "\n%s\n", fenced(strings.Join(lines, "\n")))
	}
	approve(&bottom, c.Report, c.links.command)
	left := mostVisible - 2 - linesOf(top.String()) - linesOf(bottom.String()) // two lines are for the folded sections
	return top.String() + listed(c.points(), room{left, bytes - top.Len() - bottom.Len()}) + bottom.String()
}

// linesOf counts the lines of a text that are not empty.
func linesOf(s string) int {
	n := 0
	for line := range strings.SplitSeq(s, "\n") {
		if line != "" {
			n++
		}
	}
	return n
}

// sections returns every item behind the points, with its reasons, the worst first.
func (c comment) sections() []section {
	all := slices.Concat(
		c.steps("Fails", "Headgate cannot compute these, or the API server would reject them.", c.of(failing)),
		c.found(manifest.Error), c.held(), c.breaks(), c.drops(), c.leaves(), c.opens(), c.bumps(), c.versions(), c.found(manifest.Warning, manifest.Note), c.known(),
	)
	if c.Preview == nil || !c.Preview.Memory.Differs() {
		return all
	}
	about := "."
	if c.Preview.Memory.Estimates() {
		about = ": an estimate of live objects; resident memory may be twice as much."
	}
	return append(all, section{title: "Memory of an API server", intro: capital(c.Preview.Memory.String()) + about})
}

// mostGrounds is the maximum number of grounds in the headline, which must make sense alone in an email.
const mostGrounds = 3

// headline returns the judgement and its worst grounds.
func (c comment) headline() string {
	message := looksOf[c.judgement().Word] + ": "
	if c.Error != "" {
		return message + "cannot be rendered, so nothing would be applied"
	}
	message += escape(c.firstGrounds(mostGrounds))
	if c.comparesSchemas() && len(c.Breaking())+len(c.Dropped())+len(c.Unread())+len(c.Unseen()) == 0 {
		if len(c.inactiveBreaks()) > 0 {
			message += "; no active schema breaks"
		} else {
			message += "; no schema breaks"
		}
	}
	if len(c.NotChecked) > 0 {
		message += "; " + escape(c.NotChecked.String())
	}
	return message
}

// comparesSchemas reports whether schemas could have broken, because definitions or packages differ.
func (c comment) comparesSchemas() bool {
	return len(c.Bumps)+len(c.Inactive) > 0 || slices.ContainsFunc(c.Steps, func(s Step) bool { return s.isDefinition() && s.Action == plan.Update })
}

// between describes what was compared, what is unknown, and what is active after the merge.
func (c comment) between() string {
	message := c.compared()
	if c.Summary.Definitions > 0 {
		message += fmt.Sprintf(" Definitions after the merge: %s.", c.Summary)
	}
	return message
}

// compared describes what was compared, and what is unknown.
func (c comment) compared() string {
	var parts []string
	switch {
	case c.repairs():
		parts = append(parts, fmt.Sprintf("Commit %.12s, judged alone: its base %.12s cannot be rendered, so nothing was compared.", c.Revision, c.Preview.Base))
	case c.away():
		parts = append(parts, "Nothing was compared: "+escape(legible.Short(c.unmade(), mostCause))+".")
	case c.Preview != nil && c.Preview.Base == "":
		parts = append(parts, "Compared with the files before.")
	case c.Preview != nil:
		parts = append(parts, fmt.Sprintf("Commit %.12s compared with its merge base %.12s.", c.Revision, c.Preview.Base))
	case c.Revision != "":
		parts = append(parts, fmt.Sprintf("Commit %.12s.", c.Revision))
	default:
		parts = append(parts, "No commit could be compared.")
	}
	if c.Preview != nil && !c.Preview.Live {
		parts = append(parts, "No cluster was asked, so what exists there is not known (`--live` counts it).")
	}
	return strings.Join(parts, " ")
}

// moved describes how the target branch changed since the merge base, and whether the sync is suspended.
func (c comment) moved() string {
	if c.Preview == nil {
		return ""
	}
	text := ""
	if c.Preview.Suspended != "" {
		text = "\n\n" + escape("The sync is "+legible.Short(c.Preview.Suspended, mostCause)) + ". Until that ends, the merge changes nothing in the cluster."
	}
	if c.Preview.Moved != "" {
		text += "\n\n" + escape(capital(c.Preview.Moved)) + "."
	}
	return text
}

// bumps lists the packages in registries whose image changes, each with the consequences.
func (c comment) bumps() []section {
	if len(c.Bumps) == 0 {
		return nil
	}
	return []section{{fmt.Sprintf("Package upgrades: %d", len(c.Bumps)), "Crossplane installs them and replaces their definitions.", each(len(c.Bumps), func(i int) string {
		one := c.Bumps[i]
		text := fmt.Sprintf("- %s\n", c.bump(one))
		if one.Unknown != "" {
			return text
		}
		if one.By == (manifest.ID{}) {
			text += "  - It is a dependency: if it is installed already, Crossplane upgrades it only with `--enable-dependency-version-upgrades`.\n"
		}
		if one.Manual {
			text += "  - Its `revisionActivationPolicy` is `Manual`: this happens once a person activates the new revision.\n"
		}
		return text
	})}}
}

// bump describes the new version of a package in one line.
func (c comment) bump(one plan.Bump) string {
	if one.Unknown != "" {
		return fmt.Sprintf("%s%s: what it changes is not known, see the findings", quoted(one.Source), c.at(&one.Origin))
	}
	return fmt.Sprintf("%s: %s → %s%s: %s", quoted(one.Source), quoted(one.From), quoted(one.To), c.at(&one.Origin), c.consequences(one)+copied(one))
}

// copied notes that Headgate compared a copy in the tree instead of the image.
func copied(one plan.Bump) string {
	if one.Copy == "" {
		return ""
	}
	return fmt.Sprintf(". The image cannot be read, so this compares the copy in %s, and whether a webhook converts objects is not known", quoted(one.Copy))
}

// consequences counts the changes in a new version.
func (c comment) consequences(of plan.Bump) string {
	var breaks, sleeps, goes, fades, created, gains, words, others int
	for _, s := range c.Upgrades {
		switch {
		case s.Package != of.Package:
		case s.Action == plan.Create:
			created++
		case s.Action == plan.Keep && s.active:
			goes++
		case s.Action == plan.Keep:
			fades++
		case len(s.Breaks) > 0 && s.active:
			breaks++
		case len(s.Breaks) > 0:
			sleeps++
		case s.Words:
			words++
		case s.Added > 0:
			gains++
		default:
			others++
		}
	}
	var parts []string
	add := func(n int, one, many string) {
		if n > 0 {
			parts = append(parts, moreOf(n, one, many))
		}
	}
	add(breaks, "schema breaks", "schemas break")
	add(sleeps, "inactive one breaks", "inactive ones break")
	add(goes, "kind goes", "kinds go")
	add(fades, "inactive kind goes", "inactive kinds go")
	add(created, "kind is new", "kinds are new")
	add(gains, "gains fields", "gain fields")
	add(others, "changes and breaks nothing", "change and break nothing")
	add(words, "differs only in words", "differ only in words")
	return cmp.Or(strings.Join(parts, ", "), "no definition changes")
}

func (c comment) opens() []section {
	if c.Preview == nil || len(c.Preview.Opens) == 0 {
		return nil
	}
	const intro = "This cannot be undone: Crossplane never makes an active definition inactive again. If one is not intended, narrow the pattern before the merge."
	return []section{{fmt.Sprintf("Becomes active: %d", len(c.Preview.Opens)), intro, each(len(c.Preview.Opens), func(i int) string {
		var b strings.Builder
		o := c.Preview.Opens[i]
		fmt.Fprintf(&b, "- %s", quoted(o.Name))
		if o.Already {
			b.WriteString(" (is active in the cluster already)")
		}
		b.WriteByte('\n')
		for j, reason := range o.Because {
			if j == 3 {
				fmt.Fprintf(&b, "  - and %d more reasons\n", len(o.Because)-j)
				break
			}
			fmt.Fprintf(&b, "  - %s\n", quoted(because(reason)))
		}
		return b.String()
	})}}
}

func (c comment) leaves() []section {
	all := c.steps("Is deleted", "", c.of(plan.Prune))
	if c.Preview == nil || len(c.Preview.Leaves) == 0 {
		return all
	}
	return append(all, section{
		fmt.Sprintf("Active, but no longer in any policy: %d", len(c.Preview.Leaves)),
		"These definitions stay active and keep their CRDs; `headgate shrink` deactivates unused ones.",
		each(len(c.Preview.Leaves), func(i int) string { return fmt.Sprintf("- %s\n", quoted(c.Preview.Leaves[i].Name)) }),
	})
}

// breaks lists breaking changes. It groups kinds that break in the same way, because one change of a generator may
// break hundreds.
func (c comment) breaks() []section {
	broken := c.Breaking()
	if len(broken) == 0 {
		return nil
	}
	intro := "Objects and clients that work now may be refused, or lose these fields: change what uses this before the merge."
	if c.Preview != nil && !c.Preview.Live {
		intro += " While objects of a kind exist, Headgate holds its update until a person approves it."
	}
	alike := groups(broken, func(s Step) string { return strings.Join(append(merged(s.Breaks), s.Package), "\n") })
	slices.SortStableFunc(alike, func(a, b []Step) int { return cmp.Or(compareUse(a, b), len(b)-len(a)) })
	return []section{{fmt.Sprintf("Schemas that break: %d", len(broken)), intro, itemsOf(alike, func(alike []Step) string {
		var b strings.Builder
		first, changes := alike[0], merged(alike[0].Breaks)
		where := ""
		if len(alike) == 1 || first.Package != "" { // one line at the top then shows where all of them are requested
			where = first.by() + c.at(first.Origin)
		}
		fmt.Fprintf(&b, "- %s\n", c.names(alike, where))
		for i, change := range changes {
			if i == mostChanges {
				fmt.Fprintf(&b, "  - and %d more\n", len(changes)-i)
				break
			}
			fmt.Fprintf(&b, "  - %s\n", quoted(change))
		}
		return b.String()
	})}}
}

// compareUse orders groups of kinds: those that the commit uses come first.
func compareUse(a, b []Step) int {
	used := func(s Step) bool { return len(s.UsedAt) > 0 }
	switch is, other := slices.ContainsFunc(a, used), slices.ContainsFunc(b, used); {
	case is == other:
		return 0
	case is:
		return -1
	}
	return 1
}

// mostInGroup is the maximum number of names of a group in a section.
const mostInGroup = 10

// names returns the names and places of similar steps within the limit.
func (c comment) names(alike []Step, where string) string {
	shown := min(len(alike), mostInGroup)
	names := make([]string, shown)
	for i, s := range alike[:shown] {
		names[i] = quoted(s.ID.Name)
	}
	message := strings.Join(names, ", ")
	if left := len(alike) - shown; left > 0 {
		message += fmt.Sprintf(" and %d more", left)
	}
	if message += where; len(alike) > 1 {
		message += ", all in the same way"
	}
	return message
}

// drops lists the kinds that new versions of packages no longer contain.
func (c comment) drops() []section {
	const intro = "The new version no longer contains them. Their objects stay, and no controller reconciles them: delete the objects before the merge, or keep a version that contains the kinds."
	return c.alike("Dropped kinds", intro, c.Dropped(), func(s Step) string { return s.Package + s.Reason })
}

// by names the package of an upgrade step.
func (s Step) by() string {
	if s.Package == "" {
		return ""
	}
	return " of " + quoted(s.Package)
}

// groups returns steps grouped by a key, in the order of the first of each.
func groups(steps []Step, like func(Step) string) [][]Step {
	var all [][]Step
	index := map[string]int{}
	for _, s := range steps {
		key := like(s)
		i, known := index[key]
		if !known {
			i = len(all)
			index[key] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], s)
	}
	return all
}

// merged lists each change once, with the versions that have it: "spec.size is removed (v1alpha1, v1beta1)".
func merged(changes []plan.SchemaChange) []string {
	var parts []string
	versions := map[string][]string{}
	for _, change := range changes {
		what := change
		what.Version = ""
		text := what.String()
		if _, known := versions[text]; !known {
			parts = append(parts, text)
		}
		versions[text] = append(versions[text], change.Version)
	}
	for i, text := range parts {
		if of := strings.Join(versions[text], ", "); of != "" {
			parts[i] = fmt.Sprintf("%s (%s)", text, of)
		}
	}
	return parts
}

// failing selects the steps that Headgate cannot compute or that the API server rejects.
const failing plan.Action = "fail"

func (c comment) of(action plan.Action) []Step {
	return slices.DeleteFunc(slices.Clone(c.Steps), func(s Step) bool {
		return (action == failing) != (s.Error != "") || action != failing && s.Action != action
	})
}

// held lists the held steps. Those that cannot be approved have their own section.
func (c comment) held() []section {
	all := c.of(plan.Hold)
	passed := slices.DeleteFunc(slices.Clone(all), func(s Step) bool { return !s.excused })
	wait := slices.DeleteFunc(slices.Clone(all), func(s Step) bool { return !s.approvable || s.excused })
	stuck := slices.DeleteFunc(all, func(s Step) bool { return s.approvable || s.excused })
	return slices.Concat(
		c.steps("Held, and cannot be approved", "Headgate leaves these as they are until the commit changes or the obstacle is gone.", stuck),
		c.steps("Held", "Headgate leaves these as they are until a person acts.", wait),
		c.steps("Approved", "Without the approval, Headgate would hold these.", passed),
	)
}

// steps lists steps, with each reason only once.
func (c comment) steps(title, intro string, steps []Step) []section {
	return c.alike(title, intro, steps, func(s Step) string { return strings.Join([]string{string(s.Would), s.Reason, s.Error}, "\n") })
}

// alike lists steps in groups that have a key in common.
func (c comment) alike(title, intro string, steps []Step, key func(Step) string) []section {
	if len(steps) == 0 {
		return nil
	}
	return []section{{fmt.Sprintf("%s: %d", title, len(steps)), intro, itemsOf(groups(steps, key), c.step)}}
}

// step describes steps that have a reason in common.
func (c comment) step(alike []Step) string {
	var b strings.Builder
	s := alike[0]
	where := c.at(s.Origin)
	if s.placed {
		where = "" // the error names the place with its line
	}
	would := ""
	switch s.Would {
	case "":
	case plan.Prune:
		would = "would delete "
	default:
		would = fmt.Sprintf("would %s ", s.Would)
	}
	fmt.Fprintf(&b, "- %s%s%s%s", would, s.called(), s.by(), where)
	for i, s := range alike[1:] {
		if i+1 == mostInGroup {
			fmt.Fprintf(&b, " and %d more", len(alike)-mostInGroup)
			break
		}
		b.WriteString(", " + s.called())
	}
	b.WriteByte('\n')
	for _, message := range []string{s.Reason, s.Error} {
		if message != "" {
			fmt.Fprintf(&b, "  - %s\n", code(clip(message, mostSaid)))
		}
	}
	return b.String()
}

// at returns the place where an object is declared.
func (c comment) at(origin *manifest.Origin) string {
	if origin == nil {
		return ""
	}
	return " in " + c.place(*origin)
}

// place returns a place in the commit with a link to it.
func (c comment) place(origin manifest.Origin) string {
	url := ""
	if c.links.File != nil && c.Revision != "" && origin.Path != "" {
		url = c.links.File(c.Revision, origin.Path, origin.Line)
	}
	return linked(quoted(origin.String()), url)
}

// found lists the findings of some severities, the worst first.
func (c comment) found(of ...manifest.Severity) []section {
	found := slices.DeleteFunc(slices.Clone(c.Findings), func(f manifest.Finding) bool { return !slices.Contains(of, f.Severity) })
	slices.SortStableFunc(found, func(a, b manifest.Finding) int { return cmp.Compare(rank(a.Severity), rank(b.Severity)) })
	if len(found) == 0 {
		return nil
	}
	title := c.finding()
	if of[0] == manifest.Error {
		title = strings.Replace(title, "finding", "error", 1)
	}
	return []section{{title: fmt.Sprintf("%ss: %d", capital(title), len(found)), items: each(len(found), func(i int) string {
		f := found[i]
		text := fmt.Sprintf("- %s", f.Severity)
		if f.Origin.Path != "" {
			text += " " + c.place(f.Origin)
		}
		text += fmt.Sprintf(": %s\n", code(clip(f.Message, mostSaid)))
		if f.Fix != "" {
			text += fmt.Sprintf("  - %s\n", code(clip(f.Fix, mostSaid)))
		}
		return text
	})}}
}

// known counts the findings that the base has, too.
func (c comment) known() []section {
	if len(c.Known) == 0 {
		return nil
	}
	return []section{{title: fmt.Sprintf("Older findings: %d", len(c.Known)), intro: fmt.Sprintf("The target has %s already. `headgate lint` shows them.", bySeverity(c.Known))}}
}

// finding is the word for a finding of the comparison. Without a base, it is not known which are new.
func (c comment) finding() string {
	if c.repairs() {
		return "finding"
	}
	return "new finding"
}

func rank(s manifest.Severity) int {
	return slices.Index([]manifest.Severity{manifest.Error, manifest.Warning, manifest.Note}, s)
}

// differences returns the writing steps with their changes, folded, as many as fit. It groups steps with equal
// changes. It only counts steps that change nothing but descriptions or optional fields, because a provider upgrade
// changes two thousand CRDs like that.
func (c comment) differences(room int) (folded string, left int) {
	var b strings.Builder
	words, additions := 0, 0
	var shown []Step
	for _, s := range slices.Concat(c.Steps, c.Upgrades) {
		switch {
		case c.onlyBumps(s): // shown as a package upgrade
		case s.Error != "", s.Action == plan.Keep, s.Action == plan.Prune, s.Action == plan.Hold && s.Would != plan.Update:
		case s.Words:
			words++
		case s.Action == plan.Update && s.Added > 0 && len(s.Breaks) == 0:
			additions++
			shown = append(shown, s)
		default:
			shown = append(shown, s)
		}
	}
	if len(shown)+words > 0 {
		fmt.Fprintf(&b, "\n#### Differences: %d\n", len(shown)+words)
	}
	if additions > 0 {
		fmt.Fprintf(&b, "\n%s optional fields or versions; nothing breaks.\n", moreOf(additions, "definition gains", "definitions gain"))
	}
	if words > 0 {
		fmt.Fprintf(&b, "\n%s only in descriptions or in what generators write.\n", moreOf(words, "definition differs", "definitions differ"))
	}
	// Steps without details come first, optional fields last.
	slices.SortStableFunc(shown, func(a, b Step) int {
		return cmp.Or(cmp.Compare(min(len(a.Changes), 1), min(len(b.Changes), 1)), cmp.Compare(min(a.Added, 1), min(b.Added, 1)))
	})
	for _, alike := range groups(shown, func(s Step) string {
		return strings.Join(append(s.lines(), string(s.shownAction()), s.kind(1), s.Package), "\n")
	}) {
		block := c.difference(alike, room-b.Len())
		if b.Len()+len(block) > room {
			left += len(alike)
			continue
		}
		b.WriteString(block)
	}
	return b.String(), left
}

// onlyBumps reports whether a step only gives a package another version.
func (r Report) onlyBumps(s Step) bool {
	return len(s.Changes) == 1 && s.Changes[0].Path == "spec.package" && slices.ContainsFunc(r.Bumps, func(b plan.Bump) bool { return b.By == s.ID })
}

// The maximum size of a difference.
const (
	mostLines = 40  // lines per object
	mostLine  = 200 // characters per line
)

// lines returns the changes of a step as the lines of a diff.
func (s Step) lines() []string {
	var lines []string
	line := func(sign, path, value string) {
		if value != "" {
			lines = append(lines, sign+" "+clip(legible.Line(s.brief(path)+": "+withoutWords(path, value)), mostLine))
		}
	}
	for _, change := range s.Changes {
		if s.isDefinition() && isWords(change.Path) {
			continue
		}
		line("-", change.Path, change.From)
		line("+", change.Path, change.To)
	}
	return lines
}

// difference returns the common change of a group of steps.
func (c comment) difference(alike []Step, room int) string {
	s, lines := alike[0], alike[0].lines()
	if len(alike) == 1 && len(lines) == 0 {
		return fmt.Sprintf("\n- %s %s%s%s\n", s.shownAction(), s.called(), s.by(), c.at(s.Origin))
	}
	coded := func(name string) string {
		return "<code>" + escapeHTML(clip(legible.Line(name), mostQuoted)) + "</code>"
	}
	title, of := coded(s.name()), ""
	if s.Package != "" {
		of = " of " + coded(s.Package)
	}
	switch n := len(alike); {
	case n > 1 && len(lines) > 0:
		title = fmt.Sprintf("%d %s: %s and %d more%s, all in the same way", n, s.kind(n), title, n-1, of)
	case n > 1:
		title = fmt.Sprintf("%d %s: %s and %d more%s", n, s.kind(n), title, n-1, of)
	case s.isDefinition():
		title = s.kind(1) + " " + title + of
	}
	text := ""
	if n := len(lines); n > mostLines {
		lines = append(lines[:mostLines], fmt.Sprintf("… and %d more lines", n-mostLines))
	}
	if len(lines) > 0 {
		text = strings.Join(lines, "\n")
		fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
		text = fmt.Sprintf("\n%sdiff\n%s\n%s\n", fence, text, fence)
	}
	var names strings.Builder
	for i, s := range alike {
		if len(alike) == 1 {
			break
		}
		name := "- " + quoted(s.name())
		if s.Package == "" { // for a package, one line requests all of them
			name += c.at(s.Origin)
		}
		name += "\n"
		if names.Len()+len(name) > (room-len(text))/4 {
			fmt.Fprintf(&names, "- and %d more\n", len(alike)-i)
			break
		}
		names.WriteString(name)
	}
	if names.Len() > 0 {
		text += "\n" + names.String()
	}
	return fmt.Sprintf("\n<details><summary>%s %s</summary>\n%s\n</details>\n", s.shownAction(), title, text)
}

func (s Step) isDefinition() bool {
	return s.ID.IsCRD() || crossplane.IsMRD(s.ID) || crossplane.IsXRD(s.ID)
}

// kind returns the kind of n objects like this one, in the words of the report.
func (s Step) kind(n int) string {
	kind := "object"
	switch {
	case s.ID.IsCRD():
		kind = "CRD"
	case crossplane.IsMRD(s.ID):
		kind = "MRD"
	case crossplane.IsXRD(s.ID):
		kind = "XRD"
	}
	if n > 1 {
		kind += "s"
	}
	return kind
}

// name returns the name of an object. For a definition it omits the kind, which is shown next to it.
func (s Step) name() string {
	if s.isDefinition() {
		return s.ID.Name
	}
	return s.ID.String()
}

// called returns the quoted object of a step.
func (s Step) called() string {
	if s.isDefinition() {
		return s.kind(1) + " " + quoted(s.name())
	}
	return quoted(s.name())
}

// isWords reports whether a change of a definition concerns only descriptions.
func isWords(path string) bool {
	return strings.HasSuffix(path, ".description") || strings.HasPrefix(path, "metadata.annotations.controller-gen.kubebuilder.io/")
}

// brief returns the path of a change. For a definition, it omits the beginning that all of them share.
func (s Step) brief(path string) string {
	if !s.isDefinition() {
		return path
	}
	version, below, ok := strings.Cut(strings.TrimPrefix(path, "spec.versions["), "].")
	if !ok || version == path {
		return path
	}
	below, _ = strings.CutPrefix(below, "schema.openAPIV3Schema.")
	below = strings.TrimPrefix(strings.ReplaceAll(strings.ReplaceAll("."+below, ".properties.", "."), ".items.", "[]."), ".")
	return version + " " + below
}

// withoutWords returns a value as JSON. In a schema, it omits descriptions, which would leave no room for the rest.
func withoutWords(path, value string) string {
	if !strings.Contains(path, ".schema.openAPIV3Schema") || !strings.HasPrefix(value, "{") {
		return value
	}
	var schema map[string]any
	if json.Unmarshal([]byte(value), &schema) != nil {
		return value
	}
	dropDescriptions(schema)
	short, err := json.Marshal(schema)
	if err != nil {
		return value
	}
	return string(short)
}

// dropDescriptions removes the descriptions from a schema, but not a field with that name.
func dropDescriptions(schema map[string]any) {
	if _, ok := schema["description"].(string); ok {
		delete(schema, "description")
	}
	for _, value := range schema {
		if below, ok := value.(map[string]any); ok {
			dropDescriptions(below)
		}
	}
}

// The maximum number of quoted characters: in a name, and in a message.
const (
	mostQuoted = 300
	mostSaid   = 600
)

func quoted(s string) string { return code(clip(s, mostQuoted)) }

// clip shortens a text to a number of characters.
func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func moreOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
