// Command headgate opens the gate for the custom resource definitions that a platform
// uses, and for no others: it renders what a commit of a Git repository wants, shows
// what that would change, and brings a cluster there.
//
// A verb is a file: flags in, a value from reconcile, that value written out, an exit
// code. Which adapters a verb uses is decided in target.go and nowhere else.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the program, from its arguments to its exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // from now on the default again: a second signal kills

	t := newTerminal(os.Stdout, os.Stderr, os.Getenv)
	root := newRoot(t)
	root.SetArgs(args)
	verb, err := root.ExecuteContextC(ctx)
	t.progress.Stop()
	for _, end := range t.atEnd {
		err = errors.Join(err, end())
	}
	return t.exit(ctx, verb, err)
}
