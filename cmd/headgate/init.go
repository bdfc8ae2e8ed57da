package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"headgate.dev/headgate/examples"
	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/suggest"

	"github.com/spf13/cobra"
)

func newInit(t *terminal) *cobra.Command {
	var (
		name  string
		write bool
		on    = choice{of: kindsWithCI()}
	)
	cmd := &cobra.Command{
		Use:   "init [DIRECTORY] [flags]",
		Short: "Propose a first policy, a Sync and a CI file for a repository",
		Long: `Init proposes up to three new files for a repository, and shows them as a diff that 'git apply'
accepts. With --write it creates them. It changes no file that exists: it names the file and
leaves it as it is.

- policies/headgate.yaml, unless there is a policy: it names the definitions that the
  directory uses, as far as their packages are in it
- sync.yaml: a Sync that only reads and reports, until you delete one line of it
- the CI file of the forge, which previews pull requests

The forge is the one of the remote 'origin', or --forge. DIRECTORY (default: the working
directory) is what Headgate will read. The CI file belongs to the top of the Git repository
around it.

Exit codes: 0 shown or written, 1 error, 2 wrong usage.`,
		Example: `  headgate init
  headgate init clusters/production --write
  headgate init | git apply`,
		Args: takes(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			directory := append(args, ".")[0]
			if err := isDirectory("init", directory); err != nil {
				return err
			}
			s, err := startOf(cmd.Context(), directory, name, forge.Kind(on.value))
			if err != nil {
				return err
			}
			return t.propose(s, write)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "create the files")
	cmd.Flags().StringVar(&name, "name", "platform", "`name` of the Sync and of the policy")
	on.addTo(cmd, "forge", "", "forge whose CI file to propose")
	return cmd
}

// kindsWithCI returns the kinds of forges for which there is a CI file.
func kindsWithCI() (kinds []string) {
	for _, f := range forge.All() {
		if f.CIFile != "" {
			kinds = append(kinds, string(f.Kind))
		}
	}
	return kinds
}

// A start describes a repository that does not use Headgate yet.
type start struct {
	root, below string            // the top of the repository, and the directory below it that Headgate will read
	remote      string            // https URL of the remote, without credentials, or ""
	branch      string            // the branch that the Sync follows
	forge       forge.Forge       // the zero value if unknown
	name        string            // of the Sync
	policy      *catalogue.Policy // one that exists already
	used        []suggest.Line    // what the first policy activates
}

// startOf reads a directory, which may be in no repository.
func startOf(ctx context.Context, directory, name string, kind forge.Kind) (start, error) {
	s := start{root: directory, below: ".", branch: "main", name: name}
	if root, below, err := enclosing(directory); err == nil {
		remote, branch := git.Origin(root)
		s.root, s.below, s.remote = root, filepath.ToSlash(below), cloneURL(remote)
		if plainName.MatchString(branch) {
			s.branch = branch
		}
	}
	if r, err := forge.RepositoryOf(s.remote, ""); err == nil && kind == "" {
		kind = r.Kind
	}
	for _, f := range forge.All() {
		if f.Kind == kind {
			s.forge = f
		}
	}
	in, err := git.Directory{Root: s.root, Path: s.below}.Fetch(ctx, "")
	if err != nil {
		return s, err
	}
	want, err := render.Render(in, render.Options{Owner: render.OwnerCrossplane})
	if err != nil {
		return s, err
	}
	if len(want.Policies) > 0 {
		s.policy = &want.Policies[0]
	}
	s.used = suggest.For(want).Smallest
	return s, nil
}

// plainName matches a branch that means the same in YAML and in a shell.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

// cloneURL returns the https URL of a remote, without credentials. It is "" for a path.
func cloneURL(remote string) string {
	u, err := url.Parse(cmp.Or(v1alpha1.SSHURL(remote), remote))
	if err != nil || u.Host == "" {
		return ""
	}
	if u.Scheme == "ssh" {
		u.Scheme, u.Host = "https", u.Hostname()
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// A newFile is a proposed file. Its path is below the top of the repository.
type newFile struct{ path, text string }

// files returns the proposed files.
func (s start) files() ([]newFile, error) {
	var all []newFile
	if s.policy == nil {
		all = append(all, newFile{path.Join(s.below, "policies", "headgate.yaml"), s.firstPolicy()})
	}
	sync := newFile{path.Join(s.below, "sync.yaml"), s.sync()}
	if _, err := api.Decode([]byte(sync.text)); err != nil {
		return nil, errors.Join(eachWith(sync.path, err)...)
	}
	all = append(all, sync)
	if s.forge.CIFile != "" {
		all = append(all, newFile{s.forge.CIFile, s.ci(examples.CI[s.forge.CIFile])})
	}
	return all, nil
}

// firstPolicy names what the commit uses.
func (s start) firstPolicy() string {
	if len(s.used) == 0 {
		return fmt.Sprintf(noPolicy, s.name, crossplane.KindMRAP.Kind)
	}
	return `# What this directory uses, each with places that need it. A preview shows what each line activates and costs before you
# merge it, and 'headgate suggest' keeps the list up to date.
` + suggest.Policy(s.name, s.used)
}

// noPolicy is a comment, because a policy needs at least one pattern.
const noPolicy = `# The first policy. Remove the leading '# ' of the lines below, and name the definitions that this
# repository uses. A preview shows what each line activates and costs before you merge it.
#
# apiVersion: ` + crossplane.MRDAPIVersion + `
# kind: %[2]s
# metadata:
#   name: %[1]s
# spec:
#   activate:
#   - buckets.s3.aws.m.upbound.io
`

// schemaOf returns the comment by which editors find the JSON schema of a file. reconcile/api/v1alpha1/schemas has the schemas.
func schemaOf(name string) string {
	return "# yaml-language-server: $schema=https://headgate.dev/schemas/" + name + ".json\n"
}

func (s start) sync() string {
	repo := fmt.Sprintf("%q", s.remote)
	if s.remote == "" {
		repo = "https://git.example.org/platform.git # replace it: the repository has no remote yet"
	}
	return fmt.Sprintf(schemaOf("sync")+`# 'headgate run -f sync.yaml' follows this branch.
apiVersion: headgate.dev/v1alpha1
kind: Sync
metadata:
  name: %s
  annotations: {config.kubernetes.io/local-config: "true"} # the file is no object for the cluster
spec:
  source:
    repo: %s
    ref: %s
    path: %q
  managementPolicy: Observable # it only reads and reports; delete this line to let Headgate apply
`, s.name, repo, s.branch, s.below)
}

// The settings of the CI files that depend on the repository.
var (
	ciHead   = regexp.MustCompile(`\A(#.*\n)+`)
	ciName   = regexp.MustCompile(`((?:HEADGATE_NAME|name): )platform\b`)
	ciPath   = regexp.MustCompile(`(?m)^( +(?:HEADGATE_PATH|path): )\S+`)
	ciBranch = regexp.MustCompile(`(branches: \[|--target )main\b`)
)

// ci returns the CI file of an example for this repository.
func (s start) ci(example string) string {
	text := ciHead.ReplaceAllString(example, "# Previews pull requests with Headgate. Written by 'headgate init'.\n")
	text = ciName.ReplaceAllString(text, "${1}"+s.name)
	text = ciPath.ReplaceAllString(text, "${1}"+strings.ReplaceAll(fmt.Sprintf("%q", s.below), "$", "$$"))
	return ciBranch.ReplaceAllString(text, "${1}"+s.branch)
}

// propose shows the files that do not exist yet, or creates them.
func (t *terminal) propose(s start, write bool) (err error) {
	files, err := s.files()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(s.root) // a repository may contain a symlink that points outside it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if s.policy != nil {
		t.warn("policy %s exists, at %s; no other is proposed", s.policy.Name, s.policy.Origin)
	}
	if s.forge.CIFile == "" {
		t.warn("no CI file is proposed: %s; choose one with --forge", s.withoutCI())
	}
	for _, f := range files {
		_, err := root.Lstat(f.path)
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case err == nil:
			t.warn("%s exists, and stays as it is", f.path)
		case missing && write:
			err = t.create(root, f)
		case missing:
			_, err = io.WriteString(t.out, f.diff())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutCI returns why there is no CI file.
func (s start) withoutCI() string {
	switch {
	case s.forge.Name != "":
		return "there is none for " + s.forge.Name
	case s.remote == "":
		return "the directory is in no repository with a remote"
	}
	return "the URL " + s.remote + " does not show which forge it is"
}

// diff returns the file as git diff shows a new one.
func (f newFile) diff() string {
	lines := strings.SplitAfter(strings.TrimSuffix(f.text, "\n"), "\n")
	return fmt.Sprintf("--- /dev/null\n+++ b/%s\n@@ -0,0 +1,%d @@\n+%s\n", f.path, len(lines), strings.Join(lines, "+"))
}

// create creates a file that does not exist.
func (t *terminal) create(root *os.Root, f newFile) error {
	if err := root.MkdirAll(path.Dir(f.path), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(f.text)
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, root.Remove(f.path)) // half a file would stay as it is in the next run
	}
	_, err = fmt.Fprintf(t.out, "wrote %s\n", printable(f.path))
	return err
}
