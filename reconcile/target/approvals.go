package target

import (
	"context"
	"fmt"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/render"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// onForge returns a function with which passes of a Sync read approvals on pull requests; nil if they do not read them.
func onForge(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret, of *git.Repository) (func(context.Context, string) (map[inventory.ApprovalPlace][]render.Approval, error), error) {
	if s.Spec.Statuses == nil {
		return nil, nil
	}
	account, err := account(s, in, from)
	if err != nil {
		return nil, err
	}
	rules, err := rulesOf(s, account.Repository)
	if err != nil {
		return nil, err
	}
	if why := unheard(s, account.Repository); why != nil && in.Event != nil {
		in.Event(reconcile.Event{Kind: reconcile.Unheard, Err: why})
	}
	if rules == nil {
		return nil, nil
	}
	pulls, err := account.Pulls()
	if err != nil {
		return nil, fmt.Errorf("spec.statuses: %w", err)
	}
	merges := &forge.Merges{Pulls: pulls, Rules: *rules, Branch: func(ctx context.Context) (string, error) { return of.Branch(ctx, s.Spec.Source.Ref) }}
	return func(ctx context.Context, commit string) (map[inventory.ApprovalPlace][]render.Approval, error) {
		given, err := merges.Approvals(ctx, commit)
		if err != nil {
			return nil, err
		}
		all := map[inventory.ApprovalPlace][]render.Approval{inventory.InComment: {}, inventory.InReview: {}}
		for _, a := range given {
			for _, place := range a.How {
				all[place] = append(all[place], render.Approval{Digests: a.Digests, By: a.By, Expires: metav1.NewTime(a.At.Add(forge.Valid))})
			}
		}
		return all, nil
	}, nil
}
