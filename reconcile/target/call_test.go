package target

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// A child has many questions at once, and every answer reaches its question.
func TestCalls(t *testing.T) {
	fromChild, toParent := io.Pipe()
	fromParent, toChild := io.Pipe()
	methods := map[string]method{
		"Double": methodOf(func(n int, to *int) error {
			*to = 2 * n
			return nil
		}),
		"Fail": methodOf(func(_ bool, _ *bool) error { return errors.New("no such package") }),
	}
	served := make(chan struct{})
	go func() {
		serve(fromChild, toChild, methods)
		close(served)
	}()
	c := newCaller(fromParent, toParent)
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			var got int
			if err := c.Call("Double", n, &got); err != nil || got != 2*n {
				t.Errorf("Double(%d) is %d: %v", n, got, err)
			}
		})
	}
	all.Wait()
	for method, want := range map[string]string{"Fail": "no such package", "Other": `no method "Other"`} {
		if err := c.Call(method, true, new(bool)); err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v, want %s", method, err, want)
		}
	}
	if err := c.Call("Double", "a text", new(int)); err == nil || !strings.Contains(err.Error(), "gob") {
		t.Errorf("an argument of another type: %v", err)
	}

	// The parent goes away, and no call waits for it.
	_ = toParent.Close()
	<-served
	_ = toChild.Close()
	if err := c.Call("Double", 1, new(int)); err == nil {
		t.Error("a call without a parent has no error")
	}
}

// A child that sends something else gets no answer, and the parent goes on.
func TestCallsOfAHostileChild(t *testing.T) {
	var out strings.Builder
	serve(strings.NewReader("\x7f\x00\xff this is no call"), &out, nil)
	if out.Len() > 0 {
		t.Errorf("the parent answers %q", out.String())
	}
}
