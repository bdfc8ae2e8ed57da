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

		Short: "Bring a cluster to what a commit wants, once",
		Long: `Sync makes one pass: it renders the commit, compares it with the cluster and with what
this sync applied before, applies what differs, prunes what nobody wants any more, and
waits until what it applied is ready. A prune that would take something along that is
in use is held, with the reason, and the rest is done. What is held only because somebody might
not mean it has a digest beside it: --approve lets exactly that pass.

A sync applies one source: one path of one repository, however that is reached. Sync refuses another
source under the same name, and writes nothing; --take-over makes that source the one that counts. A
directory in no Git repository needs a --name.

With --management-policy=observable it writes nothing, needs no right to, and waits until
somebody else has applied the commit. What is not applied after --timeout is a failure that
names who is to do it; what somebody edited is drift.

` + aboutSource + ` Sync wants one of them said.

` + exitCodes,
		Example: `  headgate sync ./platform
  headgate sync --repo https://example.org/platform.git --path clusters/prod --name prod
  headgate sync ./platform --dry-run`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !to.given(args) {
				return usagef("say what to sync: a directory, for example '.', or --repo")
			}
			source, ref, err := t.source(&to.sourceFlags, args)
			if err != nil {
				return err
			}
			if err := to.named(cmd, source); err != nil && !dryRun {
				return err
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
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be done, as diff does, and exit as sync would")
	to.addTo(cmd)
	addLapse(cmd, &timeout, "timeout", 5*time.Minute, "how long what was applied may take to become ready")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for it to become ready")
	show.addTo(cmd)
	return cmd
}
