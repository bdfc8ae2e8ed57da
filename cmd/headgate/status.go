package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newStatus(t *terminal) *cobra.Command {
	var (
		in     clusterFlags
		of     syncFlags
		format = oneOf("text", "json")
		full   bool
		all    bool
		left   bool
	)
	cmd := &cobra.Command{
		Use:   "status [sync NAME] [flags]",
		Short: "Compare what a sync applied with what the cluster holds",
		Long: `Status reads the inventory of a sync and the metadata of its objects, and reports which
objects are missing, changed, or not ready. As in diff and sync, it ignores fields that other
writers add, and fields that the sync ignores. It shows the holds of the last pass, with the
guard, the reason, the time and the digest that approves them, and the last ten passes with a
new result. It needs no commit and writes nothing. With --all it shows every sync of the
cluster and exits with the worst code.

With --orphans it lists the objects that Headgate applied and whose sync is gone, and names that
sync. It exits with 0. A Sync with spec.kubeConfig is in another cluster, and its objects are
listed, too.

Exit codes: 0 unchanged, 1 something failed, is not ready, or nothing was applied under that
name, 2 wrong usage, 3 something is held, or another writer changed or deleted it.

'sync NAME' is a Sync object in the namespace of -n, or of the context.`,
		Example: `  headgate status
  headgate status sync shop -n team
  headgate status --name prod -o json
  headgate status --all
  headgate status --orphans -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := of.object(cmd, &in, args); err != nil {
				return err
			}
			if left && all {
				return usagef("--all shows syncs, and --orphans objects whose sync is gone; specify one of them")
			}
			if left {
				return t.orphans(cmd.Context(), &in, of.sync(), format.value)
			}
			syncs := []inventory.Sync{of.sync()}
			if all {
				c, err := t.cluster(&in, of.sync())
				if err != nil {
					return err
				}
				if syncs, err = c.Syncs(cmd.Context()); err != nil {
					return err
				}
			}
			found := make([]status, len(syncs))
			for i, one := range syncs {
				c, err := t.cluster(&in, one)
				if err != nil {
					return err
				}
				// Nothing is wanted, so only the objects of the inventory are observed.
				seen, err := c.Observe(cmd.Context(), render.Desired{})
				if err != nil {
					return err
				}
				found[i] = statusOf(demand.AsRecorded(seen))
			}
			t.progress.Stop()
			if len(args) > 0 {
				t.warnUnwatchedObject(cmd.Context(), &in, of.sync())
			}
			if !all && !found[0].Stored && len(found[0].Objects) == 0 {
				return fmt.Errorf("nothing was applied by %s; choose a sync with --name and --namespace, or list all with --all", of.sync())
			}
			return t.statuses(found, all, full, format.value)
		},
	}
	in.addTo(cmd)
	of.addTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	cmd.Flags().BoolVarP(&all, "all", "A", false, "show every sync of the cluster; ignore --name and --namespace")
	cmd.Flags().BoolVar(&left, "orphans", false, "list the objects of the cluster whose sync is gone; ignore --name and --namespace")
	cmd.Flags().BoolVar(&full, "full", false, "also list unchanged objects")
	return cmd
}

// statuses writes the status of one sync, or of all, and returns the worst exit code.
func (t *terminal) statuses(found []status, all, full bool, format string) error {
	worst := report.ExitSuccess
	for _, s := range found {
		if worst != report.ExitFailed && s.ExitCode != report.ExitSuccess {
			worst = s.ExitCode
		}
	}
	var err error
	switch {
	case format == "json" && all:
		err = t.json(map[string]any{"apiVersion": "headgate.dev/v1alpha1", "kind": "StatusList", "exitCode": worst, "items": found})
	case format == "json":
		err = t.json(found[0])
	case len(found) == 0:
		_, err = fmt.Fprintln(t.out, "Summary: no sync has applied anything in this cluster")
	}
	for i, s := range found {
		if format == "json" || err != nil {
			break
		}
		if i > 0 {
			_, err = fmt.Fprintln(t.out)
		}
		err = errors.Join(err, s.write(t.out, full))
	}
	if err == nil && worst != report.ExitSuccess {
		err = exit{code: worst}
	}
	return err
}

// A condition is the state of an object compared with its last apply.
type condition string

// The conditions, in the order of the report.
const (
	asLeft    condition = "as applied"
	deleting  condition = "deleting"
	changed   condition = "changed"    // another field manager changed it after the last apply; a sync corrects it or holds it
	missing   condition = "missing"    // another client deleted it
	found     condition = "found"      // found by its marks after the inventory was lost; no pass has applied it since
	unsettled condition = "unsettled"  // sent, but a crash came before the answer
	unready   condition = "not ready"  // at the last check, or not yet checked
	unserved  condition = "not served" // a CRD, or an object of a kind, that the API server does not serve
	broken    condition = "failed"     // the last write failed
)

var conditions = []condition{asLeft, deleting, changed, missing, found, unsettled, unready, unserved, broken}

// A status compares an inventory with its cluster.
type status struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Sync       inventory.Sync    `json:"sync"`
	Owner      render.Owner      `json:"crdOwner,omitempty"`
	Stored     bool              `json:"stored"` // the inventory exists in the cluster
	ExitCode   int               `json:"exitCode"`
	Summary    map[condition]int `json:"summary"`
	Objects    []owned           `json:"objects"`
	Held       inventory.Holds   `json:"held"`    // holds of the last pass
	History    []inventory.Past  `json:"history"` // the last passes that changed something or had another result, newest last
}

// owned is an object of an inventory.
type owned struct {
	ID        manifest.ID `json:"id"`
	Condition condition   `json:"condition"`
	Reason    string      `json:"reason,omitempty"` // why it failed, is not ready or is not gone, as far as that is known
}

// statusOf compares.
func statusOf(seen facts.Observed) status {
	s := status{
		APIVersion: "headgate.dev/v1alpha1",
		Kind:       "Status",
		Sync:       seen.Inventory.Sync,
		Owner:      seen.Inventory.Owner,
		Stored:     seen.Inventory.ResourceVersion != "" && !seen.Inventory.Rebuilt,
		Summary:    map[condition]int{},
		Objects:    make([]owned, 0, len(seen.Inventory.Entries)),
		Held:       append(inventory.Holds{}, seen.Inventory.Held...),
		History:    append([]inventory.Past{}, seen.Inventory.History...),
	}
	resources := make(map[string]bool, len(seen.Kinds))
	for gk, k := range seen.Kinds {
		resources[schema.GroupResource{Group: gk.Group, Resource: k.Resource}.String()] = true
	}
	foreign := false // another client deletes an object that the commit declares
	for id, e := range seen.Inventory.Entries {
		live := seen.Objects[id]
		o := owned{id, conditionOf(id, e, seen, resources), seen.Inventory.Failures.Of(id)}
		if e.Deleting() && o.Condition == missing || live != nil && e.IsAnother(live) {
			continue // it is gone, and the next pass forgets it
		}
		switch o.Condition {
		case deleting:
			o.Reason = deletionOf(e, live)
			foreign = foreign || !e.Undeclared
		case asLeft:
			o.Reason = ""
		}
		s.Objects = append(s.Objects, o)
		s.Summary[o.Condition]++
	}
	slices.SortFunc(s.Objects, func(a, b owned) int { return a.ID.Compare(b.ID) })
	switch {
	case s.Summary[broken]+s.Summary[unserved]+s.Summary[unready]+s.Summary[unsettled] > 0:
		s.ExitCode = report.ExitFailed
	case s.Summary[missing]+s.Summary[changed]+s.Summary[found] > 0, foreign, len(s.Held) > 0:
		s.ExitCode = report.ExitHeld
	}
	return s
}

// conditionOf returns the condition of an object, or the worst one if several apply.
func conditionOf(id manifest.ID, e inventory.Entry, seen facts.Observed, served map[string]bool) condition {
	live, exists := seen.Objects[id]
	switch {
	case e.Actuation == "Failed":
		return broken
	case e.Rebuilt && !seen.Inventory.Rebuilt:
		return found
	case seen.Hidden[schema.GroupKind{Group: id.Group, Kind: id.Kind}] != nil:
		return unserved
	case e.UID == "":
		return unsettled
	case !exists:
		return missing
	case live.GetDeletionTimestamp() != nil:
		return deleting
	case id.IsCRD() && !served[id.Name]:
		return unserved
	case !seen.Inventory.Rebuilt && demand.Changed(seen, id, live):
		return changed
	case e.Unready():
		return unready
	}
	return asLeft
}

// deletionOf describes the deletion of an object.
func deletionOf(e inventory.Entry, live *metav1.PartialObjectMetadata) string {
	why := words.Of(facts.WhyDeleting(live))
	if e.RemovedBy != "" {
		why += fmt.Sprintf("; commit %.12s removed the object", e.RemovedBy)
	}
	return why
}

// passLine returns a line about a past pass.
func passLine(p inventory.Past) string {
	of := fmt.Sprintf("%.12s", p.Revision)
	switch p.Ends {
	case "":
	case "Release":
		of = "release"
	default:
		of = "destroy"
	}
	state := p.Activation
	if state == string(report.Success) {
		state = p.Drift
	}
	line := fmt.Sprintf("%s  %-12s  %-7s  %s, in %s", p.When.UTC().Format(time.RFC3339), of, state, cmp.Or(p.Did(), "no changes"), p.Took.Duration)
	if p.Said != "" {
		line += ": " + p.Said
	}
	return line
}

// holdLines returns the lines about the steps that the last pass held for one reason.
func holdLines(h inventory.Hold) string {
	objects := strings.Join(h.Objects, ", ")
	if more := h.Count - len(h.Objects); more > 0 {
		objects += fmt.Sprintf(" and %d more", more)
	}
	lines := fmt.Sprintf("%-10s  %s\n    %s held by guard %q since %s", "held", objects, h.Action, h.Guard, h.Since.UTC().Format("2 Jan 2006"))
	if h.Commit != "" {
		lines += fmt.Sprintf(", commit %.12s", h.Commit)
	}
	lines += ": " + h.Reason + "\n"
	if h.Digest != "" {
		lines += "    the digest " + approval.Line(h.Digest, h.UpTo) + " approves it; see 'headgate approve --help'\n"
	}
	return lines
}

// write writes a status as text. It only counts unchanged objects unless full is set.
func (s status) write(w io.Writer, full bool) error {
	var b strings.Builder
	var numbers []string
	for _, c := range conditions {
		if n := s.Summary[c]; n > 0 {
			numbers = append(numbers, fmt.Sprintf("%d %s", n, c))
		}
		for _, o := range s.Objects {
			if o.Condition == c && (full || c != asLeft) {
				fmt.Fprintf(&b, "%-10s  %s\n", c, printable(o.ID.String()))
				if o.Reason != "" {
					fmt.Fprintf(&b, "    %s\n", printable(o.Reason))
				}
			}
		}
	}
	held := 0
	for _, h := range s.Held {
		held += h.Count
		fmt.Fprint(&b, printable(holdLines(h)))
	}
	if held > 0 {
		numbers = append(numbers, fmt.Sprintf("%d held", held))
	}
	switch {
	case !s.Stored && len(s.Objects) > 0:
		fmt.Fprintf(&b, "The inventory is missing; objects with our marks are shown. The next sync stores it again.\n")
	case s.Summary[found] > 0:
		fmt.Fprintf(&b, "The inventory was lost. Objects that were found by their marks are held until you approve their prune, or run 'headgate release --rebuilt'.\n")
	case s.Summary[missing]+s.Summary[changed] > 0:
		fmt.Fprintf(&b, "'headgate diff' shows what was changed, 'headgate sync' corrects or holds it.\n")
	}
	if len(s.History) > 0 {
		fmt.Fprintf(&b, "Passes that changed something, or differ from the previous one:\n")
	}
	for _, p := range s.History {
		fmt.Fprintf(&b, "  %s\n", printable(passLine(p)))
	}
	fmt.Fprintf(&b, "Summary: %s owned by %s", manifest.Count(len(s.Objects), "object"), s.Sync)
	if len(numbers) > 0 {
		fmt.Fprintf(&b, ": %s", strings.Join(numbers, ", "))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}
