package manifest

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestMergeKeys compares merged mappings with the YAML type merge. Tools that read the same file must get the same values.
func TestMergeKeys(t *testing.T) {
	type object = map[string]any
	cases := map[string]struct {
		reason string
		text   string
		want   any
	}{
		"Override": {
			"A key after << overrides the merged one, which is why people write a merge key.",
			"a: &l {a: x, b: q}\nb: {<<: *l, b: z}\n", object{"a": object{"a": "x", "b": "q"}, "b": object{"a": "x", "b": "z"}},
		},
		"OverrideInBlock": {
			"The second container of a Deployment has another name than the first.",
			"a:\n- &foo\n  name: foo\n  image: x\n- <<: *foo\n  name: bar\n", object{"a": []any{object{"name": "foo", "image": "x"}, object{"name": "bar", "image": "x"}}},
		},
		"List":         {"The first mapping of a list counts.", "a: {<<: [{a: x}, {a: y, b: z}]}\n", object{"a": object{"a": "x", "b": "z"}}},
		"ListOverride": {"A key also overrides every mapping of a list.", "a: {<<: [{a: x}, {a: y, b: z}], a: w}\n", object{"a": object{"a": "w", "b": "z"}}},
		"Null":         {"null overrides a value, as in a mapping without <<.", "a: {<<: {a: x}, a: null}\n", object{"a": object{"a": nil}}},
		"Chain": {
			"A merged mapping may merge another one.",
			"a: &a {a: 1, b: 1}\nb: &b {<<: *a, b: 2, c: 2}\nc: {<<: *b, c: 3}\n",
			object{"a": object{"a": int64(1), "b": int64(1)}, "b": object{"a": int64(1), "b": int64(2), "c": int64(2)}, "c": object{"a": int64(1), "b": int64(2), "c": int64(3)}},
		},
		"Deep":  {"A merge replaces a whole value and does not look into it.", "a: {<<: {a: {b: x, c: x}}, a: {b: z}}\n", object{"a": object{"a": object{"b": "z"}}}},
		"Apart": {"Two merge keys may add different keys.", "a:\n  <<: {a: x}\n  <<: {b: q}\n  b: z\n", object{"a": object{"a": "x", "b": "z"}}},
		"Text":  {"A quoted << is an ordinary key.", "a: {\"<<\": {a: x}, a: z}\n", object{"a": object{"<<": object{"a": "x"}, "a": "z"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			documents, err := Read(fstest.MapFS{"a.yaml": {Data: []byte(tc.text)}}, "a.yaml", Limits{})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got, err := documents[0].Value()
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.reason, err, diff)
			}
			if got, err = documents[0].Value12(); err != nil || !cmp.Equal(tc.want, whole(got)) {
				t.Errorf("%s: kustomize gets %v, %v", tc.reason, got, err)
			}
		})
	}
}

// whole returns a value of YAML 1.2 with the integers of JSON.
func whole(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case map[string]any:
		for key, value := range v {
			v[key] = whole(value)
		}
	}
	return v
}

// TestMergeKeysRefused lists the mappings that stay errors, because a key in them is lost or tools disagree about it.
func TestMergeKeysRefused(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"Twice": {
			"A key twice in one mapping loses a value.", "---\na: &l {a: x}\nb:\n  <<: *l\n  a: y\n  a: z\n",
			"a.yaml:6: cannot decode: the key a is set twice; remove one of them",
		},
		"TwiceElsewhere": {
			"An override in one mapping does not excuse a repetition in another.", "a: {<<: {a: x}, a: y}\nb: {a: 1,\n  a: 2}\n",
			"a.yaml:3: cannot decode: the key a is set twice; remove one of them",
		},
		"Before": {
			"kubectl lets << override a key before it, and YAML does not.", "a: {<<: {c: x}, c: y}\nb:\n  b: override\n  <<: {a: x, b: why}\n",
			"a.yaml:3: cannot decode: the key b is set before <<, which merges the same key, and tools disagree which of them counts; write << first",
		},
		"BeforeIsMerged": {
			"A mapping that is merged follows the same rule.", "a: &l {b: override, <<: {b: why}}\nb: {<<: *l}\n",
			"a.yaml:1: cannot decode: the key b is set before <<, which merges the same key, and tools disagree which of them counts; write << first",
		},
		"TwoMerges": {
			"Of two merge keys, some tools use the first and some the last.", "a:\n  <<: {a: x}\n  <<: {a: y}\n",
			`a.yaml:3: cannot decode: two keys << of this mapping merge "a"; write one << with a list, whose first mapping counts`,
		},
		"NoMapping": {"Only mappings can be merged.", "a: {<<: [x], a: y}\n", "a.yaml:1: cannot decode: map merge requires map or sequence of maps as the value"},
		"Itself":    {"A mapping cannot be merged into itself.", "a: &a {<<: *a, a: y}\n", "a.yaml:1: cannot decode: anchor 'a' value contains itself"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			documents, err := Read(fstest.MapFS{"a.yaml": {Data: []byte(tc.text)}}, "a.yaml", Limits{})
			if err == nil {
				_, err = documents[0].Value()
			}
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s\n got %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}
