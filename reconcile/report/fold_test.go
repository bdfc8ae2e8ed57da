package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// The verdict is that of the worst ruling or finding, whatever else there is. What a person approved does not block.
func TestVerdictIsTheWorst(t *testing.T) {
	words := []Word{Safe, Look, Blocked}
	worse := func(a, b Word) Word { return words[max(slices.Index(words, a), slices.Index(words, b))] }
	code := map[plan.Severity]reason.Code{plan.Note: reason.UnusedInCommit, plan.Look: reason.MergeDefault, plan.Block: reason.MergeBreaks}
	for of, word := range map[plan.Severity]Word{plan.Note: Safe, plan.Look: Look, plan.Block: Blocked} {
		for severity, found := range map[manifest.Severity]Word{"": Safe, manifest.Note: Safe, manifest.Warning: Look, manifest.Error: Blocked} {
			for _, action := range []plan.Action{plan.Update, plan.Hold} {
				for _, on := range []string{"commit", "step", "upgrade"} {
					for _, excused := range []bool{false, true} {
						s := Step{Action: action, ID: id("a"), approvable: true, excused: excused}
						r := Report{Preview: &Preview{}}
						want, by := worse(word, found), []ruled{{"g", code[of], of, 1, ""}}
						if s.rulings = by; on == "commit" {
							s.rulings, r.rulings = nil, by
						} else if of == plan.Block && excused {
							want = worse(Look, found)
						}
						if on == "upgrade" {
							r.Upgrades = []Step{s}
						} else {
							r.Steps = []Step{s}
						}
						if action == plan.Hold {
							want = worse(want, map[bool]Word{false: Blocked, true: Look}[excused])
						}
						if severity != "" {
							r.Findings = []manifest.Finding{{Severity: severity}}
						}
						if severity == manifest.Warning {
							r.Preview.Warnings = 1
						}
						if got := r.On(nil); got.Judgement.Word != want || (got.Verdict.ExitCode != ExitSuccess) != (want == Blocked) {
							t.Errorf("ruling %d on a %s, finding %q, %s, excused %t: %s with exit code %d, want %s", of, on, severity, action, excused, got.Judgement.Word, got.Verdict.ExitCode, want)
						}
					}
				}
			}
		}
	}
}

// A ruling for which nobody wrote words must not be lost.
func TestVerdictOfUnknownRulings(t *testing.T) {
	for severity, word := range map[plan.Severity]Word{plan.Note: Safe, plan.Look: Look, plan.Block: Blocked} {
		if got := Judge(Report{rulings: []ruled{{"g", "Unknown", severity, 1, ""}}}); got.Word != word {
			t.Errorf("a ruling of the severity %d with an unknown code is %s, want %s", severity, got.Word, word)
		}
	}
	silent := []reason.Code{reason.UsedInCommit, reason.UnusedInCommit, reason.ControlUnknown}
	files, err := filepath.Glob("../guard/merge_*.go")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files of guards: %v", len(files), err)
	}
	for code, d := range given.Codes(t, "../reason") {
		merges := slices.ContainsFunc([]string{"on merges", "guard used", "guard inactive", "guard dropped", "guard unjudged", "guard unread", "guards activates", "guards signatures", "guards of the phase Merge"}, func(of string) bool {
			return strings.Contains(d.Group, of)
		})
		if merges && !worded[weighed{Safe, code}] && !worded[weighed{Look, code}] && !worded[weighed{Blocked, code}] && !slices.Contains(silent, code) {
			t.Errorf("no row of the judgement has words for %s", code)
		}
	}
}

// Only guards decide what is dangerous. The files that fold their rulings look at nothing else of a change, and no file of the package
// compares the name of a guard.
func TestVerdictDecidesNothing(t *testing.T) {
	folds := []string{"judge.go", "ask.go", "threshold.go", "preview.go", "verdict.go", "sent.go"}
	facts := []string{"Breaks", "Changes", "alters", "active", "Rule", "UsedAt", "ConversionAdded"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if match, _ := filepath.Match("*_test.go", name); match {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || slices.Contains([]string{"marksOf", "mark", "Explain"}, f.Name.Name) { // they carry or word a change
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if field, is := n.(*ast.SelectorExpr); is && slices.Contains(folds, name) && slices.Contains(facts, field.Sel.Name) && isChange(field) {
					t.Errorf("%s: %s reads %s: a guard has to rule on it", set.Position(n.Pos()), f.Name.Name, field.Sel.Name)
				}
				if comparesGuard(n) {
					t.Errorf("%s: %s compares the name of a guard", set.Position(n.Pos()), f.Name.Name)
				}
				return true
			})
		}
	}
}

// isChange reports whether a selection is not one of a finding, of a report or of package approval.
func isChange(of *ast.SelectorExpr) bool {
	x, is := of.X.(*ast.Ident)
	return !is || !slices.Contains([]string{"f", "r", "approval"}, x.Name)
}

// comparesGuard reports whether a node compares a field Guard with anything but "", or switches on it.
func comparesGuard(n ast.Node) bool {
	isGuard := func(e ast.Expr) bool {
		field, is := e.(*ast.SelectorExpr)
		return is && field.Sel.Name == "Guard"
	}
	switch n := n.(type) {
	case *ast.SwitchStmt:
		return isGuard(n.Tag)
	case *ast.BinaryExpr:
		empty := func(e ast.Expr) bool {
			text, is := e.(*ast.BasicLit)
			return is && text.Value == `""`
		}
		return (n.Op == token.EQL || n.Op == token.NEQ) && (isGuard(n.X) && !empty(n.Y) || isGuard(n.Y) && !empty(n.X))
	}
	return false
}
