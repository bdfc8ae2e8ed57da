package kustomize

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"headgate.dev/headgate/render/manifest"
)

// A memory stores the build of directories in the Memo. The key is the content of all files that the build looked up. Only the
// build shows which files these are, so the memory also stores their names, with only the directories as the key. Names from
// another commit result in an unknown key.
type memory struct {
	files       fs.FS
	reader      *manifest.Reader
	directories []string
}

// A traced file system records every name that is looked up.
type traced struct {
	fs.FS
	names map[string]bool
}

// Lstat describes a file, directory or link.
func (t *traced) Lstat(name string) (fs.FileInfo, error) {
	t.names[name] = true
	return fs.Lstat(t.FS, name)
}

// ReadLink makes package fs use Lstat.
func (t *traced) ReadLink(name string) (string, error) { return fs.ReadLink(t.FS, name) }

// A rememberedBuild is the stored form of a Build.
type rememberedBuild struct {
	Spent      manifest.Spent
	Reads      []string
	LocalFiles []string
	Unbuilt    []string
	Findings   []manifest.Finding
	Objects    []rememberedObject
}

type rememberedObject struct {
	Origin    manifest.Origin
	Generated bool // the object has no document
	Nth       int  // the index of the document in the file
	Object    json.RawMessage
}

func madeOf(from provenance, object []byte) rememberedObject {
	return rememberedObject{Origin: from.origin, Generated: from.document == nil, Nth: from.nth, Object: object}
}

func (m memory) hint() string {
	return fmt.Sprintf("kustomize builds %+v %q", m.reader.Limits(), m.directories)
}

// key returns the key of a build that looked up these names: a hash of their contents. ok is false if a hash is not known.
func (m memory) key(names []string) (_ string, ok bool) {
	sum := sha256.New()
	for _, name := range names {
		is, err := m.reader.Hash(name)
		if err != nil {
			info, err := fs.Lstat(m.files, name)
			switch {
			case err != nil:
				is = "absent"
			case info.Mode().IsRegular():
				return "", false // these files have no hashes
			default:
				is = info.Mode().Type().String()
			}
		}
		fmt.Fprintf(sum, "%q %s\n", name, is)
	}
	return m.hint() + " " + hex.EncodeToString(sum.Sum(nil)), true
}

// remember stores a build and its cost.
func (m memory) remember(v *vetting, made Build, spent manifest.Spent) {
	maps.Copy(v.files.names, v.reads)
	names := slices.Sorted(maps.Keys(v.files.names))
	key, ok := m.key(names)
	if !ok {
		return
	}
	hint, err := json.Marshal(names)
	if err != nil {
		return
	}
	value, err := json.Marshal(rememberedBuild{
		Spent: spent, Reads: slices.Sorted(maps.Keys(v.reads)), LocalFiles: made.LocalFiles, Unbuilt: made.Unbuilt,
		Findings: made.Findings, Objects: v.made,
	})
	if err != nil {
		return
	}
	m.reader.Remember(m.hint(), string(hint))
	m.reader.Remember(key, string(value))
}

// recall returns the stored build of the same content.
func (m memory) recall() (Build, bool) {
	hint, ok := m.reader.Recall(m.hint())
	if !ok {
		return Build{}, false
	}
	var names []string
	if err := json.Unmarshal([]byte(hint), &names); err != nil {
		return Build{}, false
	}
	key, ok := m.key(names)
	if !ok {
		return Build{}, false
	}
	value, ok := m.reader.Recall(key)
	if !ok {
		return Build{}, false
	}
	var known rememberedBuild
	if err := json.Unmarshal([]byte(value), &known); err != nil {
		return Build{}, false
	}
	return m.restore(known)
}

// restore returns a stored build. It charges the reader with the original cost. ok is false if that exceeds the limits: then a new
// build reports the error.
func (m memory) restore(known rememberedBuild) (_ Build, ok bool) {
	made := Build{Reads: map[string]bool{}, LocalFiles: known.LocalFiles, Unbuilt: known.Unbuilt, Findings: known.Findings}
	for _, name := range known.Reads {
		made.Reads[name] = true
	}
	before := m.reader.Spent()
	defer func() {
		if !ok {
			m.reader.Spend(before.Minus(m.reader.Spent()))
		}
	}()
	sources := map[string][]*manifest.Document{}
	for _, o := range known.Objects {
		var source *manifest.Document
		if !o.Generated {
			if _, read := sources[o.Origin.Path]; !read {
				documents, err := m.reader.Read(o.Origin.Path)
				if err != nil {
					return Build{}, false
				}
				sources[o.Origin.Path] = documents
			}
			source = sources[o.Origin.Path][o.Nth]
		}
		d, err := manifest.Made(o.Object, o.Origin, source)
		if err != nil {
			return Build{}, false
		}
		made.Documents = append(made.Documents, d)
	}
	return made, m.reader.Spend(known.Spent.Minus(m.reader.Spent().Minus(before)))
}
