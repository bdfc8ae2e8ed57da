package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/report"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

func newReconcile(t *terminal) *cobra.Command {
	var (
		of      objectFlags
		timeout time.Duration
		noWait  bool
	)
	cmd := &cobra.Command{
		Use:   "reconcile sync NAME [flags]",
		Short: "Ask for a pass over a Sync object",
		Long: `Reconcile asks the controller for one pass over a Sync object and waits for its end. It sets the
annotation reconcile.fluxcd.io/requestedAt, as flux does; the pass handles it in
status.lastHandledReconcileAt.

Exit codes: 0 the Sync is ready, 1 it is not, or the pass did not end in time, 2 wrong usage,
3 something is held.`,
		Example: `  headgate reconcile sync shop -n team
  headgate reconcile sync shop -n team --no-wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := oneName("reconcile", args)
			if err != nil {
				return err
			}
			syncs, _, err := of.objects()
			if err != nil {
				return err
			}
			asked := time.Now().UTC().Format(time.RFC3339Nano)
			object, err := annotate(cmd.Context(), syncs, name, v1alpha1.RequestedAtAnnotation, asked)
			if err != nil {
				return err
			}
			_, err = typed(object)
			switch {
			case err != nil:
				return err
			case noWait:
				_, err := fmt.Fprintf(t.out, "sync.headgate.dev/%s: a pass is requested\n", name)
				return err
			}
			s, err := handled(cmd.Context(), syncs, name, asked, timeout)
			t.progress.Stop()
			if err != nil {
				return err
			}
			return t.result(s)
		},
	}
	of.addTo(cmd)
	addLapse(cmd, &timeout, "timeout", v1alpha1.DefaultTimeout, "how long to wait for the end of the pass")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "do not wait for the end of the pass")
	return cmd
}

// handled waits until a pass has handled a request, and returns the Sync.
func handled(ctx context.Context, syncs dynamic.ResourceInterface, name, asked string, timeout time.Duration) (v1alpha1.Sync, error) {
	var s v1alpha1.Sync
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		object, err := syncs.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			return false, aboutSyncs(err)
		}
		if err != nil {
			return false, nil //nolint:nilerr // the API server may answer again
		}
		if s, err = typed(object); err != nil {
			return false, err
		}
		if stalled := conditionOfSync(s, v1alpha1.ConditionStalled); stalled.Status == metav1.ConditionTrue && stalled.ObservedGeneration == s.Generation {
			return false, fmt.Errorf("the sync %s is stalled, so no pass is made: %s", name, stalled.Message)
		}
		return s.Status.LastHandledReconcileAt == asked, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no pass over the sync %s ended within %s; check that 'headgate controller' runs, and see 'kubectl describe sync %[1]s'", name, timeout)
	}
	return s, err
}

// result writes the result of a pass, and returns its exit code as an error.
func (t *terminal) result(s v1alpha1.Sync) error {
	ready := conditionOfSync(s, v1alpha1.ConditionReady)
	if _, err := fmt.Fprintln(t.out, printable(fmt.Sprintf("sync.headgate.dev/%s: Ready is %s (%s) at %.12s: %s", s.Name, readiness(s), ready.Reason, s.Status.LastAttemptedRevision, ready.Message))); err != nil {
		return err
	}
	held := conditionOfSync(s, v1alpha1.ConditionHeld)
	isHeld := held.Status == metav1.ConditionTrue
	if isHeld {
		if _, err := fmt.Fprintln(t.out, printable("Held: "+held.Message)); err != nil {
			return err
		}
	}
	switch {
	case ready.Status != metav1.ConditionTrue && ready.Reason != v1alpha1.ReasonHeld:
		return exit{code: report.ExitFailed}
	case isHeld:
		return exit{code: report.ExitHeld}
	}
	return nil
}
