package main

import (
	"fmt"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
)

func newDestroy(t *terminal) *cobra.Command {
	var (
		in      clusterFlags
		of      syncFlags
		approve approveFlag
		show    = newView()
		s       v1alpha1.Sync
		timeout time.Duration
		orphan  bool
		dryRun  bool
		yes     bool
	)
	cmd := &cobra.Command{
		Use: "destroy [flags]",

		SuggestFor: []string{"delete", "uninstall"},

		Short: "Delete everything that a sync applied, in reverse order",
		Long: `Destroy deletes what a sync applied and then its inventory. It needs no commit. On a terminal it
names the cluster and asks before it begins; --yes answers, and is needed where there is no
terminal. --dry-run shows what it would do. It begins with what was applied last, and goes
on with what that needs only when it is gone. What a guard holds, as a CRD that somebody
has objects of, stays, and so does all that comes after it; what is held says why. What an
annotation keeps out of prunes stays too, without the marks of the sync. Managed resources,
XRs and claims are held with a digest beside them: --approve lets exactly those go. An
interrupted destroy is taken up by the next one. The namespace of the inventory is never
deleted.

With --orphan nothing is deleted but the inventory: all objects stay as they are, and are
nobody's.

` + exitCodes,
		Example: `  headgate destroy --name prod --dry-run
  headgate destroy --name prod
  headgate destroy --name prod --yes
  headgate destroy --name prod --approve 3f786850e387550fdab836ed7e6dc881
  headgate destroy --name prod --orphan --yes -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Namespace, s.Name = of.namespace, of.name
			over := target.Surroundings{Approvals: approve.given}
			var err error
			if over.Cluster, err = in.config(); err != nil {
				return err
			}
			r, err := t.wire(s, nil, over, cluster.Options{Timeout: timeout})
			if err != nil {
				return err
			}
			how, end := plan.Delete, r.Destroy
			if orphan {
				how = plan.Orphan
			}
			if dryRun {
				end = r.Destruction
			}
			if !dryRun {
				if err := t.announce("destroy", of.sync(), &in); err != nil {
					return err
				}
			}
			if !dryRun && !yes {
				question := fmt.Sprintf("Delete everything that %s applied?", of.sync())
				if orphan {
					question = fmt.Sprintf("Release everything that %s applied?", of.sync())
				}
				if err := t.confirm(question, "destroy asks before it begins, and there is no terminal; specify --yes, or look with --dry-run"); err != nil {
					return err
				}
			}
			done, err := end(cmd.Context(), how)
			if err != nil && dryRun {
				done = report.Failed(r.Sync, "", err)
			}
			return t.concluded(show, done, err)
		},
	}
	cmd.Flags().BoolVar(&orphan, "orphan", false, "leave all objects, and take the marks of the sync from them")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be done, and exit as destroy would")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	in.addTo(cmd)
	of.addTo(cmd)
	approve.addTo(cmd)
	instances, owner := target.OptionOf("instances"), target.OptionOf("crd-owner")
	instances.Usage = "managed resources, XRs and claims, whose deletion reaches the cloud"
	owner.Usage = "who makes the CRDs of definitions, where the inventory and the cluster disagree"
	optionFlag{instances, &s.Spec}.addTo(cmd)
	optionFlag{owner, &s.Spec}.addTo(cmd)
	addLapse(cmd, &timeout, "timeout", 5*time.Minute, "how long what was deleted may take to be gone, for each step of the order")
	show.addTo(cmd)
	return cmd
}
