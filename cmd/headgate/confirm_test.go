//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"headgate.dev/headgate/fixtures"
)

// openTerminal opens a pseudo-terminal. Each end reads what the other end writes.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	ioctl := func(request uintptr, value *int32) {
		t.Helper()
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	var number, unlock int32
	ioctl(syscall.TIOCSPTLCK, &unlock)
	ioctl(syscall.TIOCGPTN, &number)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = person.Close() })
	return person, program
}

// atTerminal runs the program at a terminal, types an answer, and returns what the terminal shows.
func atTerminal(t *testing.T, answer string, args ...string) (shown string, code int) {
	t.Helper()
	person, program := openTerminal(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Args[0] = "headgate"
	cmd.Env = append(os.Environ(), "KUBECONFIG="+fixtures.Kubeconfig(t), "NO_COLOR=1", "CI=1", "HOME="+t.TempDir())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	if _, err := io.WriteString(person, answer); err != nil { // the terminal buffers it until the program reads it
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := program.Close(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	_, _ = io.Copy(&text, person) // Copy fails once the program has ended.
	err = cmd.Wait()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		code = failed.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(text.String(), "\r\n", "\n"), code
}

// A user whose kubeconfig points at the wrong cluster must see that before anything changes, and must be able to refuse.
func TestAtATerminal(t *testing.T) {
	dir := t.TempDir()
	config := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: at-a-terminal, namespace: default}\n"
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	const of = " changes sync at-a-terminal, namespace headgate-system, in cluster "
	has := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not shown:\n%s", part, text)
			}
		}
	}
	text, code := atTerminal(t, "", "sync", dir, "--name", "at-a-terminal")
	has(text, "sync"+of, " at https://", "(context ", "Summary: 1 created")
	if at := strings.Index(text, of); code != 0 || at > strings.Index(text, "create ConfigMap") {
		t.Errorf("exit code %d; the target is named first:\n%s", code, text)
	}
	text, _ = atTerminal(t, "", "sync", dir, "--name", "at-a-terminal", "--dry-run")
	if strings.Contains(text, of) {
		t.Errorf("A dry run changes nothing:\n%s", text)
	}

	for _, answer := range []string{"\n", "n\n", "yess\n", "\x04"} { // \x04 is the end of input
		text, code = atTerminal(t, answer, "destroy", "--name", "at-a-terminal")
		has(text, "destroy"+of, "Delete everything that headgate-system/at-a-terminal applied? [y/N] ", "error: nothing was changed")
		if code != 1 || strings.Contains(text, "prune") {
			t.Errorf("%q is no yes: exit code %d:\n%s", answer, code, text)
		}
	}
	text, code = atTerminal(t, "y\n", "destroy", "--name", "at-a-terminal", "--orphan")
	has(text, "Release everything that headgate-system/at-a-terminal applied? [y/N] ", "Summary: 1 released")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	text, code = atTerminal(t, "", "destroy", "--name", "at-a-terminal", "--yes")
	has(text, "destroy"+of)
	if strings.Contains(text, "[y/N]") || code != 0 {
		t.Errorf("--yes is the answer: exit code %d:\n%s", code, text)
	}
}
