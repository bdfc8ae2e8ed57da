// Package scratch creates temporary directories. If a process is killed, the next one removes its directories.
package scratch

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// A Dir is a temporary directory of this process. The zero value is no directory.
type Dir struct {
	Path string
	lock *flock.Flock
}

// lock is the name of the file in each directory that its process locks. The operating system releases the lock when
// the process ends.
const lock = ".headgate-lock"

// New creates a temporary directory for a purpose, and removes those that killed processes have left for the same purpose.
func New(purpose string) (Dir, error) {
	prefix := "headgate-" + purpose + "-"
	sweep(filepath.Join(os.TempDir(), prefix+"*"))
	path, err := os.MkdirTemp("", prefix)
	if err != nil {
		return Dir{}, err
	}
	d := Dir{Path: path, lock: flock.New(filepath.Join(path, lock))}
	if err := d.lock.Lock(); err != nil {
		return Dir{}, errors.Join(err, os.RemoveAll(path))
	}
	return d, nil
}

// Remove removes the directory with everything in it.
func (d Dir) Remove() error {
	if d.Path == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// sweep removes the directories whose process has ended. It skips what it cannot remove, such as a directory of another user.
func sweep(pattern string) {
	left, _ := filepath.Glob(pattern) // the pattern is valid
	for _, dir := range left {
		// Without this file, another process is still creating the directory.
		if info, err := os.Lstat(filepath.Join(dir, lock)); err != nil || !info.Mode().IsRegular() {
			continue
		}
		l := flock.New(filepath.Join(dir, lock))
		if free, err := l.TryLock(); err != nil || !free {
			_ = l.Close()
			continue
		}
		_ = os.RemoveAll(dir)
		_ = l.Close()
	}
}
