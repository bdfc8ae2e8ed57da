package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/memory"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/suggest"

	"github.com/spf13/cobra"
)

// suggestedFile is the file for a new policy, below the directory that is read.
const suggestedFile = "policies/headgate.yaml"

func newSuggest(t *terminal) *cobra.Command {
	var (
		from   sourceFlags
		how    renderFlags
		of     syncFlags
		file   fileFlags
		write  bool
		unused bool
		format = oneOf("text", "json", "yaml")
		exitOn = oneOf("change", "unknown", "never")
	)
	cmd := &cobra.Command{
		Use:   "suggest [SOURCE] [flags]",
		Short: "Suggest the smallest activation policies for what a commit uses",
		Long: `Suggest finds the kinds that a commit uses, as lint does: managed resources, and what
Compositions, Go templates, programs of functions (KCL, Python, CUE) and other objects name. It
shows the lines that its policies lack, with the places that need them, as a diff which keeps
comments and order. A commit without a fitting policy gets a new one. With -o yaml, it prints
the smallest policy for everything that the commit uses.

Suggest writes a pattern for a group only if the pattern matches nothing that is not used, and
if the definitions of all packages are known. It names the kinds whose definitions are not
known, and the programs and templates that may use more kinds.

With --unused, it also names the active definitions that nothing in the commit uses, with
the memory of the API server that they need, and takes out the lines that activate them if every
package was read. Objects that are not in the commit, and programs that compute kinds, may need
them: read the list first.

With --write, it writes the changes into the directory. It changes nothing but these lines, and
makes a new file only where none exists. What kustomize builds, it cannot edit.

Suggest asks no cluster. It sees the policies of one commit, below one directory: name the root
of the repository if policies and what they activate belong to several Syncs.

` + aboutSource + `

Exit codes: 0 the policies fit, 1 a change is suggested or an error, 2 wrong usage. --exit-on
unknown also fails if something is not known.`,
		Example: `  headgate suggest
  headgate suggest ./platform --write
  headgate suggest --unused
  headgate suggest --ref HEAD -o yaml`,
		Args: takes(0, 1, "--path names a directory below SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if write && (from.repo != "" || from.ref != "") {
				return usagef("--write writes into a directory: it takes no --repo and no --ref")
			}
			r, source, ref, err := t.reading(&from, args, &how, file.fromFile)
			if err != nil {
				return err
			}
			made, err := suggestionOf(cmd.Context(), r, ref, unused)
			if err != nil {
				return err
			}
			t.progress.Stop()
			if err := t.suggestion(made, format.value); err != nil {
				return err
			}
			if directory, is := source.(git.Directory); is && write {
				if err := t.writeEdits(directory.Root, made.Edits); err != nil {
					return err
				}
			}
			return made.code(exitOn.value)
		},
	}
	from.addTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	exitOn.addTo(cmd, "exit-on", "", "what exits with code 1")
	cmd.Flags().BoolVar(&unused, "unused", false, "also name unused active definitions, and take out what activates them")
	cmd.Flags().BoolVar(&write, "write", false, "write the changes into the directory")
	how.addTo(cmd)
	cmd.Flags().StringVar(&of.name, "name", "", "with --file: the `name` of the Sync, if the file holds several")
	file.addTo(cmd, &of, &from.path)
	return cmd
}

// A suggestion is what suggest shows. Its JSON is an interface for programs.
type suggestion struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"`
	Revision   string             `json:"revision,omitempty"`
	Smallest   []suggest.Line     `json:"smallest"` // the entries of the smallest policy for all that the commit uses
	Edits      []suggest.Edit     `json:"edits"`
	Unused     []unusedDefinition `json:"unused,omitempty"`
	Unknown    []suggest.Unknown  `json:"unknown,omitempty"`
	Unread     []suggest.Unread   `json:"unread,omitempty"`

	unused int // number of unused active definitions
	used   int
}

// An unusedDefinition is active and used by nothing in the commit.
type unusedDefinition struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory"` // of an API server, estimated, in bytes
}

// keptSource is a source that keeps the files of its last commit.
type keptSource struct {
	reconcile.Source

	files fs.FS
	path  string
}

func (f *keptSource) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := f.Source.Fetch(ctx, ref)
	f.files, f.path = in.Files, in.Path
	return in, err
}

// suggestionOf returns the suggestion for a commit.
func suggestionOf(ctx context.Context, r reconcile.Reconciler, ref string, unused bool) (suggestion, error) {
	from := &keptSource{Source: r.Source}
	r.Source = from
	r.Options.Explains, r.Options.Lints = true, true
	want, err := r.Render(ctx, ref)
	twice, ofCommit := errors.AsType[catalogue.Errors](err)
	if err != nil && (!ofCommit || want.Objects == nil) {
		return suggestion{}, err
	}
	s := suggest.For(want)
	for _, p := range twice { // an object that is declared twice uses its kind once
		s.Unread = append(s.Unread, suggest.Unread{Origin: p.Origin, Why: p.Reason()})
	}
	made := suggestion{
		APIVersion: "headgate.dev/v1alpha1", Kind: "Suggestion", Revision: want.Revision,
		Smallest: orEmpty(s.Smallest), Unknown: s.Unknown, Unread: s.Unread, unused: len(s.Unused), used: s.Used(),
	}
	name, cannot := from.newFile()
	made.Edits = orEmpty(s.Edits(suggest.How{Unused: unused, Read: from.read, New: name, NewCannot: cannot}))
	if unused {
		made.Unused = costs(want, s.Unused)
	}
	return made, nil
}

func orEmpty[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

func (f *keptSource) read(name string) (string, error) {
	raw, err := fs.ReadFile(f.files, name)
	return string(raw), err
}

// newFile returns a path that no file of the commit has, and why Headgate cannot make a file there: "" if it can.
func (f *keptSource) newFile() (name, cannot string) {
	for n := 1; ; n++ {
		name = path.Join(f.path, suggestedFile)
		if n > 1 {
			name = strings.TrimSuffix(name, ".yaml") + fmt.Sprintf("-%d.yaml", n)
		}
		if _, err := fs.Lstat(f.files, name); err != nil {
			break
		}
	}
	if info, err := fs.Lstat(f.files, path.Dir(name)); err == nil && !info.IsDir() {
		return name, path.Dir(name) + " is not a directory"
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		for _, kustomization := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
			if _, err := fs.Lstat(f.files, path.Join(dir, kustomization)); err == nil {
				return name, path.Join(dir, kustomization) + " decides which files count: make the file, and list it there"
			}
		}
		if dir == "." || dir == path.Clean(f.path) {
			return name, ""
		}
	}
}

// costs returns the memory that unused definitions need.
func costs(want render.Desired, unused []string) []unusedDefinition {
	made := map[string]int{}
	for _, o := range want.Objects {
		if o.Definition != "" && o.ID.IsCRD() {
			made[o.Definition] = o.Size
		}
	}
	definitions := slices.DeleteFunc(slices.Clone(want.Definitions), func(d render.DecidedDefinition) bool { return !slices.Contains(unused, d.Name) })
	all := make([]unusedDefinition, len(definitions))
	manifest.Each(len(definitions), func(i int) {
		d := definitions[i]
		size, known := made[d.Name]
		if !known {
			if o, err := d.CRD(); err == nil {
				size = o.Size
			}
		}
		all[i] = unusedDefinition{d.Name, memory.Of(map[string]memory.Size{d.Name: memory.Size(size)})}
	})
	return all
}

// suggestion writes a suggestion to standard output.
func (t *terminal) suggestion(s suggestion, format string) error {
	switch format {
	case "json":
		return t.json(s)
	case "yaml":
		return t.smallest(s)
	}
	var b strings.Builder
	for _, e := range s.Edits {
		writeEdit(&b, e)
	}
	for _, u := range s.Unused {
		fmt.Fprintf(&b, "unused: %s (about %d MiB)\n", u.Name, mebibytes(u.Memory))
	}
	for _, u := range s.Unknown {
		fmt.Fprintf(&b, "not known: %s of %s (%s): no package that could be read defines it\n", u.Kind, u.Group, suggest.Places(u.NeededBy))
	}
	for _, u := range s.Unread {
		fmt.Fprintf(&b, "not read: %s: %s\n", u.Origin, u.Why)
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(t.out, printable(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(t.out, "Summary: "+s.summary())
	return err
}

// mebibytes rounds bytes to MiB.
func mebibytes(bytes int64) int64 { return (bytes + 1<<19) >> 20 }

// smallest writes the smallest policy. What is not known follows as comments.
func (t *terminal) smallest(s suggestion) error {
	text := "# The commit uses no definition that needs a policy.\n"
	if len(s.Smallest) > 0 {
		text = suggest.Policy(suggest.PolicyName, s.Smallest)
	}
	for _, u := range s.Unknown {
		text += fmt.Sprintf("# not known: %s of %s (%s)\n", printable(u.Kind), printable(u.Group), suggest.Places(u.NeededBy))
	}
	for _, u := range s.Unread {
		text += fmt.Sprintf("# not read: %s: %s\n", suggest.Places([]manifest.Origin{u.Origin}), printable(u.Why))
	}
	_, err := fmt.Fprint(t.out, text)
	return err
}

func writeEdit(b *strings.Builder, e suggest.Edit) {
	if e.Cannot == "" {
		b.WriteString(e.Diff())
		return
	}
	fmt.Fprintf(b, "by hand: policy %s (%s): %s\n", e.Policy, e.Path, e.Cannot)
	for _, r := range e.Remove {
		fmt.Fprintf(b, "-  - %s # %s\n", r.Pattern, r.Origin)
	}
	for _, l := range e.Add {
		fmt.Fprintf(b, "+  - %s\n", l.Entry())
	}
}

// summary returns the last line of the output.
func (s suggestion) summary() string {
	add, remove := 0, 0
	for _, e := range s.Edits {
		add, remove = add+len(e.Add), remove+len(e.Remove)
	}
	parts := []string{"the commit uses " + manifest.Count(s.used, "definition")}
	if add+remove == 0 {
		parts = append(parts, "nothing to change")
	}
	if add > 0 {
		parts = append(parts, manifest.Count(add, "line")+" to add")
	}
	if remove > 0 {
		parts = append(parts, manifest.Count(remove, "line")+" to remove")
	}
	if s.unused > 0 && s.Unused == nil {
		parts = append(parts, manifest.Count(s.unused, "active definition")+" unused (--unused lists them)")
	}
	if s.unused > 0 && s.Unused != nil {
		total := int64(0)
		for _, u := range s.Unused {
			total += u.Memory
		}
		parts = append(parts, fmt.Sprintf("%s unused, about %d MiB of API server memory", manifest.Count(s.unused, "active definition"), mebibytes(total)))
	}
	if n := len(s.Unknown); n > 0 {
		parts = append(parts, manifest.Count(n, "kind")+" not known")
	}
	if n := len(s.Unread); n > 0 {
		parts = append(parts, manifest.Count(n, "place")+" not read completely")
	}
	return strings.Join(parts, " · ")
}

// code returns exit code 1 if the suggestion holds what exitOn names.
func (s suggestion) code(exitOn string) error {
	changes, unknown := len(s.Edits) > 0, len(s.Unknown)+len(s.Unread) > 0
	if exitOn != "never" && changes || exitOn == "unknown" && unknown {
		return exit{code: 1}
	}
	return nil
}

// writeEdits writes the edits that Headgate can make. Each file is replaced at once, and each edit helps without the others, so a run
// that was interrupted can be repeated.
func (t *terminal) writeEdits(directory string, edits []suggest.Edit) (err error) {
	root, err := os.OpenRoot(directory) // a commit may contain a symlink that points outside it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, e := range edits {
		if e.Cannot != "" {
			continue
		}
		if err := writeEditIn(root, e); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(t.err, "wrote %s\n", printable(filepath.Join(directory, filepath.FromSlash(e.Path)))); err != nil {
			return err
		}
	}
	return nil
}

// writeEditIn writes one edit. It changes only a file with the text that was read, and makes only a file that does not exist.
func writeEditIn(root *os.Root, e suggest.Edit) error {
	name := filepath.FromSlash(e.Path)
	info, err := root.Lstat(name)
	switch {
	case e.New && err == nil:
		return fmt.Errorf("%s exists already; run suggest again", e.Path)
	case e.New && errors.Is(err, fs.ErrNotExist):
		return replaceIn(root, e.Path, []byte(e.After))
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; change it by hand", e.Path)
	}
	raw, err := root.ReadFile(name)
	if err != nil {
		return err
	}
	if string(raw) != e.Before {
		return fmt.Errorf("%s changed meanwhile; run suggest again", e.Path)
	}
	return replaceIn(root, e.Path, []byte(e.After))
}
