package manifest

import (
	"bytes"
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

	yamltree "go.yaml.in/yaml/v3"
)

// countNodes estimates the number of nodes of a document without building them. The result is at least half the true number: nodes
// follow line breaks and a few other bytes. Text that contains these bytes also counts, so the result for a provider's CRD is half
// as large again as the true number.
func countNodes(raw []byte) int {
	n := 1
	for _, one := range [...]byte{'\n', '\r', '[', '{', ',', ':'} {
		n += bytes.Count(raw, []byte{one})
	}
	for _, one := range [...]byte{'-', '?'} { // only before a blank
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

// decoding limits the nodes of all documents that this process decodes at the same time, across all readers. A node takes up to a
// kilobyte while it is decoded, and a fraction of that afterwards.
var decoding = semaphore.NewWeighted(decodedAtOnce)

const decodedAtOnce = 300_000

// acquireNodes waits until a document with this many nodes may be decoded. done ends the decoding.
func acquireNodes(nodes int) (done func()) {
	n := int64(min(nodes, decodedAtOnce))         // a larger document is decoded alone
	_ = decoding.Acquire(context.Background(), n) // it fails only if its context ends
	return func() { decoding.Release(n) }
}

// checkNodes refuses a document with too many nodes before it is decoded.
func (s section) checkNodes(nodes int) error {
	if nodes <= s.limits.Nodes {
		return nil
	}
	return s.cannotDecode(s.part.first, fmt.Errorf("it has about %d nodes, and the limit is %d: split it, or raise limits.nodes", nodes, s.limits.Nodes))
}

// Claim counts a document that is about to be decoded and kept towards the limit for all documents. It counts a document only once.
// The error is a LimitError.
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

// expandedNodes returns the number of nodes in a node with every alias replaced.
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
