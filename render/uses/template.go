package uses

import (
	"regexp"
	"slices"
	"strings"
)

var (
	remarks = regexp.MustCompile(`(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}`)
	action  = regexp.MustCompile(`^\s*\{\{.*\}\}\s*$`)
	naming  = regexp.MustCompile(`^(\s*)((?:- +)*)["']?(apiVersion|kind)["']?\s*:\s+(.*?)\s*$`)
	flow    = regexp.MustCompile(`["']?\b(apiVersion|kind)["']?\s*:\s*("[^"]*"|'[^']*'|\{\{.*?\}\}|[^\s,}]+)`)

	// Actions that only decide whether the text beside them counts.
	control = regexp.MustCompile(`\{\{-?\s*(?:if|else|end|range|with)\b[^}]*\}\}`)
	leading = regexp.MustCompile(`^(\s*)(?:` + control.String() + `\s*)+`)
	ending  = regexp.MustCompile(`(?:\s*\{\{-?\s*end\s*-?\}\})+\s*$`)
)

// InTemplate finds the objects in a template of YAML: an apiVersion and a kind in one mapping, recognized by their
// indentation. Template actions around them do not matter.
func InTemplate(template string) []InText {
	template = remarks.ReplaceAllStringFunc(template, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	t := templateScanner{open: map[int]InText{}, anchors: map[string]string{}}
	for i, line := range strings.Split(template, "\n") {
		t.next(i, line)
	}
	return t.found
}

type templateScanner struct {
	open    map[int]InText // objects that are not complete, by indentation
	anchors map[string]string
	found   []InText
}

// next reads a line.
func (t *templateScanner) next(i int, line string) {
	if strings.Contains(line, "{{") {
		line = withoutControl(line)
	}
	text := strings.TrimSpace(line)
	switch {
	case text == "", strings.HasPrefix(text, "#"), action.MatchString(line):
		return
	case strings.HasPrefix(line, "---"):
		clear(t.open)
		return
	}
	indent := len(line) - len(strings.TrimLeft(line, " "))
	for level := range t.open {
		if level > indent {
			delete(t.open, level)
		}
	}
	m := naming.FindStringSubmatch(line)
	if m == nil {
		if strings.HasPrefix(text, "- ") {
			delete(t.open, indent+2)
		}
		t.inFlow(i, indent, line)
		return
	}
	indent += len(m[2])
	u := t.open[indent]
	if m[2] != "" {
		u = InText{} // a new item
	}
	if m[3] == "kind" {
		u.Kind, u.Line = t.value(m[4]), i
	} else {
		u.APIVersion = t.value(m[4])
	}
	if u.Indent = indent; u.APIVersion != "" && u.Kind != "" {
		t.add(u)
		u = InText{}
	}
	t.open[indent] = u
}

// withoutControl returns a line without the actions at its beginning and at its end that only decide whether it counts.
func withoutControl(line string) string {
	line = leading.ReplaceAllString(line, "$1")
	return ending.ReplaceAllString(line, "")
}

// inFlow finds objects in one line: {apiVersion: a/v1, kind: B}.
func (t *templateScanner) inFlow(i, indent int, line string) {
	if !strings.Contains(line, "apiVersion") || !strings.Contains(line, "kind") {
		return
	}
	u := InText{Line: i, Indent: indent + 1}
	for _, m := range flow.FindAllStringSubmatch(line, -1) {
		if m[1] == "kind" {
			u.Kind = t.value(m[2])
		} else {
			u.APIVersion = t.value(m[2])
		}
		if u.APIVersion != "" && u.Kind != "" {
			t.add(u)
			u.APIVersion, u.Kind = "", ""
		}
	}
}

// mostAlternatives limits the kinds that one line of a template may name.
const mostAlternatives = 16

// add adds an object. If the template chooses between texts, each of them counts.
func (t *templateScanner) add(u InText) {
	for _, version := range alternatives(u.APIVersion) {
		for _, kind := range alternatives(u.Kind) {
			one := u
			one.APIVersion, one.Kind = version, kind
			t.found = append(t.found, one)
		}
	}
}

// alternatives returns the texts that a value chooses from: {{ if .a }}Bucket{{ else }}Queue{{ end }}. Another value is returned as it is.
func alternatives(value string) []string {
	if !control.MatchString(value) {
		return []string{value}
	}
	all := slices.DeleteFunc(control.Split(value, mostAlternatives+1), func(s string) bool { return strings.TrimSpace(s) == "" })
	if len(all) == 0 || len(all) > mostAlternatives {
		return []string{value}
	}
	return all
}

// value returns a scalar without quotes and without a trailing comment. An alias has the value of its anchor.
func (t *templateScanner) value(s string) string {
	switch {
	case strings.HasPrefix(s, "*"):
		return t.anchors[scalar(s[1:])]
	case strings.HasPrefix(s, "&"):
		name, rest, _ := strings.Cut(s[1:], " ")
		t.anchors[name] = scalar(strings.TrimSpace(rest))
		return t.anchors[name]
	}
	return scalar(s)
}

// scalar returns a scalar without quotes and without a trailing comment.
func scalar(s string) string {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return s[1 : 1+end]
		}
	}
	s, _, _ = strings.Cut(s, " #")
	return strings.TrimSpace(s)
}
