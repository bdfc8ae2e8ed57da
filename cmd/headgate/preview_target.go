package main

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"
)

// allows reports whether pull requests into a branch are previewed.
func (f *previewFlags) allows(branch string) bool {
	return len(f.targets) == 0 || slices.ContainsFunc(f.targets, func(pattern string) bool {
		matches, err := path.Match(pattern, branch)
		return matches && err == nil
	})
}

// several reports whether pull requests into more than one branch decide about statuses.
func (f *previewFlags) several() bool {
	return len(f.targets) > 1 || len(f.targets) == 1 && strings.ContainsAny(f.targets[0], `*?[\`)
}

// judge decides whose verdict the status of a pull request's head is. It returns an error for a pull request that is not previewed,
// after it posted that error.
func (f *previewFlags) judge(ctx context.Context, previews *forge.Previews, pulls *forge.Pulls) error {
	own := reconcile.Request(previews.Pull)
	allowed := f.allows(own.Target)
	if allowed && (own.Queued || !f.several()) {
		return nil
	}
	open, err := pulls.Open(ctx)
	if err != nil {
		return err
	}
	var sharing []reconcile.Request
	if allowed {
		sharing = append(sharing, own)
	}
	for _, p := range open {
		if p.Head == own.Head && p.Number != own.Number && f.allows(p.Target) {
			sharing = append(sharing, reconcile.Request(p))
		}
	}
	deciding := reconcile.Deciding(sharing, func(q reconcile.Request) bool {
		counts, err := pulls.Counts(ctx, forge.Pull(q))
		return counts || err != nil
	})
	isOwn := func(q reconcile.Request) bool { return q.Number == own.Number }
	f.apart = !slices.ContainsFunc(deciding, isOwn)
	f.others, previews.Targets = slices.DeleteFunc(slices.Clone(deciding), isOwn), reconcile.TargetsOf(deciding)
	if allowed {
		return nil
	}
	refused := fmt.Errorf("not previewed: the pull request is into %s, and only those into %s are previewed", own.Target, strings.Join(f.targets, ", "))
	if len(deciding) > 0 || previews.Poster == nil { // the status is that of the pull requests into allowed branches
		return refused
	}
	previews.Targets = nil
	if err := previews.Decide(ctx, report.Status{State: report.Error, Description: refused.Error()}); err != nil {
		return err
	}
	return refused
}

// heir returns an open pull request with the head of a closed one. Its preview decides the status of the head anew.
func (f *previewFlags) heir(closed forge.Pull, open []forge.Pull) (forge.Pull, error) {
	for _, p := range open {
		if p.Head == closed.Head && p.Number != closed.Number && f.allows(p.Target) {
			return p, nil
		}
	}
	return forge.Pull{}, noted(fmt.Sprintf("pull request %d is closed, and no other has its head, so nothing is previewed or posted", closed.Number))
}

// shared returns the publisher of a preview. If other pull requests decide about the status of the head, it previews them, too.
func (f *previewFlags) shared(ctx context.Context, w *target.Wired, of reconcile.Merge, previews *forge.Previews) (reconcile.PreviewPublisher, error) {
	var verdicts []report.PullVerdict
	for _, q := range f.others {
		other := of
		if other.Into = "origin/" + q.Target; isURL(f.repo) {
			other.Into = q.Target
		}
		r, err := w.Merging(ctx, other)
		if ctx.Err() != nil {
			return nil, err
		}
		verdicts = append(verdicts, report.PullVerdict{Pull: q.Number, Target: q.Target, Status: r.Verdict.Activation})
	}
	if len(verdicts) == 0 {
		return previews, nil
	}
	return reconcile.Sharing(previews, reconcile.Request(previews.Pull), !f.apart, verdicts), nil
}
