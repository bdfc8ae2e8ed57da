package report

import "strings"

// Links defines the link targets of a comment. The zero value has no links.
type Links struct {
	// File returns the URL of a line in a file of a commit, or "". With line 0, it returns the URL of the file.
	File func(commit, path string, line int) string
	Run  string // URL of the run that created the preview, or of its page

	command string // the line of a comment that approves what blocks the pull request
	list    string // the invisible line with the digests that this covers
}

// run returns a link to the run.
func (l Links) run() string {
	if l.Run == "" {
		return ""
	}
	return " " + linked("Details", l.Run) + "."
}

// linked returns a text with a link. It escapes the URL, which comes from a forge or an environment and must not end the link.
func linked(text, url string) string {
	if url == "" {
		return text
	}
	return "[" + text + "](" + strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", "\n", "", "\\", "%5C").Replace(url) + ")"
}
