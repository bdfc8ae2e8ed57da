//test:package served
package v1alpha1_test

import (
	"os"
	"testing"

	"headgate.dev/headgate/fixtures"
)

func TestMain(m *testing.M) { os.Exit(fixtures.WithControlPlane(m)) }
