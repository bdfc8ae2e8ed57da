package api

import "context"

const (
	largeSize = 256 << 10 // bytes of JSON
	mostLarge = 2         // objects
)

// Large waits until a pass may read or send an object of a size, until done is called. A large object takes a hundred times the work of a
// usual one, here and in the API server. With a few of them at the same time, the requests of all other passes wait for the processors.
func (c *Client) Large(ctx context.Context, size int) (done func()) {
	if size < largeSize {
		return func() {}
	}
	select {
	case c.large <- struct{}{}:
		return func() { <-c.large }
	case <-ctx.Done():
		return func() {}
	}
}
