package main

import (
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
)

func newRelease(t *terminal) *cobra.Command {
	var (
		in      clusterFlags
		of      syncFlags
		show    = newView()
		rebuilt bool
		dryRun  bool
	)
	cmd := &cobra.Command{
		Use:   "release --rebuilt [flags]",
		Short: "Keep objects and forget them, after an inventory was lost",
		Long: `When the inventory of a sync was lost, the next pass rebuilds it from the objects that
Headgate marked. It applies those that the commit wants, and holds the prune of all others,
because only marks show that the sync applied them. The report of that pass shows a digest:
approve it to prune them, or run release --rebuilt to keep them.

Release takes the marks of the sync from exactly those objects and forgets them. It deletes
nothing, and needs no commit. Make a pass first: before that, it is not known which objects
the commit wants.

` + exitCodes,
		Example: `  headgate release --rebuilt --dry-run
  headgate release --rebuilt --name prod`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !rebuilt {
				return usagef("specify what to release: --rebuilt")
			}
			cfg, err := in.config()
			if err != nil {
				return err
			}
			var s v1alpha1.Sync
			s.Namespace, s.Name = of.namespace, of.name
			r, err := t.wire(s, nil, target.Surroundings{Cluster: cfg}, cluster.Options{})
			if err != nil {
				return err
			}
			if !dryRun {
				if err := t.announce("release", of.sync(), &in); err != nil {
					return err
				}
			}
			done, err := r.ReleaseRebuilt(cmd.Context(), dryRun)
			if err != nil && dryRun {
				done = report.Failed(r.Sync, "", err)
			}
			return t.concluded(show, done, err)
		},
	}
	cmd.Flags().BoolVar(&rebuilt, "rebuilt", false, "release the objects of a rebuilt inventory that no pass has applied since")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be released")
	in.addTo(cmd)
	of.addTo(cmd)
	show.addTo(cmd)
	return cmd
}
