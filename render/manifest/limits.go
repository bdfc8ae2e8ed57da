package manifest

import (
	"cmp"
	"fmt"
)

// Limits bounds the cost of reading one commit. A zero field means its default.
type Limits struct {
	FileBytes  int64 // of a file, and of a document with expanded aliases; default 16 MiB
	TotalBytes int64 // of all files read; default 1 GiB
	Documents  int   // of all files; default 100,000
	Depth      int   // of nesting in one document; default 200
	Nodes      int   // mappings, lists and scalars of a document with expanded aliases; default 200,000
	TotalNodes int   // of all documents that are decoded and kept in memory at the same time; default 8,000,000
}

// orDefault fills in the defaults.
func (l Limits) orDefault() Limits {
	return Limits{
		FileBytes:  cmp.Or(l.FileBytes, 16<<20),
		TotalBytes: cmp.Or(l.TotalBytes, 1<<30),
		Documents:  cmp.Or(l.Documents, 100_000),
		Depth:      cmp.Or(l.Depth, 200),
		Nodes:      cmp.Or(l.Nodes, 200_000),
		TotalNodes: cmp.Or(l.TotalNodes, 8_000_000),
	}
}

// ForkNodes is the default of TotalNodes for commits from forks: enough for one provider of a family.
const ForkNodes = 1_000_000

// LimitError is the error about a commit whose files together exceed a limit. The path is the file that exceeded it, which depends
// on chance.
type LimitError struct {
	Path      string
	Bytes     int64 // the exceeded limit, or 0
	Documents int   // the same
	Nodes     int   // the same
}

// Error names the path and the limit.
func (l LimitError) Error() string {
	if l.Bytes > 0 {
		return fmt.Sprintf("%s: cannot read: the files of the commit are larger than the limit of %d bytes together", l.Path, l.Bytes)
	}
	if l.Nodes > 0 {
		return fmt.Sprintf("%s: cannot read: the documents that the commit has decoded hold more than the limit of %d nodes together; activate less, or raise limits.totalNodes", l.Path, l.Nodes)
	}
	return fmt.Sprintf("%s: cannot read: the commit holds more than the limit of %d documents", l.Path, l.Documents)
}
