package write

import (
	"context"
	"fmt"

	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/plan"
)

// recount returns an error if the policies of the cluster activate more than the plan expected, because the update of one failed or
// another writer was faster. A package that is sent now would activate more than the guards allowed.
func (r *execution) recount(ctx context.Context) error {
	live, err := r.count.Policies(ctx, r.Surface)
	if err != nil {
		return fmt.Errorf("not sent: cannot read what policies activate: %w", err)
	}
	return plan.Wider(r.plan, live)
}

// unnamed returns an error if a policy of the cluster activates the definition: it would become active again as soon as it is back.
func (r *execution) unnamed(ctx context.Context, definition string) error {
	live, err := r.count.Policies(ctx, r.Surface)
	if err != nil {
		return err
	}
	if policy := facts.Named(live, definition); policy != "" {
		return fmt.Errorf("the policy %s activates it now, so it was left alone", policy)
	}
	return nil
}
