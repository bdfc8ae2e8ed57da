package forge

import (
	"net/url"
	"strconv"
	"strings"
)

// fileURL returns where a browser finds a line of a file of a commit; "" if the path is none of a commit.
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
		// A query has its own marks, so those are escaped as well.
		parts[i] = strings.NewReplacer("&", "%26", "+", "%2B", "=", "%3D", "'", "%27").Replace(url.PathEscape(part))
	}
	return r.page() + at(commit, strings.Join(parts, "/"), line)
}

// hashLine returns the filePath of forges that differ only in what stands before the commit.
func hashLine(below string) func(commit, path string, line int) string {
	return func(commit, path string, line int) string { return below + commit + "/" + path + numbered("#L", line) }
}

// numbered is the mark of a line; "" if the line is not known.
func numbered(mark string, line int) string {
	if line <= 0 {
		return ""
	}
	return mark + strconv.Itoa(line)
}
