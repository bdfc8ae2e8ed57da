package main

import (
	"headgate.dev/headgate/reconcile/disk"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
)

// cacheFlags are the flags for the cache of a process that runs for long.
type cacheFlags struct{ dir, size string }

func (f *cacheFlags) addTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "cache-dir", "", "keep clones of repositories, packages, and unsent statuses in this `directory` (default: the user's cache)")
	flags.StringVar(&f.size, "cache-size", "", "keep at most this `amount` in the cache directory, such as 3Gi, and remove what was not used for the longest time (default: no limit)")
}

// clones returns the directory of clones, which contains the rest.
func (f *cacheFlags) clones() string { return (&sourceFlags{cache: f.dir}).clones() }

// leastCache has room for a small repository and its packages.
const leastCache = 64 << 20

// budget returns the bound of the cache; nil without a directory for it.
func (f *cacheFlags) budget(removed func(clone string)) (*disk.Budget, error) {
	b := &disk.Budget{Dir: f.clones(), Removed: removed}
	if f.size != "" {
		n, err := resource.ParseQuantity(f.size)
		if err != nil || n.Value() < leastCache {
			return nil, usagef("--cache-size: %s is no amount of at least 64Mi; write one as 3Gi", f.size)
		}
		b.Bytes = n.Value()
	}
	switch {
	case b.Dir != "":
		return b, nil
	case f.size != "":
		return nil, usagef("--cache-size needs a directory: name one with --cache-dir")
	}
	return nil, nil
}
