package main

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/lint"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

func newLint(t *terminal) *cobra.Command {
	var (
		from   sourceFlags
		how    renderFlags
		format = withAnnotations("text", "json")
		exitOn = oneOf("warning", "error", "note", "never")
	)
	cmd := &cobra.Command{
		Use: "lint [SOURCE] [flags]",

		SuggestFor: []string{"validate"},

		Short: "Say what is wrong with a commit, and what will not work",
		Long: `Lint reads all of a commit, also what is inactive, and says what is wrong with it: what
cannot be read or made, patterns that do not do what they seem to, and Compositions and
managed resources that use a kind which no policy activates, with the line of the policy
that would. What it cannot read, as programs in the inputs of functions, it says in a note.
What packages of registries hold counts, at the line that installs them: they are pulled, as
by render, unless --offline is said.

` + aboutSource + `

Exit codes: 0 nothing, 1 findings, 2 wrong usage. --exit-on says which findings count.`,
		Example: `  headgate lint ./platform
  headgate lint --ref HEAD -o json
  headgate lint ./platform --exit-on error`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, ref, err := t.source(&from, args)
			if err != nil {
				return err
			}
			s, err := how.rendering()
			if err != nil {
				return err
			}
			r, err := t.wire(s, source, t.surroundings(&from, source), cluster.Options{})
			if err != nil {
				return err
			}
			want, err := r.Render(cmd.Context(), ref)
			problems, ofCommit := errors.AsType[catalogue.Errors](err)
			if err != nil && !ofCommit {
				return err
			}
			found := slices.Concat(asFindings(problems), linted(want))
			if err := want.Nothing(); err != nil && len(found) == 0 {
				found = append(found, manifest.Finding{Rule: "nothing-declared", Severity: manifest.Error, Origin: manifest.Origin{Path: cmp.Or(want.Source.Path, ".")}, Message: err.Error()})
			}
			t.progress.Stop()
			if err := t.lint(found, format.value); err != nil {
				return err
			}
			return lintCode(found, exitOn.value)
		},
	}
	from.addTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	exitOn.addTo(cmd, "exit-on", "", "the least finding that exits with code 1")
	how.addTo(cmd)
	return cmd
}

// lint writes findings to standard output.
func (t *terminal) lint(found []manifest.Finding, format string) error {
	if format == "json" {
		if found == nil {
			found = []manifest.Finding{}
		}
		return t.json(map[string]any{"apiVersion": "headgate.dev/v1alpha1", "kind": "Findings", "findings": found})
	}
	if annotate, ok := forge.Annotators()[format]; ok {
		return annotate(t.out, report.Report{Findings: found})
	}
	return report.Text{Colour: t.coloured(t.outTTY())}.Findings(t.out, found)
}

// linted are the findings of a commit that can be rendered, and what is wrong with definitions
// that are inactive, which nothing else decodes.
func linted(want render.Desired) []manifest.Finding {
	found := slices.Concat(asFindings(want.Problems()), want.Findings, lint.Coverage(want))
	for _, d := range want.Definitions {
		if d.Active || d.Document == nil || d.Package.Pulled() { // whoever published that has to know
			continue
		}
		if _, err := d.Declared(); err != nil {
			found = append(found, asFindings(catalogue.ErrorsOf(d.Origin(), err))...)
		}
	}
	slices.SortFunc(found, manifest.Finding.Compare)
	return slices.Compact(found)
}

func asFindings(problems catalogue.Errors) []manifest.Finding {
	var found []manifest.Finding
	for _, p := range problems {
		found = append(found, manifest.Finding{
			Rule: "unusable", Severity: manifest.Error, Origin: p.Origin, Message: strings.TrimPrefix(p.Error(), p.Origin.String()+": "),
		})
	}
	return found
}

// lintCode is what lint exits with: 1 where a finding is at least so severe.
func lintCode(found []manifest.Finding, least string) error {
	order := []string{string(manifest.Error), string(manifest.Warning), string(manifest.Note)}
	counts := order[:slices.Index(order, least)+1] // of never: none
	if slices.ContainsFunc(found, func(f manifest.Finding) bool { return slices.Contains(counts, string(f.Severity)) }) {
		return exit{code: 1}
	}
	return nil
}
