package check

import (
	"strconv"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// Place returns the line of a field of an object or, if that is not known, of its nearest parent.
func Place(o render.Object, field string) manifest.Origin {
	if field == "" {
		return o.Origin
	}
	content, err := o.Content()
	if err != nil {
		return o.Origin
	}
	for path := Path(content.Object, field); len(path) > 0; path = path[:len(path)-1] {
		if at := o.OriginOf(path...); at != o.Origin {
			return at
		}
	}
	return o.Origin
}

// Path returns the keys and indices of a field that Kubernetes wrote as text. Keys may contain dots and brackets, so the content
// decides where a key ends. The last key may be missing from the content.
func Path(content any, field string) []any {
	var path []any
	for field != "" {
		step, rest := first(content, field)
		path = append(path, step)
		switch key := step.(type) {
		case int:
			items, _ := content.([]any)
			content = items[key]
		case string:
			m, _ := content.(map[string]any)
			content = m[key]
		}
		field = rest
	}
	return path
}

// first returns the first key or index of a field, and the rest of the field.
func first(content any, field string) (step any, rest string) {
	switch content := content.(type) {
	case []any:
		text, rest, closed := strings.Cut(strings.TrimPrefix(field, "["), "]")
		if i, err := strconv.Atoi(text); closed && err == nil && i >= 0 && i < len(content) {
			return i, strings.TrimPrefix(rest, ".")
		}
	case map[string]any:
		longest := ""
		for key := range content {
			if len(key) > len(longest) && begins(field, key) {
				longest = key
			}
		}
		if longest != "" {
			return longest, after(field, longest)
		}
	}
	return field, ""
}

// begins reports whether a field begins with a key, bare or in brackets.
func begins(field, key string) bool {
	if strings.HasPrefix(field, "["+key+"]") {
		return true
	}
	rest, ok := strings.CutPrefix(field, key)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// after returns what follows a key in a field that begins with it.
func after(field, key string) string {
	rest, bracketed := strings.CutPrefix(field, "["+key+"]")
	if !bracketed {
		rest = strings.TrimPrefix(field, key)
	}
	return strings.TrimPrefix(rest, ".")
}
