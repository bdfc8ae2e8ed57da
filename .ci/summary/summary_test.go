package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	cases := map[string]struct {
		reason string
		lines  []string
		want   []string // in the output, in this order
		not    string   // not in the output
		well   bool
	}{
		"Pass": {
			reason: "A passing test prints nothing.",
			lines: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}`,
				`{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}`,
				`{"Action":"pass","Package":"p","Elapsed":0.2}`,
			},
			want: []string{"ok    p  0.2s", "1 passed, 0 failed, 0 skipped"},
			not:  "chatter",
			well: true,
		},
		"Fail": {
			reason: "A failure is shown with its whole output, and nothing from its neighbours.",
			lines: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestB"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: boom\n"}`,
				`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: chatter\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestB"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"--- FAIL p TestA", "boom", "FAIL  p", "1 passed, 1 failed, 0 skipped"},
			not:  "chatter",
		},
		"Panic": {
			reason: "A test without a result counts as failed, and its package is not counted again.",
			lines: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}`,
				`{"Action":"fail","Package":"p"}`,
			},
			want: []string{"--- FAIL p TestA", "panic: boom", "0 passed, 1 failed, 0 skipped"},
		},
		"DoesNotBuild": {
			reason: "A package that does not build has failed, and the compiler's output is shown.",
			lines: []string{
				`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:3: undefined: x\n"}`,
				`{"ImportPath":"p [p.test]","Action":"build-fail"}`,
				`{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`,
			},
			want: []string{"undefined: x", "FAIL  p", "0 passed, 1 failed, 0 skipped"},
		},
		"CorpusAbsent": {
			reason: "The largest real provider is not part of the repository, so its tests may be skipped.",
			lines: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: provider-upjet-aws: corpus is absent: no such file\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
				`{"Action":"run","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p","Test":"TestB"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: []string{"skipped:", "p TestA: a_test.go:1: provider-upjet-aws: corpus is absent", "1 passed, 0 failed, 1 skipped"},
			not:  "not allowed",
			well: true,
		},
		"OtherPackage": {
			reason: "Any clone has the small packages.",
			lines: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: provider-helm: corpus is absent: no such file\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: []string{"(not allowed)", "0 passed, 0 failed, 1 skipped"},
		},
		"OtherSkip": {
			reason: "A test that quietly skips itself proves nothing.",
			lines: []string{
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: no kubectl\n"}`,
				`{"Action":"skip","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p"}`,
			},
			want: []string{"no kubectl (not allowed)", "0 passed, 0 failed, 1 skipped"},
		},
		"NothingRan": {
			reason: "A pattern that matches no test must not look like success.",
			lines:  []string{`{"Action":"skip","Package":"p"}`},
			want:   []string{"no test has run", "0 passed, 1 failed, 0 skipped"},
		},
		"Slowest": {
			reason: "To speed up the check, start with the five slowest suites; cached results took no time.",
			lines: []string{
				`{"Action":"pass","Package":"one","Test":"TestA","Elapsed":900}`,
				`{"Action":"pass","Package":"one","Elapsed":1}`,
				`{"Action":"fail","Package":"six","Test":"TestA","Elapsed":6}`,
				`{"Action":"fail","Package":"six","Elapsed":6}`,
				`{"Action":"pass","Package":"three","Elapsed":3}`,
				`{"Action":"pass","Package":"cached","Elapsed":0.001}`,
				`{"Action":"skip","Package":"untested","Elapsed":0}`,
				`{"Action":"pass","Package":"five","Elapsed":5.25}`,
				`{"Action":"pass","Package":"two","Elapsed":2}`,
				`{"Action":"pass","Package":"four","Elapsed":4}`,
			},
			want: []string{"\nslowest:\n     6.0s  six\n     5.2s  five\n     4.0s  four\n     3.0s  three\n     2.0s  two\n\n1 passed, 1 failed, 0 skipped"},
		},
		"AllCached": {
			reason: "Without tests there are no slowest suites to list.",
			lines: []string{
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Elapsed":0.001}`,
			},
			want: []string{"1 passed"},
			not:  "slowest",
			well: true,
		},
		"OtherOutput": {
			reason: "A line that is not an event is printed unchanged.",
			lines: []string{
				`go: downloading`,
				`{"Action":"run","Package":"p","Test":"TestA"}`,
				`{"Action":"pass","Package":"p","Test":"TestA"}`,
			},
			want: []string{"go: downloading", "1 passed"},
			well: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := newSummary(&out)
			for _, line := range tc.lines {
				s.Line(nil, []byte(line+"\n"))
			}
			well := s.Close()
			if well != tc.well {
				t.Errorf("%s\nClose() = %t, want %t", tc.reason, well, tc.well)
			}
			rest := out.String()
			for _, want := range tc.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("%s\nno %q in its place in:\n%s", tc.reason, want, out.String())
				}
				rest = after
			}
			if tc.not != "" && strings.Contains(out.String(), tc.not) {
				t.Errorf("%s\n%q in:\n%s", tc.reason, tc.not, out.String())
			}
		})
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	s := newSummary(&out)
	if err := run([]string{"sh", "-c", "echo said; exit 3"}, s); err != nil {
		t.Fatal(err)
	}
	if s.failed != 1 || !strings.Contains(out.String(), "said\n") {
		t.Errorf("A command that fails without a failing test is a failure.\nfailed = %d, output:\n%s", s.failed, &out)
	}
	if err := run([]string{"./no-such-command"}, s); err == nil {
		t.Error("A command that cannot be started is an error.")
	}
}

func TestRunAll(t *testing.T) {
	var out bytes.Buffer
	s := newSummary(&out)
	meet := t.TempDir() + "/fifo" // the first command ends only if the second one runs at the same time
	fails := `echo '{"Action":"run","Package":"p","Test":"TestA"}'; echo '{"Action":"fail","Package":"p","Test":"TestA"}'; echo '{"Action":"fail","Package":"p"}'; exit 1`
	if err := runAll([][]string{
		{"sh", "-c", "mkfifo " + meet + "; echo first >" + meet},
		{"sh", "-c", "until test -p " + meet + "; do sleep 0.01; done; read line <" + meet + "; echo $line"},
		{"sh", "-c", fails},
		{"sh", "-c", "exit 3"},
	}, s); err != nil {
		t.Fatal(err)
	}
	if s.failed != 2 || !strings.Contains(out.String(), "first\n") || !strings.Contains(out.String(), "exit status 3") {
		t.Errorf("A test that fails in one command does not excuse another command.\nfailed = %d, output:\n%s", s.failed, &out)
	}
	if err := runAll([][]string{{"true"}, {"./no-such-command"}}, s); err == nil {
		t.Error("A command that cannot be started is an error.")
	}
}

// A test that fails only beside others costs a whole run of CI, and says nothing about the code that is checked.
func TestAgain(t *testing.T) {
	// A command in place of go: `NAME test FLAGS PACKAGES` prints the lines of a file when it runs all tests, and of another one the second time.
	const script = `for arg; do case $arg in -count=1) exec cat "$0/again"; esac; done; cat "$0/first"; exit 1`
	lines := func(names ...string) string {
		var b strings.Builder
		ended := "pass"
		for _, name := range names {
			action := "fail"
			name, output, _ := strings.Cut(name, " ")
			if name[0] == '+' {
				name, action = name[1:], "pass"
			}
			if action == "fail" {
				ended = action
			}
			fmt.Fprintf(&b, `{"Action":"run","Package":"p","Test":%q}`+"\n", name)
			fmt.Fprintf(&b, `{"Action":"output","Package":"p","Test":%q,"Output":%q}`+"\n", name, output+"\n")
			fmt.Fprintf(&b, `{"Action":%q,"Package":"p","Test":%q}`+"\n", action, name)
		}
		return b.String() + fmt.Sprintf(`{"Action":%q,"Package":"p"}`+"\n", ended)
	}
	const broken = `{"Action":"fail","Package":"p"}` + "\n"
	for name, tc := range map[string]struct {
		first, again string
		want         string
		well         bool
	}{
		"Flaky":        {lines("+TestB", "TestA/One late", "TestA"), lines("+TestA"), "p TestA\n\n1 passed, 0 failed, 0 skipped, 1 flaky", true},
		"FailsAgain":   {lines("TestA late"), lines("TestA late"), "0 passed, 1 failed, 0 skipped\n", false},
		"DoesNotRun":   {lines("TestA late"), "", "0 passed, 1 failed, 0 skipped\n", false},
		"TooMany":      {lines("TestA", "TestB", "TestC", "TestD"), lines("+TestA"), "0 passed, 4 failed", false},
		"Panics":       {lines("TestA panic: nil"), lines("+TestA"), "0 passed, 1 failed", false},
		"Races":        {lines("TestA WARNING: DATA RACE"), lines("+TestA"), "0 passed, 1 failed", false},
		"Stops":        {lines("+TestB") + broken, lines("+TestA"), "  p\n\n1 passed, 0 failed, 0 skipped, 1 flaky", true}, // its TestMain fails once
		"DoesNotBuild": {broken, broken, "0 passed, 1 failed", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"first": tc.first, "again": tc.again} {
				if err := os.WriteFile(dir+"/"+file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			s := newSummary(&out)
			if err := runAll([][]string{{"sh", "-c", script, dir, "test", "-json", "./..."}}, s); err != nil {
				t.Fatal(err)
			}
			if err := again(s); err != nil {
				t.Fatal(err)
			}
			if well := s.Close(); well != tc.well || !strings.Contains(out.String(), tc.want) {
				t.Errorf("Close() = %t, want %t and %q in:\n%s", well, tc.well, tc.want, &out)
			}
		})
	}
}

// The second run keeps the flags of the first one, so that the race detector watches it too.
func TestOnly(t *testing.T) {
	got := only(failure{
		command: []string{"env", "CGO_ENABLED=0", "go", "-C", "there", "test", "-json", "-race", "-skip=^TestLong$", "-run=^TestB$", "./a", "./b"},
		test:    test{"headgate.dev/a", "TestA"},
	})
	want := []string{"env", "CGO_ENABLED=0", "go", "-C", "there", "test", "-json", "-race", "-skip=^TestLong$", "-run=^TestB$", "-run=^TestA$", "-count=1", "headgate.dev/a"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
