package report

import (
	"encoding/json"
	"io"
)

// JSON writes a report for programs.
func JSON(w io.Writer, r Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
