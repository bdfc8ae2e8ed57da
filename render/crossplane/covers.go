package crossplane

import (
	"path"
	"slices"
	"strings"
)

// nameCharacters are the characters that the name of a definition can have: it is a DNS subdomain.
const nameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-."

// mostCovering bounds the work of Covers. A few hundred states decide the patterns that people write.
const mostCovering = 50_000

// Covers reports whether every name that a pattern matches is matched by one of the others, also names that no definition
// has yet. It reports false if the patterns are too intricate to tell. A malformed pattern matches nothing.
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
	// A state is a position in the pattern, with all positions that the same text reaches in the others. A text that ends
	// the pattern and none of the others is a name that is not covered.
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
			visit(state{next, s.others}) // the star ends here
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

// A token of a pattern is a star, or the characters that it takes one of.
type token struct {
	star bool
	of   uint64 // a bit for each of nameCharacters
}

const anyCharacter = 1<<len(nameCharacters) - 1

func (t token) has(c int) bool { return t.of&(1<<c) != 0 }

// tokensOf reads a pattern as path.Match does. It reports false for a malformed one.
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

// bitOf is the bit of a character; 0 if no name has it.
func bitOf(c rune) uint64 {
	if i := strings.IndexRune(nameCharacters, c); i >= 0 {
		return 1 << i
	}
	return 0
}

// classEnd returns the length of the class with which a well-formed pattern begins.
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

// skipStars adds the positions behind stars, which may match nothing.
func skipStars(tokens []token, at []bool) {
	for i, t := range tokens {
		if at[i] && t.star {
			at[i+1] = true
		}
	}
}

// packed returns positions as a key of a map.
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
