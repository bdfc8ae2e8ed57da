// Package upgrade previews another version of a package before a pull request proposes it.
package upgrade

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Proposal previews a commit in which one package has another version, before a person proposes it. It changes the line that
// names the version in memory, and nothing else.
//
//	Find ─► To(version) ─► Versions
type Proposal struct {
	From reconcile.Source     // the source of the commit
	Ref  string               // the ref of the commit
	By   reconcile.Reconciler // its source must complete the commits that Fetch returns
	// Tags returns the available versions of a package.
	Tags func(ctx context.Context, of packages.Request) ([]string, error)

	id            manifest.ID
	image, source string          // in the notation of the commit
	version       string          // in the notation of the commit; "" if it names none
	at            manifest.Origin // the line that names the version
	asks          packages.Request
}

// asVersion is the prefix of a ref that means a version of the package, and not a commit.
const asVersion = "upgrade:"

// mostJudged is the maximum number of intermediate versions that Headgate judges, because it has to read each of them.
const mostJudged = 8

// IsVersion reports whether a text can be the version of a package.
func IsVersion(text string) bool {
	_, err := semver.NewVersion(text)
	return err == nil && !strings.ContainsAny(text, "+ /:@")
}

// Find finds the object that makes Crossplane install a package. name is the name of the object, or of its image or repository.
func (p *Proposal) Find(ctx context.Context, name string) error {
	want, err := p.By.Render(ctx, p.Ref)
	if err != nil {
		return err
	}
	type named struct {
		id    manifest.ID
		image string
		at    manifest.Origin
	}
	var all []named
	for _, o := range want.Objects {
		if !crossplane.IsPackage(o.ID) {
			continue
		}
		content, err := o.Content()
		if err != nil {
			return err
		}
		image, _, _ := unstructured.NestedString(content.Object, "spec", "package")
		all = append(all, named{o.ID, strings.TrimSpace(image), o.OriginOf("spec", "package")})
	}
	found := slices.DeleteFunc(slices.Clone(all), func(n named) bool { return n.id.Name != name })
	if len(found) == 0 {
		found = slices.DeleteFunc(slices.Clone(all), func(n named) bool {
			source, _ := crossplane.SplitImage(n.image)
			return source != name && crossplane.ImageName(n.image) != name
		})
	}
	list := func(of []named) string {
		var names []string
		for _, n := range of[:min(len(of), 5)] {
			names = append(names, fmt.Sprintf("%s %s (%s)", n.id.Kind, n.id.Name, n.at))
		}
		if left := len(of) - len(names); left > 0 {
			names = append(names, fmt.Sprintf("%d more", left))
		}
		return strings.Join(names, ", ")
	}
	switch {
	case len(found) > 1:
		return fmt.Errorf("%s: %d objects of this commit install %s: %s; specify the name of one of them", found[0].at, len(found), name, list(found))
	case len(found) == 0:
		if err := notInstalled(want, name); err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("no object of this commit installs a package, so %s has no version here", name)
		}
		return fmt.Errorf("no object of this commit installs %s; it has %s", name, list(all))
	}
	p.id, p.image, p.at = found[0].id, found[0].image, found[0].at
	p.source, p.version = crossplane.SplitImage(p.image)
	switch {
	case p.image == "":
		return fmt.Errorf("%s: %s %s names no image in spec.package", p.at, p.id.Kind, p.id.Name)
	case strings.Contains(p.image, "@"):
		return fmt.Errorf("%s: %s %s pins its package by digest, which is of one version: write a tag in place of the digest, or compare two commits with headgate diff", p.at, p.id.Kind, p.id.Name)
	}
	bare, err := p.From.Fetch(ctx, p.Ref)
	if err != nil {
		return err
	}
	bare.Packages = []packages.Image{}
	docs, err := render.Read(bare, p.By.Options)
	if err != nil {
		return err
	}
	for _, r := range docs.With(bare, p.By.Options).Missing() {
		if r.Source == p.source {
			p.asks = r
		}
	}
	return nil
}

// notInstalled returns the error for a package of the commit that no object installs, or nil.
func notInstalled(want render.Desired, name string) error {
	for _, p := range want.Packages {
		switch {
		case p.Pulled() && (p.Name == name || p.Source == name || crossplane.ImageName(p.Source) == name):
			return fmt.Errorf("%s: %s is a dependency, and no object of this commit names its version: upgrade the package that depends on it, or install it with an object of the commit", p.Mentioned, name)
		case !p.Pulled() && p.Name == name:
			return fmt.Errorf("%s: %s is a package in the tree: an upgrade of it is a change of its files, which headgate diff compares", p.Origin, name)
		}
	}
	return nil
}

// To previews the commit with a version of the package.
func (p *Proposal) To(ctx context.Context, version string) (report.Report, error) {
	if !IsVersion(version) {
		return report.Report{}, fmt.Errorf("%q is not a version, as v1.2.3", version)
	}
	if version == p.version {
		return report.Report{}, fmt.Errorf("%s: %s %s has version %s already", p.at, p.id.Kind, p.id.Name, version)
	}
	result, err := p.By.Preview(ctx, reconcile.Pull{Base: p.Ref, Head: asVersion + version})
	if err != nil {
		return result, err
	}
	if !slices.ContainsFunc(result.Steps, p.isBump) {
		return report.Report{}, p.notThere()
	}
	return result, nil
}

// isBump reports whether a step changes the object that names the version.
func (p *Proposal) isBump(s report.Step) bool {
	return s.ID == p.id && (s.Action == plan.Update || s.Action == plan.Hold)
}

// notThere returns the error for a line that does not decide the version.
func (p *Proposal) notThere() error {
	return fmt.Errorf("%s: this line does not set the package of %s %s to %s: something else in the commit does, such as a kustomization; change the version by hand and compare with headgate diff", p.at, p.id.Kind, p.id.Name, p.image)
}

// Fetch returns the commit, or the commit with a version. Its Revision names both.
func (p *Proposal) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := p.From.Fetch(ctx, p.Ref)
	version, isVersion := strings.CutPrefix(ref, asVersion)
	if err != nil || !isVersion {
		return in, err
	}
	files, err := p.edited(in.Files, version)
	if err != nil {
		return in, err
	}
	in.Files, in.Documents, in.Packages = files, nil, nil
	if in.Revision != "" {
		in.Revision += "+" + version
	}
	return in, nil
}

// edited returns the files of the commit with another version.
func (p *Proposal) edited(files fs.FS, version string) (fs.FS, error) {
	content, err := fs.ReadFile(files, p.at.Path)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	if p.at.Line < 1 || p.at.Line > len(lines) || bytes.Count(lines[p.at.Line-1], []byte(p.image)) != 1 {
		return nil, p.notThere()
	}
	lines[p.at.Line-1] = bytes.Replace(lines[p.at.Line-1], []byte(p.image), []byte(crossplane.Image(p.source, version)), 1)
	return edited{files, p.at.Path, bytes.Join(lines, nil)}, nil
}

// Versions returns the available versions from that of the commit up to another one, oldest first, each with its
// judgement. last is the report on the latter.
func (p *Proposal) Versions(ctx context.Context, last report.Report, to string) ([]report.Version, error) {
	if p.Tags == nil || p.asks.Source == "" || !IsVersion(p.version) {
		return nil, nil
	}
	tags, err := p.Tags(ctx, p.asks)
	if err != nil {
		return nil, err
	}
	between := inBetween(tags, p.version, to)
	judged := steps(between)
	var all []report.Version
	for _, version := range between {
		v := report.Version{Version: version}
		if slices.Contains(judged, version) {
			result, err := p.To(ctx, version)
			if err := ctx.Err(); err != nil {
				return all, err
			}
			v = report.VersionOf(version, result, err)
		}
		all = append(all, v)
	}
	return append(all, report.VersionOf(to, last, nil)), nil
}

// inBetween returns the versions between two, in upgrade order. Prereleases count only if one of the two is a prerelease.
func inBetween(tags []string, from, to string) []string {
	a, err := semver.NewVersion(from)
	b, bad := semver.NewVersion(to)
	if err != nil || bad != nil {
		return nil
	}
	direction := b.Compare(a)
	versions := map[string]*semver.Version{}
	var all []string
	for _, tag := range tags {
		v, err := semver.NewVersion(tag)
		early := err == nil && v.Prerelease() != "" && a.Prerelease()+b.Prerelease() == ""
		if err != nil || !IsVersion(tag) || early || v.Compare(a)*direction <= 0 || b.Compare(v)*direction <= 0 {
			continue
		}
		versions[tag] = v
		all = append(all, tag)
	}
	slices.SortFunc(all, func(x, y string) int { return cmp.Or(versions[x].Compare(versions[y])*direction, cmp.Compare(x, y)) })
	return slices.CompactFunc(all, func(x, y string) bool { return versions[x].Equal(versions[y]) }) // v1.0.0 and 1.0.0 are equal
}

// steps returns the versions that a platform team would choose as intermediate steps: the last patch of each minor
// version, and only the last few of these.
func steps(versions []string) []string {
	if len(versions) <= mostJudged {
		return versions
	}
	minor := func(version string) string {
		v, err := semver.NewVersion(version)
		if err != nil {
			return version
		}
		return fmt.Sprint(v.Major(), ".", v.Minor())
	}
	var last []string
	for i, v := range versions {
		if i == len(versions)-1 || minor(v) != minor(versions[i+1]) {
			last = append(last, v)
		}
	}
	return last[max(0, len(last)-mostJudged):]
}

// An edited is a file system in which one file has other content.
type edited struct {
	fs.FS
	name    string
	content []byte
}

func (e edited) Open(name string) (fs.File, error) {
	file, err := e.FS.Open(name)
	if err != nil || path.Clean(name) != e.name {
		return file, err
	}
	return &editedFile{File: file, Reader: bytes.NewReader(e.content)}, nil
}

func (e edited) Stat(name string) (fs.FileInfo, error) { return e.info(name, fs.Stat) }

func (e edited) Lstat(name string) (fs.FileInfo, error) { return e.info(name, fs.Lstat) }

func (e edited) info(name string, of func(fs.FS, string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := of(e.FS, name)
	if err != nil || path.Clean(name) != e.name {
		return info, err
	}
	return sized{info, int64(len(e.content))}, nil
}

func (e edited) ReadLink(name string) (string, error) { return fs.ReadLink(e.FS, name) }

func (e edited) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(e.FS, name) }

// Hash returns the hash of a file's content, if the underlying files support it.
func (e edited) Hash(name string) (string, error) {
	if path.Clean(name) == e.name {
		return fmt.Sprintf("%x", sha256.Sum256(e.content)), nil
	}
	if files, ok := e.FS.(interface {
		Hash(name string) (string, error)
	}); ok {
		return files.Hash(name)
	}
	return "", errors.ErrUnsupported
}

// An editedFile is an open file with other content.
type editedFile struct {
	fs.File
	*bytes.Reader
}

func (f *editedFile) Read(b []byte) (int, error) { return f.Reader.Read(b) }

func (f *editedFile) Stat() (fs.FileInfo, error) {
	info, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return sized{info, f.Reader.Size()}, nil
}

type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }
