package plan

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// packageDiffers finds packages of the commit that are catalogues of what is installed, and
// say something else than that: then what the commit decides, it decides by wrong names.
func packageDiffers(want render.Desired, up Upstream) []manifest.Finding {
	if want.Owner != render.OwnerCrossplane {
		return nil
	}
	declared := map[*catalogue.Package]map[string]bool{}
	for _, d := range want.Definitions {
		if d.Package == nil || d.Package.Pulled() { // that is what is to be installed
			continue
		}
		if declared[d.Package] == nil {
			declared[d.Package] = map[string]bool{}
		}
		declared[d.Package][d.Name] = true
	}
	controlled := map[string]map[string]bool{} // by revision
	for name, live := range up.Definitions {
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
		if live, ok := up.Packages[p.Installer]; ok && live.Installed != metav1.ConditionTrue {
			continue // Crossplane is at it
		}
		for revision, live := range controlled {
			has, lacks := only(names, live), only(live, names)
			if len(has) == len(names) || len(has)+len(lacks) == 0 {
				continue // another package, or the same
			}
			found = append(found, manifest.Finding{
				Rule: "package-differs", Severity: manifest.Warning, Origin: p.Origin,
				Message: fmt.Sprintf("this copy of the package %s is not what the revision %s installed: it has %s that the revision lacks, and lacks %s that it has",
					p.Name, revision, some(has), some(lacks)),
				Fix: "bring the copy to the version that is installed, or the other way round",
			})
		}
	}
	slices.SortFunc(found, manifest.Finding.Compare)
	return found
}

// only are the names that are in one set and not in the other, in order.
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
