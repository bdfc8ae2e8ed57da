package main

import (
	"testing"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/inventory"

	"github.com/google/go-cmp/cmp"
)

func TestChangeOf(t *testing.T) {
	sync := func(name, path string) v1alpha1.Sync {
		var s v1alpha1.Sync
		s.Namespace, s.Name = "ns", name
		s.Spec.Source.Path = path
		return s
	}
	approved := func(s v1alpha1.Sync, digest string) v1alpha1.Sync {
		s.Annotations = map[string]string{v1alpha1.ApproveAnnotation: digest}
		return s
	}
	for name, tc := range map[string]struct {
		reason        string
		before, after []v1alpha1.Sync
		want          []string // added, changed, removed and approved ones
	}{
		"Nothing": {
			reason: "The order in the file does not count.",
			before: []v1alpha1.Sync{sync("a", "a"), sync("b", "b")},
			after:  []v1alpha1.Sync{sync("b", "b"), sync("a", "a")},
		},
		"Each": {
			reason: "Only what differs is started or stopped.",
			before: []v1alpha1.Sync{sync("a", "a"), sync("b", "b"), sync("c", "c")},
			after:  []v1alpha1.Sync{sync("a", "a"), sync("b", "x"), sync("d", "d")},
			want:   []string{"added ns/d", "changed ns/b", "removed ns/c"},
		},
		"Approval": {
			reason: "An approval is no other Sync: its loop goes on with what it knows.",
			before: []v1alpha1.Sync{sync("a", "a"), approved(sync("b", "b"), "1")},
			after:  []v1alpha1.Sync{approved(sync("a", "a"), "1"), approved(sync("b", "b"), "2")},
			want:   []string{"approved ns/a", "approved ns/b"},
		},
		"ApprovalAndMore": {
			reason: "A Sync that starts again reads its approval.",
			before: []v1alpha1.Sync{sync("a", "a")},
			after:  []v1alpha1.Sync{approved(sync("a", "b"), "1")},
			want:   []string{"changed ns/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := changeOf(tc.before, tc.after)
			var got []string
			for _, part := range []struct {
				what string
				all  []inventory.Sync
			}{{"added", c.added}, {"changed", c.changed}, {"removed", c.removed}, {"approved", c.approved}} {
				for _, name := range part.all {
					got = append(got, part.what+" "+name.String())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
