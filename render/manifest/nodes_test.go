package manifest

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The limits do not get in the way: every package of the corpus, with every CRD active, stays below half of each default limit. One
// provider of a family stays below half of the default for forks.
//
//test:unraced
func TestLimitsAdmitCorpus(t *testing.T) {
	limits := Limits{}.orDefault()
	all, families := map[string]int{}, map[string]int{}
	inCorpus(t, func(archive, name string, raw []byte) {
		nodes := countNodes(raw)
		if 2*nodes > limits.Nodes {
			t.Errorf("%s: %s has %d nodes; the limit is %d", archive, name, nodes, limits.Nodes)
		}
		if 2*int64(len(raw)) > limits.FileBytes {
			t.Errorf("%s: %s has %d bytes; the limit is %d", archive, name, len(raw), limits.FileBytes)
		}
		all[archive] += nodes
		family, _, _ := strings.Cut(strings.TrimPrefix(name, "crds/"), ".")
		families[archive+" "+family] += nodes
	})
	for archive, nodes := range all {
		if 2*nodes > limits.TotalNodes {
			t.Errorf("%s has %d nodes; the limit is %d", archive, nodes, limits.TotalNodes)
		}
	}
	for family, nodes := range families {
		if 2*nodes > ForkNodes {
			t.Errorf("%s has %d nodes; the limit for forks is %d", family, nodes, ForkNodes)
		}
	}
}

// The count must be at least half of the real number. Otherwise a document with more nodes than the limit would be decoded.
func FuzzCountNodes(f *testing.F) {
	for _, doc := range scanSeeds {
		f.Add(doc)
	}
	for _, doc := range []string{
		"[{},{},{a: b}]", "[[[[]]]]", "a:\n- - - b\n  - c\n-\n", "? a\n: b\n? [c]\n", "a: b\rc: d\r\ne: f", "a: b\u0085c: d\u2028- e\u2029", "-\ta\n-\tb\n",
		"{\"a\":1,'b':2}", "!!set {a, b}", "&a [*a]", "- |\n  a\n- >\n  b\n", "[? a : b, c]", "[a: b]", "{a, b,}", "a: !!str\nb:",
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var node yaml.Node
		if yaml.NewDecoder(bytes.NewReader([]byte(text))).Decode(&node) != nil {
			return
		}
		n := 0
		var count func(*yaml.Node)
		count = func(node *yaml.Node) {
			n++
			for _, child := range node.Content {
				count(child)
			}
		}
		for _, child := range node.Content {
			count(child)
		}
		if counted := countNodes([]byte(text)); 2*counted+2 < n {
			t.Errorf("%q has %d nodes, and %d are counted", text, n, counted)
		}
	})
}

// All stored documents count together, each once, whether or not they come from a Memo.
func TestClaim(t *testing.T) {
	files := file("a.yaml", "a: [b, c]\n---\nd: [e, f]\n")
	for name, memo := range map[string]Memo{"NoMemo": nil, "Memo": new(remembering)} {
		for range 2 {
			documents, err := NewReader(files, Limits{TotalNodes: 9}, memo).Read("a.yaml")
			if err != nil || len(documents) != 2 {
				t.Fatalf("%s: %d documents, %v", name, len(documents), err)
			}
			for range 3 {
				if err := documents[0].Claim(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			want := LimitError{Path: "a.yaml", Nodes: 9}
			if err := documents[1].Claim(); err != want { //nolint:errorlint // it is a value
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Only a few documents are decoded at the same time, however many processors there are.
func TestTurn(t *testing.T) {
	var mu sync.Mutex
	now, most := 0, 0
	EachOf(50, 50, func(int) {
		done := acquireNodes(decodedAtOnce / 3)
		mu.Lock()
		now++
		most = max(most, now)
		mu.Unlock()
		mu.Lock()
		now--
		mu.Unlock()
		done()
	})
	if most > 3 {
		t.Errorf("%d were decoded at once", most)
	}
	acquireNodes(10 * decodedAtOnce)() // a document above the total limit is decoded alone instead of never
}

type remembering struct{ sync.Map }

func (m *remembering) Recall(key string) (string, bool) {
	v, ok := m.Load(key)
	s, _ := v.(string)
	return s, ok
}
func (m *remembering) Remember(key, value string) { m.Store(key, value) }
