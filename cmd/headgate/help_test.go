package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
		if verb.GroupID == "" {
			t.Errorf("%s is in no group of verbs, so --help does not show it", verb.Name())
		}
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

// TestLeaveOut proves that --help shows a flag only if it has an effect on the verb, and that the verb still accepts the others.
func TestLeaveOut(t *testing.T) {
	for _, verb := range verbs() {
		shown := map[string]bool{}
		for _, g := range flagGroups {
			g.of(verb).VisitAll(func(f *pflag.Flag) { shown[f.Name] = true })
		}
		switch verb.Name() {
		case "diff", "sync":
			if !shown["drift"] || !shown["max-prunes"] {
				t.Errorf("%s plans steps, and --help does not show the flags about them", verb.Name())
			}
		case "why", "tree":
			if shown["max-prunes"] || verb.Flags().Lookup("max-prunes") == nil {
				t.Errorf("%s explains definitions: it accepts --max-prunes, and --help does not show it", verb.Name())
			}
		case "preview", "upgrade":
			if shown["drift"] || !shown["max-activations"] {
				t.Errorf("%s compares commits, and --help shows --drift or lacks --max-activations", verb.Name())
			}
		}
		if shown["approval-trailers"] {
			t.Errorf("%s --help shows a flag without effect", verb.Name())
		}
	}
}

// reference is the folder with a page for each verb.
const reference = "reference"

const written = "<!-- Written by: go test ./cmd/headgate -run TestReference -update -->\n\n"

// TestReference compares the reference of the command line with the commands. With -update it writes the reference: README.md, which
// lists the verbs, a page for each verb, and a page with the flags that verbs share.
func TestReference(t *testing.T) {
	all := verbs()
	shared := sharedRows(all)
	pages := map[string]string{"README.md": listOf(all), reference + "/flags.md": sharedFlags(shared)}
	for _, verb := range all {
		pages[reference+"/"+verb.Name()+".md"] = pageOf(verb, shared)
	}
	for name, text := range pages {
		golden.Compare(t, name, text)
	}
	files, err := filepath.Glob(reference + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if pages[filepath.ToSlash(file)] == "" {
			t.Errorf("%s is the page of no verb; remove it", file)
		}
	}
}

// listOf returns the page that lists the verbs by group.
func listOf(verbs []*cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\n" + written + "Each flag can also be set in the environment: `--max-prunes` is `HEADGATE_MAX_PRUNES`. A flag beats the environment.\n" +
		"Data goes to standard output; errors, logs and progress go to standard error. [Shared flags](" + reference + "/flags.md) are the flags that several\n" +
		"verbs have.\n")
	for _, group := range verbGroups {
		fmt.Fprintf(&b, "\n## %s\n\n| verb | what it does |\n|---|---|\n", group.title)
		for _, verb := range verbs {
			if verb.GroupID == group.title {
				fmt.Fprintf(&b, "| [`%s`](%s/%[1]s.md) | %[3]s |\n", verb.Name(), reference, verb.Short)
			}
		}
	}
	return b.String()
}

// pageOf returns the page of a verb.
func pageOf(verb *cobra.Command, shared map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# headgate %s\n\n%s%s.\n", verb.Name(), written, verb.Short)
	if verb.Example != "" {
		fmt.Fprintf(&b, "\n```console\n%s\n```\n", unindented(verb.Example))
	}
	if text := paragraphs(verb); text != "" {
		fmt.Fprintf(&b, "\n%s\n", text)
	}
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
		b.WriteString("\n## Flags\n\n" + flagTable + own.String())
	}
	b.WriteString("\n## Shared flags\n\n" + strings.Join(others, ""))
	return b.String()
}

// sharedFlags returns the page with the flags that several verbs have.
func sharedFlags(shared map[string]string) string {
	var b strings.Builder
	b.WriteString("# Shared flags\n\n" + written + "Several verbs have these flags. The page of each verb lists which of them it has.\n")
	for _, g := range flagGroups[1:] {
		if !isShared(g, shared) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", g.title, flagTable)
		for _, name := range g.flags {
			b.WriteString(shared[name])
		}
	}
	return b.String()
}

const flagTable = "| flag | default | meaning |\n|---|---|---|\n"

// link returns a link from the page of a verb to the section of a group of flags.
func link(g flagGroup) string {
	return fmt.Sprintf("[%s](flags.md#%s)", strings.ToLower(g.title), strings.ReplaceAll(strings.ToLower(g.title), " ", "-"))
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
