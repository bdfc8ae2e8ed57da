// Command headgate activates the custom resource definitions that a platform uses, and no others. It renders what a commit of a Git
// repository wants, shows what that would change in a cluster, and applies it.
//
// Each verb is a file: it reads flags, gets a value from reconcile, prints that value and returns an exit code. Only target.go
// decides which adapters a verb uses.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:])) }

// run runs the program with its arguments and returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // restore the default handler: a second signal kills the program

	t := newTerminal(os.Stdout, os.Stderr, os.Getenv)
	root := newRoot(t)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: commandName(os.Args[0])}
	root.SetArgs(args)
	verb, err := root.ExecuteContextC(ctx)
	t.progress.Stop()
	for _, end := range t.atEnd {
		err = errors.Join(err, end())
	}
	return t.exit(ctx, verb, err)
}
