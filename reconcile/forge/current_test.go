package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/report"
)

// A fakeComments holds the comments of a pull request like a forge.
type fakeComments struct {
	pullAPI

	all    []comment
	last   int64
	most   int // maximum number of comments that it lists; 0 for all
	writes int // writes until the process ends; 0 for none
}

var errEnded = errors.New("the process ended")

func (b *fakeComments) write() error {
	if b.writes == 0 {
		return errEnded
	}
	b.writes--
	return nil
}

func (b *fakeComments) self(context.Context) (string, error) { return "headgate", nil }

func (b *fakeComments) comments(context.Context, int, time.Time) ([]comment, error) {
	if b.most > 0 && len(b.all) > b.most {
		return b.all[:b.most], errTooManyComments
	}
	return b.all, nil
}

func (b *fakeComments) comment(_ context.Context, _ int, body string) error {
	if err := b.write(); err != nil {
		return err
	}
	b.add("headgate", body)
	return nil
}

func (b *fakeComments) add(author, body string) {
	b.last++
	b.all = append(b.all, comment{id: b.last, author: author, body: body})
}

func (b *fakeComments) edit(_ context.Context, _ int, c comment, body string) error {
	if err := b.write(); err != nil {
		return err
	}
	for i := range b.all {
		if b.all[i].id == c.id {
			b.all[i].body = body
		}
	}
	return nil
}

// A foldingComments can also fold comments.
type foldingComments struct{ *fakeComments }

func (f foldingComments) minimize(_ context.Context, c comment) error {
	if err := f.write(); err != nil {
		return err
	}
	for i := range f.all {
		if f.all[i].id == c.id {
			f.all[i].node = "minimized"
		}
	}
	return nil
}

// shown returns the comments as users see them.
func (b *fakeComments) shown() []string {
	var all []string
	for _, c := range b.all {
		output := normal(c.body)
		for strings.HasPrefix(output, "<!-- ") {
			_, output, _ = strings.Cut(output, "-->")
			output = strings.TrimSpace(output)
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s %s", c.id, output, c.node)))
	}
	return all
}

func (b *fakeComments) pulls(folds bool) *Pulls {
	p := &Pulls{
		pullAPI: b, forge: KindGitHub.forge(), at: Repository{Kind: KindGitHub, Base: "https://github.com", Owner: "acme", Name: "platform"},
		transport: &transport{header: KindGitHub.forge().header, fetch: Token(canary)},
	}
	if folds {
		p.pullAPI = foldingComments{b}
	}
	return p
}

const manyWrites = 100

// A published is a published verdict and its text.
type published struct {
	verdict report.Word
	text    string
}

func (s published) current() Current {
	return Current{Key: "headgate/east", Body: s.text, Verdict: s.verdict, Replaces: []string{"headgate/shop", "headgate/east/shop"}, Quiet: s.text == "nothing"}
}

func TestCurrent(t *testing.T) {
	ours := func(key, text string) comment {
		return comment{author: "headgate", body: "<!-- " + key + " -->\n" + text}
	}
	for name, tc := range map[string]struct {
		reason string
		has    []comment
		says   []published
		folds  bool
		want   []string
	}{
		"Nothing":    {"A pull request without changes gets no comment.", nil, []published{{report.Safe, "nothing"}}, false, nil},
		"First":      {"The first verdict gets a new comment.", nil, []published{{report.Look, "a"}}, false, []string{"1 a"}},
		"InPlace":    {"An unchanged verdict updates the comment in place, without a notification.", nil, []published{{report.Look, "a"}, {report.Look, "b"}}, false, []string{"1 b"}},
		"Better":     {"A better verdict updates the comment in place, without a notification.", nil, []published{{report.Blocked, "a"}, {report.Safe, "b"}}, false, []string{"1 b"}},
		"GoesAway":   {"After the change is reverted, the comment reports that nothing changes.", nil, []published{{report.Look, "a"}, {report.Safe, "nothing"}}, false, []string{"1 nothing"}},
		"Worse":      {"A worse verdict gets a new comment, and the old comment links to it.", nil, []published{{report.Safe, "a"}, {report.Blocked, "b"}}, false, []string{"1 Outdated: see [Headgate's newer comment](https://github.com/acme/platform/pull/7#issuecomment-2).", "2 b"}},
		"WorseFolds": {"On a forge that can minimize comments, the old comment is minimized.", nil, []published{{report.Safe, "a"}, {report.Blocked, "b"}, {report.Blocked, "c"}}, true, []string{"1 a minimized", "2 c"}},
		"Twice":      {"Each change to a worse verdict makes exactly one new comment.", nil, []published{{report.Safe, "a"}, {report.Blocked, "b"}, {report.Safe, "c"}, {report.Look, "d"}}, true, []string{"1 a minimized", "2 c minimized", "3 d"}},
		"Unknown":    {"A comment by an earlier version has no verdict, so it is updated in place.", []comment{ours("headgate/east", "old")}, []published{{report.Blocked, "b"}}, false, []string{"1 b"}},
		"OfSyncs":    {"The comments on single syncs link to the comment on all syncs.", []comment{ours("headgate/shop", "old"), ours("headgate/other", "stays"), ours("headgate/east/shop", "old")}, []published{{report.Look, "b"}}, false, []string{"1 Outdated: see [Headgate's newer comment](https://github.com/acme/platform/pull/7#issuecomment-4).", "2 stays", "3 Outdated: see [Headgate's newer comment](https://github.com/acme/platform/pull/7#issuecomment-4).", "4 b"}},
		"Copied":     {"A copy of the mark by another user does not prevent a new comment.", []comment{{author: "mallory", body: "<!-- headgate/east -->\n<!-- headgate/verdict/blocked -->\nx"}}, []published{{report.Safe, "a"}, {report.Blocked, "b"}}, true, []string{"1 x", "2 a minimized", "3 b"}},
		"CopiedOnly": {"A copy of the mark by another user does not cause a comment.", []comment{{author: "mallory", body: "<!-- headgate/east -->\nx"}}, []published{{report.Safe, "nothing"}}, true, []string{"1 x"}},
		"TwoProcesses": {"If two processes posted at the same time, the newest comment remains.", []comment{
			ours("headgate/east", "<!-- headgate/verdict/look -->\na"), ours("headgate/east", "<!-- headgate/verdict/look -->\na"),
		}, []published{{report.Look, "a"}}, false, []string{"1 Outdated: see [Headgate's newer comment](https://github.com/acme/platform/pull/7#issuecomment-2).", "2 a"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &fakeComments{writes: manyWrites}
			for _, c := range tc.has {
				b.add(c.author, c.body)
			}
			for _, s := range tc.says {
				for range 2 { // a restart changes nothing
					if err := b.pulls(tc.folds).Publish(t.Context(), 7, s.current()); err != nil {
						t.Fatal(err)
					}
				}
			}
			if diff := cmp.Diff(tc.want, b.shown()); diff != "" {
				t.Errorf("%s\nthe pull request shows (-want +got):\n%s", tc.reason, diff)
			}
			left := b.writes
			if err := b.pulls(tc.folds).Publish(t.Context(), 7, tc.says[len(tc.says)-1].current()); err != nil || b.writes != left {
				t.Errorf("nothing changed, and Headgate writes: %v", err)
			}
		})
	}
}

// If a process ends before any write, the next one leaves exactly one current comment.
func TestCurrentEndsAnywhere(t *testing.T) {
	for _, folds := range []bool{false, true} {
		for n := range 6 {
			b := &fakeComments{writes: manyWrites}
			b.add("headgate", "<!-- headgate/shop -->\nold")
			for _, s := range []published{{report.Safe, "a"}, {report.Blocked, "b"}} {
				b.writes = n
				err := b.pulls(folds).Publish(t.Context(), 7, s.current())
				if err != nil && !strings.Contains(err.Error(), errEnded.Error()) {
					t.Fatal(err)
				}
				b.writes = manyWrites
				if err := b.pulls(folds).Publish(t.Context(), 7, s.current()); err != nil {
					t.Fatal(err)
				}
			}
			p := b.pulls(folds)
			if current := p.marked(b.all, "headgate/east"); len(current) != 1 || !strings.HasSuffix(current[0].body, "b") || len(p.marked(b.all, "headgate/shop")) > 0 || len(b.all) != 3 {
				t.Errorf("after %d writes (folds: %t): %q", n, folds, b.shown())
			}
		}
	}
}

// A user may delete any of the comments.
func TestCurrentDeleted(t *testing.T) {
	b := &fakeComments{writes: manyWrites}
	for _, s := range []published{{report.Safe, "a"}, {report.Blocked, "b"}} {
		if err := b.pulls(false).Publish(t.Context(), 7, s.current()); err != nil {
			t.Fatal(err)
		}
	}
	b.all = b.all[:1]
	if err := b.pulls(false).Publish(t.Context(), 7, published{report.Blocked, "b"}.current()); err != nil {
		t.Fatal(err)
	}
	if got := b.shown(); len(got) != 2 || got[1] != "3 b" {
		t.Errorf("the pull request shows %q", got)
	}
}

// Other users write more comments than Headgate reads. If Headgate wrote a new comment, it could not find that comment again, and
// the next preview would write another one.
func TestCurrentInACrowd(t *testing.T) {
	b := &fakeComments{writes: manyWrites, most: 3}
	publish := func(s published) error { return b.pulls(false).Publish(t.Context(), 7, s.current()) }
	if err := publish(published{report.Safe, "a"}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		b.add("mallory", "spam")
	}
	for range 3 {
		if err := publish(published{report.Blocked, "b"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.shown(); len(got) != 6 || got[0] != "1 b" {
		t.Errorf("the pull request shows %q", got)
	}
	b.all = b.all[1:]
	if err := publish(published{report.Blocked, "b"}); err == nil || len(b.all) != 5 {
		t.Errorf("the comment is deleted: %v, %q", err, b.shown())
	}
}

// GitHub folds comments through GraphQL, and returns 200 even if it refuses.
func TestMinimize(t *testing.T) {
	var got struct {
		Query     string
		Variables map[string]string
	}
	refuse := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/api/graphql" || json.Unmarshal(raw, &got) != nil {
			t.Errorf("%s %s %s", r.Method, r.URL.Path, raw)
		}
		answerJSON(w, http.StatusOK, `{"data":{"minimizeComment":null}`+refuse+`}`)
	}))
	defer server.Close()
	p, err := Account{Repository: Repository{Kind: KindGitHub, Base: server.URL, Owner: "acme", Name: "platform"}, Token: Token(canary)}.Pulls()
	if err != nil {
		t.Fatal(err)
	}
	by := p.pullAPI.(minimizer)
	if err := by.minimize(t.Context(), comment{node: "IC_1"}); err != nil || got.Variables["id"] != "IC_1" || !strings.Contains(got.Query, "minimizeComment") || !strings.Contains(got.Query, "OUTDATED") {
		t.Errorf("minimize(...): %v, sent %+v", err, got)
	}
	refuse = `,"errors":[{"message":"Resource not accessible by integration"}]`
	if err := by.minimize(t.Context(), comment{node: "IC_1"}); err == nil || !strings.Contains(err.Error(), "not accessible") {
		t.Errorf("a refusal: %v", err)
	}
}
