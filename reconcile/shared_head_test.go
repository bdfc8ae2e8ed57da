package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
)

// A headsForge is a forge that shows the targets of statuses, and knows whose pull requests count.
type headsForge struct {
	*pullForge

	strangers []int // the numbers of pull requests whose authors neither wrote the head nor may write
	asked     int
	away      bool                     // the forge does not answer who may write
	slow      map[string]chan struct{} // previews into these branches wait for it
}

func (h *headsForge) Counts(_ context.Context, of Request) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	if h.away {
		return false, errBoom
	}
	return !slices.Contains(h.strangers, of.Number), nil
}

func (h *headsForge) Publisher(of Request, targets []string) PreviewPublisher {
	return headsPublisher{pullPublisher{h.pullForge, of, targets}}
}

type headsPublisher struct{ pullPublisher }

func (w headsPublisher) say(what, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%s %s into %s%s", w.of.Head, what, strings.Join(w.targets, ", "), text)
	return w.unsaid
}

func (w headsPublisher) Pending(context.Context) error { return w.say("pending", "") }

func (w headsPublisher) Publish(_ context.Context, all report.Combined) error {
	if all.Undecided {
		return w.say("undecided", "")
	}
	return w.say("previewed", ": "+string(all.Status().State)+" "+all.Status().Description)
}

func (w headsPublisher) Decide(_ context.Context, s report.Status) error {
	return w.say("decided", ": "+string(s.State)+" "+s.Description)
}

// heads runs previews of two branches. Previews into main fail, those into staging succeed.
func heads(t *testing.T, open ...Request) *headsForge {
	t.Helper()
	h := &headsForge{pullForge: newPullForge(open...)}
	h.commits["s1"] = h.commits["t1"]
	h.run(t, func(f *PreviewLoop) {
		first := f.Syncs[0]
		f.Syncs = nil
		for _, branch := range []string{"main", "staging"} {
			one := first
			one.Reconciler.Sync.Name, one.Ref = branch, branch
			one.Elsewhere = func(context.Context, bool, string, string) (report.Report, error) {
				var slow chan struct{}
				h.set(func() { slow = h.slow[branch] })
				if slow != nil {
					<-slow
				}
				if branch == "main" {
					return report.Report{}, errors.New("it breaks main")
				}
				return report.Repaired(one.Reconciler.Sync, render.Desired{}, "", errBoom, nil, nil), nil
			}
			f.Syncs = append(f.Syncs, one)
		}
		f.Requests = h
	})
	return h
}

const (
	red   = "error Blocked: it breaks main"
	green = "success Look: repairs the target branch, which cannot be rendered; 0 objects"
)

// The author of a pull request whose status failed retargets it.
func TestRetarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := heads(t, Request{Number: 7, Head: "h", Target: "staging", Author: "ann"}, Request{Number: 5, Head: "slow", Target: "main", Author: "ann"})
		expect(t, "Both are previewed.", h.happens(time.Second), "h pending into staging", "h previewed into staging: "+green, "slow pending into main", "slow previewed into main: "+red)
		h.set(func() {
			h.open = []Request{{Number: 9, Head: "first", Target: "staging", Author: "ann"}, {Number: 7, Head: "h", Target: "main", Author: "ann"}}
			h.commits["first"] = h.commits["h"]
		})
		expect(t, "The success of another target is pending before anything else is previewed.", h.happens(70*time.Second), "forget slow",
			"h pending into main", "first pending into staging", "first previewed into staging: "+green, "h pending into main", "h previewed into main: "+red)
		expect(t, "and nothing flaps.", h.happens(time.Hour))
	})
}

func TestSharedHead(t *testing.T) {
	into := func(number int, target string) Request { return Request{Number: number, Head: "h", Target: target} }
	cases := map[string]struct {
		reason    string
		strangers []int
		away      bool
		open      []Request
		then      []Request
		want      []string // the statuses that remain, after the first and after the second list
	}{
		"Worst": {
			reason: "A second pull request into a lenient branch must not turn a failed status into a success.",
			open:   []Request{into(7, "main"), into(8, "staging")}, then: []Request{into(8, "staging")},
			want: []string{"previewed into main, staging: error pull request 7 into main: Blocked: it breaks main", "decided into staging: " + green},
		},
		"Later": {
			reason: "The order does not matter.",
			open:   []Request{into(8, "staging")}, then: []Request{into(8, "staging"), into(7, "main")},
			want: []string{"previewed into staging: " + green, "previewed into main, staging: error pull request 7 into main: Blocked: it breaks main"},
		},
		"Stranger": {
			reason: "A pull request of a stranger with the same head must not turn a success into a failure.", strangers: []int{7},
			open: []Request{into(8, "staging")}, then: []Request{into(8, "staging"), into(7, "main")},
			want: []string{"previewed into staging: " + green, "previewed into staging: " + green},
		},
		"Strangers": {
			reason: "If nobody counts, everybody does: a required status must not be missing or green unseen.", strangers: []int{7, 8},
			open: []Request{into(7, "main"), into(8, "staging")}, then: []Request{into(7, "main")},
			want: []string{"previewed into main, staging: error pull request 7 into main: Blocked: it breaks main", "decided into main: " + red},
		},
		"Away": {
			reason: "If the forge does not answer, the pull request counts.", away: true,
			open: []Request{into(7, "main"), into(8, "staging")}, then: []Request{into(7, "main")},
			want: []string{"previewed into main, staging: error pull request 7 into main: Blocked: it breaks main", "decided into main: " + red},
		},
		"Fork": {
			reason: "A refused pull request of a fork does not count beside one whose merge was previewed.",
			open:   []Request{into(8, "staging"), {Number: 7, Head: "h", Target: "staging", Fork: true}}, then: []Request{{Number: 7, Head: "h", Target: "staging", Fork: true}},
			want: []string{"previewed into staging: " + green, "decided into staging: error Blocked: " + errFork.Error()},
		},
		"OtherFork": {
			reason: "but it counts for a target into which no other one goes.",
			open:   []Request{into(8, "staging"), {Number: 7, Head: "h", Target: "main", Fork: true}}, then: []Request{into(8, "staging")},
			want: []string{"previewed into main, staging: error pull request 7 into main: Blocked: " + errFork.Error(), "decided into staging: " + green},
		},
		"Elsewhere": {
			reason: "A pull request into a branch that no sync follows has no part in it.",
			open:   []Request{into(8, "staging"), into(7, "other")}, then: []Request{into(8, "staging")},
			want: []string{"previewed into staging: " + green, ""},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := heads(t, tc.open...)
				h.set(func() { h.strangers, h.away = tc.strangers, tc.away })
				last := func() string {
					log := slices.DeleteFunc(h.happens(70*time.Second), func(s string) bool { return strings.HasPrefix(s, "forget ") })
					if len(log) == 0 {
						return ""
					}
					return strings.TrimPrefix(log[len(log)-1], "h ")
				}
				first := last()
				h.set(func() { h.open = tc.then })
				expect(t, tc.reason, []string{first, last()}, tc.want...)
				expect(t, "Nothing flaps.", h.happens(time.Hour))
			})
		})
	}
}

// While one of the pull requests with a head is not previewed, the head has no verdict.
func TestSharedHeadWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := heads(t, Request{Number: 8, Head: "h", Target: "staging"}, Request{Number: 7, Head: "h", Target: "main"})
		expect(t, "The success of one of them is not posted.", h.happens(time.Second),
			"h pending into main, staging", "h undecided into main, staging", "h pending into main, staging", "h previewed into main, staging: error pull request 7 into main: Blocked: it breaks main")
		h.set(func() { h.unsaid, h.open = laterError(time.Second), h.open[:1] })
		h.happens(70 * time.Second)
		h.set(func() { h.unsaid = nil })
		expect(t, "What could not be posted is posted later.", h.happens(70*time.Second), "h decided into staging: "+green)
		if h.asked != 2 {
			t.Errorf("the forge was asked %d times who may write", h.asked)
		}
	})
}

// A pull request is closed while another one with its head is previewed. What is posted then still has its verdict.
func TestClosedDuringPreview(t *testing.T) {
	into := func(number int, target string) Request { return Request{Number: number, Head: "h", Target: target} }
	cases := map[string]struct {
		reason string
		open   []Request
		slow   string
		closed int
		want   []string
	}{
		"First": {
			"The other one was not previewed, so nothing was posted.", []Request{into(8, "staging"), into(7, "main")}, "staging", 7,
			[]string{"h undecided into main, staging", "h decided into staging: " + green},
		},
		"Second": {
			"The other one had failed, and its error was posted.", []Request{into(7, "main"), into(8, "staging")}, "staging", 7,
			[]string{"forget h", "h previewed into main, staging: error pull request 7 into main: Blocked: it breaks main", "h decided into staging: " + green},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := make(chan struct{})
				h := heads(t, tc.open...)
				h.set(func() { h.slow = map[string]chan struct{}{tc.slow: slow} })
				h.happens(time.Second)
				h.set(func() {
					h.open = slices.DeleteFunc(slices.Clone(h.open), func(q Request) bool { return q.Number == tc.closed })
				})
				log := h.happens(2 * time.Minute)
				close(slow)
				log = append(log, h.happens(2*time.Minute)...)
				expect(t, tc.reason, log, tc.want...)
				expect(t, "Nothing flaps.", h.happens(time.Hour))
			})
		})
	}
}

// The commit of a merge queue has the number of its pull request, and a preview and a status of its own.
func TestQueuedHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := heads(t, Request{Number: 7, Head: "queued", Target: "staging", Queued: true}, Request{Number: 7, Head: "h", Target: "staging"})
		expect(t, "Both are previewed.", h.happens(time.Second), "queued pending into staging", "queued previewed into staging: "+green, "h pending into staging", "h previewed into staging: "+green)
		h.set(func() { h.open = h.open[1:] })
		expect(t, "The merge queue dropped it.", h.happens(70*time.Second), "forget queued")
		expect(t, "Nothing is previewed again.", h.happens(time.Hour))
	})
}
