// Package memory estimates the memory that an API server needs for CRDs. It is pure.
package memory

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Change estimates the API server memory for the CRDs of two commits.
type Change struct {
	Before int64 `json:"before"` // in bytes
	After  int64 `json:"after"`
	CRDs   int   `json:"crds"` // number of CRDs after the change

	Unknown int `json:"unknown,omitempty"` // packages, before or after the change, that could not be read: their CRDs are in no number
}

// Compare compares the CRDs of two commits. Definitions that stay active keep their CRDs, regardless of policies.
func Compare(before, after render.Desired, stays []string) Change {
	was, is := sizes(before), sizes(after)
	theirs, now := ofPackages(before, was), ofPackages(after, is)
	if !maps.Equal(was, is) || !maps.EqualFunc(theirs, now, sameImage) { // otherwise the sizes of packages are equal
		measured := map[image]Size{}
		measure(was, theirs, measured)
		measure(is, now, measured)
	}
	for _, name := range stays {
		if size, made := was[name]; made {
			is[name] = size
		}
	}
	return Change{Before: Of(was), After: Of(is), CRDs: len(is), Unknown: max(before.Unknown(), after.Unknown())}
}

// A Size is the size of a CRD as JSON, in bytes.
type Size int64

// sizes returns the sizes of the CRDs that a commit creates, by name, without those of packages that Crossplane itself installs.
func sizes(of render.Desired) map[string]Size {
	active := map[string]bool{}
	for _, d := range of.Definitions {
		active[d.Name] = d.Active
	}
	all := map[string]Size{}
	for _, o := range of.Objects {
		if o.ID.IsCRD() || crossplane.IsMRD(o.ID) && active[o.Definition] {
			all[o.ID.Name] = Size(o.Size)
		}
	}
	for _, l := range of.Left {
		if u, err := l.Content(); l.ID.IsCRD() && err == nil {
			o, _ := render.NewObject(u, l.Origin) // it was decoded, so it can be encoded
			all[l.ID.Name] = Size(o.Size)
		}
	}
	return all
}

// ofPackages returns, by name, the active definitions of packages that Crossplane itself installs, if the commit has
// no object for them.
func ofPackages(of render.Desired, made map[string]Size) map[string]render.DecidedDefinition {
	all := map[string]render.DecidedDefinition{}
	for _, d := range of.Definitions {
		if _, known := made[d.Name]; d.Active && !known && d.Package != nil {
			all[d.Name] = d
		}
	}
	return all
}

// An image identifies a definition in one image of its package.
type image struct{ digest, definition string }

func imageOf(d render.DecidedDefinition) image { return image{d.Package.Digest, d.Name} }

func sameImage(a, b render.DecidedDefinition) bool {
	return a.Package.Pulled() && imageOf(a) == imageOf(b)
}

// measure adds the sizes of definitions, and caches sizes by image. An unreadable definition counts as 0; rendering
// reports it if it matters.
func measure(sizes map[string]Size, of map[string]render.DecidedDefinition, known map[image]Size) {
	names := slices.Sorted(maps.Keys(of))
	found := make([]Size, len(names))
	manifest.Each(len(names), func(i int) {
		d := of[names[i]]
		size, ok := known[imageOf(d)]
		if ok && d.Package.Pulled() {
			found[i] = size
		} else if o, err := d.CRD(); err == nil {
			found[i] = Size(o.Size)
		}
	})
	for i, name := range names {
		if found[i] > 0 {
			sizes[name], known[imageOf(of[name])] = found[i], found[i]
		}
	}
}

// The API server memory for a CRD: a constant for serving its kind, and a factor for every byte, because the API server keeps
// schemas decoded, as validators and as OpenAPI. `make bench` fits both to real CRDs, and validates them with others.
const (
	perKind = 800_000
	perByte = 67.0
)

// Of estimates the API server memory for CRDs in bytes. of holds their sizes by name.
func Of(of map[string]Size) int64 {
	sum := 0.0
	for _, size := range of {
		sum += perKind + perByte*float64(size)
	}
	return int64(sum)
}

const mebi = 1 << 20

func mib(bytes int64) int64 { return (bytes + mebi/2) / mebi }

// Differs reports whether the two estimates differ by at least a MiB. An estimate without the CRDs of a package does not count as one.
func (c Change) Differs() bool { return c.Unknown > 0 || mib(c.Before) != mib(c.After) }

// Estimates reports whether the text is an estimate.
func (c Change) Estimates() bool { return c.Unknown == 0 }

// String returns a text such as "about 24 MiB → 31 MiB (+7 MiB) for 12 CRDs".
func (c Change) String() string {
	if c.Unknown > 0 {
		return fmt.Sprintf("not known, because %s could not be read", manifest.Count(c.Unknown, "package"))
	}
	return fmt.Sprintf("about %d MiB → %d MiB (%+d MiB) for %s", mib(c.Before), mib(c.After), mib(c.After)-mib(c.Before), manifest.Count(c.CRDs, "CRD"))
}
