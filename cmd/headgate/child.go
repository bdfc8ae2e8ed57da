package main

import (
	"io"
	"os"

	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
)

// childVerb is what Headgate calls itself with, for a preview in a process of its own.
const childVerb = "preview-child"

func newChild(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:    childVerb,
		Short:  "Make the preview that a parent process asks for",
		Args:   cobra.NoArgs,
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return target.Child(cmd.Context(), os.Stdin, keepOpen{t.out})
		},
	}
}

// keepOpen is standard output, which stays open.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
