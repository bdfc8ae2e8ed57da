package render

import (
	"cmp"
	"reflect"
	"slices"

	"headgate.dev/headgate/render/packages"
	"headgate.dev/headgate/render/reads"
)

// Recording returns an input whose files record what is read of them, for Reads. Files that are not those of a commit record
// nothing.
func Recording(in Input) Input {
	if in.Revision != "" {
		in.Files = reads.Of(in.Files)
	}
	return in
}

// Reads are what a render depends on in addition to its options: what it read of the files, and the packages that the commit
// mentions. The zero value is not known, and so the same as nothing.
type Reads struct {
	input Input
	files *reads.Record
}

// Read returns what was read so far of an input. It is not known unless the input comes from Recording.
func (in Input) Read() Reads {
	files, ok := in.Files.(*reads.Files)
	if !ok {
		return Reads{}
	}
	record := files.Record()
	in.Files, in.Documents = nil, nil // the record is what is kept of them
	return Reads{in, &record}
}

// Same reports whether a render of another commit, with the same options, gives the same objects and errors. If not, it returns
// what differs: a path of the commit, or something else that a render depends on.
func (r Reads) Same(in Input) (changed string, same bool) {
	was := r.input
	switch {
	case r.files == nil:
		return "not known", false
	case cmp.Or(was.Path, ".") != cmp.Or(in.Path, "."):
		return "path", false
	case !was.Source.sameBranch(in.Source):
		return "source", false
	case !slices.EqualFunc(was.Packages, in.Packages, sameImage), (was.Packages == nil) != (in.Packages == nil):
		return "packages", false
	case !slices.Equal(was.Installed, in.Installed), (was.Installed == nil) != (in.Installed == nil):
		return "installed packages", false
	case !reflect.DeepEqual(was.Images, in.Images):
		return "ImageConfigs of the cluster", false
	}
	return r.files.Same(in.Files)
}

// sameBranch reports whether two commits come from the same branch of the same repository.
func (s SourceID) sameBranch(as SourceID) bool {
	return s.Repository == as.Repository && s.Path == as.Path && s.Ref == as.Ref && s.Branch == as.Branch
}

// sameImage reports whether two answers of a registry have the same content. An answer that is an error may change at any time.
func sameImage(a, b packages.Image) bool {
	return a.Err == nil && b.Err == nil && a.Version == b.Version && a.Digest == b.Digest &&
		reflect.DeepEqual(a.Request, b.Request) && reflect.DeepEqual(a.Kept, b.Kept) && reflect.DeepEqual(a.Findings, b.Findings)
}
