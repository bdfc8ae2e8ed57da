package manifest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Each calls do for 0 to n-1, as many at the same time as there are processors.
func Each(n int, do func(i int)) { EachOf(n, runtime.GOMAXPROCS(0), do) }

// EachOf calls do for 0 to n-1, at most atOnce at the same time. It raises a panic again in the caller, which may recover, so that
// a hostile document does not end the whole process.
func EachOf(n, atOnce int, do func(i int)) {
	var first any
	var once sync.Once
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error {
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { first = fmt.Sprintf("%v\n%s", p, debug.Stack()) })
				}
			}()
			do(i)
			return nil
		})
	}
	_ = g.Wait() // no function returns an error
	if first != nil {
		panic(first)
	}
}
