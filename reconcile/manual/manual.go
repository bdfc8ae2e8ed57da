// Package manual holds the pages about what a pass does, and finds the page that explains a guard or the code of a reason. The
// site and the verb explain show the same pages.
package manual

import (
	"embed"
	"io/fs"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
)

//go:embed guards/*.md codes/*.md
var files embed.FS

// An Entry explains one code.
type Entry struct {
	Code    string
	Message string // the sentence of a report, with … for its values
	About   string // what the code is about: a guard, or a heading of a page of codes
	Page    string // the text about the guard, in Markdown without links and messages; "" if no guard has the code
	Link    string // the page and its heading, relative to the folder of the manual
}

// A Guard explains one guard.
type Guard struct {
	Name  string
	Title string
	Page  string   // as in an Entry
	Codes []string // the codes of its messages
}

// Entries returns what explains each code.
func Entries() map[string]Entry {
	all := map[string]Entry{}
	for name, text := range pages("codes") {
		for about, section := range parts(text, "## ") {
			for code, message := range messages(section) {
				all[code] = Entry{Code: code, Message: message, About: about, Link: linkOf(name, code)}
			}
		}
	}
	for name, text := range pages("guards") {
		for code, message := range messages(text) {
			if all[code].Page == "" { // the first page of a code that two guards have
				all[code] = Entry{Code: code, Message: message, About: "the guard " + guardOf(name), Page: plain(text), Link: linkOf(name, code)}
			}
		}
	}
	return all
}

// Guards returns what explains each guard, by its name.
func Guards() map[string]Guard {
	all := map[string]Guard{}
	for name, text := range pages("guards") {
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		all[guardOf(name)] = Guard{Name: guardOf(name), Title: title, Page: plain(text), Codes: slices.Sorted(maps.Keys(messages(text)))}
	}
	return all
}

// pages returns the names and texts of a folder, sorted by name.
func pages(folder string) iter.Seq2[string, string] {
	names, _ := fs.Glob(files, folder+"/*.md") // the pattern is valid
	return func(yield func(string, string) bool) {
		for _, name := range names {
			text, _ := files.ReadFile(name) // it is embedded
			if !yield(name, string(text)) {
				return
			}
		}
	}
}

func linkOf(page, code string) string { return page + "#" + strings.ToLower(code) }

// guardOf returns the name of the guard that a page explains.
func guardOf(page string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(page, "guards/"), ".md"), "-", " ")
}

// parts returns the text below each heading of a level.
func parts(text, level string) map[string]string {
	all := map[string]string{}
	for _, part := range strings.Split("\n"+text, "\n"+level)[1:] {
		heading, rest, _ := strings.Cut(part, "\n")
		all[heading] = rest
	}
	return all
}

// messages returns the messages of a page by their codes.
func messages(text string) map[string]string {
	all := map[string]string{}
	for code, section := range parts(text, "### ") {
		for line := range strings.SplitSeq(section, "\n") {
			if message, is := strings.CutPrefix(line, "> "); is {
				all[code] = message
			}
		}
	}
	return all
}

var (
	comment = regexp.MustCompile(`(?m)^<!--.*-->\n`)
	link    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	blank   = regexp.MustCompile(`\n{3,}`)
)

// plain returns the text of a page about a guard, without its title, comments, links and messages.
func plain(text string) string {
	text, _, _ = strings.Cut(text, "\n## Messages\n")
	_, text, _ = strings.Cut(text, "\n")
	text = link.ReplaceAllString(comment.ReplaceAllString(text, ""), "$1")
	return strings.TrimSpace(blank.ReplaceAllString(text, "\n\n"))
}
