package main

import (
	"io"
	"os"

	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
)

// childVerb is the hidden command that Headgate runs as a child process to make a preview.
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

// keepOpen wraps standard output and ignores Close.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
