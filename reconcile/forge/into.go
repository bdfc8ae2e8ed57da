package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"
)

// A verdict is for a commit and the targets of its pull requests, and a forge stores a status for a commit only. So the description
// of a preview's status ends in its targets. See ADR 64.

// maxInto is the maximum number of runes that the targets take in a description.
const maxInto = 60

// into returns the end of the description of a status for targets.
func into(targets []string) string {
	targets = slices.DeleteFunc(slices.Clone(targets), func(t string) bool { return t == "" })
	if len(targets) == 0 {
		return ""
	}
	slices.Sort(targets)
	names := strings.Join(slices.Compact(targets), ", ") // the name of a branch has no space
	text := "; into " + plain(names)
	if names == plain(names) && utf8.RuneCountInString(text) <= maxInto {
		return text
	}
	sum := sha256.Sum256([]byte(names))
	tail := " " + hex.EncodeToString(sum[:8])
	return cut(text, maxInto-len(tail)) + tail
}

// shortened returns the description of a status in at most so many runes. It keeps the targets at its end.
func (s Status) shortened(most int) string {
	return cut(s.Description, most-utf8.RuneCountInString(s.Into)) + s.Into
}
