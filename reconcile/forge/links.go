package forge

import (
	"net/url"
	"strconv"
	"strings"
)

// fileURL returns the URL of a line in a file of a commit, or "" if the path is not in a commit.
func (r Repository) fileURL(commit, path string, line int) string {
	at := r.Kind.forge().filePath
	if at == nil || !isCommit(commit) {
		return ""
	}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if part == "" || part == "." || part == ".." {
			return ""
		}
		// In a query, these characters have a meaning, so they are escaped, too.
		parts[i] = strings.NewReplacer("&", "%26", "+", "%2B", "=", "%3D", "'", "%27").Replace(url.PathEscape(part))
	}
	return r.page() + at(commit, strings.Join(parts, "/"), line)
}

// hashLine returns the filePath function of a forge that marks the line in the fragment. below is the path before the commit.
func hashLine(below string) func(commit, path string, line int) string {
	return func(commit, path string, line int) string { return below + commit + "/" + path + numbered("#L", line) }
}

// numbered returns a mark with a line number, or "" if the line is not known.
func numbered(mark string, line int) string {
	if line <= 0 {
		return ""
	}
	return mark + strconv.Itoa(line)
}
