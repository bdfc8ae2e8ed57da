package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// This file words the advice for wrong flags, variables and commands.

// misspelt returns the name that differs from a given one by a typing error, or "". Of two such names, it prefers one of the same length.
func misspelt(given string, names []string) string {
	most := 2
	if len(given) < 6 {
		most = 1
	}
	distance := func(name string) int { return levenshtein.Distance(strings.ToLower(given), strings.ToLower(name), nil) }
	best := ""
	rank := func(name string) int { return 2*distance(name) + min(1, abs(len(name)-len(given))) }
	for _, name := range slices.Sorted(slices.Values(names)) {
		if distance(name) <= most && (best == "" || rank(name) < rank(best)) {
			best = name
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// habits are the flags of other tools, and what a user means by them.
var habits = map[string]string{ //nolint:gosec // G101: the names of flags, no credentials
	"json": "write -o json", "yaml": "write -o yaml", "format": "write -o FORMAT", "output-format": "write -o FORMAT",
	"branch": "write --ref BRANCH", "tag": "write --ref TAG", "revision": "write --ref COMMIT", "commit": "write --ref COMMIT", "sha": "write --ref COMMIT",
	"url": "write --repo URL", "repository": "write --repo URL", "directory": "write --path DIRECTORY", "dir": "write --path DIRECTORY",
	"filename": "write -f FILE", "config": "write -f FILE",
	"kube-context": "write --context NAME", "kubecontext": "write --context NAME", "cluster": "write --context NAME",
	"token": "set HEADGATE_GIT_PASSWORD for the repository, and HEADGATE_FORGE_TOKEN for the forge", "password": "set HEADGATE_GIT_PASSWORD", "username": "set HEADGATE_GIT_USERNAME",
	"debug": "write -v, or -vv for every request", "log-level": "write -v, or -vv for every request", "no-color": "write --color never",
	"from": "write --base COMMIT", "prune": "a pass prunes what left the commit; --max-prunes limits it", "force": "no flag lets everything pass; --approve DIGEST lets through what a report shows",
	"auto-approve": "no flag lets everything pass; --approve DIGEST lets through what a report shows", "dryrun": "write --dry-run", "recursive": "directories are always read with all below them",
}

// wrongFlag returns the error for a flag that the command line parser refuses.
func wrongFlag(cmd *cobra.Command, err error) error {
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is {
		return usagef("%w%s", err, insteadOfFlag(cmd, unknown))
	}
	if lacks, is := errors.AsType[*pflag.ValueRequiredError](err); is {
		word, _ := pflag.UnquoteUsage(lacks.GetFlag())
		return usagef("--%s needs a value: --%[1]s %s", lacks.GetFlag().Name, strings.ToUpper(word))
	}
	return usageError{wrongValue(err)}
}

// wrongValue returns an error about the value of a flag without the words of Go's parsers.
func wrongValue(err error) error {
	invalid, is := errors.AsType[*pflag.InvalidValueError](err)
	if _, number := errors.AsType[*strconv.NumError](err); !is || !number {
		return err
	}
	form := "a whole number"
	if invalid.GetFlag().Value.Type() == "bool" {
		form = "true or false"
	}
	return fmt.Errorf("invalid argument %q for \"--%s\" flag: use %s", invalid.GetValue(), invalid.GetFlag().Name, form)
}

// insteadOfFlag returns the advice for an unknown flag.
func insteadOfFlag(cmd *cobra.Command, unknown *pflag.NotExistError) string {
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		return insteadOfLetters(cmd, letters)
	}
	name := unknown.GetSpecifiedName()
	if near := misspelt(name, flagsOf(cmd)); near != "" {
		return "; did you mean --" + near + "?"
	}
	if instead := habits[strings.ToLower(name)]; instead != "" {
		return "; " + instead
	}
	return ofOthers(cmd, func(f *pflag.Flag) bool { return f.Name == name })
}

// insteadOfLetters returns the advice for what follows a single dash.
func insteadOfLetters(cmd *cobra.Command, letters string) string {
	word, _, _ := strings.Cut(letters, "=")
	for _, name := range flagsOf(cmd) {
		if len(word) > 1 && strings.HasSuffix(name, word) && len(name)-len(word) < 2 { // the first letter may be a flag
			return fmt.Sprintf("; write --%s, with two dashes", name)
		}
	}
	if letters == "V" {
		return "; write headgate version"
	}
	return ofOthers(cmd, func(f *pflag.Flag) bool { return f.Shorthand == letters[:1] })
}

// ofOthers returns the names of the commands that have a flag.
func ofOthers(cmd *cobra.Command, is func(*pflag.Flag) bool) string {
	var others []string
	for _, verb := range cmd.Root().Commands() {
		verb.Flags().VisitAll(func(f *pflag.Flag) {
			if verb.IsAvailableCommand() && is(f) {
				others = append(others, verb.Name())
			}
		})
	}
	if len(others) == 0 {
		return ""
	}
	return "; it is a flag of " + some(others)
}

// flagsOf returns the names of the flags of a command.
func flagsOf(cmd *cobra.Command) []string {
	var all []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// instead maps commands of other tools to what a user does here.
var instead = map[string]string{
	"rollback": "revert the commit in Git, and the next pass applies that", "undo": "revert the commit in Git, and the next pass applies that",
	"install": "examples/run has what runs Headgate in a cluster", "init": "'headgate lint DIRECTORY' shows whether a directory is ready",
	"watch": "'headgate run -f FILE' keeps a cluster in sync", "start": "'headgate run -f FILE' keeps a cluster in sync", "serve": "'headgate run -f FILE' keeps a cluster in sync",
	"activate": "a policy activates: 'headgate why NAME' prints the line to add",
	"get":      "'headgate status' shows what a sync owns, and 'headgate tree' what a commit declares", "list": "'headgate tree' lists what a commit declares",
}

// unknownVerb returns the error for a command that does not exist.
func unknownVerb(root *cobra.Command, verb string) error {
	near := root.SuggestionsFor(verb)
	switch {
	case len(near) > 0:
		return usagef("unknown command %q; did you mean %s?", verb, strings.Join(near, " or "))
	case isSyncFile(verb):
		return usagef("%s is a file of Syncs, and no command: 'headgate run -f %[1]s' applies them", verb)
	case isExistingDirectory(verb):
		return usagef("%s is a directory, and no command: 'headgate lint %[1]s' checks it, and 'headgate diff %[1]s' compares it with a cluster", verb)
	}
	if instead[strings.ToLower(verb)] != "" {
		return usagef("unknown command %q; %s", verb, instead[strings.ToLower(verb)])
	}
	return usagef("unknown command %q", verb)
}

// newHelp returns the command that describes another one.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Describe a command",
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownVerb(cmd.Root(), args[0])
			}
			verb.InitDefaultHelpFlag()
			return verb.Help()
		},
	}
}

const prefix = "HEADGATE_"

// The variables that are not named after a flag.
var variables = []string{"HEADGATE_GIT_USERNAME", "HEADGATE_GIT_PASSWORD", "HEADGATE_GIT_IDENTITY", "HEADGATE_GIT_KNOWN_HOSTS", "HEADGATE_GIT_CA", "HEADGATE_FORGE_TOKEN", "HEADGATE_WEBHOOK_SECRET"}

// unknownVariables returns a text for each variable HEADGATE_… of the environment that Headgate does not read. named holds the files
// of Syncs: they may name any variable.
func unknownVariables(root *cobra.Command, environment, named []string) []string {
	known := slices.Clone(variables)
	for _, verb := range root.Commands() {
		for _, name := range flagsOf(verb) {
			known = append(known, variable(name))
		}
	}
	known = slices.DeleteFunc(known, func(name string) bool { return name == variable("help") })
	var all []string
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, prefix) || value == "" || slices.Contains(known, name) || isNamed(name, named) {
			continue
		}
		text := name + " in the environment has no effect: Headgate reads no such variable"
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "_", "-"))
		switch near := misspelt(name, known); {
		case near != "":
			text += "; did you mean " + near + "?"
		case strings.HasPrefix(habits[flag], "set "):
			text += "; " + habits[flag]
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// isNamed reports whether one of the files contains the name of a variable.
func isNamed(variable string, files []string) bool {
	return slices.ContainsFunc(files, func(file string) bool {
		data, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(data), variable)
	})
}
