package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/spf13/cobra"
)

func newLock(t *terminal) *cobra.Command {
	var (
		from   sourceFlags
		how    packageFlags
		check  bool
		update bool
		keep   bool
	)
	cmd := &cobra.Command{
		Use:   "lock [DIRECTORY] [flags]",
		Short: "Record the images of a commit's packages in a lock file",
		Long: `Lock finds the packages that the Provider, Configuration and Function objects of a directory
install, and their dependencies. It asks the registries for the image of every version, and
writes the images to ` + packages.LockFile + ` in that directory. Every render of the commit
then uses exactly these images, and resolves no tag. A locked version keeps its image as long
as the commit names that version; --update resolves all versions again.

A lock binds Headgate, but not Crossplane, which resolves tags itself. If Crossplane must
install exactly the locked images, name digests in the objects.

With --schemas, the lock also keeps the contents of the packages, without the schemas of
inactive definitions, in ` + packages.KeptDirectory + ` beside the lock file. If a registry
cannot be reached, a preview reads its base from there. Later runs keep them too, until
--schemas=false. Run lock again when another definition becomes active.

With --check nothing is written, and the exit code reports whether the lock is up to date.

Exit codes: 0 written, or up to date; 1 not resolved, or with --check different; 2 wrong
usage.`,
		Example: `  headgate lock
  headgate lock clusters/prod --check
  headgate lock --schemas`,
		Args: takes(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if from.repo != "" || from.ref != "" {
				return usagef("lock writes into a directory: it takes no --repo and no --ref")
			}
			source, _, err := t.source(&from, args)
			if err != nil {
				return err
			}
			var s v1alpha1.Sync
			if err := how.into(&s.Spec); err != nil {
				return err
			}
			over := t.surroundings(&from, source)
			over.Unlocked = update
			r, err := t.wire(s, source, over, cluster.Options{})
			if err != nil {
				return err
			}
			in, err := r.Source.Fetch(cmd.Context(), "")
			if err != nil {
				return err
			}
			c, err := render.Catalogue(in, r.Options)
			if err != nil {
				return err
			}
			var unread []error
			for _, u := range c.Unread {
				unread = append(unread, fmt.Errorf("%s: %w", u.Origin, u.Err))
			}
			if err := errors.Join(unread...); err != nil {
				return err
			}
			if !cmd.Flags().Changed("schemas") && in.Documents != nil {
				keep = in.Documents.Keeping()
			}
			var kept map[string][]byte
			if keep && in.Documents != nil {
				if kept, err = render.Kept(in, r.Options); err != nil {
					return err
				}
			}
			t.progress.Stop()
			directory, _ := source.(git.Directory) // other sources were rejected above
			return t.lock(c.Packages, kept, directory, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing, and fail if the lock file would change")
	cmd.Flags().BoolVar(&keep, "schemas", false, "keep the schemas of active definitions, too (default: as the lock file has it)")
	cmd.Flags().BoolVar(&update, "update", false, "resolve locked versions again")
	from.addTo(cmd)
	how.addTo(cmd)
	return cmd
}

// lock writes the lock file of packages and the kept content, or compares them with the files that exist. If there is nothing to
// lock, it writes no file. It writes the lock file last: it contains the hashes of the other files, so after a crash in between
// those files do not count.
func (t *terminal) lock(all []catalogue.Package, kept map[string][]byte, of git.Directory, check bool) (err error) {
	root, err := os.OpenRoot(of.Root) // a commit may contain a symlink that points outside it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	within := filepath.Join(filepath.FromSlash(of.Path), packages.LockFile)
	name := filepath.Join(of.Root, within)
	all = slices.DeleteFunc(all, func(p catalogue.Package) bool { return !p.Pulled() })
	locked, err := packages.LockOf(all, kept)
	if err != nil {
		return err
	}
	files := keptFiles{root, filepath.Join(filepath.FromSlash(of.Path), filepath.FromSlash(packages.KeptDirectory)), map[string][]byte{}}
	for source, content := range kept {
		files.want[packages.KeptName(source)] = content
	}
	if len(kept) > 0 {
		files.want[".gitattributes"] = []byte(keptAttributes)
	}
	there, err := root.ReadFile(within)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	stale, err := files.stale()
	if err != nil {
		return err
	}
	surplus, err := files.surplus()
	if err != nil {
		return err
	}
	what := "unchanged"
	switch {
	case bytes.Equal(there, locked) && len(stale)+len(surplus) == 0:
	case check:
		return fmt.Errorf("%s is not what headgate lock would write", cmp.Or(files.path(slices.Concat(stale, surplus)...), name))
	case len(all) == 0:
		what = "removed"
		if err := root.Remove(within); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	default:
		what = "written"
		for _, one := range stale {
			if err := replaceIn(root, filepath.Join(files.within, one), files.want[one]); err != nil {
				return err
			}
		}
		if !bytes.Equal(there, locked) {
			if err := replaceIn(root, within, locked); err != nil {
				return err
			}
		}
	}
	if !check {
		if err := files.remove(surplus); err != nil {
			return err
		}
	}
	summary := manifest.Count(len(all), "package")
	if size := files.size(); size > 0 {
		summary += fmt.Sprintf(", schemas of %.1f MiB", float64(size)/(1<<20))
	}
	_, err = fmt.Fprintf(t.err, "Summary: %s %s, %s\n", name, what, summary)
	return err
}

// keptAttributes is a .gitattributes that makes Git preserve the bytes and forges fold the diffs.
const keptAttributes = "* -text linguist-generated\n"

// keptFiles describes the files with the content that a lock keeps.
type keptFiles struct {
	root   *os.Root
	within string // the directory
	want   map[string][]byte
}

// stale returns the names of files that are missing or different.
func (f keptFiles) stale() ([]string, error) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.want)) {
		path := filepath.Join(f.within, name)
		info, err := f.root.Lstat(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		same := err == nil && info.Mode().IsRegular() && info.Size() == int64(len(f.want[name]))
		if same {
			there, err := f.root.ReadFile(path)
			if err != nil {
				return nil, err
			}
			same = bytes.Equal(there, f.want[name])
		}
		if !same {
			names = append(names, name)
		}
	}
	return names, nil
}

// surplus returns the names of the files in the directory that this lock does not keep.
func (f keptFiles) surplus() ([]string, error) {
	for _, dir := range []string{filepath.Dir(f.within), f.within} { // a symlink may point to one of the user's directories
		info, err := f.root.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		case !info.IsDir():
			return nil, fmt.Errorf("%s is not a directory; remove it", filepath.Join(f.root.Name(), dir))
		}
	}
	list, err := fs.ReadDir(f.root.FS(), filepath.ToSlash(f.within))
	var names []string
	for _, e := range list {
		if _, wanted := f.want[e.Name()]; wanted || !e.Type().IsRegular() {
			continue
		}
		there, err := f.root.ReadFile(filepath.Join(f.within, e.Name()))
		if err != nil {
			return nil, err
		}
		if filepath.Ext(e.Name()) == unfinished || packages.IsKept(there) || string(there) == keptAttributes {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (f keptFiles) remove(names []string) error {
	for _, name := range names {
		if err := f.root.Remove(filepath.Join(f.within, name)); err != nil {
			return err
		}
	}
	if len(f.want) == 0 { // Remove fails if the directories contain other files
		_ = f.root.Remove(f.within)
		_ = f.root.Remove(filepath.Dir(f.within))
	}
	return nil
}

// path returns the path of the first name, or "".
func (f keptFiles) path(names ...string) string {
	if len(names) == 0 {
		return ""
	}
	return filepath.Join(f.root.Name(), f.within, names[0])
}

func (f keptFiles) size() (n int) {
	for _, content := range f.want {
		n += len(content)
	}
	return n
}
