package main

import (
	"context"
	"errors"
	"slices"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

func newDiff(t *terminal) *cobra.Command {
	var (
		to     = new(passFlags)
		show   = newView()
		exitOn = oneOf("any", "holds", "findings", "never")
	)
	cmd := &cobra.Command{
		Use: "diff [SOURCE | BASE HEAD | ./DIRECTORY ./DIRECTORY] [flags]",

		SuggestFor: []string{"plan"},

		Short: "Show what sync would change in a cluster, or what changes between two commits or directories",
		Long: `Diff SOURCE shows what sync would do to the cluster, with the API server's own answer to
every write, and writes nothing. With --management-policy=observable, where another tool
applies, it shows how the cluster differs without dry runs: rights to read are enough.

Diff BASE HEAD shows what changes between two commits of --repo, or of the repository
around the working directory. It needs no cluster. Each is a branch, a tag, a commit, or an
ancestor such as main~1 or HEAD^2. Diff also compares two directories; write them as paths
that begin with ./, ../ or /, so that they are not read as branches.

` + aboutSource + `

Exit codes: 0 no change, 1 changes, 2 error; an error beats changes. --exit-on says what
counts: any change, holds, findings that are errors or warnings, or never. That a package
changes which cannot be read is an error.`,
		Example: `  headgate diff ./platform
  headgate diff main HEAD
  headgate diff main~1 main
  headgate diff ./staging ./production
  headgate diff v1.4.0 main --repo https://example.org/platform.git -o markdown`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := t.diff(cmd.Context(), to, args)
			if isUsage(err) {
				return err
			}
			if err != nil {
				r = report.Failed(to.sync(), "", err)
			}
			if err := errors.Join(err, t.report(show, r)); err != nil {
				return exit{exitDiffError, err}
			}
			return diffCode(r, exitOn.value)
		},
	}
	to.addTo(cmd)
	show.addTo(cmd)
	exitOn.addTo(cmd, "exit-on", "", "exit with code 1 for")
	return cmd
}

func (t *terminal) diff(ctx context.Context, to *passFlags, args []string) (report.Report, error) {
	if len(args) == 2 {
		if to.spec.Catalogue == v1alpha1.CatalogueLive {
			return report.Report{}, usagef("BASE HEAD are compared without a cluster, and --catalogue=live reads one")
		}
		source, err := t.compared(&to.sourceFlags, args)
		if err != nil {
			return report.Report{}, err
		}
		r, err := t.offline(to, source)
		if err != nil {
			return report.Report{}, err
		}
		return r.Compare(ctx, args[0], args[1])
	}
	source, ref, err := t.source(&to.sourceFlags, args) //nolint:contextcheck // at most it looks whether a name is a commit, in files
	if err != nil {
		return report.Report{}, err
	}
	r, err := t.reconciler(to, source, cluster.Options{TryCreates: true})
	if err != nil {
		return report.Report{}, err
	}
	return r.Diff(ctx, ref)
}

// diffCode is what a diff exits with.
func diffCode(r report.Report, on string) error {
	troubled := slices.ContainsFunc(r.Findings, func(f manifest.Finding) bool { return f.Severity != manifest.Note })
	held := slices.ContainsFunc(r.Steps, func(s report.Step) bool { return s.Action == plan.Hold })
	switch {
	case r.Summary.Failed > 0, len(r.Unread()) > 0 && on != "never":
		return exit{code: exitDiffError}
	case on == "any" && (r.Changes() || held),
		on == "holds" && held,
		on == "breaking" && len(r.Breaking())+len(r.Dropped()) > 0,
		on == "findings" && troubled:
		return exit{code: exitChanges}
	}
	return nil
}
