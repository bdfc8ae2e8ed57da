// Command summary runs test commands side by side. It reports on each package when its tests end, and counts all tests in one
// line at the end. The arguments are commands that print what `go test -json` prints, separated by --:
//
//	summary go test -json ./... -- go -C fixtures/server/controlplane test -json ./...
//
// It prints the output of tests that failed and of nothing else, and the five slowest suites. A skipped test is a failure, unless
// the corpus that it needs is absent: the corpus is optional.
//
// Six packages with servers of their own share the machine. So up to three tests, or packages without one that failed, run again when all
// others have ended, one at a time. One that passes then is listed as flaky. That excuses neither a panic, nor a data race, nor a package
// that does not build.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	commands := split(os.Args[1:])
	if len(commands) == 0 {
		fmt.Fprintln(os.Stderr, "usage: summary COMMAND [-- COMMAND]...")
		os.Exit(2)
	}
	s := newSummary(os.Stdout)
	if err := errors.Join(runAll(commands, s), again(s)); err != nil {
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
		failed = s.Line(command, line) || failed
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

// again runs the tests that failed once more, unless there are too many for chance or a second run could not excuse them.
func again(s *summary) error {
	const chance = 3
	count := 0
	for _, f := range s.failures {
		count += f.count
		if f.certain {
			return nil
		}
	}
	if len(s.failures) > chance || count < s.failed {
		return nil
	}
	for _, f := range s.failures {
		fmt.Fprintf(s.out, "again, alone: %s %s\n", f.test.pkg, f.test.name)
		second := newSummary(s.out)
		if err := run(only(f), second); err != nil {
			return err
		}
		if second.failed == 0 && second.passed > 0 {
			s.excuse(f)
		}
	}
	return nil
}

// only returns the command of a failure for its package: the same flags of `go test`, with the pattern of its test.
func only(f failure) []string {
	n := slices.Index(f.command, "test") + 1
	flags := slices.DeleteFunc(slices.Clone(f.command[n:]), func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if f.test.name != "" {
		flags = append(flags, "-run=^"+f.test.name+"$")
	}
	return slices.Concat(f.command[:n], flags, []string{"-count=1", f.test.pkg})
}
