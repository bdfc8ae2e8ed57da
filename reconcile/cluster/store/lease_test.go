package store

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/preflight"

	"github.com/google/go-cmp/cmp"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLeaseOf(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	at := func(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t} }
	for name, tc := range map[string]struct {
		reason string
		spec   coordination.LeaseSpec
		want   preflight.Lease
	}{
		"Empty":  {"It was never held.", coordination.LeaseSpec{}, preflight.Lease{Exists: true, Undated: true}},
		"Held":   {"It was renewed.", coordination.LeaseSpec{HolderIdentity: new("a"), RenewTime: at(now.Add(-5 * time.Second)), LeaseDurationSeconds: new(int32(60))}, preflight.Lease{Exists: true, Holder: "a", Age: 5, Duration: 60}},
		"Before": {"The year 1.", coordination.LeaseSpec{HolderIdentity: new("a"), RenewTime: at(time.Time{}), LeaseDurationSeconds: new(int32(-1))}, preflight.Lease{Exists: true, Holder: "a", Age: now.Unix() - math.MinInt32, Duration: -1}},
		"After":  {"The year 9999.", coordination.LeaseSpec{HolderIdentity: new("a"), RenewTime: at(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), LeaseDurationSeconds: new(int32(60))}, preflight.Lease{Exists: true, Holder: "a", Age: now.Unix() - math.MaxUint32, Duration: 60}},
	} {
		t.Run(name, func(t *testing.T) {
			got := leaseOf(tc.spec, now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nleaseOf() (-want +got):\n%s", tc.reason, diff)
			}
			_ = got.Judge() // whatever the times are
		})
	}
}
