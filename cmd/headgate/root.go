package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const firstSteps = `  headgate why buckets.s3.aws.m.upbound.io ./platform
  headgate diff main HEAD
  headgate preview --comment --status
  headgate run -f sync.yaml`

const about = `Headgate shows which Crossplane resource types a commit activates, breaks and costs, before
you merge it, and applies it without deleting anything by mistake. It reads definitions,
activation policies and provider packages from a Git repository.

Each flag can also be set in the environment: --repo is HEADGATE_REPO, --max-prunes
is HEADGATE_MAX_PRUNES. A flag beats the environment. HEADGATE_GIT_USERNAME and
HEADGATE_GIT_PASSWORD (which can be a token) are the credentials for an https repository;
HEADGATE_GIT_IDENTITY and HEADGATE_GIT_KNOWN_HOSTS are the key and the hosts for ssh, or their files.

Data goes to standard output; errors, logs and progress go to standard error.`

// A verbGroup is a heading in --help with the verbs below it.
type verbGroup struct {
	title string
	verbs []func(*terminal) *cobra.Command
}

// verbGroups lists every verb under one heading. A new verb needs a file and a line here.
var verbGroups = []verbGroup{
	{"Look", []func(*terminal) *cobra.Command{newDiff, newDocs, newExplain, newLint, newRender, newStatus, newTree, newWhy}},
	{"Propose", []func(*terminal) *cobra.Command{newApprove, newConvert, newInit, newLock, newPreview, newSuggest, newUpgrade}},
	{"Apply", []func(*terminal) *cobra.Command{newController, newDestroy, newRelease, newRun, newShrink, newSync}},
	{"Operate", []func(*terminal) *cobra.Command{newCheck, newCompletion, newEvents, newGet, newInstall, newReconcile, newResume, newSuspend, newUninstall, newVersion}},
}

// newRoot returns the root command.
func newRoot(t *terminal) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:           "headgate",
		Short:         "A GitOps reconciler for Crossplane v2",
		Long:          about,
		Example:       firstSteps,
		SilenceUsage:  true,
		SilenceErrors: true,

		SuggestionsMinimumDistance: 2,
		Args:                       cobra.ArbitraryArgs,
		CompletionOptions:          cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd, os.LookupEnv); err != nil {
				return err
			}
			t.begin()
			if cmd.Hidden {
				return nil
			}
			for _, text := range unknownVariables(cmd.Root(), os.Environ(), syncFilesOf(cmd)) {
				t.warn("%s", text)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case showVersion:
				_, err := fmt.Fprintln(t.out, thisBuild())
				return err
			case len(args) == 0:
				return cmd.Help()
			}
			return unknownVerb(cmd, args[0])
		},
	}
	// Not cobra's own flag: its template would make the linker keep every method of every type.
	root.Flags().BoolVar(&showVersion, "version", false, "version for headgate")
	root.SetOut(t.out)
	root.SetErr(t.err)
	t.addFlags(root.PersistentFlags())
	for _, group := range verbGroups {
		root.AddGroup(&cobra.Group{ID: group.title, Title: group.title})
		for _, newVerb := range group.verbs {
			verb := newVerb(t)
			verb.GroupID = group.title
			root.AddCommand(verb)
		}
	}
	root.AddCommand(newChild(t))
	root.SetHelpCommand(newHelp())
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpFunc(func(verb *cobra.Command, _ []string) { fmt.Fprint(t.out, helpOf(verb)) })
	for _, verb := range root.Commands() {
		verb.Flags().SortFlags = false
		verb.DisableFlagsInUseLine = true
	}
	return root
}

// fromEnvironment sets the flags that the command line leaves out, from environment variables HEADGATE_….
func fromEnvironment(cmd *cobra.Command, lookup func(string) (string, bool)) error {
	var bad []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		value, set := lookup(variable(f.Name))
		if f.Changed || !set || value == "" || f.Name == "help" {
			return
		}
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			bad = append(bad, fmt.Errorf("%s in the environment: %w", variable(f.Name), wrongValue(err)))
		}
	})
	return errors.Join(bad...)
}

// syncFilesOf returns the files of Syncs that a command line names.
func syncFilesOf(cmd *cobra.Command) []string {
	f := cmd.Flags().Lookup("file")
	if f == nil {
		return nil
	}
	if several, is := f.Value.(pflag.SliceValue); is {
		return several.GetSlice()
	}
	return []string{f.Value.String()}
}

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// A choice is a flag with a fixed set of values.
type choice struct {
	value string
	of    []string
}

// oneOf returns a choice whose default is the first word.
func oneOf(words ...string) choice { return choice{value: words[0], of: words} }

func (c *choice) String() string { return c.value }
func (c *choice) Type() string   { return "word" }
func (c *choice) Set(word string) error {
	for _, w := range c.of {
		if strings.EqualFold(w, word) {
			c.value = w
			return nil
		}
	}
	return fmt.Errorf("it is one of %s", strings.Join(c.of, ", "))
}

// addTo registers the choice as a flag that shells can complete.
func (c *choice) addTo(cmd *cobra.Command, name, short, usage string) {
	cmd.Flags().VarP(c, name, short, usage+": "+strings.Join(c.of, ", "))
	// It fails only for a flag that does not exist or that was registered twice.
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(c.of, cobra.ShellCompDirectiveNoFileComp))
}
