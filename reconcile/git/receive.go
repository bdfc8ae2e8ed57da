package git

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // Git's own checksum of a pack.
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// errNoBase is what a reader says of a delta whose base it does not have, or not yet.
var errNoBase = errors.New("the base of a delta is missing")

// arriving is how the files are named that a fetch has not finished.
const arriving = "tmp_"

// receive stores the pack that r sends below dir, with an index. What is not
// complete and correct is not stored.
//
// go-git's parser is not used: it holds whole objects in memory whatever their
// size, makes room for as many objects as a pack claims to have, and what
// panics in it panics in a goroutine of its own.
func receive(ctx context.Context, dir string, r io.Reader, limit int64) (err error) {
	f, err := os.CreateTemp(dir, arriving+"pack_*")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if gone := os.Remove(f.Name()); !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	size, err := io.Copy(f, r)
	if err != nil {
		return err
	}
	p := &pack{file: readAt(func(b []byte, at int64) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("cannot index the pack: %w", err)
		}
		return f.ReadAt(b, at)
	}), name: "the pack that was sent", size: size, limit: limit, recent: &recent{limit: recentBytes}}
	idx, sum, err := index(ctx, p)
	if err != nil || idx == nil {
		return err
	}
	var out bytes.Buffer
	if _, err := idxfile.NewEncoder(&out).Encode(idx); err != nil {
		return err
	}
	// The index first: a pack is seen once its own name is there.
	name := filepath.Join(dir, "pack-"+sum.String())
	if err := install(name+".idx", out.Bytes()); err != nil {
		return err
	}
	if err := f.Chmod(0o444); err != nil {
		return err
	}
	return os.Rename(f.Name(), name+".pack")
}

// install writes a file so that it is there as a whole or not at all.
func install(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), arriving+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o444), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// index finds every object of a pack. It returns no index of a pack without objects.
func index(ctx context.Context, p *pack) (*idxfile.MemoryIndex, plumbing.Hash, error) {
	var sum plumbing.Hash
	count, err := p.count(&sum)
	if err != nil || count == 0 {
		return nil, sum, err
	}
	type waiting struct {
		at  int64
		crc uint32
	}
	var (
		out    = &idxfile.Writer{}
		deltas []waiting
		found  = map[plumbing.Hash]int64{}
		add    = func(h plumbing.Hash, at int64, crc uint32) {
			out.Add(h, uint64(at), crc) //nolint:gosec // an offset is not negative
			found[h] = at
		}
	)
	p.offset = func(h plumbing.Hash) (int64, bool, error) {
		at, ok := found[h]
		return at, ok, nil
	}
	in := &counter{Reader: bufio.NewReaderSize(nil, 16<<10)}
	at := int64(packHeader)
	for range count {
		if err := ctx.Err(); err != nil {
			return nil, sum, err
		}
		h, err := p.header(at)
		if err != nil {
			return nil, sum, err
		}
		id, next, err := p.pass(h, in)
		if err != nil {
			return nil, sum, p.damaged(at, "%s", err)
		}
		crc, err := p.crc(at, next)
		if err != nil {
			return nil, sum, err
		}
		if h.kind.IsDelta() {
			deltas = append(deltas, waiting{at, crc})
		} else {
			add(id, at, crc)
		}
		at = next
	}
	if at != p.size-hashSize {
		return nil, sum, p.damaged(at, "bytes follow the last object")
	}
	for len(deltas) > 0 {
		var later []waiting
		for _, d := range deltas {
			if err := ctx.Err(); err != nil {
				return nil, sum, err
			}
			kind, data, err := p.object(d.at)
			if errors.Is(err, errNoBase) { // the base of a REF delta may come after it
				later = append(later, d)
				continue
			}
			if err != nil {
				return nil, sum, err
			}
			add(plumbing.ComputeHash(kind, data), d.at, d.crc)
		}
		if len(later) == len(deltas) {
			return nil, sum, p.damaged(deltas[0].at, "%s", errNoBase)
		}
		deltas = later
	}
	if err := out.OnFooter(sum); err != nil {
		return nil, sum, err
	}
	idx, err := out.Index()
	return idx, sum, err
}

// count checks the frame of a pack: its header and its checksum, which it also fills in.
func (p *pack) count(sum *plumbing.Hash) (uint32, error) {
	if p.size < packHeader+hashSize {
		return 0, p.damaged(0, "it ends early")
	}
	digest := sha1.New() //nolint:gosec // see above
	head := make([]byte, packHeader)
	if _, err := p.file.ReadAt(head, 0); err != nil {
		return 0, err
	}
	if _, err := io.Copy(digest, io.NewSectionReader(p.file, 0, p.size-hashSize)); err != nil {
		return 0, err
	}
	if _, err := p.file.ReadAt(sum[:], p.size-hashSize); err != nil {
		return 0, err
	}
	switch count := binary.BigEndian.Uint32(head[8:]); {
	case string(head[:4]) != "PACK":
		return 0, p.damaged(0, "it does not start like a pack")
	case binary.BigEndian.Uint32(head[4:]) != 2:
		return 0, p.damaged(0, "it is of version %d", binary.BigEndian.Uint32(head[4:]))
	case !bytes.Equal(digest.Sum(nil), sum[:]):
		return 0, p.damaged(0, "its checksum is wrong")
	case int64(count) > p.size/8: // the shortest entry has nine bytes
		return 0, p.damaged(0, "it claims %d objects and has no room for them", count)
	default:
		return count, nil
	}
}

// pass goes through the content of an entry. It tells the id, unless it is a
// delta, and where the next entry starts.
func (p *pack) pass(h header, in *counter) (id plumbing.Hash, next int64, err error) {
	in.Reset(io.NewSectionReader(p.file, h.data, p.size-hashSize-h.data))
	in.n = 0
	z := newInflater()
	defer z.free()
	if err := z.start(in); err != nil {
		return id, 0, err
	}
	hash := plumbing.NewHasher(h.kind, h.size)
	var to io.Writer = hash
	if h.kind.IsDelta() {
		to = io.Discard
	}
	if _, err := io.CopyN(to, z, h.size); err != nil {
		return id, 0, err
	}
	if err := z.end(); err != nil {
		return id, 0, err
	}
	return hash.Sum(), h.data + in.n, nil
}

func (p *pack) crc(from, to int64) (uint32, error) {
	sum := crc32.NewIEEE()
	_, err := io.Copy(sum, io.NewSectionReader(p.file, from, to-from))
	return sum.Sum32(), err
}

// A counter counts what is read; it is an io.ByteReader, so that inflating reads no byte too many.
type counter struct {
	*bufio.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// readAt makes an io.ReaderAt of a function.
type readAt func(b []byte, at int64) (int, error)

func (r readAt) ReadAt(b []byte, at int64) (int, error) { return r(b, at) }
