package render

// The values of SourceID.Ref that name no branch.
const (
	// DefaultRef is the default branch of a remote repository.
	DefaultRef = "HEAD"
	// Detached is a commit that no branch names: a user named its ID or a tag, or checked it out without a branch. Git allows no
	// branch of this name.
	Detached = "@"
)

// A SourceID identifies the repository of commits and the branch in it, regardless of how they are fetched or checked out. The zero
// value is an unknown source.
type SourceID struct {
	// Repository is the host and path of the remote, without scheme, user, port and .git. Without a remote, it is "commit:" and the
	// repository's first commit. For a directory outside of any repository, it is "directory:" and its path.
	Repository string
	Path       string // the directory of the manifests inside the repository; "" means the root
	Ref        string // the branch or range as the sync names it, DefaultRef or Detached; "" if it is unknown
	Branch     string // the branch behind Ref; "" if there is none or it is unknown
	Commit     string // the full ID of the commit, or of the checked-out commit; "" if there is none

	// Contains reports whether a commit is in the history of the repository, as far as the history is available locally. It may be
	// nil, and is safe for concurrent use.
	Contains func(commit string) (bool, error)

	// Descends reports whether Commit is another commit or descends from it. It returns an error if a commit of the history
	// cannot be read, as in a shallow clone, unless that does not matter. It may be nil, and is safe for concurrent use.
	Descends func(commit string) (bool, error)

	// Related reports whether Commit is another commit, descends from it, or is an ancestor of it. Its errors are those of
	// Descends. It may be nil, and is safe for concurrent use.
	Related func(commit string) (bool, error)
}

// String returns the form of a source that is usual for modules and remote bases:
// "example.org/team/platform//clusters/prod?ref=main".
func (s SourceID) String() string {
	text := s.Repository
	if s.Path != "" {
		text += "//" + s.Path
	}
	switch s.Ref {
	case "":
		return text
	case Detached:
		return text + "?commit=" + s.Commit
	}
	return text + "?ref=" + s.Ref
}
