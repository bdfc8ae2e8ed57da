package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"
	"headgate.dev/headgate/render/crossplane"

	"github.com/spf13/cobra"
)

// previewFlags holds the flags of preview, including those that a pass does not have.
type previewFlags struct {
	*passFlags
	exitOn          threshold
	base, head      string
	live            bool
	comment, status bool
	commands        bool
	others          []reconcile.Request // other pull requests that decide about the status of the head
	apart           bool                // this pull request does not
	ifCommanded     bool
	registries      []string
	forkRegistries  []string
	targets         []string
	rules           forge.Rules
	registryTimeout time.Duration
	forge           forgeFlags
}

func newPreview(t *terminal) *cobra.Command {
	f := &previewFlags{passFlags: new(passFlags), exitOn: threshold{report.OnBlocked}, forge: forgeFlags{kind: oneOf(append([]string{"auto"}, target.Forges()...)...)}}
	show := newView()
	cmd := &cobra.Command{
		Use:   "preview [flags]",
		Short: "Show what merging a pull request does, and post it",
		Long: `Preview compares the head of a pull request with its merge base: what becomes active and
by which pattern, what leaves, which schemas break, what guards would hold, and findings. It
needs a clone and no cluster. If the target cannot be rendered, Headgate lints the head
and reports that nothing was compared. It reads the commits in a separate process with 1 GiB of memory,
and refuses a head that needs more.

--comment posts one comment on the pull request and updates it in every run. A worse verdict
is a new comment, and the old one points to it. --status posts a commit status on its head:
headgate/NAME/preview, or headgate/CLUSTER/NAME/preview with --live.

With --live, Headgate asks a cluster for counts, stored versions, active definitions, policies,
packages and ImageConfigs. Policies that only the cluster has count in both commits. It also checks whether objects would be refused or lose a value
where a schema breaks.

` + aboutPipelines() + `

On behalf of the head, Headgate asks only the registries that its target names, those in
--preview-registries, ` + strings.Join(crossplane.Registries, " and ") + `. They may have any address, and
redirect to public addresses. It reads only the Secrets that the target names.

With --commands, people who may write to the repository command Headgate with the first lines
of a comment: /headgate approve DIGEST HEAD, /headgate preview, /headgate explain NAME. An approval
of the digest in the preview lets what blocks it pass, for that commit. The authors of the
pull request and of its commits cannot approve. Everybody can comment, so a job that a
comment starts uses --if-commanded.

With --target, the status of a pull request into another branch is an error: the author of a
pull request chooses its target. If the pull requests into several targets have one head, its
status is the worst of their verdicts. Only those count whose authors wrote the head or may
write, unless none does. If a workflow runs because a pull request was closed, Headgate
previews another open one with its head, or does nothing if there is none.

For a pull request from a fork, Headgate uses no credentials of registries, and asks only
the registries in --fork-registries for packages. With --live, it reads only ImageConfigs.

Every preview is safe, look or blocked, in the headline, the status and the summary line.
Blocked: an error, a hold, or a schema that breaks or a kind that goes, if something uses it
or the use is not known. Look: a change that a person should read, such as an activation by
a wildcard. Safe: everything else. New versions of packages that previewTrust of the Sync
trusts are safe if no schema breaks. If the file of --file is in a checkout, that field
counts as the target has it, because the checkout has the files of the head.

Exit codes: 0 nothing that --exit-on names, 1 something that it names, 2 error; an error
beats changes. The status fails exactly when the exit code is not 0. --exit-on takes
words separated by commas: any (change), blocked, breaking (schemas that break and kinds that
a new version of a package drops), holds, errors (new ones), findings (new errors or
warnings), or never. A new version of a package that cannot be read is an error. If its
registry cannot be reached, run the preview again when it answers.`,
		Example: `  headgate preview
  headgate preview --base origin/main --head HEAD -o markdown
  headgate preview --comment --status
  headgate preview --comment --status --exit-on blocked,findings
  headgate preview --repo https://git.example.org/team/platform.git --pull 7 --comment`,
		Args: takes(0, 0, "--base and --head name the commits"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("target") && len(f.targets) == 0 {
				return usagef("--target names no branch: an empty list would allow all")
			}
			r, err := t.preview(cmd.Context(), f)
			if isUsage(err) {
				return err
			}
			if note, ok := errors.AsType[noted](err); ok {
				t.warn("%v", note)
				return nil
			}
			if err != nil && r.Kind == "" { // the preview failed
				r = report.Failed(f.sync(), "", err)
			}
			r = r.On(f.exitOn.words())
			if err := errors.Join(err, t.report(show, r)); err != nil {
				return exit{exitDiffError, err}
			}
			return exitOf(r, f.exitOn.words())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.base, "base", "", "the target of the merge: a `branch` or commit (default: the target of the workflow's pull request, or origin/main)")
	flags.StringVar(&f.head, "head", "", "the head of the merge: a `branch` or commit (default HEAD)")
	values(cmd, "base", refs)
	values(cmd, "head", refs)
	flags.StringSliceVar(&f.targets, "target", nil, "the `branches` into which pull requests are previewed, such as main,release/*; others get the status error (default: all)")
	flags.BoolVar(&f.live, "live", false, "ask the cluster for counts, stored versions and what is active already")
	flags.BoolVar(&f.comment, "comment", false, "post one comment on the pull request, or update it")
	flags.BoolVar(&f.status, "status", false, "post a commit status on the head of the pull request")
	flags.BoolVar(&f.commands, "commands", false, "with --comment and --status: read and answer the commands in comments, and count their approvals")
	flags.BoolVar(&f.ifCommanded, "if-commanded", false, "with --commands: do nothing unless a user who may write wrote a command that has no answer yet")
	flags.StringSliceVar(&f.forkRegistries, "fork-registries", nil, "for a pull request from a fork: ask only these registries, by their `hosts`, without credentials (default: none)")
	flags.StringArrayVar(&f.rules.Approvers, "approver", nil, "with --commands: `user` of the forge who may approve, as id:NUMBER or a name, which others can take (default: everyone who may write); may be given several times")
	flags.BoolVar(&f.rules.ByAuthor, "approval-by-author", false, "with --commands: the authors of the pull request may approve it, too, in teams of one")
	flags.BoolVar(&f.rules.Reviews, "approval-reviews", false, "with --commands: count reviews that approve the previewed commit")
	flags.StringSliceVar(&f.registries, "preview-registries", nil, "registries that the pull request may name although its target does not, by their `hosts`; besides "+strings.Join(crossplane.Registries, " and "))
	addWait(cmd, &f.registryTimeout, "registry-timeout", time.Minute, "how long to try again if a registry cannot be reached; the status is pending meanwhile")
	f.forge.addTo(cmd)
	show.addTo(cmd)
	f.exitOn.addTo(cmd)
	f.addTo(cmd)
	leaveOut(cmd, onApply...)
	return cmd
}

// waitsWithin returns the waits between attempts to reach a registry. Each is three times as long as the one before; together they
// last timeout.
func waitsWithin(timeout time.Duration) (waits []time.Duration) {
	for next := 5 * time.Second; timeout > 0; next *= 3 {
		waits = append(waits, min(next, timeout))
		timeout -= next
	}
	return waits
}

// aboutPipelines returns the part of the help that depends on the forges.
func aboutPipelines() string {
	names, tokens := forge.Pipelines()
	return wrapped("In a pipeline of " + enumerated(names, "or") + " Headgate finds the repository and the number itself; elsewhere specify --forge-repo, --forge and --pull. " +
		"The token is HEADGATE_FORGE_TOKEN, or in a pipeline " + enumerated(tokens, "or") + ". " +
		ofForges(func(f forge.Forge) string { return f.TokenHelp }) + " The clone needs its history (fetch-depth: 0, GIT_DEPTH: 0). With --repo URL and --pull it compares the commits of the pull request.")
}

// ofForges joins the sentences that the forges contribute to the help.
func ofForges(sentence func(forge.Forge) string) string {
	var all []string
	for _, f := range forge.All() {
		if s := sentence(f); s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, " ")
}

// enumerated returns words as a list in a sentence.
func enumerated(words []string, last string) string {
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// wrapped wraps a text to the width of the help.
func wrapped(text string) string {
	const width = 88
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch n := utf8.RuneCountInString(word); {
		case column == 0:
			column = n
		case column+1+n > width:
			b.WriteByte('\n')
			column = n
		default:
			b.WriteByte(' ')
			column += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}

func (t *terminal) preview(ctx context.Context, f *previewFlags) (report.Report, error) {
	if err := f.check(); err != nil {
		return report.Report{}, err
	}
	source, err := t.commits(&f.sourceFlags)
	if err != nil {
		return report.Report{}, err
	}
	repository, ok := source.(*git.Repository)
	if !ok {
		return report.Report{}, usagef("preview needs a Git repository")
	}
	previews, err := t.previews(ctx, f, repository)
	if err != nil {
		return report.Report{}, err
	}
	if f.ifCommanded {
		if err := isCommanded(ctx, previews); err != nil {
			return report.Report{}, err
		}
	}
	into := cmp.Or(f.base, forge.WorkflowOf(t.getenv).Base, "origin/main")
	t.syncOfTarget(ctx, f, repository, into)
	fork := forge.WorkflowOf(t.getenv).Fork || previews != nil && previews.Pull.Fork
	w, elsewhere, err := t.isolated(f, repository, fork)
	if err != nil {
		return report.Report{}, err
	}
	of := reconcile.Merge{
		History: repository, Into: into, Head: cmp.Or(f.head, "HEAD"),
		Elsewhere: elsewhere, FailOn: f.exitOn.words(), Waits: waitsWithin(f.registryTimeout),
	}
	t.progress.Phase("render", 0, 0)
	if previews != nil {
		if of.Publisher, err = f.shared(ctx, w, of, previews); err != nil {
			return report.Report{}, err
		}
	}
	result, err := w.Merging(ctx, of)
	return result, t.unposted(result, err, fork)
}

// unposted returns the error of a preview. Two errors about posting are warnings: a newer preview took its place, or a workflow has no
// token that may post on a pull request from a fork.
func (t *terminal) unposted(result report.Report, err error, fork bool) error {
	if errors.Is(err, forge.ErrSuperseded) {
		t.warn("%v", forge.ErrSuperseded)
		return nil
	}
	logDefect(slog.Default(), err)
	_, refused := errors.AsType[*forge.Refusal](err)
	if ofWorkflow := fork && t.getenv("HEADGATE_FORGE_TOKEN") == ""; refused && ofWorkflow && result.Error == "" {
		t.warn("the token of a workflow may not post on a pull request from a fork; the exit code and the output are the result: %v", err)
		return nil
	}
	return err
}

// check returns an error for flags that have no effect together, or whose values mean nothing.
func (f *previewFlags) check() error {
	switch {
	case f.commands && (!f.comment || !f.status):
		return usagef("--commands needs --comment and --status, which show what an approval covers and since when")
	case !f.commands && (len(f.rules.Approvers) > 0 || f.rules.ByAuthor || f.rules.Reviews):
		return usagef("--approver, --approval-by-author and --approval-reviews have no effect without --commands")
	case f.ifCommanded && !f.commands:
		return usagef("--if-commanded has no effect without --commands")
	case f.live && f.status && f.forge.cluster == "":
		return usagef("--live and --status need --cluster-name: several clusters may report on one pull request")
	case f.fields().Catalogue == v1alpha1.CatalogueLive && !f.live:
		return usagef("--catalogue=live reads a cluster: add --live")
	}
	for _, pattern := range f.targets {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return usagef("--target %q is no branch or pattern such as release/*", pattern)
		}
	}
	return cmp.Or(areRegistries("--preview-registries", f.registries), areRegistries("--fork-registries", f.forkRegistries), f.comparesOnly())
}

// areRegistries returns an error for a value of a flag that is not the host of a registry.
func areRegistries(flag string, hosts []string) error {
	for _, host := range hosts {
		if !v1alpha1.IsRegistry(host) {
			return usagef("%s wants hosts of registries, such as ghcr.io or registry.example.org:5000, not %q", flag, host)
		}
	}
	return nil
}

// A noted is an error that ends a run which has nothing to do.
type noted string

func (n noted) Error() string { return string(n) }

// errNotCommanded ends a preview for a comment that commands nothing, or whose author may not command.
const errNotCommanded noted = "no command of a user who may write waits for an answer, so nothing is previewed or posted"

// isCommanded returns errNotCommanded unless a command waits for an answer. It posts nothing.
func isCommanded(ctx context.Context, previews *forge.Previews) error {
	if previews == nil {
		return errNotCommanded
	}
	heard, err := previews.Heard(ctx, false)
	if err == nil && !heard {
		err = errNotCommanded
	}
	return err
}

// isolated wires previews of a repository that run in a child process: the author of a pull request, not the user, controls the
// content of the head. fork is set if the head is in another repository.
func (t *terminal) isolated(f *previewFlags, repository *git.Repository, fork bool) (*target.Wired, func(ctx context.Context, into, head string) (report.Report, error), error) {
	s, err := f.asSync()
	if err != nil {
		return nil, nil, err
	}
	s.Spec.PreviewRegistries = slices.Concat(s.Spec.PreviewRegistries, f.registries)
	in := t.withoutMemo(&f.sourceFlags)
	in.Approvals = f.approvals(f.approve.given)
	if f.live {
		if in.Cluster, err = f.config(); err != nil {
			return nil, nil, err
		}
	}
	how := target.How{Cluster: t.showing(cluster.Options{}), Compares: true}
	w, err := target.Wire(s, repository, in, how)
	if err != nil {
		return nil, nil, err
	}
	t.atEnd = append(t.atEnd, w.Close)
	var forks *v1alpha1.ForkPreviews
	if fork {
		forks = &v1alpha1.ForkPreviews{Registries: f.forkRegistries}
		if w, err = target.WireFork(s, repository, in, how, w, *forks); err != nil {
			return nil, nil, err
		}
		t.atEnd = append(t.atEnd, w.Close)
	}
	if !isURL(repository.URL) {
		repository.URL, err = filepath.Abs(repository.URL) // the memo uses absolute paths
	}
	if err != nil {
		return nil, nil, err
	}
	by := &target.Isolation{Command: []string{"headgate", childVerb}, Memo: f.kept("memo"), Program: thisProgram()}
	elsewhere, err := by.Previewing(s, repository, w, forks)
	return w, elsewhere, err
}
