package outbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/report"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// asChild names the role of this test binary when it runs as a separate process. The directory follows.
const asChild = "HEADGATE_TEST_OUTBOX"

func TestMain(m *testing.M) {
	what, dir, _ := strings.Cut(os.Getenv(asChild), ":")
	switch what {
	case "":
		os.Exit(m.Run())
	case "between": // kills the process between the second write and its rename
		renames := 0
		speak(dir, func(from, to string) error {
			if renames++; renames == 2 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return os.Rename(from, to)
		})
	case "anywhere":
		speak(dir, nil)
	}
}

// speak publishes one report after another and prints the stored ones, until the process is killed.
func speak(dir string, rename func(from, to string) error) {
	o := &Outbox{Dir: dir, Next: &forge{fails: away}, rename: rename}
	for i := 0; ; i++ {
		if err := o.Publish(context.Background(), reported("a", strconv.Itoa(i))); err != nil {
			fmt.Fprintln(os.Stdout, err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stdout, i)
	}
}

// kept returns the number in the commit's waiting report after a process died.
func kept(t *testing.T, dir string) int {
	t.Helper()
	o := &Outbox{Dir: dir, OnError: func(err error) { t.Error(err) }}
	all := o.read()
	if len(all) != 1 {
		t.Fatalf("%d wait: %v", len(all), files(t, dir))
	}
	for _, name := range files(t, dir) {
		if filepath.Ext(name) != extension {
			t.Errorf("%s is left behind", name)
		}
	}
	for _, w := range all {
		n, err := strconv.Atoi(w.Verdict.Activation.Description)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return -1
}

func child(t *testing.T, what, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), asChild+"="+what+":"+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewScanner(out)
}

func TestKilledBetweenWriteAndRename(t *testing.T) {
	dir := t.TempDir()
	c, lines := child(t, "between", dir)
	last := -1
	for lines.Scan() {
		last, _ = strconv.Atoi(lines.Text())
	}
	if err := c.Wait(); err == nil {
		t.Fatal("it was not killed")
	}
	if got := kept(t, dir); got != last && got != last+1 {
		t.Errorf("%d is kept, after %d was said to be", got, last)
	}
}

func TestKilledAnywhere(t *testing.T) {
	for i := range 5 {
		dir := t.TempDir()
		c, lines := child(t, "anywhere", dir)
		last := -1
		for lines.Scan() {
			last, _ = strconv.Atoi(lines.Text())
			if last == 10+7*i {
				time.AfterFunc(time.Duration(i)*time.Millisecond, func() { _ = c.Process.Kill() })
			}
		}
		_ = c.Wait()
		if got := kept(t, dir); got != last && got != last+1 {
			t.Errorf("%d is kept, after %d was said to be", got, last)
		}
	}
}

// An unreadable file is renamed and reported, and does not block the others.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	f := &forge{fails: away}
	o := &Outbox{Next: f, Dir: dir}
	publish(t, o, reported("good", "1 active"))
	whole, err := encode(reduce(reported("x", "")))
	if err != nil {
		t.Fatal(err)
	}
	strange := map[string]string{
		"empty.json":     "",
		"torn.json":      string(whole[:len(whole)/2]),
		"elsewhere.json": strings.Replace(string(whole), `"seq": 0`, `"seq": 1`, 1),
		"newer.json":     `{"version":9}`,
		"large.json":     strings.Repeat(" ", maxFile) + "{}",
	}
	for name, data := range strange {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "empty.json"+unreadable), []byte("an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	var told []error
	again := &Outbox{Next: f, Dir: dir, OnError: func(err error) { told = append(told, err) }}
	if n := again.Waiting(); n != 1 {
		t.Errorf("%d wait, want 1", n)
	}
	if len(told) != len(strange) {
		t.Errorf("told %v, want %d", told, len(strange))
	}
	aside := map[string]string{}
	for _, name := range files(t, dir) {
		if strings.HasSuffix(name, unreadable) {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			aside[name] = string(data)
		}
	}
	want := map[string]string{"empty.json" + unreadable: "an older one", "empty.json.1" + unreadable: ""}
	for name, data := range strange {
		if name != "empty.json" {
			want[name+unreadable] = data
		}
	}
	if diff := cmp.Diff(want, aside); diff != "" {
		t.Errorf("put aside (-want +got):\n%s", diff)
	}
	told = nil
	(&Outbox{Next: f, Dir: dir, OnError: func(err error) { told = append(told, err) }}).Waiting()
	if err := errors.Join(told...); err != nil {
		t.Errorf("told a second time: %v", err)
	}
}

// The stored part of any report is the same after reading it back.
func TestReduce(t *testing.T) {
	long := reported("a", strings.Repeat("\x01ä\xff", 10000))
	w := reduce(long)
	w.Seq = 1
	data, err := encode(w)
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > maxFile {
		t.Errorf("%d bytes: it would not be read again", len(data))
	}
	got, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.report(), got.report(), cmpopts.IgnoreUnexported(report.Report{})); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func FuzzDecode(f *testing.F) {
	w := reduce(reported("0123456789abcdef0123456789abcdef01234567", "43 active (+2), 2000 inactive"))
	w.Seq, w.Attempts, w.NotBefore = 7, 2, 1764000000000
	data, err := encode(w)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"version":1,"seq":1,"revision":"\ud800","verdict":{"activation":{"state":"error"},"drift":{"state":"error"}}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := decode(data)
		if err != nil {
			return
		}
		again, err := encode(w)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		got, err := decode(again)
		if err != nil || got != w {
			t.Errorf("%+v reads back as %+v (%v)", w, got, err)
		}
		if name := w.key().file(); filepath.Base(name) != name || filepath.Ext(name) != extension {
			t.Errorf("%q is no name of a file", name)
		}
		if w.report().Verdict != w.Verdict {
			t.Errorf("the report says %+v, not %+v", w.report().Verdict, w.Verdict)
		}
	})
}
