package git

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// errDamaged is wrapped by what a reader says of objects that are not what Git wrote.
var errDamaged = errors.New("damaged data")

const (
	hashSize   = 20
	packHeader = 12
	maxChain   = 4095 // deltas on deltas, as Git itself allows
	maxRatio   = 1032 // what deflate can gain at most
)

// A pack is an open pack file. It is read from many goroutines at once, because
// go-git's own reader has one position per file, reads what is larger than
// 16 KiB twice and keeps nothing open.
type pack struct {
	file   io.ReaderAt
	name   string
	size   int64
	limit  int64                                      // bytes of one object
	offset func(h plumbing.Hash) (int64, bool, error) // where the pack holds h
	recent *recent
}

// A header is what a pack says of an entry before its content.
type header struct {
	kind plumbing.ObjectType
	size int64         // inflated; of the delta, if kind is one
	data int64         // where the content starts
	base int64         // where the base of an OFS delta is
	ref  plumbing.Hash // the base of a REF delta
}

func (p *pack) damaged(at int64, format string, args ...any) error {
	if at == 0 { // the pack as a whole
		return fmt.Errorf("%s: cannot read it: %w: %s", p.name, errDamaged, fmt.Sprintf(format, args...))
	}
	return fmt.Errorf("%s: cannot read the object at %d: %w: %s", p.name, at, errDamaged, fmt.Sprintf(format, args...))
}

// openPack opens the pack at path, and its index, and checks that they belong
// together and that neither is cut short.
func openPack(path string, limit int64, cache *recent) (*pack, *idxfile.MemoryIndex, error) {
	name := filepath.Base(path)
	raw, err := os.ReadFile(strings.TrimSuffix(path, ".pack") + ".idx")
	if err != nil {
		return nil, nil, err
	}
	idx := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(bytes.NewReader(raw)).Decode(idx); err != nil {
		return nil, nil, fmt.Errorf("%s: cannot read its index: %w: %w", name, errDamaged, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	sum := make([]byte, hashSize)
	if _, err := f.ReadAt(sum, max(info.Size()-hashSize, 0)); err != nil || !bytes.Equal(sum, idx.PackfileChecksum[:]) {
		return nil, nil, errors.Join(fmt.Errorf("%s: cannot read it: %w: it is not what its index describes", name, errDamaged), f.Close())
	}
	find := func(h plumbing.Hash) (int64, bool, error) {
		at, err := idx.FindOffset(h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return 0, false, nil
		}
		if err != nil {
			return 0, false, fmt.Errorf("%s: cannot look up %s: %w: %w", name, h, errDamaged, err)
		}
		return at, true, nil
	}
	// The file is closed by its finalizer: trees that were handed out may still read it.
	return &pack{file: f, name: name, size: info.Size(), limit: limit, offset: find, recent: cache}, idx, nil
}

// header reads the header of the entry at an offset.
func (p *pack) header(at int64) (header, error) {
	if at < packHeader || at >= p.size-hashSize {
		return header{}, p.damaged(at, "the offset is outside of the pack")
	}
	buf := make([]byte, 64) // longer than any header
	n, err := p.file.ReadAt(buf, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return header{}, err
	}
	r := bytes.NewReader(buf[:n])
	h, err := readHeader(r)
	if err != nil {
		return header{}, p.damaged(at, "%s", err)
	}
	h.data = at + int64(n-r.Len())
	if h.kind == plumbing.OFSDeltaObject {
		h.base = at - h.base
		if h.base < packHeader || h.base >= at {
			return header{}, p.damaged(at, "its base is outside of the pack")
		}
	}
	if room := p.size - hashSize - h.data; h.size/maxRatio > room {
		return header{}, p.damaged(at, "it claims %d bytes and has room for none such", h.size)
	}
	return h, nil
}

// readHeader decodes a header; base is still the distance.
func readHeader(r io.ByteReader) (header, error) {
	b, err := r.ReadByte()
	if err != nil {
		return header{}, err
	}
	h := header{kind: plumbing.ObjectType(b >> 4 & 7), size: int64(b & 15)}
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = r.ReadByte(); err != nil {
			return header{}, err
		}
		if shift > 53 {
			return header{}, errors.New("its size has too many digits")
		}
		h.size |= int64(b&0x7f) << shift
	}
	switch h.kind {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		return h, nil
	case plumbing.OFSDeltaObject:
		if b, err = r.ReadByte(); err != nil {
			return header{}, err
		}
		h.base = int64(b & 0x7f)
		for b&0x80 != 0 {
			if b, err = r.ReadByte(); err != nil {
				return header{}, err
			}
			if h.base > 1<<48 {
				return header{}, errors.New("its base is too far away")
			}
			h.base = (h.base+1)<<7 | int64(b&0x7f)
		}
		return h, nil
	case plumbing.REFDeltaObject:
		for i := range h.ref {
			if h.ref[i], err = r.ReadByte(); err != nil {
				return header{}, err
			}
		}
		return h, nil
	default:
		return header{}, fmt.Errorf("it is of an unknown type, %d", h.kind)
	}
}

// object reads the object at an offset. The caller does not change the bytes.
func (p *pack) object(at int64) (plumbing.ObjectType, []byte, error) {
	type change struct {
		at    int64
		delta []byte
	}
	var (
		kind    plumbing.ObjectType
		data    []byte
		changes []change
	)
	for base := at; ; {
		if o, ok := p.recent.get(place{p, base}); ok {
			kind, data = o.kind, o.data
			break
		}
		h, err := p.header(base)
		if err != nil {
			return 0, nil, err
		}
		if h.size > p.limit {
			return 0, nil, fmt.Errorf("%s: cannot read the object at %d: it has %d bytes, the limit is %d", p.name, at, h.size, p.limit)
		}
		raw, err := p.content(h)
		if err != nil {
			return 0, nil, p.damaged(base, "%s", err)
		}
		if !h.kind.IsDelta() {
			kind, data = h.kind, raw
			p.recent.put(place{p, base}, known{kind, data})
			break
		}
		if changes = append(changes, change{base, raw}); len(changes) > maxChain {
			return 0, nil, p.damaged(at, "it is a chain of more than %d deltas", maxChain)
		}
		if base = h.base; h.kind == plumbing.REFDeltaObject {
			found, ok, err := p.offset(h.ref)
			if err != nil {
				return 0, nil, err
			}
			if !ok {
				return 0, nil, fmt.Errorf("%w: %s is not in the pack", errNoBase, h.ref)
			}
			base = found
		}
	}
	for _, c := range slices.Backward(changes) {
		size, err := patched(c.delta)
		if err != nil {
			return 0, nil, p.damaged(c.at, "%s", err)
		}
		if size > p.limit {
			return 0, nil, fmt.Errorf("%s: cannot read the object at %d: it has %d bytes, the limit is %d", p.name, at, size, p.limit)
		}
		if data, err = packfile.PatchDelta(data, c.delta); err != nil {
			return 0, nil, p.damaged(c.at, "%s", err)
		}
		p.recent.put(place{p, c.at}, known{kind, data})
	}
	return kind, data, nil
}

// length tells the size of the object at an offset without reading it.
func (p *pack) length(at int64) (int64, error) {
	if o, ok := p.recent.get(place{p, at}); ok {
		return int64(len(o.data)), nil
	}
	h, err := p.header(at)
	if err != nil || !h.kind.IsDelta() {
		return h.size, err
	}
	z, err := inflate(io.NewSectionReader(p.file, h.data, p.size-h.data))
	if err != nil {
		return 0, p.damaged(at, "%s", err)
	}
	defer z.free()
	head := make([]byte, min(h.size, 2*binary.MaxVarintLen64))
	if _, err := io.ReadFull(z, head); err != nil {
		return 0, p.damaged(at, "%s", err)
	}
	size, err := patched(head)
	if err != nil {
		return 0, p.damaged(at, "%s", err)
	}
	return size, nil
}

// content inflates what follows a header.
func (p *pack) content(h header) ([]byte, error) {
	z, err := inflate(io.NewSectionReader(p.file, h.data, p.size-hashSize-h.data))
	if err != nil {
		return nil, err
	}
	defer z.free()
	data := make([]byte, h.size)
	if _, err := io.ReadFull(z, data); err != nil {
		return nil, err
	}
	return data, z.end()
}

// patched tells how many bytes a delta makes.
func patched(delta []byte) (int64, error) {
	_, n := binary.Uvarint(delta)
	if n <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	size, m := binary.Uvarint(delta[n:])
	if m <= 0 || size > 1<<62 {
		return 0, packfile.ErrInvalidDelta
	}
	return int64(size), nil
}

// An inflater is a zlib reader that is used again: a new one costs 40 KiB.
type inflater struct {
	io.ReadCloser
	in *bufio.Reader
}

var inflaters sync.Pool

func newInflater() *inflater {
	if z, ok := inflaters.Get().(*inflater); ok {
		return z
	}
	return &inflater{in: bufio.NewReaderSize(nil, 4<<10)}
}

func inflate(r io.Reader) (*inflater, error) {
	z := newInflater()
	z.in.Reset(r)
	return z, z.start(z.in)
}

// start makes z read from r, and no byte more of it than it needs if r is an io.ByteReader.
func (z *inflater) start(r io.Reader) (err error) {
	if used, ok := z.ReadCloser.(zlib.Resetter); ok {
		return used.Reset(r, nil)
	}
	z.ReadCloser, err = zlib.NewReader(r)
	return err
}

// end checks that nothing follows and that the checksum is right.
func (z *inflater) end() error {
	var more [1]byte
	n, err := z.Read(more[:])
	if n > 0 {
		return packfile.ErrInflatedSizeMismatch
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (z *inflater) free() {
	z.in.Reset(nil)
	inflaters.Put(z)
}
