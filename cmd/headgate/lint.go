package main

import (
	"slices"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/report"
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
It refuses what diff refuses because of the commit alone: annotations of Headgate that cannot
be read, and what an API server refuses of metadata, CRDs, policies and definitions, whoever
makes the CRDs. Broken YAML in a file that nothing else decodes is refused by lint only.
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
			found, err := r.Lint(cmd.Context(), ref)
			if err != nil {
				return err
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

// lintCode is what lint exits with: 1 where a finding is at least so severe.
func lintCode(found []manifest.Finding, least string) error {
	order := []string{string(manifest.Error), string(manifest.Warning), string(manifest.Note)}
	counts := order[:slices.Index(order, least)+1] // of never: none
	if slices.ContainsFunc(found, func(f manifest.Finding) bool { return slices.Contains(counts, string(f.Severity)) }) {
		return exit{code: 1}
	}
	return nil
}
