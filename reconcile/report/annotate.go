package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/manifest"
)

// annotations returns the findings to show next to the lines of the commit, the worst first. A finding that belongs
// to no line, such as the memory estimate, has no path.
func annotations(r Report) []manifest.Finding {
	all := slices.Concat(r.annotatedJudgement(), located(r.Error))
	for _, f := range r.Findings {
		if f.Fix != "" {
			f.Message += "; " + f.Fix
		}
		all = append(all, f)
	}
	all = append(all, r.annotatedSteps()...)
	all = append(all, r.annotatedUpgrades()...)
	all = append(all, r.annotatedOpenings()...)
	if r.Preview != nil && r.Preview.Memory.Differs() {
		all = append(all, manifest.Finding{Rule: "memory", Severity: manifest.Note, About: manifest.About{}, Message: r.Preview.Memory.String()})
	}
	slices.SortStableFunc(all, func(a, b manifest.Finding) int { return rank(a.Severity) - rank(b.Severity) })
	return all
}

// annotatedJudgement returns the judgement on a comparison with the words of its headline.
func (r Report) annotatedJudgement() []manifest.Finding {
	if r.Judgement.Word == "" {
		return nil
	}
	severity := map[Word]manifest.Severity{Safe: manifest.Note, Look: manifest.Warning, Blocked: manifest.Error}[r.Judgement.Word]
	return []manifest.Finding{{Rule: "judgement", Severity: severity, About: manifest.About{}, Message: r.Judgement.Word.title() + ": " + r.grounds()}}
}

var withPlace = regexp.MustCompile(`^([^\s:]+):(\d+): (.+)$`)

// located splits an error into its lines, each with the place at its beginning.
func located(text string) []manifest.Finding {
	if text == "" {
		return nil
	}
	var all []manifest.Finding
	for line := range strings.SplitSeq(text, "\n") {
		f := manifest.Finding{Rule: "error", Severity: manifest.Error, About: manifest.About{}, Message: line}
		if m := withPlace.FindStringSubmatch(line); m != nil {
			f.Origin.Path, f.Message = m[1], m[3]
			f.Origin.Line, _ = strconv.Atoi(m[2])
		}
		f.About.Subject = f.Message
		all = append(all, f)
	}
	return all
}

// annotatedSteps returns failures, holds, breaking changes and deletions.
func (r Report) annotatedSteps() []manifest.Finding {
	var all []manifest.Finding
	deletes := 0
	for _, s := range r.Steps {
		say := func(rule string, severity manifest.Severity, message string) {
			f := manifest.Finding{Rule: rule, Severity: severity, About: manifest.About{Object: s.ID}, Message: s.ID.Name + ": " + message}
			if s.Origin != nil {
				f.Origin = *s.Origin
			}
			all = append(all, f)
		}
		switch {
		case s.Error != "":
			say("fails", manifest.Error, s.Error)
		case s.Action == plan.Hold:
			say("held-"+strings.ReplaceAll(string(s.Guard), " ", "-"), manifest.Error, s.Reason)
		case s.Action == plan.Prune && !s.Deleting:
			if deletes++; deletes <= mostSteps {
				say("deletes", manifest.Warning, fmt.Sprintf("the %s is deleted", s.ID.Kind))
			}
		}
		if s.active && len(s.Breaks) > 0 {
			say("schema-breaks", manifest.Warning, someOf(merged(s.Breaks), mostChanges))
		}
		if s.active && len(s.noticed()) > 0 {
			say("schema-changes", manifest.Note, someOf(merged(s.noticed()), mostChanges))
		}
	}
	if deletes > mostSteps {
		all = append(all, manifest.Finding{Rule: "deletes", Severity: manifest.Warning, About: manifest.About{}, Message: fmt.Sprintf("%d more objects are deleted", deletes-mostSteps)})
	}
	return all
}

// annotatedUpgrades returns what new versions of packages break or drop, at the lines that request the packages.
func (r Report) annotatedUpgrades() []manifest.Finding {
	var all []manifest.Finding
	lines := map[manifest.Origin]int{}
	for _, s := range r.Upgrades {
		rule, message, severity := "", "", manifest.Warning
		switch {
		case !s.active:
		case s.Action == plan.Keep:
			rule, message = "package-drops-kind", s.Reason
		case len(s.Breaks) > 0:
			rule, message = "schema-breaks", someOf(merged(s.Breaks), mostChanges)
		case len(s.noticed()) > 0:
			rule, message, severity = "schema-changes", someOf(merged(s.noticed()), mostChanges), manifest.Note
		}
		if rule == "" {
			continue
		}
		if lines[*s.Origin]++; lines[*s.Origin] > mostSteps {
			continue
		}
		all = append(all, manifest.Finding{Rule: rule, Severity: severity, Origin: *s.Origin, About: manifest.About{Object: s.ID}, Message: fmt.Sprintf("%s in %s: %s", s.ID.Name, s.Package, message)})
	}
	return all
}

// annotatedOpenings returns the definitions that become active, grouped by the pattern that activates them.
func (r Report) annotatedOpenings() []manifest.Finding {
	if r.Preview == nil {
		return nil
	}
	var all []manifest.Finding
	for _, g := range opened(r.Preview.Opens) {
		f := manifest.Finding{Rule: "activates", Severity: manifest.Note, Origin: g.by.Origin, About: manifest.About{Subject: g.cause()}}
		if !g.inFull() {
			f.Severity = manifest.Warning
		}
		f.Message = fmt.Sprintf("%s activates %s, which cannot be undone: %s", g.cause(), manifest.Count(len(g.names), "definition"), someOf(g.names, mostChanges))
		all = append(all, f)
	}
	return all
}

// An openings group holds definitions that become active for the same reason.
type openings struct {
	by    activation.Activator
	names []string
}

// opened groups definitions that become active by the first reason of each, the largest group first.
func opened(opens []Opening) []openings {
	var all []openings
	index := map[string]int{}
	for _, o := range opens {
		var by activation.Activator
		if len(o.Because) > 0 {
			by = o.Because[0]
		}
		for _, a := range o.Because { // a full name is the more specific reason
			if a.InFull(o.Name) {
				by = a
				break
			}
		}
		key := fmt.Sprint(by.Cause, by.Policy, by.Package, by.Pattern, by.Origin)
		i, known := index[key]
		if !known {
			i = len(all)
			index[key] = i
			all = append(all, openings{by: by})
		}
		all[i].names = append(all[i].names, o.Name)
	}
	slices.SortStableFunc(all, func(a, b openings) int { return len(b.names) - len(a.names) })
	return all
}

// inFull reports whether each definition of the group is named in full.
func (g openings) inFull() bool {
	return !slices.ContainsFunc(g.names, func(name string) bool { return !g.by.InFull(name) })
}

// cause describes what activates the group.
func (g openings) cause() string {
	switch g.by.Cause {
	case activation.Matched:
		return fmt.Sprintf("%q of policy %s", g.by.Pattern, g.by.Policy)
	case activation.MatchedInCluster:
		return fmt.Sprintf("%q of policy %s in the cluster", g.by.Pattern, g.by.Policy)
	case activation.NoSafeStart:
		return fmt.Sprintf("package %s, which has no safe-start,", g.by.Package)
	}
	return "spec.state"
}

// someOf lists the first names and counts the others.
func someOf(names []string, most int) string {
	if len(names) > most {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}

// WorkflowCommands writes the annotations of a report as workflow commands, which the forge shows next to the lines.
func WorkflowCommands(w io.Writer, r Report) error {
	levels := map[manifest.Severity]string{manifest.Error: "error", manifest.Warning: "warning", manifest.Note: "notice"}
	var b strings.Builder
	for _, a := range annotations(r) {
		place := ""
		if a.Origin.Path != "" {
			place = fmt.Sprintf("file=%s,line=%d,", property(a.Origin.Path), max(a.Origin.Line, 1))
		}
		fmt.Fprintf(&b, "::%s %stitle=%s::%s\n", levels[a.Severity], place, property(a.Rule), command(legible.Line(a.Message)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// command escapes a text for a workflow command; property escapes one for the properties of a command.
func command(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(command(legible.Line(s)))
}

// A quality is one issue of a Code Quality report.
type quality struct {
	Description string `json:"description"`
	CheckName   string `json:"check_name"`
	Fingerprint string `json:"fingerprint"`
	Severity    string `json:"severity"`
	Location    struct {
		Path  string `json:"path"`
		Lines struct {
			Begin int `json:"begin"`
		} `json:"lines"`
	} `json:"location"`
}

// CodeQuality writes the annotations of a report as a Code Quality report in JSON. Each issue of that format needs a
// path, so an annotation without a file is at the root of the repository.
func CodeQuality(w io.Writer, r Report) error {
	levels := map[manifest.Severity]string{manifest.Error: "critical", manifest.Warning: "major", manifest.Note: "info"}
	all := []quality{}
	found := annotations(r)
	ids := fingerprints(found)
	for i, a := range found {
		q := quality{Description: legible.Line(a.Message), CheckName: a.Rule, Fingerprint: ids[i], Severity: levels[a.Severity]}
		q.Location.Path, q.Location.Lines.Begin = cmp.Or(legible.Line(a.Origin.Path), "."), max(a.Origin.Line, 1)
		all = append(all, q)
	}
	return WriteJSON(w, all)
}

// fingerprints identify annotations across commits: by their identities, numbered where several have the same.
func fingerprints(all []manifest.Finding) []string {
	texts := make([]string, len(all))
	seen := map[manifest.Identity]int{}
	for i, a := range all {
		id := a.Identity()
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d", id.Rule, id.Object, id.Field, id.Subject, seen[id]))
		texts[i] = hex.EncodeToString(sum[:16])
		seen[id]++
	}
	return texts
}
