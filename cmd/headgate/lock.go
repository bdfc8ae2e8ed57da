package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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
	)
	cmd := &cobra.Command{
		Use:   "lock [DIRECTORY] [flags]",
		Short: "Record the images of a commit's packages in a lock file",
		Long: `Lock finds the packages that the Provider, Configuration and Function objects of a directory
install, with what they depend on, asks the registries for the image of every version, and
writes that to ` + packages.LockFile + ` there. Every render of the commit uses exactly these
images, and resolves no tag: the same commit stays the same. A locked version keeps its
image as long as the commit asks for that version; --update resolves all of them again.

A lock binds Headgate, and not Crossplane, which resolves the tags of its objects itself;
name digests in them where that matters.

With --check nothing is written, and the exit code reports whether the lock is up to date.

Exit codes: 0 written, or up to date; 1 not resolved, or with --check different; 2 wrong
usage.`,
		Example: `  headgate lock
  headgate lock clusters/prod --check`,
		Args: cobra.MaximumNArgs(1),
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
			t.progress.Stop()
			directory, _ := source.(git.Directory) // nothing else is left
			return t.lock(c.Packages, directory, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "write nothing, and fail if the lock file would change")
	cmd.Flags().BoolVar(&update, "update", false, "resolve again what is locked already")
	from.addTo(cmd)
	how.addTo(cmd)
	return cmd
}

// lock writes the lock of packages, or compares it. If there is nothing to lock, it writes no file.
func (t *terminal) lock(all []catalogue.Package, of git.Directory, check bool) (err error) {
	root, err := os.OpenRoot(of.Root) // a commit may contain a link that leads out of it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	within := filepath.Join(filepath.FromSlash(of.Path), packages.LockFile)
	name := filepath.Join(of.Root, within)
	all = slices.DeleteFunc(all, func(p catalogue.Package) bool { return !p.Pulled() })
	locked, err := packages.LockOf(all)
	if err != nil {
		return err
	}
	there, err := root.ReadFile(within)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	what := "unchanged"
	switch {
	case bytes.Equal(there, locked):
	case check:
		return fmt.Errorf("%s is not what headgate lock would write", name)
	case len(all) == 0:
		what = "removed"
		if err := root.Remove(within); err != nil {
			return err
		}
	default:
		what = "written"
		if err := root.WriteFile(within, locked, 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(t.err, "Summary: %s %s, %s\n", name, what, manifest.Count(len(all), "package"))
	return err
}
