package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"maps"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// Without its crossplane.yaml, a package is a directory of plain CRDs, and all of them would be made. So
// the inventory records which directories were packages, and what they declared.

const guardLost = "package lost"

// A lostPackage is a package of a commit that was applied, whose directory is no package in this one, or
// of which definitions became plain CRDs.
type lostPackage struct {
	directory string
	remains   bool            // it is a package still: only what it declared before is lost
	returns   map[string]bool // names of its definitions that are plain CRDs now
	packages  []string        // the directories of packages of this commit: what is there is theirs
	names     fingerprints    // of its definitions
	follows   int             // how many steps of the plan are due to the loss
}

// lostPackages returns the packages that are recorded and that the commit has no more, or not whole, by
// directory. A package that moved declares its definitions elsewhere; what is not declared at all is not
// lost.
func lostPackages(want render.Desired, seen Observed) []lostPackage {
	if seen.Looks || seen.Ends != NoEnding {
		return nil
	}
	var packages []string
	for _, p := range want.Packages {
		if !p.Pulled() {
			packages = append(packages, p.Directory)
		}
	}
	have := seen.Inventory.Record
	var lost []lostPackage
	for _, dir := range slices.Sorted(maps.Keys(have.directories())) {
		p := lostPackage{
			directory: dir, remains: slices.Contains(packages, dir), returns: map[string]bool{},
			packages: packages, names: readFingerprints(have.Definitions[dir]),
		}
		for _, o := range want.Objects {
			if o.ID.IsCRD() && o.Definition == "" && p.names.has(o.ID.Name) {
				p.returns[o.ID.Name] = true
			}
		}
		stays := !p.remains && slices.Contains(have.Packages, dir) && slices.ContainsFunc(want.Directories, p.holds)
		if stays || len(p.returns) > 0 {
			lost = append(lost, p)
		}
	}
	return lost
}

// packageLost holds what comes of a package that is none any more: its CRDs and its examples as plain
// objects, and prunes of what only a package has.
func packageLost(s Step, c Case) Ruling {
	for _, p := range c.lost {
		switch {
		case !p.concerns(s, c.Seen.Inventory.Entries[s.ID]):
		case p.remains:
			return held("the package in %s declared it as a definition in the last applied commit, and it is a plain CRD now, which is made whatever policies name; move it back, or list it in .headgateignore", p.directory)
		default:
			return held("the directory %s was a package in the last applied commit and is not one now, so this would follow; put its crossplane.yaml back, declare it in packages, list it in .headgateignore, or delete it", p.directory)
		}
	}
	return allowed
}

// concerns reports whether a step is due to the loss of a package.
func (p lostPackage) concerns(s Step, entry Entry) bool {
	defines := s.ID.IsCRD() || s.ID.IsMRD()
	known := defines && p.names.has(s.ID.Name)
	switch {
	case s.TakesBack:
		return false
	case p.remains:
		return defines && !s.Definition && p.returns[s.ID.Name]
	case s.Action == Prune || s.Would == Prune:
		return known || entry.Path != "" && p.holds(entry.Path)
	case s.Definition: // it is a definition as before
		return false
	}
	return known || s.Origin.Path != "" && p.holds(s.Origin.Path)
}

// holds reports whether a file is in the lost package, and in no other.
func (p lostPackage) holds(file string) bool {
	return isWithin(file, p.directory) && !slices.ContainsFunc(p.packages, func(dir string) bool {
		return isWithin(dir, p.directory) && isWithin(file, dir)
	})
}

// isWithin reports whether a path is a directory, or lies below it.
func isWithin(name, directory string) bool {
	name = path.Clean(name)
	return directory == "." || name == directory || strings.HasPrefix(name, directory+"/")
}

// remember decides what the inventory is to record of packages once the plan is carried out.
func (p *Plan) remember(seen Observed) {
	if seen.Offline || seen.Looks || seen.Ends != NoEnding {
		return
	}
	for i, l := range p.lost {
		for _, s := range p.Steps {
			if s.Action != Keep && l.concerns(s, seen.Inventory.Entries[s.ID]) {
				p.lost[i].follows++
			}
		}
	}
	have := seen.Inventory.Record
	next := Record{}.with(p.Want)
	known := map[string]bool{} // as what it is now: a definition, or a CRD that is there
	for _, d := range p.Want.Definitions {
		known[d.Name] = known[d.Name] || d.Package != nil && !d.Package.Pulled()
	}
	for _, o := range p.Want.Objects {
		_, exists := seen.Objects[o.ID]
		known[o.ID.Name] = known[o.ID.Name] || exists && o.ID.IsCRD()
	}
	current := next.directories()
	for dir := range have.directories() {
		names := readFingerprints(have.Definitions[dir])
		i := slices.IndexFunc(p.lost, func(l lostPackage) bool { return l.directory == dir })
		switch {
		case current[dir] && i >= 0 && p.lost[i].follows > 0:
			next.note(dir, names)
		case current[dir]:
			next.note(dir, names.without(known)) // what it declared before may come back
		case i >= 0 && p.lost[i].follows > 0 && slices.Contains(have.Packages, dir):
			next.add(dir, names)
		case i >= 0 && p.lost[i].follows > 0:
			next.note(dir, names)
		default:
			next.note(dir, names.without(known))
		}
	}
	next = next.bounded()
	p.record, p.known = &next, known
	p.news = !slices.Equal(have.Packages, next.Packages) || !maps.Equal(have.Definitions, next.Definitions)
}

// applying returns the record to store before the first write: nothing is forgotten yet.
func (p Plan) applying(have Record) Record {
	if p.record == nil {
		return have
	}
	next := have
	next.Packages, next.Definitions = nil, nil
	for _, of := range []Record{have, *p.record} {
		for dir := range of.directories() {
			if names := readFingerprints(of.Definitions[dir]); slices.Contains(of.Packages, dir) {
				next.add(dir, names)
			} else {
				next.note(dir, names)
			}
		}
	}
	return next.bounded()
}

// appliedRecord returns the record to store after the last write. A package whose loss was approved is
// forgotten once all that follows was done.
func (p Plan) appliedRecord(have Inventory, done []Outcome) Record {
	if p.record == nil {
		return have.Record
	}
	carried := map[manifest.ID]bool{}
	for _, o := range done {
		carried[o.ID] = o.Err == nil
	}
	next := have.Record
	next.Packages, next.Definitions = nil, nil
	for dir := range p.record.directories() {
		names := readFingerprints(p.record.Definitions[dir])
		made := map[string]bool{}
		i := slices.IndexFunc(p.lost, func(l lostPackage) bool { return l.directory == dir })
		follows := 0
		for _, s := range p.Steps {
			if i >= 0 && s.Action != Keep && s.Approved && carried[s.ID] && p.lost[i].concerns(s, have.Entries[s.ID]) {
				made[s.ID.Name] = true
				follows++
			}
		}
		over := follows > 0 && follows == p.lost[i].follows
		switch {
		case over && !p.lost[i].remains:
			next.note(dir, names.without(made).without(p.known))
		case over:
			next.add(dir, names.without(made))
		case slices.Contains(p.record.Packages, dir):
			next.add(dir, names)
		default:
			next.note(dir, names)
		}
	}
	return next.bounded()
}

// directories are those of the packages of a record, and of what packages declared.
func (r Record) directories() map[string]bool {
	all := map[string]bool{}
	for _, dir := range r.Packages {
		all[dir] = true
	}
	for dir := range r.Definitions {
		all[dir] = true
	}
	return all
}

// with returns the record of the packages of a commit.
func (r Record) with(want render.Desired) Record {
	names := map[string][]string{}
	for _, d := range want.Definitions {
		if d.Package != nil && !d.Package.Pulled() {
			names[d.Package.Directory] = append(names[d.Package.Directory], d.Name)
		}
	}
	for _, p := range want.Packages {
		if !p.Pulled() {
			r.add(p.Directory, fingerprintsOf(names[p.Directory]))
		}
	}
	return r.bounded()
}

// add records a package.
func (r *Record) add(directory string, names fingerprints) {
	if !slices.Contains(r.Packages, directory) {
		r.Packages = append(r.Packages, directory)
		slices.Sort(r.Packages)
	}
	r.note(directory, names)
}

// note records what a package declares.
func (r *Record) note(directory string, names fingerprints) {
	all := append(readFingerprints(r.Definitions[directory]), names...)
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

// mostFingerprints is how many bytes of them an inventory records, of the 256 KiB that the annotations of
// an object may have.
const mostFingerprints = 96 << 10

// bounded leaves out fingerprints of packages that are gone, and then of others, if there are too many.
func (r Record) bounded() Record {
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

// fingerprints stand for names of definitions: two thousand names are too long for an annotation.
type fingerprints []uint32

func fingerprintOf(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint32(sum[:4])
}

func fingerprintsOf(names []string) fingerprints {
	var all fingerprints
	for _, name := range names {
		all = append(all, fingerprintOf(name))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// readFingerprints is the reverse of String. What cannot be read stands for nothing.
func readFingerprints(text string) fingerprints {
	raw, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	var all fingerprints
	for ; len(raw) >= 4; raw = raw[4:] {
		all = append(all, binary.BigEndian.Uint32(raw))
	}
	slices.Sort(all)
	return all
}

func (f fingerprints) String() string {
	raw := make([]byte, 0, 4*len(f))
	for _, of := range f {
		raw = binary.BigEndian.AppendUint32(raw, of)
	}
	return base64.RawStdEncoding.EncodeToString(raw)
}

// has reports whether a name is among them. One in two million names that are not may seem to be.
func (f fingerprints) has(name string) bool {
	_, found := slices.BinarySearch(f, fingerprintOf(name))
	return found
}

// without returns those that do not stand for names that are declared.
func (f fingerprints) without(declared map[string]bool) fingerprints {
	now := make(map[uint32]bool, len(declared))
	for name := range declared {
		now[fingerprintOf(name)] = true
	}
	return slices.DeleteFunc(slices.Clone(f), func(of uint32) bool { return now[of] })
}
