package main

import (
	"fmt"
	"os"

	"headgate.dev/headgate/reconcile/audit"

	"github.com/spf13/cobra"
)

// addAudit adds the flag of the audit log.
func addAudit(cmd *cobra.Command, to *string, initial string) {
	cmd.Flags().StringVar(to, "audit-log", initial, "append a line of JSON for each approval, guarded write, take-over, release, suspension and changed setting of a Sync to this `file`; - is the standard output, and \"\" is no log")
}

// audit returns the audit log in a file; nil if there is none. The file stays open until the process ends.
func (t *terminal) audit(name string) (*audit.Log, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return audit.To(t.out), nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--audit-log: %w", err)
	}
	return audit.To(file), nil
}
