package main

import (
	"fmt"
	"time"

	"headgate.dev/headgate/reconcile/install"

	"github.com/spf13/cobra"
)

func newUninstall(t *terminal) *cobra.Command {
	var (
		in        clusterFlags
		namespace string
		with      bool
		dryRun    bool
		yes       bool
		noWait    bool
		timeout   time.Duration
	)
	cmd := &cobra.Command{
		Use:   "uninstall [flags]",
		Short: "Remove the controller, and keep what it applied",
		Long: `Uninstall deletes the controller, its rights and its admission policies. Everything that Syncs
applied stays, with their inventories; so do the Syncs, and their CRD. After another 'headgate
install' they go on where they stopped. Without Syncs, the CRD is deleted, too. The namespace stays.
Uninstall ends when the API server has removed what it deleted.

With --delete-syncs, Uninstall first deletes the Syncs that this installation runs, while its controller
still runs: a Sync with deletionPolicy Delete deletes what it applied, and the others leave it. If a
guard holds a deletion, Uninstall names the Sync and the reason, and the installation stays.

Uninstall does not begin while a Sync is being deleted, because only the controller can finish
that, or if the objects belong to a release of Helm.

Exit codes: 0 removed, 1 an error, 2 wrong usage.`,
		Example: `  headgate uninstall --dry-run
  headgate uninstall
  headgate uninstall -n headgate-team-a --delete-syncs --yes`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			run, err := t.installer(&in)
			if err != nil {
				return err
			}
			run.Timeout, run.NoWait, run.DryRun = timeout, noWait, dryRun
			found, err := run.Removal(cmd.Context(), namespace, with)
			if err != nil {
				return err
			}
			if !dryRun && !yes {
				question := fmt.Sprintf("Remove the installation in the namespace %s of %s?", namespace, &in)
				if with {
					question = fmt.Sprintf("Delete %d Syncs, and remove the installation in the namespace %s of %s?", len(found.Syncs), namespace, &in)
				}
				if err := t.confirm(question, "uninstall asks before it begins, and there is no terminal; specify --yes, or look with --dry-run"); err != nil {
					return err
				}
			}
			if err := run.Uninstall(cmd.Context(), found, with); err != nil {
				return err
			}
			return t.tell(found.Kept(with))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&namespace, "namespace", "n", install.DefaultNamespace, "namespace of the installation")
	flags.BoolVar(&with, "delete-syncs", false, "delete the Syncs of the installation first")
	flags.BoolVar(&dryRun, "dry-run", false, "only list the objects")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&noWait, "no-wait", false, "do not wait until Pods and the CRD are gone")
	addLapse(cmd, &timeout, "timeout", 5*time.Minute, "how long to wait until Syncs, Pods, or the CRD are gone")
	in.addTo(cmd)
	return cmd
}
