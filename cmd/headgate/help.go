package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A flagGroup is a heading in --help with the flags below it.
type flagGroup struct {
	title string
	flags []string
}

// flagGroups lists every flag under one heading. The first group holds the common flags: at most ten for each verb. TestHelp fails
// on a flag that has no group.
var flagGroups = []flagGroup{
	{"Flags", []string{
		"file", "sync", "previews", "once", "webhook-address", "write", "by", "why", "expires", "report", // run, approve
		"name", "namespace", "watch-namespace", "shard", "watch-label-selector", "default-service-account", "approve", "dry-run", "yes", "orphan", "rebuilt", "restart", "unused",
		"live", "comment", "status", "exit-on", "all", "orphans", "all-namespaces", "export", "profile", "delete-syncs", "to", "check", "update", "version", "depth", "output", "help",
	}},
	{"Which commit", []string{"repo", "ref", "path", "base", "head"}},
	{"Which cluster", []string{"kubeconfig", "context", "as", "as-group"}},
	{"Policies and limits", []string{
		"management-policy", "adoption", "adoption-leftovers", "conflicts", "drift", "instances", "deactivation", "crd-owner", "take-over", "approval-trailers", "approval-signer", "verify", "commit-key", "history", "max-prunes", "max-activations", "approvals", "no-cross-namespace-refs",
	}},
	{"How a commit is read", []string{
		"catalogue", "others", "package", "crossplane-version", "kubernetes-version", "schemas", "conversion", "conversion-service", "conversion-ca", "connection-details", "limits",
	}},
	{"Registries and caches", []string{"offline", "verification-key", "trusted-root", "cache-dir", "cache-size", "no-cache"}},
	{"Forge", []string{"target", "commands", "if-commanded", "preview-registries", "fork-registries", "approver", "approval-by-author", "approval-reviews", "forge", "forge-repo", "plain-http", "pull", "cluster-name", "target-url"}},
	{"Installation", []string{"service-account", "secret", "provider-group", "count-group", "image", "registry", "pull-secret", "ca-config-map", "egress-port"}},
	{"Webhooks", []string{"webhook-cert", "webhook-key", "webhook-plain-http", "webhook-endpoints"}},
	{"Probes and metrics", []string{"health-address", "metrics-address", "pprof-address"}},
	{"Waiting", []string{"timeout", "no-wait", "until", "registry-timeout", "concurrent"}},
	{"Output", []string{"full", "audit-log", "color", "verbose"}},
}

const helpWidth = 100 // columns of --help

// helpOf returns the text of --help: what the verb does, examples, then flags by group.
func helpOf(verb *cobra.Command) string {
	var b strings.Builder
	example := strings.ReplaceAll(verb.Example, "headgate ", verb.Root().CommandPath()+" ")
	if verb.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "%s\n\nExamples:\n%s\n\nUsage:\n  %s [command]\n", verb.Long, example, verb.CommandPath())
		for _, group := range verbGroups {
			fmt.Fprintf(&b, "\n%s:\n", group.title)
			for _, sub := range verb.Commands() {
				if sub.GroupID == group.title {
					fmt.Fprintf(&b, "  %-12s%s\n", sub.Name(), sub.Short)
				}
			}
		}
	} else {
		fmt.Fprintf(&b, "%s.\n\n", verb.Short)
		if example != "" {
			fmt.Fprintf(&b, "Examples:\n%s\n\n", example)
		}
		if long := strings.TrimSpace(verb.Long); long != "" {
			fmt.Fprintf(&b, "%s\n\n", long)
		}
		fmt.Fprintf(&b, "Usage:\n  %s\n", verb.UseLine())
	}
	for _, group := range flagGroups {
		usages := group.of(verb).FlagUsagesWrapped(helpWidth)
		if usages = strings.ReplaceAll(usages, " (default [])", ""); usages != "" {
			fmt.Fprintf(&b, "\n%s:\n%s", group.title, usages)
		}
	}
	if verb.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help describes a command.\n", verb.CommandPath())
	}
	return b.String()
}

// The flags of a Sync that have no effect on some verbs.
var (
	// onApply have an effect only on what is applied.
	onApply = []string{"adoption-leftovers", "conflicts", "drift", "take-over"}
	// onGuards have an effect only on steps, which a verb that explains definitions has none of.
	onGuards = []string{"adoption", "approve", "history", "instances", "max-activations", "max-prunes"}
)

// leaveOut leaves flags out of --help. The verb still accepts them, because scripts give several verbs the same flags.
func leaveOut(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		if f := cmd.Flags().Lookup(name); f != nil {
			f.Hidden = true
		}
	}
}

// of returns the flags of a verb that are in the group, in its order.
func (g flagGroup) of(verb *cobra.Command) *pflag.FlagSet {
	set := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
	set.SortFlags = false
	for _, name := range g.flags {
		if f := verb.Flags().Lookup(name); f != nil && !f.Hidden {
			set.AddFlag(f)
		} else if f := verb.InheritedFlags().Lookup(name); f != nil && !f.Hidden {
			set.AddFlag(f)
		}
	}
	return set
}
