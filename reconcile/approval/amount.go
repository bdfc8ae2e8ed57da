package approval

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// An Amount is how much a claim concerns beyond its own object: definitions that become active, by name, or custom resources that
// break, by number. The zero value is nothing.
type Amount struct {
	count int
	names string // hashes of the names, sorted, one after another; "" if only the number is known
}

// Count returns an amount of which only the number is known.
func Count(n int) Amount { return Amount{count: n} }

// Named returns an amount of names. Beyond mostNames, only the number counts.
func Named(names []string) Amount {
	hashes := make([]string, len(names))
	for i, name := range names {
		sum := sha256.Sum256([]byte(name))
		hashes[i] = base64.RawStdEncoding.EncodeToString(sum[:nameBytes])
	}
	a := ofHashes(hashes)
	if a.count > mostNames {
		return Count(a.count)
	}
	return a
}

// ofHashes returns an amount of names, each of which has a hash.
func ofHashes(hashes []string) Amount {
	all := slices.Compact(slices.Sorted(slices.Values(hashes)))
	return Amount{len(all), strings.Join(all, "")}
}

const (
	mostNames = 1000 // so that a comment has room for them
	nameBytes = 6
	nameChars = 8
)

// Count returns the number.
func (a Amount) Count() int { return a.count }

// Equal reports whether two amounts are the same.
func (a Amount) Equal(b Amount) bool { return a == b }

// Within reports whether an amount is no more than a limit: a subset if the limit has names, and a number otherwise.
func (a Amount) Within(limit Amount) bool {
	if limit.names == "" || a.names == "" {
		return a.count <= limit.count && (limit.names == "" || a.count == 0)
	}
	known := limit.each()
	return !slices.ContainsFunc(a.each(), func(name string) bool { return !slices.Contains(known, name) })
}

// Or returns the amount that has both amounts within it.
func (a Amount) Or(b Amount) Amount {
	switch {
	case a.count == 0:
		return b
	case b.count == 0:
		return a
	case a.names == "" || b.names == "":
		return Count(max(a.count, b.count))
	}
	return ofHashes(append(a.each(), b.each()...))
}

// Plus returns the amount of two claims that one approval covers at once.
func (a Amount) Plus(b Amount) Amount {
	if a.names != "" && b.names != "" {
		return a.Or(b)
	}
	return Count(a.count + b.count)
}

// each returns the hashes of the names.
func (a Amount) each() []string {
	var all []string
	for i := 0; i+nameChars <= len(a.names); i += nameChars {
		all = append(all, a.names[i:i+nameChars])
	}
	return all
}

// String returns the amount as text for Parse: 12, or 2:FIRST8LETTERSECOND8X. It is "" for nothing.
func (a Amount) String() string {
	switch {
	case a.count == 0:
		return ""
	case a.names == "":
		return strconv.Itoa(a.count)
	}
	return strconv.Itoa(a.count) + ":" + a.names
}

// Parse reads the text of an amount. An amount has only one text.
func Parse(text string) (Amount, error) {
	number, names, named := strings.Cut(text, ":")
	n, _ := strconv.Atoi(number)
	a := Count(max(n, 0))
	if named {
		a = ofHashes(Amount{names: names}.each())
	}
	if a.String() != text {
		return Amount{}, fmt.Errorf("%.40q is not an amount", text)
	}
	return a, nil
}

// MarshalText returns the text of the amount.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the text of an amount.
func (a *Amount) UnmarshalText(text []byte) (err error) {
	*a, err = Parse(string(text))
	return err
}
