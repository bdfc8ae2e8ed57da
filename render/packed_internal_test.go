package render

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// Digests and comparisons read packed objects, so an object must unpack to the same bytes.
func TestPackedObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.SliceOf(rapid.String())).Draw(t, "content"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Object{packed: pack(want)}.JSON()
		if err != nil || string(got) != string(want) {
			t.Fatalf("got %s, %v, want %s", got, err, want)
		}
	})
}
