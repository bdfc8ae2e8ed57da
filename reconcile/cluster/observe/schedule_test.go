package observe

import (
	"fmt"
	"testing"
	"time"

	"headgate.dev/headgate/render/manifest"
)

func TestSchedule(t *testing.T) {
	var objects []manifest.ID
	for i := range 2043 {
		objects = append(objects, manifest.ID{Name: fmt.Sprint(i)})
	}
	s := schedule{every: time.Hour}
	begun := time.Now()
	looked := map[manifest.ID]time.Time{}
	for _, id := range objects {
		looked[id] = begun
	}
	most := 0
	for pass := range 600 {
		now := begun.Add(time.Duration(pass) * time.Minute)
		due, done := s.due(now, objects, false)
		if pass%7 == 3 {
			continue // the pass failed and checked nothing
		}
		done()
		for id, is := range due {
			if is {
				looked[id] = now
			}
		}
		most = max(most, trues(due))
		if drifted, done := s.due(now.Add(20*time.Second), objects, true); pass > 0 && trues(drifted) > 0 {
			t.Fatalf("who waits for what a hand edit changed waits for %d looks that have time", trues(drifted))
		} else {
			done()
		}
		for id, at := range looked {
			if now.Sub(at) > time.Hour+time.Minute { // one minute later because of the failed pass
				t.Fatalf("%s was not looked at for %s", id, now.Sub(at))
			}
		}
	}
	if most > 200 {
		t.Errorf("one pass of sixty in an hour looks at %d of 2,043", most)
	}
	if due, _ := s.due(begun.Add(1000*time.Minute), objects[:3], false); len(due) != 3 || len(s.next) != 3 {
		t.Errorf("what is not there any more is forgotten: %d, %d", len(due), len(s.next))
	}
	if due, _ := (&schedule{}).due(begun, objects, false); len(due) > 0 {
		t.Errorf("without an interval nothing is due")
	}
}

// TestScheduleOfTheBusy checks that every object is checked even if every pass has changes.
func TestScheduleOfTheBusy(t *testing.T) {
	var objects []manifest.ID
	for i := range 100 {
		objects = append(objects, manifest.ID{Name: fmt.Sprint(i)})
	}
	s := schedule{every: time.Hour}
	begun := time.Now()
	looked := map[manifest.ID]bool{}
	for pass := range 62 {
		due, done := s.due(begun.Add(time.Duration(pass)*time.Minute), objects, true)
		done()
		for id, is := range due {
			looked[id] = looked[id] || is
		}
	}
	if trues(looked) != len(objects) {
		t.Errorf("within an hour %d of %d were looked at", trues(looked), len(objects))
	}
}

func trues(of map[manifest.ID]bool) (n int) {
	for _, is := range of {
		if is {
			n++
		}
	}
	return n
}
