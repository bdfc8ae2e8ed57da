package manifest

import (
	"strings"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	var done [100]atomic.Int32
	Each(len(done), func(i int) { done[i].Add(1) })
	for i := range done {
		if n := done[i].Load(); n != 1 {
			t.Errorf("%d was done %d times", i, n)
		}
	}
}

// A preview loop survives a pull request that causes a panic, wherever the panic is.
func TestEachPanics(t *testing.T) {
	defer func() {
		output, _ := recover().(string)
		if !strings.HasPrefix(output, "boom\n") || !strings.Contains(output, "each_test.go") {
			t.Errorf("The panic does not name its place: %q", output)
		}
	}()
	Each(3, func(i int) {
		if i > 0 {
			panic("boom")
		}
	})
	t.Error("It went on.")
}
