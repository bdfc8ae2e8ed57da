package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"

	"github.com/spf13/cobra"
)

func newShrink(t *terminal) *cobra.Command {
	var (
		to      = new(passFlags)
		show    = newView()
		timeout time.Duration
		dryRun  bool
		restart bool
	)
	cmd := &cobra.Command{
		Use:   "shrink [SOURCE] [flags]",
		Short: "Take back active definitions that no policy names and nobody uses",
		Long: `Shrink closes the gate behind what was opened and is not used: of the definitions that are
active and that no policy names, neither of the commit nor of the cluster, it takes those back
of which no object exists. It does nothing else of what sync does. A Sync does the same by
itself with deactivation: WhenUnused.

In Crossplane, active is final. So each of them goes around that: its definition is deleted in a
way that leaves the CRD, Crossplane brings the definition back inactive, and then the CRD is
deleted if still nothing uses it. A later policy brings it back. What is interrupted goes on
where it was when shrink is run again. It is refused where a live policy names the definition,
where an object of it exists or that cannot be told, where no package revision controls it, and
of packages without safe-start. Where Headgate makes the CRDs, it prunes them.

More than --max-prunes are held until a person approves them: the report shows the digest.

A provider runs the controllers of what was taken back until it is started again. Shrink says
which; --restart does it.

` + aboutSource + ` Shrink wants one of them said.

` + exitCodes,
		Example: `  headgate shrink ./platform --dry-run
  headgate shrink ./platform --catalogue live --approve 3f786850e387550fdab836ed7e6dc881 --restart`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !to.given(args) {
				return usagef("say what is wanted: a directory, for example '.', or --repo")
			}
			if to.observable() {
				return usagef("a sync that only looks takes nothing back")
			}
			source, ref, err := t.source(&to.sourceFlags, args)
			if err != nil {
				return err
			}
			if err := to.named(cmd, source); err != nil && !dryRun {
				return err
			}
			to.spec.Deactivation = v1alpha1.DeactivationWhenUnused
			r, err := t.reconciler(to, source, cluster.Options{Timeout: timeout})
			if err != nil {
				return err
			}
			r.OnlyDeactivates = true
			pass := r.Run
			if dryRun {
				pass = r.Diff
			}
			if !dryRun {
				if err := t.announce("shrink", to.sync(), &to.clusterFlags); err != nil {
					return err
				}
			}
			done, err := pass(cmd.Context(), ref)
			if err != nil && dryRun {
				done = report.Failed(r.Sync, "", err)
			}
			if err == nil && restart && !dryRun {
				err = t.restart(cmd.Context(), to, done.Restarts)
			}
			return t.concluded(show, done, err)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be taken back")
	cmd.Flags().BoolVar(&restart, "restart", false, "restart the Deployments of the providers whose controllers run for what was taken back")
	to.addTo(cmd)
	addLapse(cmd, &timeout, "timeout", 15*time.Minute, "how long Crossplane may take to bring definitions back")
	show.addTo(cmd)
	return cmd
}

// restart restarts the Deployments of providers.
func (t *terminal) restart(ctx context.Context, to *passFlags, providers []plan.Restart) error {
	c, err := t.cluster(&to.clusterFlags, to.sync(), cluster.Options{})
	if err != nil {
		return err
	}
	var problems []error
	for _, r := range providers {
		namespace, name, known := strings.Cut(r.Deployment, "/")
		if !known {
			problems = append(problems, fmt.Errorf("nothing tells which Deployment runs the provider %s; restart it by hand", r.Package.Name))
			continue
		}
		problems = append(problems, c.Restart(ctx, namespace, name))
	}
	return errors.Join(problems...)
}
