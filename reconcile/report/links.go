package report

import "strings"

// Links are where the places of a comment are shown. The zero value has none.
type Links struct {
	// File returns the URL of a line of a file of a commit; "" if there is none. A line that is 0 is the file.
	File func(commit, path string, line int) string
	Run  string // the URL of the run that made the preview, or of the page about it
}

// run is a link to the run.
func (l Links) run() string {
	if l.Run == "" {
		return ""
	}
	return " " + linked("Details", l.Run) + "."
}

// linked is a text with a link. The URL comes from a forge or an environment, so it cannot end the link.
func linked(text, url string) string {
	if url == "" {
		return text
	}
	return "[" + text + "](" + strings.NewReplacer("(", "%28", ")", "%29", "<", "%3C", ">", "%3E", " ", "%20", "\n", "", "\\", "%5C").Replace(url) + ")"
}
