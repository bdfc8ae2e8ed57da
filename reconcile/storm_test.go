package reconcile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/engine"
)

// For a minute, a repository has another commit every second, which a poll or a push shows. A pass takes five seconds.
func TestStormOfCommits(t *testing.T) {
	for name, pushes := range map[string]bool{"Polled": false, "Pushed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				pushed := new(engine.Signal)
				l := w.loop()
				l.Interval, l.Poll, l.Pushed = time.Hour, time.Second, pushed
				w.run(t, l)
				synctest.Wait()
				w.set(func() {
					w.log = nil
					w.apply = func(context.Context) error {
						time.Sleep(5 * time.Second)
						return nil
					}
				})
				for i := range 60 {
					w.set(func() { w.revision = fmt.Sprint(i) })
					if pushes {
						pushed.Send()
					}
					time.Sleep(time.Second)
				}
				time.Sleep(20 * time.Second)
				passes, last, final := 0, -1, map[string]bool{}
				for _, line := range w.noted() {
					var at time.Duration
					var commit int
					before, after, _ := strings.Cut(line, " ")
					at, err := time.ParseDuration(before)
					if err != nil {
						t.Fatal(err)
					}
					if n, _ := fmt.Sscanf(after, "apply %d", &commit); n == 0 {
						if revision, state, _ := strings.Cut(after, ": "); !strings.HasPrefix(state, "pending") {
							final[revision] = true
						}
						continue
					}
					passes++
					if commit <= last || commit < 59 && int(at.Seconds())-commit > 2 {
						t.Errorf("A pass is over the newest commit: %q, after commit %d", line, last)
					}
					last = commit
				}
				if last != 59 || passes > 14 || passes < 10 {
					t.Errorf("There is a pass whenever the one before has ended, and none for each commit: %d, the last one over %d", passes, last)
				}
				if len(final) != passes {
					t.Errorf("Every commit that got a status got a final one: %d of %d", len(final), passes)
				}
			})
		})
	}
}
