// Package packages resolves the packages that a commit mentions: which packages and versions Crossplane would install,
// why, and which problems they have. Package registry pulls them.
//
//	Documents ─Of─► Commit ─Missing─► Requests ─(a registry answers)─► Images ─With─► Commit ─Catalogue─► Catalogue
package packages

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Commit holds what the documents of a commit contain about packages, and the packages that With added. No method changes it, so
// it is safe for concurrent use.
type Commit struct {
	docs     catalogue.Documents
	locked   map[string]Locked
	roots    []root // objects that install packages
	configs  *ImageConfigs
	problems catalogue.Errors // errors in the locks

	held     []Image // nil if no registry was asked
	resolved *resolution
}

// Live is the state of a cluster that affects which packages are installed. A nil field means that the cluster was not asked.
type Live struct {
	Installed []crossplane.Installed
	Images    []LiveConfig
	Applied   []Locked // see render.Input
	Installs  bool     // Crossplane installs packages, so also read images that have a copy in the tree
}

// Of returns the Commit of documents. If unlocked is true, it ignores the lock of the commit.
func Of(docs catalogue.Documents, unlocked bool) Commit {
	c := Commit{docs: docs}
	c.locked, c.problems = locksOf(docs)
	if unlocked {
		c.locked = nil
	}
	c.roots, c.configs = rootsOf(docs)
	return c.With(nil, Live{})
}

// With returns the commit with other images and another state of a cluster. It reads the images that the commit needs and has not
// read yet. held is nil if no registry was asked: then the content of packages outside of the tree is not known.
func (c Commit) With(held []Image, live Live) Commit {
	var read map[string]contents
	if c.resolved != nil {
		read = c.resolved.read
	}
	c.held, c.resolved = held, c.resolve(held, live, read)
	return c
}

// Missing returns, by source, the packages that the commit or its packages mention and that were not read. It returns nothing for a
// commit that cannot be rendered.
func (c Commit) Missing() []Request {
	if len(c.docs.Problems())+len(c.problems) > 0 {
		return nil
	}
	return c.resolved.missing(c.held)
}

// Catalogue returns everything that the commit and its packages declare. Errors are as in catalogue.Read. An invalid package is not
// an error of the commit: the package is Unread.
func (c Commit) Catalogue() (catalogue.Catalogue, error) {
	res := c.resolved
	if c.held == nil {
		made, problems := c.docs.Catalogue()
		return made, slices.Concat(problems, c.problems).OrNil()
	}
	images := map[string]*node{} // by name
	var pulled []catalogue.Pulled
	var beside []catalogue.Beside
	for _, n := range res.nodes {
		if n.contents == nil || n.err != nil {
			continue
		}
		p := n.pulled(res)
		if n.copy == nil {
			images[p.Package.Directory] = n
			pulled = append(pulled, p)
			continue
		}
		if definitions, objects, ok := c.docs.Sort(p); ok {
			beside = append(beside, catalogue.Beside{Package: *p.Package, Definitions: definitions, Objects: objects})
		}
	}
	made, problems := c.docs.Catalogue(pulled...)
	made.Findings = append(made.Findings, res.findings()...)
	slices.SortFunc(made.Findings, manifest.Finding.Compare)
	own := slices.Clone(c.problems)
	failed := map[*node]error{}
	for _, p := range problems {
		if n := images[imageOf(p.Origin, images)]; n != nil {
			failed[n] = errors.Join(failed[n], p)
			continue
		}
		own = append(own, p)
	}
	made.Unread = res.unread(failed)
	slices.SortFunc(beside, func(a, b catalogue.Beside) int { return cmp.Compare(a.Package.Source, b.Package.Source) })
	made.Beside = beside
	return made, own.OrNil()
}

// imageOf returns the name of the image that contains a place.
func imageOf(at manifest.Origin, images map[string]*node) string {
	if _, ok := images[at.Path]; ok {
		return at.Path
	}
	return strings.TrimSuffix(at.Path, "/"+catalogue.StreamName)
}
