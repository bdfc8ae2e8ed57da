package main

import "github.com/spf13/cobra"

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
