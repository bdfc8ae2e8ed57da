package schema

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
)

// Bounds of a comparison of two patterns, which then takes less than a tenth of a second.
const (
	mostInstructions = 4_000
	mostSteps        = 10_000_000
)

// pattern compares the patterns of a text.
func (c *comparison) pattern(at location, was, is map[string]any) {
	from, _ := was["pattern"].(string) // without a pattern, all texts match
	to, _ := is["pattern"].(string)
	included, known := includes(from, to)
	change := at.at("pattern", was["pattern"], is["pattern"], !included && !refusedBefore("pattern", was, is))
	if !known && change.Breaking && !c.values {
		change.Rule, change.Breaking = Undecided, false
	}
	c.add(change)
}

// includes reports whether the API server finds one pattern in every text in which it finds another. known is false if that takes too
// long to decide.
//
// It searches for both patterns in all texts at once. What the search knows after a text is a finding, and there are finitely many.
func includes(was, is string) (included, known bool) {
	from, to, ok := searches(was, is)
	if !ok {
		return false, true // the API server refuses such a pattern
	}
	if len(from.Inst)+len(to.Inst) > mostInstructions {
		return false, false
	}
	characters := append(alphabet(from.Prog, to.Prog), end)
	first := finding{last: end}
	seen, queue := map[string]bool{}, []finding{first}
	for steps := 0; len(queue) > 0; queue = queue[1:] {
		for _, next := range characters {
			if steps += len(from.Inst) + len(to.Inst); steps > mostSteps {
				return false, false
			}
			now := queue[0].read(from, to, next)
			switch {
			case now.is.found || from.vain(now.was): // so in every longer text
			case next != end && !seen[now.key()]:
				seen[now.key()] = true
				queue = append(queue, now)
			case next == end && now.was.found:
				return false, true
			}
		}
	}
	return true, true
}

// end is the character before and after a text.
const end rune = -1

// A finding is what a search for two patterns knows after a text.
type finding struct {
	was, is progress
	last    rune
}

func (f finding) key() string { return fmt.Sprint(f) }

// read returns the finding after one more character.
func (f finding) read(from, to search, next rune) finding {
	return finding{was: from.read(f.was, f.last, next), is: to.read(f.is, f.last, next), last: representative(next)}
}

// representative returns a character before which anchors hold as they do before another one.
func representative(r rune) rune {
	switch {
	case syntax.IsWordChar(r):
		return 'a'
	case r == '\n', r == end:
		return r
	}
	return ' '
}

// progress is what the search for one pattern knows: the instructions that may match the next character, before those that match no
// character are followed.
type progress struct {
	found bool
	at    []int // sorted
}

// A search finds a pattern anywhere in a text.
type search struct {
	*syntax.Prog
	anchored bool // only at the start of the text
}

func searches(was, is string) (from, to search, ok bool) {
	var both [2]search
	for i, pattern := range []string{was, is} {
		tree, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			return from, to, false
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			return from, to, false
		}
		both[i] = search{program, program.StartCond()&syntax.EmptyBeginText != 0}
	}
	return both[0], both[1], true
}

// vain reports whether the search finds the pattern in no longer text.
func (s search) vain(p progress) bool { return s.anchored && !p.found && len(p.at) == 0 }

// read returns the progress after one more character.
func (s search) read(p progress, last, next rune) progress {
	if p.found {
		return p
	}
	var now progress
	for _, pc := range s.reachable(append([]int{s.Start}, p.at...), last, next) {
		switch in := s.Inst[pc]; in.Op {
		case syntax.InstMatch:
			return progress{found: true}
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if next != end && in.MatchRune(next) {
				now.at = append(now.at, int(in.Out))
			}
		}
	}
	slices.Sort(now.at)
	now.at = slices.Compact(now.at)
	return now
}

// reachable returns the instructions that follow between two characters.
func (s search) reachable(from []int, last, next rune) []int {
	seen := make([]bool, len(s.Inst))
	var all []int
	for len(from) > 0 {
		pc := from[len(from)-1]
		from = from[:len(from)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		all = append(all, pc)
		switch in := s.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			from = append(from, int(in.Out), int(in.Arg))
		case syntax.InstCapture, syntax.InstNop:
			from = append(from, int(in.Out))
		case syntax.InstEmptyWidth:
			if in.MatchEmptyWidth(last, next) {
				from = append(from, int(in.Out))
			}
		}
	}
	return all
}

// alphabet returns characters, one of each set of those that two programs do not tell apart.
func alphabet(programs ...*syntax.Prog) []rune {
	starts := []rune{0, '\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1, surrogates, surrogates + 0x800}
	var all []syntax.Inst
	for _, p := range programs {
		for _, in := range p.Inst {
			switch in.Op {
			case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
				starts = append(starts, startsOf(in)...)
				all = append(all, in)
			}
		}
	}
	slices.Sort(starts)
	var characters []rune
	known := map[string]bool{}
	for _, r := range slices.Compact(starts) {
		if r > unicode.MaxRune || r >= surrogates && r < surrogates+0x800 {
			continue
		}
		key := []byte(string(representative(r)))
		for _, in := range all {
			key = append(key, '0')
			if in.MatchRune(r) {
				key[len(key)-1] = '1'
			}
		}
		if !known[string(key)] {
			known[string(key)] = true
			characters = append(characters, r)
		}
	}
	return characters
}

// surrogates is the first of 2048 code points that are no characters.
const surrogates = 0xD800

// startsOf returns the first characters of the ranges that an instruction matches, and of those between them.
func startsOf(in syntax.Inst) []rune {
	var starts []rune
	if len(in.Rune) == 1 { // one character, perhaps in either case
		starts = append(starts, in.Rune[0], in.Rune[0]+1)
		for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
			starts = append(starts, r, r+1)
		}
		return starts
	}
	for i := 0; i+1 < len(in.Rune); i += 2 {
		starts = append(starts, in.Rune[i], in.Rune[i+1]+1)
	}
	return starts
}
