package manifest

import (
	"bytes"
	"errors"
)

// errPointer is the error for a Git LFS pointer. Ignoring the pointer instead would make its objects look removed.
var errPointer = errors.New("it is a Git LFS pointer, and not the file that it stands for: keep manifests out of Git LFS, or list the file in .headgateignore")

// pointerPrefixes are the first lines of pointers, for all versions of Git LFS.
var pointerPrefixes = [][]byte{
	[]byte("version https://git-lfs.github.com/spec/"),
	[]byte("version https://hawser.github.com/spec/"),
	[]byte("version http://git-media.io/v/"),
}

// IsPointer reports whether a file is a Git LFS pointer. The specification limits one to 1024 bytes.
func IsPointer(raw []byte) bool {
	if len(raw) >= 1024 || !bytes.Contains(raw, []byte("\noid ")) {
		return false
	}
	for _, prefix := range pointerPrefixes {
		if bytes.HasPrefix(raw[skipBOM(raw):], prefix) {
			return true
		}
	}
	return false
}
