package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// newcomers is a directory with what a new user has: a repository with two branches, two directories, and a file of Syncs.
func newcomers(t *testing.T) string {
	t.Helper()
	const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: team}\n"
	root := t.TempDir()
	for name, content := range map[string]string{
		"base/a.yaml": settings, "head/a.yaml": settings + "data: {a: b}\n", "platform/policies/a.yaml": settings,
		"sync.yaml": "apiVersion: headgate.dev/v1alpha1\nkind: Sync\nmetadata: {name: a}\nspec:\n  source: {repo: https://git.example.org/team/platform.git, credentialsFrom: {env: {password: HEADGATE_MINE}}}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	repository, err := git.PlainInitWithOptions(filepath.Join(root, "platform"), &git.PlainInitOptions{InitOptions: git.InitOptions{DefaultBranch: "refs/heads/main"}})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repository.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.AddWithOptions(&git.AddOptions{All: true}); err != nil {
		t.Fatal(err)
	}
	id, err := tree.Commit("a commit", &git.CommitOptions{Author: &object.Signature{Name: "a", Email: "a@example.org", When: time.Unix(1_700_000_000, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, branch := range []string{"wider", "policies2"} {
		if err := repository.Storer.SetReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName(branch), id)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// spoken runs the program in this process, and returns its exit code and everything that it writes.
func spoken(t *testing.T, args []string) (code int, text string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	term := newTerminal(file, file, func(string) string { return "" })
	root := newRoot(term)
	root.SetArgs(args)
	verb, err := root.ExecuteContextC(context.Background())
	code = term.exit(t.Context(), verb, err)
	output, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(output)
}

// New users make these mistakes. Headgate answers each with something to type instead.
func TestFirstMistakes(t *testing.T) {
	root := newcomers(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(root, "nowhere"))
	cases := []struct {
		in   string // the working directory
		args string
		env  string
		code int
		want string
	}{
		// directories and commits
		{"", "diff base head", "", 1, `data: (none) → {"a":"b"}`},
		{"", "diff ./base head", "", 1, `data: (none) → {"a":"b"}`},
		{"", "diff base nosuch", "", 2, "base and nosuch: one is a directory and the other a commit"},
		{"platform", "diff main..wider", "", 2, "two commits are two arguments: 'headgate diff main wider'"},
		{"platform", "diff main..wider main", "", 2, "two commits are two arguments: 'headgate diff main wider'"},
		{"platform", "diff main...wider", "", 2, "'headgate preview --base main --head wider' compares with the merge base"},
		{"platform", "diff main:policies wider", "", 2, "write the commit main, and --path policies for both commits"},
		{"platform", "diff main wider ./policies", "", 2, "--path a directory of both"},
		{"platform", "lint main", "", 2, "write --ref main to read it"},
		{"platform", "lint main:policies", "", 2, "write --ref main --path policies"},
		{"platform", "lint polcies", "", 1, "did you mean policies?"},
		{"platform", "lint policies/a.yaml", "", 1, "it is a file; name the directory that it is in, such as policies"},
		{"platform", "lint policies other", "", 2, `lint takes at most 1 argument, and "other" is one more: headgate lint [SOURCE]`},
		{"platform", "lint help", "", 2, "'headgate lint --help' describes the command"},
		{"platform", "lint -", "", 2, "and not standard input"},
		{"platform", "preview main wider", "", 2, "--base and --head name the commits"},
		{"platform", "why", "", 2, "why needs more arguments: headgate why NAME [SOURCE]"},
		{"platform", "upgrade provider-aws", "", 2, "headgate upgrade NAME VERSION [SOURCE]"},
		// repositories
		{"", "lint --repo github.com/x/y", "", 2, "write the URL https://github.com/x/y"},
		{"", "lint --repo x/y", "", 2, "such as https://github.com/x/y"},
		{"", "lint --repo sync.yaml", "", 2, "--repo sync.yaml is a file"},
		{"", "lint --repo https://github.com/x/y/tree/main/platform/prod", "", 2, "write --repo https://github.com/x/y --ref main --path platform/prod"},
		{"", "lint --repo https://gitlab.com/x/y/-/blob/v1/a.yaml", "", 2, "write --repo https://gitlab.com/x/y --ref v1 --path a.yaml"},
		{"", "lint github.com/x/y", "", 2, "name a repository with --repo https://github.com/x/y"},
		{"", "preview --repo git@github.com:x/y.git", "", 2, "write --repo ssh://git@github.com/x/y.git"},
		// files of Syncs
		{"", "run sync.yaml", "", 2, "'headgate run -f sync.yaml'"},
		{"", "sync sync.yaml", "", 2, "'headgate sync -f sync.yaml'"},
		{"", "lint sync.yaml", "", 2, "'headgate lint -f sync.yaml'"},
		{"", "sync.yaml", "", 2, "'headgate run -f sync.yaml' applies them"},
		{"", "run", "", 2, "-f FILE"},
		{"", "run -f snyc.yaml", "", 2, "--file snyc.yaml: no such file or directory; did you mean sync.yaml?"},
		{"", "run -f base", "", 2, "--file base: it is a directory; name a file"},
		{"", "lint -f nosuch", "", 2, "--file nosuch: no such file or directory"},
		{"", "run -f base/a.yaml", "", 1, "a Sync is apiVersion: headgate.dev/v1alpha1, kind: Sync"},
		{"", "approve -f nosuch.yaml 3f786850e387550fdab836ed7e6dc881", "", 2, "--file nosuch.yaml: no such file or directory"},
		// commands
		{"", "--version", "", 0, "headgate "},
		{"", "-version", "", 2, "write --version, with two dashes"},
		{"", "-V", "", 2, "write headgate version"},
		{"", "help nosuch", "", 2, `unknown command "nosuch"`},
		{"", "help prevew", "", 2, "did you mean preview?"},
		{"", "help lint", "", 0, "Check a commit for errors"},
		{"", "help", "", 0, "Propose:"},
		{"", "rollback", "", 2, "revert the commit in Git"},
		{"", "explain buckets", "", 2, "'headgate why buckets'"},
		{"", "explain DeletesObjekts", "", 2, "did you mean DeletesObjects?"},
		{"", "base", "", 2, "'headgate lint base' checks it"},
		// flags
		{"", "lint base --ouptut json", "", 2, "did you mean --output?"},
		{"", "lint base --json", "", 2, "write -o json"},
		{"", "lint base --branch main", "", 2, "write --ref BRANCH"},
		{"", "lint base --token x", "", 2, "HEADGATE_GIT_PASSWORD"},
		{"", "lint base --live", "", 2, "it is a flag of preview, tree, upgrade, why"},
		{"", "diff base head --base main", "", 2, "it is a flag of preview"},
		{"", "diff base -approve x", "", 2, "write --approve, with two dashes"},
		{"", "status -f sync.yaml", "", 2, "it is a flag of approve, check, diff"},
		{"", "lint base --offline=yes", "", 2, `invalid argument "yes" for "--offline" flag: use true or false`},
		{"", "docs a base --depth many", "", 2, "use a whole number"},
		{"", "lint base --path", "", 2, "--path needs a value: --path DIRECTORY"},
		{"", "diff base head --approve 3f786850e387550fdab836ed7e6dc881", "", 1, "--approve 3f786850e387550fdab836ed7e6dc881 lets nothing pass: nothing here waits for an approval"},
		// the environment
		{"", "lint base", "HEADGATE_REOP=x", 0, "HEADGATE_REOP in the environment has no effect: Headgate reads no such variable; did you mean HEADGATE_REPO?"},
		{"", "lint base", "HEADGATE_TOKEN=x", 0, "set HEADGATE_GIT_PASSWORD for the repository, and HEADGATE_FORGE_TOKEN for the forge"},
		{"", "lint base", "HEADGATE_OFFLINE=yes", 2, "HEADGATE_OFFLINE in the environment: invalid argument \"yes\" for \"--offline\" flag: use true or false"},
		{"", "lint base", "HEADGATE_MAX_PRUNES=5", 0, "Summary: no findings"}, // of another command
		{"", "run -f sync.yaml", "HEADGATE_MINE=x", 1, "kubeconfig"},
	}
	for _, tc := range cases {
		t.Run(strings.TrimSpace(tc.args+" "+tc.env), func(t *testing.T) {
			t.Chdir(filepath.Join(root, tc.in))
			for _, variable := range os.Environ() { // those of the tests themselves
				if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "HEADGATE_") {
					t.Setenv(name, "")
					if err := os.Unsetenv(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			if name, value, set := strings.Cut(tc.env, "="); set {
				t.Setenv(name, value)
			}
			code, text := spoken(t, strings.Fields(tc.args))
			if code != tc.code || !strings.Contains(text, tc.want) {
				t.Errorf("headgate %s: exit code %d, want %d with %q:\n%s", tc.args, code, tc.code, tc.want, text)
			}
			if tc.env == "" && strings.Contains(text, "has no effect: Headgate reads no such") || tc.env == "HEADGATE_MINE=x" && strings.Contains(text, "no effect") {
				t.Errorf("headgate %s: warns about the environment:\n%s", tc.args, text)
			}
			for _, internal := range []string{"arg(s)", "strconv", "open ", "stat "} {
				if strings.Contains(text, internal) {
					t.Errorf("headgate %s: has words of a library (%q):\n%s", tc.args, internal, text)
				}
			}
		})
	}
}

// A name that is both a directory and a branch is the branch, as before a directory of that name came.
func TestSidesOf(t *testing.T) {
	root := newcomers(t)
	t.Chdir(filepath.Join(root, "platform"))
	if err := os.Mkdir("wider", 0o700); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		repo   string
		args   []string
		want   [2]bool
	}{
		"Branches":    {"Names without a directory are commits.", "", []string{"main", "policies2"}, [2]bool{false, false}},
		"Both":        {"A branch beats a directory.", "", []string{"main", "wider"}, [2]bool{false, false}},
		"Paths":       {"A path is never a commit.", "", []string{"./wider", "../base"}, [2]bool{true, true}},
		"Directories": {"A directory that is no commit needs no ./.", "", []string{"policies", "./wider"}, [2]bool{true, true}},
		"Elsewhere":   {"With --repo, only a path is a directory.", "https://example.org/x.git", []string{"policies", "main"}, [2]bool{false, false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			sides, err := sidesOf(tc.repo, tc.args)
			if got := [2]bool{sides[0].directory, sides[1].directory}; err != nil || got != tc.want {
				t.Errorf("%s\nsidesOf(%q, %q): want directories %v, got %v, %v", tc.reason, tc.repo, tc.args, tc.want, got, err)
			}
		})
	}
}
