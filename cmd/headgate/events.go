package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/typed/core/v1"
)

func newEvents(t *terminal) *cobra.Command {
	var (
		of     objectFlags
		format = oneOf("table", "json", "yaml")
	)
	cmd := &cobra.Command{
		Use:   "events [sync NAME] [flags]",
		Short: "List the events of Sync objects",
		Long: `Events lists the Kubernetes events of Sync objects, oldest first. They have the same reasons as
the conditions.

Exit codes: 0 listed, 1 error, 2 wrong usage.`,
		Example: `  headgate events -A
  headgate events sync shop -n team`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := named(args)
			switch {
			case err != nil:
				return err
			case len(names) > 1:
				return usagef("events takes one Sync, or none for all of the namespace")
			case of.all && len(names) > 0:
				return usagef("a name belongs to one namespace; give -n, or leave out the name")
			}
			all, err := of.events(cmd.Context(), names)
			t.progress.Stop()
			if err != nil {
				return err
			}
			switch format.value {
			case "json":
				return t.json(all)
			case "yaml":
				return t.yaml(all)
			}
			if len(all.Items) == 0 {
				t.warn("there are no events of Syncs; the API server keeps them for an hour")
				return nil
			}
			return t.events(all.Items, of.all, time.Now())
		},
	}
	of.addAllTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// events returns the events of the Syncs with these names, or of all Syncs, the oldest first.
func (f *objectFlags) events(ctx context.Context, names []string) (*corev1.EventList, error) {
	cfg, err := f.in.config()
	if err != nil {
		return nil, err
	}
	core, err := v1.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	namespace := metav1.NamespaceAll
	if !f.all {
		if namespace, err = f.namespaceOr(); err != nil {
			return nil, err
		}
	}
	which := fields.Set{"involvedObject.kind": v1alpha1.Kind}
	for _, name := range names {
		which["involvedObject.name"] = name
	}
	all, err := core.Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: which.String()})
	if err != nil {
		return nil, err
	}
	all.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}
	all.Items = slices.DeleteFunc(all.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.APIVersion != v1alpha1.GroupVersion.String() // Argo CD and others have Syncs, too
	})
	slices.SortStableFunc(all.Items, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b).Time) })
	return all, nil
}

// lastSeen returns when an event happened last.
func lastSeen(e corev1.Event) metav1.Time {
	if e.Series != nil {
		return metav1.Time(e.Series.LastObservedTime)
	}
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp
	}
	return cmp.Or(metav1.Time(e.EventTime), e.FirstTimestamp)
}

// events writes events in columns.
func (t *terminal) events(all []corev1.Event, namespaces bool, now time.Time) error {
	columns := tabwriter.NewWriter(t.out, 6, 4, 3, ' ', 0)
	line := func(cells ...string) {
		if !namespaces {
			cells = cells[1:]
		}
		fmt.Fprintln(columns, asRow(cells...))
	}
	line("NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
	for _, e := range all {
		line(e.Namespace, age(lastSeen(e), now), e.Type, e.Reason, "sync/"+e.InvolvedObject.Name, e.Message)
	}
	return columns.Flush()
}
