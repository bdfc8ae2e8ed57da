package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// TestScalarsAsJSON decodes scalars with different forms in YAML and JSON. The results must equal those of the API server's
// library.
func TestScalarsAsJSON(t *testing.T) {
	for _, text := range []string{
		"1", "-1", "1.0", "1e3", "1.5", "1e21", "-0", "-0.0", "0x10", "0o7", "010", "1_000", "9223372036854775807", "9223372036854775808", "18446744073709551615",
		"1e400", "~", "null", "yes", "off", "2020-01-01", "2020-01-01T10:00:00Z", "!!timestamp 2020-01-01", "!!binary gIGC", "!!binary aGk=", "!!str 1", "!!float 1",
		`"\xff"`, `"\0"`, `"\u2028<&>"`, "''", "[]", "{}", "[[], {}]", "{1: a, true: b, 1.5: c, 3.0: d}", "{!!binary gIGC: a}", "[&a {b: 1}, *a]", "{<<: {a: 1}, b: 2}",
	} {
		var want any
		j, err := yaml.YAMLToJSONStrict([]byte("a: " + text))
		if err == nil {
			err = utiljson.Unmarshal(j, &want)
		}
		got, failed := decodeYAML([]byte("a: " + text))
		if (err == nil) != (failed == nil) || err == nil && !cmp.Equal(want, got) {
			t.Errorf("%s: decodeYAML() = %#v, %v, and the library: %#v, %v", text, got, failed, want, err)
		}
	}
}
