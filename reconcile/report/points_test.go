package report

import (
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
)

// A generator may change a field in hundreds of kinds, in both scopes, and in forProvider and initProvider. The reviewer must read
// it only once.
func TestBreaksAreGroupedByField(t *testing.T) {
	removed := func(paths ...string) []plan.SchemaChange {
		var all []plan.SchemaChange
		for _, path := range paths {
			all = append(all, plan.SchemaChange{Rule: "field-removed", Version: "v1beta1", Path: path, Breaking: true})
		}
		return all
	}
	kind := func(name string, breaks []plan.SchemaChange, used ...manifest.Origin) Step {
		return Step{Action: plan.Update, ID: id(name), Breaks: breaks, active: true, rulings: noteOf(used), UsedAt: used}
	}
	region := removed("spec.forProvider.region", "spec.initProvider.region", "status.atProvider.region")
	c := comment{Report: Report{Steps: []Step{
		kind("queues.sqs.aws.upbound.io", removed("spec.forProvider.size")),
		kind("buckets.s3.aws.upbound.io", region, manifest.Origin{Path: "apis/bucket.yaml", Line: 31}),
		kind("buckets.s3.aws.m.upbound.io", region),
		kind("topics.sns.aws.m.upbound.io", region),
		kind("topics.sns.aws.upbound.io", region),
		kind("roles.iam.aws.upbound.io", removed("status.atProvider.region")),
	}}}
	p := c.pointOfBreaks()
	want := []string{
		"`spec.forProvider.region is removed`, also in `initProvider` (`v1beta1`): `buckets.s3.aws[.m].upbound.io`, `topics.sns.aws[.m].upbound.io`; used at `apis/bucket.yaml:31`",
		"`spec.forProvider.size is removed` (`v1beta1`): `queues.sqs.aws.upbound.io`; nothing in this commit uses it",
		"only in the status: 1 field of `buckets.s3.aws[.m].upbound.io`, `topics.sns.aws[.m].upbound.io`, `roles.iam.aws.upbound.io`",
	}
	if diff := cmp.Diff(want, p.items); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(p.text, "**Breaks 5 schemas.**") {
		t.Errorf("the point begins %q", p.text)
	}
}

// The comment names the field that changes, in the versions and kinds that change it.
func TestBreaksAreExact(t *testing.T) {
	removed := func(version, path string) plan.SchemaChange {
		return plan.SchemaChange{Rule: "field-removed", Version: version, Path: path, Breaking: true}
	}
	kind := func(name string, breaks ...plan.SchemaChange) Step {
		return Step{Action: plan.Update, ID: id(name), Breaks: breaks, active: true, rulings: noteOf(nil)}
	}
	c := comment{Report: Report{Steps: []Step{
		kind("a.aws.upbound.io", removed("v1", "spec.initProvider.size")),
		kind("b.aws.upbound.io", removed("v1", "spec.forProvider.size"), removed("v2", "spec.forProvider.size"), removed("v2", "spec.initProvider.size")),
		kind("b.aws.m.upbound.io", removed("v1", "spec.forProvider.size")),
	}}}
	want := []string{
		"`spec.forProvider.size is removed` (`v1`): `b.aws[.m].upbound.io`; nothing in this commit uses them",
		"`spec.initProvider.size is removed` (`v1`): `a.aws.upbound.io`; nothing in this commit uses it",
		"`spec.forProvider.size is removed`, also in `initProvider` (`v2`): `b.aws.upbound.io`; nothing in this commit uses it",
	}
	if diff := cmp.Diff(want, c.pointOfBreaks().items); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c.Steps = []Step{kind("a.aws.upbound.io", removed("v1", "status.size"))}
	if p := c.pointOfBreaks(); strings.Contains(p.text, "Change them before the merge") || !strings.HasPrefix(p.text, "**Changes 1 status.**") {
		t.Errorf("the point of a status is %q", p.text)
	}
}

// Fields that are lost between versions without a conversion are reported once for all kinds with the same change, and separately
// from other breaks.
func TestVersionsAreGrouped(t *testing.T) {
	lost := func(like plan.SchemaChange) plan.SchemaChange {
		like.Why, like.Breaking = "it is lost", true
		return like
	}
	moves := plan.SchemaChange{Rule: ruleStorage, From: "v1", To: "v2", Breaking: true}
	equal := plan.SchemaChange{Rule: ruleStorage, From: "v1", To: "v2"}
	kind := func(name string, changes ...plan.SchemaChange) Step {
		s := Step{Action: plan.Update, ID: id(name), active: true, rulings: noteOf(nil)}
		for _, c := range changes {
			if c.Breaking {
				s.Breaks = append(s.Breaks, c)
			} else {
				s.alters = append(s.alters, c)
			}
		}
		return s
	}
	converted := kind("d.aws.upbound.io", equal)
	converted.ConversionAdded = true
	inactive := kind("e.aws.upbound.io", equal)
	inactive.active = false
	c := comment{Report: Report{Steps: []Step{
		kind("a.aws.upbound.io", moves, lost(plan.SchemaChange{Rule: ruleUnconverted, Version: "v1", Path: "spec.a"}), lost(plan.SchemaChange{Rule: ruleUnconverted, Version: "v1", Path: "spec.b"})),
		kind("a.aws.m.upbound.io", moves, lost(plan.SchemaChange{Rule: ruleUnconverted, Version: "v1", Path: "spec.a"})),
		kind("b.aws.upbound.io", lost(plan.SchemaChange{Rule: ruleUnshared, Version: "v2", Path: "spec.c"}), plan.SchemaChange{Rule: "field-removed", Version: "v1", Path: "spec.d", Breaking: true}),
		kind("c.aws.upbound.io", plan.SchemaChange{Rule: ruleDeprecated, Version: "v1"}),
		converted, inactive,
	}}}
	var lines []string
	for _, p := range c.points() {
		lines = append(lines, strings.SplitAfter(p.text, "**")[1])
		lines = append(lines, p.items...)
	}
	want := []string{
		"Stores 2 kinds in another version, and nothing converts the objects.**",
		"`v1` → `v2`: `a.aws[.m].upbound.io`; 2 fields differ: `spec.a`, `spec.b`; nothing in this commit uses them",
		"Serves 1 kind in versions that differ, and nothing converts the objects.**",
		"`v2`: `b.aws.upbound.io`; 1 field differs: `spec.c`; nothing in this commit uses it",
		"Breaks 1 schema.**",
		"`spec.d is removed` (`v1`): `b.aws.upbound.io`; nothing in this commit uses it",
		"Versions:**",
		"stored in another version, `v1` → `v2`: `d.aws.upbound.io`",
		"conversion webhook: `d.aws.upbound.io`",
		"deprecated, `v1`: `c.aws.upbound.io`",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A copy in the tree counts as upgraded if its metadata names another release. A package of a registry has a version bump instead.
func TestCopies(t *testing.T) {
	of := func(dir, release, digest string) catalogue.Package {
		return catalogue.Package{Name: dir, Directory: dir, Release: release, Digest: digest, Origin: manifest.Origin{Path: dir + ".yaml", Line: 1}}
	}
	before := []catalogue.Package{of("same", "v1", ""), of("other", "v1", ""), of("named", "", ""), of("gone", "v1", ""), of("pulled", "v1", "sha256:a")}
	after := []catalogue.Package{of("same", "v1", ""), of("other", "v2", ""), of("named", "v2", ""), of("new", "v1", ""), of("pulled", "v2", "sha256:b")}
	p := (comment{Report: Report{Preview: &Preview{Copies: copies(before, after)}}}).pointOfCopies()
	if diff := cmp.Diff([]string{"`other`: `v1` → `v2` in `other.yaml:1`", "`named`: not known → `v2` in `named.yaml:1`"}, p.items); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// noteOf returns the note of the guard used about a kind that the commit uses in some places.
func noteOf(at []manifest.Origin) []ruled {
	code := reason.UsedInCommit
	if len(at) == 0 {
		code = reason.UnusedInCommit
	}
	return []ruled{{guard.Used, code, plan.Note, 1, ""}}
}
