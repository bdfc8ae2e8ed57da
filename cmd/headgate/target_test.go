package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
)

func TestPackageFlag(t *testing.T) {
	safe := func(is bool) v1alpha1.Package {
		return v1alpha1.Package{Path: "vendor/aws", Name: "provider-aws", SafeStart: &is}
	}
	cases := map[string]struct {
		reason string
		arg    string
		want   v1alpha1.Package // the zero value means that an error is expected
	}{
		"Name":            {"The package has no safe-start.", "vendor/aws=provider-aws", safe(false)},
		"SafeStart":       {"As documented.", "vendor/aws=provider-aws,safe-start", safe(true)},
		"AsProvidersSay":  {"provider-upjet-aws writes the capability in this form.", "vendor/aws=provider-aws,SafeStart", safe(true)},
		"LowerCase":       {"Crossplane compares letters and digits only.", "vendor/aws=provider-aws,safestart", safe(true)},
		"OtherSigns":      {"Crossplane ignores all other characters.", "vendor/aws=provider-aws,SAFE_START ", safe(true)},
		"Longer":          {"Crossplane does not accept safestart2, so all definitions would be active.", "vendor/aws=provider-aws,safestart2", v1alpha1.Package{}},
		"Nothing":         {"The list is incomplete.", "vendor/aws=provider-aws,", v1alpha1.Package{}},
		"More":            {"Only one capability is known.", "vendor/aws=provider-aws,safe-start,fast", v1alpha1.Package{}},
		"SeparatedByMore": {"After a semicolon, the capability would be part of the name.", "vendor/aws=provider-aws;safe-start", v1alpha1.Package{}},
		"NameOfNothing":   {"A package name cannot have spaces or upper-case letters.", "vendor/aws=Provider AWS", v1alpha1.Package{}},
		"Nameless":        {"The name is missing.", "vendor/aws=,safe-start", v1alpha1.Package{}},
		"NoDirectory":     {"The directory is missing.", "provider-aws", v1alpha1.Package{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := packageOfFlag(tc.arg)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.want.Path == "") {
				t.Errorf("%s\npackageOfFlag(%q): %v (-want +got):\n%s", tc.reason, tc.arg, err, diff)
			}
		})
	}
}
