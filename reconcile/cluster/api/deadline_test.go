package api

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/engine"
)

// stalling is an API server that begins each answer at once, and never ends it.
type stalling struct{}

func (stalling) RoundTrip(req *http.Request) (*http.Response, error) {
	body, w := io.Pipe()
	context.AfterFunc(req.Context(), func() { _ = w.CloseWithError(req.Context().Err()) })
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: req, Body: body}, nil
}

// A kubeconfig to a server that begins an answer and does not end it must not hold a worker that other syncs wait for.
func TestStalledAnswersHoldNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, begun := engine.NewQueue(1), time.Now()
		var read error
		var waited, ended time.Duration
		stalled := queue.Join(t.Context(), engine.Asked, func(ctx context.Context) engine.Next {
			if ended > 0 {
				return engine.Next{At: begun.Add(time.Hour)}
			}
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://192.0.2.1/api/v1/secrets", http.NoBody)
			if err != nil {
				t.Error(err)
			}
			resp, err := deadlineTransport{next: stalling{}, through: newThrottle(), within: 75 * time.Second, under: &underway{}}.RoundTrip(req)
			if err != nil {
				t.Error(err)
				return engine.Next{At: begun.Add(time.Hour)}
			}
			_, read = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			ended = time.Since(begun)
			return engine.Next{At: begun.Add(time.Hour)}
		})
		synctest.Wait()
		other := queue.Join(t.Context(), engine.Regular, func(context.Context) engine.Next {
			if waited == 0 {
				waited = time.Since(begun)
			}
			return engine.Next{At: begun.Add(time.Hour)}
		})
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		if waited != late {
			t.Errorf("another sync waited %s for the worker, want %s", waited, late)
		}
		if read == nil || ended < 75*time.Second {
			t.Errorf("the answer ended after %s with %v, want an error after the time for an answer", ended, read)
		}
		stalled.Leave()
		other.Leave()
	})
}
