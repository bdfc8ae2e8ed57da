package diff

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// DropEqualSchemas removes from two definitions the equal parts of the schemas of each version. The definitions must
// be JSON from json.Marshal, where equal values are equal bytes. So little has to be decoded if an upgrade changes a
// field or two in each of two thousand definitions.
func DropEqualSchemas(was, is []byte) (leanWas, leanIs []byte) {
	before, after := schemasIn(was), schemasIn(is)
	var fromWas, fromIs []cut
	for name, a := range before {
		if b, kept := after[name]; kept {
			w := walk{was: was, is: is, a: a, b: b}
			w.objects()
			fromWas, fromIs = append(fromWas, cut{a, w.a, w.leanWas}), append(fromIs, cut{b, w.b, w.leanIs})
		}
	}
	return apply(was, fromWas), apply(is, fromIs)
}

// A cut replaces a value in JSON text.
type cut struct {
	from, to int
	with     []byte
}

func apply(raw []byte, cuts []cut) []byte {
	slices.SortFunc(cuts, func(a, b cut) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, c := range cuts {
		out = append(append(out, raw[at:c.from]...), c.with...)
		at = c.to
	}
	return append(out, raw[at:]...)
}

// schemasIn returns the offsets of the schemas of a definition, by the JSON text of the version's name. It returns
// nil if versions lack names or share one.
func schemasIn(raw []byte) map[string]int {
	spec := valueIn(raw, 0, "spec")
	list := valueIn(raw, spec, "versions")
	if list < 0 || raw[list] != '[' {
		return nil
	}
	all, names := map[string]int{}, map[string]bool{}
	for at := list + 1; raw[at] != ']'; {
		name := valueIn(raw, at, "name")
		if name < 0 || raw[name] != '"' {
			return nil
		}
		key := string(raw[name:skipText(raw, name)])
		if names[key] {
			return nil
		}
		names[key] = true
		if s := valueIn(raw, at, "schema"); s >= 0 && raw[s] == '{' {
			all[key] = s
		}
		if at = skip(raw, at); raw[at] == ',' {
			at++
		}
	}
	return all
}

// valueIn returns the offset of a key's value in the object that begins at an offset, or -1.
func valueIn(raw []byte, at int, key string) int {
	if at < 0 || raw[at] != '{' {
		return -1
	}
	for at++; raw[at] != '}'; {
		end := skipText(raw, at)
		if string(raw[at+1:end-1]) == key {
			return end + 1
		}
		if at = skip(raw, end+1); raw[at] == ',' {
			at++
		}
	}
	return -1
}

// skip returns the end of the value that begins at an offset.
func skip(raw []byte, at int) int {
	for depth := 0; ; {
		switch raw[at] {
		case '"':
			at = skipText(raw, at)
		case '{', '[':
			depth++
			at++
		case '}', ']':
			depth--
			at++
		case ',', ':':
			at++
		default: // true, false, null or a number
			if end := bytes.IndexAny(raw[at:], ",}]"); end >= 0 {
				at += end
			} else {
				at = len(raw)
			}
		}
		if depth == 0 {
			return at
		}
	}
}

// skipText returns the end of the string that begins at an offset.
func skipText(raw []byte, at int) int {
	for from := at + 1; ; {
		end := from + bytes.IndexByte(raw[from:], '"')
		backslashes := 0
		for raw[end-1-backslashes] == '\\' {
			backslashes++
		}
		if from = end + 1; backslashes%2 == 0 {
			return from
		}
	}
}

// A walk reads two objects in parallel and writes only the entries that differ.
type walk struct {
	was, is         []byte
	a, b            int // offsets in the two objects
	leanWas, leanIs []byte
}

// objects walks two objects to their ends. Their keys are sorted.
func (w *walk) objects() {
	w.leanWas, w.leanIs = append(w.leanWas, '{'), append(w.leanIs, '{')
	w.a++
	w.b++
	for w.was[w.a] != '}' || w.is[w.b] != '}' {
		switch order := w.order(); {
		case order < 0:
			w.leanWas, w.a = keep(w.leanWas, w.was, w.a)
		case order > 0:
			w.leanIs, w.b = keep(w.leanIs, w.is, w.b)
		default:
			w.values()
		}
		w.a, w.b = behindComma(w.was, w.a), behindComma(w.is, w.b)
	}
	w.leanWas, w.leanIs = append(w.leanWas, '}'), append(w.leanIs, '}')
	w.a++
	w.b++
}

// order compares the next keys of both objects. An object that has ended sorts last.
func (w *walk) order() int {
	switch {
	case w.was[w.a] == '}':
		return 1
	case w.is[w.b] == '}':
		return -1
	}
	return strings.Compare(keyAt(w.was, w.a), keyAt(w.is, w.b))
}

// keyAt returns the decoded key that begins at an offset. json.Marshal sorts keys in their decoded form.
func keyAt(raw []byte, at int) string {
	key := raw[at:skipText(raw, at)]
	if text, err := strconv.Unquote(string(key)); err == nil && bytes.IndexByte(key, '\\') >= 0 {
		return text // json.Marshal writes no escapes that Go does not know
	}
	return string(key[1 : len(key)-1])
}

// values reads the values of a key in both objects, and drops them if they are equal.
func (w *walk) values() {
	keyA, keyB := w.a, w.b
	startA, startB := skipText(w.was, w.a)+1, skipText(w.is, w.b)+1
	end := skip(w.was, startA)
	if n := end - startA; startB+n < len(w.is) && bytes.Equal(w.was[startA:end], w.is[startB:startB+n]) && (w.is[startB+n] == ',' || w.is[startB+n] == '}') {
		w.a, w.b = end, startB+n
		return
	}
	if w.was[startA] != '{' || w.is[startB] != '{' {
		w.leanWas, w.a = keep(w.leanWas, w.was, keyA)
		w.leanIs, w.b = keep(w.leanIs, w.is, keyB)
		return
	}
	w.leanWas = append(separated(w.leanWas), w.was[keyA:startA]...)
	w.leanIs = append(separated(w.leanIs), w.is[keyB:startB]...)
	w.a, w.b = startA, startB
	w.objects()
}

// keep appends the key and the value that begin at an offset, and returns their end.
func keep(lean, raw []byte, at int) (longer []byte, end int) {
	end = skip(raw, skipText(raw, at)+1)
	return append(separated(lean), raw[at:end]...), end
}

// separated appends a comma after an entry.
func separated(lean []byte) []byte {
	if lean[len(lean)-1] == '{' {
		return lean
	}
	return append(lean, ',')
}

func behindComma(raw []byte, at int) int {
	if raw[at] == ',' {
		return at + 1
	}
	return at
}
