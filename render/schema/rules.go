package schema

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// validations compares CEL rules by their requirements.
func (c *comparison) validations(at location, was, is []any) {
	before, after := rules(was), rules(is)
	for key, rule := range after {
		if _, held := before[key]; !held {
			what := Validation
			if strings.Contains(rule, "oldSelf") {
				what = Immutable
			}
			c.add(Change{Rule: what, Version: at.version, Path: at.path, To: rule, Breaking: true})
		}
	}
	for key, rule := range before {
		if _, holds := after[key]; !holds {
			c.add(Change{Rule: Validation, Version: at.version, Path: at.path, From: rule})
		}
	}
	c.Words = true // at least the message of a rule changed
}

// rules returns the CEL rules of a schema by their requirements.
func rules(validations []any) map[string]string {
	all := map[string]string{}
	for _, v := range validations {
		rule, _ := object(v)["rule"].(string)
		key := tokens(rule)
		if object(v)["optionalOldSelf"] == true { // with it, the rule also applies to new objects
			key = "optional " + key
		}
		all[key] = rule
	}
	return all
}

// tokens returns a CEL rule without insignificant white space and comments. It keeps those inside strings.
func tokens(rule string) string {
	var out strings.Builder
	space := false
	var last rune
	put := func(text string) {
		first := []rune(text)[0]
		if space && isWord(last) && isWord(first) || space && last == first && strings.ContainsRune("-!", first) {
			out.WriteByte(' ')
		}
		space = false
		out.WriteString(text)
		all := []rune(text)
		last = all[len(all)-1]
	}
	for len(rule) > 0 {
		switch quote := quoted(rule, out.String()); {
		case quote > 0:
			put(rule[:quote])
			rule = rule[quote:]
		case strings.HasPrefix(rule, "//"):
			_, rule, _ = strings.Cut(rule, "\n")
			space = true
		case strings.ContainsRune(" \t\r\n\f", rune(rule[0])):
			space = true
			rule = rule[1:]
		default:
			_, size := utf8.DecodeRuneInString(rule)
			put(rule[:size])
			rule = rule[size:]
		}
	}
	return out.String()
}

func isWord(r rune) bool {
	return r == '_' || r == '.' || r == '"' || r == '\'' || unicode.IsLetter(r) || unicode.IsDigit(r)
}

// quoted returns the length of the string literal at the start of a rule, or 0. The text before it decides whether it is raw.
func quoted(rule, before string) int {
	if rule[0] != '"' && rule[0] != '\'' {
		return 0
	}
	mark := rule[:1]
	if triple := strings.Repeat(mark, 3); strings.HasPrefix(rule, triple) {
		mark = triple
	}
	raw := strings.HasSuffix(before, "r") || strings.HasSuffix(before, "R")
	for i := len(mark); i < len(rule); i++ {
		switch {
		case strings.HasPrefix(rule[i:], mark):
			return i + len(mark)
		case rule[i] == '\\' && !raw:
			i++
		}
	}
	return len(rule)
}
