package outbox

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// refusal is the error about a token that may not post to one repository.
type refusal struct{ error }

func (refusal) TokenRefused() bool { return true }

// A rate limit is that of a token. It stops the posts of all syncs with this token, and of nobody else. What a token may not do in one
// repository says nothing about others.
func TestGates(t *testing.T) {
	for name, tc := range map[string]struct {
		fails error
		tried []int // by the first sync, another one with its token, and one with another token
	}{
		"RateLimit": {later{time.Hour}, []int{1, 0, 1}},
		"Trouble":   {later{}, []int{1, 0, 1}},
		"Refusal":   {refusal{errors.New("the token may not set statuses")}, []int{1, 1, 1}},
		"Success":   {nil, []int{2, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			var gates Gates
			c := newClock()
			var forges []*forge
			var all []*Outbox
			for _, token := range []string{"one", "one", "other"} {
				f := &forge{fails: func(string) error { return tc.fails }}
				forges, all = append(forges, f), append(all, c.after(&Outbox{Next: f, Token: gates.Of(token)}))
			}
			for _, revision := range []string{"a", "b"} {
				for _, o := range all {
					_ = o.Publish(t.Context(), reported(revision, "done"))
				}
			}
			var tried []int
			for _, f := range forges {
				tried = append(tried, f.tried)
				f.is(nil)
			}
			if !slices.Equal(tried, tc.tried) {
				t.Errorf("they tried %d times, want %d", tried, tc.tried)
			}
			c.move(2 * time.Hour)
			for i, o := range all {
				if o.Flush(t.Context()); o.Waiting() != 0 || len(forges[i].published) != 2 {
					t.Errorf("sync %d has %d reports that wait, and published %q", i, o.Waiting(), forges[i].published)
				}
			}
		})
	}
}

// An answer to a request from before the rate limit says nothing about it.
func TestLateAnswerOpensNoGate(t *testing.T) {
	var g Gate
	c := newClock()
	g.fails(c.now, time.Hour)
	g.opens(c.now)
	if g.left(c.now) != time.Hour {
		t.Error("the forge asked for an hour")
	}
	c.move(time.Hour)
	g.opens(c.now)
	if first := g.fails(c.now, 0); !first || g.left(c.now) != firstPause {
		t.Errorf("after a success, the pauses begin anew: %s", g.left(c.now))
	}
}
