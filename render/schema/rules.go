package schema

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// validations compares CEL rules by their requirements.
func (c *comparison) validations(at location, was, is map[string]any) {
	before, after := rules(list(was["x-kubernetes-validations"])), rules(list(is["x-kubernetes-validations"]))
	for key, rule := range after {
		if _, held := before[key]; !held {
			what := Validation
			if strings.Contains(rule, "oldSelf") {
				what = Immutable
			}
			breaks := !holds(rule, was, is) && !onlyNew(rule, was, is)
			c.add(Change{Rule: what, Version: at.version, Path: at.path, To: rule, Breaking: breaks})
		}
	}
	for key, rule := range before {
		if _, holds := after[key]; !holds {
			c.add(Change{Rule: Validation, Version: at.version, Path: at.path, From: rule})
		}
	}
	c.Words = true // at least the message of a rule changed
}

// holds reports whether a rule holds, possibly because of one of its alternatives, since it only demands fields that the old schema
// requires, or the absence of fields that it did not declare.
func holds(rule string, was, is map[string]any) bool {
	rule = unwrapped(rule)
	if parts := parts(rule, "||"); len(parts) > 1 {
		return slices.ContainsFunc(parts, func(part string) bool { return holds(part, was, is) })
	}
	if parts := parts(rule, "&&"); len(parts) > 1 {
		return !slices.ContainsFunc(parts, func(part string) bool { return !holds(part, was, is) })
	}
	if no, negated := strings.CutPrefix(rule, "!"); negated {
		return never(no, was, is)
	}
	field := demanded.FindStringSubmatch(rule)
	if field == nil {
		return false
	}
	for name := range strings.SplitSeq(field[1], ".") {
		required := slices.Contains(texts(was["required"]), name)
		if was = object(object(was["properties"])[name]); !required || was["nullable"] == true {
			return false
		}
	}
	return true
}

// never reports whether an expression is false, since it demands fields that the old schema did not declare and dropped.
func never(rule string, was, is map[string]any) bool {
	rule = unwrapped(rule)
	if parts := parts(rule, "||"); len(parts) > 1 {
		return !slices.ContainsFunc(parts, func(part string) bool { return !never(part, was, is) })
	}
	if parts := parts(rule, "&&"); len(parts) > 1 {
		return slices.ContainsFunc(parts, func(part string) bool { return never(part, was, is) })
	}
	field := demanded.FindStringSubmatch(rule)
	if field == nil || keeps(was) || was["additionalProperties"] != nil {
		return false
	}
	name, _, _ := strings.Cut(field[1], ".")
	_, known := object(was["properties"])[name]
	return !known && object(object(is["properties"])[name])["default"] == nil
}

var demanded = regexp.MustCompile(`^has\(\s*self\.(\w+(?:\.\w+)*)\s*\)$`)

// unwrapped returns a rule without the brackets around all of it.
func unwrapped(rule string) string {
	rule = strings.TrimSpace(rule)
	for strings.HasPrefix(rule, "(") {
		inner, closed := strings.CutSuffix(rule[1:], ")")
		if !closed || depthBelow(inner) {
			break
		}
		rule = strings.TrimSpace(inner)
	}
	return rule
}

// depthBelow reports whether a text closes a bracket that it does not open.
func depthBelow(text string) bool {
	depth := 0
	for i := 0; i < len(text); i++ {
		if n := quoted(text[i:], text[:i]); n > 0 {
			i += n - 1
			continue
		}
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return true
			}
		}
	}
	return false
}

// canonical returns a rule without brackets that change nothing. outer is the operator that joins it with others.
func canonical(rule, outer string) string {
	rule = unwrapped(rule)
	for _, operator := range []string{"||", "&&"} {
		all := parts(rule, operator)
		if len(all) < 2 {
			continue
		}
		for i, part := range all {
			all[i] = canonical(part, operator)
		}
		joined := strings.Join(all, operator)
		if operator == "||" && outer == "&&" {
			return "(" + joined + ")"
		}
		return joined
	}
	return rule
}

// singleQuoted returns a literal with single quotes, if that means the same. before is the text before the literal.
func singleQuoted(literal, before string) string {
	if strings.HasPrefix(literal, `"""`) || literal[0] != '"' || strings.ContainsAny(literal, `\\'`) || isWord(lastOf(before)) {
		return literal
	}
	return "'" + strings.Trim(literal, `"`) + "'"
}

func lastOf(text string) rune {
	last, _ := utf8.DecodeLastRuneInString(text)
	return last
}

// parts splits a rule at an operator outside of brackets and texts. A rule with the ternary operator, or a comment, is one part.
func parts(rule, operator string) []string {
	if strings.Contains(rule, "?") || strings.Contains(rule, "//") {
		return nil
	}
	var all []string
	depth, from := 0, 0
	for i := 0; i < len(rule); i++ {
		if n := quoted(rule[i:], rule[:i]); n > 0 {
			i += n - 1
			continue
		}
		switch {
		case strings.ContainsRune("([{", rune(rule[i])):
			depth++
		case strings.ContainsRune(")]}", rune(rule[i])):
			depth--
		case depth == 0 && strings.HasPrefix(rule[i:], operator):
			all = append(all, rule[from:i])
			from = i + len(operator)
			i++
		}
	}
	return append(all, rule[from:])
}

var reads = regexp.MustCompile(`\b(?:self|oldSelf)\b(?:\.hasValue\(\)|(?:\.value\(\))?\.\??(\w+)\b)?`)

// onlyNew reports whether a rule reads only optional fields that the old schema did not declare and dropped, and accepts objects
// without them.
func onlyNew(rule string, was, is map[string]any) bool {
	if keeps(was) || was["additionalProperties"] != nil {
		return false
	}
	fields := map[string]any{}
	for _, m := range reads.FindAllStringSubmatch(rule, -1) {
		declared, isNew := object(is["properties"])[m[1]]
		if _, was := object(was["properties"])[m[1]]; was || !isNew && !strings.HasSuffix(m[0], ".hasValue()") {
			return false
		}
		if object(declared)["default"] != nil {
			return false // every object has the field
		}
		if isNew {
			fields[m[1]] = declared
		}
	}
	if len(fields) == 0 {
		return false
	}
	bare := map[string]any{"type": "object", "properties": fields}
	for _, v := range list(is["x-kubernetes-validations"]) {
		if object(v)["rule"] == rule {
			bare["x-kubernetes-validations"] = []any{v}
		}
	}
	j, err := newJudged(whole(bare))
	return err == nil && j.takes(map[string]any{})
}

// rules returns the CEL rules of a schema by their requirements.
func rules(validations []any) map[string]string {
	all := map[string]string{}
	for _, v := range validations {
		rule, _ := object(v)["rule"].(string)
		key := tokens(canonical(rule, ""))
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
			put(singleQuoted(rule[:quote], out.String()))
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
