package main

import (
	_ "embed"
	"fmt"

	"github.com/spf13/cobra"
)

// bashWithout lets the script of bash work where the package bash-completion is absent.
//
//go:embed completion.bash
var bashWithout string

func newCompletion(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a completion script for a shell",
		Example: `  source <(headgate completion bash)
  headgate completion zsh > "${fpath[1]}/_headgate"
  headgate completion fish > ~/.config/fish/completions/headgate.fish`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.MatchAll(takes(1, 1, ""), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				if _, err := fmt.Fprint(t.out, bashWithout); err != nil {
					return err
				}
				return root.GenBashCompletionV2(t.out, true)
			case "zsh":
				return root.GenZshCompletion(t.out)
			case "fish":
				return root.GenFishCompletion(t.out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(t.out)
			}
		},
	}
}
