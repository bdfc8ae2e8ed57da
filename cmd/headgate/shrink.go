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
		Short: "Deactivate unused definitions that no policy names any more",
		Long: `Shrink deactivates active definitions without objects that no policy of the commit or of the
cluster names. It does nothing else. With deactivation: WhenUnused in a Sync, every pass does the
same.

Crossplane never deactivates a definition. So Headgate deletes the definition in a way that
keeps the CRD, Crossplane creates the definition again, inactive, and Headgate deletes the
CRD if it is still unused. A later policy activates the definition again. An interrupted
shrink continues when you run it again. If Headgate makes the CRDs, it only prunes them.

Shrink refuses a definition that a live policy names, that has objects, whose objects cannot
be counted, or that no package revision controls, and definitions of packages without
safe-start.

More than --max-prunes are held until you approve them: the report shows the digest.

A provider runs the controllers of deactivated definitions until it restarts. Shrink names
it; --restart restarts it.

` + aboutSource + ` Specify SOURCE, --repo or --ref.

` + exitCodes,
		Example: `  headgate shrink ./platform --dry-run
  headgate shrink ./platform --catalogue live --approve 3f786850e387550fdab836ed7e6dc881 --restart`,
		Args: takes(0, 1, "--path names a directory below SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !to.given(args) {
				return usagef("name the commit: a directory, for example '.', or --repo")
			}
			if to.observable() {
				return usagef("a sync that only observes deactivates nothing")
			}
			source, ref, err := t.source(&to.sourceFlags, args)
			if err != nil {
				return err
			}
			if err := to.mayWrite(cmd, source); err != nil && !dryRun {
				return err
			}
			to.fields().Deactivation = v1alpha1.DeactivationWhenUnused
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
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be deactivated")
	cmd.Flags().BoolVar(&restart, "restart", false, "restart the Deployments of providers that still run controllers of deactivated definitions")
	to.addTo(cmd)
	addLapse(cmd, &timeout, "timeout", 15*time.Minute, "how long Crossplane may take to bring definitions back")
	addAudit(cmd, &to.audit, auditOfVerb, "")
	show.addTo(cmd)
	return cmd
}

// restart restarts the Deployments of providers.
func (t *terminal) restart(ctx context.Context, to *passFlags, providers []plan.Restart) error {
	c, err := t.cluster(&to.clusterFlags, to.sync())
	if err != nil {
		return err
	}
	var problems []error
	for _, r := range providers {
		namespace, name, known := strings.Cut(r.Deployment, "/")
		if !known {
			problems = append(problems, fmt.Errorf("the Deployment of the provider %s is not known; restart it by hand", r.Package.Name))
			continue
		}
		problems = append(problems, c.Restart(ctx, namespace, name))
	}
	return errors.Join(problems...)
}
