package main

import (
	"errors"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
)

// fileFlags replaces flags with the fields of a Sync in a file, so that a verb judges as 'headgate run' does. The source still
// comes from the command line.
type fileFlags struct {
	file string

	fromFile *v1alpha1.Sync // nil without a file
}

// besideOptions lists the flags that duplicate a field of a Sync and are not target.Options.
var besideOptions = []string{
	"take-over", "approval-signer", "conversion-service", "conversion-ca", "package", "crossplane-version", "kubernetes-version", "schemas", "limits",
}

// addTo registers --file. chosen holds the flags for the name and the namespace of the Sync; path is the flag for the directory of
// the source.
func (f *fileFlags) addTo(cmd *cobra.Command, chosen *syncFlags, path *string) {
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "`file` of Syncs: use the fields of a Sync instead of flags, as run does; --name selects one of several. Without SOURCE, read below its source.path")
	before := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if before != nil {
			if err := before(cmd, args); err != nil {
				return err
			}
		}
		if f.file == "" {
			return nil
		}
		if err := f.read(cmd, chosen); err != nil {
			return err
		}
		commits := len(args) == 2 && !isPath(args[0]) && !isExistingDirectory(args[0])
		if (len(args) == 0 || commits) && !cmd.Flags().Changed("path") {
			*path = f.fromFile.Spec.Source.Path
		}
		return nil
	}
}

// read reads the Sync of the file.
func (f *fileFlags) read(cmd *cobra.Command, chosen *syncFlags) error {
	both := slices.Clone(besideOptions)
	for _, o := range target.Options {
		both = append(both, o.Flag)
	}
	for _, name := range both {
		if cmd.Flags().Changed(name) {
			return usagef("--%s and --file exclude each other: the Sync of the file sets it", name)
		}
	}
	data, err := readFile("file", f.file)
	if err != nil {
		return err
	}
	syncs, err := decodeSyncs(f.file, data)
	if err != nil {
		return errors.Join(eachWith(f.file, err)...)
	}
	name := ""
	if cmd.Flags().Changed("name") {
		name = chosen.name
	}
	if name != "" && cmd.Flags().Changed("namespace") {
		name = chosen.namespace + "/" + name
	}
	i, err := choose(f.file, name, "--name", syncs)
	if err != nil {
		return err
	}
	f.fromFile = &syncs[i]
	chosen.name, chosen.namespace = f.fromFile.Name, f.fromFile.Namespace
	return nil
}

// choose returns the index of the Sync with this name, given as name or namespace/name. The name is optional if there is only one
// Sync.
func choose(file, name, flag string, syncs []v1alpha1.Sync) (int, error) {
	var names []string
	chosen := -1
	for i, s := range syncs {
		full := s.Namespace + "/" + s.Name
		names = append(names, full)
		if name == full || name == s.Name || name == "" && len(syncs) == 1 {
			if chosen >= 0 {
				return 0, usagef("%s holds %s and %s; choose one with its namespace", file, names[chosen], full)
			}
			chosen = i
		}
	}
	switch {
	case chosen < 0 && name == "":
		return 0, usagef("%s holds %s; choose one with %s", file, strings.Join(names, ", "), flag)
	case chosen < 0:
		return 0, usagef("%s holds no sync %s, only %s", file, name, strings.Join(names, ", "))
	}
	return chosen, nil
}

// approvals returns the approvals in the Sync and on the command line.
func (f *fileFlags) approvals(flags func() approval.Given) func() approval.Given {
	if f.fromFile == nil {
		return flags
	}
	return func() approval.Given {
		all := flags()
		if all == nil {
			all = approval.Given{}
		}
		all[inventory.OnSync] = target.OnSync(*f.fromFile)
		return all
	}
}
