package installed_test

import (
	"fmt"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/installed"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// If the installed package differs from the package in the commit, the commit's decisions use wrong names.
func TestDifferences(t *testing.T) {
	const queues, tables, topics = "queues.example.org", "tables.example.org", "topics.example.org"
	provided := manifest.ID{Group: "pkg.crossplane.io", Kind: "Provider", Name: "provider-toy"}
	live := func(revision string, names ...string) facts.Upstream {
		up := facts.Upstream{Definitions: map[string]crossplane.LiveDefinition{}, Packages: map[manifest.ID]crossplane.LivePackage{provided: {Installed: metav1.ConditionTrue}}}
		for _, name := range names {
			up.Definitions[name] = crossplane.LiveDefinition{Revision: revision}
		}
		return up
	}
	installing := live("toy-1", given.Buckets)
	installing.Packages[provided] = crossplane.LivePackage{Installed: metav1.ConditionFalse}
	cases := map[string]struct {
		reason string
		up     facts.Upstream
		want   []string
	}{
		"Same":       {"The commit has a copy of the installed package.", live("toy-1", given.Buckets, queues, tables), nil},
		"NotThere":   {"Nothing is installed yet.", live("toy-1"), nil},
		"Another":    {"Definitions of another package do not count.", live("other-1", topics), nil},
		"NotAPart":   {"An object that was applied by hand belongs to no package.", live("", given.Buckets, topics), nil},
		"Installing": {"Crossplane creates the definitions one after the other.", installing, nil},
		"Older": {
			"The installed package is newer: a policy that names an added definition matches nothing in the copy.", live("toy-2", given.Buckets, queues, tables, topics),
			[]string{"warning package/crossplane.yaml:1: this copy of the package provider-toy is not what the revision toy-2 installed: it has none that the revision lacks, and lacks 1 definition (" + topics + ") that it has"},
		},
		"Newer": {
			"The copy is newer: its additional definitions do not exist in the cluster.", live("toy-0", given.Buckets),
			[]string{"warning package/crossplane.yaml:1: this copy of the package provider-toy is not what the revision toy-0 installed: it has 2 definitions (" + queues + ", …) that the revision lacks, and lacks none that it has"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := given.Desired(t, render.OwnerCrossplane, map[string]string{"provider.yaml": given.Provider})
			var got []string
			for _, f := range installed.Differences(want, tc.up.Definitions, tc.up.Packages) {
				got = append(got, fmt.Sprintf("%s %s: %s", f.Severity, f.Origin, f.Message))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nfindings (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
