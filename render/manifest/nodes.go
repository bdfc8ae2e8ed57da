package manifest

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

	yamltree "go.yaml.in/yaml/v3"
)

// countNodes counts about the nodes of a document, and at least half of them, without making any: they stand behind line
// breaks and a few other bytes. Text that holds these bytes counts, too: a CRD of a provider counts half as many again as
// it has.
func countNodes(raw []byte) int {
	n := 1
	for _, one := range [...]byte{'\n', '\r', '[', '{', ',', ':'} {
		n += bytes.Count(raw, []byte{one})
	}
	for _, one := range [...]byte{'-', '?'} { // before a blank only
		for _, blank := range [...]byte{' ', '\t'} {
			n += bytes.Count(raw, []byte{one, blank})
		}
	}
	if !isASCII(raw) {
		for _, lineBreak := range [][]byte{nextLine, lineSeparator, paragraphSeparator} {
			n += bytes.Count(raw, lineBreak)
		}
	}
	return n
}

// decoding bounds the nodes of all documents that this process decodes at the same time, across all readers. A node
// takes up to a kilobyte while it is decoded, and a fraction of that afterwards.
var decoding = semaphore.NewWeighted(decodedAtOnce)

const decodedAtOnce = 300_000

// turn waits until some nodes may be decoded, and returns what ends that.
func turn(nodes int) (done func()) {
	n := int64(min(nodes, decodedAtOnce))         // a larger one is alone
	_ = decoding.Acquire(context.Background(), n) // fails only with its context
	return func() { decoding.Release(n) }
}

// few refuses a document of too many nodes before it is decoded.
func (s section) few(nodes int) error {
	if nodes <= s.limits.Nodes {
		return nil
	}
	return s.cannotDecode(s.part.first, fmt.Errorf("it has about %d nodes, and the limit is %d: split it, or raise limits.nodes", nodes, s.limits.Nodes))
}

// Claim counts a document that is about to be decoded, and to be kept, against the limit on all of them, once. The error
// is a LimitError.
func (d *Document) Claim() error {
	r := d.reader
	if r == nil {
		return nil
	}
	if _, twice := r.claimed.LoadOrStore(d, true); twice || r.nodes.Add(int64(d.nodes)) <= int64(r.limits.TotalNodes) {
		return nil
	}
	return LimitError{Path: d.Origin.Path, Nodes: r.limits.TotalNodes}
}

// expandedNodes returns how many nodes a node has with every alias replaced.
func expandedNodes(node *yamltree.Node, known map[*yamltree.Node]int64) int64 {
	if n, ok := known[node]; ok {
		return n
	}
	known[node] = 0
	n := int64(1)
	if node.Kind == yamltree.AliasNode {
		n = expandedNodes(node.Alias, known)
	}
	for _, child := range node.Content {
		n = min(n+expandedNodes(child, known), 1<<62-1)
	}
	known[node] = n
	return n
}
