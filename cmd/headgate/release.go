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
		record  string
	)
	cmd := &cobra.Command{
		Use:   "release [sync NAME] [ID…] [flags]",
		Short: "Let objects leave a sync without deleting them",
		Long: `Release removes the marks of a sync from objects: annotation, label, finalizer and field
ownership. It also removes the objects from the inventory. It deletes nothing, and needs no
commit.

An ID is the identity of an object as 'headgate status --full' shows it: ConfigMap/team/settings.
Release refuses an object that the commit of the last pass declares, because the next pass would
adopt it again. Announce such a release before you remove the object from the commit: with the
annotation headgate.dev/release: "true" on the object, or with release in the Sync. The pass over
the commit without the object then releases it instead of pruning it. With the name of another
sync as the value (NAMESPACE/NAME), the object moves: that sync takes it over.

When the inventory of a sync was lost, the next pass rebuilds it from the objects that
Headgate marked. It applies those that the commit wants, and holds the prune of all others,
because only marks show that the sync applied them. The report of that pass shows a digest:
approve it to prune them, or run release --rebuilt to keep them.

With --rebuilt, Headgate releases exactly those objects. Make a pass first: before it, Headgate
does not know which objects the commit wants.

For a Sync object, write its name first: 'sync NAME', in the namespace of -n, or of the context.

` + exitCodes,
		Example: `  headgate release --name prod ConfigMap/team/settings --dry-run
  headgate release sync shop -n team ConfigMap/team/settings
  headgate release --name prod ConfigMap/team/settings Bucket.example.org/team/logs
  headgate release --rebuilt --dry-run
  headgate release --rebuilt --name prod`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := of.objectOf(cmd, &in, args)
			switch {
			case err != nil:
				return err
			case rebuilt && len(ids) > 0:
				return usagef("--rebuilt releases what was rebuilt, and IDs name objects; specify one of them")
			case !rebuilt && len(ids) == 0:
				return usagef("specify what to release: ID…, as 'headgate status --full' shows identities, or --rebuilt")
			}
			var over target.Surroundings
			if over.Cluster, err = in.config(); err != nil {
				return err
			}
			if over.Audit, err = t.audit(record); err != nil {
				return err
			}
			var s v1alpha1.Sync
			s.Namespace, s.Name = of.namespace, of.name
			r, err := t.wire(s, nil, over, cluster.Options{})
			if err != nil {
				return err
			}
			if !dryRun {
				if err := t.announce("release", of.sync(), &in); err != nil {
					return err
				}
			}
			end := func() (report.Report, error) { return r.Release(cmd.Context(), ids, dryRun) }
			if rebuilt {
				end = func() (report.Report, error) { return r.ReleaseRebuilt(cmd.Context(), dryRun) }
			}
			done, err := end()
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
	addAudit(cmd, &record, auditOfVerb, "")
	show.addTo(cmd)
	return cmd
}
