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
		record  string
	)
	cmd := &cobra.Command{
		Use: "destroy [flags]",

		SuggestFor: []string{"delete"},

		Short: "Delete everything that a sync applied, in reverse order",
		Long: `Destroy deletes what a sync applied, in reverse order, and then its inventory. It needs no
commit. On a terminal it names the cluster and asks first; without a terminal it needs
--yes. --dry-run shows what it would do. Each step begins after the one before is complete.

Destroy keeps what a guard holds, such as a CRD that has custom resources, and everything
that this depends on, and reports the reason. It also keeps objects whose annotation
prevents prunes, and removes the marks of the sync from them. Managed resources, XRs and
claims are held with a digest: --approve deletes exactly those. An interrupted destroy
continues when you run it again. Destroy never deletes the namespace of the inventory.

Destroy a sync before you remove Crossplane or a provider. Their finalizers keep objects
until they have deleted what is behind them, and Destroy never removes a finalizer of theirs.
If they are gone already, install them again, or remove the finalizers by hand: what is in the
cloud then stays, and nothing manages it.

With --orphan, Headgate deletes only the inventory: all objects stay, without an owner.

` + exitCodes,
		Example: `  headgate destroy --name prod --dry-run
  headgate destroy --name prod
  headgate destroy --name prod --yes
  headgate destroy --name prod --approve 3f786850e387550fdab836ed7e6dc881
  headgate destroy --name prod --orphan --yes -o json`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.Namespace, s.Name = of.namespace, of.name
			over := target.Surroundings{Approvals: approve.given}
			var err error
			if over.Cluster, err = in.config(); err != nil {
				return err
			}
			if over.Audit, err = t.audit(record); err != nil {
				return err
			}
			r, err := t.wire(s, nil, over, cluster.Options{Timeout: timeout})
			if err != nil {
				return err
			}
			how, end := plan.Destroying, r.Destroy
			if orphan {
				how = plan.Orphaning
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
	cmd.Flags().BoolVar(&orphan, "orphan", false, "keep all objects, and remove the marks of the sync from them")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would happen, with the exit code of destroy")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	in.addTo(cmd)
	of.addTo(cmd)
	approve.addTo(cmd)
	instances, owner := target.OptionOf("instances"), target.OptionOf("crd-owner")
	instances.Usage = "managed resources, XRs and claims, whose deletion reaches the cloud"
	owner.Usage = "the tool that creates the CRDs of definitions, if inventory and cluster disagree"
	optionFlag{instances, &s.Spec}.addTo(cmd)
	optionFlag{owner, &s.Spec}.addTo(cmd)
	addLapse(cmd, &timeout, "timeout", 5*time.Minute, "how long each step of the order may take until its objects are gone")
	addAudit(cmd, &record, auditOfVerb, "")
	show.addTo(cmd)
	return cmd
}
