package render

// A SourceID identifies the repository of commits, regardless of how they are fetched or checked out. The zero value is an unknown
// source.
type SourceID struct {
	// Repository is the host and path of the remote, without scheme, user, port and .git. Without a remote, it is "commit:" and the
	// repository's first commit. For a directory outside of any repository, it is "directory:" and its path.
	Repository string
	Path       string // the directory of the manifests inside the repository; "" means the root
	Commit     string // the full ID of the commit, or of the checked-out commit; "" if there is none

	// Contains reports whether a commit is in the history of the repository, as far as the history is available locally. It may be
	// nil, and is safe for concurrent use.
	Contains func(commit string) (bool, error)

	// Descends reports whether Commit is another commit or descends from it. It returns an error if a commit of the history
	// cannot be read, as in a shallow clone, unless that does not matter. It may be nil, and is safe for concurrent use.
	Descends func(commit string) (bool, error)
}

// String returns the usual form of a source: "example.org/team/platform//clusters/prod".
func (s SourceID) String() string {
	if s.Path == "" {
		return s.Repository
	}
	return s.Repository + "//" + s.Path
}
