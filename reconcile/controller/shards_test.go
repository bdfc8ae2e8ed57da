package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"
)

// Replicas of one shard compete for one lease, and those of different shards for different ones.
func TestLeaseOfShard(t *testing.T) {
	cases := map[string]struct{ selector, want string }{
		"All":   {"", "headgate-controller"},
		"Named": {"sharding.fluxcd.io/key=a", "headgate-controller-a"},
		"Same":  {"sharding.fluxcd.io/key = a", "headgate-controller-a"},
		"Rest":  {"!sharding.fluxcd.io/key", "headgate-controller"},
		"Two":   {"sharding.fluxcd.io/key in (a,b)", "headgate-controller-e5ee049ca5"},
		"Upper": {"sharding.fluxcd.io/key=A", "headgate-controller-16575b3ed4"},
	}
	seen := map[string]string{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			selector, err := labels.Parse(tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			got := Options{Selector: selector}.leaseOf()
			if got != tc.want {
				t.Errorf("the lease of %q is %s, want %s", tc.selector, got, tc.want)
			}
			if other, is := seen[got]; is && other != selector.String() && got != leaseName {
				t.Errorf("%q and %q share the lease %s", other, tc.selector, got)
			}
			seen[got] = selector.String()
		})
	}
}
