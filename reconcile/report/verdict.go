package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render/manifest"
)

// A State is the state of a commit status.
type State string

// The states, which every forge has under some name.
const (
	Pending State = "pending"
	Success State = "success"
	Failure State = "failure"
	Error   State = "error"
)

// A Status is one commit status: its state and a short description.
type Status struct {
	State       State  `json:"state"`
	Description string `json:"description"`
}

// A Verdict is the conclusion of a report. It alone decides the statuses of the commit and the exit code.
type Verdict struct {
	Activation Status `json:"activation"`
	Drift      Status `json:"drift"`
	ExitCode   int    `json:"exitCode"`
}

// The exit codes of a pass. A diff uses those of kubectl and flux.
const (
	ExitSuccess = 0
	ExitFailed  = 1 // something failed, or could not be determined
	ExitHeld    = 3 // something waits for a person
)

// verdict is the only mapping from a report to its statuses and exit code.
func verdict(r Report) Verdict {
	numbers := joined(r.prunesWait(), r.Summary.String())
	held, fresh := r.newlyHeld()
	finding := slices.IndexFunc(r.Findings, func(f manifest.Finding) bool { return f.Severity == manifest.Error })
	v := Verdict{Drift: drift(r)}
	switch {
	case r.Error != "":
		why := firstLine(r.Error)
		return Verdict{Activation: Status{Error, why}, Drift: Status{Error, why}, ExitCode: ExitFailed}
	case r.Summary.Failed > 0:
		v.Activation = Status{Failure, fmt.Sprintf("%d failed: %s; %s", r.Summary.Failed, r.first(func(s Step) bool { return s.Error != "" }), numbers)}
		v.ExitCode = ExitFailed
	case r.Summary.NotReady > 0:
		v.Activation = Status{Failure, fmt.Sprintf("%d not ready: %s; %s", r.Summary.NotReady, r.first(func(s Step) bool { return s.NotReady != "" }), numbers)}
		v.ExitCode = ExitFailed
	case r.Summary.Broken > 0:
		what := cmp.Or(r.unapplied(plan.Broken, ""), fmt.Sprintf("%d broken: %s", r.Summary.Broken, andMore(r.checked(plan.Broken))))
		v.Activation = Status{Failure, what + "; " + numbers}
		v.ExitCode = ExitFailed
	case finding >= 0:
		f := r.Findings[finding]
		v.Activation = Status{Failure, fmt.Sprintf("%s: %s", f.Origin, f.Message)}
		v.ExitCode = ExitFailed
	case len(r.Unread()) > 0: // for a comparison: unknown changes are not a success
		v.Activation = Status{Error, r.Unread()[0].Unknown}
		v.ExitCode = ExitFailed
	case fresh:
		v.Activation = Status{Failure, joined(held, numbers)}
	case r.Withheld() > 0:
		v.Activation = Status{Pending, joined(moreOf(r.Withheld(), "change waits", "changes wait")+": "+r.Suspended, numbers)}
	case r.Summary.Pending+r.Summary.Waiting > r.waitForHeld():
		what := cmp.Or(r.unapplied(plan.Pending, " yet"), fmt.Sprintf("%d pending: %s", r.Summary.Pending+r.Summary.Waiting, r.firstPending()))
		v.Activation = Status{Pending, what + "; " + numbers}
	case r.Summary.Held > 0:
		v.Activation = Status{Success, joined(r.stillHeld(), numbers)} // the commit that caused the hold has already failed
	default:
		v.Activation = Status{Success, numbers}
	}
	if r.Suspended != "" && r.Withheld() == 0 {
		v.Activation.Description = joined(v.Activation.Description, r.Suspended)
	}
	if r.Summary.Held > 0 && v.ExitCode == ExitSuccess {
		v.ExitCode = ExitHeld
	}
	if r.Applied && v.Drift.State == Failure && v.ExitCode == ExitSuccess {
		v.ExitCode = ExitHeld
	}
	return v
}

// drift returns the status for changes of other writers to applied objects. A pass corrects them, unless the sync
// only reports them.
func drift(r Report) Status {
	switch {
	case len(r.Fights) > 0:
		f := r.Fights[0]
		more := ""
		if n := len(r.Fights) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return Status{Failure, fmt.Sprintf("fight over %s%s: %s", f.ID.Name, more, words.OfFight(f))}
	case r.Summary.Reported > 0, r.Summary.Drifted > 0 && !r.Applied:
	case r.Summary.Corrected > 0:
		return Status{Success, fmt.Sprintf("%d corrected", r.Summary.Corrected)}
	default:
		return Status{Success, "no drift"}
	}
	var names []string
	for _, s := range r.Steps {
		if s.Cause == plan.Drift {
			names = append(names, s.ID.Name+by(s.TakesFrom))
		}
	}
	return Status{Failure, fmt.Sprintf("%d drifted: %s", r.Summary.Drifted, andMore(names))}
}

// by names field managers, if any are known.
func by(managers []string) string {
	if len(managers) == 0 {
		return ""
	}
	return " by " + strings.Join(managers, ", ")
}

// first names the first step that like accepts, and counts the others.
func (r Report) first(like func(Step) bool) string { return andMore(r.named(like)) }

func (r Report) named(like func(Step) bool) []string {
	var names []string
	for _, s := range r.Steps {
		if like(s) {
			names = append(names, s.ID.Name)
		}
	}
	return names
}

func (r Report) checked(state plan.EffectState) []string {
	var names []string
	for _, c := range r.Checks {
		if c.State == state {
			names = append(names, c.ID.Name)
		}
	}
	return names
}

// firstPending names a pending object. An object on which Crossplane is working precedes an object that waits for it.
func (r Report) firstPending() string {
	return andMore(append(r.checked(plan.Pending), r.named(func(s Step) bool { return s.Waits != "" && s.Error == "" })...))
}

// unapplied describes the objects that another tool has not applied, and names the tool. They cause everything else
// that is pending or broken. It returns "" if there are none.
func (r Report) unapplied(state plan.EffectState, yet string) string {
	var names []string
	who := ""
	for _, c := range r.Checks {
		if c.State == state && c.isUnapplied() {
			names = append(names, c.ID.Name)
			who = cmp.Or(who, c.By)
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case who == "":
		return fmt.Sprintf("%d not applied%s: %s", len(names), yet, andMore(names))
	}
	return fmt.Sprintf("%d not applied%s by %s: %s", len(names), yet, who, andMore(names))
}

func andMore(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// String returns the counts for a commit status: "43 active (+2), 2000 inactive, 1 kept", or the number of objects
// for a commit without definitions. Definitions of packages that could not be read are not known, and not 0.
func (c Summary) String() string {
	if unknown := c.unknown(); unknown != "" && c.Definitions == 0 {
		return unknown
	}
	var b strings.Builder
	if c.Definitions == 0 {
		fmt.Fprint(&b, manifest.Count(c.Created+c.Updated+c.Reported+c.Unchanged, "object"))
		return b.String()
	}
	fmt.Fprintf(&b, "%d active", c.Active)
	if c.Activated > 0 {
		fmt.Fprintf(&b, " (+%d)", c.Activated)
	}
	fmt.Fprintf(&b, ", %d inactive", c.Inactive)
	if c.Retained > 0 {
		fmt.Fprintf(&b, ", %d kept", c.Retained)
	}
	if unknown := c.unknown(); unknown != "" {
		b.WriteString(", " + unknown)
	}
	return b.String()
}

// unknown returns the text about packages that could not be read, or "".
func (c Summary) unknown() string {
	if c.Unknown == 0 {
		return ""
	}
	return "definitions of " + manifest.Count(c.Unknown, "package") + " not known"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
