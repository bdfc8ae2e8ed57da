package catalogue

import (
	"fmt"
	"io/fs"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// The limits of a walk. A tree object may be in any number of directories, so a pack of kilobytes can hold as many
// files, below paths as long, as its author likes.
const (
	maxFiles = 1_000_000 // files and directories
	maxPaths = 64 << 20  // bytes of their paths
	maxPath  = 4096      // bytes of one, as on Linux
	maxDepth = 100       // directories in each other
)

// bounds count what a walk comes by.
type bounds struct {
	files, paths int
	exceeded     bool
}

// visit counts a file or directory. It is false if that is more than a walk may come by, which it refuses once.
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
		why = fmt.Errorf("more than the limit of %d directories are in each other", maxDepth)
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

// abbreviated is a path as an error has it.
func abbreviated(path string) string {
	const most = 200
	if len(path) <= most {
		return path
	}
	return strings.ToValidUTF8(path[:most], "") + "…"
}

// below walks what is below a directory, within the bounds.
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
