package inventory

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/packages"
)

// Directories returns the directories of the packages and definitions of a record.
func (r Record) Directories() map[string]bool {
	all := map[string]bool{}
	for _, dir := range r.Packages {
		all[dir] = true
	}
	for dir := range r.Definitions {
		all[dir] = true
	}
	return all
}

// WithPackages returns the record with the packages of a commit.
func (r Record) WithPackages(want render.Desired) Record {
	names := map[string][]string{}
	for _, d := range want.Definitions {
		if d.Package != nil && !d.Package.Pulled() {
			names[d.Package.Directory] = append(names[d.Package.Directory], d.Name)
		}
	}
	for _, p := range want.Packages {
		if !p.Pulled() {
			r.AddPackage(p.Directory, FingerprintsOf(names[p.Directory]))
		}
	}
	return r.Bounded()
}

// ImagesOf returns the images to record for a commit. Crossplane has its own record.
func ImagesOf(want render.Desired) []packages.Locked {
	if want.Owner != render.OwnerHeadgate {
		return nil
	}
	var all []packages.Locked
	for _, p := range want.Packages {
		if p.Pulled() && !crossplane.IsDigest(p.Version) {
			all = append(all, packages.Locked{Source: p.Source, Version: p.Version, Digest: p.Digest})
		}
	}
	slices.SortFunc(all, func(a, b packages.Locked) int { return strings.Compare(a.Source, b.Source) })
	return all
}

// AddPackage records a package.
func (r *Record) AddPackage(directory string, names Fingerprints) {
	if !slices.Contains(r.Packages, directory) {
		r.Packages = append(r.Packages, directory)
		slices.Sort(r.Packages)
	}
	r.NoteDefinitions(directory, names)
}

// NoteDefinitions records the definitions that a package declares.
func (r *Record) NoteDefinitions(directory string, names Fingerprints) {
	all := append(ReadFingerprints(r.Definitions[directory]), names...)
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	r.Definitions = maps.Clone(r.Definitions)
	if r.Definitions == nil {
		r.Definitions = map[string]string{}
	}
	r.Definitions[directory] = slices.Compact(all).String()
}

// Take records what another record holds of a directory: its definitions, and whether it is a package.
func (r *Record) Take(directory string, of Record) {
	add := r.NoteDefinitions
	if slices.Contains(of.Packages, directory) {
		add = r.AddPackage
	}
	add(directory, ReadFingerprints(of.Definitions[directory]))
}

// mostFingerprints is the maximum number of bytes for fingerprints, out of 256 KiB for all annotations of an object.
const mostFingerprints = 96 << 10

// Bounded drops fingerprints if there are too many: first those of deleted packages, then others.
func (r Record) Bounded() Record {
	size := 0
	for dir, names := range r.Definitions {
		size += len(dir) + len(names)
	}
	if size <= mostFingerprints {
		return r
	}
	r.Definitions = maps.Clone(r.Definitions)
	dirs := slices.SortedFunc(maps.Keys(r.Definitions), func(a, b string) int {
		switch is, other := slices.Contains(r.Packages, a), slices.Contains(r.Packages, b); {
		case is == other:
			return strings.Compare(a, b)
		case is:
			return 1
		}
		return -1
	})
	for _, dir := range dirs {
		if size <= mostFingerprints {
			break
		}
		size -= len(dir) + len(r.Definitions[dir])
		delete(r.Definitions, dir)
	}
	return r
}

// Fingerprints are hashes of the names of definitions, because two thousand names are too long for an annotation.
type Fingerprints []uint32

func fingerprintOf(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint32(sum[:4])
}

// FingerprintsOf returns the fingerprints of names.
func FingerprintsOf(names []string) Fingerprints {
	var all Fingerprints
	for _, name := range names {
		all = append(all, fingerprintOf(name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// ReadFingerprints is the reverse of String. It ignores unreadable parts.
func ReadFingerprints(text string) Fingerprints {
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	var all Fingerprints
	for ; len(raw) >= 4; raw = raw[4:] {
		all = append(all, binary.BigEndian.Uint32(raw))
	}
	slices.Sort(all)
	return all
}

func (f Fingerprints) String() string {
	raw := make([]byte, 0, 4*len(f))
	for _, of := range f {
		raw = binary.BigEndian.AppendUint32(raw, of)
	}
	return base64.RawStdEncoding.EncodeToString(raw)
}

// Has reports whether a name is among the fingerprints. The probability of a false positive is one in two million.
func (f Fingerprints) Has(name string) bool {
	_, found := slices.BinarySearch(f, fingerprintOf(name))
	return found
}

// Without returns the fingerprints of names that are not declared.
func (f Fingerprints) Without(declared map[string]bool) Fingerprints {
	now := make(map[uint32]bool, len(declared))
	for name := range declared {
		now[fingerprintOf(name)] = true
	}
	return slices.DeleteFunc(slices.Clone(f), func(of uint32) bool { return now[of] })
}
