package reconcile

import (
	"cmp"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render/manifest"
)

const (
	mostUndone = 3                // a field whose corrections were undone this often is fought over
	firstRest  = time.Minute      // the first pause between two corrections in a fight
	mostRest   = time.Hour        // the longest pause
	leastPeace = time.Minute      // the minimum time that a correction must last before a fight is over
	longMemory = 90 * time.Minute // how long a field must stay unchanged before the loop forgets that it changed
)

// fights records the writers that undo the corrections of a loop.
type fights map[contention]*rivalry

// A contention is a field of an object and another writer of it.
type contention struct {
	id            manifest.ID
	path, manager string
}

// A rivalry is the history of a contention.
type rivalry struct {
	corrected time.Time     // when Headgate last corrected the field
	stands    bool          // the last correction was not undone
	undone    int           // how often a correction was undone
	gap       time.Duration // the longest time between a correction and its undoing
}

func (f rivalry) isFight() bool { return f.undone >= mostUndone }

// quietNeeded returns how long a correction must last before the fight is over. It is longer than the other writer ever took.
func (f rivalry) quietNeeded() time.Duration {
	if !f.isFight() {
		return longMemory
	}
	return max(2*f.gap, leastPeace)
}

// record adds the result of a pass.
func (all fights) record(now time.Time, r report.Report) {
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
					continue // Headgate has not corrected it
				}
				f = &rivalry{}
				all[c] = f
			} else if f.stands {
				f.stands = false
				f.undone++
				f.gap = max(f.gap, now.Sub(f.corrected))
			}
			if s.Action != plan.Keep {
				f.corrected, f.stands = now, true
			}
		}
	}
	if r.Error != "" {
		return // the pass may not have checked every object
	}
	for c, f := range all {
		if drifted[c] {
			continue
		}
		f.stands = true // even if another writer corrected it
		if now.Sub(f.corrected) >= f.quietNeeded() {
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

// at returns the current fights, sorted.
func (all fights) at(now time.Time) []facts.Fight {
	var list []facts.Fight
	for c, f := range all {
		if f.isFight() {
			rest := engine.BackOff(f.undone-mostUndone+1, firstRest, mostRest)
			list = append(list, facts.Fight{ID: c.id, Path: c.path, Manager: c.manager, Times: f.undone, Rests: now.Sub(f.corrected) < rest})
		}
	}
	slices.SortFunc(list, func(a, b facts.Fight) int {
		return cmp.Or(a.ID.Compare(b.ID), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Manager, b.Manager))
	})
	return list
}
