package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "headgate.dev/headgate"

// mayImport is the architecture: every package, and the packages of ours that it may
// import. Arrows point one way, from the edge to the pure middle:
//
//	manifest ◄── catalogue ◄── activation ◄─┐                 schema, lint
//	                 ▲ ▲─────── packages ◄──┼── render ◄── plan ◄── report ◄── reconcile ◄── target ◄── cmd
//	                 └──────── crd ◄────────┘
//	   git, registry ──► render      memo      cluster ──► render, plan      forge, outbox, metrics ──► report
//
// Between manifest and catalogue stand crossplane and kustomize, and beside catalogue xpkg. A new arrow is decided in
// review. "a/..." is a and everything below it. Tests and what they are fed with, fixtures and examples,
// may import what they like. Nothing imports them, except that cmd embeds the CI files of examples.
var mayImport = map[string][]string{
	// The files of one commit become the objects that it wants.
	"render/manifest":         {},
	"render/xpkg":             {},
	"render/crossplane":       {"render/manifest"},
	"render/catalogue":        {"render/crossplane", "render/kustomize", "render/manifest", "render/xpkg"},
	"render/packages":         {"render/catalogue", "render/crossplane", "render/manifest"},
	"render/activation":       {"render/catalogue", "render/crossplane", "render/manifest"},
	"render/crd":              {"render/catalogue", "render/crossplane", "render/manifest"},
	"render/kustomize":        {"render/crossplane", "render/manifest"},
	"render":                  {"render/activation", "render/catalogue", "render/crd", "render/crossplane", "render/manifest", "render/packages", "render/reads"},
	"render/reads":            {},
	"render/schema":           {"render/crossplane", "render/manifest"},
	"render/check":            {"render", "render/crd", "render/crossplane", "render/manifest", "render/schema"},
	"render/crossplane/kinds": {"render/check", "render/crd", "render/crossplane", "render/schema"},
	"render/uses":             {"render", "render/catalogue", "render/crossplane", "render/manifest"},
	"render/suggest":          {"render", "render/activation", "render/catalogue", "render/crossplane", "render/manifest", "render/uses"},
	"render/lint":             {"render", "render/catalogue", "render/check", "render/check/kubernetes", "render/crossplane", "render/crossplane/kinds", "render/manifest", "render/schema", "render/uses"},

	"render/check/kubernetes": {"render", "render/check", "render/manifest", "render/schema"},

	// The wanted, seen and owned objects become one plan, and the plan a report. Compute takes the guards as arguments.
	"reconcile/approval":  {"reconcile/inventory", "render/manifest"},
	"reconcile/inventory": {"render", "render/catalogue", "render/crossplane", "render/manifest", "render/packages"},
	"reconcile/ownership": {"reconcile/inventory", "render", "render/crossplane"},
	"reconcile/diff":      {"reconcile/inventory", "reconcile/ownership", "render/manifest"},
	"reconcile/installed": {"render", "render/catalogue", "render/crossplane", "render/manifest"},
	"reconcile/jsonpath":  {},
	"reconcile/preflight": {"render", "render/crossplane", "render/manifest"},
	"reconcile/reason": {
		"reconcile/inventory",
	},
	"reconcile/plan": {
		"reconcile/approval", "reconcile/diff", "reconcile/inventory", "reconcile/ownership", "reconcile/question", "reconcile/reason",
		"render", "render/activation", "render/catalogue", "render/crossplane", "render/lint", "render/manifest", "render/schema",
	},
	"reconcile/facts": {
		"reconcile/approval", "reconcile/diff", "reconcile/inventory", "reconcile/jsonpath", "reconcile/ownership", "reconcile/plan", "reconcile/question", "reconcile/reason",
		"render", "render/activation", "render/crossplane", "render/manifest", "render/schema",
	},
	"reconcile/demand": {
		"reconcile/diff", "reconcile/facts", "reconcile/inventory", "reconcile/jsonpath", "reconcile/ownership", "reconcile/plan", "reconcile/reason",
		"render", "render/catalogue", "render/crossplane", "render/manifest",
	},
	"reconcile/record": {
		"reconcile/approval", "reconcile/inventory", "reconcile/plan",
		"render", "render/manifest",
	},
	"reconcile/draft": {
		"reconcile/approval", "reconcile/demand", "reconcile/diff", "reconcile/facts", "reconcile/installed", "reconcile/inventory", "reconcile/ownership", "reconcile/plan", "reconcile/question", "reconcile/reason", "reconcile/record",
		"render", "render/catalogue", "render/crossplane", "render/manifest",
	},
	"reconcile/question": {"reconcile/approval", "reconcile/reason", "render/manifest"},
	"reconcile/baseline": {
		"reconcile/demand", "reconcile/facts", "reconcile/inventory", "reconcile/plan", "reconcile/question", "reconcile/reason",
		"render", "render/catalogue", "render/crossplane", "render/manifest", "render/schema",
	},
	"reconcile/fit": {
		"reconcile/plan", "reconcile/question", "reconcile/reason",
		"render/crd", "render/crossplane", "render/manifest", "render/schema",
	},
	"reconcile/guard": {
		"reconcile/approval", "reconcile/demand", "reconcile/diff", "reconcile/draft", "reconcile/facts", "reconcile/impact", "reconcile/inventory", "reconcile/ownership", "reconcile/plan", "reconcile/question", "reconcile/reason",
		"render", "render/activation", "render/catalogue", "render/crossplane", "render/manifest", "render/schema", "render/uses",
	},
	"reconcile/impact":  {"render/crossplane", "render/manifest"},
	"reconcile/legible": {},
	"reconcile/memory":  {"render", "render/crossplane", "render/manifest"},
	"reconcile/words": {
		"reconcile/diff", "reconcile/facts", "reconcile/legible", "reconcile/plan", "reconcile/reason",
		"render/crossplane", "render/manifest",
	},
	"reconcile/report": {
		"reconcile/approval", "reconcile/diff", "reconcile/facts", "reconcile/inventory", "reconcile/legible", "reconcile/memory", "reconcile/plan", "reconcile/reason", "reconcile/words",
		"render", "render/activation", "render/catalogue", "render/check", "render/crossplane", "render/lint", "render/manifest",
	},
	"reconcile/engine": {},
	"reconcile/intern": {},
	"reconcile/manual": {},
	"reconcile/rounds": {
		"reconcile/plan", "reconcile/reason",
		"render/crossplane", "render/manifest",
	},
	"reconcile": {
		"reconcile/approval", "reconcile/baseline", "reconcile/demand", "reconcile/draft", "reconcile/engine", "reconcile/facts", "reconcile/guard", "reconcile/inventory", "reconcile/plan", "reconcile/question", "reconcile/reason", "reconcile/report", "reconcile/rounds", "reconcile/trace", "reconcile/words",
		"render", "render/catalogue", "render/check", "render/crossplane", "render/lint", "render/manifest", "render/packages",
	},
	"reconcile/upgrade": {
		"reconcile", "reconcile/plan", "reconcile/report",
		"render", "render/crossplane", "render/manifest", "render/packages",
	},

	// Adapters hang off the side. They import neither each other nor their callers.
	"reconcile/network":     {},
	"reconcile/scratch":     {},
	"reconcile/health":      {"reconcile/api/v1alpha1"},
	"reconcile/disk":        {},
	"reconcile/git":         {"reconcile/disk", "reconcile/engine", "reconcile/git/remote", "reconcile/git/signing", "reconcile/network", "reconcile/scratch", "render"},
	"reconcile/git/remote":  {"reconcile/network"},
	"reconcile/git/signing": {},
	"reconcile/registry":    {"reconcile/disk", "reconcile/legible", "reconcile/network", "reconcile/scratch", "render", "render/catalogue", "render/crossplane", "render/manifest", "render/packages", "render/xpkg"},
	"reconcile/artifact":    {"reconcile/disk", "reconcile/network", "reconcile/scratch", "render"},
	"reconcile/memo":        {},
	"reconcile/cluster": {
		"reconcile/cluster/api", "reconcile/cluster/count", "reconcile/cluster/observe", "reconcile/cluster/store", "reconcile/cluster/watch", "reconcile/cluster/write", "reconcile/facts", "reconcile/health", "reconcile/inventory", "reconcile/plan", "reconcile/preflight", "reconcile/question", "reconcile/reason",
		"render", "render/catalogue", "render/crossplane", "render/manifest", "render/packages",
	},
	"reconcile/cluster/api": {
		"reconcile/diff", "reconcile/engine", "reconcile/facts", "reconcile/intern", "reconcile/inventory", "reconcile/legible", "reconcile/ownership", "reconcile/plan", "reconcile/reason",
		"render", "render/manifest",
	},
	"reconcile/cluster/store": {
		"reconcile/cluster/api", "reconcile/engine", "reconcile/facts", "reconcile/inventory", "reconcile/preflight", "reconcile/reason",
		"render", "render/crossplane", "render/manifest",
	},
	"reconcile/cluster/count": {
		"reconcile/cluster/api", "reconcile/facts", "reconcile/fit", "reconcile/health", "reconcile/inventory", "reconcile/ownership", "reconcile/plan", "reconcile/question", "reconcile/reason",
		"render/crossplane", "render/manifest",
	},
	"reconcile/cluster/observe": {
		"reconcile/cluster/api", "reconcile/cluster/count", "reconcile/cluster/store", "reconcile/demand", "reconcile/diff", "reconcile/facts", "reconcile/inventory", "reconcile/ownership", "reconcile/plan", "reconcile/question", "reconcile/reason",
		"render", "render/catalogue", "render/crossplane", "render/manifest", "render/packages",
	},
	"reconcile/cluster/established": {
		"reconcile/cluster/api", "reconcile/cluster/count", "reconcile/engine", "reconcile/facts", "reconcile/inventory", "reconcile/plan", "reconcile/reason",
	},
	"reconcile/cluster/write": {
		"reconcile/cluster/api", "reconcile/cluster/count", "reconcile/cluster/established", "reconcile/cluster/store", "reconcile/diff", "reconcile/engine", "reconcile/facts", "reconcile/health", "reconcile/inventory", "reconcile/ownership", "reconcile/plan", "reconcile/question", "reconcile/reason", "reconcile/record",
		"render", "render/crossplane", "render/manifest",
	},
	"reconcile/cluster/watch": {
		"reconcile/cluster/api", "reconcile/cluster/established", "reconcile/cluster/store", "reconcile/engine", "reconcile/inventory",
		"render", "render/manifest",
	},
	"reconcile/forge":   {"reconcile/approval", "reconcile/inventory", "reconcile/legible", "reconcile/network", "reconcile/preflight", "reconcile/report"},
	"reconcile/board":   {"reconcile/inventory", "reconcile/report"},
	"reconcile/outbox":  {"reconcile/engine", "reconcile/intern", "reconcile/report"},
	"reconcile/metrics": {"reconcile/report"},
	"reconcile/trace":   {"reconcile/network", "reconcile/reason"},
	"reconcile/audit":   {"reconcile/plan", "reconcile/report"},

	// Only these put adapters together.
	"reconcile/api/v1alpha1": {},
	"reconcile/api":          {"reconcile/api/v1alpha1", "reconcile/health"},
	"reconcile/target": {
		"reconcile", "reconcile/api/v1alpha1", "reconcile/approval", "reconcile/artifact", "reconcile/audit", "reconcile/board", "reconcile/cluster", "reconcile/diff", "reconcile/disk", "reconcile/engine", "reconcile/facts", "reconcile/forge", "reconcile/git", "reconcile/guard", "reconcile/health",
		"reconcile/impact", "reconcile/install", "reconcile/inventory", "reconcile/memo", "reconcile/network",
		"reconcile/outbox", "reconcile/plan", "reconcile/preflight", "reconcile/question", "reconcile/reason", "reconcile/registry", "reconcile/report", "reconcile/scratch", "reconcile/trace", "reconcile/words", "render/...",
	},
	"reconcile/fleet": {"reconcile", "reconcile/api/v1alpha1", "reconcile/audit", "reconcile/inventory", "reconcile/metrics", "reconcile/target"},
	"reconcile/controller": {
		"reconcile", "reconcile/api/v1alpha1", "reconcile/approval", "reconcile/audit", "reconcile/cluster", "reconcile/engine", "reconcile/facts", "reconcile/fleet", "reconcile/intern", "reconcile/inventory", "reconcile/legible", "reconcile/metrics", "reconcile/plan", "reconcile/reason", "reconcile/report", "reconcile/target",
		"render", "render/schema",
	},
	"reconcile/install": {"render/crossplane", "render/schema"},
	"cmd/headgate":      {"examples", "reconcile/...", "render/..."},
}

// pure packages take values and return values.
var pure = []string{
	"render/...", "reconcile/approval", "reconcile/baseline", "reconcile/demand", "reconcile/diff", "reconcile/draft", "reconcile/facts", "reconcile/fit", "reconcile/guard", "reconcile/health", "reconcile/impact", "reconcile/installed", "reconcile/inventory", "reconcile/jsonpath", "reconcile/legible", "reconcile/memory", "reconcile/ownership",
	"reconcile/plan", "reconcile/preflight", "reconcile/question", "reconcile/reason", "reconcile/record", "reconcile/report", "reconcile/rounds", "reconcile/words",
}

// impure lists what a pure package must not import: clock, disk, network, logger, ambient state, and cluster clients. fs.FS and
// unstructured are fine.
var impure = []string{
	"os/...", "path/filepath", "io/ioutil", "syscall/...",
	"net/...",
	"time",
	"log/...", "k8s.io/klog/...", "github.com/go-logr/...",
	"math/rand/...", "crypto/rand",
	"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...",
}

// harmless are parts of impure libraries that only hold data.
var harmless = []string{"k8s.io/client-go/applyconfigurations"}

// livesIn lists the libraries that only some packages, or one file, may import. The longest prefix counts.
var livesIn = map[string][]string{
	"github.com/go-git/go-git":               {"reconcile/git", "reconcile/git/remote", "reconcile/git/signing"},
	"github.com/google/cel-go":               {"render/schema", "reconcile/health"},
	"github.com/google/go-containerregistry": {"render/xpkg", "reconcile/registry"},
	"sigs.k8s.io/cli-utils":                  {}, // except its object IDs:
	"sigs.k8s.io/cli-utils/pkg/common":       {"reconcile/inventory"},
	"sigs.k8s.io/cli-utils/pkg/object":       {"reconcile/inventory", "reconcile/facts", "reconcile/demand"},

	"sigs.k8s.io/cli-utils/pkg/object/dependson": {"reconcile/demand/depends.go"},
	"sigs.k8s.io/cli-utils/pkg/object/mutation":  {"reconcile/demand/reference.go", "reconcile/facts/reference.go"},
	"github.com/spyzhov/ajson":                   {"reconcile/jsonpath"},

	"github.com/fluxcd/pkg/ssa": {"reconcile/cluster/api", "reconcile/cluster/write"},
	"github.com/sigstore":       {"reconcile/registry"},
	"sigs.k8s.io/crdify":        {"render/schema"},

	"sigs.k8s.io/controller-runtime/pkg/controller": {"reconcile/engine/queue.go", "reconcile/controller"},
	"sigs.k8s.io/kustomize":                         {"render/kustomize"},

	"k8s.io/client-go/applyconfigurations": {"render/check/kubernetes"},

	"github.com/prometheus/client_golang": {"reconcile/metrics"},
	"go.opentelemetry.io":                 {"reconcile/trace"},
}

// usesOnly lists the only libraries that a package may import, so that other programs can import it without the rest of Headgate.
var usesOnly = map[string][]string{"reconcile/api/v1alpha1": {"k8s.io/apimachinery/..."}}

// judged lists the packages whose tests may import kstatus, to compare with it.
var judged = []string{"reconcile/controller"}

// forbidden lists packages that nothing may import, not even a test.
var forbidden = []string{
	"k8s.io/kubernetes/...",                 // tests start it from its own module, fixtures/server/controlplane
	"sigs.k8s.io/cli-utils/pkg/apply/...",   // cluster applies
	"sigs.k8s.io/cli-utils/pkg/kstatus/...", // fluxcd/pkg/ssa has its own
}

// foundations are libraries that the design requires. Each must do real work.
var foundations = []string{
	"github.com/fluxcd/pkg/ssa", "github.com/go-git/go-git/v5", "k8s.io/client-go", "sigs.k8s.io/cli-utils", "sigs.k8s.io/kustomize/api",
}

// topLevel lists everything at the top of the repository, except dot files and bin.
var topLevel = []string{
	"cmd", "examples", "fixtures", "reconcile", "render",
	"CHANGELOG.md", "LICENSE", "Makefile", "NOTICE", "README.md", "go.mod", "go.sum",
}

func TestArchitecture(t *testing.T) {
	for _, f := range readSources(t) {
		if _, listed := mayImport[f.pkg]; !listed && !f.forTests() {
			t.Errorf("%s: package %s has no row in mayImport: decide in review what it may import", f.path, f.pkg)
			continue
		}
		for _, imp := range f.imports {
			for _, objection := range objections(f, imp.path) {
				t.Errorf("%s: %s", imp.position, objection)
			}
		}
	}
}

// An unused row would let the next import pass without review.
func TestEveryArrowIsUsed(t *testing.T) {
	used := map[string]bool{}
	exists := map[string]bool{}
	for _, f := range readSources(t) {
		if f.forTests() {
			continue
		}
		exists[f.pkg] = true
		for _, imp := range f.imports {
			if own, ours := strings.CutPrefix(imp.path, module+"/"); ours {
				used[f.pkg+" → "+own] = true
			}
		}
	}
	for pkg, others := range mayImport {
		if !exists[pkg] {
			t.Errorf("mayImport has a row for %s, and there is no such package", pkg)
			continue
		}
		for _, other := range others {
			is := func(arrow string) bool {
				_, to, _ := strings.Cut(arrow, " → ")
				return strings.HasPrefix(arrow, pkg+" → ") && covers([]string{other}, to)
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), is) {
				t.Errorf("mayImport lets %s import %s, and it does not", pkg, other)
			}
		}
	}
}

// objections returns the rules that an import breaks.
func objections(f source, imp string) []string {
	var all []string
	judge := f.test && slices.Contains(judged, f.pkg) && covers([]string{"sigs.k8s.io/cli-utils/pkg/kstatus/..."}, imp)
	if covers(forbidden, imp) && !judge {
		all = append(all, fmt.Sprintf("%q is imported nowhere", imp))
	}
	if f.forTests() {
		return all
	}
	if own, ours := strings.CutPrefix(imp, module+"/"); ours && !covers(mayImport[f.pkg], own) {
		all = append(all, fmt.Sprintf("%s imports %s, which its row in mayImport does not list", f.pkg, own))
	}
	if covers(pure, f.pkg) && covers(impure, imp) && !covers(harmless, imp) {
		all = append(all, fmt.Sprintf("%s is pure and imports %q", f.pkg, imp))
	}
	first, _, _ := strings.Cut(imp, "/")
	if libraries, few := usesOnly[f.pkg]; few && strings.Contains(first, ".") && !covers(libraries, imp) {
		all = append(all, fmt.Sprintf("%s imports %q, and may import only these libraries: %q", f.pkg, imp, libraries))
	}
	if homes, hidden := home(imp); hidden && !slices.Contains(homes, f.pkg) && !slices.Contains(homes, f.path) {
		all = append(all, fmt.Sprintf("%s imports %q, which only these may: %q", f.pkg, imp, homes))
	}
	return all
}

func TestObjections(t *testing.T) {
	cases := map[string]struct {
		reason string
		file   source
		path   string
		want   int
	}{
		"Listed":         {"The table contains this arrow.", source{pkg: "reconcile/plan"}, module + "/render", 0},
		"AgainstArrow":   {"A pure package must not import its users.", source{pkg: "render"}, module + "/reconcile/plan", 1},
		"BesideArrow":    {"Adapters must not import each other.", source{pkg: "reconcile/git"}, module + "/reconcile/cluster", 1},
		"Clock":          {"A pure package gets the time as an argument.", source{pkg: "reconcile/report"}, "time", 1},
		"ClockAtTheEdge": {"An adapter may read the clock.", source{pkg: "reconcile/cluster"}, "time", 0},
		"Hidden":         {"Only package git may import go-git.", source{pkg: "reconcile/cluster"}, "github.com/go-git/go-git/v5/plumbing", 1},
		"LongestPrefix":  {"Package demand may import the object IDs of cli-utils.", source{pkg: "reconcile/demand"}, "sigs.k8s.io/cli-utils/pkg/object", 0},
		"Only":           {"Other programs must be able to import the API with few dependencies.", source{pkg: "reconcile/api/v1alpha1"}, "sigs.k8s.io/yaml", 1},
		"OnlyItsOwn":     {"Every Kubernetes API needs apimachinery.", source{pkg: "reconcile/api/v1alpha1"}, "k8s.io/apimachinery/pkg/apis/meta/v1", 0},
		"OneFile":        {"Only one file of the package may import the library.", source{pkg: "reconcile/demand", path: "reconcile/demand/asked.go"}, "sigs.k8s.io/cli-utils/pkg/object/dependson", 1},
		"InItsFile":      {"This file may import the library.", source{pkg: "reconcile/demand", path: "reconcile/demand/depends.go"}, "sigs.k8s.io/cli-utils/pkg/object/dependson", 0},
		"Nowhere":        {"Headgate applies objects itself.", source{pkg: "reconcile/cluster"}, "sigs.k8s.io/cli-utils/pkg/apply", 2},
		"TestOracle":     {"A test may compare with other implementations.", source{pkg: "reconcile/plan", test: true}, "sigs.k8s.io/cli-utils/pkg/inventory", 0},
		"Benchmark":      {"Programs that produce test data must not import Kubernetes either.", source{pkg: "fixtures/bench"}, "k8s.io/kubernetes/pkg/features", 1},
		"Fixture":        {"Fixtures may import what they need to run a server.", source{pkg: "fixtures/bench"}, "github.com/go-git/go-git/v5", 0},
		"Backwards":      {"The product must not import its tests.", source{pkg: "cmd/headgate"}, module + "/fixtures", 1},
		"TestNowhere":    {"A test must not link Kubernetes either.", source{pkg: "reconcile/cluster", test: true}, "k8s.io/kubernetes/pkg/features", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := objections(tc.file, tc.path); len(got) != tc.want {
				t.Errorf("%s\nobjections(%s, %q) = %q, want %d", tc.reason, tc.file.pkg, tc.path, got, tc.want)
			}
		})
	}
}

func TestFoundations(t *testing.T) {
	unused := slices.Clone(foundations)
	for _, f := range readSources(t) {
		if f.forTests() {
			continue
		}
		for _, imp := range f.imports {
			unused = slices.DeleteFunc(unused, func(module string) bool { return covers([]string{module + "/..."}, imp.path) })
		}
	}
	if len(unused) > 0 {
		t.Errorf("nothing imports %v: let them do what they are better at than code of ours", unused)
	}
}

func TestPackageComments(t *testing.T) {
	says := map[string]bool{}
	for _, f := range readSources(t) {
		if !f.test {
			says[f.pkg] = says[f.pkg] || f.comment
		}
	}
	for pkg, does := range says {
		if !does {
			t.Errorf("%s: no package comment: describe what the package is for and what it leaves to others", pkg)
		}
	}
}

// Readers find a decision by its number, in the index of its folder, and through every link to it.
func TestDecisionRecords(t *testing.T) {
	title := regexp.MustCompile(`^# (\d+)\. (.+)`)
	folded := regexp.MustCompile(`(?m)^- (\d+): folded into \[(\d+)\]\((.+)\)$`)
	var numbers []int
	for _, folder := range []string{"render/adr", "reconcile/adr"} {
		index := readFile(t, path.Join(folder, "README.md"))
		names, err := filepath.Glob(filepath.Join(root(t), folder, "[0-9]*.md"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no decisions: %v", folder, err)
		}
		for _, name := range names {
			name = filepath.Base(name)
			is := title.FindStringSubmatch(readFile(t, path.Join(folder, name)))
			if is == nil {
				t.Errorf("%s/%s: the first line is not its number and title", folder, name)
				continue
			}
			n, err := strconv.Atoi(is[1])
			if err != nil || !strings.HasPrefix(name, fmt.Sprintf("%04d-", n)) {
				t.Errorf("%s/%s claims to be number %s", folder, name, is[1])
			}
			numbers = append(numbers, n)
			if entry := fmt.Sprintf("[%d. %s](%s)", n, is[2], name); !strings.Contains(index, entry) {
				t.Errorf("%s/README.md lacks %s", folder, entry)
			}
		}
		for _, gone := range folded.FindAllStringSubmatch(index, -1) {
			n, err := strconv.Atoi(gone[1])
			if err != nil || !strings.HasPrefix(gone[3], fmt.Sprintf("%04s-", gone[2])) {
				t.Errorf("%s/README.md: %s", folder, gone[0])
			}
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != i+1 {
			t.Fatalf("the numbers of decisions, over both folders and with those that are folded into others, go from 1 to %d without a gap: %v", len(numbers), numbers)
		}
	}
	link := regexp.MustCompile(`\]\(((?:[\w.-]+/)*\d{4}-[\w-]+\.md)\)`)
	err := filepath.WalkDir(root(t), func(name string, e fs.DirEntry, err error) error {
		switch {
		case err == nil && e.IsDir() && (e.Name() == "node_modules" || e.Name() == ".build"):
			return filepath.SkipDir
		case err != nil || e.IsDir() || !strings.HasSuffix(name, ".md"):
			return err
		}
		text, err := os.ReadFile(name)
		for _, to := range link.FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(string(to[1])))); err != nil {
				t.Errorf("%s links to %s, which is not there", name, to[1])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir(root(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, "."), slices.Contains(topLevel, name):
		case name == "bin", name == "dist": // written by make and by the tests of a release, and ignored by Git
		case strings.HasSuffix(name, ".test"), strings.HasSuffix(name, ".prof"): // written by go test and ignored by Git
		default:
			t.Errorf("%s: nothing new appears at the top level; the fixed entries are %v", name, topLevel)
		}
	}
}

func TestArrowsFormNoCycle(t *testing.T) {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(trail []string)
	visit = func(trail []string) {
		pkg := trail[len(trail)-1]
		if state[pkg] == visiting {
			t.Fatalf("mayImport goes in a circle: %s", strings.Join(trail, " → "))
		}
		if state[pkg] == done {
			return
		}
		state[pkg] = visiting
		for other := range mayImport {
			if covers(mayImport[pkg], other) {
				visit(append(slices.Clone(trail), other))
			}
		}
		state[pkg] = done
	}
	for pkg := range mayImport {
		visit([]string{pkg})
	}
}

// covers reports whether a list of packages and trees includes a path.
func covers(list []string, path string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		tree, below := strings.CutSuffix(entry, "/...")
		return path == tree || below && strings.HasPrefix(path, tree+"/")
	})
}

// home returns the packages that may import a library, and whether imports of it are restricted at all.
func home(path string) (homes []string, hidden bool) {
	longest := ""
	for prefix, in := range livesIn {
		if len(prefix) > len(longest) && covers([]string{prefix + "/..."}, path) {
			longest, homes, hidden = prefix, in, true
		}
	}
	return homes, hidden
}

// A source is the path and the imports of one Go file.
type source struct {
	path    string // relative to the root of the repository
	pkg     string // its directory
	test    bool
	comment bool // has a package comment
	imports []imported
}

// forTests reports whether the file is not part of the product.
func (s source) forTests() bool {
	return s.test || covers([]string{"fixtures/...", "examples/..."}, s.pkg)
}

type imported struct {
	path     string
	position string // file:line
}

// readSources reads the module's Go files from disk: the result of `go list` would be
// served from the test cache after the sources have changed.
func readSources(t *testing.T) []source {
	t.Helper()
	tree := os.DirFS(root(t))
	var sources []source
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return enter(tree, name)
		case path.Ext(name) != ".go":
			return nil
		}
		s, err := readSource(tree, name)
		sources = append(sources, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) == 0 {
		t.Fatal("no Go files found")
	}
	return sources
}

// enter skips directories outside this module.
func enter(tree fs.FS, dir string) error {
	base := path.Base(dir)
	switch {
	case dir == ".":
		return nil
	case strings.HasPrefix(base, "."), strings.HasPrefix(base, "_"), base == "testdata", dir == "bin":
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(dir, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func readSource(tree fs.FS, name string) (source, error) {
	data, err := fs.ReadFile(tree, name)
	if err != nil {
		return source{}, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, data, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	s := source{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), comment: file.Doc.Text() != ""}
	for _, spec := range file.Imports {
		s.imports = append(s.imports, imported{path: unquote(spec.Path), position: at(files, spec)})
	}
	return s, nil
}

// unquote cannot fail: the file was parsed.
func unquote(literal *ast.BasicLit) string {
	path, _ := strconv.Unquote(literal.Value)
	return path
}

func at(files *token.FileSet, node ast.Node) string {
	p := files.Position(node.Pos())
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// root is the directory of the module.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}
