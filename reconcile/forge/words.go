package forge

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// credentials are what a URL may carry before its host.
var credentials = regexp.MustCompile(`://[^/\s@]+@`)

// plain is a text as one line without what can turn or hide it: control characters,
// escape sequences' first byte, marks of the writing direction. Texts come from commits
// and from servers. Credentials in URLs go as well.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	return credentials.ReplaceAllString(strings.Join(strings.Fields(s), " "), "://")
}

// cut is a text of at most so many runes, with an ellipsis where something is missing.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	runes := []rune(s)
	return strings.TrimRight(string(runes[:most-1]), " ") + "…"
}

// prefix is at most so many bytes of a text, ending where a rune does.
func prefix(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
