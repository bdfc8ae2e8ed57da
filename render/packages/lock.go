package packages

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/yaml"
)

// LockFile is the name of the lock of a commit.
const LockFile = "headgate.lock.yaml"

// A Locked package is a package whose image the commit records.
type Locked struct {
	Source  string `json:"source"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	Schemas string `json:"schemas,omitempty"` // the hash of the kept content; "" if the commit keeps none

	within string // the directory that contains the lock
}

// locksOf reads the locks among the documents of a commit. They must agree on one version of each source.
func locksOf(docs catalogue.Documents) (map[string]Locked, catalogue.Errors) {
	all := map[string]Locked{}
	var problems catalogue.Errors
	for d := range docs.All() {
		id := d.Header.ID()
		if !catalogue.IsLock(id) {
			if path.Base(d.Origin.Path) == LockFile { // ignoring the file would request other images than the commit means
				problems = append(problems, catalogue.Errorf(d.Origin, "%s contains something other than a PackageLock of headgate.dev/v1alpha1; correct it, or remove it and run headgate lock", LockFile))
			}
			continue
		}
		if d.Header.Version() != "v1alpha1" {
			problems = append(problems, catalogue.Errorf(d.Origin, "%s is not known in version %s: only %s/v1alpha1 is", id.Kind, d.Header.APIVersion, id.Group))
			continue
		}
		problems = append(problems, readLock(d, all)...)
	}
	return all, problems
}

func readLock(d *manifest.Document, into map[string]Locked) catalogue.Errors {
	u, err := d.Recall()
	if err != nil {
		return catalogue.ErrorsOf(d.Origin, err)
	}
	r := catalogue.Strict{Document: d}
	top := r.Object(u.Object, nil, "apiVersion", "kind", "metadata", "packages")
	for i, v := range r.List(top["packages"], []any{"packages"}) {
		at := []any{"packages", i}
		entry := r.Object(v, at, "source", "version", "digest", "schemas")
		one := Locked{
			Source:  r.Text(entry["source"], append(at, "source")),
			Version: r.Text(entry["version"], append(at, "version")),
			Digest:  r.Text(entry["digest"], append(at, "digest")),
			within:  path.Dir(d.Origin.Path),
		}
		if schemas, has := entry["schemas"]; has {
			one.Schemas = r.Text(schemas, append(at, "schemas"))
		}
		switch _, twice := into[one.Source]; {
		case one.Digest != "" && !crossplane.IsDigest(one.Digest):
			r.Refuse(append(at, "digest"), "is not a digest: %q; run headgate lock", one.Digest)
		case crossplane.IsDigest(one.Version) && one.Digest != "" && one.Digest != one.Version: // Headgate would judge one image, and Crossplane install the other
			r.Refuse(append(at, "digest"), "differs from the digest in version; run headgate lock")
		case one.Schemas != "" && !crossplane.IsDigest(one.Schemas):
			r.Refuse(append(at, "schemas"), "is not a hash: %q; %s", one.Schemas, KeepAgain)
		case twice:
			r.Refuse(at, "is listed twice: %s", one.Source)
		default:
			into[one.Source] = one
		}
	}
	return catalogue.ErrorsOf(d.Origin, r.Problems.OrNil())
}

// lock adds the image that the commit's lock records to a request.
func (r *Request) lock(locked map[string]Locked) {
	l, ok := locked[r.Source]
	switch {
	case !ok:
	case r.Version == l.Version:
		r.Digest, r.Keeps = l.Digest, l.keeps()
	case r.Version == "" && r.allow(l.Version):
		r.Version, r.Digest, r.Keeps = l.Version, l.Digest, l.keeps()
	}
}

func (l Locked) keeps() Keeps {
	if l.Schemas == "" {
		return Keeps{}
	}
	return Keeps{File: path.Join(l.within, KeptDirectory, KeptName(l.Source)), Hash: l.Schemas}
}

func (r *Request) allow(version string) bool {
	for _, c := range r.Constraints {
		if allows(c, version) != nil {
			return false
		}
	}
	return true
}

// stale finds entries of a lock for packages that the commit requests in another version.
func (n *node) stale(locked map[string]Locked) []manifest.Finding {
	l, ok := locked[n.request.Source]
	if !ok && (len(locked) == 0 || n.copy != nil) || n.request.Digest != "" && !n.request.Applied || crossplane.IsDigest(n.request.Version) {
		return nil
	}
	f := manifest.Finding{
		Rule: RuleLock, Severity: manifest.Warning, Origin: n.request.Origin, About: manifest.About{Subject: n.request.wanted()},
		Message: fmt.Sprintf("%s does not record the image of %s, so that image may change", LockFile, n.request.wanted()),
		Fix:     "run headgate lock",
	}
	if ok {
		f.Message = fmt.Sprintf("%s locks %s of %s, but the commit requests %s", LockFile, l.Version, l.Source, n.request.wanted())
	}
	return []manifest.Finding{f}
}

// RuleLock is the rule for a lock that does not match the commit.
const RuleLock = "package-lock"

// Keeping reports whether a lock of the commit keeps schemas.
func (c Commit) Keeping() bool {
	for _, l := range c.locked {
		if l.Schemas != "" {
			return true
		}
	}
	return false
}

// LockOf returns the lock of a commit's packages from registries, or nil if there are none. kept is the kept content by source, or
// nil.
func LockOf(packages []catalogue.Package, kept map[string][]byte) ([]byte, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	var all []Locked
	for _, p := range packages {
		if p.Pulled() {
			one := Locked{Source: p.Source, Version: p.Version, Digest: p.Digest}
			if content, ok := kept[p.Source]; ok {
				one.Schemas = KeptHash(content)
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b Locked) int { return cmp.Compare(a.Source, b.Source) })
	body, err := yaml.Marshal(map[string]any{"packages": all})
	head := "# The image of every version that this commit uses. Written by headgate lock.\n" +
		"apiVersion: headgate.dev/v1alpha1\nkind: PackageLock\nmetadata:\n  name: packages\n"
	return append([]byte(head), body...), err
}
