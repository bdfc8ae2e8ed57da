package main

import (
	"time"

	"github.com/spf13/cobra"
)

func newSuspend(t *terminal) *cobra.Command {
	var (
		of             objectFlags
		until, why, by string
	)
	cmd := &cobra.Command{
		Use:   "suspend sync NAME… [flags]",
		Short: "Stop the writes of Sync objects",
		Long: `Suspend sets spec.suspend of Sync objects. The controller then writes nothing for them. Passes,
previews and statuses go on, and report what they would do. 'headgate resume' ends that. If
Git declares the Sync, suspend it there, or its applier takes the change back.

With --until, the suspension is overdue after that time: it goes on, and the condition Suspended, an
Event and a metric show it.

Exit codes: 0 suspended, 1 error, 2 wrong usage.`,
		Example: `  headgate suspend sync shop -n team
  headgate suspend sync shop -n team --until 4h --why 'migration of the database' --by alice`,
		RunE: func(cmd *cobra.Command, args []string) error {
			how, err := suspension(until, why, by, time.Now())
			if err != nil {
				return err
			}
			if how != nil && by == "" {
				if how["by"], err = of.whoAmI(cmd.Context()); err != nil {
					return err
				}
			}
			return t.setSuspended(cmd.Context(), &of, args, true, how, "suspended")
		},
	}
	of.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&until, "until", "", "`time` at which the suspension should end, such as 2026-01-31T12:00:00Z, or 4h for in four hours (default: no time)")
	flags.StringVar(&why, "why", "", "the `reason`, which statuses and previews show")
	flags.StringVar(&by, "by", "", "the `name` of the user who suspends, with --until or --why (default: that of the kubeconfig)")
	return cmd
}

// suspension returns the fields of spec.suspension; nil if there are none.
func suspension(until, why, by string, now time.Time) (map[string]any, error) {
	fields := map[string]any{}
	if until != "" {
		at, err := time.Parse(time.RFC3339, until)
		if in, wrong := time.ParseDuration(until); wrong == nil {
			at, err = now.Add(in), nil
		}
		if err != nil || !at.After(now) {
			return nil, usagef("--until: %q is no time in the future, such as 2026-01-31T12:00:00Z or 4h", until)
		}
		fields["until"] = at.UTC().Format(time.RFC3339)
	}
	if why != "" {
		fields["why"] = why
	}
	if by != "" {
		fields["by"] = by
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return fields, nil
}
