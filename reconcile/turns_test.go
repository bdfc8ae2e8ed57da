package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"

	"github.com/google/go-cmp/cmp"
)

func TestTurnsOfAuthors(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ann := func(n int) Request { return Request{Number: n, Author: "ann"} }
	bob := func(n int) Request { return Request{Number: n, Author: "bob"} }
	eve := Request{Number: 9, Author: "eve", Fork: true}
	served := func(all ...Request) *turns {
		made := new(turns)
		for i, q := range all {
			made.began(q, start.Add(time.Duration(i)*time.Second))
		}
		return made
	}
	spent := func(q Request, took time.Duration) *turns {
		made := served(q)
		made.ended(q, took, start)
		return made
	}
	for name, tc := range map[string]struct {
		reason  string
		turns   *turns
		waiting []Request
		running []Request
		at      time.Duration
		want    int // number of the pull request; 0 if all wait
	}{
		"Newest":      {"Without a reason, the newest comes first.", served(), []Request{ann(3), ann(2), bob(1)}, nil, 0, 3},
		"LastServed":  {"The author who was served most recently comes last, however many heads were pushed.", served(bob(1), ann(2)), []Request{ann(4), ann(3), bob(1)}, nil, 0, 1},
		"NeverServed": {"Who was never served comes first.", served(bob(1)), []Request{bob(1), ann(2)}, nil, 0, 2},
		"OneAtATime":  {"An author has one preview at a time, so that a slow head leaves the other place to others.", served(bob(1)), []Request{bob(2), ann(3)}, []Request{{Author: "ann", Head: "x"}}, 0, 2},
		"AllRun":      {"If the authors of all have a preview, nothing begins.", served(), []Request{ann(3)}, []Request{{Author: "ann", Head: "x"}}, 0, 0},
		"SameHead":    {"Pull requests with one head share a status, and each one's depends on the verdict of the other.", served(), []Request{{Number: 2, Author: "bob", Head: "h"}}, []Request{{Number: 1, Author: "ann", Head: "h"}}, 0, 0},
		"Forks":       {"Strangers may open any number of pull requests.", served(ann(1)), []Request{eve, ann(1)}, nil, 0, 1},
		"OnlyForks":   {"But they are previewed, too.", served(), []Request{eve}, nil, 0, 9},
		"Unknown":     {"If the forge does not report authors, a pull request counts as its own author.", served(Request{Number: 2}), []Request{{Number: 2}, {Number: 1}}, nil, 0, 1},
		"Spent":       {"An author who used up the budget waits.", spent(ann(1), budgetOfAuthor), []Request{ann(1)}, nil, 0, 0},
		"Others":      {"Others do not.", spent(ann(1), budgetOfAuthor), []Request{ann(1), bob(2)}, []Request{{Author: "x", Head: "x"}}, 0, 2},
		"Left":        {"What is left of the budget can be used.", spent(ann(1), budgetOfAuthor-time.Second), []Request{ann(1)}, nil, 0, 1},
		"GivenBack":   {"The budget is given back.", spent(ann(1), budgetOfAuthor+10*time.Minute), []Request{ann(1)}, nil, 30*time.Minute + 2*time.Second, 1},
		"NotYet":      {"But not at once.", spent(ann(1), budgetOfAuthor+10*time.Minute), []Request{ann(1)}, nil, 29 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := 0
			if i := tc.turns.next(tc.waiting, tc.running, start.Add(tc.at)); i >= 0 {
				got = tc.waiting[i].Number
			}
			if got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// The wait that the status shows is the time after which the next preview begins.
func TestTurnsWait(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for took := time.Second; took < 2*budgetOfAuthor; took += 37 * time.Second {
		made, q := new(turns), Request{Author: "ann"}
		made.began(q, start)
		made.ended(q, took, start)
		wait := made.wait(q, start)
		if after := made.wait(q, start.Add(wait+time.Millisecond)); (wait > 0) != (took >= budgetOfAuthor) || after > 0 {
			t.Errorf("after %s: %s, and then %s", took, wait, after)
		}
	}
	many := new(turns)
	for i := range 1000 {
		q := Request{Author: fmt.Sprint(i)}
		now := start.Add(time.Duration(i) * time.Hour)
		many.began(q, now)
		many.ended(q, time.Minute, now)
	}
	if len(many.authors) > 10 {
		t.Errorf("%d authors are remembered", len(many.authors))
	}
}

// elsewhere previews in another process: heads take the time in their name.
type elsewhere struct {
	*pullForge

	running, most int
	authors       map[string]int
}

func (e *elsewhere) preview(ctx context.Context, _ bool, _, head string) (report.Report, error) {
	author, took, _ := strings.Cut(head, "-")
	d, err := time.ParseDuration(took)
	if err != nil {
		return report.Report{}, err
	}
	e.mu.Lock()
	e.running++
	e.authors[author]++
	e.most = max(e.most, e.running)
	if e.authors[author] > 1 {
		e.note("two previews of %s", author)
	}
	e.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	e.authors[author]--
	return report.Report{Kind: "Preview", Sync: inventory.Sync{Name: "a"}}, ctx.Err()
}

func openedBy(number int, head string) Request {
	author, _, _ := strings.Cut(head, "-")
	return Request{Number: number, Head: head, Target: "main", Author: author}
}

// published returns the numbers of the pull requests with a final status, in order.
func published(log []string) (all []string) {
	for _, line := range log {
		if !strings.Contains(line, "pending") && !strings.HasPrefix(line, "forget") {
			all = append(all, strings.Join(strings.Fields(line)[:2], " "))
		}
	}
	return all
}

func previewingTurns(t *testing.T, during func(y *pullForge, e *elsewhere), open ...Request) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		y := newPullForge(open...)
		e := &elsewhere{pullForge: y, authors: map[string]int{}}
		s := PreviewedSync{Reconciler: Reconciler{Source: y, Sync: inventory.Sync{Name: "a"}}, Origin: y, Elsewhere: e.preview}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			PreviewLoop{Syncs: []PreviewedSync{s}, Requests: y, Interval: time.Minute, Woken: y.woken}.Run(ctx)
		}()
		during(y, e)
		stop()
		<-ended
		if e.running != 0 {
			t.Error("the loop ended before its previews")
		}
	})
}

// Everybody who may open a pull request may push heads that take ten minutes.
func TestOneHeadDoesNotHoldUpOthers(t *testing.T) {
	previewingTurns(t, func(y *pullForge, e *elsewhere) {
		if diff := cmp.Diff([]string{"2 ann-1s", "1 bob-2s"}, published(y.happens(5*time.Second))); diff != "" {
			t.Errorf("beside a slow head, the others are previewed (-want +got):\n%s", diff)
		}
		y.mu.Lock()
		y.commits["carl-1s"] = y.commits["ann-1s"]
		y.open = append([]Request{openedBy(6, "carl-1s")}, y.open...)
		y.mu.Unlock()
		if diff := cmp.Diff([]string{"6 carl-1s"}, published(y.happens(70*time.Second))); diff != "" {
			t.Errorf("a new pull request is found (-want +got):\n%s", diff)
		}
		y.mu.Lock()
		y.commits["dora-1s"] = y.commits["ann-1s"]
		y.open = append([]Request{openedBy(7, "dora-1s")}, y.open...)
		y.mu.Unlock()
		y.woken <- struct{}{}
		if diff := cmp.Diff([]string{"7 dora-1s"}, published(y.happens(5*time.Second))); diff != "" {
			t.Errorf("a webhook announces it (-want +got):\n%s", diff)
		}
		y.mu.Lock()
		y.open = slices.DeleteFunc(y.open, func(q Request) bool { return q.Number == 5 })
		y.mu.Unlock()
		if log := y.happens(2 * time.Minute); slices.Contains(log, "forget eve-10m") {
			t.Errorf("a commit that is being read is forgotten: %q", log)
		}
		if diff := cmp.Diff([]string{"5 eve-10m", "4 eve-9m"}, published(y.happens(18*time.Minute))); diff != "" {
			t.Errorf("the slow ones follow, one at a time (-want +got):\n%s", diff)
		}
		if e.most != 2 {
			t.Errorf("%d previews at a time", e.most)
		}
	}, openedBy(5, "eve-10m"), openedBy(4, "eve-9m"), openedBy(3, "eve-8m"), openedBy(2, "ann-1s"), openedBy(1, "bob-2s"))
}

func TestBudgetOfAnAuthor(t *testing.T) {
	previewingTurns(t, func(y *pullForge, _ *elsewhere) {
		want := []string{"4 eve-10m", "3 eve-599s", "2 eve-598s", "1 waiting"}
		if diff := cmp.Diff(want, published(y.happens(31*time.Minute))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if got := published(y.happens(10 * time.Minute)); fmt.Sprint(got) != "[1 eve-1s]" {
			t.Errorf("the budget is given back: %q", got)
		}
	}, openedBy(4, "eve-10m"), openedBy(3, "eve-599s"), openedBy(2, "eve-598s"), openedBy(1, "eve-1s"))
}
