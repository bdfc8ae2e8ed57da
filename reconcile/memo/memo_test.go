//test:package raced
package memo

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// keyed returns the only value that is ever stored under a key. Every third value is a large body.
func keyed(i int) (key, value string) {
	key = fmt.Sprintf("key %d", i)
	value = fmt.Sprintf("value %d", i)
	if i%3 == 0 {
		value = strings.Repeat(value, aBody/len(value)+1+i)
	}
	return key, value
}

// recalled returns how many of n values are still stored. A stored value must be correct.
func recalled(t *testing.T, m interface {
	Recall(key string) (string, bool)
}, n int) int {
	t.Helper()
	count := 0
	for i := range n {
		key, want := keyed(i)
		switch got, ok := m.Recall(key); {
		case ok && got == want:
			count++
		case ok:
			t.Errorf("%s: a value of %d bytes that was never remembered, want %d or none: %.40q", key, len(got), len(want), got)
		}
	}
	return count
}

func learn(m interface{ Remember(key, value string) }, n int) {
	for i := range n {
		m.Remember(keyed(i))
	}
}

func closed(t *testing.T, f *File) *File {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

// written creates a file with n values.
func written(t *testing.T, dir string, n int) string {
	t.Helper()
	f := Open(dir, "a", "b")
	learn(f, n)
	return closed(t, f).path
}

func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	path := written(t, dir, 30)
	f := Open(dir, "a", "b")
	if got := recalled(t, f, 40); got != 30 {
		t.Errorf("the next process recalls %d of 30", got)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	closed(t, f)
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("nothing was learnt, so nothing is written: %v", err)
	}
	if mode := before.Mode().Perm(); mode != 0o600 {
		t.Errorf("the content of a private repository is for no other user: mode %o", mode)
	}
	for _, other := range [][]string{{"a"}, {"ab"}, {"a", "b", ""}, {"a\x00b"}, {"b", "a"}} {
		if got := recalled(t, Open(dir, other...), 30); got > 0 {
			t.Errorf("%q is another name, but recalls %d", other, got)
		}
	}
}

func TestFileIsRewritten(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, 30)
	f := Open(dir, "a", "b")
	f.Remember("key 0", "changed")
	f.Remember("key 31", "")
	closed(t, f)

	f = Open(dir, "a", "b")
	for key, want := range map[string]string{"key 0": "changed", "key 31": ""} {
		if got, ok := f.Recall(key); got != want || !ok {
			t.Errorf("%s: %q, %t, want %q", key, got, ok, want)
		}
	}
	f.Remember(keyed(0))
	if got := recalled(t, f, 30); got != 30 {
		t.Errorf("bodies are taken over from the file before: recalls %d of 30", got)
	}
}

func TestFileForgetsWhatNobodyAsksFor(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, 30)
	for i := range oldest + 1 {
		f := Open(dir, "a", "b")
		f.Recall("key 1")
		if i == 3 {
			f.Recall("key 3")
		}
		f.Remember(fmt.Sprint("new ", i), "")
		if got := len(f.entries); i < oldest && got != 31+i {
			t.Errorf("branches take turns: after %d turns %d entries are left of %d", i, got, 31+i)
		}
		closed(t, f)
	}
	if got := recalled(t, Open(dir, "a", "b"), 30); got != 2 {
		t.Errorf("a value without requests is dropped in the end: recalls %d, want the 2 requested ones", got)
	}
}

// TestFileIsFull simulates the preview of an upgrade: it stores the bodies of two commits and never needs them again. The values
// that it needs again are small.
func TestFileIsFull(t *testing.T) {
	dir := t.TempDir()
	f := Open(dir, "a", "b")
	learn(f, 30)
	body := strings.Repeat("b", 1<<20)
	for i := range largest/len(body) + 2 {
		f.Remember(fmt.Sprint("a body ", i), body)
	}
	closed(t, f)
	if got := recalled(t, Open(dir, "a", "b"), 30); got != 20 {
		t.Errorf("bodies push out bodies and not facts: recalls %d, want the 20 facts", got)
	}
}

func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := written(t, dir, 30)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := func(reason string, raw []byte) {
		t.Helper()
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		f := Open(dir, "a", "b")
		if got := recalled(t, f, 30); got == 30 {
			t.Errorf("%s\nrecalls %d of 30", reason, got)
		}
		learn(f, 30) // like a caller after a miss
		closed(t, f)
		if got := recalled(t, Open(dir, "a", "b"), 30); got != 30 {
			t.Errorf("%s\nwritten again it recalls %d of 30", reason, got)
		}
	}
	for at := 0; at < len(whole); at += 1 + len(whole)/200 {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 0x10
		damaged(fmt.Sprintf("byte %d of %d is damaged", at, len(whole)), flipped)
		damaged(fmt.Sprintf("%d bytes of %d are there", at, len(whole)), whole[:at])
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f := Open(dir, "a", "b")
	learn(f, 30)
	if err := os.RemoveAll(dir); err != nil { // users may delete the directory at any time
		t.Fatal(err)
	}
	if got := recalled(t, f, 30); got != 30 {
		t.Errorf("what was learnt since is there: recalls %d of 30", got)
	}
	closed(t, f)
}

func TestDeletedWhileOpen(t *testing.T) {
	dir := t.TempDir()
	path := written(t, dir, 30)
	f := Open(dir, "a", "b")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.Remember("new", "")
	closed(t, f)
	if got := recalled(t, Open(dir, "a", "b"), 30); got != 30 {
		t.Errorf("it was open, and is written again: recalls %d of 30", got)
	}
}

// TestProcesses opens one directory many times, like separate processes.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	const values = 60
	var g sync.WaitGroup
	for p := range 8 {
		g.Go(func() {
			for round := range 20 {
				f := Open(dir, "a", "b")
				recalled(t, f, values)
				var inside sync.WaitGroup
				for i := range 4 {
					inside.Go(func() { f.Remember(keyed((p + 7*round + i) % values)); recalled(t, f, values) })
				}
				inside.Wait()
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	if got := recalled(t, Open(dir, "a", "b"), values); got == 0 {
		t.Error("the last one wins, but nothing is remembered")
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("nothing else is left behind: %v, %v", list, err)
	}
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * time.Hour)
	for i, size := range []int64{together / 2, together / 3, together / 3, 1} {
		path := filepath.Join(dir, fmt.Sprint(i)+suffix)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil { // takes no room
			t.Fatal(err)
		}
		at := old.Add(-time.Duration(i) * time.Minute)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for name, at := range map[string]time.Time{writing + "1": old, writing + "2": time.Now(), "somebody's": old} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	used := Open(dir, "used")
	used.path = filepath.Join(dir, "1"+suffix)
	closed(t, used) // this file becomes the newest
	newest := filepath.Base(written(t, dir, 3))

	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	for name, stays := range map[string]bool{
		newest: true, "0" + suffix: true, "1" + suffix: true, "2" + suffix: false, "3" + suffix: false,
		writing + "1": false, writing + "2": true, "somebody's": true,
	} {
		if got := strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" "); got != stays {
			t.Errorf("the oldest go until the others are not too large, and what killed processes left\n%s: stays %t, want %t", name, got, stays)
		}
	}
}

func TestMemory(t *testing.T) {
	m := new(Memory)
	learn(m, 30)
	if got := recalled(t, m, 30); got != 30 {
		t.Errorf("recalls %d of 30", got)
	}
	body := strings.Repeat("b", 1<<20)
	for i := range 100 {
		m.Remember(fmt.Sprint("body ", i), body)
		m.Recall("body 0")
		m.Remember("body 0", body) // changes nothing
	}
	if _, ok := m.Recall("body 0"); !ok {
		t.Error("what is asked for again and again stays")
	}
	if got := recalled(t, m, 30); got != 20 {
		t.Errorf("bodies push out bodies and not facts: recalls %d, want the 20 facts", got)
	}
	m.Remember("huge", strings.Repeat("h", 2*most))
	if _, ok := m.Recall("huge"); ok {
		t.Error("what is larger than a generation is not remembered")
	}
	held := 0
	for _, g := range []generations{m.facts, m.bodies} {
		for _, all := range []map[string]string{g.young, g.old} {
			size := 0
			for key, value := range all {
				size += len(key) + len(value)
			}
			if size > most {
				t.Errorf("a generation holds %d bytes, the most is %d", size, most)
			}
			held += size
		}
	}
	if held < most {
		t.Errorf("it remembers what fits: %d bytes of %d", held, 4*most)
	}
}

func TestMemoryIsShared(t *testing.T) {
	m := new(Memory)
	var g sync.WaitGroup
	for range 8 {
		g.Go(func() { learn(m, 200); recalled(t, m, 200) })
	}
	g.Wait()
	if got := recalled(t, m, 200); got != 200 {
		t.Errorf("recalls %d of 200", got)
	}
}

// FuzzFile reads files with arbitrary content.
func FuzzFile(f *testing.F) {
	dir := f.TempDir()
	from := Open(dir, "a", "b")
	learn(from, 7)
	if err := from.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(from.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(0, 0, "", false)
	f.Add(len(whole)/2, len(whole), "", false)
	f.Add(head, 1, "\xff", false)
	f.Add(head, 1, "\xff", true)
	f.Add(head+20, 3, "\xff\xff\xff\xff\x00", true)
	f.Fuzz(func(t *testing.T, at, gone int, instead string, summed bool) {
		// Replace a part of the file.
		at = max(0, min(at, len(whole)))
		gone = max(0, min(gone, len(whole)-at))
		raw := slices.Concat(whole[:at], []byte(instead), whole[at+gone:])
		if summed && len(raw) >= head { // a correct checksum hides the damage from the first check
			length := min(binary.BigEndian.Uint64(raw[len(magic):]), uint64(len(raw)-head))
			sum := sumOf(string(raw[head : head+int(length)]))
			copy(raw, magic)
			binary.BigEndian.PutUint64(raw[len(magic):], length)
			copy(raw[head-len(sum):], sum[:])
		}
		if err := os.WriteFile(from.path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		opened := Open(dir, "a", "b")
		if !summed {
			recalled(t, opened, 10)
		}
		for key := range opened.entries {
			if value, ok := opened.Recall(key); ok && len(key)+len(value) > len(raw) {
				t.Errorf("%q: a value of %d bytes out of %d", key, len(value), len(raw))
			}
		}
		opened.Remember("new", "value")
		if err := opened.Close(); err != nil {
			t.Fatal(err)
		}
		if value, ok := Open(dir, "a", "b").Recall("new"); value != "value" || !ok {
			t.Errorf("whatever was there, what is learnt now is remembered: %q, %t", value, ok)
		}
	})
}
