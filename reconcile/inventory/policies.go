package inventory

import (
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// Covers reports whether path equals of or lies below it. It ignores case, because a file may change only the case of
// its name.
func Covers(of, path string) bool {
	if path == "" || len(path) < len(of) || !strings.EqualFold(path[:len(of)], of) {
		return false
	}
	below := path[len(of):]
	return below == "" || below[0] == '/'
}

// mostPolicyFiles bounds the record, which is stored in an annotation.
const mostPolicyFiles = 500

// Anywhere replaces the files if there are too many to record.
const Anywhere = "."

// PolicyNames returns the names of policies, sorted: those of the commit, and recorded ones that the commit now
// skips. It returns nil if there are too many.
func PolicyNames(want render.Desired, recorded []string) []string {
	var names []string
	for _, name := range recorded {
		if _, found := SkippedPolicy(want, Record{PolicyNames: []string{name}}); found {
			names = append(names, name)
		}
	}
	for _, policy := range want.Policies {
		if _, pulled := want.Within(policy.Origin); !pulled {
			names = append(names, policy.Name)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > mostPolicyFiles {
		return nil
	}
	return names
}

// PolicyFiles returns the files that declare policies, sorted: those of the commit, and recorded ones that the commit now skips.
func PolicyFiles(want render.Desired, recorded []string) []string {
	var files []string
	for _, path := range recorded {
		if _, found := SkippedPolicy(want, Record{Policies: []string{path}}); found {
			files = append(files, path)
		}
	}
	for _, policy := range want.Policies {
		if _, pulled := want.Within(policy.Origin); !pulled {
			files = append(files, policy.Origin.Path)
		}
	}
	slices.Sort(files)
	files = slices.Compact(files)
	if len(files) > mostPolicyFiles {
		return []string{Anywhere}
	}
	return files
}

// SkippedPolicy returns a skipped file or document that declared a policy before. The patterns of a skipped policy are
// not known, so nothing is deactivated. It also finds a policy by name, because its file may have moved.
func SkippedPolicy(want render.Desired, have Record) (catalogue.Omitted, bool) {
	for _, o := range want.Omitted {
		isPolicy := o.ID == crossplane.MRAP(o.ID.Name)
		if o.ID != (manifest.ID{}) && !isPolicy {
			continue
		}
		if isPolicy && slices.Contains(have.PolicyNames, o.ID.Name) {
			return o, true
		}
		if slices.ContainsFunc(have.Policies, func(path string) bool { return path == Anywhere || Covers(o.Origin.Path, path) }) {
			return o, true
		}
	}
	for _, name := range have.PolicyNames {
		if slices.ContainsFunc(want.Policies, func(p catalogue.Policy) bool { return p.Name == name }) {
			continue // its patterns are known
		}
		for _, o := range want.Omitted {
			if declared, unread := o.Declares(); unread != nil || slices.Contains(declared, crossplane.MRAP(name)) {
				return o, true
			}
		}
	}
	return catalogue.Omitted{}, false
}
