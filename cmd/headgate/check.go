package main

import (
	"fmt"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/reconcile/preflight"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
)

func newCheck(t *terminal) *cobra.Command {
	var (
		in      clusterFlags
		files   []string
		cache   string
		trust   trustFlags
		plain   network.Plain
		offline bool
		format  = oneOf("text", "json")
	)
	cmd := &cobra.Command{
		Use: "check [-f FILE] [flags]",

		SuggestFor: []string{"doctor", "preflight", "verify"},

		Short: "Find out whether passes will work, before the first one",
		Long: `Check reads the cluster and, for each Sync of a file, its repository, its registries and its
forge. It names each problem that would stop a pass, and what to do. It changes nothing.

For a cluster: the versions of Kubernetes and Crossplane, policies that activate everything,
CRDs whose owner is gone, Sync objects whose shard no Deployment watches, rights that are too
wide, the expiry of the credentials, the clock.
For a Sync: the file, the commit, its packages, the rights that are missing and the file of
examples that grants them, objects that Flux, Argo CD or Helm owns, another process that applies
the Sync, the token of the forge and its expiry, the status that the branch requires, another
cluster with the same clusterName, as far as the forge shows it, and Syncs of one cluster that mix
statuses.contexts.

With --offline, it sends no request: it reads the file, a repository on this machine, and the
credentials' own expiry, and lists what it skipped.

A result is ok, a warning, failed, not known, or skipped.

Exit codes: 0 no check failed, 1 a check failed, 2 wrong usage.`,
		Example: `  headgate check
  headgate check -f sync.yaml
  headgate check -f sync.yaml --as system:serviceaccount:headgate-system:headgate
  headgate check -f sync.yaml --offline -o json`,
		Args: takes(0, 0, "-f names a file of Syncs"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			syncs, results, err := t.syncsToCheck(files)
			if err != nil {
				return err
			}
			checks := target.Checks{
				Syncs: syncs, Config: in.config, Offline: offline,
				Around: target.Surroundings{
					Getenv: t.getenv, Cache: clones(cache), KeyFiles: trust.keys, TrustedRoot: trust.root, Plain: plain, Secret: t.masked.hide,
				},
			}
			results = append(results, checks.Run(cmd.Context())...)
			return t.checked(results, in.String(), format.value)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&files, "file", "f", nil, "`file` of Syncs; may be given several times. Without one, check only the cluster")
	flags.BoolVar(&offline, "offline", false, "send no request")
	in.addTo(cmd)
	addPlain(cmd, &plain)
	flags.StringVar(&cache, "cache-dir", "", "keep clones of repositories and packages in this `directory` (default: the user's cache)")
	trust.addTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// syncsToCheck reads the Syncs of files. A mistake in a file is a result, so that the other checks run.
func (t *terminal) syncsToCheck(files []string) ([]v1alpha1.Sync, []preflight.Result, error) {
	if len(files) == 0 {
		return nil, nil, nil
	}
	syncs, err := readSyncs(files)
	if isUsage(err) {
		return nil, nil, err
	}
	for _, s := range syncs {
		for _, secret := range target.Secrets(s, t.getenv) {
			t.masked.hide(secret)
		}
	}
	file := preflight.Result{Check: "file of Syncs", Status: preflight.OK, Message: strings.Join(files, ", ")}
	if err == nil {
		err = target.OneHost(syncs, t.getenv)
	} else {
		syncs = nil // their settings may not be what the user wants
	}
	if err == nil {
		return syncs, []preflight.Result{file}, nil
	}
	var results []preflight.Result
	for line := range strings.SplitSeq(err.Error(), "\n") {
		file.Status, file.Message = preflight.Failed, line
		results = append(results, file)
	}
	return syncs, results, nil
}

// checked prints results and returns the exit code as an error.
func (t *terminal) checked(results []preflight.Result, cluster, format string) error {
	t.progress.Stop()
	code := report.ExitSuccess
	if preflight.Failures(results) {
		code = report.ExitFailed
	}
	var err error
	if format == "json" {
		err = t.json(map[string]any{
			"apiVersion": report.APIVersion, "kind": "Checks", "exitCode": code, "summary": preflight.Count(results), "results": results,
		})
	} else {
		_, err = fmt.Fprint(t.out, t.checkText(results, cluster))
	}
	if err == nil && code != report.ExitSuccess {
		err = exit{code: code}
	}
	return err
}

// checkText returns results for people, below the cluster and each Sync.
func (t *terminal) checkText(results []preflight.Result, cluster string) string {
	var b strings.Builder
	heading := "-"
	for _, r := range results {
		if r.Sync != heading {
			if heading = r.Sync; b.Len() > 0 {
				b.WriteString("\n")
			}
			name := cluster
			if r.Sync != "" {
				name = "Sync " + r.Sync
			}
			fmt.Fprintln(&b, printable(name))
		}
		fmt.Fprintf(&b, "  %s %s: %s\n", t.statusWord(r.Status), r.Check, oneLine(r.Message))
		if r.Do != "" {
			fmt.Fprintf(&b, "%12s→ %s\n", "", oneLine(r.Do))
		}
		if r.Docs != "" {
			fmt.Fprintf(&b, "%12ssee %s\n", "", r.Docs)
		}
	}
	var counts []string
	count := preflight.Count(results)
	for _, s := range preflight.Statuses {
		if count[s] > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	fmt.Fprintf(&b, "\nSummary: %s\n", strings.Join(counts, ", "))
	return b.String()
}

// statusWord returns a status in a column, with a colour if it needs attention.
func (t *terminal) statusWord(s preflight.Status) string {
	word := fmt.Sprintf("%-9s", s)
	colour := map[preflight.Status]string{preflight.Failed: red, preflight.Warning: yellow}[s]
	if colour == "" || !t.coloured(t.outTTY()) {
		return word
	}
	return colour + word + plain
}

// oneLine returns a text of another system as one printable line.
func oneLine(text string) string {
	return printable(strings.Join(strings.Fields(text), " "))
}
