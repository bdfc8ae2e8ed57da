package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// A Threshold lists the words on which a comparison fails. The zero value means OnBlocked.
type Threshold []string

// The words of a threshold.
const (
	OnAny      = "any"      // any change
	OnBlocked  = "blocked"  // the judgement is Blocked
	OnBreaking = "breaking" // a schema breaks, or a new version of a package drops a kind
	OnHolds    = "holds"    // a step is held
	OnErrors   = "errors"   // a finding is an error
	OnFindings = "findings" // a finding is an error or a warning
	OnNever    = "never"    // only on failures
)

// Thresholds returns the words of a threshold.
func Thresholds() []string {
	return []string{OnAny, OnBlocked, OnBreaking, OnHolds, OnErrors, OnFindings, OnNever}
}

// The exit codes of a comparison, which kubectl and flux use, too.
const (
	ExitDiffers   = 1 // something in the threshold occurred
	ExitDiffError = 2 // an error takes precedence
)

// ParseThreshold parses a comma-separated list of words.
func ParseThreshold(text string) (Threshold, error) {
	var t Threshold
	for word := range strings.SplitSeq(text, ",") {
		word = strings.ToLower(strings.TrimSpace(word))
		if !slices.Contains(Thresholds(), word) {
			return nil, fmt.Errorf("%q is not one of %s", word, strings.Join(Thresholds(), ", "))
		}
		t = append(t, word)
	}
	if slices.Contains(t, OnNever) && len(t) > 1 {
		return nil, fmt.Errorf("%s excludes every other word; specify it alone", OnNever)
	}
	return t, nil
}

// breakingCodes are the rulings on a schema that breaks, or on a kind that a new version of a package drops.
var breakingCodes = []reason.Code{
	reason.MergeBreaks, reason.MergeUnconverted, reason.MergeBreaksUnused, reason.MergeBreaksNoObject, reason.MergeBreaksStatus,
	reason.DropsKind, reason.DropsUnusedKind,
}

// Exits returns the exit code of a comparison. The status from On fails exactly if this code is not 0.
func (r Report) Exits(on Threshold) int {
	if len(on) == 0 {
		on = Threshold{OnBlocked}
	}
	held := slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Action == plan.Hold && !s.excused })
	breaks := slices.ContainsFunc(slices.Concat(r.Steps, r.Upgrades), func(s Step) bool { return s.gives(breakingCodes...) && !s.passes() })
	crossed := map[string]bool{
		OnAny:      r.Changes() || held,
		OnBlocked:  r.judgement().Word == Blocked,
		OnBreaking: breaks || r.blind(), // it may break
		OnHolds:    held || r.blind(),
		OnErrors:   len(r.errors()) > 0,
		OnFindings: slices.ContainsFunc(r.Findings, func(f manifest.Finding) bool { return f.Severity != manifest.Note }),
	}
	switch {
	case r.Error != "", r.Summary.Failed > 0, len(r.Unread()) > 0 && !slices.Contains(on, OnNever):
		return ExitDiffError
	case slices.ContainsFunc(on, func(word string) bool { return crossed[word] }):
		return ExitDiffers
	}
	return ExitSuccess
}

// On returns a comparison with its word, and with the exit code and the status for a threshold.
func (r Report) On(t Threshold) Report {
	r.Judgement = r.judgement()
	r.Verdict.ExitCode = r.Exits(t)
	r.Verdict.Activation = Status{Success, r.described()}
	switch {
	case r.Verdict.ExitCode == ExitSuccess:
	case r.Error != "", len(r.Unread()) > 0:
		r.Verdict.Activation.State = Error
	default:
		r.Verdict.Activation.State = Failure
	}
	return r
}

// judgement returns the judgement of a report. It computes the judgement if there is none yet, or if an error occurred since.
func (r Report) judgement() Judgement {
	if r.Judgement.Word != "" && r.Error == "" {
		return r.Judgement
	}
	return Judge(r)
}

// described returns the description for the status of a comparison.
func (r Report) described() string {
	message := r.Judgement.Word.title() + ": " + r.grounds()
	errors := r.errors()
	switch {
	case r.Error != "", len(r.Judgement.Because) == 0:
		return message
	case len(r.Unread()) > 0:
		return message + ": " + r.Unread()[0].Unknown
	case r.Judgement.Because[0].Cause == "errors":
		return fmt.Sprintf("%s: %s: %s", message, errors[0].Origin, errors[0].Message)
	}
	return message + "; " + r.Summary.String()
}

// grounds returns the grounds of the judgement in one line.
func (r Report) grounds() string { return r.firstGrounds(math.MaxInt) }

// firstGrounds describes the worst grounds up to a maximum, and counts the others.
func (r Report) firstGrounds(most int) string {
	var texts []string
	for _, g := range r.judgement().Because {
		texts = append(texts, g.Text)
	}
	switch {
	case len(texts) == 0:
		return nothingChanges
	case len(texts)-1 > most:
		texts = append(texts[:most], fmt.Sprintf("%d more effects", len(texts)-most))
	}
	return strings.Join(texts, ", ")
}

const nothingChanges = "nothing of this sync changes"
