package main

import (
	"fmt"
	"os"

	"headgate.dev/headgate/reconcile/audit"

	"github.com/spf13/cobra"
)

// What the audit log of a verb has. A process also sees who changes a Sync.
const (
	auditOfVerb    = "each used approval, guarded write, take-over and release"
	auditOfProcess = "each approval, guarded write, take-over, release, suspension and changed setting of a Sync"
)

// addAudit adds the flag of the audit log. Every verb that carries out plans has it.
func addAudit(cmd *cobra.Command, to *string, has, initial string) {
	cmd.Flags().StringVar(to, "audit-log", initial, "append a line of JSON for "+has+" to this `file`; - is the standard output, and \"\" is no log")
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
