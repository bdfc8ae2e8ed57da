package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// A pack holds objects, most of them as a delta: what has to change in another one, its
// base, which may be a delta too. go-git reads the index and applies deltas. That we follow
// them is for speed: go-git inflates every delta twice, opens the file for every object and
// hashes every base.
type pack struct {
	index  *idxfile.MemoryIndex
	file   func() (billy.File, error) // opened when it is needed
	recent *recent
}

// openPack opens the pack of a name.
func openPack(dir *dotgit.DotGit, name plumbing.Hash, recent *recent) (_ *pack, err error) {
	f, err := dir.ObjectPackIdx(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := &pack{
		index:  idxfile.NewMemoryIndex(),
		file:   sync.OnceValues(func() (billy.File, error) { return dir.ObjectPack(name) }),
		recent: recent,
	}
	if err := idxfile.NewDecoder(f).Decode(p.index); err != nil {
		return nil, err
	}
	if p.index.PackfileChecksum != name {
		return nil, fmt.Errorf("%w: the index of pack %s is that of another one", errDamaged, name)
	}
	return p, nil
}

// A value is an object, or what is stored of it.
type value struct {
	kind plumbing.ObjectType
	data []byte
	base int64 // of a delta: where its base is
}

// sizeError is the size of an object that is larger than the limit.
type sizeError int64

func (t sizeError) Error() string { return fmt.Sprintf("it has %d bytes", int64(t)) }

// maxDeltas is how many deltas may follow each other. Git makes no more than 4095.
const maxDeltas = 5000

// read reads the object at an offset, that so many deltas led to. Its bytes are shared:
// nobody may change them.
func (p *pack) read(offset, limit int64, deltas int) (v value, err error) {
	if v, ok := p.recent.get(p, offset); ok {
		return v, nil
	}
	if v, err = p.stored(offset, limit); err != nil {
		return value{}, err
	}
	if v.kind.IsDelta() {
		if v, err = p.changed(v, limit, deltas+1); err != nil {
			return value{}, err
		}
	}
	p.recent.put(p, offset, v)
	return v, nil
}

// changed is what a delta makes of its base.
func (p *pack) changed(delta value, limit int64, deltas int) (value, error) {
	size, err := p.target(delta.data)
	switch {
	case err != nil:
		return value{}, err
	case size > limit:
		return value{}, sizeError(size)
	case deltas > maxDeltas:
		return value{}, fmt.Errorf("%w: the deltas of a pack have no end", errDamaged)
	}
	base, err := p.read(delta.base, limit, deltas)
	if err != nil {
		return value{}, err
	}
	data, err := packfile.PatchDelta(base.data, delta.data)
	return value{kind: base.kind, data: data}, err
}

// lineage is where the bases of the object at an offset are, the first one first, and the
// object itself. known holds what was found out about others: where their base is.
func (p *pack) lineage(offset int64, known map[int64]int64) []int64 {
	var line []int64
	for at := offset; at > 0 && len(line) <= maxDeltas; {
		line = append(line, at)
		base, ok := known[at]
		if !ok {
			base = p.baseOf(at)
			known[at] = base
		}
		at = base
	}
	slices.Reverse(line)
	return line
}

// baseOf is where the base of the object at an offset is; 0 is nowhere, and whatever is
// wrong with it.
func (p *pack) baseOf(offset int64) int64 {
	in, err := p.at(offset)
	if err != nil {
		return 0
	}
	defer inflaters.Put(in)
	_, _, base, err := p.header(in, offset)
	if err != nil {
		return 0
	}
	return base
}

// target is the size of what a delta makes.
func (p *pack) target(delta []byte) (int64, error) {
	_, n := binary.Uvarint(delta) // the size of the base
	if n > 0 {
		if size, m := binary.Uvarint(delta[n:]); m > 0 && size <= math.MaxInt64 {
			return int64(size), nil
		}
	}
	return 0, packfile.ErrInvalidDelta
}

// size tells the size of the object at an offset.
func (p *pack) size(offset int64) (int64, error) {
	in, err := p.at(offset)
	if err != nil {
		return 0, err
	}
	defer inflaters.Put(in)
	kind, length, _, err := p.header(in, offset)
	if err != nil || !kind.IsDelta() {
		return length, err
	}
	begin, err := in.inflate(min(length, 2*binary.MaxVarintLen64), true)
	if err != nil {
		return 0, err
	}
	return p.target(begin)
}

// stored reads what is stored at an offset.
func (p *pack) stored(offset, limit int64) (v value, err error) {
	in, err := p.at(offset)
	if err != nil {
		return value{}, err
	}
	defer inflaters.Put(in)
	var length int64
	if v.kind, length, v.base, err = p.header(in, offset); err != nil {
		return value{}, err
	}
	if length > limit {
		return value{}, sizeError(length)
	}
	v.data, err = in.inflate(length, false)
	return v, err
}

// header reads what stands before an object: its kind, how long it is inflated, and of a
// delta, where its base is.
func (p *pack) header(in *inflater, offset int64) (kind plumbing.ObjectType, length, base int64, err error) {
	c, err := in.ReadByte()
	if err != nil {
		return 0, 0, 0, err
	}
	kind, length = plumbing.ObjectType(c>>4&7), int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil {
			return 0, 0, 0, err
		}
		if shift > 55 {
			return 0, 0, 0, packfile.ErrMalformedPackFile
		}
		length |= int64(c&0x7F) << shift
	}
	switch kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.OFSDeltaObject:
		back, err := in.offset()
		if err != nil || back <= 0 || back >= offset {
			return 0, 0, 0, packfile.ErrMalformedPackFile
		}
		base = offset - back
	case plumbing.REFDeltaObject:
		var id plumbing.Hash
		if _, err = io.ReadFull(in, id[:]); err == nil {
			base, err = p.index.FindOffset(id)
		}
		if err != nil {
			return 0, 0, 0, fmt.Errorf("%w: %w", packfile.ErrMalformedPackFile, err)
		}
	default:
		return 0, 0, 0, packfile.ErrMalformedPackFile
	}
	return kind, length, base, nil
}

// An inflater reads one place of a pack.
type inflater struct {
	bufio.Reader

	z io.ReadCloser // nil until something was inflated
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// at is an inflater that reads from an offset on. Put it back.
func (p *pack) at(offset int64) (*inflater, error) {
	f, err := p.file()
	if err != nil {
		return nil, err
	}
	in, _ := inflaters.Get().(*inflater) // the pool holds nothing else
	in.Reset(io.NewSectionReader(f, offset, math.MaxInt64-offset))
	return in, nil
}

// offset reads a number in the one way that Git writes the distance to a base.
func (in *inflater) offset() (n int64, err error) {
	for first := true; ; first = false {
		c, err := in.ReadByte()
		if err != nil {
			return 0, err
		}
		if n > math.MaxInt64>>8 {
			return 0, packfile.ErrMalformedPackFile
		}
		if !first {
			n++
		}
		if n = n<<7 | int64(c&0x7F); c&0x80 == 0 {
			return n, nil
		}
	}
}

// inflate reads so many bytes, which are all that there are, or only the first ones.
func (in *inflater) inflate(length int64, first bool) ([]byte, error) {
	var err error
	if in.z == nil {
		in.z, err = zlib.NewReader(&in.Reader)
	} else if z, ok := in.z.(zlib.Resetter); ok { // package zlib promises it
		err = z.Reset(&in.Reader, nil)
	}
	if err != nil {
		return nil, err
	}
	// A lie about the length does not make us take memory.
	out := bytes.NewBuffer(make([]byte, 0, min(length, 1<<20)+bytes.MinRead))
	more := int64(1)
	if first {
		more = 0
	}
	if _, err := out.ReadFrom(io.LimitReader(in.z, length+more)); err != nil {
		return nil, err
	}
	if int64(out.Len()) != length {
		return nil, fmt.Errorf("%w: an object is not as long as the pack says", errDamaged)
	}
	return out.Bytes(), nil
}

// recent remembers what was read of packs, because deltas change it.
type recent struct {
	mu         sync.Mutex
	young, old map[packOffset]value
	size       int // of the young ones
}

type packOffset struct {
	pack   *pack
	offset int64
}

// remembered is how many bytes are, at most twice. It is enough for the bases of one object
// after the other in the order of their lineage.
const remembered = 8 << 20

func (r *recent) get(p *pack, offset int64) (value, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := packOffset{p, offset}
	if v, ok := r.young[at]; ok {
		return v, true
	}
	v, ok := r.old[at]
	if ok {
		r.add(at, v)
	}
	return v, ok
}

func (r *recent) put(p *pack, offset int64, v value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(packOffset{p, offset}, v)
}

// add remembers a value, and forgets those that were not needed since the last time that
// there were too many.
func (r *recent) add(at packOffset, v value) {
	if r.young == nil || r.size+len(v.data) > remembered {
		r.young, r.old, r.size = map[packOffset]value{}, r.young, 0
	}
	r.young[at] = v
	r.size += len(v.data)
}
