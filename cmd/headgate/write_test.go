package main

import (
	"encoding/json"
	"strings"
	"testing"

	"headgate.dev/headgate/reconcile/legible"
)

// A manifest that a user applies keeps its values, and a terminal that shows it does not obey them.
func TestEscapedJSON(t *testing.T) {
	const value = "a\u009b31mb\u202ec\U000e0041d\x7fé"
	b, err := escapedJSON(map[string]string{"k": value})
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]string
	if err := json.Unmarshal(b, &back); err != nil || back["k"] != value {
		t.Errorf("%v: %s", err, b)
	}
	if strings.ContainsFunc(string(b), legible.Invisible) || !strings.Contains(string(b), "é") {
		t.Errorf("%q", b)
	}
}
