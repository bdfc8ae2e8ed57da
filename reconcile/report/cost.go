package report

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Cost is an estimate of the API server memory that the CRDs of a commit take.
type Cost struct {
	Before int64 `json:"before"` // bytes
	After  int64 `json:"after"`
	CRDs   int   `json:"crds"` // after
}

// costOf compares the CRDs of two commits. Active definitions stay active, regardless of policies.
func costOf(before, after render.Desired, stays []Definition) Cost {
	was, is := sizes(before), sizes(after)
	theirs, now := ofPackages(before, was), ofPackages(after, is)
	if !maps.Equal(was, is) || !maps.EqualFunc(theirs, now, sameImage) { // else all of them cost what they did
		measured := map[image]Size{}
		measure(was, theirs, measured)
		measure(is, now, measured)
	}
	for _, d := range stays {
		if size, made := was[d.Name]; made {
			is[d.Name] = size
		}
	}
	return Cost{Before: Memory(was), After: Memory(is), CRDs: len(is)}
}

// A Size is how many bytes of JSON a CRD has.
type Size int64

// sizes returns the sizes of the CRDs that a commit makes, by name, without those of packages that Crossplane installs
// itself.
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
			o, _ := render.NewObject(u, l.Origin) // it was read, so it can be written
			all[l.ID.Name] = Size(o.Size)
		}
	}
	return all
}

// ofPackages returns, by name, the active definitions of packages that Crossplane installs itself, without an object of
// the commit.
func ofPackages(of render.Desired, made map[string]Size) map[string]render.DecidedDefinition {
	all := map[string]render.DecidedDefinition{}
	for _, d := range of.Definitions {
		if _, known := made[d.Name]; d.Active && !known && d.Document != nil && d.Package != nil {
			all[d.Name] = d
		}
	}
	return all
}

// An image identifies a definition in a certain image of its package.
type image struct{ digest, definition string }

func imageOf(d render.DecidedDefinition) image { return image{d.Package.Digest, d.Name} }

func sameImage(a, b render.DecidedDefinition) bool {
	return a.Package.Pulled() && imageOf(a) == imageOf(b)
}

// measure adds the sizes of definitions, and remembers the sizes of images. An unreadable definition counts as 0; rendering
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

// The API server memory of a CRD: a fixed part for serving its kind, and a part for every byte, because schemas are
// kept decoded, as validators and as OpenAPI. `make bench` fits both on real CRDs, and checks them on others.
const (
	memoryPerKind = 800_000
	memoryPerByte = 67.0
)

// Memory returns an estimate of the API server memory of CRDs, by name, in bytes.
func Memory(of map[string]Size) int64 {
	sum := 0.0
	for _, size := range of {
		sum += memoryPerKind + memoryPerByte*float64(size)
	}
	return int64(sum)
}

const mebi = 1 << 20

func mib(bytes int64) int64 { return (bytes + mebi/2) / mebi }

// Differs reports whether the estimates differ noticeably.
func (c Cost) Differs() bool { return mib(c.Before) != mib(c.After) }

// String is "about 24 MiB → 31 MiB (+7 MiB) for 12 CRDs".
func (c Cost) String() string {
	return fmt.Sprintf("about %d MiB → %d MiB (%+d MiB) for %s", mib(c.Before), mib(c.After), mib(c.After)-mib(c.Before), moreOf(c.CRDs, "CRD", "CRDs"))
}
