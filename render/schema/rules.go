package schema

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/debug"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
)

// validations compares CEL rules by their requirements.
func (c *comparison) validations(at location, was, is map[string]any) {
	before, after := rules(list(was["x-kubernetes-validations"])), rules(list(is["x-kubernetes-validations"]))
	for _, key := range keysOf(before, after) {
		old, held := before[key]
		now, stays := after[key]
		switch {
		case !stays:
			c.add(Change{Rule: Validation, Version: at.version, Path: at.path, From: old.text})
		case !held:
			what := Validation
			if strings.Contains(now.text, "oldSelf") {
				what = Immutable
			}
			breaks := !holds(now.parsed, was, is) && !onlyNew(now, was, is)
			c.add(Change{Rule: what, Version: at.version, Path: at.path, To: now.text, Breaking: breaks})
		}
	}
	c.Words = true // at least the message of a rule changed
}

// A rule is a CEL rule of a schema.
type rule struct {
	text    string
	parsed  ast.Expr // nil if it cannot be parsed
	content any      // an entry of x-kubernetes-validations
}

// rules returns the CEL rules of a schema by their requirements.
func rules(validations []any) map[string]rule {
	all := map[string]rule{}
	for _, v := range validations {
		text, _ := object(v)["rule"].(string)
		r := rule{text: text, parsed: parse(text), content: v}
		key := text
		if r.parsed != nil {
			key = shape(r.parsed)
		}
		if object(v)["optionalOldSelf"] == true { // with it, the rule also applies to new objects
			key = "optional " + key
		}
		all[key] = r
	}
	return all
}

// celParser returns the parser of CEL. It leaves macros as calls, because calls show what a rule reads.
var celParser = sync.OnceValues(func() (*parser.Parser, error) { return parser.NewParser(parser.EnableOptionalSyntax(true)) })

// parse returns a parsed CEL rule, or nil for what is no rule.
func parse(text string) ast.Expr {
	p, err := celParser()
	if err != nil {
		return nil
	}
	tree, wrong := p.Parse(common.NewTextSource(text))
	if len(wrong.GetErrors()) > 0 {
		return nil
	}
	return tree.Expr()
}

// shape returns a text that two expressions share if they differ only by white space, comments, quotes and needless brackets.
func shape(e ast.Expr) string {
	switch e.Kind() {
	case ast.SelectKind:
		return fmt.Sprintf("%s.%q", shape(e.AsSelect().Operand()), e.AsSelect().FieldName())
	case ast.CallKind:
		var all []string
		if call := e.AsCall(); call.IsMemberFunction() {
			all = append(all, "of "+shape(call.Target()))
		}
		for _, part := range operands(e) {
			all = append(all, shape(part))
		}
		return e.AsCall().FunctionName() + "(" + strings.Join(all, ", ") + ")"
	}
	return debug.ToDebugString(e)
}

// operands returns the arguments of a call. Those of && and || may be calls of the same operator, whose arguments it returns instead.
func operands(e ast.Expr) []ast.Expr {
	operator := e.AsCall().FunctionName()
	if operator != operators.LogicalAnd && operator != operators.LogicalOr {
		return e.AsCall().Args()
	}
	var all []ast.Expr
	for _, part := range e.AsCall().Args() {
		if part.Kind() == ast.CallKind && part.AsCall().FunctionName() == operator {
			all = append(all, operands(part)...)
		} else {
			all = append(all, part)
		}
	}
	return all
}

// holds reports whether a rule holds, possibly because of one of its alternatives, since it only demands fields that the old schema
// requires, or the absence of fields that it did not declare.
func holds(e ast.Expr, was, is map[string]any) bool {
	holds := func(part ast.Expr) bool { return holds(part, was, is) }
	fails := func(part ast.Expr) bool { return !holds(part) }
	switch operator, parts := callOf(e); operator {
	case operators.LogicalOr:
		return slices.ContainsFunc(parts, holds)
	case operators.LogicalAnd:
		return !slices.ContainsFunc(parts, fails)
	case operators.LogicalNot:
		return never(parts[0], was, is)
	}
	return always(demanded(e), was)
}

// never reports whether an expression is false, since it demands fields that the old schema did not declare and dropped.
func never(e ast.Expr, was, is map[string]any) bool {
	never := func(part ast.Expr) bool { return never(part, was, is) }
	may := func(part ast.Expr) bool { return !never(part) }
	switch operator, parts := callOf(e); operator {
	case operators.LogicalOr:
		return !slices.ContainsFunc(parts, may)
	case operators.LogicalAnd:
		return slices.ContainsFunc(parts, never)
	}
	path := demanded(e)
	return len(path) > 0 && dropped(path[0], was) && object(object(is["properties"])[path[0]])["default"] == nil
}

// callOf returns the function and the arguments of a call that is not a method, or "".
func callOf(e ast.Expr) (function string, parts []ast.Expr) {
	if e == nil || e.Kind() != ast.CallKind || e.AsCall().IsMemberFunction() {
		return "", nil
	}
	return e.AsCall().FunctionName(), operands(e)
}

// demanded returns the names in has(self.name.name), or nil for any other expression.
func demanded(e ast.Expr) []string {
	function, parts := callOf(e)
	if function != "has" || len(parts) != 1 {
		return nil
	}
	return pathOf(parts[0])
}

// pathOf returns the names in self.name.name, or nil for any other expression.
func pathOf(e ast.Expr) []string {
	if e.Kind() != ast.SelectKind {
		return nil
	}
	name := e.AsSelect().FieldName()
	if of := e.AsSelect().Operand(); !isVariable(of, "self") {
		above := pathOf(of)
		if above == nil {
			return nil
		}
		return append(above, name)
	}
	return []string{name}
}

func isVariable(e ast.Expr, names ...string) bool {
	return e.Kind() == ast.IdentKind && slices.Contains(names, e.AsIdent())
}

// always reports whether every object of a schema has a field.
func always(path []string, was map[string]any) bool {
	for _, name := range path {
		required := slices.Contains(texts(was["required"]), name)
		if was = object(object(was["properties"])[name]); !required || was["nullable"] == true {
			return false
		}
	}
	return len(path) > 0
}

// dropped reports whether objects of a schema cannot have a field, because the schema did not declare it.
func dropped(name string, was map[string]any) bool {
	_, declared := object(was["properties"])[name]
	return !declared && !keeps(was) && was["additionalProperties"] == nil
}

// onlyNew reports whether a rule reads only optional fields that the old schema did not declare and dropped, and accepts objects
// without them.
func onlyNew(r rule, was, is map[string]any) bool {
	names, all := fieldsRead(r.parsed)
	fields := map[string]any{}
	for _, name := range names {
		declared, isNew := object(is["properties"])[name]
		if !isNew || !dropped(name, was) || object(declared)["default"] != nil { // with a default, every object has the field
			return false
		}
		fields[name] = declared
	}
	if all || len(fields) == 0 {
		return false
	}
	j, err := newJudged(whole(map[string]any{"type": "object", "properties": fields, "x-kubernetes-validations": []any{r.content}}))
	return err == nil && j.takes(map[string]any{})
}

// fieldsRead returns the fields of self and oldSelf that an expression reads. all is true if it may read all fields.
func fieldsRead(e ast.Expr) (names []string, all bool) {
	if e == nil {
		return nil, true
	}
	reads := 0 // how often the variables are read otherwise
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case isVariable(e, "self", "oldSelf"):
			reads++
		case e.Kind() == ast.SelectKind && isObject(e.AsSelect().Operand()):
			names = append(names, e.AsSelect().FieldName())
			reads--
		case e.Kind() != ast.CallKind:
		case e.AsCall().FunctionName() == operators.OptSelect && isObject(e.AsCall().Args()[0]):
			name, _ := e.AsCall().Args()[1].AsLiteral().Value().(string)
			names = append(names, name)
			reads--
		case isMethod(e, "hasValue"):
			reads--
		}
	}))
	return names, reads > 0
}

// isObject reports whether an expression is the whole object: self, oldSelf, or oldSelf.value().
func isObject(e ast.Expr) bool { return isVariable(e, "self", "oldSelf") || isMethod(e, "value") }

// isMethod reports whether an expression calls a method of self or oldSelf.
func isMethod(e ast.Expr, name string) bool {
	return e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() && e.AsCall().FunctionName() == name && isVariable(e.AsCall().Target(), "self", "oldSelf")
}
