package report

import (
	"bytes"
	"encoding/json"
	"io"

	"headgate.dev/headgate/reconcile/legible"
)

// JSON writes a report for programs.
func JSON(w io.Writer, r Report) error { return WriteJSON(w, r) }

// WriteJSON writes a value as JSON, without the characters with which a commit or a server could manipulate a terminal or a page.
// The encoder escapes the other control characters.
func WriteJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(bytes.Map(func(r rune) rune {
		if r != '\n' && legible.Invisible(r) {
			return -1
		}
		return r
	}, b.Bytes()))
	return err
}
