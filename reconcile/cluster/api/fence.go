package api

import (
	"context"
	"net/http"
	"time"
)

// slowAnswer is how long a pass relies on the last proof that it holds the lease.
const slowAnswer = time.Second

// A fence returns an error if work has lost its lease. It asks the API server, unless the last proof is younger than age.
type fence func(ctx context.Context, age time.Duration) error

// A fenceKey is the key of the check in the context of the work.
type fenceKey struct{}

// WithFence returns a context whose changes of objects are sent only while check returns no error.
func WithFence(ctx context.Context, check fence) context.Context {
	return context.WithValue(ctx, fenceKey{}, check)
}

// Fence returns an error if the work of a context has lost its lease. A context without a fence needs none.
func Fence(ctx context.Context, age time.Duration) error {
	lost, fenced := ctx.Value(fenceKey{}).(fence)
	if !fenced {
		return nil
	}
	return lost(ctx, age)
}

// A fenced transport sends no change of an object for work that has lost its lease, also if it repeats a request after a slow answer.
type fenced struct{ next http.RoundTripper }

func (f fenced) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && !req.URL.Query().Has("dryRun") {
		if err := Fence(req.Context(), slowAnswer); err != nil {
			return nil, err
		}
	}
	return f.next.RoundTrip(req)
}
