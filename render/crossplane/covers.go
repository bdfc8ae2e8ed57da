package crossplane

import (
	"path"
	"slices"
	"strings"
)

// nameCharacters are the valid characters in the name of a definition, which is a DNS subdomain.
const nameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-."

// mostCovering limits the work of Covers. A few hundred states are enough for real patterns.
const mostCovering = 50_000

// Covers reports whether the other patterns together match every name that a pattern matches, including names of future
// definitions. It returns false if the patterns are too complex to decide. A malformed pattern matches nothing.
func Covers(by []string, pattern string) bool {
	inner, ok := tokensOf(pattern)
	if !ok {
		return true
	}
	var outer [][]token
	for _, glob := range by {
		if tokens, ok := tokensOf(glob); ok {
			outer = append(outer, tokens)
		}
	}
	// A state is a position in the pattern, with all positions that the same text reaches in the other patterns. A text that
	// reaches the end of the pattern but of no other pattern is a name that is not covered.
	type state struct {
		at     int
		others string
	}
	begin := make([][]bool, len(outer))
	for i, tokens := range outer {
		begin[i] = make([]bool, len(tokens)+1)
		begin[i][0] = true
		skipStars(tokens, begin[i])
	}
	first := state{0, packed(begin)}
	seen := map[state]bool{first: true}
	for todo := []state{first}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		visit := func(next state) {
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
		if len(seen) > mostCovering {
			return false
		}
		others := unpacked(s.others, outer)
		if s.at == len(inner) {
			if !slices.ContainsFunc(others, func(at []bool) bool { return at[len(at)-1] }) {
				return false
			}
			continue
		}
		of := inner[s.at]
		next := s.at + 1
		if of.star {
			visit(state{next, s.others}) // the star matches nothing more
			next = s.at
		}
		for c := range len(nameCharacters) {
			if of.has(c) {
				visit(state{next, packed(step(outer, others, c))})
			}
		}
	}
	return true
}

// A token of a pattern is a star, or a set of characters of which it matches one.
type token struct {
	star bool
	of   uint64 // a bit for each of nameCharacters
}

const anyCharacter = 1<<len(nameCharacters) - 1

func (t token) has(c int) bool { return t.of&(1<<c) != 0 }

// tokensOf parses a pattern as path.Match does. It returns false for a malformed pattern.
func tokensOf(pattern string) ([]token, bool) {
	if _, malformed := path.Match(pattern, ""); malformed != nil {
		return nil, false
	}
	var tokens []token
	for rest := []rune(pattern); len(rest) > 0; {
		n, t := 1, token{of: anyCharacter}
		switch rest[0] {
		case '*':
			t.star = true
		case '?':
		case '\\':
			n, t.of = 2, bitOf(rest[1])
		case '[':
			n = classEnd(rest)
			t.of = 0
			for i, c := range nameCharacters {
				if in, err := path.Match(string(rest[:n]), string(c)); err == nil && in {
					t.of |= 1 << i
				}
			}
		default:
			t.of = bitOf(rest[0])
		}
		tokens, rest = append(tokens, t), rest[n:]
	}
	return tokens, true
}

// bitOf returns the bit of a character; 0 if no name can contain it.
func bitOf(c rune) uint64 {
	if i := strings.IndexRune(nameCharacters, c); i >= 0 {
		return 1 << i
	}
	return 0
}

// classEnd returns the length of the character class at the start of a well-formed pattern.
func classEnd(pattern []rune) int {
	i := 1
	if pattern[i] == '^' {
		i++
	}
	for ; pattern[i] != ']'; i++ {
		if pattern[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// step returns the positions after one more character.
func step(patterns [][]token, at [][]bool, c int) [][]bool {
	next := make([][]bool, len(at))
	for p, tokens := range patterns {
		next[p] = make([]bool, len(at[p]))
		for i, t := range tokens {
			switch {
			case !at[p][i]:
			case t.star:
				next[p][i] = true
			case t.has(c):
				next[p][i+1] = true
			}
		}
		skipStars(tokens, next[p])
	}
	return next
}

// skipStars adds the positions after stars, because a star may match nothing.
func skipStars(tokens []token, at []bool) {
	for i, t := range tokens {
		if at[i] && t.star {
			at[i+1] = true
		}
	}
}

// packed encodes positions as a map key.
func packed(at [][]bool) string {
	var b strings.Builder
	for _, positions := range at {
		for _, is := range positions {
			if is {
				b.WriteByte('1')
			} else {
				b.WriteByte('0')
			}
		}
	}
	return b.String()
}

func unpacked(key string, patterns [][]token) [][]bool {
	at := make([][]bool, len(patterns))
	for p, tokens := range patterns {
		at[p] = make([]bool, len(tokens)+1)
		for i := range at[p] {
			at[p][i] = key[i] == '1'
		}
		key = key[len(tokens)+1:]
	}
	return at
}
