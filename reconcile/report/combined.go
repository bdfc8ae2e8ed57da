package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A Combined holds the previews of one pull request for every sync that follows its target branch. It has one comment
// and one status.
type Combined struct {
	Reports []Report // at least one; Combine sorts them, the worst first
	Links   Links
	Missed  int // syncs that were not previewed, because the preview of another one was stopped

	OfHead    *Status // the status of the head, if other pull requests with this head count, too
	Undecided bool    // another pull request that counts is not previewed yet, so the head has no new status

	// The target branch and the head of the pull request, if it has a comment. An approval in that comment counts only for these.
	Target, Head string
}

// Combine combines the reports of one pull request. Of a report that the pull request does not change, it keeps only
// the verdict, so that hundreds of syncs do not need the memory of hundreds of catalogues.
func Combine(all []Report) Combined {
	c := Combined{Reports: slices.Clone(all)}
	for i, r := range c.Reports {
		if len(all) > 1 && !r.touched() {
			c.Reports[i] = Report{
				APIVersion: r.APIVersion, Kind: r.Kind, Sync: r.Sync, Revision: r.Revision, Verdict: r.Verdict, Summary: r.Summary,
				Judgement: r.Judgement, Preview: &Preview{Base: r.base(), Live: r.Preview.Live, Untouched: true},
			}
		}
	}
	slices.SortStableFunc(c.Reports, func(a, b Report) int {
		return cmp.Or(cmp.Compare(b.urgency(), a.urgency()), a.Sync.Compare(b.Sync))
	})
	return c
}

// urgency is the sort key of the reports of a pull request.
func (r Report) urgency() int {
	switch {
	case r.Verdict.Activation.WasStopped():
		return 6 // the status stores that the preview was stopped
	case !r.touched():
		return 0
	case r.Error != "":
		return 5
	case r.away():
		return 3
	}
	return map[Word]int{Safe: 1, Look: 2, Blocked: 4}[r.judgement().Word]
}

// touched reports whether the pull request changes anything for a sync. An error in both the base and the head is no change.
func (r Report) touched() bool { return r.Preview == nil || !r.Preview.Untouched }

func (r Report) base() string {
	if r.Preview == nil {
		return ""
	}
	return r.Preview.Base
}

// Touched returns the reports of the syncs that the pull request changes.
func (c Combined) Touched() []Report {
	return slices.DeleteFunc(slices.Clone(c.Reports), func(r Report) bool { return !r.touched() })
}

// one returns the report that represents all of them: the only report, or that of the only sync that changes.
func (c Combined) one() (Report, bool) {
	if len(c.Reports) == 1 {
		return c.Reports[0], true
	}
	touched := c.Touched()
	if len(touched) == 1 && c.Missed == 0 {
		return touched[0], true
	}
	return Report{}, false
}

// Word returns the judgement on the pull request, which is the worst of all syncs.
func (c Combined) Word() Word {
	if r, ok := c.one(); ok {
		return r.judgement().Word
	}
	word := Safe
	for _, r := range c.Touched() {
		if badness := r.judgement().Word; badness == Blocked || word == Safe {
			word = badness
		}
	}
	return word
}

// Status returns the status of the head. It fails if a sync that the pull request changes fails by its own threshold.
func (c Combined) Status() Status {
	if c.OfHead != nil {
		return *c.OfHead
	}
	if len(c.Reports) == 1 {
		return c.Reports[0].Verdict.Activation
	}
	touched := c.Touched()
	if len(touched) == 0 {
		return Status{Success, Safe.title() + ": " + nothingOfAny}
	}
	worst := touched[0].Verdict.Activation
	for _, r := range touched[1:] {
		if state := r.Verdict.Activation.State; severity(state) > severity(worst.State) {
			worst.State = state
		}
	}
	count := fmt.Sprintf("; %s", c.count())
	if worst.WasStopped() { // this description must remain at the beginning
		return Status{worst.State, worst.Description + count}
	}
	first := alikeReports(touched)[0]
	return Status{worst.State, fmt.Sprintf("%s: %s%s", c.Word().title(), first.sentence(plainName, legible.Line), count)}
}

// severity orders states.
func severity(s State) int { return slices.Index([]State{Success, Pending, Failure, Error}, s) }

const nothingOfAny = "nothing of any sync changes"

// count describes how many syncs change.
func (c Combined) count() string {
	changes := changing(c.Touched())
	message := fmt.Sprintf("%d of %s", changes, manifest.Count(len(c.Reports)+c.Missed, "sync"))
	if changes == 1 {
		return message + " changes"
	}
	return message + " change"
}

// changing counts the syncs that a pull request is known to change.
func changing(touched []Report) int {
	return len(slices.DeleteFunc(slices.Clone(touched), Report.away))
}

// A bundle groups syncs that a pull request changes in the same way, as far as one line describes the change.
type bundle struct {
	word    Word
	text    string
	failed  bool // no preview could be made
	reports []Report
}

// alikeReports groups reports in their order.
func alikeReports(all []Report) []bundle {
	var bundles []bundle
	for _, r := range all {
		why, text := r.unmade(), r.firstGrounds(mostGrounds)
		if why != "" {
			text = clip(legible.Line(why), mostInPoint)
		}
		word := r.judgement().Word
		i := slices.IndexFunc(bundles, func(b bundle) bool { return b.word == word && b.text == text })
		if i < 0 {
			i, bundles = len(bundles), append(bundles, bundle{word: word, text: text, failed: why != ""})
		}
		bundles[i].reports = append(bundles[i].reports, r)
	}
	return bundles
}

// names lists the syncs of a bundle.
func (b bundle) names(as func(inventory.Sync) string) string {
	names := make([]string, len(b.reports))
	for i, r := range b.reports {
		names[i] = as(r.Sync)
	}
	return someOf(names, mostNamed)
}

// sentence describes what the syncs of a bundle have in common.
func (b bundle) sentence(as func(inventory.Sync) string, quote func(string) string) string {
	if b.failed {
		return "cannot preview " + b.names(as) + ": " + quote(b.text)
	}
	return quote(b.text) + " in " + b.names(as)
}

func plainName(s inventory.Sync) string { return s.Name }

func codeName(s inventory.Sync) string { return code(s.Name) }

// Approval returns the approval for everything that blocks the pull request. Its one digest covers the digests of all
// syncs: a person writes it once, and every cluster finds its own digests in the list in the comment. It is nil if
// nothing can be approved.
func (c Combined) Approval() *plan.Approval {
	var all plan.Approval
	var digests []string
	for _, r := range c.Reports {
		if r.Approval == nil {
			continue
		}
		all.Steps += r.Approval.Steps
		all.Guards = append(all.Guards, r.Approval.Guards...)
		all.Claims = append(all.Claims, r.Approval.Claims...)
		if len(r.Approval.Each) > 0 {
			digests = append(digests, r.Approval.Each...)
		} else {
			digests = append(digests, r.Approval.Digest)
		}
	}
	if len(digests) == 0 {
		return nil
	}
	slices.Sort(all.Guards)
	all.Guards = slices.Compact(all.Guards)
	slices.Sort(digests)
	digests = slices.Compact(digests)
	if all.Digest, all.UpTo = approval.DigestOf(digests), approval.Total(all.Claims); len(digests) > 1 {
		all.Each = digests
	}
	return &all
}

// Digest returns the digest with which a comment approves everything that blocks the pull request, or "". It depends on the target.
func (c Combined) Digest() string {
	a := c.Approval()
	switch {
	case a == nil:
		return ""
	case c.Target == "":
		return a.Digest
	}
	return approval.Into(c.Target, shown(a))
}

// Covers returns the digest with which an approval of the pull request approves what blocks one of its syncs, or ""
// if the approval is for something else.
func (c Combined) Covers(of Report, digest string) string {
	if of.Approval == nil || digest == "" || digest != c.Digest() {
		return ""
	}
	return of.Approval.Digest
}

// Command returns the line of a comment that approves everything that blocks the pull request. It names the head, because the comment
// with the preview is edited in place.
func (c Combined) Command() string {
	return strings.TrimRight(fmt.Sprintf("/headgate approve %s %.7s", c.Digest(), c.Head), " ")
}

// Asks reports whether something that can be approved still blocks the pull request.
func (c Combined) Asks() bool { return slices.ContainsFunc(c.Reports, Report.Asks) }

// Headline returns the judgement in one line of Markdown.
func (c Combined) Headline() string {
	if r, ok := c.one(); ok {
		return comment{Report: r}.headline()
	}
	touched := c.Touched()
	if len(touched) == 0 {
		return looksOf[Safe] + ": " + nothingOfAny
	}
	bundles := alikeReports(touched)
	first := bundles[0]
	message := fmt.Sprintf("%s: %s", looksOf[first.word], first.sentence(codeName, escape))
	if n := changing(touched) - changing(first.reports); n > 0 {
		message += "; " + moreOf(n, "more sync changes", "more syncs change")
	}
	return message
}

// Comment returns the comment on the pull request within a limit in bytes. It names only the syncs that the pull
// request changes, the worst first. It has at most mostVisible lines, and folds the details of each sync.
func (c Combined) Comment(limit int) string {
	r, alone := c.one()
	list, tooMany := c.list(limit / 2)
	c.Links.command, c.Links.list = c.Command(), list+tooMany
	switch {
	case alone && c.Missed > 0:
		return commentOf(r, limit, c.missed(), c.Links)
	case alone && len(c.Reports) == 1:
		return commentOf(r, limit, "", c.Links)
	case alone:
		return commentOf(r, limit, "Nothing of "+moreOf(len(c.Reports)-1, "other sync changes.", "other syncs changes."), c.Links)
	}
	touched := c.Touched()
	if len(touched) == 0 {
		return fmt.Sprintf("### %s\n\n%s\n", c.Headline(), c.about())
	}
	list += tooMany
	visible := c.visible(touched, (limit-len(list))/3)
	glossary := glossaryOf(visible)
	const reserve = 400 // for the text about omitted details
	room := limit - len(visible) - len(glossary) - len(list) - reserve
	return visible + c.folds(touched, room) + glossary + list
}

// folds returns the folded details of as many syncs as fit. Syncs that change in the same way share them.
func (c Combined) folds(touched []Report, room int) string {
	var bodies, titles []string
	names := map[string][]string{}
	used := 0
	for i, r := range touched {
		share := max((room-used)/(len(touched)-i), min(leastOfSync, room-used))
		body := c.detailsOf(r, share)
		if names[body] == nil {
			if used += len(body) + 2*mostLine; used > room {
				left := len(touched) - i
				bodies = append(bodies, fmt.Sprintf("\n%s not shown in detail: there is no more room here. `headgate preview -o markdown` shows all.\n", moreOf(left, "sync is", "syncs are")))
				titles = append(titles, "")
				break
			}
			bodies, titles = append(bodies, body), append(titles, clip(legible.Line(alikeReports([]Report{r})[0].text), mostLine))
		}
		names[body] = append(names[body], "<code>"+escapeHTML(r.Sync.Name)+"</code>")
	}
	var b strings.Builder
	for i, body := range bodies {
		if titles[i] == "" {
			b.WriteString(body)
			continue
		}
		fmt.Fprintf(&b, "\n<details><summary>%s: %s</summary>\n%s\n</details>\n", someOf(names[body], mostNamed), escapeHTML(titles[i]), body)
	}
	return fmt.Sprintf("\n<details><summary>Sync by sync</summary>\n%s\n</details>\n", b.String())
}

// leastOfSync is the number of bytes that the details of each sync may have, the worst sync first, before any get more.
const leastOfSync = 4000

// about describes what was compared.
func (c Combined) about() string {
	of := c.Reports[0]
	if i := slices.IndexFunc(c.Reports, func(r Report) bool { return r.Preview != nil && r.Preview.Base != "" }); i >= 0 {
		of = c.Reports[i] // the worst report may have no comparison
	}
	message := "Headgate previewed " + manifest.Count(len(c.Reports), "sync") + " that follow this branch. " + comment{Report: of}.compared()
	if c.Missed > 0 {
		message += " " + c.missed()
	}
	return message + c.Links.run()
}

func (c Combined) missed() string {
	return moreOf(c.Missed, "more sync was", "more syncs were") + " not previewed, because a preview of this head was stopped."
}

// visible returns the part that is not folded: the headline, the table of syncs, and the most important points of the worst sync.
func (c Combined) visible(touched []Report, bytes int) string {
	var top, bottom strings.Builder
	fmt.Fprintf(&top, "### %s\n\n%s\n", c.Headline(), c.about())
	c.approve(&bottom)
	bundles := alikeReports(touched)
	fmt.Fprint(&top, "\n| sync | | what changes |\n|---|---|---|\n")
	for i, b := range bundles {
		if i == mostRows {
			n := 0
			for _, rest := range bundles[i:] {
				n += len(rest.reports)
			}
			fmt.Fprintf(&top, "| %s | | |\n", moreOf(n, "more", "more"))
			break
		}
		fmt.Fprintf(&top, "| %s | %s | %s |\n", cell(b.names(codeName)), strings.ReplaceAll(looksOf[b.word], " ", "&nbsp;"), cell(escape(b.text)))
	}
	if n := len(c.Reports) - len(touched); n > 0 {
		fmt.Fprintf(&top, "\nNothing of %s.\n", moreOf(n, "other sync changes", "other syncs changes"))
	}
	worst := comment{Report: touched[max(0, slices.IndexFunc(touched, func(r Report) bool { return r.Error == "" }))], links: c.Links}
	left := mostVisible - 2 - linesOf(top.String()) - linesOf(bottom.String())
	if points := worst.points(); left > 3 && len(points) > 0 {
		fmt.Fprintf(&top, "\n**%s:**\n%s", codeName(worst.Sync), listed(points, room{left - 1, bytes - top.Len() - bottom.Len()}))
	}
	return top.String() + bottom.String()
}

// mostRows is the maximum number of rows in the table of syncs.
const mostRows = 8

// cell escapes a text for a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// approve explains how to approve what blocks the pull request.
func (c Combined) approve(b *strings.Builder) {
	var given []string
	for _, r := range c.Reports {
		for _, a := range r.Approvals {
			if a.Digests = nil; !slices.Contains(given, a.short()) {
				given = append(given, a.short())
			}
		}
	}
	for _, message := range given[:min(len(given), mostApprovals)] {
		fmt.Fprintf(b, "\n%s.\n", escape(capital(message)))
	}
	if !c.Asks() {
		return
	}
	all := Report{Approval: c.Approval(), Preview: &Preview{Commands: true}}
	for _, r := range c.Reports {
		if r.Asks() && r.Preview != nil {
			all.Preview.Commands = all.Preview.Commands && r.Preview.Commands
			all.Preview.Reviews = all.Preview.Reviews || r.Preview.Reviews
			all.Preview.Listed = all.Preview.Listed || r.Preview.Listed
		}
	}
	all.askFor(b, c.Command())
}

// short describes who approved, and where.
func (a Approved) short() string {
	if a.By == "" {
		return "approved " + a.ways()
	}
	return "approved by " + a.By + " " + a.ways()
}

// detailsOf returns the details of one sync within about so many bytes.
func (c Combined) detailsOf(r Report, bytes int) string {
	of := comment{Report: r, links: c.Links}
	body := of.moved() + listed(of.points(), room{mostVisible, bytes / 3})
	body += written(of.sections(), bytes-len(body))
	if r.Error != "" {
		body = "\n" + fenced(clip(r.Error, 4000)) + "\n"
	}
	changes, left := of.differences(bytes - len(body) - 200)
	if left > 0 {
		changes += fmt.Sprintf("\n%s not shown.\n", moreOf(left, "difference is", "differences are"))
	}
	return body + changes
}

// Explain returns in Markdown what the previews show about a definition, by sync if they differ.
func (c Combined) Explain(name string) string {
	if len(c.Reports) == 1 {
		return Explain(c.Reports[0], name)
	}
	var texts []string
	names := map[string][]string{}
	for _, r := range c.Touched() {
		if name != "" && len(definitionsCalled(r, name)) == 0 {
			continue
		}
		text := Explain(r, name)
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], codeName(r.Sync))
	}
	if len(texts) == 0 {
		return fmt.Sprintf("No sync that this changes has a definition called %s.", quoted(name))
	}
	for i, text := range texts[:min(len(texts), mostExplained)] {
		texts[i] = "In " + someOf(names[text], mostNamed) + ": " + text
	}
	return strings.Join(texts[:min(len(texts), mostExplained)], "\n\n")
}

// list returns the invisible line of a comment with the digests that its one digest covers, so that clusters learn what an approval
// covers, or a text if they are too many.
func (c Combined) list(room int) (list, tooMany string) {
	a := c.Approval()
	if a == nil || c.Target == "" {
		return "", ""
	}
	list = "\n" + listMark + c.Digest() + ": " + strings.Join(shown(a), " ") + " -->\n"
	if len(list) > room || len(shown(a)) > mostListed {
		return "", "\nToo many changes block this to list their digests here, so an approval in a comment does not reach clusters. Approve them in `" + render.ApprovalsFile + "`.\n"
	}
	return list, ""
}

// shown returns the digests of the claims that an approval covers, with their amounts, and of the images.
func shown(a *plan.Approval) []string {
	if len(a.Each) > 0 {
		return approval.Show(a.Each, a.Claims)
	}
	return approval.Show([]string{a.Digest}, a.Claims)
}
