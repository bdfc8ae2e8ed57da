package reason

// The codes of the guard unread.
const (
	MergeUnread     Code = "MergeUnread"     // the package whose changes are not known, and why
	MergeBaseUnread Code = "MergeBaseUnread" // the package that could be read only in the new commit, and why
)
