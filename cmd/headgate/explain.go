package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/manual"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

// site is where the pages of the manual are published.
const site = "https://headgate.dev/manual/"

func newExplain(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE | GUARD]",
		Short: "Explain the code of a reason, or a guard",
		Long: `Explain prints the page of the manual about a code or a guard. Reports in JSON contain the codes;
text and comments name the guards, as in 'held by guard "in use"'. Without an argument, Explain
lists all guards and codes. 'headgate why' explains a definition.

Exit codes: 0 explained, 2 wrong usage or an unknown name.`,
		Example: `  headgate explain
  headgate explain in use
  headgate explain DeletesObjects`,
		Args: takes(0, 3, ""),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return explained(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text := listOfCodes()
			if len(args) > 0 {
				var err error
				if text, err = explain(strings.Join(args, " ")); err != nil {
					return err
				}
			}
			_, err := fmt.Fprint(t.out, text)
			return err
		},
	}
}

// explain returns what explains a code or a guard. It ignores case.
func explain(name string) (string, error) {
	for _, g := range manual.Guards() {
		if strings.EqualFold(name, g.Name) {
			return fmt.Sprintf("%s\n\n%s\n\nCodes: %s\n\n%sguards/%s\n", g.Title, g.Page, strings.Join(g.Codes, ", "), site, strings.ReplaceAll(g.Name, " ", "-")), nil
		}
	}
	for _, e := range manual.Entries() {
		if strings.EqualFold(name, e.Code) {
			page := ""
			if e.Page != "" {
				page = e.Page + "\n\n"
			}
			return fmt.Sprintf("%s: %s\n\n  %s\n\n%s%s%s\n", e.Code, e.About, e.Message, page, site, strings.Replace(e.Link, ".md", "", 1)), nil
		}
	}
	if near := manifest.Meant(name, explained()); near != "" {
		return "", usagef("no code and no guard is named %q; did you mean %s? 'headgate explain' lists all", name, near)
	}
	return "", usagef("no code and no guard is named %q; 'headgate explain' lists all, and 'headgate why %[1]s' explains a definition", name)
}

// explained returns the names of all guards and codes.
func explained() []string {
	return slices.Concat(slices.Sorted(maps.Keys(manual.Guards())), slices.Sorted(maps.Keys(manual.Entries())))
}

// listOfCodes returns all guards and codes, by what they are about.
func listOfCodes() string {
	about := map[string][]string{}
	for code, e := range manual.Entries() {
		about[e.About] = append(about[e.About], code)
	}
	var b strings.Builder
	for _, heading := range slices.Sorted(maps.Keys(about)) {
		slices.Sort(about[heading])
		fmt.Fprintf(&b, "%s\n  %s\n", heading, strings.Join(about[heading], " "))
	}
	return b.String()
}
