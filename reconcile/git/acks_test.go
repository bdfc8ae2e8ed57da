//test:package raced minutes=3
package git

import (
	"io/fs"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Azure DevOps and AWS CodeCommit answer 400 to clients without multi_ack. A server with it acknowledges every common
// commit on a line of its own, before the pack.
func TestMultiAck(t *testing.T) {
	for _, acks := range []capability.Capability{capability.MultiACK, capability.MultiACKDetailed} {
		t.Run(string(acks), func(t *testing.T) {
			h := newHistory(t)
			s := serve(h.fixture)
			s.acks = acks
			r := &Repository{URL: s.url(), Cache: t.TempDir()}
			if _, err := r.Fetch(t.Context(), "main"); err != nil {
				t.Fatalf("the first fetch: %v", err)
			}
			next := h.push("main", map[string]string{"a.yaml": "6"}, h.main)
			in, err := r.Fetch(t.Context(), "main")
			if err != nil {
				t.Fatalf("the second fetch, which names the commits of the first: %v", err)
			}
			if text, err := fs.ReadFile(in.Files, "a.yaml"); in.Revision != next.String() || string(text) != "6" {
				t.Errorf("want %s with the new file, got %s with %q, %v", next, in.Revision, text, err)
			}
			if first, second := s.sent[0], s.sent[len(s.sent)-1]; second >= first {
				t.Errorf("the server sent %d objects, then %d; want fewer, because the client named what it has", first, second)
			}
		})
	}
}
