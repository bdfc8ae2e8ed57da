package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// excused matches the output of tests that may be skipped: those of the only package that a clone may lack.
var excused = regexp.MustCompile(`\bprovider-upjet-aws: corpus is absent\b`)

// event is a line of `go test -json`; `go doc test2json` describes it.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// test identifies a running test, or a whole package if name is empty.
type test struct{ pkg, name string }

// suite is a package that passed or failed, and how long it took.
type suite struct {
	pkg     string
	seconds float64
}

// summary counts tests, including subtests.
type summary struct {
	out     io.Writer
	passed  int
	failed  int
	skips   []string
	illegal int // skips without an excuse

	suites []suite

	mu       sync.Mutex        // guards all fields above and below
	output   map[test][]string // output so far
	running  map[string]map[string]bool
	broken   map[string]int // failures by package
	failures []failure
	flaky    []string
}

// failure is a test with its subtests that failed, or a package without one. Its command can run it again.
type failure struct {
	command []string
	test    test
	count   int  // how many failures it stands for
	certain bool // it panicked, or the race detector found something, so no second run can excuse it
}

// certain matches the output of failures that say something about the code, whatever else the machine was doing.
var certain = regexp.MustCompile(`(?m)^\s*(panic: |WARNING: DATA RACE|fatal error: )`)

func newSummary(out io.Writer) *summary {
	return &summary{out: out, output: map[test][]string{}, running: map[string]map[string]bool{}, broken: map[string]int{}}
}

// Line takes one line of a command's output and reports whether it counted a failure. It prints lines that are not events. It is safe
// for concurrent use.
func (s *summary) Line(command []string, line []byte) (failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.failed
	s.line(command, line)
	return s.failed > before
}

func (s *summary) line(command []string, line []byte) {
	var e event
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(s.out, "%s", line)
		return
	}
	t := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "output":
		s.output[t] = append(s.output[t], e.Output)
	case "run":
		if s.running[t.pkg] == nil {
			s.running[t.pkg] = map[string]bool{}
		}
		s.running[t.pkg][t.name] = true
	case "pass", "fail", "skip":
		if t.name == "" {
			s.endPackage(command, t.pkg, e)
		} else {
			s.endTest(command, t, e.Action)
		}
	}
}

func (s *summary) endTest(command []string, t test, action string) {
	delete(s.running[t.pkg], t.name)
	output := s.output[t]
	delete(s.output, t)
	switch action {
	case "pass":
		s.passed++
	case "skip":
		s.skip(t, output)
	case "fail":
		s.failTest(command, t, output)
	}
}

func (s *summary) failTest(command []string, t test, output []string) {
	s.failed++
	s.broken[t.pkg]++
	s.suspect(command, t, output)
	fmt.Fprintf(s.out, "--- FAIL %s %s\n", t.pkg, t.name)
	for _, line := range output {
		if !noise(line) {
			fmt.Fprint(s.out, line)
		}
	}
}

// suspect notes a failure for a second run of the whole test, or of the package if no test failed.
func (s *summary) suspect(command []string, t test, output []string) {
	name, _, _ := strings.Cut(t.name, "/")
	whole := test{t.pkg, name}
	n := slices.IndexFunc(s.failures, func(f failure) bool { return f.test == whole })
	if n < 0 {
		n = len(s.failures)
		s.failures = append(s.failures, failure{command: command, test: whole})
	}
	s.failures[n].count++
	s.failures[n].certain = s.failures[n].certain || certain.MatchString(strings.Join(output, ""))
}

// excuse takes a failure back, because the test passed alone.
func (s *summary) excuse(f failure) {
	s.failed -= f.count
	s.flaky = append(s.flaky, strings.TrimSpace(f.test.pkg+" "+f.test.name))
}

// skip notes a skipped test with its reason.
func (s *summary) skip(t test, output []string) {
	var reason []string
	for _, line := range output {
		if !noise(line) {
			reason = append(reason, strings.TrimSpace(line))
		}
	}
	why := strings.Join(reason, " ")
	mark := ""
	if !excused.MatchString(why) {
		s.illegal++
		mark = " (not allowed)"
	}
	s.skips = append(s.skips, fmt.Sprintf("%s %s: %s%s", t.pkg, t.name, why, mark))
}

// endPackage records the end of a package, after its last test.
func (s *summary) endPackage(command []string, pkg string, e event) {
	output := s.output[test{pkg: pkg}]
	if e.Action == "fail" {
		for name := range s.running[pkg] { // a panic, a timeout or os.Exit ended all of them
			t := test{pkg, name}
			s.failTest(command, t, s.output[t])
			delete(s.output, t)
		}
		for n := range s.failures {
			s.failures[n].certain = s.failures[n].certain || s.failures[n].test.pkg == pkg && certain.MatchString(strings.Join(output, ""))
		}
		if s.broken[pkg] == 0 { // the package did not build, or its TestMain failed
			s.failed++
			s.suspect(command, test{pkg: pkg}, output)
		}
		for _, line := range output {
			if !noise(line) {
				fmt.Fprint(s.out, line)
			}
		}
	}
	switch {
	case e.Action == "fail":
		fmt.Fprintf(s.out, "FAIL  %s\n", pkg)
	case e.Action == "pass" && !strings.Contains(strings.Join(output, ""), "[no test files]"):
		fmt.Fprintf(s.out, "ok    %s  %.1fs\n", pkg, e.Elapsed)
	}
	s.suites = append(s.suites, suite{pkg, e.Elapsed})
	delete(s.output, test{pkg: pkg})
	delete(s.running, pkg)
}

// noise reports whether the testing package prints this line for every test.
func noise(line string) bool {
	line = strings.TrimSpace(line)
	for _, prefix := range []string{"=== ", "--- FAIL:", "--- SKIP:", "--- PASS:", "-test.shuffle ", "FAIL\t"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return line == "PASS" || line == "FAIL"
}

// slowest returns the slowest suites, slowest first. It omits suites that took no time: they were cached or have no tests.
func (s *summary) slowest(n int) []suite {
	var all []suite
	for _, one := range s.suites {
		if one.seconds >= 0.05 {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b suite) int { return cmp.Compare(b.seconds, a.seconds) })
	return all[:min(n, len(all))]
}

// Fail counts a failure that belongs to no test.
func (s *summary) Fail(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed++
	fmt.Fprintln(s.out, "FAIL ", why)
}

// Close prints the five slowest suites, the skips and the line of totals. It reports whether all is well.
func (s *summary) Close() bool {
	if slowest := s.slowest(5); len(slowest) > 0 {
		fmt.Fprintln(s.out, "\nslowest:")
		for _, one := range slowest {
			fmt.Fprintf(s.out, "  %6.1fs  %s\n", one.seconds, one.pkg)
		}
	}
	if len(s.skips) > 0 {
		fmt.Fprintln(s.out, "\nskipped:")
	}
	for _, skip := range s.skips {
		fmt.Fprintln(s.out, " ", skip)
	}
	if s.illegal > 0 {
		fmt.Fprintf(s.out, "\nA test may be skipped only where the archive of provider-upjet-aws is absent; %d output something else.\n", s.illegal)
	}
	if len(s.flaky) > 0 {
		fmt.Fprintln(s.out, "\nflaky, which is a defect: failed beside other tests (see above), and passed alone")
	}
	for _, name := range s.flaky {
		fmt.Fprintln(s.out, " ", name)
	}
	if s.passed+s.failed+len(s.skips) == 0 {
		s.Fail("no test has run")
	}
	flaky := ""
	if len(s.flaky) > 0 {
		flaky = fmt.Sprintf(", %d flaky", len(s.flaky))
	}
	fmt.Fprintf(s.out, "\n%d passed, %d failed, %d skipped%s\n", s.passed, s.failed, len(s.skips), flaky)
	return s.failed == 0 && s.illegal == 0
}
