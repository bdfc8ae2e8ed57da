package catalogue

import (
	"fmt"
	"io/fs"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// The limits of a walk. Trees can share subtrees, so a pack of a few kilobytes can contain any number of files with paths of any
// length.
const (
	maxFiles = 1_000_000 // files and directories
	maxPaths = 64 << 20  // bytes of all paths together
	maxPath  = 4096      // bytes of one path, as on Linux
	maxDepth = 100       // nested directories
)

// bounds counts what a walk has visited.
type bounds struct {
	files, paths int
	exceeded     bool
}

// visit counts a file or directory. It returns false beyond the limits, and reports that error once.
func (w *walk) visit(dir, name string) bool {
	size := len(dir) + len("/") + len(name)
	w.seen.files++
	w.seen.paths += size
	var why error
	switch {
	case w.seen.exceeded:
		return false
	case size > maxPath:
		why = fmt.Errorf("the path is longer than the limit of %d bytes", maxPath)
	case strings.Count(dir, "/") >= maxDepth:
		why = fmt.Errorf("more than the limit of %d directories are nested", maxDepth)
	case w.seen.files > maxFiles:
		why = fmt.Errorf("there are more than the limit of %d files and directories", maxFiles)
	case w.seen.paths > maxPaths:
		why = fmt.Errorf("the paths of all files together are longer than the limit of %d bytes", maxPaths)
	default:
		return true
	}
	w.seen.exceeded = true
	w.refuse(manifest.Origin{Path: abbreviated(strings.TrimSuffix(dir, "/"))}, why)
	return false
}

// abbreviated shortens a path for an error.
func abbreviated(path string) string {
	const most = 200
	if len(path) <= most {
		return path
	}
	return strings.ToValidUTF8(path[:most], "") + "…"
}

// below walks the directory tree below dir, within the limits.
func (w *walk) below(dir string, do fs.WalkDirFunc) {
	err := fs.WalkDir(w.files, dir, func(name string, e fs.DirEntry, err error) error {
		if name == dir {
			return do(name, e, err)
		}
		at := strings.LastIndexByte(name, '/')
		if !w.visit(name[:max(at, 0)], name[at+1:]) {
			return fs.SkipAll
		}
		return do(name, e, err)
	})
	if err != nil {
		w.refuse(manifest.Origin{Path: abbreviated(dir)}, err)
	}
}
