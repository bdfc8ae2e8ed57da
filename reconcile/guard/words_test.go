package guard_test

import (
	"testing"

	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/report"
)

func TestMain(m *testing.M) {
	guard.Sentence, guard.Awaited = report.Words, report.Awaited
	m.Run()
}
