package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"headgate.dev/headgate/fixtures/golden"
)

// mostFlags is the maximum number of flags in the first group. The other groups follow it.
const mostFlags = 10

// TestHelp proves that --help shows every flag once, and few of them first. A flag in no group would be undocumented.
func TestHelp(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range flagGroups {
		for _, name := range g.flags {
			if seen[name] {
				t.Errorf("--%s is in two groups of flags", name)
			}
			seen[name] = true
		}
	}
	used := map[string]bool{"help": true}
	for _, verb := range verbs() {
		if first := count(flagGroups[0].of(verb)); first > mostFlags {
			t.Errorf("%s --help shows %d flags before the groups, at most %d are readable", verb.Name(), first, mostFlags)
		}
		verb.Flags().VisitAll(func(f *pflag.Flag) {
			used[f.Name] = true
			if !f.Hidden && !seen[f.Name] {
				t.Errorf("--%s of %s is in no group of flagGroups, so --help does not show it", f.Name, verb.Name())
			}
		})
		if verb.Example == "" && verb.Name() != "version" {
			t.Errorf("%s has no example", verb.Name())
		}
	}
	for name := range seen {
		if !used[name] {
			t.Errorf("flagGroups names --%s, and no verb has it", name)
		}
	}
}

const reference = "README.md"

// TestReference compares the reference of the command line with the commands. With -update it writes the reference.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# The command line

<!-- Written by: go test ./cmd/headgate -run TestReference -update -->

Each flag can also be set in the environment: ` + "`--max-prunes` is `HEADGATE_MAX_PRUNES`" + `. A flag beats the environment.
Data goes to standard output; errors, logs and progress go to standard error.
Flags that several verbs share are at the end: `)
	all := verbs()
	shared := sharedRows(all)
	var links []string
	for _, g := range flagGroups[1:] {
		if isShared(g, shared) {
			links = append(links, link(g))
		}
	}
	b.WriteString(strings.Join(links, ", ") + ".\n\n| verb | what it does |\n|---|---|\n")
	for _, verb := range all {
		fmt.Fprintf(&b, "| [`%s`](#headgate-%s) | %s |\n", verb.Name(), verb.Name(), verb.Short)
	}
	for _, verb := range all {
		fmt.Fprintf(&b, "\n## headgate %s\n\n%s.\n\n```console\n%s\n```\n\n%s\n", verb.Name(), verb.Short, unindented(verb.Example), paragraphs(verb))
		var own strings.Builder
		var others []string
		for i, g := range flagGroups {
			var names []string
			g.of(verb).VisitAll(func(f *pflag.Flag) {
				switch {
				case f.Name == "help":
				case i > 0 && shared[f.Name] == row(f):
					names = append(names, "`--"+f.Name+"`")
				default:
					own.WriteString(row(f))
				}
			})
			if len(names) > 0 {
				others = append(others, fmt.Sprintf("- %s: %s\n", link(g), strings.Join(names, ", ")))
			}
		}
		if own.Len() > 0 {
			b.WriteString("\n" + flagTable + own.String())
		}
		b.WriteString("\nShared flags:\n\n" + strings.Join(others, ""))
	}
	for _, g := range flagGroups[1:] {
		if !isShared(g, shared) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", g.title, flagTable)
		for _, name := range g.flags {
			b.WriteString(shared[name])
		}
	}
	golden.Compare(t, reference, strings.ReplaceAll(b.String(), "```console\n\n```\n\n", ""))
}

const flagTable = "| flag | default | meaning |\n|---|---|---|\n"

// link returns a link to the section of a group of flags.
func link(g flagGroup) string {
	return fmt.Sprintf("[%s](#%s)", strings.ToLower(g.title), strings.ReplaceAll(strings.ToLower(g.title), " ", "-"))
}

// sharedRows returns the rows of the flags outside the first group that several verbs have, by name. If verbs describe a flag
// differently, it returns the row that most of them have.
func sharedRows(verbs []*cobra.Command) map[string]string {
	times := map[string]int{}
	rows := map[string]string{}
	for _, verb := range verbs {
		for _, g := range flagGroups[1:] {
			g.of(verb).VisitAll(func(f *pflag.Flag) {
				r := row(f)
				if times[r]++; times[r] > times[rows[f.Name]] {
					rows[f.Name] = r
				}
			})
		}
	}
	maps.DeleteFunc(rows, func(_, r string) bool { return times[r] < 2 })
	return rows
}

// isShared reports whether the group has a flag that several verbs have.
func isShared(g flagGroup, shared map[string]string) bool {
	return slices.ContainsFunc(g.flags, func(name string) bool { return shared[name] != "" })
}

// verbs returns the commands in the order of --help.
func verbs() []*cobra.Command {
	root := newRoot(newTerminal(os.Stdout, os.Stderr, func(string) string { return "" }))
	root.InitDefaultHelpCmd()
	list := slices.DeleteFunc(root.Commands(), func(c *cobra.Command) bool { return !c.IsAvailableCommand() || c.Name() == "help" })
	for _, verb := range list {
		verb.InitDefaultHelpFlag()
		verb.InheritedFlags()
	}
	return list
}

func count(set *pflag.FlagSet) int {
	n := 0
	set.VisitAll(func(*pflag.Flag) { n++ })
	return n
}

// row returns the table row of a flag.
func row(f *pflag.Flag) string {
	word, usage := pflag.UnquoteUsage(f)
	name := "`--" + f.Name
	if word != "" && f.Value.Type() != "bool" && f.Value.Type() != "count" {
		name += " " + word
	}
	name += "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "`, " + name
	}
	initial := f.DefValue
	if initial == "[]" || initial == "false" || initial == "0" {
		initial = ""
	}
	if initial != "" {
		initial = "`" + initial + "`"
	}
	return fmt.Sprintf("| %s | %s | %s |\n", name, initial, strings.ReplaceAll(usage, "|", `\|`))
}

// paragraphs returns the description of a verb without the line breaks for terminals. Indented blocks stay unchanged.
func paragraphs(verb *cobra.Command) string {
	var all []string
	for p := range strings.SplitSeq(strings.TrimSpace(verb.Long), "\n\n") {
		if strings.HasPrefix(p, " ") {
			p = "```text\n" + unindented(p) + "\n```"
		} else if !strings.Contains(p, "\n ") {
			p = strings.ReplaceAll(p, "\n", " ")
		}
		all = append(all, p)
	}
	return strings.Join(all, "\n\n")
}

func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "  ")
	}
	return strings.Join(lines, "\n")
}
