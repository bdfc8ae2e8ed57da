package packages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/yaml"
)

// A lock can keep the content of a package, without the schemas of inactive definitions. A comparison of commits reads that content
// if it cannot get the image. See ADR 22.
//
//	headgate.lock.yaml               source, version, digest of the image, hash of the file
//	.headgate/schemas/NAME-HASH.txt  the digest of the image again, and the documents

// KeptDirectory is the directory with the kept content of packages, next to the lock. Its files do not have the extension of
// manifests, so no tool applies them.
const KeptDirectory = ".headgate/schemas"

// MaxKept is the maximum size of the kept content of one package, in bytes. Forges refuse larger files.
const MaxKept = 48 << 20

// RuleKept is the rule for a package that is read from the content that a commit keeps.
const RuleKept = "package-schemas-kept"

// KeepAgain is the advice that repairs kept content.
const KeepAgain = "run headgate lock --schemas"

// Keeps describes the kept content of a package as a lock records it. The zero value means that the lock keeps none.
type Keeps struct {
	File string // relative to the root of the commit
	Hash string // of its bytes
}

// KeptName returns the name of the file for a package in KeptDirectory. The name does not depend on the version, so an upgrade
// changes one file.
func KeptName(source string) string {
	sum := sha256.Sum256([]byte(source))
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, path.Base(source))
	return fmt.Sprintf("%s-%s.txt", name[:min(len(name), 60)], hex.EncodeToString(sum[:6]))
}

// KeptHash returns the hash of kept content, as a lock records it.
func KeptHash(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// keptMark is the first line of all kept content.
const keptMark = "# Written by headgate lock --schemas: a package without the schemas of inactive definitions.\n"

// IsKept reports whether a file is kept content of any image.
func IsKept(file []byte) bool { return bytes.HasPrefix(file, []byte(keptMark)) }

// keptHead returns the first lines of the kept content of an image.
func keptHead(source, version, digest string) string {
	return fmt.Sprintf("%s# %s\n# %s\n", keptMark, crossplane.Image(source, version), digest)
}

// An outline is a definition without its schemas, with only the fields that identify it.
type outline struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       map[string]any `json:"spec"`
}

func outlineOf(h manifest.Header) outline {
	metadata := map[string]any{"name": h.Name}
	if h.Paused {
		metadata["annotations"] = map[string]any{manifest.PausedAnnotation: "true"}
	}
	spec := map[string]any{"group": h.Spec.Group, "names": map[string]any{"kind": h.Spec.Kind, "plural": h.Spec.Plural}}
	if h.Spec.Scope != "" {
		spec["scope"] = h.Spec.Scope
	}
	if h.Spec.State != "" {
		spec["state"] = h.Spec.State
	}
	return outline{h.APIVersion, h.Kind, metadata, spec}
}

// Keep returns the content of a package of the commit as a lock keeps it, with some definitions as outlines. The same package and
// the same outlines result in the same bytes.
func (c Commit) Keep(p catalogue.Package, outlined map[*manifest.Document]bool) ([]byte, error) {
	n := c.resolved.bySrc[p.Source]
	if n == nil || n.contents == nil || n.err != nil {
		return nil, fmt.Errorf("package %s was not read", p.Source)
	}
	var all bytes.Buffer
	all.WriteString(keptHead(p.Source, p.Version, p.Digest))
	for _, d := range n.contents.Documents {
		text, err := kept(d, outlined[d])
		if err != nil {
			return nil, err
		}
		all.WriteString("---\n")
		all.Write(text)
		if all.Len() > MaxKept {
			return nil, fmt.Errorf("%s: the active definitions of package %s take more than %d MiB, which forges refuse; activate fewer", p.Mentioned, p.Source, MaxKept>>20)
		}
	}
	return all.Bytes(), nil
}

// kept returns a document, or its outline, as YAML.
func kept(d *manifest.Document, outlined bool) ([]byte, error) {
	if outlined {
		raw, err := json.Marshal(outlineOf(d.Header))
		return append(raw, '\n'), err
	}
	u, err := d.Decode()
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(u.Object)
}

// IsOutline reports whether a document of kept content is the outline of a definition.
func IsOutline(d *manifest.Document) bool {
	if id := d.Header.ID(); !id.IsCRD() && !crossplane.IsMRD(id) {
		return false
	}
	u, err := d.Decode()
	if err != nil {
		return false
	}
	is, err := json.Marshal(u.Object)
	made, bad := json.Marshal(outlineOf(d.Header))
	return err == nil && bad == nil && bytes.Equal(is, made)
}

// Content reads the kept content for a request. It returns an error if the content does not belong to the image in the lock.
func (r Request) Content(files fs.FS) ([]byte, error) {
	if r.Keeps.File == "" {
		return nil, errors.New("the lock keeps no schemas")
	}
	raw, err := readKept(files, r.Keeps.File)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", r.Keeps.File, err)
	case KeptHash(raw) != r.Keeps.Hash:
		return nil, fmt.Errorf("%s is not the file that %s records", r.Keeps.File, LockFile)
	case !bytes.HasPrefix(raw, []byte(keptHead(r.Source, r.Version, r.Digest))):
		return nil, fmt.Errorf("%s belongs to another image than %s", r.Keeps.File, r.Digest)
	}
	return raw, nil
}

func readKept(files fs.FS, name string) (_ []byte, err error) {
	info, err := fs.Lstat(files, name)
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > MaxKept:
		return nil, fmt.Errorf("it is larger than %d MiB", MaxKept>>20)
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	raw, err := io.ReadAll(io.LimitReader(f, MaxKept+1))
	if err == nil && len(raw) > MaxKept {
		err = fmt.Errorf("it is larger than %d MiB", MaxKept>>20)
	}
	return raw, withoutPath(err)
}

// withoutPath returns an error of a file system without the path.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
