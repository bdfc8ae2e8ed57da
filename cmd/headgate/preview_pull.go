package main

import (
	"cmp"
	"context"
	"math"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render"

	"github.com/spf13/cobra"
)

// forgeFlags holds the flags that locate a pull request.
type forgeFlags struct {
	kind      choice
	repo      string
	pull      int
	cluster   string
	targetURL string
}

func (f *forgeFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.kind.addTo(cmd, "forge", "", "the kind of the forge; auto takes it from the URL or the pipeline")
	flags.StringVar(&f.repo, "forge-repo", "", "the repository on the forge, as its `URL` (default: that of the workflow, or --repo)")
	addNumber(cmd, &f.pull, "pull", 0, v1alpha1.Range{Least: 1, Most: math.MaxInt32}, "`number` of the pull request (default: that of the workflow)")
	flags.StringVar(&f.cluster, "cluster-name", "", "with --live: `name` of the cluster in the status")
	flags.StringVar(&f.targetURL, "target-url", "", "`URL` that the status links to")
}

// previews returns the publisher of previews, or nil if it was not requested.
func (t *terminal) previews(ctx context.Context, f *previewFlags, of *git.Repository) (*forge.Previews, error) {
	if !f.comment && !f.status && f.forge.pull == 0 {
		return nil, nil
	}
	in := forge.WorkflowOf(t.getenv)
	if cmp.Or(f.forge.pull, in.Pull) == 0 && !f.forge.isQueued(in) {
		return nil, usagef("the pull request is not known: set --pull outside of a workflow for pull requests")
	}
	account, err := t.account(&f.forge, in, of)
	if err != nil || account == nil {
		return nil, err
	}
	pulls, err := account.Pulls()
	if err != nil {
		return nil, err
	}
	pull, err := f.pullRequest(ctx, in, pulls)
	if err != nil {
		return nil, err
	}
	current, err := t.endpoints(ctx, f, in, pull, of)
	if err != nil || !current {
		return nil, err
	}
	return f.publisher(ctx, in, pull, *account, pulls)
}

// isQueued reports whether a workflow runs for a merge queue, and no flag names a pull request.
func (f *forgeFlags) isQueued(in forge.Workflow) bool { return in.Queued && f.pull == 0 }

// account returns the account on the forge of the pull request, or nil for the pipeline of a fork, which has no token.
func (t *terminal) account(f *forgeFlags, in forge.Workflow, of *git.Repository) (*forge.Account, error) {
	at, err := f.repository(in, of)
	if err != nil {
		return nil, err
	}
	token := cmp.Or(t.getenv("HEADGATE_FORGE_TOKEN"), in.Token)
	switch {
	case token == "" && in.Fork:
		t.warn("the pipeline of a fork has no token, so nothing is posted; the exit code and the output are the result")
		return nil, nil
	case token == "":
		return nil, usagef("the environment has no token of the forge: set HEADGATE_FORGE_TOKEN")
	}
	return &forge.Account{Repository: at, Token: forge.Token(token), Plain: of.Plain}, nil
}

// pullRequest returns the pull request to preview. If the workflow runs because it was closed, that is another open one with its head.
func (f *previewFlags) pullRequest(ctx context.Context, in forge.Workflow, pulls *forge.Pulls) (forge.Pull, error) {
	number := cmp.Or(f.forge.pull, in.Pull)
	if f.forge.isQueued(in) {
		return forge.Pull{Number: number, Head: in.Head, Target: in.Target, Queued: true}, nil
	}
	pull, err := pulls.Pull(ctx, number)
	if err != nil || !in.Closed || number != in.Pull {
		return pull, err
	}
	open, err := pulls.Open(ctx)
	if err != nil {
		return forge.Pull{}, err
	}
	pull, err = f.heir(pull, open)
	f.head = cmp.Or(f.head, pull.Head)
	return pull, err
}

// endpoints sets the base and the head that no flag sets. It reports false if the workflow runs for a former head or target of the
// pull request.
func (t *terminal) endpoints(ctx context.Context, f *previewFlags, in forge.Workflow, pull forge.Pull, of *git.Repository) (current bool, err error) {
	switch {
	case pull.Queued:
		f.base, f.head = cmp.Or(f.base, in.Base), cmp.Or(f.head, in.Head)
	case isURL(f.repo): // a URL has no clone whose HEAD is the head of the pull request
		f.base, f.head = cmp.Or(f.base, pull.Target), cmp.Or(f.head, pull.Head)
	case pull.Number == in.Pull:
		clone, err := of.Resolve(ctx, cmp.Or(f.head, "HEAD"))
		if err != nil {
			return false, err
		}
		if in.Superseded(pull, clone) {
			t.warn("this run is of commit %.12s into %s, and the pull request is of %.12s into %s now, so nothing is posted", in.Head, in.Target, pull.Head, pull.Target)
			return false, nil
		}
		f.base = cmp.Or(f.base, in.Base, "origin/"+pull.Target)
	default:
		f.base = cmp.Or(f.base, "origin/"+pull.Target)
	}
	return true, nil
}

// publisher returns what posts the comment and the status that the flags ask for.
func (f *previewFlags) publisher(ctx context.Context, in forge.Workflow, pull forge.Pull, account forge.Account, pulls *forge.Pulls) (*forge.Previews, error) {
	cluster := ""
	if f.live {
		cluster = f.forge.cluster
	}
	previews := &forge.Previews{Name: forge.NameOfSync(f.sync(), cluster, v1alpha1.DefaultNamespace), TargetURL: f.forge.targetURL, Run: in.Run, Pull: pull}
	if !pull.Queued {
		previews.Now = func(ctx context.Context) (forge.Pull, error) { return pulls.Pull(ctx, pull.Number) }
	}
	if f.comment {
		previews.Pulls = pulls
	}
	if f.commands {
		if err := account.Repository.Kind.Check(f.rules); err != nil {
			return nil, usagef("--commands: %w with --approver, or approve in %s", err, render.ApprovalsFile)
		}
		previews.Commands = map[inventory.Sync]forge.Rules{f.sync(): f.rules}
	}
	if f.status {
		poster, err := account.Poster()
		if err != nil {
			return nil, err
		}
		previews.Poster = poster
	}
	return previews, f.judge(ctx, previews, pulls)
}

// repository returns the repository of the pull request on the forge.
func (f *forgeFlags) repository(in forge.Workflow, of *git.Repository) (forge.Repository, error) {
	configured := target.ForgeKind(f.kind.value)
	url := f.repo
	if url == "" && isURL(of.URL) {
		url = of.URL
	}
	var at forge.Repository
	var err error
	switch {
	case url == "" && in.Name == "":
		return at, usagef("the repository of the pull request is not known: set --forge-repo outside of a workflow for pull requests")
	case url == "":
		at, err = forge.RepositoryAt(in.Server, in.Name, cmp.Or(configured, in.Kind))
	default:
		if at, err = forge.RepositoryOf(url, configured); err == nil && at.Kind == "" {
			at, err = forge.RepositoryOf(url, in.Kind)
		}
	}
	if err == nil && at.Kind == "" {
		err = usagef("the URL %s does not show the kind of the forge; specify --forge", at.Base)
	}
	return at, err
}
