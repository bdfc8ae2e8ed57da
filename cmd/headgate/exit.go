package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"headgate.dev/headgate/reconcile/report"

	"github.com/spf13/cobra"
)

// The exit codes of the program. Passes use report.Verdict.ExitCode.
const (
	exitDiffError = report.ExitDiffError // of diff: an error beats changes
	exitUsage     = 2                    // of every verb, for a wrong command line
)

const exitCodes = `Exit codes: 0 the cluster is as wanted, 1 something failed or is not known, 2 wrong usage,
3 something is held, or drifted and is only reported.`

// An exit ends the program with a code and an optional reason.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

// A usageError is an error in the use of the program.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

func isUsage(err error) bool {
	_, ok := errors.AsType[usageError](err)
	return ok
}

// exit prints an error once, with advice. It returns the exit code.
func (t *terminal) exit(ctx context.Context, verb *cobra.Command, err error) int {
	code, advice := 1, ""
	switch {
	case err == nil:
		return 0
	case isUsage(err), !t.began: // cobra rejects arguments before any verb begins
		if verb.Name() == "help" {
			verb = verb.Root()
		}
		code, advice = exitUsage, fmt.Sprintf("see '%s --help'", verb.CommandPath())
	default:
		e, coded := errors.AsType[exit](err)
		if coded && e.err == nil {
			return e.code // the verb has already reported everything
		}
		if coded {
			code, err = e.code, e.err
		}
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrupted: %w", err)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") { // one line for each joined error
		fmt.Fprintf(t.err, "%s %s\n", t.paint("error:", red), printable(line))
	}
	if advice = cmp.Or(advice, hint(err)); advice != "" {
		fmt.Fprintf(t.err, "%s %s\n", t.paint("hint:", yellow), advice)
	}
	return code
}
