package git

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/hash"

	"headgate.dev/headgate/reconcile/disk"
)

// This package unpacks packs itself. go-git reads every object of a pack into memory, and all bases of a delta. Here
// an object is refused before it is inflated, an object that is not a base is hashed while it streams by, and the
// memory for bases is bounded. See ADR 47.

// maxBases is the maximum number of bytes of bases in memory while their deltas are applied, besides the current base.
const maxBases = 32 << 20

// A packError refuses a pack that exceeds a limit.
type packError struct{ why string }

func (e packError) Error() string { return "cannot unpack what the server sent: " + e.why }

// Permanent reports true: the same pack would be refused again.
func (packError) Permanent() bool { return true }

// errPack is wrapped by errors about a pack other than its size.
var errPack = errors.New("cannot unpack what the server sent")

// receive writes a pack to a clone. It first writes a temporary file, which sweep removes.
func (c *clone) receive(ctx context.Context, sent io.Reader, share *disk.Share) (err error) {
	dir := filepath.Join(c.dir, "objects", "pack")
	spool, err := os.CreateTemp(dir, "tmp_pack_")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close()) }()
	if _, err := io.Copy(share.To(spool), sent); err != nil {
		return err
	}
	in := &intake{ctx: ctx, file: spool, limits: c.limits}
	if err := in.scan(); err != nil {
		return err
	}
	if err := in.resolve(); err != nil {
		return err
	}
	index, err := os.CreateTemp(dir, "tmp_idx_")
	if err != nil {
		return err
	}
	if err := errors.Join(in.writeIndex(share.To(index)), index.Close()); err != nil {
		return err
	}
	// The index first, because Git uses a pack as soon as its name ends in .pack.
	name := filepath.Join(dir, "pack-"+in.sum.String())
	if err := os.Rename(index.Name(), name+".idx"); err != nil {
		return err
	}
	return os.Rename(spool.Name(), name+".pack")
}

// An intake is a pack that is being received.
type intake struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call
	file   io.ReaderAt
	limits Limits

	entries []entry // sorted by offset
	sum     plumbing.Hash
	spent   int64 // bytes that were inflated or produced by deltas

	byBase   []int32 // deltas with the offset of their base, sorted by base
	byID     []int32 // deltas with the ID of their base, sorted by that ID
	resolved int
	in       inflater
	delta    *bufio.Reader
	buffer   []byte
}

// An entry is an object of a pack.
type entry struct {
	offset int64
	id     plumbing.Hash // for a delta with the ID of its base: that ID, until the delta is resolved
	crc    uint32
	base   int32 // for a delta with the offset of its base: the entry of the base
	kind   plumbing.ObjectType
	done   bool // id is the entry's own
}

func (in *intake) refuse(format string, args ...any) error {
	return packError{fmt.Sprintf(format, args...)}
}

func (in *intake) broken(at int64, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: at byte %d: %w", errPack, at, err)
}

// spend counts bytes that are inflated or produced.
func (in *intake) spend(n int64) error {
	if in.spent += n; in.spent > in.limits.Unpacked {
		return in.refuse("its objects have more than %d bytes together", in.limits.Unpacked)
	}
	return in.ctx.Err()
}

// allowed checks the size of one object.
func (in *intake) allowed(size int64) error {
	if size > in.limits.Object {
		return in.refuse("one object has %d bytes, and the limit is %d: remove the file from the history, or store it with Git LFS", size, in.limits.Object)
	}
	return nil
}

// scan reads the whole pack once.
func (in *intake) scan() error {
	t := &tape{from: io.NewSectionReader(in.file, 0, math.MaxInt64), buffer: make([]byte, 64<<10), sum: hash.New(hash.CryptoType)}
	var head [12]byte
	if _, err := io.ReadFull(t, head[:]); err != nil {
		return in.broken(0, err)
	}
	if string(head[:4]) != "PACK" || binary.BigEndian.Uint32(head[4:]) != packfile.VersionSupported {
		return in.broken(0, packfile.ErrMalformedPackFile)
	}
	count := int64(binary.BigEndian.Uint32(head[8:]))
	if count > int64(in.limits.Objects) {
		return in.refuse("it has %d objects, and the limit is %d", count, in.limits.Objects)
	}
	in.entries = make([]entry, 0, min(count, 1<<16))
	in.buffer = make([]byte, 32<<10)
	for range count {
		if err := in.scanObject(t); err != nil {
			return err
		}
	}
	t.flush()
	copy(in.sum[:], t.sum.Sum(nil))
	var want plumbing.Hash
	if _, err := io.ReadFull(t, want[:]); err != nil {
		return in.broken(t.offset(), err)
	}
	if want != in.sum {
		return in.broken(t.offset(), errors.New("its checksum is wrong"))
	}
	if _, err := t.ReadByte(); !errors.Is(err, io.EOF) {
		return in.broken(t.offset(), errors.New("something follows its end"))
	}
	return nil
}

// scanObject reads one object of the pack. It checks the size before it inflates the object.
func (in *intake) scanObject(t *tape) error {
	e := entry{offset: t.offset(), base: -1}
	t.flush()
	t.crc = 0
	h, err := readHeader(t, e.offset)
	if err != nil {
		return in.broken(e.offset, err)
	}
	if err := in.allowed(h.length); err != nil {
		return err
	}
	if err := in.spend(h.length); err != nil {
		return err
	}
	e.kind, e.id = h.kind, h.id
	if err := in.in.reset(t); err != nil {
		return in.broken(e.offset, err)
	}
	content := io.LimitReader(in.in.z, h.length+1)
	var n int64
	if h.kind.IsDelta() {
		n, err = in.scanDelta(content)
	} else {
		of := plumbing.NewHasher(h.kind, h.length)
		n, err = io.CopyBuffer(writes{of}, content, in.buffer)
		e.id, e.done = of.Sum(), true
		in.resolved++
	}
	if errors.As(err, new(packError)) {
		return err
	}
	if err == nil && n != h.length {
		err = errors.New("an object is not as long as it says")
	}
	if err != nil {
		return in.broken(e.offset, err)
	}
	if h.kind == plumbing.OFSDeltaObject {
		at, ok := slices.BinarySearchFunc(in.entries, h.base, func(e entry, offset int64) int { return cmp.Compare(e.offset, offset) })
		if !ok {
			return in.broken(e.offset, errors.New("a delta has no base"))
		}
		e.base = int32(at) //nolint:gosec // Objects is far below
	}
	t.flush()
	e.crc = t.crc
	in.entries = append(in.entries, e)
	return nil
}

// writes hides every method but Write, so that io.CopyBuffer uses its buffer.
type writes struct{ io.Writer }

// scanDelta reads a delta after it has checked the size of the result.
func (in *intake) scanDelta(content io.Reader) (int64, error) {
	var begin [2 * binary.MaxVarintLen64]byte
	n, err := io.ReadFull(content, begin[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return 0, err
	}
	_, size, _, err := deltaSizes(begin[:n])
	if err == nil {
		err = in.allowed(size)
	}
	if err == nil {
		err = in.spend(size)
	}
	if err != nil {
		return 0, err
	}
	rest, err := io.CopyBuffer(writes{io.Discard}, content, in.buffer)
	return int64(n) + rest, err
}

// deltaSizes reads the header of a delta: the sizes of its base and its result, and the length of the header.
func deltaSizes(delta []byte) (base, target int64, length int, err error) {
	b, n := binary.Uvarint(delta)
	if n <= 0 || b > math.MaxInt64 {
		return 0, 0, 0, packfile.ErrInvalidDelta
	}
	t, m := binary.Uvarint(delta[n:])
	if m <= 0 || t > math.MaxInt64 {
		return 0, 0, 0, packfile.ErrInvalidDelta
	}
	return int64(b), int64(t), n + m, nil
}

// resolve computes the IDs of the objects that are stored as deltas.
func (in *intake) resolve() error {
	for i, e := range in.entries {
		switch e.kind { //nolint:exhaustive // the others are no deltas
		case plumbing.OFSDeltaObject:
			in.byBase = append(in.byBase, int32(i)) // Limits.Objects is far below the maximum
		case plumbing.REFDeltaObject:
			in.byID = append(in.byID, int32(i))
		}
	}
	slices.SortStableFunc(in.byBase, func(a, b int32) int { return cmp.Compare(in.entries[a].base, in.entries[b].base) })
	wanted := make(map[int32]plumbing.Hash, len(in.byID))
	for _, i := range in.byID {
		wanted[i] = in.entries[i].id
	}
	slices.SortStableFunc(in.byID, func(a, b int32) int { return compareIDs(wanted[a], wanted[b]) })
	b := branch{intake: in, wanted: wanted}
	for i := range in.entries {
		if !in.entries[i].kind.IsDelta() {
			if err := b.grow(int32(i)); err != nil {
				return err
			}
		}
	}
	if in.resolved < len(in.entries) {
		return fmt.Errorf("%w: %d of its deltas have no base in it", errPack, len(in.entries)-in.resolved)
	}
	return nil
}

func compareIDs(a, b plumbing.Hash) int { return slices.Compare(a[:], b[:]) }

// A branch is an object that is not a delta, and the chain of deltas from it to the one that is being resolved.
type branch struct {
	*intake

	wanted map[int32]plumbing.Hash // the ID of the base, for deltas that name one
	stack  []frame
	kept   int64 // bytes in the stack
}

// A frame is an object whose deltas are being resolved.
type frame struct {
	entry int32
	left  []int32 // deltas that are still to be resolved
	size  int64
	data  []byte // nil: produced again on demand
}

// grow resolves all deltas based directly or indirectly on an object that is not a delta.
func (b *branch) grow(root int32) error {
	left := b.deltas(root)
	if len(left) == 0 {
		return nil
	}
	kind := b.entries[root].kind
	b.stack, b.kept = append(b.stack[:0], frame{entry: root, left: left}), 0
	for len(b.stack) > 0 {
		top := len(b.stack) - 1
		f := &b.stack[top]
		if len(f.left) == 0 {
			b.kept -= int64(len(f.data))
			b.stack = b.stack[:top]
			continue
		}
		next := f.left[0]
		f.left = f.left[1:]
		if b.entries[next].done {
			continue
		}
		if len(b.stack) > maxDeltas {
			return fmt.Errorf("%w: more than %d deltas follow each other", errPack, maxDeltas)
		}
		base, err := b.data(top)
		if err != nil {
			return err
		}
		// If no delta names an ID, an object without deltas is hashed and not kept.
		keep := len(b.byID) > 0 || len(b.deltas(next)) > 0
		made, id, err := b.apply(b.entries[next].offset, base, kind, keep)
		if err != nil {
			return err
		}
		e := &b.entries[next]
		e.id, e.done = id, true
		b.resolved++
		if left := b.deltas(next); len(left) > 0 {
			b.push(frame{entry: next, left: left, size: int64(len(made)), data: made})
		}
	}
	return nil
}

// push adds a frame. If too many bytes are in memory, it drops those that are needed last.
func (b *branch) push(f frame) {
	b.stack = append(b.stack, f)
	b.kept += f.size
	for i := range len(b.stack) - 1 {
		// An object without remaining deltas is never needed again.
		if len(b.stack[i].left) == 0 || b.kept > maxBases {
			b.kept -= int64(len(b.stack[i].data))
			b.stack[i].data = nil
		}
	}
}

// data returns the object of a frame. If necessary, it produces it again from the nearest one in memory.
func (b *branch) data(at int) ([]byte, error) {
	if data := b.stack[at].data; data != nil {
		return data, nil
	}
	from := at
	for from > 0 && b.stack[from].data == nil {
		from--
	}
	data := b.stack[from].data
	if data == nil {
		var err error
		if data, err = b.whole(b.entries[b.stack[0].entry].offset); err != nil {
			return nil, err
		}
	}
	for i := from + 1; i <= at; i++ {
		made, _, err := b.apply(b.entries[b.stack[i].entry].offset, data, 0, true)
		if err != nil {
			return nil, err
		}
		if err := b.spend(int64(len(made))); err != nil {
			return nil, err
		}
		data = made
	}
	b.stack[at].data, b.stack[at].size = data, int64(len(data))
	b.kept += int64(len(data))
	return data, nil
}

// deltas returns the deltas that are based on an object.
func (b *branch) deltas(of int32) []int32 {
	list := equals(b.byBase, func(i int32) int { return cmp.Compare(b.entries[i].base, of) })
	if len(b.byID) == 0 || !b.entries[of].done {
		return list
	}
	more := equals(b.byID, func(i int32) int { return compareIDs(b.wanted[i], b.entries[of].id) })
	return slices.Concat(list, more)
}

// equals returns the part of a sorted list for which compare returns 0.
func equals(list []int32, compare func(int32) int) []int32 {
	begin, ok := slices.BinarySearchFunc(list, 0, func(i int32, _ int) int { return compare(i) })
	if !ok {
		return nil
	}
	end := begin
	for end < len(list) && compare(list[end]) == 0 {
		end++
	}
	return list[begin:end]
}

// at starts to inflate the object at an offset.
func (in *intake) at(offset int64) (header, error) {
	in.in.Reset(io.NewSectionReader(in.file, offset, math.MaxInt64-offset))
	h, err := readHeader(&in.in, offset)
	if err == nil {
		err = in.in.reset(&in.in.Reader)
	}
	if err != nil {
		return h, in.broken(offset, err)
	}
	return h, in.spend(h.length)
}

// whole returns the object at an offset, which must not be a delta.
func (in *intake) whole(offset int64) ([]byte, error) {
	h, err := in.at(offset)
	if err != nil {
		return nil, err
	}
	data := make([]byte, h.length)
	if _, err := io.ReadFull(in.in.z, data); err != nil {
		return nil, in.broken(offset, err)
	}
	return data, nil
}

// apply applies the delta at an offset to its base, and returns the ID of the resulting object. It returns the bytes
// only if keep is set.
func (in *intake) apply(offset int64, base []byte, kind plumbing.ObjectType, keep bool) ([]byte, plumbing.Hash, error) {
	if _, err := in.at(offset); err != nil {
		return nil, plumbing.ZeroHash, err
	}
	if in.delta == nil {
		in.delta = bufio.NewReaderSize(nil, 16<<10)
	}
	delta := in.delta
	delta.Reset(in.in.z)
	begin, _ := delta.Peek(2 * binary.MaxVarintLen64) // fewer bytes if the delta is shorter
	from, size, n, err := deltaSizes(begin)
	if err == nil && from != int64(len(base)) {
		err = packfile.ErrInvalidDelta
	}
	if err == nil {
		_, err = delta.Discard(n)
	}
	var made []byte
	var id plumbing.Hash
	if err == nil {
		to := sink{left: size}
		if kind.Valid() {
			to.id = plumbing.NewHasher(kind, size)
		}
		if keep {
			to.made = make([]byte, 0, size)
		}
		err = to.apply(base, delta)
		if made = to.made; kind.Valid() {
			id = to.id.Sum()
		}
	}
	if err != nil {
		return nil, id, in.broken(offset, err)
	}
	return made, id, nil
}

// A sink receives the output of a delta.
type sink struct {
	id   plumbing.Hasher
	made []byte
	left int64
	some [128]byte
}

// apply runs the instructions of a delta, which copy from the base or insert the bytes that follow.
func (s *sink) apply(base []byte, delta *bufio.Reader) error {
	for {
		code, err := delta.ReadByte()
		switch {
		case errors.Is(err, io.EOF) && s.left != 0:
			return packfile.ErrInvalidDelta
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		data, err := s.instruction(code, base, delta)
		if err == nil {
			err = s.take(data)
		}
		if err != nil {
			return err
		}
	}
}

// instruction returns the bytes that one instruction of a delta adds.
func (s *sink) instruction(code byte, base []byte, delta *bufio.Reader) ([]byte, error) {
	switch {
	case code == 0:
		return nil, packfile.ErrDeltaCmd
	case code&copies != 0:
		return copied(code, base, delta)
	}
	insert := s.some[:code]
	_, err := io.ReadFull(delta, insert)
	return insert, err
}

// copies is the bit of an instruction that copies from the base.
const copies = 0x80

// copied returns the part of the base that an instruction copies. Four bits tell which bytes of the offset follow, three which of the
// size; a size of 0 means 64 KiB.
func copied(code byte, base []byte, delta *bufio.Reader) ([]byte, error) {
	var field [7]byte
	for bit := range field {
		if code&(1<<bit) == 0 {
			continue
		}
		b, err := delta.ReadByte()
		if err != nil {
			return nil, err
		}
		field[bit] = b
	}
	offset := int64(binary.LittleEndian.Uint32(field[:4]))
	size := int64(field[4]) | int64(field[5])<<8 | int64(field[6])<<16
	if size == 0 {
		size = 0x10000
	}
	if offset+size > int64(len(base)) {
		return nil, packfile.ErrInvalidDelta
	}
	return base[offset : offset+size], nil
}

func (s *sink) take(data []byte) error {
	if s.left -= int64(len(data)); s.left < 0 {
		return packfile.ErrInvalidDelta
	}
	if s.id.Hash != nil {
		_, _ = s.id.Write(data) // a hash returns no error
	}
	if s.made != nil {
		s.made = append(s.made, data...)
	}
	return nil
}

// writeIndex writes the index of the pack in version 2 of its format.
func (in *intake) writeIndex(to io.Writer) error {
	slices.SortStableFunc(in.entries, func(a, b entry) int { return compareIDs(a.id, b.id) })
	entries := slices.CompactFunc(in.entries, func(a, b entry) bool { return a.id == b.id })
	sum := hash.New(hash.CryptoType)
	w := bufio.NewWriterSize(io.MultiWriter(to, sum), 64<<10)
	word := func(n uint32) { _ = binary.Write(w, binary.BigEndian, n) } // the writer keeps its first error
	_, _ = w.WriteString("\xfftOc")
	word(2)
	at := 0
	for first := range 256 {
		for at < len(entries) && int(entries[at].id[0]) == first {
			at++
		}
		word(uint32(at))
	}
	for i := range entries {
		_, _ = w.Write(entries[i].id[:])
	}
	for i := range entries {
		word(entries[i].crc)
	}
	var far []int64
	for i := range entries {
		offset := entries[i].offset
		if offset < 1<<31 {
			word(uint32(offset)) //nolint:gosec // it fits
			continue
		}
		word(1<<31 | uint32(len(far))) //nolint:gosec // Objects is far below
		far = append(far, offset)
	}
	for _, offset := range far {
		_ = binary.Write(w, binary.BigEndian, offset)
	}
	_, _ = w.Write(in.sum[:])
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := to.Write(sum.Sum(nil))
	return err
}

// A tape reads a pack and hashes exactly the bytes that were consumed. An inflater that reads from it consumes no
// additional byte.
type tape struct {
	from       io.Reader
	buffer     []byte
	begin, end int   // bounds of the part that is not consumed yet
	hashed     int   // number of hashed bytes in the buffer
	before     int64 // bytes before the buffer
	sum        hash.Hash
	crc        uint32
}

func (t *tape) offset() int64 { return t.before + int64(t.begin) }

// flush hashes the consumed bytes.
func (t *tape) flush() {
	taken := t.buffer[t.hashed:t.begin]
	_, _ = t.sum.Write(taken) // a hash returns no error
	t.crc = crc32.Update(t.crc, crc32.IEEETable, taken)
	t.hashed = t.begin
}

func (t *tape) fill() error {
	t.flush()
	t.before += int64(t.end)
	t.begin, t.end, t.hashed = 0, 0, 0
	n, err := io.ReadAtLeast(t.from, t.buffer, 1)
	t.end = n
	return err
}

func (t *tape) ReadByte() (byte, error) {
	if t.begin == t.end {
		if err := t.fill(); err != nil {
			return 0, err
		}
	}
	b := t.buffer[t.begin]
	t.begin++
	return b, nil
}

func (t *tape) Read(p []byte) (int, error) {
	if t.begin == t.end {
		if err := t.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.buffer[t.begin:t.end])
	t.begin += n
	return n, nil
}
