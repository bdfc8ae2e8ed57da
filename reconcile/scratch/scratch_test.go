package scratch

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A loop that is killed repeatedly for using too much memory must not fill the disk with its clones.
func TestNew(t *testing.T) {
	if os.Getenv("HEADGATE_TEST_DIES") != "" {
		d, err := New("test")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d.Path, "clone"), []byte("large"), 0o600); err != nil {
			t.Fatal(err)
		}
		os.Exit(3) // and removes nothing
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	elsewhere := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(elsewhere, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	dies := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNew$")
	dies.Env = append(os.Environ(), "HEADGATE_TEST_DIES=1")
	if err := dies.Run(); err == nil {
		t.Fatal("it did not die")
	}
	left := dirs(t, temp)
	if len(left) != 1 {
		t.Fatalf("it left %v", left)
	}
	if err := os.Symlink(filepath.Dir(elsewhere), filepath.Join(left[0], "link")); err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"headgate-other-1", "headgate-test-new"} { // one for another purpose, and one without a lock
		if err := os.Mkdir(filepath.Join(temp, other), 0o700); err != nil {
			t.Fatal(err)
		}
	}

	first, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	second, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	if got := dirs(t, temp); len(got) != 4 {
		t.Errorf("Those of living processes, and those that are no leftovers, stay; and no other: %v", got)
	}
	for _, d := range []Dir{first, second, {}} {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}
	if got := dirs(t, temp); len(got) != 2 {
		t.Errorf("left: %v", got)
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Errorf("A link led out of the directory: %v", err)
	}
}

func dirs(t *testing.T, in string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(in, "headgate-*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
