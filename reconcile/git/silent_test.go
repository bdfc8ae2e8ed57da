package git

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A server that does not respond must not stop a loop for as long as the largest repository may take.
func TestSilentServer(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	cases := map[string]struct {
		reason string
		path   string
		begin  string // of the answer
		header bool   // the answer begins
		want   string
	}{
		"Refs":     {reason: "The server may accept the connection and send nothing.", path: "/info/refs", want: "did not list its refs within 300ms"},
		"HalfRefs": {reason: "The server may stop in the middle of the list of refs.", path: "/info/refs", header: true, begin: "001e# service=git-upload-pack\n0000", want: "did not list its refs within 300ms"},
		"Pack":     {reason: "The server may send nothing when a pack is requested.", path: "/git-upload-pack", want: "sent nothing within 300ms"},
		"HalfPack": {reason: "The server may stop in the middle of the pack.", path: "/git-upload-pack", header: true, begin: "0008NAK\n000a\x01PACK\x00", want: "sent nothing within 300ms"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			s := serve(h.fixture)
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, tc.path) {
					return false
				}
				_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client has disconnected
				if tc.header {
					kind := "application/x-git-upload-pack-result"
					if tc.path == "/info/refs" {
						kind = "application/x-git-upload-pack-advertisement"
					}
					w.Header().Set("Content-Type", kind)
					_, _ = io.WriteString(w, tc.begin)
					hang(w, r)
				}
				<-r.Context().Done()
				return true
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r := &Repository{URL: s.url(), Cache: t.TempDir(), Limits: Limits{Silence: 300 * time.Millisecond}}
			_, err := r.Fetch(ctx, "main")
			if err == nil || !strings.Contains(err.Error(), tc.want) || ctx.Err() != nil {
				t.Fatalf("%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
			s.mu.Lock()
			s.before = nil
			s.mu.Unlock()
			r = &Repository{URL: s.url(), Cache: r.Cache}
			if _, err := r.Fetch(t.Context(), "main"); err != nil {
				t.Errorf("%s\nthe next fetch: %v", tc.reason, err)
			}
		})
	}
}

// A higher limit for a large repository allows longer silence, but a low limit stays low.
func TestSilence(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, time.Hour: 12 * time.Minute, 30 * time.Second: 30 * time.Second} {
		if got := (Limits{Time: limit}).orDefault().Silence; got != want {
			t.Errorf("with %s for a fetch: want %s, got %s", limit, want, got)
		}
	}
}
