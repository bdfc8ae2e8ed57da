package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestParseBlocks(t *testing.T) {
	cases := map[string]struct {
		reason string
		doc    string
		want   any // nil: it leaves the document to the library
	}{
		"Scalars": {
			reason: "what generators write has few types",
			doc:    "a: text\nb: 1\nc: -20\nd: true\ne: false\nf:\ng: null\nh: {}\ni: []\nj: 5 m\n",
			want: map[string]any{
				"a": "text", "b": int64(1), "c": int64(-20), "d": true, "e": false, "f": nil, "g": nil, "h": map[string]any{}, "i": []any{}, "j": "5 m",
			},
		},
		"Collections": {
			reason: "a list may stand as deep as its key, and items may be lists and mappings",
			doc:    "---\na:\n- x\n- b: 1\n  c:\n  - - w\n    -\n    - z: 1\nd:\n  - e\n# the end\n",
			want: map[string]any{
				"a": []any{"x", map[string]any{"b": int64(1), "c": []any{[]any{"w", nil, map[string]any{"z": int64(1)}}}}},
				"d": []any{"e"},
			},
		},
		"Folded": {
			reason: "descriptions go over lines, and an empty line is a line break",
			doc:    "a: one\n  two - three\n\n  four\nb: 'it''s\n  one\n\n\n  line '\nc: last\n",
			want:   map[string]any{"a": "one two - three\nfour", "b": "it's one\n\nline ", "c": "last"},
		},
		"Literal": {
			reason: "descriptions of several paragraphs are literal",
			doc:    "a: |-\n  one:\n    two # no comment\n\n  three\n\nb: |\n  x\n\nc:\n- |-\n  y\n",
			want:   map[string]any{"a": "one:\n  two # no comment\n\nthree", "b": "x\n", "c": []any{"y"}},
		},
		"Quoted":          {reason: "keys and values may be quoted", doc: "\"a b\": \"x: \\\"y\\\"\\n\"\n'c': ''\n", want: map[string]any{"a b": "x: \"y\"\n", "c": ""}},
		"NotLatin":        {reason: "text is in any language", doc: "a: é ß\n", want: map[string]any{"a": "é ß"}},
		"Comment":         {reason: "it is not known whether a value goes on behind a comment", doc: "a: b # c\n"},
		"Twice":           {reason: "the library has an error for a key that is there twice", doc: "a: b\na: c\n"},
		"Float":           {reason: "JSON writes floats in several ways", doc: "a: 1.5\n"},
		"OldNumber":       {reason: "YAML 1.1 reads 010 as 8", doc: "a: 010\n"},
		"Date":            {reason: "YAML 1.1 knows dates", doc: "a: 2001-12-14 21:59:43.10 -5\n"},
		"Yes":             {reason: "YAML 1.1 reads yes as true", doc: "a: yes\n"},
		"KeyOn":           {reason: "and so are keys", doc: "on: a\n"},
		"Anchor":          {reason: "an anchor changes what follows", doc: "a: &b c\n"},
		"Merge":           {reason: "a merge key is no key", doc: "<<: {}\n"},
		"Tab":             {reason: "tabs separate and do not indent", doc: "a:\tb\n"},
		"SecondDocument":  {reason: "it ends the first one", doc: "a: b\n---\nc: d\n"},
		"ColonInText":     {reason: "the library has an error for it", doc: "a: b: c\n"},
		"ColonInNextLine": {reason: "and for this", doc: "a: b\n  c: d\n"},
		"TooDeep":         {reason: "the library says so", doc: "a:\n  b:\n    c:\n      d:\n        e:\n          f:\n            g: h\n"},
		"Indent":          {reason: "the library has an error for an item that is not in line", doc: "a:\n  - b\n - c\n"},
		"OpenQuote":       {reason: "the library has an error for it", doc: "a: 'b\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := parseBlocks([]byte(tc.doc), 6)
			if ok != (tc.want != nil) {
				t.Fatalf("%s: parseBlocks(%q) answers: %t", tc.reason, tc.doc, ok)
			}
			if diff := cmp.Diff(tc.want, got); ok && diff != "" {
				t.Errorf("%s: parseBlocks(%q) (-want +got):\n%s", tc.reason, tc.doc, diff)
			}
			sameAsLibrary(t, tc.doc)
		})
	}
}

// sameAsLibrary is the invariant of parseBlocks.
func sameAsLibrary(t *testing.T, doc string) {
	t.Helper()
	got, ok := parseBlocks([]byte(doc), 100)
	if !ok {
		return
	}
	s := section{content: &content{Reader: NewReader(nil, Limits{}, nil), path: "a.yaml"}, part: part{end: len(doc), line: 1, first: 1}}
	j, err := s.plain([]byte(doc))
	if err != nil {
		t.Fatalf("parseBlocks(%q) answers, and the library has an error: %v", doc, err)
	}
	var want any
	if err := utiljson.Unmarshal(j, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("parseBlocks(%q) (-library +parseBlocks):\n%s", doc, diff)
	}
}

// It answers for nearly all that generators write, and as the library does.
func TestParseBlocksOfCorpus(t *testing.T) {
	all, silent := 0, 0
	corpus(t, func(_, _ string, raw []byte) {
		all++
		if _, ok := parseBlocks(raw, 100); !ok {
			silent++
		} else if all%20 == 0 { // the library takes its time
			sameAsLibrary(t, string(raw))
		}
	})
	t.Logf("%d documents decoded, %d of them left to the library", all, silent)
	if silent > all/100 {
		t.Errorf("%d of %d documents are left to the library", silent, all)
	}
}

func FuzzParseBlocks(f *testing.F) {
	for _, doc := range scanSeeds {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) { sameAsLibrary(t, doc) })
}

// FuzzParseBlocksTokens builds documents from what parseBlocks looks for, as FuzzScanTokens does.
func FuzzParseBlocksTokens(f *testing.F) {
	for seed := range byte(32) {
		tokens := make([]byte, 24)
		for i := range tokens {
			tokens[i] = byte(i)*seed + seed
		}
		f.Add(tokens)
	}
	f.Fuzz(func(t *testing.T, tokens []byte) {
		var doc strings.Builder
		doc.WriteString("a")
		for _, token := range tokens {
			doc.WriteString(blockTokens[int(token)%len(blockTokens)])
		}
		doc.WriteString("\n")
		sameAsLibrary(t, doc.String())
	})
}

var blockTokens = []string{
	"\n", "\n ", "\n  ", "\n   ", "\n    ", "\nb: ", "\n  c: ", "\n  d:", "\n- ", "\n  - ", "\n    - e: ", "\n    f: ", "\n- - ",
	": ", ":", " ", "'", "''", "\"", "\\", "\\n", "|", "|-", ": |\n  ", ": |-\n   ", ">", "-", "- ", "{}", "[]", "#", " #", "---", "\n---", "\n...",
	"g", "h", "true", "null", "~", "0", "12", "-3", "1.5", "é", "?", "? ", "=", "<<", "&", "*", "!", "%", "@", ",",
}
