package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/render/manifest"
)

// A name in a commit can hold a C1 control character, which some terminals obey, or a mark that reverses the text after it. No
// output passes it on, also not for programs, whose logs people read.
func TestJSONIsVisible(t *testing.T) {
	const hostile = "a\u009b31mb\u202ec\u2066d\u200be\x7ff\ufeffg\U000e0041h\x1bi"
	r := Report{Revision: hostile, Findings: []manifest.Finding{{Rule: hostile, Message: hostile, Fix: hostile, Origin: manifest.Origin{Path: hostile, Line: 1}}}}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"JSON":   func(b *bytes.Buffer) error { return JSON(b, r) },
		"SARIF":  func(b *bytes.Buffer) error { return SARIF(b, r) },
		"GitLab": func(b *bytes.Buffer) error { return CodeQuality(b, r) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(strings.ReplaceAll(b.String(), "\n", ""), legible.Invisible) {
			t.Errorf("%s: %q", name, b.String())
		}
		var v any
		if err := json.Unmarshal(b.Bytes(), &v); err != nil || !strings.Contains(b.String(), "a31mbcdefg") {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}
