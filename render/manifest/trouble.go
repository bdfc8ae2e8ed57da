package manifest

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// yamlError returns the YAML error of the section with its place in the file. The error does not quote values, because they may be
// secrets.
func (s section) yamlError(raw []byte, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	more := 0
	if rest, several := strings.CutPrefix(text, "unmarshal errors:\n"); several {
		all := strings.Split(rest, "\n")
		text, more = strings.TrimSpace(all[0]), len(all)-1
	}

	line := s.part.first
	if m := lineInError.FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = s.part.line + n - 1
		}
		if parserError.MatchString(text) {
			line++ // the library's line is off by one here
		}
		line = min(line, s.lineAt(raw, len(raw)-1))
	} else if i := placeOf(raw, text); i >= 0 {
		line = s.lineAt(raw, i)
	} else if n := unfitLine(raw); n > 0 {
		line = s.part.line + n - 1
	}

	text = discreet(text)
	if sign := unquoted(text, lineOf(raw, line-s.part.line)); sign != "" {
		text = sign
	} else if hint := hintFor(text, lineOf(raw, line-s.part.line)); hint != "" {
		text += ": " + hint
	}
	if more > 0 {
		text += " (and " + strconv.Itoa(more) + " more)"
	}
	return s.cannotDecode(line, errors.New(text))
}

var (
	lineInError = regexp.MustCompile(`(?s)^line (\d+): (.*)$`)
	parserError = regexp.MustCompile(`^did not find expected (<|node content|'-' indicator|key|',' or)`)
	anchorError = regexp.MustCompile(`^(unknown )?anchor '([^']*)'`)
	quotedValue = regexp.MustCompile("(?s) `.*`")
)

// placeOf finds the position of an error without a line, or returns -1.
func placeOf(raw []byte, text string) int {
	if m := anchorError.FindStringSubmatch(text); m != nil {
		sign := "&"
		if m[1] != "" {
			sign = "*"
		}
		return bytes.Index(raw, []byte(sign+m[2]))
	}
	if strings.HasPrefix(text, "control characters") {
		for i := 0; i < len(raw); {
			r, n := utf8.DecodeRune(raw[i:])
			if isControl(r) {
				return i
			}
			i += n
		}
	}
	return -1
}

// isControl reports whether YAML 1.1 forbids a character.
func isControl(r rune) bool {
	switch r {
	case '\t', '\n', '\r', 0x85:
		return false
	}
	return r < ' ' || r >= 0x7F && r < 0xA0 || r == 0xFFFE || r == 0xFFFF
}

// discreet returns the text of a library's error without the values that it quotes.
func discreet(text string) string {
	switch {
	case strings.HasPrefix(text, "invalid map key"):
		return "a key is a mapping or a sequence"
	case strings.HasPrefix(text, "unsupported map key"):
		return "a key is null or of another type that JSON does not have"
	case strings.HasPrefix(text, "json: unsupported value"):
		return "JSON has neither infinity nor NaN"
	}
	return quotedValue.ReplaceAllString(text, "")
}

var (
	starts     = regexp.MustCompile(`(?:^|[\[{,:-])[ \t]*([*&])`)
	notAnAlias = []string{"did not find expected alphabetic or numeric character", "unknown anchor"}
)

// unquoted explains an error in a line with a value that begins with an asterisk or an ampersand and is not a valid alias or
// anchor. It returns "" for any other error.
func unquoted(text string, line []byte) string {
	if !slices.ContainsFunc(notAnAlias, func(begins string) bool { return strings.HasPrefix(text, begins) }) {
		return ""
	}
	m := starts.FindSubmatch(line)
	switch {
	case m == nil:
		return ""
	case strings.HasPrefix(text, "unknown anchor"):
		return text + "; if this is not an alias, quote it: * begins an alias"
	case m[1][0] == '*':
		return "a value begins with *; quote it: * begins an alias"
	}
	return "a value begins with &; quote it: & begins an anchor"
}

func hintFor(text string, line []byte) string {
	switch {
	case bytes.Contains(line, []byte("{{")), bytes.Contains(line, []byte("{%")):
		return "if this is a template, list the file in .headgateignore"
	case bytes.HasPrefix(bytes.TrimLeft(line, " "), []byte("\t")):
		return "indent with spaces"
	case strings.HasPrefix(text, "found character that cannot start"):
		return "quote the text"
	}
	return ""
}

// lineOf returns the nth line, from 0.
func lineOf(raw []byte, n int) []byte {
	for i := 0; ; i++ {
		line, rest, found := bytes.Cut(raw, []byte("\n"))
		if i == n {
			return line
		}
		if !found {
			return nil
		}
		raw = rest
	}
}
