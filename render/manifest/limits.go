package manifest

// Limits bound what one commit may cost to read. A zero field means its default.
type Limits struct {
	FileBytes  int64 // of one file; default 16 MiB
	TotalBytes int64 // of all files read; default 1 GiB
	Documents  int   // of all files; default 100,000
	Depth      int   // of nesting in one document; default 200
}
