package report

import (
	"fmt"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

func syncOf(name string) inventory.Sync { return inventory.Sync{Namespace: "ns", Name: name} }

// previewed returns the preview of a sync with some steps.
func previewed(name string, steps ...Step) Report {
	r := blank(syncOf(name), strings.Repeat("a", 40))
	r.Steps = steps
	r.Preview = &Preview{Base: strings.Repeat("b", 40), Untouched: len(steps) == 0}
	for _, s := range steps {
		r.Summary.count(s, false)
	}
	r.ask()
	return r.On(nil)
}

func breaking(name string) Step {
	return Step{
		Action: plan.Update, ID: id(name), active: true, rulings: []ruled{{guard.Schema, reason.MergeBreaks, plan.Block, 1, ""}}, claims: []approval.Ask{{Claim: approval.Claim{Guard: "schema", Wants: name}}},
		Breaks: []plan.SchemaChange{{Rule: "field-removed", Version: "v1", Path: "spec.size", Breaking: true}},
	}
}

func creating(name string) Step { return Step{Action: plan.Create, ID: id(name)} }

// many returns the reports of n syncs.
func many(n int, of func(name string) Report) []Report {
	var all []Report
	for i := range n {
		all = append(all, of(fmt.Sprintf("sync%03d", i)))
	}
	return all
}

func TestCombined(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		all      []Report
		missed   int
		status   Status
		headline string
	}{
		"One": {
			"The report on a single sync does not mention other syncs.", []Report{previewed("prod", breaking("buckets.example.org"))}, 0,
			Status{Failure, "Blocked: breaks 1 schema; 1 object"}, "⛔ Blocked: breaks 1 schema",
		},
		"None": {
			"A pull request that changes no sync passes, because the check may be required.", []Report{previewed("b"), previewed("a")}, 0,
			Status{Success, "Safe: nothing of any sync changes"}, "✅ Safe: nothing of any sync changes",
		},
		"OneOfMany": {
			"Only the sync with changes is named.", append(many(300, func(name string) Report { return previewed(name) }), previewed("prod", creating("a.example.org"))), 0,
			Status{Success, "Safe: changes 1 object in prod; 1 of 301 syncs changes"}, "✅ Safe: changes 1 object",
		},
		"WorstFirst": {
			"The worst verdict applies.", []Report{previewed("a", creating("a.example.org")), previewed("c"), previewed("b", breaking("buckets.example.org"))}, 0,
			Status{Failure, "Blocked: breaks 1 schema in b; 2 of 3 syncs change"}, "⛔ Blocked: breaks 1 schema in `b`; 1 more sync changes",
		},
		"Alike": {
			"Many syncs with the same changes are summarized.", many(300, func(name string) Report { return previewed(name, breaking("buckets.example.org")) }), 0,
			Status{Failure, "Blocked: breaks 1 schema in sync000, sync001, sync002, 297 more; 300 of 300 syncs change"}, "⛔ Blocked: breaks 1 schema in `sync000`, `sync001`, `sync002`, 297 more",
		},
		"Away": {
			"A sync that does not run is named, because its changes are not known. It does not block: the merge may repair the Sync.", []Report{previewed("a"), Away(syncOf("b"), "no service account")}, 0,
			Status{Success, "Look: cannot preview b: the Sync does not run: no service account; 0 of 2 syncs change"}, "👀 Look: is not previewed, because the Sync does not run",
		},
		"AwayBesideAChange": {
			"What is known is told as well.", []Report{previewed("a", creating("a.example.org")), Away(syncOf("b"), "no service account")}, 0,
			Status{Success, "Look: cannot preview b: the Sync does not run: no service account; 1 of 2 syncs changes"}, "👀 Look: cannot preview `b`: the Sync does not run: no service account; 1 more sync changes",
		},
		"Unrenderable": {
			"A sync that cannot be rendered does not hide the reports on the others.", []Report{previewed("a", breaking("buckets.example.org")), Failed(syncOf("b"), "", errBoom).On(nil)}, 0,
			Status{Error, "Blocked: cannot preview b: boom; 2 of 2 syncs change"}, "⛔ Blocked: cannot preview `b`: boom; 1 more sync changes",
		},
		"BrokenBefore": {
			"An error in another sync does not block a pull request if the base has the same error.",
			[]Report{previewed("a", creating("a.example.org")), Unrepaired(syncOf("b"), "", "", errBoom).On(nil)}, 0,
			Status{Success, "Safe: changes 1 object in a; 1 of 2 syncs changes"}, "✅ Safe: changes 1 object",
		},
		"Stopped": {
			"The reason for the stop is shown without a prefix.", []Report{previewed("a", breaking("buckets.example.org")), Failed(syncOf("b"), "", stoppedError{}).On(nil)}, 3,
			Status{Error, "Blocked: the preview was stopped: over the limit; 2 of 5 syncs change"}, "⛔ Blocked: cannot preview `b`: the preview was stopped: over the limit; 1 more sync changes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := Combine(tc.all)
			c.Missed = tc.missed
			if diff := cmp.Diff(tc.status, c.Status()); diff != "" {
				t.Errorf("%s\nStatus() (-want +got):\n%s", tc.reason, diff)
			}
			if got := c.Headline(); got != tc.headline {
				t.Errorf("%s\nHeadline() = %q, want %q", tc.reason, got, tc.headline)
			}
			output := c.Comment(65_536)
			if !strings.HasPrefix(output, "### "+tc.headline+"\n") || len(output) > 65_536 {
				t.Errorf("%s\n%s", tc.reason, output)
			}
			if n := visibleLines(output); n > mostVisible {
				t.Errorf("%d lines are visible:\n%s", n, output)
			}
			for _, r := range tc.all {
				if !r.touched() && strings.Contains(output, "`"+r.Sync.Name+"`") {
					t.Errorf("the comment names %s, which does not change:\n%s", r.Sync.Name, output)
				}
			}
			if tc.missed > 0 && !c.Status().WasStopped() {
				t.Errorf("the record is not found: %q", c.Status().Description)
			}
		})
	}
}

type stoppedError struct{}

func (stoppedError) Error() string { return PreviewStopped + "over the limit" }

// visibleLines counts the lines that are not folded.
func visibleLines(output string) int {
	n, deep := 0, 0
	for line := range strings.SplitSeq(output, "\n") {
		switch {
		case strings.HasPrefix(line, "<details>"):
			if deep == 0 {
				n++
			}
			deep++
		case line == "</details>":
			deep--
		case deep == 0 && line != "" && !strings.HasPrefix(line, "<!--"):
			n++
		}
	}
	return n
}

// Many syncs with different changes still leave room for the worst ones, and the others are counted.
func TestCombinedFits(t *testing.T) {
	for _, n := range []int{2, 5, 40, 300} {
		i := 0
		c := Combine(many(n, func(name string) Report {
			i++
			r := pull("x", 2+i%7)
			r.Sync, r.Judgement = syncOf(name), Judgement{}
			r.ask()
			return r.On(nil)
		}))
		for _, limit := range []int{32_768, 65_536} {
			output := c.Comment(limit)
			if len(output) > limit {
				t.Errorf("%d syncs: %d bytes are more than %d", n, len(output), limit)
			}
			if got := visibleLines(output); got > mostVisible {
				t.Errorf("%d syncs: %d lines are visible:\n%s", n, got, output[:3000])
			}
			if !strings.Contains(output, "sync000") {
				t.Errorf("%d syncs: the worst is not named", n)
			}
		}
	}
}

// One approval is enough for a pull request, and the list in the comment proves which steps it covers.
func TestCombinedApproval(t *testing.T) {
	a, b, other := previewed("a", breaking("buckets.example.org"), breaking("queues.example.org")), previewed("b", breaking("tables.example.org")), previewed("c", creating("x.example.org"))
	c := Combine([]Report{a, b, other})
	c.Target, c.Head = "main", strings.Repeat("e", 40)
	whole := c.Approval()
	if whole == nil || whole.Steps != 3 || len(whole.Each) != 3 {
		t.Fatalf("Approval() = %+v", whole)
	}
	output := c.Comment(65_536)
	if covered, _ := Covered(c.Digest(), "main", []string{output}); len(covered) != 3 || !strings.Contains(output, whole.Digest) {
		t.Errorf("the comment proves that the digest covers %q:\n%s", covered, output)
	}
	commands := Combine(c.Reports)
	commands.Target, commands.Head = c.Target, c.Head
	for i, r := range commands.Reports {
		preview := *r.Preview
		preview.Commands = true
		commands.Reports[i].Preview = &preview
	}
	for _, all := range []Combined{commands, {Reports: commands.Reports[:1], Target: "main", Head: c.Head}} {
		output := all.Comment(65_536)
		if covered, _ := Covered(all.Digest(), "main", []string{output}); !strings.Contains(output, "\n/headgate approve "+all.Digest()+" eeeeeee\n") || covered == nil {
			t.Errorf("the comment does not show the command:\n%s", output)
		}
	}
	if covered, _ := Covered(c.Digest(), "staging", []string{output}); covered != nil {
		t.Errorf("the approval of one target covers another one: %q", covered)
	}
	staging := c
	if staging.Target = "staging"; staging.Digest() == c.Digest() || staging.Covers(a, c.Digest()) != "" {
		t.Error("the approval of a pull request outlives a change of its target")
	}
	for _, tc := range []struct {
		reason string
		of     Report
		digest string
		want   string
	}{
		{"The digest of the pull request covers the first sync.", a, c.Digest(), a.Approval.Digest},
		{"The digest of the pull request covers the second sync.", b, c.Digest(), b.Approval.Digest},
		{"The digest of a sync is the same for every target.", b, b.Approval.Digest, ""},
		{"So is the digest of all syncs.", b, whole.Digest, ""},
		{"A sync that needs no approval is not covered.", other, c.Digest(), ""},
	} {
		if got := c.Covers(tc.of, tc.digest); got != tc.want {
			t.Errorf("%s Covers(%s) = %q, want %q", tc.reason, tc.of.Sync.Name, got, tc.want)
		}
	}
	for i, r := range c.Reports {
		if digest := c.Covers(r, c.Digest()); digest != "" {
			c.Reports[i] = r.Approve([]Approved{{Digests: []string{digest}, By: "@bob", How: []inventory.ApprovalPlace{inventory.InComment}}}).On(nil)
		}
	}
	if c = Combine(c.Reports); c.Status().State != Success || c.Asks() || c.Approval().Digest != whole.Digest || !strings.Contains(c.Comment(65_536), "by &#64;bob") {
		t.Errorf("approved: %+v\n%s", c.Status(), c.Comment(65_536))
	}
}

// Each sync has its own threshold for a failure.
func TestCombinedThresholds(t *testing.T) {
	strict := previewed("strict", creating("x.example.org")).On(Threshold{OnAny})
	lax := previewed("lax", breaking("buckets.example.org")).On(Threshold{OnNever})
	if got := Combine([]Report{lax, previewed("a")}).Status().State; got != Success {
		t.Errorf("the only sync that changes fails on nothing, and the status is %s", got)
	}
	if got := Combine([]Report{lax, strict}).Status().State; got != Failure {
		t.Errorf("a sync fails on any change, and the status is %s", got)
	}
}

// Names and errors from commits must not end a table cell or a fold.
func TestCombinedQuotes(t *testing.T) {
	hostile := "a|b</summary></details>\n<img src=x>`@all"
	bad := Failed(syncOf("b"), "", hostileError(hostile)).On(nil)
	output := Combine([]Report{bad, previewed("a", creating("x.example.org")), previewed("c", Step{Action: plan.Hold, Would: plan.Prune, Guard: "many", ID: manifest.ID{Kind: "X", Name: hostile}, Reason: hostile})}).Comment(65_536)
	fence := false
	for line := range strings.SplitSeq(output, "\n") {
		if strings.HasPrefix(line, "```") {
			fence = !fence
		}
		if fence {
			continue
		}
		if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 4 {
			t.Errorf("a row has more cells: %s", line)
		}
		if strings.HasPrefix(line, "<details>") && strings.Count(line, "</summary>") != 1 {
			t.Errorf("a text ends a fold: %s", line)
		}
		if strings.Contains(spans(line), "<img") || strings.Contains(spans(line), "@all") {
			t.Errorf("a text is Markdown: %s", line)
		}
	}
}

type hostileError string

func (e hostileError) Error() string { return string(e) }

// The reason comes from who wrote the Sync, and from its cluster: it is text, never Markdown, and it names nobody.
func TestAwayIsText(t *testing.T) {
	const why = "no [account](https://evil.example.org) <img src=x> @acme/admins\n# Approved"
	for _, all := range [][]Report{{Away(syncOf("b"), why)}, {previewed("a"), Away(syncOf("b"), why)}, {previewed("a", creating("a.example.org")), Away(syncOf("b"), why)}} {
		output := Combine(all).Comment(32_768)
		output = strings.ReplaceAll(output, "<summary><code>b</code>: the Sync does not run: no [account]", "") // HTML, in which this is no link
		for _, bad := range []string{"no [account]", "<img", "\n# ", "@acme"} {
			if strings.Contains(output, bad) {
				t.Errorf("%q in the comment on %d syncs:\n%s", bad, len(all), output)
			}
		}
		if !strings.Contains(output, "evil.example.org") {
			t.Errorf("the comment on %d syncs does not tell why:\n%s", len(all), output)
		}
	}
}
