package api

import (
	"context"
	"errors"
	"testing"

	"headgate.dev/headgate/reconcile/engine"
)

func TestInParallelPanics(t *testing.T) {
	_, err := InParallel(t.Context(), 2, []int{1, 0, 2}, func(_ context.Context, n int) (int, error) { return 1 / n, nil })
	if !errors.As(err, new(engine.DefectError)) {
		t.Errorf("A panic in a goroutine of a pass is the error of the pass: %v", err)
	}
}
