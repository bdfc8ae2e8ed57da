package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// annotations returns the parts of a report with a place in the commit: findings, breaking changes, holds and failures.
// All breaking changes of a package are at the line that requests the package.
func annotations(r Report) []manifest.Finding {
	var all []manifest.Finding
	for _, f := range r.Findings {
		if f.Fix != "" {
			f.Message += "; " + f.Fix
		}
		all = append(all, f)
	}
	for _, s := range r.Steps {
		if s.Origin == nil {
			continue
		}
		say := func(rule string, severity manifest.Severity, message string) {
			all = append(all, manifest.Finding{Rule: rule, Severity: severity, Origin: *s.Origin, Message: s.ID.Name + ": " + message})
		}
		switch {
		case s.Error != "":
			say("fails", manifest.Error, s.Error)
		case s.Action == plan.Hold:
			say("held-"+strings.ReplaceAll(string(s.Guard), " ", "-"), manifest.Error, s.Reason)
		case len(s.Breaks) > 0 && s.active:
			for i, b := range s.Breaks {
				if i == mostChanges {
					break
				}
				say("schema-breaks", manifest.Warning, b.String())
			}
		}
	}
	lines := map[manifest.Origin]int{}
	for _, s := range r.Upgrades {
		rule, message := "", ""
		switch {
		case !s.active:
		case s.Action == plan.Keep:
			rule, message = "package-drops-kind", s.Reason
		case len(s.Breaks) > 0:
			rule, message = "schema-breaks", andOthers(merged(s.Breaks))
		}
		if lines[*s.Origin]++; rule == "" || lines[*s.Origin] > mostSteps {
			continue
		}
		all = append(all, manifest.Finding{Rule: rule, Severity: manifest.Warning, Origin: *s.Origin, Message: fmt.Sprintf("%s in %s: %s", s.ID.Name, s.Package, message)})
	}
	return all
}

// andOthers are the first of some texts, and how many more there are.
func andOthers(said []string) string {
	if n := len(said); n > mostChanges {
		said = append(slices.Clip(said[:mostChanges]), fmt.Sprintf("and %d more", n-mostChanges))
	}
	return strings.Join(said, ", ")
}

// WorkflowCommands writes the annotations of a report as workflow commands. The forge shows them beside the lines.
func WorkflowCommands(w io.Writer, r Report) error {
	levels := map[manifest.Severity]string{manifest.Error: "error", manifest.Warning: "warning", manifest.Note: "notice"}
	var b strings.Builder
	if r.Error != "" {
		fmt.Fprintf(&b, "::error::%s\n", command(r.Error))
	}
	for _, a := range annotations(r) {
		place := ""
		if a.Origin.Path != "" {
			place = fmt.Sprintf("file=%s,line=%d,", property(a.Origin.Path), max(a.Origin.Line, 1))
		}
		fmt.Fprintf(&b, "::%s %stitle=%s::%s\n", levels[a.Severity], place, property(a.Rule), command(clean(a.Message)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// command is a text in a command of a workflow; property is one among its properties.
func command(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(command(clean(s)))
}

// A quality is an issue of a Code Quality report.
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

// CodeQuality writes the annotations of a report as a Code Quality report, in JSON.
func CodeQuality(w io.Writer, r Report) error {
	levels := map[manifest.Severity]string{manifest.Error: "critical", manifest.Warning: "major", manifest.Note: "info"}
	all := []quality{}
	for _, a := range annotations(r) {
		if a.Origin.Path == "" {
			continue // it wants a place
		}
		q := quality{Description: clean(a.Message), CheckName: a.Rule, Severity: levels[a.Severity]}
		sum := sha256.Sum256([]byte(a.Rule + "\x00" + a.Origin.Path + "\x00" + a.Message)) // without the line: it moves
		q.Fingerprint = hex.EncodeToString(sum[:16])
		q.Location.Path, q.Location.Lines.Begin = a.Origin.Path, max(a.Origin.Line, 1)
		all = append(all, q)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(all)
}
