package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// unreadPackages blocks the merge if the changes of a package are not known. A commit that repairs a package is not to blame.
func unreadPackages(c draft.Case) []plan.Ruling {
	var all []plan.Ruling
	for _, b := range c.Bumps {
		switch {
		case b.IsUnread():
			all = append(all, held(reason.MergeUnread.With(b.Source, b.Unknown)))
		case b.IsUnseen():
			all = append(all, looks(reason.MergeBaseUnread.With(b.Source, b.Unknown)))
		}
	}
	return all
}
