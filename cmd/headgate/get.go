package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"headgate.dev/headgate/reconcile/api/v1alpha1"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

func newGet(t *terminal) *cobra.Command {
	var (
		of     objectFlags
		format = oneOf("table", "wide", "json", "yaml", "name")
	)
	cmd := &cobra.Command{
		Use:   "get [sync [NAME…]] [flags]",
		Short: "List the Sync objects of a cluster",
		Long: `Get lists Sync objects: whether they are ready, how many definitions are active, how many
steps are held, how many objects drifted, and the last applied commit. 'kubectl get syncs'
shows the same columns. -o wide adds why a Sync is not ready.

Exit codes: 0 listed, 1 a Sync does not exist or another error, 2 wrong usage.`,
		Example: `  headgate get syncs -A
  headgate get sync shop -n team -o yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := named(args)
			if err != nil {
				return err
			}
			if of.all && len(names) > 0 {
				return usagef("a name belongs to one namespace; give -n, or leave out the name")
			}
			syncs, namespace, err := of.objects()
			if err != nil {
				return err
			}
			found, missing := findSyncs(cmd.Context(), syncs, names)
			t.progress.Stop()
			if len(found) == 0 && missing == nil {
				where := "no namespace has Syncs"
				if !of.all {
					where = fmt.Sprintf("the namespace %s has no Syncs; -A lists those of all namespaces", namespace)
				}
				t.warn("%s", where)
			}
			if len(found) == 0 && (missing != nil || format.value != "json" && format.value != "yaml") {
				return missing
			}
			t.warnUnwatched(cmd.Context(), &of.in, found)
			return errors.Join(t.objects(found, len(names) == 1, of.all, format.value), missing)
		},
	}
	of.addAllTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// objects writes Syncs in a format.
func (t *terminal) objects(found []unstructured.Unstructured, single, namespaces bool, format string) error {
	switch format {
	case "name":
		for _, object := range found {
			if _, err := fmt.Fprintf(t.out, "sync.headgate.dev/%s\n", object.GetName()); err != nil {
				return err
			}
		}
		return nil
	case "json":
		return t.json(asKubectl(found, single))
	case "yaml":
		return t.yaml(asKubectl(found, single))
	}
	return table(t.out, found, namespaces, format == "wide", time.Now())
}

// asKubectl returns one object, or a List, without managed fields.
func asKubectl(found []unstructured.Unstructured, single bool) any {
	items := make([]any, len(found))
	for i := range found {
		found[i].SetManagedFields(nil)
		items[i] = found[i].Object
	}
	if single {
		return items[0]
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items}
}

// table writes Syncs in columns.
func table(to io.Writer, found []unstructured.Unstructured, namespaces, wide bool, now time.Time) error {
	columns := tabwriter.NewWriter(to, 6, 4, 3, ' ', 0)
	line := func(namespace, status string, cells ...string) {
		if namespaces {
			cells = append([]string{namespace}, cells...)
		}
		if wide {
			cells = append(cells, status)
		}
		fmt.Fprintln(columns, asRow(cells...))
	}
	line("NAMESPACE", "STATUS", "NAME", "READY", "ACTIVE", "HELD", "DRIFTED", "REVISION", "AGE")
	for i := range found {
		s, err := typed(&found[i])
		if err != nil {
			return fmt.Errorf("%s/%s: %w", found[i].GetNamespace(), found[i].GetName(), err)
		}
		counts := cmp.Or(s.Status.Counts, &v1alpha1.Counts{})
		line(s.Namespace, conditionOfSync(s, v1alpha1.ConditionReady).Message, s.Name, readiness(s), strconv.Itoa(counts.Active), strconv.Itoa(counts.Held), strconv.Itoa(counts.Drifted),
			fmt.Sprintf("%.12s", s.Status.LastAppliedRevision), age(s.CreationTimestamp, now))
	}
	return columns.Flush()
}

// asRow returns the cells of a table as one line.
func asRow(cells ...string) string {
	for i, cell := range cells {
		cells[i] = strings.Join(strings.Fields(printable(cell)), " ")
	}
	return strings.Join(cells, "\t")
}

// age returns how long ago something was, as kubectl does.
func age(when metav1.Time, now time.Time) string {
	if when.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(when.Time))
}
