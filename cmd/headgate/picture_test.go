package main_test

import (
	"fmt"
	"html"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/golden"
)

// The README shows this comment, which a situation holds.
const (
	pictured = "fixtures/situations/package-breaks-schema/want/comment.md"
	picture  = "examples/previews/comment.svg"
)

// TestPicture compares the picture in the README with the comment that it shows, so that it cannot rot. With -update it
// draws the picture.
func TestPicture(t *testing.T) {
	_, comment, ok := strings.Cut(readFile(t, pictured), "\n\n")
	if !ok {
		t.Fatalf("%s has no comment below the status", pictured)
	}
	golden.Compare(t, filepath.Join(root(t), picture), draw(comment))
}

const (
	pictureWidth = 860
	textWidth    = 118 // characters of a line
	tallest      = 26  // lines, so that the README's first screen holds more than the picture
)

// drawing is a comment as an SVG, from top to bottom.
type drawing struct {
	strings.Builder

	y, lines int
}

// draw draws the Markdown of a comment as a forge shows it. It knows the elements of comments: headings, lists, tables,
// bold text, code, and folded parts, whose first line it draws.
func draw(comment string) string {
	d := &drawing{y: 44}
	var folded bool
	for line := range strings.SplitSeq(comment, "\n") {
		summary := regexp.MustCompile(`<summary>(.*)</summary>`).FindStringSubmatch(line)
		switch {
		case d.lines >= tallest:
		case summary != nil:
			folded = true
			d.text("body", 24, "▸ "+plain(summary[1]))
		case strings.Contains(line, "</details>"):
			folded = false
		case folded, strings.HasPrefix(line, "<!--"), strings.HasPrefix(line, "```"), strings.HasPrefix(line, "|---"), strings.HasPrefix(line, "| ---"):
		case strings.HasPrefix(line, "#"):
			d.y += 6
			d.text("heading", 24, plain(strings.TrimLeft(line, "# ")))
		case strings.HasPrefix(line, "|"):
			d.row(line)
		case strings.HasPrefix(line, "  - "):
			d.text("body", 64, "◦ "+plain(line[4:]))
		case strings.HasPrefix(line, "- "):
			d.text("body", 40, "• "+plain(line[2:]))
		case strings.HasPrefix(line, "**") && strings.HasSuffix(line, "**"):
			d.text("strong", 24, plain(line))
		case line == "":
			d.y += 6
		default:
			d.text("body", 24, plain(line))
		}
	}
	height := d.y + 8
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d" role="img" aria-label="A Headgate comment on a pull request">
<style>
.box { fill: #ffffff; stroke: #d1d9e0; }
text { fill: #1f2328; font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; font-size: 13.5px; }
.heading { font-size: 17px; font-weight: 600; }
.strong { font-weight: 600; }
@media (prefers-color-scheme: dark) { .box { fill: #0d1117; stroke: #3d444d; } text { fill: #f0f6fc; } }
</style>
<rect class="box" x="0.5" y="0.5" width="%[3]d" height="%[4]d" rx="6"/>
%[5]s</svg>
`, pictureWidth, height, pictureWidth-1, height-1, d.String())
}

// text draws a paragraph, wrapped.
func (d *drawing) text(class string, x int, text string) {
	width := textWidth - (x-24)/8
	if class == "heading" {
		width = width * 4 / 5
	}
	var line string
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			d.line(class, x, line)
			line, x = "", max(x, 24)
		}
		line = strings.TrimSpace(line + " " + word)
	}
	d.line(class, x, line)
}

func (d *drawing) line(class string, x int, text string) {
	if text == "" || d.lines >= tallest {
		return
	}
	fmt.Fprintf(d, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, d.y, html.EscapeString(text))
	d.y += 21
	d.lines++
}

// row draws a row of a table, with columns of one width.
func (d *drawing) row(line string) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i, cell := range cells {
		fmt.Fprintf(d, "<text x=\"%d\" y=\"%d\">%s</text>\n", 24+i*(pictureWidth-48)/len(cells), d.y, html.EscapeString(plain(strings.TrimSpace(cell))))
	}
	d.y += 21
	d.lines++
}

var (
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	tagged = regexp.MustCompile(`</?[a-z]+>`)
)

// plain returns Markdown without its marks.
func plain(markdown string) string {
	text := linked.ReplaceAllString(markdown, "$1")
	text = tagged.ReplaceAllString(text, "")
	return html.UnescapeString(strings.NewReplacer("**", "", "`", "", `\`, "").Replace(text))
}
