package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// streamed returns the documents of a stream that can be opened only once.
func streamed(text string, limits Limits) ([]*Document, error) {
	opened := false
	return NewReader(fstest.MapFS{}, limits, nil).Stream(Stream{Name: "a.yaml", File: "a.xpkg", Open: func() (io.ReadCloser, error) {
		if opened {
			return nil, errors.New("it was read already")
		}
		opened = true
		return io.NopCloser(strings.NewReader(text)), nil
	}})
}

// wholly returns everything that a caller can see of the decoded documents.
func wholly(documents []*Document, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, d := range documents {
		v, err := d.body.decode()
		fmt.Fprintf(&b, "%s %+v %v %v; kind %s, labels %s\n", d.Origin, d.Header, v, err, d.OriginOf("kind"), d.OriginOf("metadata", "labels"))
	}
	return b.String()
}

func TestStream(t *testing.T) {
	large := strings.Repeat("# a comment that is long\n", 1000)
	for name, text := range map[string]string{
		"Empty":       "",
		"OnlyComment": "# nothing\n",
		"One":         one,
		"Several":     "# licence\n---\n" + one + "---\n" + large + two + "--- # more\n" + one,
		"Directives":  "%YAML 1.1\n---\n" + one + "...\n%YAML 1.1\n# c\n---\n" + two,
		"Broken":      one + "---\n\nkind: [\n---\n" + two,
		"NotText":     one + "---\nkind: \x00\n",
		"LongMarker":  one + "--- # " + strings.Repeat("--- ", 50_000) + "\n" + two,
		"List":        one + "---\napiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(two), "\n", "\n  ") + "\n",
		"CRLF":        strings.ReplaceAll(one+"---\n"+two, "\n", "\r\n"),
		"JSONInside":  "---\n{\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"one\"}}\n---\n" + two,
	} {
		want := wholly(Read(file("a.yaml", text), "a.yaml", Limits{}))
		if diff := cmp.Diff(want, wholly(streamed(text, Limits{}))); diff != "" {
			t.Errorf("%s: a stream is read as a file is (-file +stream):\n%s", name, diff)
		}
	}
}

// The input of a pipe may be JSON, in which tabs are valid.
func TestStreamOfJSON(t *testing.T) {
	documents, err := streamed("{\n\t\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"one\"}\n}\n", Limits{})
	if err != nil || len(documents) != 1 || documents[0].Header.Name != "one" {
		t.Errorf("got %v, %v", documents, err)
	}
}

// Apart from single documents, a stream may be larger than a file, and takes little memory.
func TestStreamIsLarge(t *testing.T) {
	document := "---\n" + one + "data: {" + strings.Repeat("a line that comes again and again: x,\n  ", 1) + "}\n# " + strings.Repeat("a", 100_000) + "\n"
	text := strings.Repeat(document, 50)
	limits := Limits{FileBytes: 200_000}
	if _, err := Read(file("a.yaml", text), "a.yaml", limits); err == nil {
		t.Error("a file of that size is read")
	}
	documents, err := streamed(text, limits)
	if err != nil || len(documents) != 50 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	kept := 0
	for _, c := range documents[0].body.(section).stream.chunks {
		kept += len(c.kept)
	}
	if kept > len(text)/20 {
		t.Errorf("%d bytes are kept of %d", kept, len(text))
	}
	if u, err := documents[49].Decode(); err != nil || u.GetName() != "one" || documents[49].Origin.Line != 49*strings.Count(document, "\n")+2 {
		t.Errorf("%s: %v, %v", documents[49].Origin, u, err)
	}

	_, err = streamed(text, Limits{FileBytes: 50_000})
	if err == nil || !strings.HasPrefix(err.Error(), "a.yaml:1: cannot read: a document is larger than the limit of 50000 bytes") {
		t.Errorf("a document that is too large: %v", err)
	}
	_, err = streamed(text, Limits{TotalBytes: 1_000_000})
	if _, ok := errors.AsType[LimitError](err); !ok {
		t.Errorf("it counts with all other files: %v", err)
	}
	_, err = streamed(text, Limits{Documents: 49})
	if _, ok := errors.AsType[LimitError](err); !ok {
		t.Errorf("and so do its documents: %v", err)
	}
}

func TestStreamThatBreaks(t *testing.T) {
	boom := errors.New("boom")
	for name, open := range map[string]func() (io.ReadCloser, error){
		"Opening": func() (io.ReadCloser, error) { return nil, boom },
		"Reading": func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader(one+"---\n"+two), iotest.ErrReader(boom))), nil
		},
	} {
		documents, err := NewReader(fstest.MapFS{}, Limits{}, nil).Stream(Stream{Name: "a.yaml", File: "a.xpkg", Open: open})
		if !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), "a.") || documents != nil {
			t.Errorf("%s: nothing is known of a stream without its end, got %v, %v", name, documents, err)
		}
	}
}

// If a Memo knows the stream, it is opened only to decode a document.
func TestStreamIsRemembered(t *testing.T) {
	files := hashed{file("a.xpkg", one)}
	memo := &notes{all: map[string]string{}}
	opened := 0
	text := one + "---\n" + strings.Repeat("# a comment\n", 1000) + two
	read := func() []*Document {
		t.Helper()
		documents, err := NewReader(files, Limits{}, memo).Stream(Stream{Name: "a.yaml", File: "a.xpkg", Open: func() (io.ReadCloser, error) {
			opened++
			return io.NopCloser(strings.NewReader(text)), nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return documents
	}
	want := wholly(read(), nil)
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	documents := read()
	if brief(documents)[1] != "1006 B two" || opened != 1 {
		t.Errorf("the second time it is known what is in it: %v, opened %d times", brief(documents), opened)
	}
	if got := wholly(documents, nil); got != want || opened != 2 {
		t.Errorf("opened %d times; want\n%s\ngot\n%s", opened, want, got)
	}
	documents = read()
	text = one
	if _, err := documents[1].Decode(); err == nil || !strings.Contains(err.Error(), "has changed since it was first read") {
		t.Errorf("a stream that is another one: %v", err)
	}
}

// FuzzStream checks that a stream of arbitrary text has the same result as a file, in chunks of any size.
func FuzzStream(f *testing.F) {
	for _, doc := range scanSeeds {
		f.Add(doc+"---\n"+doc, 3)
	}
	f.Add("%YAML 1.1\n---\na: b\n...\n%TAG ! x:\n# c\n---\nc: !d e\n", 1)
	f.Add("--- |\n a\n---\tb\n--- {c: d}\n---\n- e\n", 2)
	f.Add("\uFEFFa: b\n---\n\uFEFF---\nc: d\n---", 5)
	f.Add("a: b\r\n---\r\nc: d\r---\re: f\n---\u0085g: h\n", 7)
	f.Add("{\"1\": a, 1: b}", 3)
	f.Add("a: {yes: b, \"true\": c}\n---\n0.1: d\n0.10000000149: e\n", 4)
	f.Add("a: &a {1: b}\nc: {<<: *a, \"1\": d}\n", 5)
	f.Fuzz(func(t *testing.T, text string, size int) {
		limits := Limits{Depth: 10_000}
		want, err := Read(file("a.yaml", text), "a.yaml", limits)
		got, streamErr := NewReader(fstest.MapFS{}, limits, nil).Stream(Stream{Name: "a.yaml", Open: func() (io.ReadCloser, error) {
			return io.NopCloser(&pieces{bytes.NewReader([]byte(text)), max(1, size%100)}), nil
		}})
		if isJSONObject([]byte(text)) {
			return // read more strictly
		}
		if (err == nil) != (streamErr == nil) {
			t.Fatalf("%q: of a file %v, of a stream %v", text, err, streamErr)
		}
		if err != nil {
			return // of several mistakes, either may be reported
		}
		if diff := cmp.Diff(wholly(want, nil), wholly(got, nil)); diff != "" {
			t.Fatalf("%q (-file +stream):\n%s", text, diff)
		}
	})
}

// A pieces returns a few bytes per read.
type pieces struct {
	io.Reader

	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }
