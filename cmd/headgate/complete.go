package main

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/git"

	"github.com/spf13/cobra"
)

// This file completes values in shells. A completion changes nothing, asks no registry, and suggests nothing if it fails.

// forCompletion is the time that a shell waits for values from a cluster.
const forCompletion = 2 * time.Second

// values completes a flag with the values that a function returns.
func values(cmd *cobra.Command, flag string, list func(*cobra.Command) []string) {
	// It fails only for a flag that does not exist or that was registered twice.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return list(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

// contexts returns the contexts of the kubeconfig.
func (f *clusterFlags) contexts(*cobra.Command) []string {
	raw, err := f.load().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// refs returns the branches and tags of the repository on disk.
func refs(cmd *cobra.Command) []string {
	directory := "."
	if f := cmd.Flags().Lookup("repo"); f != nil && f.Value.String() != "" {
		directory = f.Value.String()
	}
	root, _, err := enclosing(directory)
	if err != nil {
		return nil
	}
	return git.Names(root)
}

// syncsInFile returns the names of the Syncs in the files of --file.
func syncsInFile(cmd *cobra.Command) []string {
	var names []string
	for _, file := range syncFilesOf(cmd) {
		data, err := readFile("file", filepath.Clean(file))
		if err != nil {
			return nil
		}
		syncs, err := api.Decode(data)
		if err != nil {
			return nil
		}
		for _, s := range syncs {
			names = append(names, s.Name)
		}
	}
	return names
}

// completeDefinition completes the first argument of a verb with the definitions of the commit.
func (t *terminal) completeDefinition(cmd *cobra.Command, from *sourceFlags) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return t.definitions(cmd, from), cobra.ShellCompDirectiveNoFileComp
	}
}

// definitions returns the names of the definitions of the commit, as far as its packages are on disk.
func (t *terminal) definitions(cmd *cobra.Command, from *sourceFlags) []string {
	from.offline = true
	source, ref, err := t.source(from, nil)
	if err != nil {
		return nil
	}
	r, err := t.wire(v1alpha1.Sync{}, source, t.surroundings(from, source), cluster.Options{})
	if err != nil {
		return nil
	}
	want, err := r.Render(cmd.Context(), ref)
	if err != nil {
		return nil
	}
	return names(want.Definitions)
}

// complete completes arguments that name Syncs of the cluster: sync NAME….
func (f *objectFlags) complete(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 || !slices.Contains(kindWords, args[0]) {
		return []string{"sync"}, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), forCompletion)
	defer cancel()
	syncs, _, err := f.objects()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := findSyncs(ctx, syncs, nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, s := range all {
		if !slices.Contains(args, s.GetName()) {
			names = append(names, s.GetName())
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
