package report

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Cost is an estimate of what the CRDs of a commit cost the memory of an API server.
type Cost struct {
	Before int64 `json:"before"` // bytes
	After  int64 `json:"after"`
	CRDs   int   `json:"crds"` // after
}

// costOf compares the CRDs of two commits. What was active stays, whatever the policies say.
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

// sizes are those of the CRDs that a commit makes, or has made, by name: definitions of packages
// that Crossplane installs aside.
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

// ofPackages are active definitions by name of which Crossplane makes the CRDs without an object
// of the commit: it installs their packages itself.
func ofPackages(of render.Desired, made map[string]Size) map[string]render.DecidedDefinition {
	all := map[string]render.DecidedDefinition{}
	for _, d := range of.Definitions {
		if _, known := made[d.Name]; d.Active && !known && d.Document != nil && d.Package != nil {
			all[d.Name] = d
		}
	}
	return all
}

// An image says what a definition is, as long as its package is a certain image.
type image struct{ digest, definition string }

func imageOf(d render.DecidedDefinition) image { return image{d.Package.Digest, d.Name} }

func sameImage(a, b render.DecidedDefinition) bool {
	return a.Package.Pulled() && imageOf(a) == imageOf(b)
}

// measure adds the sizes of definitions, and remembers those of images. What cannot be read
// costs nothing; rendering says so where it matters.
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

// What a CRD costs the memory of an API server: so much for its kind to be served at all, and so
// much for every byte of it, since schemas are kept decoded, as validators and as OpenAPI.
// `make bench` fits both on real CRDs, and checks them on others.
const (
	memoryPerKind = 800_000
	memoryPerByte = 67.0
)

// Memory is an estimate of what CRDs, by name, cost an API server, in bytes.
func Memory(of map[string]Size) int64 {
	sum := 0.0
	for _, size := range of {
		sum += memoryPerKind + memoryPerByte*float64(size)
	}
	return int64(sum)
}

const mebi = 1 << 20

func mib(bytes int64) int64 { return (bytes + mebi/2) / mebi }

// Differs reports whether the estimate does, by as much as anybody would notice.
func (c Cost) Differs() bool { return mib(c.Before) != mib(c.After) }

// String is "about 24 MiB → 31 MiB (+7 MiB) for 12 CRDs".
func (c Cost) String() string {
	return fmt.Sprintf("about %d MiB → %d MiB (%+d MiB) for %s", mib(c.Before), mib(c.After), mib(c.After)-mib(c.Before), moreOf(c.CRDs, "CRD", "CRDs"))
}
