package reconcile

import (
	"cmp"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"
)

const (
	mostUndone = 3                // times that something is undone before it is a fight
	firstRest  = time.Minute      // after that, between two times that it is put right
	mostRest   = time.Hour        // however long it goes on
	leastPeace = time.Minute      // that something stays put before a fight is over
	longMemory = 90 * time.Minute // how long a field must stay unchanged before its change is forgotten
)

// fights is the memory of a loop about writers that undo its writes.
type fights map[contention]*rivalry

// A contention is another writer and a field of an object.
type contention struct {
	id            manifest.ID
	path, manager string
}

// A rivalry is the history of a contention.
type rivalry struct {
	right  time.Time     // when it was last put right
	stands bool          // our last correction was not undone
	undone int           // times
	gap    time.Duration // the longest time that it took them
}

func (f rivalry) isFight() bool { return f.undone >= mostUndone }

// quietNeeded returns how long a correction must last until the fight is over: the other writer may only be slow.
func (f rivalry) quietNeeded() time.Duration {
	if !f.isFight() {
		return longMemory
	}
	return max(2*f.gap, leastPeace)
}

// learn adds the result of a pass.
func (all fights) learn(now time.Time, r report.Report) {
	drifted := map[contention]bool{}
	for _, s := range r.Steps {
		if s.Cause != plan.Drift || s.Error != "" || s.NotReached {
			continue
		}
		for _, c := range contentions(s) {
			drifted[c] = true
			f := all[c]
			if f == nil {
				if s.Action == plan.Keep {
					continue // it was never put right
				}
				f = &rivalry{}
				all[c] = f
			} else if f.stands {
				f.stands = false
				f.undone++
				f.gap = max(f.gap, now.Sub(f.right))
			}
			if s.Action != plan.Keep {
				f.right, f.stands = now, true
			}
		}
	}
	if r.Error != "" {
		return // it did not look at everything
	}
	for c, f := range all {
		if drifted[c] {
			continue
		}
		f.stands = true // also if another writer corrected it
		if now.Sub(f.right) >= f.quietNeeded() {
			delete(all, c)
		}
	}
}

// contentions returns the changed fields of an object, with their writers.
func contentions(s report.Step) []contention {
	if s.Action == plan.Create || s.Would == plan.Create {
		return []contention{{id: s.ID}}
	}
	var all []contention
	for _, c := range s.Changes {
		all = append(all, contention{s.ID, c.Path, c.By})
	}
	return all
}

// now are the fights as they stand, in order.
func (all fights) now(at time.Time) []plan.Fight {
	var list []plan.Fight
	for c, f := range all {
		if f.isFight() {
			rest := backOff(f.undone-mostUndone+1, firstRest, mostRest)
			list = append(list, plan.Fight{ID: c.id, Path: c.path, Manager: c.manager, Times: f.undone, Rests: at.Sub(f.right) < rest})
		}
	}
	slices.SortFunc(list, func(a, b plan.Fight) int {
		return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Manager, b.Manager))
	})
	return list
}
