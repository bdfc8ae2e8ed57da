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

// The README shows the comment of this situation.
const (
	pictured = "fixtures/situations/used-here/want/comment.md"
	picture  = "examples/previews/comment.svg"
)

// TestPicture compares the picture in the README with the comment that it shows, so that the picture stays current. With -update it
// draws the picture.
func TestPicture(t *testing.T) {
	_, comment, ok := strings.Cut(readFile(t, pictured), "\n\n")
	if !ok {
		t.Fatalf("%s has no comment below the status", pictured)
	}
	golden.Compare(t, filepath.Join(root(t), picture), draw(named.Replace(comment)))
}

// named replaces names that are typical of a situation with names that are typical of a repository.
var named = strings.NewReplacer(
	"Commit head compared with its merge base base.", "Commit 4f2c1de compared with its merge base a91b07c.",
	"preview of `used-here`", "preview of `platform`",
	".used-here.example.org", ".acme.example.org",
)

const (
	pictureWidth = 860
	bodyWidth    = 6.9 // of a character, on average
	codeWidth    = 7.3 // of a character
	tallest      = 26  // lines, so that the README's first screen has room for more than the picture
)

// A drawing is the SVG of a comment, drawn from top to bottom.
type drawing struct {
	strings.Builder

	y, lines   int
	bold, code bool // whether the text is inside bold or code
	fenced     bool // whether the line is inside a code block
}

// draw draws the Markdown of a comment like a forge. It supports what comments use: headings, lists, tables, bold text and code. It
// draws only the summary of a folded part.
func draw(comment string) string {
	d := &drawing{y: 44}
	folds := 0 // around the line
	for line := range strings.SplitSeq(comment, "\n") {
		summary := regexp.MustCompile(`<summary>(.*)</summary>`).FindStringSubmatch(line)
		switch {
		case d.lines >= tallest:
		case summary != nil:
			if folds++; folds == 1 {
				d.text("body", 24, "▸ "+plain(summary[1]))
			}
		case strings.Contains(line, "</details>"):
			folds--
		case folds > 0, strings.HasPrefix(line, "<!--"), strings.HasPrefix(line, "|---"), strings.HasPrefix(line, "| ---"):
		case strings.HasPrefix(line, "```"):
			d.fenced = !d.fenced
			d.y += 4
		case d.fenced:
			fmt.Fprintf(d, "<rect class=\"block\" x=\"24\" y=\"%d\" width=\"%d\" height=\"26\" rx=\"6\"/>\n", d.y-18, pictureWidth-48)
			d.line("body", 32, code+line+code)
		case strings.HasPrefix(line, "#"):
			d.y += 6
			d.text("heading", 24, plain(strings.TrimLeft(line, "# ")))
		case strings.HasPrefix(line, "|"):
			d.row(line)
		case strings.HasPrefix(line, "  - "):
			d.text("body", 64, "◦ "+plain(line[4:]))
		case strings.HasPrefix(line, "- "):
			d.text("body", 40, "• "+plain(line[2:]))
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
.block { fill: #f6f8fa; }
text { fill: #1f2328; font-family: -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; font-size: 13.5px; }
.heading { font-size: 17px; font-weight: 600; }
.strong { font-weight: 600; }
.code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace; font-size: 12px; }
@media (prefers-color-scheme: dark) { .box { fill: #0d1117; stroke: #3d444d; } .block { fill: #151b23; } text { fill: #f0f6fc; } }
</style>
<rect class="box" x="0.5" y="0.5" width="%[3]d" height="%[4]d" rx="6"/>
%[5]s</svg>
`, pictureWidth, height, pictureWidth-1, height-1, d.String())
}

// text draws a paragraph and wraps it.
func (d *drawing) text(class string, x int, text string) {
	room := float64(pictureWidth - 24 - x)
	if class == "heading" {
		room = room * 4 / 5
	}
	var line string
	var used, width float64
	inCode := false
	for word := range strings.FieldsSeq(text) {
		width, inCode = widthOf(word, inCode)
		if line != "" && used+bodyWidth+width > room {
			d.line(class, x, line)
			line, used = "", 0
		}
		line = strings.TrimSpace(line + " " + word)
		used += bodyWidth + width
	}
	d.line(class, x, line)
}

// widthOf returns the width of a text, and whether its end is inside code.
func widthOf(text string, inCode bool) (float64, bool) {
	var width float64
	for _, r := range text {
		switch {
		case string(r) == code:
			inCode = !inCode
		case string(r) == bold:
		case inCode:
			width += codeWidth
		default:
			width += bodyWidth
		}
	}
	return width, inCode
}

func (d *drawing) line(class string, x int, text string) {
	if text == "" || d.lines >= tallest {
		return
	}
	fmt.Fprintf(d, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, d.y, d.spans(text))
	d.y += 21
	d.lines++
}

// spans returns text with a tspan around each bold or code part. Such a part may continue on the next line.
func (d *drawing) spans(text string) string {
	var b strings.Builder
	for text != "" {
		n := strings.IndexAny(text, bold+code)
		if n < 0 {
			n = len(text)
		}
		if part := html.EscapeString(text[:n]); part != "" {
			switch {
			case d.code:
				part = `<tspan class="code">` + part + `</tspan>`
			case d.bold:
				part = `<tspan class="strong">` + part + `</tspan>`
			}
			b.WriteString(part)
		}
		if text = text[n:]; text != "" {
			d.bold, d.code = d.bold != (text[:1] == bold), d.code != (text[:1] == code)
			text = text[1:]
		}
	}
	return b.String()
}

// row draws a table row with columns of equal width.
func (d *drawing) row(line string) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i, cell := range cells {
		fmt.Fprintf(d, "<text x=\"%d\" y=\"%d\">%s</text>\n", 24+i*(pictureWidth-48)/len(cells), d.y, d.spans(plain(strings.TrimSpace(cell))))
	}
	d.y += 21
	d.lines++
}

var (
	linked = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	tagged = regexp.MustCompile(`</?[a-z]+>`)
)

// bold and code mark the beginning and the end of bold or code parts.
const (
	bold = "\x01"
	code = "\x02"
)

// plain returns Markdown without its syntax. It keeps the marks of bold and code parts.
func plain(markdown string) string {
	text := linked.ReplaceAllString(markdown, "$1")
	text = strings.NewReplacer("<code>", code, "</code>", code).Replace(text)
	text = tagged.ReplaceAllString(text, "")
	return html.UnescapeString(strings.NewReplacer("**", bold, "`", code, `\`, "").Replace(text))
}
