package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
)

// An expression is one of CEL over the fields of an object.
type expression struct{ cel.Program }

// The limits of an expression. Whoever writes a Sync may be hostile, and so may be who writes the object: together they must not take the
// memory of the process, or its time. The cost bounds loops and what calls read. It is counted after each call, so expressions have no functions
// with which one call makes a large value of small ones, or works for long over one.
const (
	mostCost = 100_000 // steps
	mostSums = 10      // additions, each of which may copy a string
	between  = 10      // steps of a loop between looks at the context
)

// functions are those that an expression may call, beside operators.
var functions = []string{
	"all", "contains", "duration", "double", "dyn", "endsWith", "exists", "exists_one", "filter", "has", "hasValue", "int", "lowerAscii", "none", "of",
	"ofNonZeroValue", "or", "orValue", "size", "split", "startsWith", "string", "timestamp", "trim", "type", "uint", "upperAscii", "value",
}

// operations are the functions that expressions write as operators.
var operations = []string{
	operators.Add, operators.Conditional, operators.Divide, operators.Equals, operators.Greater, operators.GreaterEquals, operators.In, operators.Index,
	operators.Less, operators.LessEquals, operators.LogicalAnd, operators.LogicalNot, operators.LogicalOr, operators.Modulo, operators.Multiply,
	operators.Negate, operators.NotEquals, operators.OptIndex, operators.OptSelect, operators.Subtract,
}

// environments returns how expressions are read: without macros, as they are written, and as they are evaluated. Both are those of Flux.
var environments = sync.OnceValues(func() (written, evaluated *cel.Env) {
	common := []cel.EnvOption{
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(), ext.Strings(), cel.ClearMacros(),
	}
	written, err := cel.NewEnv(common...)
	if err == nil {
		evaluated, err = written.Extend(cel.Macros(cel.HasMacro, cel.AllMacro, cel.ExistsMacro, cel.ExistsOneMacro, cel.FilterMacro))
	}
	if err != nil {
		panic(err) // the options are constants
	}
	return written, evaluated
})

// compile returns an expression. Fields are not known before an object is, so only the grammar and the functions are checked.
func compile(text string) (expression, error) {
	written, evaluated := environments()
	raw, err := parse(written, text)
	if err == nil {
		err = allowed(raw)
	}
	if err != nil {
		return expression{}, err
	}
	expanded, err := parse(evaluated, text)
	if err == nil {
		err = complete(expanded)
	}
	if err != nil {
		return expression{}, err
	}
	program, err := evaluated.Program(expanded, cel.CostTracking(size{}), cel.CostLimit(mostCost), cel.InterruptCheckFrequency(between))
	return expression{program}, err
}

// parse returns the syntax tree of an expression.
func parse(how *cel.Env, text string) (*cel.Ast, error) {
	tree, issues := how.Parse(text)
	if issues.Err() == nil {
		return tree, nil
	}
	first := issues.Errors()[0]
	return nil, fmt.Errorf("column %d: %s", first.Location.Column()+1, strings.ReplaceAll(first.Message, "\n", " "))
}

// allowed returns an error for an expression that may be expensive, see functions.
func allowed(raw *cel.Ast) error {
	var first error
	sums := 0
	ast.PostOrderVisit(raw.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if first == nil {
			first = allowedPart(e)
		}
		if isCallOf(e, operators.Add) {
			sums++
		}
	}))
	if first == nil && sums > mostSums {
		return fmt.Errorf("has %d additions; at most %d are supported", sums, mostSums)
	}
	return first
}

// allowedPart returns an error for a part of an expression that may be expensive, whatever its own parts are.
func allowedPart(e ast.Expr) error {
	switch e.Kind() {
	case ast.CallKind:
		if !isCallOf(e, operations...) && !isCallOf(e, functions...) {
			return fmt.Errorf("the function %s is not supported: use %s", e.AsCall().FunctionName(), strings.Join(functions, ", "))
		}
	case ast.ListKind:
		if slices.ContainsFunc(e.AsList().Elements(), func(e ast.Expr) bool { return e.Kind() != ast.LiteralKind }) {
			return errors.New("a list may contain only constants")
		}
	case ast.MapKind, ast.StructKind:
		return errors.New("an expression cannot contain a map")
	default:
	}
	return nil
}

// isCallOf reports whether a part of an expression calls one of some functions.
func isCallOf(e ast.Expr, names ...string) bool {
	return e.Kind() == ast.CallKind && slices.Contains(names, e.AsCall().FunctionName())
}

// loops are the functions that are no more there once an expression is expanded.
var loops = []string{"all", "exists", "exists_one", "filter"}

// complete returns an error if an expression has a loop with too few or too many arguments.
func complete(expanded *cel.Ast) (err error) {
	ast.PostOrderVisit(expanded.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if isCallOf(e, loops...) {
			err = fmt.Errorf("%s needs a variable and a condition, as in list.%[1]s(c, c.type == 'Ready')", e.AsCall().FunctionName())
		}
	}))
	return err
}

// holds reports whether the expression is true for an object. It returns an error if it is neither true nor false, or takes too long.
func (e expression) holds(ctx context.Context, object map[string]any) (bool, error) {
	value, _, err := e.ContextEval(ctx, object)
	if err != nil {
		return false, err
	}
	yes, is := value.(types.Bool)
	if !is {
		return false, fmt.Errorf("is %s, and neither true nor false", value.Type().TypeName())
	}
	return bool(yes), nil
}
