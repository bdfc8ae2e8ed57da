package api

import (
	"net/http"
	"strings"
)

// Verb returns the verb of a request to an API server: GET, LIST, WATCH, PATCH, POST, PUT or DELETE. Dry runs have the prefix "DRY-RUN ".
func Verb(req *http.Request) string {
	query := req.URL.Query()
	switch {
	case req.Method != http.MethodGet && query.Has("dryRun"):
		return "DRY-RUN " + req.Method
	case req.Method != http.MethodGet:
		return req.Method
	case query.Has("watch"):
		return "WATCH"
	case isCollection(req.URL.Path):
		return "LIST"
	}
	return http.MethodGet
}

// isCollection reports whether a path names all objects of a resource: one element follows the version or, if there is one, the
// namespace.
func isCollection(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		parts = parts[3:]
	default:
		return false // discovery
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return len(parts) == 1
}
