// Command summary runs test commands side by side. It reports on each package when its tests end, and counts all tests in one
// line at the end. The arguments are commands that print what `go test -json` prints, separated by --:
//
//	summary go test -json ./... -- go -C fixtures/server/controlplane test -json ./...
//
// It prints the output of tests that failed and of nothing else, and the five slowest suites. A skipped test is a failure, unless
// the corpus that it needs is absent: the corpus is optional.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

func main() {
	commands := split(os.Args[1:])
	if len(commands) == 0 {
		fmt.Fprintln(os.Stderr, "usage: summary COMMAND [-- COMMAND]...")
		os.Exit(2)
	}
	s := newSummary(os.Stdout)
	if err := runAll(commands, s); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
	if !s.Close() {
		os.Exit(1)
	}
}

// split cuts arguments into commands.
func split(args []string) [][]string {
	var commands [][]string
	for len(args) > 0 {
		n := slices.Index(args, "--")
		if n < 0 {
			n = len(args)
		}
		if n > 0 {
			commands = append(commands, args[:n])
		}
		args = args[min(n+1, len(args)):]
	}
	return commands
}

// runAll runs commands side by side and returns when all of them have ended.
func runAll(commands [][]string, s *summary) error {
	ended := make(chan error, len(commands))
	for _, command := range commands {
		go func() { ended <- run(command, s) }()
	}
	var errs []error
	for range commands {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// run passes what a command prints to a summary, line by line. A command that fails without a test that failed is a failure.
func run(command []string, s *summary) error {
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	failed := false // go reported a failure of a test or of a package
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		failed = s.Line(line) || failed
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		break
	}
	err = c.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if !failed { // go could not even load the packages, and printed why on stderr
			s.Fail(fmt.Sprintf("%q: %v", command, exit))
		}
		return nil
	}
	return err
}
