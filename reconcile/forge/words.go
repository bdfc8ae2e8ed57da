package forge

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"headgate.dev/headgate/reconcile/legible"
)

// credentials matches the credentials in a URL.
var credentials = regexp.MustCompile(`://[^/\s@]+@`)

// plain returns a text as one line. It removes credentials in URLs, and characters that reorder or hide text: control
// characters and direction marks. Texts come from commits and from servers.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case legible.Invisible(r), r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	return credentials.ReplaceAllString(strings.Join(strings.Fields(s), " "), "://")
}

// cut shortens a text to at most so many runes, with an ellipsis if it removes something.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	runes := []rune(s)
	return strings.TrimRight(string(runes[:most-1]), " ") + "…"
}

// prefix returns at most so many bytes of a text, cut at the end of a rune.
func prefix(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
