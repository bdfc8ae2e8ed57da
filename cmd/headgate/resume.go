package main

import "github.com/spf13/cobra"

func newResume(t *terminal) *cobra.Command {
	var of objectFlags
	cmd := &cobra.Command{
		Use:   "resume sync NAME… [flags]",
		Short: "Let suspended Sync objects go on",
		Long: `Resume unsets spec.suspend and spec.suspension of Sync objects. The controller makes a pass over
them at once.

Exit codes: 0 resumed, 1 error, 2 wrong usage.`,
		Example: `  headgate resume sync shop -n team`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.setSuspended(cmd.Context(), &of, args, false, nil, "resumed")
		},
	}
	of.addTo(cmd)
	return cmd
}
