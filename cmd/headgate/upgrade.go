package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/reconcile/upgrade"

	"github.com/spf13/cobra"
)

func newUpgrade(t *terminal) *cobra.Command {
	var (
		to     = new(passFlags)
		show   = newView()
		exitOn = threshold{report.OnBlocked}
		live   bool
		wait   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "upgrade NAME VERSION [SOURCE] [flags]",
		Short: "Show what another version of a package would do, before a pull request proposes it",
		Long: `Upgrade previews a pull request that sets one package to VERSION. It changes the version in
the Provider, Configuration or Function, only in memory, and compares the result with the
commit. NAME is the name of that object, or the repository of its image or the last part of
it. The report is that of a preview.

Upgrade then lists the versions in between with their verdicts, so that you can choose a
smaller step. If there are many, it judges only the last patch of each minor version, and at
most eight, because it has to read them. With --offline, it judges the versions that it pulled
before. If a registry cannot be reached, Headgate tries again for --registry-timeout.

` + aboutSource + `

With --live, Headgate asks a cluster for counts, stored versions and what is active.

Exit codes, as in preview: 0 nothing that --exit-on names, 1 something that it names, 2 error.`,
		Example: `  headgate upgrade provider-upjet-gcp v3.0.0
  headgate upgrade provider-aws-s3 v2.6.1 ./clusters/prod -o markdown
  headgate upgrade provider-aws-s3 v2.6.1 --repo https://example.org/platform.git --offline`,
		Args: takes(2, 3, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := t.upgrade(cmd.Context(), to, live, wait, args)
			if isUsage(err) {
				return err
			}
			if err != nil {
				r = report.Failed(to.sync(), "", err)
			}
			r = r.On(exitOn.words())
			if err := errors.Join(err, t.report(show, r)); err != nil {
				return exit{exitDiffError, err}
			}
			return exitOf(r, exitOn.words())
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "ask the cluster for counts, stored versions and what is active already")
	addWait(cmd, &wait, "registry-timeout", time.Minute, "how long to try again if a registry cannot be reached")
	to.addTo(cmd)
	leaveOut(cmd, onApply...)
	show.addTo(cmd)
	exitOn.addTo(cmd)
	return cmd
}

func (t *terminal) upgrade(ctx context.Context, f *passFlags, live bool, wait time.Duration, args []string) (report.Report, error) {
	name, version := args[0], args[1]
	switch {
	case !upgrade.IsVersion(version):
		return report.Report{}, usagef("%q is not a version, as v1.2.3", version)
	case f.fields().Catalogue == v1alpha1.CatalogueLive && !live:
		return report.Report{}, usagef("--catalogue=live reads a cluster: add --live")
	}
	if err := f.comparesOnly(); err != nil {
		return report.Report{}, err
	}
	source, ref, err := t.source(&f.sourceFlags, args[2:])
	if err != nil {
		return report.Report{}, err
	}
	s, err := f.asSync()
	if err != nil {
		return report.Report{}, err
	}
	in := t.surroundings(&f.sourceFlags, source)
	in.Approvals = f.approvals(f.approve.given)
	if live {
		if in.Cluster, err = f.config(); err != nil {
			return report.Report{}, err
		}
	}
	p := &upgrade.Proposal{From: shown{source, t.progress}, Ref: ref}
	w, err := target.Wire(s, p, in, target.How{Cluster: t.showing(cluster.Options{}), Compares: true})
	if err != nil {
		return report.Report{}, err
	}
	t.atEnd = append(t.atEnd, w.Close)
	p.By, p.Tags = w.Reconciler, w.Tags
	result, err := reconcile.Retry(ctx, waitsWithin(wait), func(ctx context.Context) (report.Report, error) {
		if err := p.Find(ctx, name); err != nil {
			return report.Report{}, err
		}
		return p.To(ctx, version)
	})
	if err != nil {
		return result, err
	}
	versions, err := p.Versions(ctx, result, version)
	if err != nil { // the report covers only the requested version
		slog.Warn("the versions in between are not known", "error", err)
	}
	return result.WithVersions(versions), ctx.Err()
}
