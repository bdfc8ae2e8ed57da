package memo

import (
	"crypto/sha256"
	"encoding/binary"
)

// An entry is what is remembered under one key.
type entry struct {
	value string // "" of a body that is in a file

	at     int64 // of a body in a file
	length int
	sum    sum
	aside  bool // the value is in the file of learnt values

	age  uint8 // how often the file was written since the last request
	used bool  // requested since the file was opened
}

// aBody is the length from which a value is read only on request.
const aBody = 4 << 10

func (e entry) isBody() bool { return e.size() >= aBody }

// bodies is how many bodies it is.
func (e entry) bodies() int {
	if e.isBody() {
		return 1
	}
	return 0
}

func (e entry) isElsewhere() bool { return e.value == "" && e.length > 0 }
func (e entry) size() int         { return max(len(e.value), e.length) }

// A sum detects damaged content. It is no protection against other writers.
type sum [16]byte

func sumOf(parts ...string) (s sum) {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	copy(s[:], h.Sum(nil))
	return s
}

// append adds an entry to an index.
func (e entry) append(index []byte, key string) []byte {
	index = binary.AppendUvarint(index, uint64(len(key)))
	index = append(index, key...)
	index = append(index, e.age)
	index = binary.AppendUvarint(index, uint64(e.size())) //nolint:gosec // no size is negative
	switch {
	case !e.isBody():
		return append(index, e.value...)
	case e.isElsewhere():
		return append(index, e.sum[:]...)
	}
	sum := sumOf(key, e.value)
	return append(index, sum[:]...)
}

// entriesOf reads an index. The bodies follow it, in a file of a size.
func entriesOf(index []byte, size int64) (entries map[string]entry, ok bool) {
	entries = map[string]entry{}
	at := int64(head + len(index))
	shared := string(index) // keys and values are parts of it
	pos := 0
	number := func() int {
		n, width := binary.Uvarint(index[pos:])
		if width <= 0 || n > uint64(size) { //nolint:gosec // no size is negative
			ok = false
			return 0
		}
		pos += width
		return int(n) //nolint:gosec // it is not larger than size
	}
	text := func(n int) string {
		if n > len(index)-pos {
			ok = false
			return ""
		}
		pos += n
		return shared[pos-n : pos]
	}
	for ok = true; ok && pos < len(index); {
		key := text(number())
		var e entry
		if age := text(1); ok {
			e.age = age[0]
		}
		n := number()
		if n < aBody {
			e.value = text(n)
		} else {
			e.at, e.length = at, n
			at += int64(n)
			copy(e.sum[:], text(len(e.sum)))
		}
		entries[key] = e
	}
	return entries, ok && at <= size
}
