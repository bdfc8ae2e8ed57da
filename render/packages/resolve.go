package packages

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A resolution holds the packages that a commit needs, as far as the available images show. It does not change after resolve has
// returned it.
type resolution struct {
	docs    catalogue.Documents
	nodes   []*node // in the order of discovery
	bySrc   map[string]*node
	locked  map[string]Locked
	applied map[string]Locked
	configs *ImageConfigs
	read    map[string]contents // the contents of images, by name and digest

	asked     bool // the cluster was asked for its packages
	installed map[string]crossplane.Installed
}

// contents is the content of an image, or the error of reading it.
type contents struct {
	catalogue.Pulled
	err error
}

// A node is a package of a resolution.
type node struct {
	request    Request
	roots      []root   // objects of the commit that name it
	asked      []asking // what other packages require of it
	image      *Image   // the answer to this request, if there is one
	contents   *contents
	err        error // why its content is not known
	installers []manifest.ID
	copy       *catalogue.Package // its copy in the tree, which counts if the image cannot be read
}

// An asking is a dependency of one package on another.
type asking struct {
	catalogue.Dependency

	by   string // the package, for messages
	from *node  // nil for a package in the tree
}

// resolve finds the packages that the commit needs, beginning with those that its objects name. If the commit leaves a version
// open, the installed version counts. resolve reads the images that it needs and that are not in read.
func (c Commit) resolve(held []Image, live Live, read map[string]contents) *resolution {
	answers := map[string]*Image{}
	for i := range held {
		answers[held[i].Request.Source] = &held[i]
	}
	res := &resolution{
		docs: c.docs, bySrc: map[string]*node{}, locked: c.locked, applied: map[string]Locked{}, configs: c.configs.with(live.Images), read: maps.Clone(read),
		asked: live.Installed != nil, installed: map[string]crossplane.Installed{},
	}
	if res.read == nil {
		res.read = map[string]contents{}
	}
	for _, one := range live.Installed {
		res.installed[one.Source] = one
	}
	for _, one := range live.Applied {
		res.applied[one.Source] = one
	}
	inTree := res.rooted(c.roots, live)
	for _, p := range c.docs.Packages() {
		if by, ok := inTree[p]; ok && !by.skipsDependencies {
			res.ask(p, asking{by: "package " + p.Name}, []manifest.ID{by.id})
		} else if !ok && p.Project != nil { // no object installs a package that is not built yet
			res.ask(p, asking{by: "project " + p.Name}, nil)
		}
	}
	for done := 0; done < len(res.nodes); { // it grows
		n := res.nodes[done]
		done++
		if n.image = answers[n.request.Source]; n.image != nil {
			res.descend(n)
		}
	}
	for _, n := range res.nodes {
		n.settle(res)
	}
	res.spread()
	for _, n := range res.nodes {
		n.check()
	}
	return res
}

// rooted adds the packages that objects of the commit name, and returns those of the tree with the object that installs each. A
// package of the tree takes the place of an image, except where the cluster's Crossplane installs the image all the same.
func (res *resolution) rooted(roots []root, live Live) map[*catalogue.Package]root {
	tree := res.docs.Packages()
	inTree := map[*catalogue.Package]root{}
	for _, one := range roots {
		var local *catalogue.Package
		if i := slices.IndexFunc(tree, one.installs); i >= 0 {
			local = tree[i]
			inTree[local] = one
		}
		if local != nil && (!live.Installs || one.id.Kind == crossplane.Function) {
			continue
		}
		n := res.node(one.source)
		n.roots = append(n.roots, one)
		if local != nil {
			n.copy, n.request.Copied = local, true
		}
	}
	return inTree
}

// installs reports whether an object installs a package of the tree.
func (r root) installs(p *catalogue.Package) bool {
	return p.Kind == r.id.Kind && (p.Name == r.id.Name || p.Called(p.Kind, r.source))
}

// descend opens the image of a package and asks for its dependencies. Those of a copy in the tree are already requested.
func (res *resolution) descend(n *node) {
	if n.err = n.image.Err; n.err != nil {
		return
	}
	n.contents = res.open(*n.image)
	if n.err = n.contents.err; n.err != nil {
		return
	}
	if n.copy == nil && !n.skipsDependencies() {
		res.ask(n.contents.Package, asking{by: n.image.name(), from: n}, nil)
	}
}

// skipsDependencies reports whether every object that names the package turns the resolution of dependencies off.
func (n *node) skipsDependencies() bool {
	return len(n.roots) > 0 && !slices.ContainsFunc(n.roots, func(r root) bool { return !r.skipsDependencies })
}

// open reads the content of an image, once.
func (res *resolution) open(image Image) *contents {
	name := image.name()
	hash := image.Digest
	if image.Kept != nil {
		hash = image.Kept.Hash // a Memo must not confuse kept content with the image
	}
	key := name + " " + hash
	c, known := res.read[key]
	if !known {
		c.Pulled, c.err = res.docs.Pull(name, hash, image.Open)
		res.read[key] = c
	}
	return &c
}

// node returns the node of a source, and adds it if necessary.
func (res *resolution) node(source string) *node {
	if res.bySrc[source] == nil {
		res.bySrc[source] = &node{request: Request{Source: source, Configs: res.configs}}
		res.nodes = append(res.nodes, res.bySrc[source])
	}
	return res.bySrc[source]
}

// ask requests the dependencies of a package that are not in the tree.
func (res *resolution) ask(p *catalogue.Package, as asking, installers []manifest.ID) {
	for _, dep := range p.Depends {
		if slices.ContainsFunc(res.docs.Packages(), func(other *catalogue.Package) bool { return other.Called(dep.Kind, dep.Source) }) {
			continue
		}
		as.Dependency = dep
		n := res.node(dep.Source)
		n.asked = append(n.asked, as)
		n.install(installers)
	}
}

// install adds objects that make Crossplane install a package, and reports whether one of them is new.
func (n *node) install(by []manifest.ID) (news bool) {
	for _, id := range by {
		if !slices.Contains(n.installers, id) {
			n.installers = append(n.installers, id)
			news = true
		}
	}
	return news
}

// spread adds to every package the objects of the commit that make Crossplane install it.
func (res *resolution) spread() {
	for _, n := range res.nodes {
		for _, r := range n.roots {
			n.install([]manifest.ID{r.id})
		}
	}
	for news := true; news; {
		news = false
		for _, n := range res.nodes {
			for _, a := range n.asked {
				if a.from != nil && n.install(a.from.installers) {
					news = true
				}
			}
		}
	}
}

// settle completes the request for a package with the requirements of everything that depends on it.
func (n *node) settle(res *resolution) {
	r := &n.request
	for _, root := range n.roots {
		r.PullSecrets = append(r.PullSecrets, root.secrets...)
	}
	slices.Sort(r.PullSecrets)
	r.PullSecrets = slices.Compact(r.PullSecrets)
	if len(n.roots) > 0 {
		first := n.roots[0]
		r.Version, r.Named, r.Origin, r.PullPolicy = first.version, first.named, first.origin, first.pull
	} else {
		r.Origin = n.asked[0].Origin
		for _, a := range n.asked {
			r.Constraints = append(r.Constraints, a.Constraint)
		}
		slices.Sort(r.Constraints)
		r.Constraints = slices.Compact(r.Constraints)
		switch there, ok := res.installed[r.Source]; {
		case ok: // an installed version stays, even if there are newer ones
			r.Version = there.Version
		case slices.ContainsFunc(r.Constraints, crossplane.IsDigest) && len(r.Constraints) == 1:
			r.Version = r.Constraints[0]
		}
	}
	r.lock(res.locked)
	if r.Digest == "" && r.PullPolicy != PullAlways {
		r.lock(res.applied)
		r.Applied = r.Digest != ""
	}
	if there := res.installed[r.Source]; there.Version == r.Version {
		r.Installed = there
	}
}

// check sets an error if a package has another kind than the object that installs it.
func (n *node) check() {
	if n.err != nil || n.contents == nil {
		return
	}
	kind := n.contents.Package.Kind
	for _, r := range n.roots {
		if r.id.Kind != kind {
			n.err = fmt.Errorf("it is a %s package, and %s names it", kind, r.id)
		}
	}
}

// missing returns the requests without an answer, by source.
func (res *resolution) missing(held []Image) []Request {
	answered := map[string]Request{}
	for _, i := range held {
		answered[i.Request.Source] = i.Request
	}
	var all []Request
	for _, n := range res.nodes {
		if known, ok := answered[n.request.Source]; !ok || !reflect.DeepEqual(known, n.request) {
			all = append(all, n.request)
		}
	}
	slices.SortFunc(all, func(a, b Request) int { return cmp.Compare(a.Source, b.Source) })
	return all
}

// pulled returns the content of a node's image, with everything that the commit declares about the package.
func (n *node) pulled(res *resolution) catalogue.Pulled {
	all := n.contents.Pulled
	p := *all.Package
	p.Directory = n.image.name()
	p.Source, p.Version, p.Digest = n.request.Source, n.image.Version, n.image.Digest
	if n.image.Kept != nil {
		k := *n.image.Kept
		k.Documents, p.Kept = all.Documents, &k
	}
	if res.asked {
		there := res.installed[p.Source]
		p.Installed = &there
	}
	p.Mentioned = n.request.Origin
	p.Installers = n.installers
	if len(n.installers) > 0 {
		p.Installer = n.installers[0]
	}
	if len(n.roots) > 0 {
		p.Named = n.roots[0].id
	}
	p.Manual = slices.ContainsFunc(n.roots, func(r root) bool { return r.manual })
	all.Package = &p
	if slices.ContainsFunc(n.roots, func(r root) bool { return r.ignoresCrossplane }) {
		all.Findings = slices.DeleteFunc(slices.Clone(all.Findings), func(f manifest.Finding) bool { return f.Rule == catalogue.RuleIncompatible })
	}
	return all
}

// unread returns the packages without known content, by source. failed holds those whose content could not be sorted.
func (res *resolution) unread(failed map[*node]error) []catalogue.Unread {
	var all []catalogue.Unread
	for _, n := range res.nodes {
		err := cmp.Or(n.err, failed[n])
		if n.image == nil {
			err = errors.New("it was not looked up")
		}
		if err == nil || n.copy != nil {
			continue
		}
		text := n.request.wanted()
		if len(n.roots) == 0 {
			text += ", on which " + n.who() + " " + verb(len(n.asked)) + ","
		}
		all = append(all, catalogue.Unread{
			Source: n.request.Source, Wanted: n.request.wanted(), Installers: n.installers, Origin: n.place(),
			Err: fmt.Errorf("package %s cannot be read: %w", text, err),
		})
	}
	slices.SortFunc(all, func(a, b catalogue.Unread) int { return cmp.Compare(a.Source, b.Source) })
	return all
}

// place returns where the commit requests a package. For a dependency, that is where it requests the package that depends on it.
func (n *node) place() manifest.Origin {
	seen := map[*node]bool{}
	for len(n.roots) == 0 && !seen[n] && len(n.asked) > 0 && n.asked[0].from != nil {
		seen[n] = true
		n = n.asked[0].from
	}
	return n.request.Origin
}

// who returns the names of the packages that depend on a package.
func (n *node) who() string {
	var all []string
	for _, a := range n.asked {
		who := a.by
		if a.Constraint != "" {
			who += fmt.Sprintf(" (%s)", a.Constraint)
		}
		all = append(all, who)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " and ")
}

func verb(n int) string {
	if n == 1 {
		return "depends"
	}
	return "depend"
}
