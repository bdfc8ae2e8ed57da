package main

import "github.com/spf13/cobra"

func newSuspend(t *terminal) *cobra.Command {
	var of objectFlags
	cmd := &cobra.Command{
		Use:   "suspend sync NAME… [flags]",
		Short: "Stop the passes of Sync objects",
		Long: `Suspend sets spec.suspend of Sync objects. The controller then makes no pass over them: it
fetches, writes and posts nothing. What they applied stays. 'headgate resume' ends that. If
Git declares the Sync, suspend it there, or its applier takes the change back.

Exit codes: 0 suspended, 1 error, 2 wrong usage.`,
		Example: `  headgate suspend sync shop -n team`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.setSuspended(cmd.Context(), &of, args, true, "suspended")
		},
	}
	of.addTo(cmd)
	return cmd
}
