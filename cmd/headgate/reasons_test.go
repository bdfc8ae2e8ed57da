package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// core lists the packages that build reasons. Package words turns them into sentences.
var core = []string{"reconcile/baseline", "reconcile/fit", "reconcile/guard", "reconcile/installed", "reconcile/plan", "reconcile/facts", "reconcile/demand", "reconcile/record", "reconcile/draft", "reconcile/rounds", "reconcile/reason"}

// mayHaveSentences lists the functions of the core that may build or search sentences, and why.
var mayHaveSentences = map[string]string{
	"cycle":           "its error is about the text of the commit",
	"replacementOf":   "it is the key of a memo",
	"bumps":           "a package that was not compared has an error and no step",
	"some":            "it is a part of a finding",
	"areActive":       "it is a part of a finding",
	"usage":           "an object of the cluster has it, and no report",
	"unknown":         "a package that was not compared has an error and no step",
	"unchangedCopies": "a package that was not compared has an error and no step",
}

// Reasons are values: the core neither compares nor builds the sentences that users read.
func TestReasonsAreValues(t *testing.T) {
	used := map[string]bool{}
	for _, f := range readSources(t) {
		if f.forTests() || !slices.Contains(core, path.Dir(f.path)) {
			continue
		}
		found, err := sentencesIn(filepath.Join(root(t), filepath.FromSlash(f.path)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			used[s.in] = true
			if mayHaveSentences[s.in] == "" {
				t.Errorf("%s:%d: %s: %s; use a plan.Reason, and word it in reconcile/words/words.go", f.path, s.line, s.in, s.what)
			}
		}
	}
	for name := range mayHaveSentences {
		if !used[name] {
			t.Errorf("%s has no sentences any more; take it out of the list", name)
		}
	}
}

func TestSentences(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		source string
		want   bool
	}{
		"Search":        {"The wording of a reason would decide.", `_ = strings.Contains(s.Reason.String(), "in use")`, true},
		"SearchError":   {"An error of the core has a code to compare.", `_ = strings.HasPrefix(s.Err.Error(), "not sent")`, true},
		"SearchOther":   {"Names may be searched.", `_ = strings.HasPrefix(id.Name, "headgate-")`, false},
		"Compare":       {"The wording of a reason would decide.", `_ = s.Reason.String() == "it is in use"`, true},
		"CompareError":  {"The wording of an error would decide.", `_ = err.Error() != other.Error()`, true},
		"CompareCode":   {"Codes may be compared.", `_ = s.Reason.Code == InUse`, false},
		"Sentence":      {"A reason's value must not be a sentence.", `_ = InUse.With("it is in use")`, true},
		"SentenceMade":  {"A reason's value must not be a composed sentence.", `_ = InUse.With("the " + id.Name)`, true},
		"SentencePrint": {"A reason's value must not be a formatted sentence.", `_ = InUse.With(fmt.Sprintf("%d objects", n))`, true},
		"Values":        {"Numbers, identities, names, errors and reasons are valid values.", `_ = InUse.With(n, id, "default", err.Error(), why.With(1))`, false},
		"Printed":       {"A reason could contain the formatted sentence.", `_ = fmt.Sprintf("%d objects", n)`, true},
		"Added":         {"A reason could contain the composed sentence.", `_ = by + " owns it"`, true},
		"AddedName":     {"Names may be composed.", `_ = plural + "." + group`, false},
		"Finding":       {"A finding may have sentences, because its rule is its code.", `_ = Finding{Message: fmt.Sprintf("%d objects", n), Fix: "delete " + name}`, false},
		"FindingLater":  {"A finding may have sentences, because its rule is its code.", `f.Message = fmt.Sprintf("%d objects", n)`, false},
		"FindingReason": {"The finding's text would contain the reason's code.", `_ = Finding{Message: fmt.Sprintf("it stays: %s", why)}`, true},
		"FindingError":  {"The error of a step may be a reason.", `f.Message = fmt.Sprintf("it stays: %v", s.Err)`, true},
		"FindingUnread": {"An error that is not a reason has no code.", `f.Message = u.Err.Error() + "; it stays"`, false},
		"Error":         {"The error of a commit may be a sentence.", `return fmt.Errorf("%s: it is %w", origin, err)`, false},
		"StepError":     {"The error of a step must be a reason.", `s.Err = fmt.Errorf("not sent: %w", err)`, true},
		"StepErrorIn":   {"The error of a new step must be a reason.", `_ = Step{Err: errors.New("not sent")}`, true},
	} {
		got, err := sentencesIn("x.go", "package p\nfunc f() error {\n"+tc.source+"\n}")
		if err != nil || (len(got) > 0) != tc.want {
			t.Errorf("%s: %s sentencesIn(%s) = %v, %v", name, tc.reason, tc.source, got, err)
		}
	}
}

// A sentence is a place in the core that builds or searches text for users.
type sentence struct {
	line int
	in   string // the function
	what string
}

// sentencesIn returns the sentences in a Go file.
func sentencesIn(file string, source any) ([]sentence, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []sentence
	for _, d := range tree.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is || f.Name.Name == "String" || f.Name.Name == "Error" {
			continue
		}
		add := func(at ast.Node, what string) {
			found = append(found, sentence{set.Position(at.Pos()).Line, f.Name.Name, what})
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				return descend(nameOf(n.Key), n.Value, add)
			case *ast.AssignStmt:
				return len(n.Lhs) != 1 || descend(nameOf(n.Lhs[0]), n.Rhs[0], add)
			case *ast.BinaryExpr:
				switch n.Op {
				case token.EQL, token.NEQ:
					if isSaid(n.X) || isSaid(n.Y) {
						add(n, "it compares a text for people")
					}
				case token.ADD:
					if isProse(n.X) || isProse(n.Y) {
						add(n, "it composes a sentence")
						return false
					}
				}
			case *ast.CallExpr:
				switch of, name := called(n); {
				case of == "strings" && slices.ContainsFunc(n.Args, isSaid):
					add(n, "it searches a text for people")
				case of == "fmt" && strings.HasPrefix(name, "Sprint"):
					if len(n.Args) > 0 && isProse(n.Args[0]) {
						add(n, "it composes a sentence")
					}
				case of == "fmt", of == "errors":
					return false // an error returned to the caller
				case name == "With":
					if i := slices.IndexFunc(n.Args, isProse); i >= 0 {
						add(n.Args[i], "the value of a reason is a sentence")
					}
					if slices.ContainsFunc(n.Args, isAdded) {
						add(n, "it composes the value of a reason")
					}
				}
			}
			return true
		})
	}
	return found, nil
}

// descend reports whether to inspect the value of a field or variable further. The text of a finding may be a sentence, but must
// not print a reason. The error of a step must not be a sentence.
func descend(name string, value ast.Expr, add func(ast.Node, string)) bool {
	if call, is := value.(*ast.CallExpr); is && name == "Err" {
		if of, _ := called(call); of == "fmt" || of == "errors" {
			add(call, "the error of a step is a sentence")
		}
	}
	if name != "Message" && name != "Fix" {
		return true
	}
	ast.Inspect(value, func(n ast.Node) bool {
		if call, is := n.(*ast.CallExpr); is {
			if of, _ := called(call); of == "fmt" && slices.ContainsFunc(call.Args, isReason) {
				add(call, "a finding prints a reason, whose text is its code")
			}
		}
		return true
	})
	return false
}

// reasonNames are the names of variables and fields that hold reasons, or errors of steps, which may be reasons.
var reasonNames = []string{"Reason", "reason", "why", "Why", "Unknown", "NotReady", "Err"}

// isReason reports whether an expression holds a reason, judging by its name.
func isReason(e ast.Expr) bool { return slices.Contains(reasonNames, nameOf(e)) }

// nameOf returns the name of a variable or field.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// called returns the package or variable of a call, and the name of the function.
func called(call *ast.CallExpr) (of, name string) {
	if s, is := call.Fun.(*ast.SelectorExpr); is {
		return nameOf(s.X), s.Sel.Name
	}
	return "", nameOf(call.Fun)
}

// isSaid reports whether an expression is an error or a reason as text.
func isSaid(e ast.Expr) bool {
	call, is := e.(*ast.CallExpr)
	if !is {
		return false
	}
	s, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	of := nameOf(s.X)
	return s.Sel.Name == "Error" || s.Sel.Name == "String" && slices.Contains([]string{"Reason", "reason", "why", "Unknown", "NotReady"}, of)
}

// isProse reports whether an expression is a literal of more than one word.
func isProse(e ast.Expr) bool {
	l, is := e.(*ast.BasicLit)
	return is && l.Kind == token.STRING && strings.ContainsFunc(l.Value, func(r rune) bool { return r >= 'a' && r <= 'z' }) && strings.Contains(l.Value, " ")
}

// isAdded reports whether an expression joins a literal with other texts.
func isAdded(e ast.Expr) bool {
	b, is := e.(*ast.BinaryExpr)
	return is && b.Op == token.ADD && (isProse(b.X) || isProse(b.Y) || isAdded(b.X))
}
