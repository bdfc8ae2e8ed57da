package main

import (
	"context"
	"errors"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/report"

	"github.com/spf13/cobra"
)

func newDiff(t *terminal) *cobra.Command {
	var (
		to     = new(passFlags)
		show   = newView()
		exitOn = threshold{report.OnAny}
	)
	cmd := &cobra.Command{
		Use: "diff [SOURCE | BASE HEAD | ./DIRECTORY ./DIRECTORY] [flags]",

		SuggestFor: []string{"plan"},

		Short: "Show what sync would change in a cluster, or what changes between two commits or directories",
		Long: `Diff SOURCE shows what sync would do to the cluster, with the API server's own answer to
every write, and writes nothing. If another tool applies the commit, use
--management-policy=observable: it compares without dry runs, and needs only rights to read.

Diff BASE HEAD shows what changes between two commits of --repo, or of the repository
around the working directory. It needs no cluster. Each is a branch, a tag, a commit, or an
ancestor such as main~1 or HEAD^2. Diff also compares two directories. A name that is both a
directory and a commit means the commit; a path that begins with ./, ../ or / is a directory.

` + aboutSource + `

Exit codes: 0 no change, 1 changes, 2 error; an error beats changes. --exit-on takes
words separated by commas: any (change), blocked, breaking, holds, errors (new ones), findings
(new errors or warnings), or never. A new version of a package that cannot be read is an
error. A comparison of commits or directories is safe, look or blocked, as a preview is.`,
		Example: `  headgate diff ./platform
  headgate diff main HEAD
  headgate diff main~1 main
  headgate diff ./staging ./production
  headgate diff v1.4.0 main --repo https://example.org/platform.git -o markdown`,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return refs(cmd), cobra.ShellCompDirectiveDefault // and directories
		},
		Args: takes(0, 2, "--repo names the repository of two commits, and --path a directory of both"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := t.diff(cmd.Context(), to, args)
			if isUsage(err) {
				return err
			}
			if err != nil {
				r = report.Failed(to.sync(), "", err)
			}
			if len(args) == 2 {
				r = r.On(exitOn.words())
			}
			if err := errors.Join(err, t.report(show, r)); err != nil {
				return exit{exitDiffError, err}
			}
			return exitOf(r, exitOn.words())
		},
	}
	to.addTo(cmd)
	show.addTo(cmd)
	exitOn.addTo(cmd)
	return cmd
}

func (t *terminal) diff(ctx context.Context, to *passFlags, args []string) (report.Report, error) {
	if len(args) == 2 {
		if to.fields().Catalogue == v1alpha1.CatalogueLive {
			return report.Report{}, usagef("BASE HEAD are compared without a cluster, and --catalogue=live reads one")
		}
		if err := to.comparesOnly(); err != nil {
			return report.Report{}, err
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
	source, ref, err := t.source(&to.sourceFlags, args)
	if err != nil {
		return report.Report{}, err
	}
	r, err := t.reconciler(to, source, cluster.Options{TryCreates: true})
	if err != nil {
		return report.Report{}, err
	}
	return r.Diff(ctx, ref)
}

// exitOf returns the exit of a comparison: code 1 if the report crosses the threshold.
func exitOf(r report.Report, on report.Threshold) error {
	if code := r.Exits(on); code != report.ExitSuccess {
		return exit{code: code}
	}
	return nil
}

// A threshold is the value of --exit-on.
type threshold []string

func (t *threshold) words() report.Threshold { return report.Threshold(*t) }
func (t *threshold) String() string          { return strings.Join(*t, ",") }
func (t *threshold) Type() string            { return "words" }

func (t *threshold) Set(text string) error {
	words, err := report.ParseThreshold(text)
	if err == nil {
		*t = threshold(words)
	}
	return err
}

// addTo registers the flag so that shells can complete its words.
func (t *threshold) addTo(cmd *cobra.Command) {
	cmd.Flags().Var(t, "exit-on", "exit with code 1 for one or more of: "+strings.Join(report.Thresholds(), ", "))
	// It can only fail for a flag that does not exist, or that was registered twice.
	_ = cmd.RegisterFlagCompletionFunc("exit-on", cobra.FixedCompletions(report.Thresholds(), cobra.ShellCompDirectiveNoFileComp))
}
