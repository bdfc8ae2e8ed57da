package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render/manifest"
)

// A generator changes a field in hundreds of kinds, in both scopes and in forProvider and initProvider. A reviewer has to read
// that once.
func TestBreaksAreGroupedByField(t *testing.T) {
	removed := func(paths ...string) []plan.SchemaChange {
		var all []plan.SchemaChange
		for _, path := range paths {
			all = append(all, plan.SchemaChange{Rule: "field-removed", Version: "v1beta1", Path: path, Breaking: true})
		}
		return all
	}
	kind := func(name string, breaks []plan.SchemaChange, used ...manifest.Origin) Step {
		return Step{Action: plan.Update, ID: id(name), Breaks: breaks, active: true, unused: len(used) == 0, UsedAt: used}
	}
	region := removed("spec.forProvider.region", "spec.initProvider.region", "status.atProvider.region")
	c := comment{Report: Report{Steps: []Step{
		kind("queues.sqs.aws.upbound.io", removed("spec.forProvider.size")),
		kind("buckets.s3.aws.upbound.io", region, manifest.Origin{Path: "apis/bucket.yaml", Line: 31}),
		kind("buckets.s3.aws.m.upbound.io", region),
		kind("topics.sns.aws.m.upbound.io", region),
		kind("topics.sns.aws.upbound.io", region),
		kind("roles.iam.aws.upbound.io", removed("status.atProvider.region")),
	}}, most: 20}
	p := c.pointOfBreaks()
	want := []string{
		"`spec.forProvider.region is removed`, also in `initProvider` (`v1beta1`): `buckets.s3.aws[.m].upbound.io`, `topics.sns.aws[.m].upbound.io`; used at `apis/bucket.yaml:31`",
		"`spec.forProvider.size is removed` (`v1beta1`): `queues.sqs.aws.upbound.io`; nothing in this commit uses it",
		"only in the status: 1 field of `buckets.s3.aws[.m].upbound.io`, `topics.sns.aws[.m].upbound.io`, `roles.iam.aws.upbound.io`",
	}
	if diff := cmp.Diff(want, p.items); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(p.said, "**Breaks 6 schemas.**") {
		t.Errorf("the point begins %q", p.said)
	}
}
