//test:package raced
package store

import (
	"errors"
	"testing"

	"headgate.dev/headgate/reconcile/engine"
)

func TestRenewPanics(t *testing.T) {
	var why error
	l := &Lock{stopped: make(chan struct{}), end: func(cause error) { why = cause }} // without a cluster
	l.renew(t.Context())
	<-l.stopped
	if !errors.As(why, new(engine.DefectError)) {
		t.Errorf("Nothing renews the lease any more, so the pass ends: %v", why)
	}
}
