package git

import (
	"bufio"
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

// A pack holds objects. Most are stored as deltas, which describe the changes to another object, their base, which
// may be a delta too. go-git reads the index and applies deltas. Headgate follows the deltas itself for speed: go-git
// inflates every delta twice, opens the file for every object and hashes every base.
type pack struct {
	index  *idxfile.MemoryIndex
	file   billy.File // is open, so that it can be read after the clone was removed
	recent *recent
}

// openPack opens a pack by its name.
func openPack(dir *dotgit.DotGit, name plumbing.Hash, recent *recent) (_ *pack, err error) {
	f, err := dir.ObjectPackIdx(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	p := &pack{index: idxfile.NewMemoryIndex(), recent: recent}
	if p.file, err = dir.ObjectPack(name); err != nil {
		return nil, err
	}
	if err := idxfile.NewDecoder(f).Decode(p.index); err != nil {
		return nil, err
	}
	if p.index.PackfileChecksum != name {
		return nil, fmt.Errorf("%w: the index of pack %s belongs to another one", errDamaged, name)
	}
	return p, nil
}

// A value is an object, or its stored form.
type value struct {
	kind plumbing.ObjectType
	data []byte
}

// sizeError is the size of an object that exceeds the limit.
type sizeError int64

func (t sizeError) Error() string { return fmt.Sprintf("it has %d bytes", int64(t)) }

// maxDeltas is the maximum length of a chain of deltas. Git creates at most 4095.
const maxDeltas = 5000

// read reads the object at an offset. Callers share its bytes and must not change them. Only one delta is in memory
// at a time, because all of them together may be larger than the object.
func (p *pack) read(offset, limit int64) (value, error) {
	var line []int64 // offsets of deltas, the last one first
	var v value
	for at := offset; ; {
		known, ok := p.recent.get(p, at)
		if ok {
			v = known
			break
		}
		h, err := p.headerAt(at)
		if err != nil {
			return value{}, err
		}
		if !h.kind.IsDelta() {
			if v, err = p.stored(at, limit); err != nil {
				return value{}, err
			}
			p.recent.put(p, at, v)
			break
		}
		if line = append(line, at); len(line) > maxDeltas {
			return value{}, fmt.Errorf("%w: the deltas of a pack have no end", errDamaged)
		}
		at = h.base
	}
	for _, at := range slices.Backward(line) {
		delta, err := p.stored(at, limit)
		if err != nil {
			return value{}, err
		}
		_, size, _, err := deltaSizes(delta.data)
		if err != nil {
			return value{}, err
		}
		if size > limit {
			return value{}, sizeError(size)
		}
		if v.data, err = packfile.PatchDelta(v.data, delta.data); err != nil {
			return value{}, err
		}
		p.recent.put(p, at, v)
	}
	return v, nil
}

// lineage returns the offsets of the object's bases, the first base first, and of the object itself. known caches the
// offset of the base for each offset.
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

// baseOf returns the offset of the base of the object at an offset. It returns 0 without a base and on errors.
func (p *pack) baseOf(offset int64) int64 {
	h, err := p.headerAt(offset)
	if err != nil {
		return 0
	}
	return h.base
}

// size returns the size of the object at an offset.
func (p *pack) size(offset int64) (int64, error) {
	in := p.at(offset)
	defer inflaters.Put(in)
	h, err := readHeader(in, offset)
	if err != nil || !h.kind.IsDelta() {
		return h.length, err
	}
	begin, err := in.inflate(min(h.length, 2*binary.MaxVarintLen64), true)
	if err != nil {
		return 0, err
	}
	_, size, _, err := deltaSizes(begin)
	return size, err
}

// stored reads the stored form of the object at an offset.
func (p *pack) stored(offset, limit int64) (v value, err error) {
	in := p.at(offset)
	defer inflaters.Put(in)
	h, err := readHeader(in, offset)
	if err != nil {
		return value{}, err
	}
	if h.length > limit {
		return value{}, sizeError(h.length)
	}
	v.kind = h.kind
	v.data, err = in.inflate(h.length, false)
	return v, err
}

// headerAt reads the header of the object at an offset. It resolves the base of a delta that names the base's ID.
func (p *pack) headerAt(offset int64) (header, error) {
	in := p.at(offset)
	defer inflaters.Put(in)
	h, err := readHeader(in, offset)
	if err == nil && h.kind == plumbing.REFDeltaObject {
		if h.base, err = p.index.FindOffset(h.id); err != nil {
			err = fmt.Errorf("%w: %w", packfile.ErrMalformedPackFile, err)
		}
	}
	return h, err
}

// A header precedes each object in a pack.
type header struct {
	kind   plumbing.ObjectType
	length int64         // length of the inflated data
	base   int64         // for a delta: offset of its base, or 0
	id     plumbing.Hash // otherwise the ID of its base
}

// readHeader reads the header of an object at an offset.
func readHeader(in interface {
	io.Reader
	io.ByteReader
}, offset int64,
) (h header, err error) {
	c, err := in.ReadByte()
	if err != nil {
		return header{}, err
	}
	h.kind, h.length = plumbing.ObjectType(c>>4&7), int64(c&15)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = in.ReadByte(); err != nil {
			return header{}, err
		}
		if shift > 55 {
			return header{}, packfile.ErrMalformedPackFile
		}
		h.length |= int64(c&0x7F) << shift
	}
	switch h.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
	case plumbing.OFSDeltaObject:
		back, err := readOffset(in)
		if err != nil || back <= 0 || back >= offset {
			return header{}, packfile.ErrMalformedPackFile
		}
		h.base = offset - back
	case plumbing.REFDeltaObject:
		if _, err = io.ReadFull(in, h.id[:]); err != nil {
			return header{}, fmt.Errorf("%w: %w", packfile.ErrMalformedPackFile, err)
		}
	default:
		return header{}, packfile.ErrMalformedPackFile
	}
	return h, nil
}

// An inflater reads one object of a pack.
type inflater struct {
	bufio.Reader

	z io.ReadCloser // nil before the first use
}

var inflaters = sync.Pool{New: func() any { return new(inflater) }}

// at returns an inflater that reads from an offset. The caller returns it to the pool.
func (p *pack) at(offset int64) *inflater {
	in, _ := inflaters.Get().(*inflater) // the pool holds nothing else
	in.Reset(io.NewSectionReader(p.file, offset, math.MaxInt64-offset))
	return in
}

// readOffset decodes the distance to a base, which Git encodes in only one way.
func readOffset(in io.ByteReader) (n int64, err error) {
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

// reset starts to inflate from a reader.
func (in *inflater) reset(from io.Reader) (err error) {
	if in.z == nil {
		in.z, err = zlib.NewReader(from)
		return err
	}
	if z, ok := in.z.(zlib.Resetter); ok { // package zlib promises it
		err = z.Reset(from, nil)
	}
	return err
}

// inflate reads length bytes. They are the whole content, or its beginning if first is set.
func (in *inflater) inflate(length int64, first bool) ([]byte, error) {
	if err := in.reset(&in.Reader); err != nil {
		return nil, err
	}
	// A wrong length cannot make Headgate allocate memory, and for a correct one the buffer does not double.
	room := length + 1
	if first {
		room = length
	}
	out := make([]byte, 0, min(room, 1<<20))
	for int64(len(out)) < room {
		if len(out) == cap(out) {
			out = append(make([]byte, 0, min(2*int64(cap(out)), room)), out...)
		}
		n, err := in.z.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if int64(len(out)) != length {
		return nil, fmt.Errorf("%w: an object is not as long as the pack says", errDamaged)
	}
	return out, nil
}

// recent caches objects of packs, because deltas need them as bases.
type recent struct {
	mu         sync.Mutex
	young, old map[packOffset]value
	size       int // bytes of the young generation
}

type packOffset struct {
	pack   *pack
	offset int64
}

// remembered is the size of one of the two generations in bytes; the last object may exceed it. This is enough for
// the bases of objects that are read in the order of their lineage.
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

// add stores a value. If the young generation is full, it drops all values that were not used since the last time.
func (r *recent) add(at packOffset, v value) {
	if r.young == nil || r.size+len(v.data) > remembered {
		r.young, r.old, r.size = map[packOffset]value{}, r.young, 0
	}
	r.young[at] = v
	r.size += len(v.data)
}
