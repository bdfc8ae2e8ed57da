package main

import (
	"slices"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/check"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

func newLint(t *terminal) *cobra.Command {
	var (
		from   sourceFlags
		how    renderFlags
		of     syncFlags
		file   fileFlags
		format = withAnnotations("text", "json")
		exitOn = oneOf("warning", "error", "note", "never")
	)
	cmd := &cobra.Command{
		Use: "lint [SOURCE] [flags]",

		SuggestFor: []string{"validate"},

		Short: "Check a commit for errors, and for what will not work",
		Long: `Lint reads all of a commit, inactive definitions included, and reports what is wrong: files
that cannot be read, objects that the API server would refuse, patterns that do not match
what they seem to, and objects, Compositions and programs of functions that use a kind which
no policy activates, with the line of the policy that would. It only searches a program for
the kinds that its text names. A note lists each program, and what it cannot read.

Objects are checked against the CRDs, definitions and XRDs of the commit, as the API server
does, and against the kinds of Kubernetes and of Crossplane. With --kubernetes-version, what
that release does not serve is an error; otherwise, it is a warning. --crossplane-version
selects the CRDs of Crossplane; an XRD is also checked by the CRDs that Crossplane makes from
it. The summary counts the objects that were not checked, or not completely, and why.

Lint refuses everything that diff refuses because of the commit alone. It also refuses broken
YAML in files that no other verb decodes. It pulls the packages that the commit installs
from their registries, as render does, unless --offline is set.

With --file it also refuses what a Sync does not allow: allowedKinds, references and
activation.allow.

` + aboutSource + `

Exit codes: 0 nothing, 1 findings, 2 wrong usage. --exit-on selects the findings that count.`,
		Example: `  headgate lint ./platform
  headgate lint --ref HEAD -o json
  headgate lint ./platform --exit-on error
  headgate lint ./teams/shop -f sync.yaml --name team-shop`,
		Args: takes(0, 1, "--path names a directory below SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, _, ref, err := t.reading(&from, args, &how, file.fromFile)
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
			return lintCode(found.Findings, exitOn.value)
		},
	}
	from.addTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	exitOn.addTo(cmd, "exit-on", "", "the lowest severity that exits with code 1")
	how.addTo(cmd)
	cmd.Flags().StringVar(&of.name, "name", "", "with --file: the `name` of the Sync, if the file holds several")
	file.addTo(cmd, &of, &from.path)
	return cmd
}

// lint writes findings to standard output.
func (t *terminal) lint(linted reconcile.Linted, format string) error {
	found := linted.Findings
	if format == "json" {
		if found == nil {
			found = []manifest.Finding{}
		}
		return t.json(struct {
			APIVersion string             `json:"apiVersion"`
			Kind       string             `json:"kind"`
			Findings   []manifest.Finding `json:"findings"`
			NotChecked check.Omissions    `json:"notChecked,omitempty"`
		}{"headgate.dev/v1alpha1", "Findings", found, linted.NotChecked})
	}
	if annotate, ok := annotators()[format]; ok {
		return annotate(t.out, report.Report{Findings: found})
	}
	return report.Text{Colour: t.coloured(t.outTTY())}.Findings(t.out, found, linted.NotChecked)
}

// lintCode returns exit code 1 if a finding has at least the severity least.
func lintCode(found []manifest.Finding, least string) error {
	order := []string{string(manifest.Error), string(manifest.Warning), string(manifest.Note)}
	counts := order[:slices.Index(order, least)+1] // of never: none
	if slices.ContainsFunc(found, func(f manifest.Finding) bool { return slices.Contains(counts, string(f.Severity)) }) {
		return exit{code: 1}
	}
	return nil
}
