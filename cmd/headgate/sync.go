package main

import (
	"time"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/report"

	"github.com/spf13/cobra"
)

func newSync(t *terminal) *cobra.Command {
	var (
		to      = new(passFlags)
		show    = newView()
		timeout time.Duration
		noWait  bool
		dryRun  bool
	)
	cmd := &cobra.Command{
		Use: "sync [SOURCE] [flags]",

		SuggestFor: []string{"apply", "reconcile"},

		Short: "Apply a commit to a cluster, once",
		Long: `Sync makes one pass: it renders the commit, compares it with the cluster and with what this
sync applied before, applies what differs, prunes what left the commit, and waits until the
applied objects are ready. Guards hold prunes and updates that could destroy something, and
report the reason; the rest of the pass goes on. Some holds have a digest: --approve lets
exactly these steps through.

A sync applies one source: one path of one branch of one repository. Sync refuses another
source under the same name and writes nothing; --take-over with the name of the previous
source accepts it, once. A directory that is in no Git repository needs a --name.

With --management-policy=observable it writes nothing and waits until another tool has
applied the commit. An object that is not applied after --timeout is a failure that names the tool;
an edit in the cluster is drift.

` + aboutSource + ` Specify SOURCE, --repo or --ref.

` + exitCodes,
		Example: `  headgate sync ./platform
  headgate sync --repo https://example.org/platform.git --path clusters/prod --name prod
  headgate sync ./platform --dry-run`,
		Args: takes(0, 1, "--path names a directory below SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !to.given(args) {
				return usagef("name the commit to sync: a directory, for example '.', or --repo")
			}
			source, ref, err := t.source(&to.sourceFlags, args)
			if err != nil {
				return err
			}
			if err := to.mayWrite(cmd, source); err != nil && !dryRun {
				return err
			}
			if to.fromFile != nil && !cmd.Flags().Changed("timeout") {
				timeout = 0 // the Sync has its own timeout
			}
			r, err := t.reconciler(to, source, cluster.Options{Timeout: timeout, NoWait: noWait, TryCreates: dryRun})
			if err != nil {
				return err
			}
			pass := r.Run
			if dryRun {
				pass = r.Diff
			}
			if !dryRun && !to.observable() {
				if err := t.announce("sync", to.sync(), &to.clusterFlags); err != nil {
					return err
				}
			}
			done, err := pass(cmd.Context(), ref)
			if err != nil && dryRun {
				done = report.Failed(r.Sync, "", err)
			}
			return t.concluded(show, done, err)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would happen, as diff does, with the exit code of sync")
	to.addTo(cmd)
	addLapse(cmd, &timeout, "timeout", 5*time.Minute, "how long applied objects may take to become ready")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait until applied objects are ready")
	addAudit(cmd, &to.audit, auditOfVerb, "")
	show.addTo(cmd)
	return cmd
}
