package report

import (
	"encoding/json"
	"io"
)

// JSON writes a report for programs.
func JSON(w io.Writer, r Report) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
