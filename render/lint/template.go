package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// input finds the kinds that the input of a Composition's step uses.
func (c *coverage) input(o render.Object, step map[string]any, path ...any) {
	input, _ := step["input"].(map[string]any)
	name, _ := step["step"].(string)
	c.walk(o, input, path...)
	if input["kind"] == "GoTemplate" {
		c.template(o, name, input, path)
		return
	}
	if key, found := program(input); found {
		c.unread(o, o.OriginOf(append(slices.Clone(path), key...)...), fmt.Sprintf("the input of step %s is a program", name))
	}
}

// program returns the path of a text in an input that may name kinds: a program in KCL, Python, CUE and the like.
func program(v any) (path []any, found bool) {
	switch v := v.(type) {
	case string:
		return nil, strings.Contains(v, "\n") && strings.Contains(v, "apiVersion")
	case map[string]any:
		for key, below := range v {
			if path, found := program(below); found {
				return append([]any{key}, path...), true
			}
		}
	case []any:
		for i, below := range v {
			if path, found := program(below); found {
				return append([]any{i}, path...), true
			}
		}
	}
	return nil, false
}

// template finds the kinds that a step of function-go-templating uses.
func (c *coverage) template(o render.Object, step string, input map[string]any, path []any) {
	inline, _ := input["inline"].(map[string]any)
	text, ok := inline["template"].(string)
	if !ok {
		c.unread(o, o.OriginOf(path...), fmt.Sprintf("the templates of step %s are not in the commit", step))
		return
	}
	at := o.OriginOf(append(slices.Clone(path), "inline", "template")...)
	if strings.Contains(text, "\n") && at != o.Origin {
		at.Line++ // the text begins on the line after its key
	}
	computed := 0
	for _, u := range uses(text) {
		origin := at
		if at != o.Origin {
			origin.Line += u.line
		}
		switch name, found := c.use(u.apiVersion, u.kind); {
		case strings.Contains(u.apiVersion+u.kind, "{{"):
			if computed++; computed == 1 {
				c.unread(o, origin, fmt.Sprintf("the template of step %s computes kinds", step))
			}
		case found:
			c.say(o, name, origin)
		}
	}
}

func (c *coverage) unread(o render.Object, at manifest.Origin, why string) {
	c.found = append(c.found, manifest.Finding{
		Rule: RuleUnread, Severity: manifest.Note, Origin: at,
		Message: fmt.Sprintf("whether all that %s composes is active is not known: %s, which is not read", o.ID, why),
	})
}

// A use is an object in a template, with the kind that it uses.
type use struct {
	apiVersion, kind string
	line             int // from 0
	indent           int
}

var (
	remarks = regexp.MustCompile(`(?s)\{\{-?\s*/\*.*?\*/\s*-?\}\}`)
	action  = regexp.MustCompile(`^\s*\{\{.*\}\}\s*$`)
	naming  = regexp.MustCompile(`^(\s*)((?:- +)*)["']?(apiVersion|kind)["']?\s*:\s+(.*?)\s*$`)
)

// uses finds the objects in a template of YAML: an apiVersion and a kind in one mapping, recognized by their
// indentation. Template actions around them do not matter.
func uses(template string) []use {
	template = remarks.ReplaceAllStringFunc(template, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	var all []use
	open := map[int]use{} // by indentation
	for i, line := range strings.Split(template, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case text == "", strings.HasPrefix(text, "#"), action.MatchString(line):
			continue
		case strings.HasPrefix(line, "---"):
			clear(open)
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		for level := range open {
			if level > indent {
				delete(open, level)
			}
		}
		m := naming.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(text, "- ") {
				delete(open, indent+2)
			}
			continue
		}
		indent += len(m[2])
		u := open[indent]
		if m[2] != "" {
			u = use{} // a new item
		}
		if m[3] == "kind" {
			u.kind, u.line = value(m[4]), i
		} else {
			u.apiVersion = value(m[4])
		}
		if u.indent = indent; u.apiVersion != "" && u.kind != "" {
			all = append(all, u)
			u = use{}
		}
		open[indent] = u
	}
	return all
}

// value returns a scalar without quotes and without a trailing comment.
func value(s string) string {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			return s[1 : 1+end]
		}
	}
	s, _, _ = strings.Cut(s, " #")
	return strings.TrimSpace(s)
}
