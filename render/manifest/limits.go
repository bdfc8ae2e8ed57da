package manifest

import (
	"cmp"
	"fmt"
)

// Limits bound what one commit may cost to read. A zero field means its default.
type Limits struct {
	FileBytes  int64 // of one file, and of a document with its aliases expanded; default 16 MiB
	TotalBytes int64 // of all files read; default 1 GiB
	Documents  int   // of all files; default 100,000
	Depth      int   // of nesting in one document; default 200
}

// orDefault fills in the defaults.
func (l Limits) orDefault() Limits {
	return Limits{
		FileBytes:  cmp.Or(l.FileBytes, 16<<20),
		TotalBytes: cmp.Or(l.TotalBytes, 1<<30),
		Documents:  cmp.Or(l.Documents, 100_000),
		Depth:      cmp.Or(l.Depth, 200),
	}
}

// LimitError is the error of a commit that is larger than one of the limits that hold for all
// of its files together. Which file was one too many is left to chance.
type LimitError struct {
	Path      string
	Bytes     int64 // the limit that is exceeded, or 0
	Documents int   // the same
}

// Error says that of the path.
func (l LimitError) Error() string {
	if l.Bytes > 0 {
		return fmt.Sprintf("%s: cannot read: the files of the commit are larger than the limit of %d bytes together", l.Path, l.Bytes)
	}
	return fmt.Sprintf("%s: cannot read: the commit holds more than the limit of %d documents", l.Path, l.Documents)
}
