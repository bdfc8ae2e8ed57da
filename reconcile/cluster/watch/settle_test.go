package watch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var calls []time.Duration
		var s *settling
		s = &settling{quiet: 200 * time.Millisecond, most: time.Second, do: func() {
			calls = append(calls, time.Since(begun))
			if len(calls) == 1 {
				s.within(10 * time.Second) // tries again
				time.Sleep(5 * time.Second)
			}
		}}
		expect := func(reason string, want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(calls, want) {
				t.Errorf("%s\ncalls after %v, want %v", reason, calls, want)
			}
			calls = calls[:0:0]
			begun = time.Now()
		}
		s.soon()
		time.Sleep(4 * time.Second)
		s.soon() // what is new makes the next try earlier, after the call
		time.Sleep(10 * time.Second)
		expect("One call is made at a time.", 200*time.Millisecond, 5200*time.Millisecond)
		calls = make([]time.Duration, 1)
		for range 20 {
			s.soon()
			time.Sleep(130 * time.Millisecond)
		}
		time.Sleep(time.Second)
		expect("It does not wait forever.", 0, time.Second, 2040*time.Millisecond, 2670*time.Millisecond)
		s.soon()
		s.end()
		s.soon()
		time.Sleep(time.Minute)
		expect("After the end, there are no calls.")
	})
}

func TestSettlingPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, told := 0, 0
		s := &settling{quiet: time.Second, most: time.Second, trouble: func(error) { told++ }, do: func() {
			if calls++; calls == 1 {
				panic("a nil map")
			}
		}}
		for range 2 {
			s.soon()
			time.Sleep(2 * time.Second)
		}
		s.end()
		if calls != 2 || told != 1 {
			t.Errorf("A call that panics is reported, and the next one is made: %d calls, %d reports", calls, told)
		}
	})
}
