package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// hashed is a commit whose files have hashes.
type hashed struct{ fstest.MapFS }

func (h hashed) Hash(name string) (string, error) {
	f, ok := h.MapFS[name]
	if !ok {
		return "", fs.ErrNotExist
	}
	sum := sha256.Sum256(f.Data)
	return hex.EncodeToString(sum[:]), nil
}

// closed is a commit whose files must not be read.
type closed struct{ hashed }

func (closed) Open(string) (fs.File, error) { return nil, fs.ErrPermission }

// notes is a Memo that never drops anything.
type notes struct {
	mu  sync.Mutex
	all map[string]string
}

func (n *notes) Recall(key string) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	value, ok := n.all[key]
	return value, ok
}

func (n *notes) Remember(key, value string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]string{}
	}
	n.all[key] = value
}

// seen returns everything that is visible of a file, and whether all of it is valid.
func seen(r *Reader, name string) (all []any, whole bool) {
	documents, err := r.Read(name)
	if err != nil {
		return []any{err.Error()}, false
	}
	whole = true
	check := func(v any, err error) {
		if err != nil {
			v, whole = err.Error(), false
		}
		all = append(all, v)
	}
	for _, d := range documents {
		all = append(all, d.Origin, d.Header)
		if d.Header.Kind == "" {
			continue
		}
		u, err := d.Recall()
		check(u, err)
		if err == nil {
			u.SetKind("changed") // the change must not affect other copies
		}
		u, err = d.Recall()
		check(u, err)
		all = append(all, d.OriginOf("metadata", "name"), d.OriginOf("nothing", 1), d.OriginsOf(2, "spec", "activate"))
		check(d.Learn("who", func() (string, error) { return fmt.Sprint(d.Origin.Line, " ", d.Header.Name), nil }))
	}
	return all, whole
}

// aSecret reports whether a file contains a Secret.
func aSecret(all []any) bool {
	for _, v := range all {
		if h, ok := v.(Header); ok && h.Kind == "Secret" {
			return true
		}
	}
	return false
}

// remembers checks that a file has the same result with and without a Memo, whether or not the Memo has seen it before, and that a
// valid file is read once.
func remembers(t *testing.T, memo Memo, name, text string, limits Limits) {
	t.Helper()
	files := hashed{file(name, text)}
	want, whole := seen(NewReader(files, limits, nil), name)
	for _, reason := range []string{"The first time.", "The second time."} {
		got, _ := seen(NewReader(files, limits, memo), name)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\nwith a memo %q is something else (-without +with):\n%s", reason, text, diff)
		}
	}
	if !whole || aSecret(want) {
		return
	}
	got, _ := seen(NewReader(closed{files}, limits, memo), name)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was seen twice is not read again\n%q (-want +got):\n%s", text, diff)
	}
}

const listOfLists = `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: A, metadata: {name: one}}
- apiVersion: v1
  kind: BList
  items:
  - metadata: {name: two}
- apiVersion: x.example.org/v1
  kind: C
  metadata: {name: three, annotations: {b: c, a: ""}}
  spec: {activate: [x, y]}
`

var streams = []string{
	one, one + "---\n" + two, listOfLists, two + "---\n" + listOfLists + "---\n" + one,
	"", "# nothing\n", "- a\n", "a: b\n",
	"apiVersion: v1\nkind: A\nspec:\n  activate:\n  - x\n\n  - y\n",
	"apiVersion: v1\nkind: A\nmetadata: {name: one}\nf: 1.0\ng: 1e3\nh: [{i: -0.0}, 1e21, 9223372036854775807]\n",
	"apiVersion: v1\nkind: A\nspec: [\n",
	"apiVersion: v1\nkind: A\nmetadata:\n  name: one\nspec:\n  a: [\n",
	"apiVersion: v1\nkind: A\na: {b: {c: {d: {e: {f: 1}}}}}\n",
	"apiVersion: v1\nkind: Secret\nmetadata:\n  name: one\nstringData: {a: hush}\n",
	one + "---\n{apiVersion: v1, kind: SecretList, items: [{data: {a: hush}}]}\n",
	`{"apiVersion": "v1", "kind": "A", "f": 1.0, "g": -0.0, "h": [1e3, 1e21]}`,
	`{"apiVersion": "v1", "kind": "List", "items": [{"kind": "A", "f": 2.0}, {"kind": "B", "kind": "C"}]}`,
	`{"apiVersion": "v1", "kind": "A", "kind": "B"}`,
	strings.Repeat(one+"---\n", 40),
}

func TestMemo(t *testing.T) {
	memo := new(notes) // one Memo for all files, because its keys distinguish contents and options
	for _, name := range []string{"a.yaml", "a.json"} {
		for _, limits := range []Limits{{}, {Depth: 4}, {Documents: 2}, {FileBytes: 100}, {TotalBytes: 50}} {
			for _, text := range streams {
				remembers(t, memo, name, text, limits)
			}
		}
	}
}

func TestMemoHoldsNoSecret(t *testing.T) {
	memo := new(notes)
	for _, text := range streams {
		seen(NewReader(hashed{file("a.yaml", text)}, Limits{}, memo), "a.yaml")
	}
	if _, err := NewReader(hashed{file(".env", "password=hush")}, Limits{}, memo).Bytes(".env"); err != nil {
		t.Fatal(err)
	}
	for key, value := range memo.all {
		if strings.Contains(value, "hush") {
			t.Errorf("a memo may be written to disk, where the content of a Secret must not appear: %s: %q", key, value)
		}
	}
}

func TestMemoForgets(t *testing.T) {
	memo := new(notes)
	files := hashed{file("a.yaml", two+"---\n"+listOfLists)}
	want, _ := seen(NewReader(files, Limits{}, memo), "a.yaml")
	for key := range memo.all {
		some := &notes{all: maps.Clone(memo.all)}
		delete(some.all, key)
		if got, _ := seen(NewReader(files, Limits{}, some), "a.yaml"); !cmp.Equal(want, got) {
			t.Errorf("a memo may forget anything\nwithout %q (-want +got):\n%s", key, cmp.Diff(want, got))
		}
	}
}

func TestBytesAreLearnt(t *testing.T) {
	memo := new(notes)
	files := hashed{file(".headgateignore", "*.tmp\n")}
	for _, r := range []*Reader{NewReader(files, Limits{}, memo), NewReader(closed{files}, Limits{}, memo)} {
		if got, err := r.RecallBytes(".headgateignore"); err != nil || string(got) != "*.tmp\n" {
			t.Errorf("RecallBytes(): %q, %v", got, err)
		}
	}
	if _, err := NewReader(closed{files}, Limits{TotalBytes: 2}, memo).RecallBytes(".headgateignore"); err == nil {
		t.Error("what is remembered counts all the same: want an error")
	}
}

func FuzzMemo(f *testing.F) {
	for _, text := range streams {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, isJSON bool) {
		name := "a.yaml"
		if isJSON {
			name = "a.json"
		}
		remembers(t, new(notes), name, text, Limits{})
	})
}

func FuzzOutline(f *testing.F) {
	for _, text := range streams {
		c := &content{Reader: NewReader(file("a.yaml", text), Limits{}, nil), path: "a.yaml"}
		if o, err := c.outline(); err == nil {
			f.Add(o.encode())
		}
	}
	f.Fuzz(func(t *testing.T, remembered string) {
		o, ok := decodeOutline(remembered, make([]outlined, 1))
		if !ok {
			return
		}
		if again := o.encode(); again != remembered {
			t.Errorf("what is taken is what was written, to the last byte\ndecodeOutline(%q).encode() = %q", remembered, again)
		}
		for _, d := range o.documents {
			if d.part.start < 0 || d.part.start > d.part.end || int64(d.part.end) > o.size {
				t.Errorf("decodeOutline(%q): a part is no part of the file: %+v", remembered, d.part)
			}
		}
	})
}
