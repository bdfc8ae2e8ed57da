package manifest

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Each does n things, as many at once as there are processors.
func Each(n int, do func(i int)) { EachOf(n, runtime.GOMAXPROCS(0), do) }

// EachOf does n things, so many at once. A panic in one of them is raised again in the caller, which may recover so
// that a hostile document does not end the whole process.
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
	_ = g.Wait() // nothing returns an error
	if first != nil {
		panic(first)
	}
}
