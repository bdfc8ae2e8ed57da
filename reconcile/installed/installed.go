// Package installed compares the packages of a commit with those that Crossplane has installed. The decisions of a
// commit apply to its own versions of packages.
package installed

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Differences finds packages of the commit whose definitions differ from the installed ones. In this case the
// decisions of the commit use wrong names.
func Differences(want render.Desired, definitions map[string]crossplane.LiveDefinition, packages map[manifest.ID]crossplane.LivePackage) []manifest.Finding {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	declared := map[*catalogue.Package]map[string]bool{}
	for _, d := range want.Definitions {
		if d.Package == nil || d.Package.Pulled() { // Crossplane installs the package from the registry
			continue
		}
		if declared[d.Package] == nil {
			declared[d.Package] = map[string]bool{}
		}
		declared[d.Package][d.Name] = true
	}
	controlled := map[string]map[string]bool{} // by revision
	for name, live := range definitions {
		if live.Revision == "" {
			continue
		}
		if controlled[live.Revision] == nil {
			controlled[live.Revision] = map[string]bool{}
		}
		controlled[live.Revision][name] = true
	}
	var found []manifest.Finding
	for p, names := range declared {
		if live, ok := packages[p.Installer]; ok && live.Installed != metav1.ConditionTrue {
			continue // Crossplane is still installing it
		}
		for revision, live := range controlled {
			has, lacks := only(names, live), only(live, names)
			if len(has) == len(names) || len(has)+len(lacks) == 0 {
				continue // the revision belongs to another package, or is equal
			}
			found = append(found, manifest.Finding{
				Rule: "package-differs", Severity: manifest.Warning, Origin: p.Origin, About: manifest.About{Subject: p.Name},
				Message: fmt.Sprintf("this copy of the package %s is not what the revision %s installed: it has %s that the revision lacks, and lacks %s that it has",
					p.Name, revision, some(has), some(lacks)),
				Fix: "update the copy to the installed version, or install the version of the copy",
			})
		}
	}
	slices.SortFunc(found, manifest.Finding.Compare)
	return found
}

// only returns the names that are in one set and not in the other, sorted.
func only(in, notIn map[string]bool) []string {
	var names []string
	for name := range in {
		if !notIn[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// some counts definitions, and names one of them.
func some(names []string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return "1 definition (" + names[0] + ")"
	}
	return fmt.Sprintf("%d definitions (%s, …)", len(names), names[0])
}

// The rules for packages whose version in the cluster differs from the commit.
const (
	ruleUpgrade = "package-upgrade-pending"
	ruleManual  = "package-revision-inactive"
)

// Upgrades returns findings about packages whose version in the cluster will change or that wait for a person. All
// other output about definitions refers to the commit's versions.
func Upgrades(want render.Desired, packages map[manifest.ID]crossplane.LivePackage) []manifest.Finding {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	var found []manifest.Finding
	for _, o := range want.Objects {
		live, exists := packages[o.ID]
		if !crossplane.IsPackage(o.ID) || !exists || live.Image == "" {
			continue
		}
		u, err := o.Content()
		if err != nil {
			continue // applying the object returns this error
		}
		image, _, _ := unstructured.NestedString(u.Object, "spec", "package")
		policy, _, _ := unstructured.NestedString(u.Object, "spec", "revisionActivationPolicy")
		switch manual := policy == "Manual"; {
		case image != live.Image && manual:
			found = append(found, manifest.Finding{
				Rule: ruleUpgrade, Severity: manifest.Warning, Origin: o.Origin, About: manifest.About{Object: o.ID},
				Message: fmt.Sprintf("%s is %s in the cluster (revision %s), and %s in this commit, whose definitions are shown here; its revisionActivationPolicy is Manual: Crossplane takes the old revision out of service, and a person has to activate the new one", o.ID, live.Image, live.Revision, image),
				Fix:     "activate the new revision as soon as it is there, or set revisionActivationPolicy: Automatic",
			})
		case image != live.Image:
			found = append(found, manifest.Finding{
				Rule: ruleUpgrade, Severity: manifest.Note, Origin: o.Origin, About: manifest.About{Object: o.ID},
				Message: fmt.Sprintf("%s is %s in the cluster (revision %s), and %s in this commit, whose definitions are shown here; Crossplane activates the new revision automatically", o.ID, live.Image, live.Revision, image),
			})
		case live.Reason == crossplane.InactiveRevision:
			found = append(found, manifest.Finding{
				Rule: ruleManual, Severity: manifest.Warning, Origin: o.Origin, About: manifest.About{Object: o.ID},
				Message: fmt.Sprintf("%s waits for a person: revision %s exists but is not active, and Crossplane creates nothing from its definitions until it is", o.ID, live.Revision),
				Fix:     fmt.Sprintf("kubectl patch %srevision %s --type=merge -p '{\"spec\":{\"desiredState\":\"Active\"}}'", strings.ToLower(o.ID.Kind), live.Revision),
			})
		}
	}
	return found
}
