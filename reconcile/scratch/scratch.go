// Package scratch makes temporary directories that the next process removes if this one is killed.
package scratch

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// A Dir is a temporary directory of this process. The zero value is none.
type Dir struct {
	Path string
	lock *flock.Flock
}

// Lock is the file in each directory that its process holds a lock on. The operating system releases it when the process ends.
const lock = ".headgate-lock"

// New makes a temporary directory for a purpose, and removes those that killed processes have left of it.
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

// sweep removes the directories without a process. What cannot be removed, as a directory of another user, is left alone.
func sweep(pattern string) {
	left, _ := filepath.Glob(pattern) // the pattern is valid
	for _, dir := range left {
		// Without the file, another process is just making the directory.
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
