package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"

	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/git"
)

// syncOfTarget replaces the Sync of --file by that of the target, with its approvals, if the file is in a checkout. A checkout has the
// files of the head, and a pull request decides neither what is read of it nor what is trusted or approved. If the target has no such
// Sync, that of the head is used without everything that extends trust.
func (t *terminal) syncOfTarget(ctx context.Context, f *previewFlags, repository *git.Repository, into string) {
	if f.fromFile == nil {
		return
	}
	name, in := inCheckout(repository.URL, f.file)
	if !in {
		return
	}
	head := *f.fromFile
	is := func(s v1alpha1.Sync) bool { return s.Name == head.Name && s.Namespace == head.Namespace }
	syncs := t.syncsAt(ctx, f, repository, into, name)
	i := slices.IndexFunc(syncs, is)
	if i < 0 {
		spec := &f.fromFile.Spec
		spec.PreviewTrust, spec.PreviewRegistries, spec.ForkPreviews, spec.Approvals = []v1alpha1.PreviewTrust{}, nil, nil, v1alpha1.Approvals{}
		f.fromFile.Annotations = nil
		f.fromFile.Default()
		return
	}
	*f.fromFile = syncs[i]
	if repository.Path == head.Spec.Source.Path { // no flag sets another one
		repository.Path = syncs[i].Spec.Source.Path
	}
	if !reflect.DeepEqual(head.Spec, syncs[i].Spec) || !reflect.DeepEqual(head.Annotations, syncs[i].Annotations) {
		t.warn("the pull request changes the Sync %s in %s, and the preview uses it as the target has it", head.Name, name)
	}
}

// syncsAt returns the Syncs of a file in the target of a pull request; none if they cannot be read.
func (t *terminal) syncsAt(ctx context.Context, f *previewFlags, repository *git.Repository, into, name string) []v1alpha1.Sync {
	commit, err := t.repository(&f.sourceFlags, repository.URL, "").Fetch(ctx, into)
	if err != nil {
		return nil // the preview fails with this error, too
	}
	data, err := fs.ReadFile(commit.Files, name)
	if err != nil {
		return nil
	}
	syncs, err := api.Decode(data)
	if err != nil {
		return nil
	}
	return syncs
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
