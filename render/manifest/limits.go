package manifest

import "cmp"

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
