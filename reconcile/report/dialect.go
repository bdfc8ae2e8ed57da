package report

import (
	"regexp"
	"strings"
)

// A Dialect describes the Markdown of comments on a forge.
type Dialect struct {
	MaxBytes int  // maximum size of a comment
	NoHTML   bool // the forge shows HTML as text, so nothing can be folded
}

var unmarked = regexp.MustCompile(`[^A-Za-z0-9./]+`)

// Mark returns the invisible first line of the comment for a key: an HTML comment, or an unused link definition.
func (d Dialect) Mark(key string) string {
	key = unmarked.ReplaceAllString(key, "-")
	if d.NoHTML {
		return "[//]: # (" + key + ")\n\n"
	}
	return "<!-- " + key + " -->\n"
}

var (
	folded = regexp.MustCompile(`(?m)^<details><summary>(.*)</summary>$`)
	inList = regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(listMark) + `([0-9a-f: ]+) -->$`)
	tags   = strings.NewReplacer("<code>", "", "</code>", "")
)

// Render converts a text of Comment or Markdown to this dialect. Without HTML, headings replace folded sections. It
// relies on the fact that no line of quoted text starts with a tag.
func (d Dialect) Render(body string) string {
	if !d.NoHTML {
		return body
	}
	body = folded.ReplaceAllStringFunc(body, func(line string) string {
		return "**" + tags.Replace(folded.FindStringSubmatch(line)[1]) + "**"
	})
	body = inList.ReplaceAllString(body, plainMark+"$1)")
	return strings.ReplaceAll(body, "\n</details>\n", "\n")
}
