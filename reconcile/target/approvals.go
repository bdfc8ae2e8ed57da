package target

import (
	"context"
	"fmt"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/audit"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
)

// OnSync returns the approvals in the annotation of a Sync. A time in it makes an approval of the same digest another one.
func OnSync(s v1alpha1.Sync) []approval.Approval {
	var all []approval.Approval
	for _, a := range s.Approvals() {
		all = append(all, Written(a))
	}
	return all
}

// Written returns an approval that a person wrote into the annotation of a Sync.
func Written(a v1alpha1.GivenApproval) approval.Approval {
	upTo, _ := a.Number() // a text that is no number covers nothing
	one := approval.Approval{Digests: []string{a.Digest}, By: a.By, UpTo: upTo}
	if a.At != "" {
		one.ID = fmt.Sprintf("%s at %s", a.Digest, a.At)
	}
	return one
}

// onForge returns a function with which passes of a Sync read approvals on pull requests; nil if they do not read them.
func onForge(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret, of *git.Repository) (func(context.Context, string) (approval.Given, error), error) {
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
	merges := &forge.Merges{Pulls: pulls, Rules: *rules, Branch: func(ctx context.Context) (string, error) { return of.Branch(ctx, s.Spec.Source.Ref) }, Targets: s.Spec.Approvals.Targets, Heard: heard(s, in.Audit)}
	return merges.Approvals, nil
}

// heard returns what records each approval on the pull requests of a Sync.
func heard(s v1alpha1.Sync, log *audit.Log) func(forge.Heard) {
	return func(h forge.Heard) {
		event := audit.ApprovalGiven
		if h.Why != "" {
			event = audit.ApprovalRefused
		}
		log.NoteOnce(audit.Entry{Event: event, Sync: s.Namespace + "/" + s.Name, By: h.By, At: h.At, Digest: h.Digest, Reason: h.Why})
	}
}

// recorded returns a function that records the approvals which a pass refuses, before it tells another function of the pass.
func recorded(log *audit.Log, next func(reconcile.Event)) func(reconcile.Event) {
	return func(e reconcile.Event) {
		if e.Kind == reconcile.Passed {
			log.NoteOnce(audit.Refused(e.Report)...)
		}
		if next != nil {
			next(e)
		}
	}
}
