package memo

import (
	"crypto/sha256"
	"encoding/binary"
)

// An entry is the value of a key.
type entry struct {
	value string // "" for a body in a file

	at     int64 // offset of a body in a file
	length int
	sum    sum
	aside  bool // the body is in the temporary file for new values

	age  uint8 // number of writes of the file since the last request
	used bool  // requested since the file was opened
}

// aBody is the minimum length of a body: a value that is read only on request.
const aBody = 4 << 10

func (e entry) isBody() bool { return e.size() >= aBody }

// bodies returns 1 for a body and 0 for any other value.
func (e entry) bodies() int {
	if e.isBody() {
		return 1
	}
	return 0
}

func (e entry) isElsewhere() bool { return e.value == "" && e.length > 0 }
func (e entry) size() int         { return max(len(e.value), e.length) }

// A sum detects damaged content. It does not protect against hostile writers.
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

// entriesOf parses an index. The bodies follow it in a file of the given size.
func entriesOf(index []byte, size int64) (entries map[string]entry, ok bool) {
	entries = map[string]entry{}
	at := int64(head + len(index))
	shared := string(index) // one string that all keys and values share
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
