package guard

import (
	"headgate.dev/headgate/reconcile/draft"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
)

// The codes of the guard unread.
const (
	MergeUnread     reason.Code = "MergeUnread"     // the package whose changes are not known, and why
	MergeBaseUnread reason.Code = "MergeBaseUnread" // the package that could be read only in the new commit, and why
)

// unreadPackages blocks the merge if the changes of a package are not known. A commit that repairs a package is not to blame.
func unreadPackages(c draft.Case) []plan.Ruling {
	var all []plan.Ruling
	for _, b := range c.Bumps {
		switch {
		case IsUnread(b):
			all = append(all, blocks(MergeUnread.With(b.Source, b.Unknown)))
		case IsUnseen(b):
			all = append(all, looks(MergeBaseUnread.With(b.Source, b.Unknown)))
		}
	}
	return all
}

// IsUnread reports whether the changes of a package are not known, and that blocks the merge.
func IsUnread(b plan.Bump) bool { return b.Unknown != "" && !IsUnseen(b) }

// IsUnseen reports whether a package could be read only in the new commit.
func IsUnseen(b plan.Bump) bool { return b.Unknown != "" && b.From == "" && b.To != "" }
