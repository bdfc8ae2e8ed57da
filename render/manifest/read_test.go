package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	yamlv2 "go.yaml.in/yaml/v2"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"headgate.dev/headgate/fixtures/corpus"
)

func file(name, text string) fstest.MapFS {
	return fstest.MapFS{name: &fstest.MapFile{Data: []byte(text)}}
}

// brief returns documents in short form: "line kind name", or "line -" if a document is not a manifest.
func brief(documents []*Document) []string {
	var all []string
	for _, d := range documents {
		s := fmt.Sprint(d.Origin.Line, " -")
		if d.Header.Kind != "" {
			s = fmt.Sprint(d.Origin.Line, " ", d.Header.Kind, " ", d.Header.Name)
		}
		all = append(all, s)
	}
	return all
}

const (
	one = "apiVersion: v1\nkind: A\nmetadata:\n  name: one\n"
	two = "apiVersion: v1\nkind: B\nmetadata:\n  name: two\n"
)

func TestRead(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		text   string
		want   []string
	}{
		"Empty": {
			reason: "An empty file holds no documents.",
		},
		"OnlyComments": {
			reason: "Comments and blank lines do not form documents, however many separators there are.",
			text:   "---\n# a\n---\n\n--- # b\n...\n---\n",
		},
		"One": {
			reason: "The origin is the first line of content.",
			text:   "# licence\n\n---\n# comment\n" + one,
			want:   []string{"5 A one"},
		},
		"Several": {
			reason: "Every document has its own line.",
			text:   one + "--- # next\n" + two + "---\n---\n\n" + one,
			want:   []string{"1 A one", "6 B two", "13 A one"},
		},
		"EndMarker": {
			reason: "'...' ends a document, like '---'.",
			text:   one + "...\n# between\n---\n" + two + "...\n",
			want:   []string{"1 A one", "8 B two"},
		},
		"MarkerInBlockScalar": {
			reason: "An indented marker is content.",
			text:   "apiVersion: v1\nkind: A\ndata: |\n  ---\n  ...\nmetadata: {name: one}\n---\n" + two,
			want:   []string{"1 A one", "8 B two"},
		},
		"NoMarker": {
			reason: "A marker ends at a space.",
			text:   "apiVersion: v1\nkind: A\n---x: y\nmetadata: {name: one}\n",
			want:   []string{"1 A one"},
		},
		"ContentBehindMarker": {
			reason: "A document may begin on the line of its marker.",
			text:   one + "--- {apiVersion: v1, kind: B, metadata: {name: two}}\n--- !!map\n" + one,
			want:   []string{"1 A one", "5 B two", "6 A one"},
		},
		"Directives": {
			reason: "Directives belong to the document after their marker.",
			text:   "%YAML 1.1\n# comment\n---\n" + one + "...\n%TAG ! tag:example.com,2000:\n---\n" + two,
			want:   []string{"4 A one", "11 B two"},
		},
		"ByteOrderMark": {
			reason: "Windows editors write a BOM at the beginning, and concatenating files moves it to other places.",
			text:   "\uFEFF" + one + "---\n\uFEFF" + two,
			want:   []string{"1 A one", "6 B two"},
		},
		"ByteOrderMarkBeforeMarker": {
			reason: "A marker after a BOM is still a marker.",
			text:   "\uFEFF---\n" + one + "---\n" + two,
			want:   []string{"2 A one", "7 B two"},
		},
		"CRLF": {
			reason: "Lines may end with CRLF.",
			text:   strings.ReplaceAll(one+"---\n"+two, "\n", "\r\n"),
			want:   []string{"1 A one", "6 B two"},
		},
		"CR": {
			reason: "YAML and editors know the line breaks of old Macs.",
			text:   strings.ReplaceAll(one+"---\n"+two, "\n", "\r"),
			want:   []string{"1 A one", "6 B two"},
		},
		"NoManifest": {
			reason: "A document that is not a mapping, or lacks a kind or apiVersion, is returned without a header.",
			text:   "a: b\n---\nkind: A\n---\napiVersion: v1\n---\n- a\n---\ntext\n---\nnull\n---\nkind: 1\napiVersion: v1\n",
			want:   []string{"1 -", "3 -", "5 -", "7 -", "9 -", "11 -", "13 -"},
		},
		"MergeKeys": {
			reason: "Anchors, aliases and merge keys are decoded.",
			text:   "base: &base\n  name: one\napiVersion: v1\nkind: A\nmetadata:\n  <<: *base\n",
			want:   []string{"1 A one"},
		},
		"List": {
			reason: "Lists are unwrapped, even nested ones, and every item has its line.",
			text:   "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n  metadata:\n    name: one\n- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: B, metadata: {name: two}}\n---\n" + one,
			want:   []string{"4 A one", "11 B two", "13 A one"},
		},
		"TypedList": {
			reason: "The items of a typed list may omit their kind.",
			text:   "apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata:\n    name: one\n",
			want:   []string{"4 ConfigMap one"},
		},
		"EmptyList": {
			reason: "A list without items contains no documents.",
			text:   "apiVersion: v1\nkind: List\nitems: []\n",
		},
		"NoList": {
			reason: "A kind may end in List without being a list.",
			text:   "apiVersion: v1\nkind: AllowList\nmetadata:\n  name: one\nitems: {}\n",
			want:   []string{"1 AllowList one"},
		},
		"JSON": {
			reason: "JSON is parsed as JSON.",
			name:   "a.json",
			text:   "\n{\n\t\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"one\"}\n}\n",
			want:   []string{"2 A one"},
		},
		"JSONList": {
			reason: "JSON lists are unwrapped.",
			name:   "a.json",
			text:   "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n  {\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"one\"}}\n]}",
			want:   []string{"2 A one"},
		},
		"JSONWithoutContent": {
			reason: "An empty file is valid, whatever its name.",
			name:   "a.json",
			text:   " \n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.name == "" {
				tc.name = "a.yaml"
			}
			got, err := Read(file(tc.name, tc.text), tc.name, Limits{})
			if err != nil {
				t.Fatalf("%s\nRead(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, brief(got)); diff != "" {
				t.Errorf("%s\nRead(...) (-want +got):\n%s", tc.reason, diff)
			}
			for _, d := range got {
				if d.Header.Kind == "" {
					continue
				}
				u, err := d.Decode()
				if err != nil {
					t.Fatalf("%s\n%s: Decode(): %v", tc.reason, d.Origin, err)
				}
				if diff := cmp.Diff(d.Header, headerOf(u.Object)); diff != "" {
					t.Errorf("%s\n%s: Decode() (-header +decoded):\n%s", tc.reason, d.Origin, diff)
				}
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	deep := strings.Repeat("[", 250) + strings.Repeat("]", 250)
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		alias := fmt.Sprintf("*a%d", i-1)
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.Join([]string{alias, alias, alias, alias, alias, alias, alias, alias, alias}, ", "))
	}
	cases := map[string]struct {
		reason string
		name   string
		text   string
		limits Limits
		want   string // users work with this text, so it is tested
	}{
		"Absent": {
			reason: "The path is not repeated.",
			name:   "b.yaml",
			want:   "b.yaml: cannot read: file does not exist",
		},
		"FileTooLarge": {
			reason: "Reading ends at the limit.",
			text:   strings.Repeat(one, 100), limits: Limits{FileBytes: 1000},
			want: "a.yaml: cannot read: it is larger than the limit of 1000 bytes for one file",
		},
		"TooManyBytes": {
			reason: "All files together have a limit.",
			text:   strings.Repeat("# c\n", 1000), limits: Limits{TotalBytes: 1000},
			want: "a.yaml: cannot read: the files of the commit are larger than the limit of 1000 bytes together",
		},
		"TooManyDocuments": {
			reason: "All documents together have a limit.",
			text:   one + "---\n" + two, limits: Limits{Documents: 1},
			want: "a.yaml: cannot read: the commit holds more than the limit of 1 documents",
		},
		"TooDeep": {
			reason: "Nesting has a limit.",
			text:   one + "---\na: " + deep + "\n",
			want:   "a.yaml:6: cannot decode: it is nested more deeply than the limit of 200 levels",
		},
		"TooDeepForTheParser": {
			reason: "Nesting cannot exhaust the stack.",
			text:   strings.Repeat("[", 100_000),
			want:   "a.yaml:1: cannot decode: exceeded max depth of 10000",
		},
		"TooDeepBlocks": {
			reason: "Nesting cannot exhaust the stack.",
			text:   strings.Repeat("- ", 9000) + "a\n",
			want:   "a.yaml:1: cannot decode: it is nested more deeply than the limit of 200 levels",
		},
		"AliasBomb": {
			reason: "Aliases of aliases are refused while they expand.",
			text:   bomb,
			want:   "a.yaml:1: cannot decode: document contains excessive aliasing",
		},
		"AliasesOfMuch": {
			reason: "Many aliases of one large text are refused before they expand.",
			text:   "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n",
			want:   "a.yaml:1: cannot decode: its aliases expand to more than the limit of 16777216 bytes",
		},
		"AliasesOfMany": {
			reason: "Many aliases of a mapping take a kilobyte each: 300 KB took 100 MB.",
			text:   "a: &a {b: c, d: e}\nb: [" + strings.Repeat("*a,", 50_000) + "]\n",
			want:   "a.yaml:1: cannot decode: its aliases expand to 250010 nodes, and the limit is 200000: raise limits.nodes if that is right",
		},
		"ManyNodes": {
			reason: "16 MiB of empty mappings took 8.8 GB.",
			text:   "a: [" + strings.Repeat("{},", 5<<20) + "]\n",
			want:   "a.yaml:1: cannot decode: it has about 10485764 nodes, and the limit is 200000: split it, or raise limits.nodes",
		},
		"ManyNodesInJSON": {
			reason: "JSON is decoded by another library.",
			name:   "a.json",
			text:   `{"kind": "a", "metadata": [` + strings.Repeat("{},", 5<<20) + "{}]}",
			want:   "a.json:1: cannot decode: it has about 10485767 nodes, and the limit is 200000: split it, or raise limits.nodes",
		},
		"NUL": {
			reason: "A binary file is not YAML.",
			text:   "a: b\nc: \x00\n",
			want:   "a.yaml:2: cannot read: it holds a NUL byte, so it is not text",
		},
		"NotUTF8": {
			reason: "The error names the line, because most of such a file looks right.",
			text:   "a: b\nc: caf\xe9\n",
			want:   "a.yaml:2: cannot read: it is not UTF-8: save it as UTF-8",
		},
		"UTF16": {
			reason: "The YAML library would read it, and Kubernetes would not.",
			text:   "\xff\xfea\x00:\x00",
			want:   "a.yaml:1: cannot read: it is UTF-16: save it as UTF-8",
		},
		"UnknownAnchor": {
			reason: "The library does not report the line.",
			text:   "a: b\nc: *d\n",
			want:   "a.yaml:2: cannot decode: unknown anchor 'd' referenced; if this is not an alias, quote it: * begins an alias",
		},
		"ControlCharacter": {
			reason: "The library does not report the line.",
			text:   "a: {}\n---\nb: [c,\n\x01]\n",
			want:   "a.yaml:4: cannot decode: control characters are not allowed",
		},
		"Scanner": {
			reason: "Lines count from the beginning of the file.",
			text:   one + "---\n# c\na: [b]\nc: &d e: f\n",
			want:   "a.yaml:8: cannot decode: mapping values are not allowed in this context",
		},
		"Parser": {
			reason: "The library's line is off by one here.",
			text:   one + "---\na: [b: [c]]\nd: [[e]]]\n",
			want:   "a.yaml:7: cannot decode: did not find expected key",
		},
		"Unclosed": {
			reason: "An error at the end of a document is on its last line.",
			text:   "a: \"b\nc: d\n",
			want:   "a.yaml:2: cannot decode: found unexpected end of stream",
		},
		"Duplicate": {
			reason: "The API server would hide a duplicate key.",
			text:   "a: {b: {}}\nc: d\na: e\nc: f\n",
			want:   "a.yaml:3: cannot decode: key \"a\" already set in map (and 1 more)",
		},
		"CollidingNumber": {
			reason: "The API server converts keys to text, so chance would decide which of the two values counts.",
			text:   "{a: b,\n c: {\n  1: one,\n  d: e,\n  \"1\": another}}\n",
			want:   `a.yaml:5: cannot decode: the key "1" is the same as 1 in line 3: both become the text "1"; remove one of them`,
		},
		"CollidingBool": {
			reason: "YAML 1.1 reads yes as true.",
			text:   "a: {yes: b,\n \"true\": c}\n",
			want:   `a.yaml:2: cannot decode: the key "true" is the same as yes in line 1, which means true unless it is quoted; quote that, or remove one of them`,
		},
		"CollidingFloat": {
			reason: "A whole number with a decimal point becomes the same text as one without.",
			text:   "{a: [\n  {1.0: b,\n  1: c}]}\n",
			want:   `a.yaml:3: cannot decode: the key 1 is the same as 1.0 in line 2, which means 1 unless it is quoted; quote that, or remove one of them`,
		},
		"CollidingHexadecimal": {
			reason: "Two forms of one number are the same key before they become text.",
			text:   "{a: {\n  0x1: b,\n  1: c}}\n",
			want:   "a.yaml:3: cannot decode: the key 1 is the same as 0x1 in line 2, which means 1 unless it is quoted; quote that, or remove one of them",
		},
		"CollidingFloats": {
			reason: "Numbers that differ only in truncated digits become the same text.",
			text:   "{a: {\n  0.1: b,\n  0.10000000149: c}}\n",
			want:   `a.yaml:3: cannot decode: the key 0.10000000149 means 0.1 unless it is quoted, the same as 0.1 in line 2; quote it, or remove one of them`,
		},
		"CollidingMerge": {
			reason: "The same key overrides a merged key; a different key that becomes the same text does not.",
			text:   "a: &a {1: b}\nc:\n  <<: *a\n  \"1\": d\n",
			want:   `a.yaml:1: cannot decode: the key 1 is the same as "1" in line 4: both become the text "1"; remove one of them`,
		},
		"CollidingTag": {
			reason: "A tag turns a number into a text.",
			text:   "a: {!!str 1: b,\n 1: c}\n",
			want:   `a.yaml:2: cannot decode: the key 1 is the same as 1 in line 1: both become the text "1"; remove one of them`,
		},
		"CollidingBinary": {
			reason: "An encoded tag also turns a number into a text.",
			text:   "a: {!!binary MQ==: b,\n 1: c}\n",
			want:   `a.yaml:2: cannot decode: the key 1 is the same as MQ== in line 1: both become the text "1"; remove one of them`,
		},
		"CollidingWords": {
			reason: "The author does not know that both words are true.",
			text:   "a: {y: b,\n on: c}\n",
			want:   "a.yaml:2: cannot decode: the key on is the same as y in line 1: unquoted, both mean true; quote them",
		},
		"CollidingWord": {
			reason: "The error names the key as it was written.",
			text:   "a: {y: b,\n y: c}\n",
			want:   "a.yaml:2: cannot decode: the key y is already set in line 1; remove one of them",
		},
		"CollidingNull": {
			reason: "Null does not become a text.",
			text:   "{null: b, ~: c}\n",
			want:   "a.yaml:1: cannot decode: key <nil> already set in map",
		},
		"CollidingAlias": {
			reason: "A key may be an alias.",
			text:   "a: &a 1\nb: {*a : c,\n \"1\": d}\n",
			want:   `a.yaml:3: cannot decode: the key "1" is the same as 1 in line 1: both become the text "1"; remove one of them`,
		},
		"Template": {
			reason: "Helm charts in the tree are the most frequent broken YAML.",
			text:   "a: b\nc: {{ .Values.secret }}\n",
			want:   "a.yaml:2: cannot decode: a key is a mapping or a sequence: if this is a template, list the file in .headgateignore",
		},
		"Tab": {
			reason: "Tabs are invisible, so the error mentions them.",
			text:   "a:\n\tb: c\n",
			want:   "a.yaml:2: cannot decode: found character that cannot start any token: indent with spaces",
		},
		"Discreet": {
			reason: "Errors must not quote values, which may be secrets.",
			text:   "a: {b: c}\nd: !!int hunter2\n",
			want:   "a.yaml:2: cannot decode: cannot decode !!str as a !!int",
		},
		"NullKey": {
			reason: "Errors must not quote values, which may be secrets.",
			text:   "a: &a {b: c}\nd:\n  <<: *a\n  ~: hunter2\n",
			want:   "a.yaml:4: cannot decode: a key is null or of another type that JSON does not have",
		},
		"NaN": {
			reason: "JSON has no NaN.",
			text:   "a: b\nc: [[1.5],\n  [.nan]]\n",
			want:   "a.yaml:3: cannot decode: JSON has neither infinity nor NaN",
		},
		"KeyOfMany": {
			reason: "A key in JSON must be a string.",
			text:   "a: b\nc:\n  ? [hunter2]\n  : d\n",
			want:   "a.yaml:3: cannot decode: a key is a mapping or a sequence",
		},
		"EndsEarly": {
			reason: "The library would silently ignore what follows.",
			text:   "  apiVersion: v1\n  kind: A\nmetadata:\n  name: lost\n",
			want:   "a.yaml:3: cannot decode: did not find expected <document start>: the document ends before this line: check its indentation",
		},
		"EndsEarlyInFlow": {
			reason: "The library would silently ignore what follows.",
			text:   "{apiVersion: v1, kind: A}\nmetadata: {}\n",
			want:   "a.yaml:2: cannot decode: did not find expected <document start>: the document ends before this line: check its indentation",
		},
		"EndsEarlyAtDirective": {
			reason: "The library would silently ignore what follows.",
			text:   "a: {b: {}}\n%YAML 1.1\n",
			want:   "a.yaml:2: cannot decode: did not find expected <document start>: the document ends before this line: check its indentation",
		},
		"ContentBehindEnd": {
			reason: "'...' must be alone on its line.",
			text:   "a: b\n... c\n",
			want:   "a.yaml:2: cannot read: content after the document end marker '...': begin the next document with '---'",
		},
		"ListOfText": {
			reason: "An item that is not an object is reported with its own line.",
			text:   "apiVersion: v1\nkind: List\nitems:\n- {}\n- a\n",
			want:   "a.yaml:5: cannot decode: it is not an object: a manifest begins with apiVersion, kind and metadata",
		},
		"UnquotedPattern": {
			reason: "Patterns of policies often begin with an asterisk, which YAML reads as an alias.",
			text:   "kind: a\nmetadata: {}\nspec:\n  activate:\n  - a.example.org\n  - *.example.org\n",
			want:   "a.yaml:6: cannot decode: a value begins with *; quote it: * begins an alias",
		},
		"UnquotedAsterisk": {
			reason: "In flow style, a pattern is read as an alias, too.",
			text:   "kind: a\nmetadata: {}\nspec: {activate: [*]}\n",
			want:   "a.yaml:3: cannot decode: a value begins with *; quote it: * begins an alias",
		},
		"UnquotedAmpersand": {
			reason: "An ampersand has the same problem.",
			text:   "kind: a\nmetadata: {}\ndata:\n  a: &*\n",
			want:   "a.yaml:4: cannot decode: a value begins with &; quote it: & begins an anchor",
		},
		"JSONSyntax": {
			reason: "The error has the line of the mistake.",
			name:   "a.json",
			text:   "{\"kind\": 1, \"metadata\": 2,\n\"a\": [\n1,\n]}\n",
			want:   "a.json:4: cannot decode: invalid character ']' looking for beginning of value",
		},
		"JSONDuplicate": {
			reason: "A duplicate key is a mistake in JSON, too.",
			name:   "a.json",
			text:   "\n{\"kind\": 1, \"metadata\": 2, \"a\": {\"b\": 1, \"b\": 2}}",
			want:   "a.json:2: cannot decode: duplicate field \"a.b\"",
		},
		"JSONDeep": {
			reason: "Nesting cannot exhaust the stack.",
			name:   "a.json",
			text:   `{"kind": 1, "metadata": ` + strings.Repeat("[", 100_000),
			want:   "a.json:1: cannot decode: invalid character '[' exceeded max depth",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := "a.yaml"
			if strings.HasSuffix(tc.name, ".json") {
				have = tc.name
			}
			if tc.name == "" {
				tc.name = have
			}
			_, err := Read(file(have, tc.text), tc.name, tc.limits)
			if err == nil {
				t.Fatalf("%s\nRead(...): no error, want %s", tc.reason, tc.want)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s\nRead(...) (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReaderCounts(t *testing.T) {
	r := NewReader(fstest.MapFS{
		"a.yaml": &fstest.MapFile{Data: []byte(one)},
		"b.yaml": &fstest.MapFile{Data: []byte(two)},
	}, Limits{Documents: 1}, nil)
	if _, err := r.Read("a.yaml"); err != nil {
		t.Errorf("Read(a.yaml): %v", err)
	}
	if _, err := r.Read("b.yaml"); err == nil {
		t.Errorf("Read(b.yaml): the limit holds for all files together, want an error")
	}
}

// counted counts how often a file is opened.
type counted struct {
	fs.FS
	opened map[string]int
}

func (c counted) Open(name string) (fs.File, error) {
	c.opened[name]++
	return c.FS.Open(name)
}

func TestBodies(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		opened int
	}{
		"OneDocument":      {"The content of a single document is not kept in memory, so the file is opened again.", "# c\n---\n" + one, 3},
		"SeveralDocuments": {"A file with several documents is read only once.", one + "---\n" + two, 1},
		"List":             {"A List is decoded only once for all its items.", "apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: B\n", 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := counted{file("a.yaml", tc.text), map[string]int{}}
			documents, err := Read(files, "a.yaml", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				u, err := documents[0].Decode()
				if err != nil {
					t.Fatal(err)
				}
				if u.GetKind() != "A" {
					t.Errorf("%s\nDecode(): kind %s: an object must not be shared", tc.reason, u.GetKind())
				}
				u.SetKind("changed")
			}
			if got := files.opened["a.yaml"]; got != tc.opened {
				t.Errorf("%s\nopened %d times, want %d", tc.reason, got, tc.opened)
			}
		})
	}
}

func TestDecodeValues(t *testing.T) {
	const text = "apiVersion: v1\nkind: A\nbig: 9007199254740993\nfloat: 1.5\nyes: on\nold: 0o17\ntext: \"<&>\\u2028\"\ntime: 2020-01-01\n"
	documents, err := Read(file("a.yaml", text), "a.yaml", Limits{})
	if err != nil {
		t.Fatal(err)
	}
	u, err := documents[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "A", "big": int64(9007199254740993), "float": 1.5,
		"true": true, "old": int64(15), "text": "<&>\u2028", "time": "2020-01-01",
	}
	if diff := cmp.Diff(want, u.Object); diff != "" {
		t.Errorf("values equal those of the API server\nDecode() (-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	for _, doc := range scanSeeds {
		f.Add(doc)
		f.Add(doc + "---\n" + doc)
	}
	for _, stream := range []string{
		one + "--- # c\n" + two + "...\n",
		"%YAML 1.1\n---\na: b\n...\n%TAG ! x:\n# c\n---\nc: !d e\n",
		"--- |\n a\n---\tb\n--- {c: d}\n---\n- e\n",
		"a: |\n  ---\n ---\n---\nb: '\n  ---'\n",
		"a\n---\nb\n...\n...\n---\nc",
		"\uFEFFa: b\n---\nc: d\n",
		"\uFEFF%YAML 1.1\n---\na: b\n",
		"\uFEFF--- # c\na: b\n...\n",
		"a: b\r\n---\r\nc: d\r---\re: f\n",
		"a: b\u0085---\u0085c: d\u2028---\u2029e: f",
		"  a: b\nc: d\n",
		"# c\n\uFEFFa: b\nc: d\n",
		"{a: b}\nc: d\n",
		"a: b\n%TAG ! x:\n---\nc: d\n",
		"apiVersion: v1\nkind: List\nitems:\n- a: b\n-  - c\n",
		"a: &a b\nc: *a\n<<: {d: e}\n",
		"\t# c\n\t\n---\na: b\n",
	} {
		f.Add(stream)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		if strings.LastIndex(stream, "\uFEFF") > 0 {
			return // the library makes a BOM part of a key, and we drop it
		}
		documents, err := Read(file("a.yaml", stream), "a.yaml", Limits{Depth: 10_000})
		if err != nil {
			return
		}
		count, last := lineIn([]byte(stream), len(stream)), 1
		var got []any
		for _, d := range documents {
			if d.Origin.Line < last || d.Origin.Line > count {
				t.Errorf("Read(%q): origin %s is not behind line %d in %d lines", stream, d.Origin, last, count)
			}
			last = d.Origin.Line
			v, err := d.body.decode()
			if err != nil {
				return // Scan also returns headers of documents that cannot be decoded
			}
			if _, isItem := d.body.(item); isItem {
				return // the library does not unwrap lists
			}
			if v != nil {
				got = append(got, v)
			}
		}
		want, err := decodeStream(stream)
		if err != nil {
			return
		}
		for _, v := range want {
			if m, ok := v.(map[string]any); ok && strings.HasSuffix(headerOf(m).ofManifest().Kind, "List") {
				return // perhaps the list had no items
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("where both can read a stream, both read the same\nRead(%q) (-library +got):\n%s", stream, diff)
		}
	})
}

// decodeStream decodes a stream with the YAML library's own decoder.
func decodeStream(stream string) ([]any, error) {
	var all []any
	decoder := yamlv2.NewDecoder(strings.NewReader(stream))
	decoder.SetStrict(true)
	for {
		var v any
		err := decoder.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if v, err = jsonable(v); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		v = nil
		if err := utiljson.Unmarshal(bytes.TrimSpace(raw), &v); err != nil {
			return nil, err
		}
		if v != nil {
			all = append(all, v)
		}
	}
}

// jsonable converts keys like sigs.k8s.io/yaml.
func jsonable(v any) (_ any, err error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			if v[i], err = jsonable(v[i]); err != nil {
				return nil, err
			}
		}
	case map[any]any:
		m := map[string]any{}
		for key, value := range v {
			var s string
			switch key := key.(type) {
			case string, int, int64, bool:
				s = fmt.Sprint(key)
			case float64:
				s = strconv.FormatFloat(key, 'g', -1, 32)
			default:
				return nil, fmt.Errorf("key %v", key)
			}
			if _, again := m[s]; again {
				return nil, fmt.Errorf("key %s twice", s) // chance would decide which value counts
			}
			if m[s], err = jsonable(value); err != nil {
				return nil, err
			}
		}
		return m, nil
	}
	return v, nil
}

func BenchmarkRead(b *testing.B) {
	files := fstest.MapFS{}
	var size int64
	inCorpus(b, func(archive, name string, raw []byte) {
		if archive == corpus.MadeUp {
			files[name] = &fstest.MapFile{Data: raw}
			size += int64(len(raw))
		}
	})
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		for name := range files {
			if _, err := Read(files, name, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}
