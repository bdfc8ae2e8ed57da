package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"slices"

	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/git"
)

// trustOfTarget replaces previewTrust by that of the target if the file of --file is in a checkout. A checkout has the files of the head,
// and a pull request must not decide which new programs need no look. If the target has no such Sync, nothing is trusted.
func (t *terminal) trustOfTarget(ctx context.Context, f *previewFlags, repository *git.Repository, into string) {
	if f.fromFile == nil {
		return
	}
	name, in := inCheckout(repository.URL, f.file)
	if !in {
		return
	}
	f.fromFile.Spec.PreviewTrust = []v1alpha1.PreviewTrust{}
	commit, err := t.repository(&f.sourceFlags, repository.URL, "").Fetch(ctx, into)
	if err != nil {
		return // the preview fails with this error, too
	}
	data, err := fs.ReadFile(commit.Files, name)
	if err != nil {
		return
	}
	syncs, err := api.Decode(data)
	if err != nil {
		return
	}
	is := func(s v1alpha1.Sync) bool { return s.Name == f.fromFile.Name && s.Namespace == f.fromFile.Namespace }
	if i := slices.IndexFunc(syncs, is); i >= 0 {
		f.fromFile.Spec.PreviewTrust = syncs[i].Spec.PreviewTrust
	}
}

// inCheckout returns the path of a file in the checkout of a repository; for a repository with a URL, in the checkout around the file.
// A link in the checkout leads nowhere else: what counts is the path of the link.
func inCheckout(repository, file string) (string, bool) {
	root := repository
	if isURL(root) {
		var err error
		if root, _, err = enclosing(filepath.Dir(file)); err != nil {
			return "", false
		}
	}
	for _, plain := range []func(string) (string, error){filepath.Abs, filepath.EvalSymlinks} {
		root, ofRoot := plain(root)
		directory, ofFile := plain(filepath.Dir(file))
		if ofRoot != nil || ofFile != nil {
			continue
		}
		if name, err := filepath.Rel(root, filepath.Join(directory, filepath.Base(file))); err == nil && filepath.IsLocal(name) {
			return filepath.ToSlash(name), true
		}
	}
	return "", false
}
