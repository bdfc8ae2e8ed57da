package render

import "io/fs"

// An Input is one commit, as bytes, with the packages that it mentions.
type Input struct {
	Revision string // the full commit id, or "" of a directory that is no commit
	Message  string // of the commit itself, and of no other that was merged with it
	Files    fs.FS  // the whole tree, safe for concurrent use; may offer Hash(path) (string, error), the Git blob id
	Path     string // the directory below which manifests are read; "" or "." is the root
}
