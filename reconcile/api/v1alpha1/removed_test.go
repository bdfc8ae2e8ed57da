package v1alpha1_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/fixtures/golden"
	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestWarnings(t *testing.T) {
	all := []v1alpha1.Removal{
		{Field: "spec.interval", Since: "v0.4", Instead: "set spec.poll"},
		{Field: "spec.packages[].name", Since: "v0.4", Instead: "leave it out"},
	}
	const interval, name = "spec.interval: goes after two minor versions from v0.4: set spec.poll", "spec.packages[].name: goes after two minor versions from v0.4: leave it out"
	for text, want := range map[string][]string{
		"{spec: {interval: 1m}}":                                   {interval},
		"{spec: {interval: 1m, packages: [{path: a}, {name: b}]}}": {interval, name},
		"{spec: {packages: [{path: a}], source: {interval: 1m}}}":  nil,
		"{spec: {packages: {name: a}}}":                            {name}, // malformed, which the decoder says
		"{spec: [1]}":                                              nil,
		"{}":                                                       nil,
		"[]":                                                       nil,
	} {
		var document any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, v1alpha1.Warnings(document, all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// A field that any version of the CRD had exists, or its removal was announced two minor versions ago. With -update the file has the new
// fields, too; it loses none.
func TestNoFieldDisappears(t *testing.T) {
	const file = "testdata/fields.txt"
	crd, err := os.ReadFile("../../../examples/controller/crds/headgate.dev_syncs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	now := fixtures.FieldsOf(t, crd)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ever := append(strings.Fields(string(before)), now...)
	slices.Sort(ever)
	ever = slices.Compact(ever)
	golden.Compare(t, file, strings.Join(ever, "\n")+"\n")

	changelog, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range disappeared(ever, now, v1alpha1.Removals, string(changelog)) {
		t.Error(text)
	}
}

// disappeared returns an objection for each field that went too early, or that nothing announced.
func disappeared(ever, now []string, all []v1alpha1.Removal, changelog string) (wrong []string) {
	for _, r := range all {
		if !slices.Contains(ever, r.Field) {
			wrong = append(wrong, r.Field+" was never a field")
		}
	}
	for _, field := range ever {
		if slices.Contains(now, field) {
			continue
		}
		i := slices.IndexFunc(all, func(r v1alpha1.Removal) bool {
			return r.Field == field || strings.HasPrefix(field, r.Field+".") || strings.HasPrefix(field, r.Field+"[]")
		})
		switch {
		case i < 0:
			wrong = append(wrong, field+" is gone without a warning: keep it for two minor versions, with a row in Removals")
		case minorsSince(changelog, all[i].Since) < 2:
			wrong = append(wrong, field+" is gone, and fewer than two minor versions warned of it")
		}
	}
	return wrong
}

var release = regexp.MustCompile(`(?m)^## \[?(v?\d+\.\d+)`)

// minorsSince returns the number of minor versions in the changelog, which has the newest first, down to one.
func minorsSince(changelog, since string) int {
	var minors []string
	for _, m := range release.FindAllStringSubmatch(changelog, -1) {
		minors = append(minors, strings.TrimPrefix(m[1], "v"))
	}
	minors = slices.Compact(minors)
	return 1 + slices.Index(minors, strings.TrimPrefix(since, "v"))
}

func TestDisappeared(t *testing.T) {
	all := []v1alpha1.Removal{{Field: "spec.old", Since: "v0.4", Instead: "set spec.new"}}
	ever := []string{"spec.new", "spec.old", "spec.old.part"}
	for name, tc := range map[string]struct {
		now       []string
		all       []v1alpha1.Removal
		changelog string
		wrong     int
	}{
		"Kept":        {ever, all, "## Unreleased\n## v0.4.0\n", 0},
		"Unannounced": {ever[:1], nil, "## v0.6.0\n", 2},
		"Unreleased":  {ever[:1], all, "## Unreleased\n## v0.3.0\n", 2},
		"OneVersion":  {ever[:1], all, "## v0.4.2\n## v0.4.0\n## v0.3.0\n", 2},
		"TwoVersions": {ever[:1], all, "## Unreleased\n## v0.5.0\n## v0.4.1\n## v0.4.0\n## v0.3.0\n", 0},
		"Unknown":     {ever, []v1alpha1.Removal{{Field: "spec.typo"}}, "", 1},
	} {
		if wrong := disappeared(ever, tc.now, tc.all, tc.changelog); len(wrong) != tc.wrong {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}
