package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The comment in a new file leads an editor to the schema of that name.
func TestSchemaOf(t *testing.T) {
	for _, name := range []string{"sync", "approvals"} {
		text, err := os.ReadFile("../../reconcile/api/v1alpha1/schemas/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			ID string `json:"$id"`
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		if comment := schemaOf(name); !strings.HasSuffix(comment, "="+schema.ID+"\n") {
			t.Errorf("the comment is %q, and the schema %s", comment, schema.ID)
		}
	}
}
