package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// take starts a goroutine that waits for a slot and then adds its name to the order. It keeps the slot for a second.
func take(t *testing.T, s *Slots, order *[]string, name string, priority Priority) {
	t.Helper()
	go func() {
		ctx, free, err := s.Take(t.Context(), priority)
		if err != nil {
			return
		}
		defer free()
		*order = append(*order, name)
		_ = ctx
		time.Sleep(time.Second)
	}()
	synctest.Wait()
}

func TestSlotsGoToTheMostUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		var order []string
		take(t, s, &order, "first", Regular)
		take(t, s, &order, "interval", Regular)
		take(t, s, &order, "another interval", Regular)
		take(t, s, &order, "drift", Prompt)
		take(t, s, &order, "commit", Asked)
		time.Sleep(time.Minute)
		if want := []string{"first", "commit", "drift", "interval", "another interval"}; !slices.Equal(order, want) {
			t.Errorf("commits come before drift, drift before intervals, and equals in their order:\n got %q\nwant %q", order, want)
		}
	})
}

// A pass of low priority must not wait for as long as others of a higher one come.
func TestSlotsLetNobodyStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		var order []string
		take(t, s, &order, "first", Asked)
		take(t, s, &order, "interval", Regular)
		for range 300 {
			take(t, s, &order, "commit", Asked)
			time.Sleep(time.Second)
		}
		if at := slices.Index(order, "interval"); at < 0 || at > int(Asked)+2 {
			t.Errorf("the pass after an interval came as number %d, want it after about %d commits", at, Asked)
		}
		time.Sleep(10 * time.Minute)
	})
}

// Passes that wait for a cluster must not keep others from working.
func TestSlotsArePausedWhileAPassWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		var order []string
		ctx, free, err := s.Take(t.Context(), Asked)
		if err != nil {
			t.Fatal(err)
		}
		resume, again := Pause(ctx), Pause(ctx) // as when two parts of a pass wait
		take(t, s, &order, "meanwhile", Regular)
		if !slices.Equal(order, []string{"meanwhile"}) {
			t.Fatal("a slot of a waiting pass is free, and nobody got it")
		}
		take(t, s, &order, "commit", Asked)
		resume()
		again()
		order = append(order, "resumed")
		if want := []string{"meanwhile", "resumed"}; !slices.Equal(order, want) {
			t.Errorf("a pass that goes on comes first: got %q, want %q", order, want)
		}
		free()
		synctest.Wait()
		if order[len(order)-1] != "commit" {
			t.Errorf("the freed slot was given to nobody: %q", order)
		}
		time.Sleep(time.Minute)
	})
}

// A pass that was interrupted while it waited has to record what it has done. It must not wait for a slot, and the number of slots
// must stay right.
func TestSlotsDoNotHoldUpWhatWasInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		var order []string
		ctx, cancel := context.WithCancel(t.Context())
		held, free, err := s.Take(ctx, Asked)
		if err != nil {
			t.Fatal(err)
		}
		resume := Pause(held)
		take(t, s, &order, "one", Regular)
		take(t, s, &order, "two", Regular)
		cancel()
		resume() // works beside "one"
		free()
		synctest.Wait()
		if !slices.Equal(order, []string{"one"}) {
			t.Errorf("only one slot exists, and these work: %q", order)
		}
		time.Sleep(time.Minute)
		if s.free != 1 || len(s.waiting) != 0 {
			t.Errorf("%d slots are free, want 1", s.free)
		}
	})
}

func TestSlotsForgetWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		var order []string
		take(t, s, &order, "first", Regular)
		why := errors.New("the process ends")
		ctx, cancel := context.WithCancelCause(t.Context())
		gaveUp := make(chan error, 1)
		go func() {
			_, _, err := s.Take(ctx, Asked)
			gaveUp <- err
		}()
		synctest.Wait()
		cancel(why)
		if err := <-gaveUp; !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		take(t, s, &order, "second", Regular)
		time.Sleep(time.Minute)
		if !slices.Equal(order, []string{"first", "second"}) {
			t.Errorf("the one that gave up kept a slot: %q", order)
		}
	})
}

func TestNoSlots(t *testing.T) {
	var none *Slots
	ctx, free, err := none.Take(t.Context(), Regular)
	if err != nil || ctx != t.Context() {
		t.Errorf("a nil Slots bounds nothing: %v", err)
	}
	Pause(ctx)()
	free()
}

// A request without an answer is no work, and its pass must not wait for those that need the slot: it may hold a lock that they wait for.
func TestSlotsAreFreeWhileAnAnswerIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(1)
		var order []string
		ctx, free, err := s.Take(t.Context(), Asked)
		if err != nil {
			t.Fatal(err)
		}
		Late(ctx, time.Second)() // in time
		Late(Without(ctx), 0)()
		late := Late(ctx, time.Second)
		take(t, s, &order, "meanwhile", Regular)
		if len(order) > 0 {
			t.Fatal("the slot was given back too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.Equal(order, []string{"meanwhile"}) {
			t.Fatal("nobody got the slot of the pass")
		}
		late() // beside the other one
		late()
		other := Late(ctx, time.Second)
		time.Sleep(2 * time.Second)
		free()
		free()
		other() // after the pass
		time.Sleep(time.Minute)
		if s.free != 1 || len(s.waiting) != 0 {
			t.Errorf("%d slots are free, want 1", s.free)
		}
	})
}

// Five hundred syncs may wait for one slow clone. When it is there, they work in turn, and not all at once.
func TestSlotsOfLateFetchesAreTakenInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSlots(2)
		cloned := make(chan struct{})
		working, most := 0, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				ctx, free, err := s.Take(t.Context(), Asked)
				if err != nil {
					t.Error(err)
					return
				}
				defer free()
				resume := PauseAfter(ctx, time.Second)
				<-cloned
				resume()
				mu.Lock()
				working++
				most = max(most, working)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				working--
				mu.Unlock()
			})
		}
		time.Sleep(time.Minute)
		close(cloned)
		all.Wait()
		if most != 2 || s.free != 2 {
			t.Errorf("%d worked at a time, and %d slots are free, want 2", most, s.free)
		}
	})
}
