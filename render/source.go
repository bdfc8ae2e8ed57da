package render

// A SourceID identifies the repository that commits come from, independent of how they are fetched or checked out. The
// zero value is an unknown source.
type SourceID struct {
	// Repository is the host and path of the remote, without scheme, user, port and .git. That of a
	// repository without a remote is "commit:" and its first commit, and the source of a directory outside
	// of any repository "directory:" and its path.
	Repository string
	Path       string // the directory of the manifests, inside the repository; "" is the root
	Commit     string // the full id of the commit, or of the one that is checked out; "" where there is none

	// Contains reports whether a commit is in the history of the repository, as far as that is at
	// hand. It may be nil, and is safe for concurrent use.
	Contains func(commit string) (bool, error)

	// Descends reports whether Commit is another commit or descends from it. It returns an error if a commit of the history
	// cannot be read, as in a shallow clone, unless that does not matter. It may be nil, and is safe for concurrent use.
	Descends func(commit string) (bool, error)
}

// String is how people write a source: "example.org/team/platform//clusters/prod".
func (s SourceID) String() string {
	if s.Path == "" {
		return s.Repository
	}
	return s.Repository + "//" + s.Path
}
