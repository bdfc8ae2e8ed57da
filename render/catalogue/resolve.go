package catalogue

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Request asks for a package that a commit mentions and does not hold. Of two that are
// equal the answer is the same.
type Request struct {
	Source      string          // its repository, by which Crossplane tells packages apart
	Version     string          // the tag or digest; "" is the newest that the constraints allow
	Constraints []string        // of the packages that depend on it, sorted: all have to hold
	Digest      string          // what the lock of the commit says the version is; "" where it does not
	Installed   Live            // as a cluster has it in this version; zero where it has not, or none was asked
	PullSecrets []string        // the names of Secrets that the commit has Crossplane pull it with
	PullPolicy  PullPolicy      // when Crossplane asks the registry
	Configs     *ImageConfigs   // what else the commit and the cluster say of pulling
	Origin      manifest.Origin // the first place that asks for it
	Copied      bool            // the tree has a copy, which counts where there is no answer
}

// PullPolicy is the packagePullPolicy of an object that installs a package; "" is PullIfNotPresent.
type PullPolicy string

// The policies that mean something else.
const (
	PullAlways PullPolicy = "Always" // a tag is looked at again every minute
	PullNever  PullPolicy = "Never"  // nobody is asked
)

// Secrets are the Secrets that an image, rewritten, is to be pulled with.
func (r Request) Secrets(image string) []string {
	all := slices.Clone(r.PullSecrets)
	if one := r.Configs.Secret(image); one != "" && !slices.Contains(all, one) {
		all = append(all, one)
	}
	return all
}

// wanted is the request for people.
func (r Request) wanted() string {
	if r.Version != "" {
		return Reference(r.Source, r.Version)
	}
	return r.Source + " in version " + quoted(r.Constraints, " and ")
}

// An Image is the answer to a Request.
type Image struct {
	Request Request
	Version string                        // the tag or digest that was taken
	Digest  string                        // of the image
	Open    func() (io.ReadCloser, error) // its YAML; as often as it takes
	Err     error                         // why there is none

	Findings []manifest.Finding // what is to be known of it
}

// name is what an image is called in places: the digest of one that has no tag is cut.
func (i Image) name() string {
	if IsDigest(i.Version) {
		return i.Request.Source + "@" + i.Version[:len("sha256:")+12]
	}
	return Reference(i.Request.Source, i.Version)
}

// An Unread package is one that the commit mentions and of which it is not known what it
// holds.
type Unread struct {
	Source     string
	Wanted     string        // what the commit asks for: an image, or a constraint
	Installers []manifest.ID // the objects of the commit that have Crossplane install it
	Origin     manifest.Origin
	Err        error
}

// The rules of packages in registries.
const (
	RuleUnread = "package-unread"
	RuleSource = "package-installed-twice"
	RuleCycle  = "package-cycle"
	// RuleUnsigned is of a package of which the cluster demands a signature that it demands no more.
	RuleUnsigned = "package-signature-dropped"
)

// A resolution is what packages need each other, as far as they are held.
type resolution struct {
	nodes   []*node // in the order in which they were come by
	bySrc   map[string]*node
	locked  map[string]Locked
	configs *ImageConfigs

	asked     bool // a cluster was, for what it has
	installed map[string]Live
}

// A node is one package of a resolution.
type node struct {
	request    Request
	roots      []root   // objects of the commit that name it
	asked      []asking // what others want of it
	image      *Image   // the answer, if there is one to this request
	contents   *contents
	err        error // why what it holds is not known
	installers []manifest.ID
	copy       *Package // the copy of it that the tree has, which counts where the image cannot be read
}

// A root is an object of the commit that has Crossplane install a package.
type root struct {
	id                manifest.ID
	source, version   string
	origin            manifest.Origin
	secrets           []string
	pull              PullPolicy
	manual            bool
	skipsDependencies bool
	ignoresCrossplane bool
}

// An asking is a dependency of a package.
type asking struct {
	Dependency

	by   string // the package, for people
	from *node  // nil of a package in the tree
}

// resolve finds the packages that are needed, from those that objects of the commit name on. What
// a cluster has counts of what the commit leaves open.
func (r *Reading) resolve(held []Image, seen Seen) *resolution {
	answers := map[string]*Image{}
	for i := range held {
		answers[held[i].Request.Source] = &held[i]
	}
	res := &resolution{bySrc: map[string]*node{}, locked: r.locked, configs: r.configs.with(seen.Images), asked: seen.Installed != nil, installed: map[string]Live{}}
	for _, one := range seen.Installed {
		res.installed[one.Source] = one
	}
	inTree := map[*Package]root{} // packages of the tree that an object has Crossplane install
	for _, one := range r.roots {
		i := slices.IndexFunc(r.walk.packages, func(p *Package) bool {
			return p.Kind == one.id.Kind && (p.Name == one.id.Name || p.Called(p.Kind, one.source))
		})
		if i >= 0 {
			inTree[r.walk.packages[i]] = one
		}
		if i >= 0 && (!seen.Installs || one.id.Kind == "Function") {
			continue
		}
		n := res.node(one.source)
		n.roots = append(n.roots, one)
		if i >= 0 {
			n.copy, n.request.Copied = r.walk.packages[i], true
		}
	}
	for _, p := range r.walk.packages {
		if by, ok := inTree[p]; ok && !by.skipsDependencies {
			r.ask(res, p, asking{by: "package " + p.Name}, []manifest.ID{by.id})
		}
	}
	for done := 0; done < len(res.nodes); { // it grows
		n := res.nodes[done]
		done++
		n.image = answers[n.request.Source]
		if n.image == nil {
			continue
		}
		if n.err = n.image.Err; n.err != nil {
			continue
		}
		n.contents = r.contents(*n.image)
		if n.err = n.contents.err; n.err != nil || n.contents.in == nil {
			continue
		}
		if n.copy != nil || !slices.ContainsFunc(n.roots, func(r root) bool { return !r.skipsDependencies }) && len(n.roots) > 0 {
			continue // of a copy, the dependencies are asked for already
		}
		r.ask(res, n.contents.in, asking{by: n.image.name(), from: n}, nil)
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

// node is that of a source, which is made where there is none.
func (res *resolution) node(source string) *node {
	if res.bySrc[source] == nil {
		res.bySrc[source] = &node{request: Request{Source: source, Configs: res.configs}}
		res.nodes = append(res.nodes, res.bySrc[source])
	}
	return res.bySrc[source]
}

// ask asks for the dependencies of a package that the tree does not hold.
func (r *Reading) ask(res *resolution, p *Package, as asking, installers []manifest.ID) {
	for _, dep := range p.Depends {
		if slices.ContainsFunc(r.walk.packages, func(other *Package) bool { return other.Called(dep.Kind, dep.Source) }) {
			continue
		}
		as.Dependency = dep
		n := res.node(dep.Source)
		n.asked = append(n.asked, as)
		n.install(installers)
	}
}

// install notes who has Crossplane install a package, and says whether that was news.
func (n *node) install(by []manifest.ID) (news bool) {
	for _, id := range by {
		if !slices.Contains(n.installers, id) {
			n.installers = append(n.installers, id)
			news = true
		}
	}
	return news
}

// spread tells every package which objects of the commit have Crossplane install it.
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

// settle makes the request of a package of all that ask for it.
func (n *node) settle(res *resolution) {
	r := &n.request
	for _, root := range n.roots {
		r.PullSecrets = append(r.PullSecrets, root.secrets...)
	}
	slices.Sort(r.PullSecrets)
	r.PullSecrets = slices.Compact(r.PullSecrets)
	if len(n.roots) > 0 {
		r.Version, r.Origin, r.PullPolicy = n.roots[0].version, n.roots[0].origin, n.roots[0].pull
	} else {
		r.Origin = n.asked[0].Origin
		for _, a := range n.asked {
			r.Constraints = append(r.Constraints, a.Constraint)
		}
		slices.Sort(r.Constraints)
		r.Constraints = slices.Compact(r.Constraints)
		switch there, ok := res.installed[r.Source]; {
		case ok: // and stays, whatever else there is by now
			r.Version = there.Version
		case slices.ContainsFunc(r.Constraints, IsDigest) && len(r.Constraints) == 1:
			r.Version = r.Constraints[0]
		}
	}
	r.lock(res.locked)
	if there := res.installed[r.Source]; there.Version == r.Version {
		r.Installed = there
	}
}

// check says whether a package is what its installer takes it for.
func (n *node) check() {
	if n.err != nil || n.contents == nil || n.contents.in == nil {
		return
	}
	kind := n.contents.in.Kind
	for _, r := range n.roots {
		if r.id.Kind != kind {
			n.err = fmt.Errorf("it is a %s package, and %s names it", kind, r.id)
		}
	}
}

// missing are the requests without an answer.
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

// file is the image of a node, as a walk finds those of the tree.
func (n *node) file(res *resolution) *file {
	p := *n.contents.in
	p.Directory = n.image.name()
	p.Source, p.Version, p.Digest = n.request.Source, n.image.Version, n.image.Digest
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
	return &file{path: n.image.name(), in: &p, image: true, documents: n.contents.documents}
}

// unread are the packages of which it is not known what they hold, by source.
func (res *resolution) unread() []Unread {
	var all []Unread
	for _, n := range res.nodes {
		err := n.err
		if n.image == nil {
			err = errors.New("nobody has looked for it")
		}
		if err == nil || n.copy != nil {
			continue
		}
		text := n.request.wanted()
		if len(n.roots) == 0 {
			text += ", on which " + n.who() + " " + verb(len(n.asked)) + ","
		}
		all = append(all, Unread{
			Source: n.request.Source, Wanted: n.request.wanted(), Installers: n.installers, Origin: n.place(),
			Err: fmt.Errorf("package %s cannot be read: %w", text, err),
		})
	}
	slices.SortFunc(all, func(a, b Unread) int { return cmp.Compare(a.Source, b.Source) })
	return all
}

// place is where the commit asks for a package: a dependency, in what brings it.
func (n *node) place() manifest.Origin {
	seen := map[*node]bool{}
	for len(n.roots) == 0 && !seen[n] && len(n.asked) > 0 && n.asked[0].from != nil {
		seen[n] = true
		n = n.asked[0].from
	}
	return n.request.Origin
}

// who names the packages that depend on one.
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

// findings say what Crossplane will not resolve, or not always in one way.
func (res *resolution) findings(locked map[string]Locked) []manifest.Finding {
	var found []manifest.Finding
	for _, n := range res.nodes {
		found = append(found, n.twice()...)
		found = append(found, n.elsewhere(res.installed)...)
		found = append(found, n.stale(locked)...)
		if n.image == nil || n.err != nil {
			continue
		}
		for _, f := range n.image.Findings {
			f.Origin = n.place()
			found = append(found, f)
		}
		for _, a := range n.asked {
			if err := allows(a.Constraint, n.image.Version); err != nil {
				found = append(found, n.unfit(a, err))
			}
		}
	}
	return slices.Concat(found, res.cycles(), res.unsigned())
}

// unfit is that a package is not in a version that another one asks for.
func (n *node) unfit(a asking, why error) manifest.Finding {
	f := manifest.Finding{
		Rule: RuleDependency, Severity: manifest.Error, Origin: n.place(),
		Message: fmt.Sprintf("%s depends on %s %s (%s), and it is installed as %s: %v; Crossplane does not install what depends on it",
			a.by, n.request.Source, a.Constraint, a.Origin, n.image.Version, why),
		Fix: "take versions of both that go together",
	}
	if len(n.roots) == 0 && n.request.Installed.Version != "" {
		f.Severity = manifest.Warning // it may be told to
		f.Message += ", and changes the version of a dependency only where it runs with --enable-dependency-version-upgrades"
		f.Fix = "install " + n.request.Source + " in a version that is asked for with an object of the commit"
	}
	return f
}

// twice finds packages that Crossplane would be given under two names, of which its lock can
// hold one.
func (n *node) twice() []manifest.Finding {
	var found []manifest.Finding
	for _, other := range n.roots[min(1, len(n.roots)):] {
		found = append(found, manifest.Finding{
			Rule: RuleSource, Severity: manifest.Error, Origin: other.origin,
			Message: fmt.Sprintf("%s installs %s, and so does %s (%s): Crossplane installs a source once, and resolves no dependency while there are two", other.id, n.request.Source, n.roots[0].id, n.roots[0].origin),
			Fix:     "remove one of them",
		})
	}
	if name := dnsLabel(n.request.Source); len(n.roots) > 0 && len(n.asked) > 0 && n.roots[0].id.Name != name {
		found = append(found, manifest.Finding{
			Rule: RuleSource, Severity: manifest.Warning, Origin: n.roots[0].origin,
			Message: fmt.Sprintf("%s depends on %s, which %s installs under another name than Crossplane would give it: where the dependency comes first, there are two, and Crossplane resolves nothing", n.asked[0].by, n.request.Source, n.roots[0].id),
			Fix:     "call it " + name,
		})
	}
	return found
}

// elsewhere finds packages that the cluster has under another name already: as a dependency, or
// by somebody else's hand.
func (n *node) elsewhere(installed map[string]Live) []manifest.Finding {
	there, ok := installed[n.request.Source]
	if !ok || len(n.roots) == 0 || slices.ContainsFunc(n.roots, func(r root) bool { return there.By(r.id.Name) }) {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleSource, Severity: manifest.Warning, Origin: n.roots[0].origin,
		Message: fmt.Sprintf("the cluster has %s already, as revision %s, which is none of %s: Crossplane installs a source once, and resolves no dependency while there are two", n.request.Source, there.Revision, n.roots[0].id),
		Fix:     "give the object the name of the one that is there, or delete that first",
	}}
}

// unsigned finds demands of the cluster for a signature that the commit drops.
func (res *resolution) unsigned() []manifest.Finding {
	var dropped []Dropped
	of, first := map[Dropped][]string{}, map[Dropped]*node{}
	for _, n := range res.nodes {
		if n.image == nil || n.image.Version == "" {
			continue
		}
		image := Reference(n.request.Source, n.image.Version)
		for _, d := range res.configs.Dropped(image) {
			if of[d] == nil {
				dropped, first[d] = append(dropped, d), n
			}
			of[d] = append(of[d], image)
		}
	}
	var found []manifest.Finding
	for _, d := range dropped {
		f := manifest.Finding{Rule: RuleUnsigned, Severity: manifest.Warning, Origin: first[d].place(), Fix: "have the commit demand the same, unless this is meant"}
		f.Message = fmt.Sprintf("%s demands a signature of %s", d.Demand, of[d][0])
		if more := len(of[d]) - 1; more > 0 {
			f.Message += fmt.Sprintf(" and %d more", more)
		}
		f.Message += ", and with this commit "
		switch {
		case d.Another:
			f.Message += d.By.String() + " demands another one"
		case d.By.Config != "":
			f.Message += "nothing does, because of " + d.By.String()
		default:
			f.Message += "nothing does"
		}
		if d.By.Config != "" && !d.By.Live {
			f.Origin = d.By.Origin
		}
		found = append(found, f)
	}
	return found
}

// cycles finds packages that depend on themselves.
func (res *resolution) cycles() []manifest.Finding {
	depends := map[*node][]*node{}
	for _, n := range res.nodes {
		for _, a := range n.asked {
			if a.from != nil {
				depends[a.from] = append(depends[a.from], n)
			}
		}
	}
	var found []manifest.Finding
	done, way := map[*node]bool{}, []*node{}
	var visit func(n *node)
	visit = func(n *node) {
		if i := slices.Index(way, n); i >= 0 {
			var names []string
			for _, on := range append(way[i:len(way):len(way)], n) {
				names = append(names, on.request.Source)
			}
			found = append(found, manifest.Finding{
				Rule: RuleCycle, Severity: manifest.Error, Origin: n.place(),
				Message: "packages depend on each other in a circle, of which Crossplane installs nothing: " + strings.Join(names, " → "),
				Fix:     "take a version of one of them that does not depend on the next",
			})
			return
		}
		if done[n] {
			return
		}
		done[n] = true
		way = append(way, n)
		for _, next := range depends[n] {
			visit(next)
		}
		way = way[:len(way)-1]
	}
	for _, n := range res.nodes {
		visit(n)
	}
	return found
}

// roots are the objects of the commit that install packages, by place. What ImageConfigs say
// goes to configs.
func (w *walk) roots(configs *ImageConfigs) []root {
	var roots []root
	var images []*manifest.Document
	for _, f := range w.found {
		for _, d := range f.documents {
			group, version := groupVersion(d.Header.APIVersion)
			if group != groupPackages || f.in != nil {
				continue
			}
			if what, _ := w.release.fateOf(d.Header, nil, w.how.Others); what != apply {
				continue
			}
			switch {
			case d.Header.Kind == "ImageConfig":
				images = append(images, d)
			case installsPackage(group, d.Header.Kind) && strings.HasPrefix(version, "v1"):
				if one, ok := rootOf(d); ok {
					roots = append(roots, one)
				}
			}
		}
	}
	slices.SortFunc(images, func(a, b *manifest.Document) int { return cmp.Compare(a.Header.Name, b.Header.Name) })
	for _, d := range images {
		if u, err := d.Recall(); err == nil { // else the catalogue says so
			spec, _ := u.Object["spec"].(map[string]any)
			configs.declare(Prefixed{Config: u.GetName(), Origin: d.Origin}, spec, func(match int) manifest.Origin { return d.OriginOf("spec", "matchImages", match) })
		}
	}
	slices.SortFunc(roots, func(a, b root) int { return a.origin.Compare(b.origin) })
	return roots
}

// malformedInstall returns what is wrong with an object that installs a package, and that would
// make it install none: without the package, its definitions look as if they were removed.
func malformedInstall(u *undecoded) Errors {
	group, _ := groupVersion(u.Header.APIVersion)
	if !installsPackage(group, u.Header.Kind) {
		return nil
	}
	spec, _ := u.object.Object["spec"].(map[string]any)
	image, _ := spec["package"].(string)
	if source, version := splitReference(image); source != "" && version != "" {
		return nil
	}
	return Errors{Errorf(u.OriginOf("spec", "package"), "spec.package of %s %s must name an image with its tag or digest, such as registry.example.org/team/package:v1.0.0", u.Header.Kind, u.Header.Name)}
}

// rootOf reads an object that installs a package. malformedInstall reports what is wrong with it.
func rootOf(d *manifest.Document) (root, bool) {
	u, err := d.Recall()
	if err != nil {
		return root{}, false
	}
	spec, _ := u.Object["spec"].(map[string]any)
	image, _ := spec["package"].(string)
	source, version := splitReference(image)
	if source == "" || version == "" {
		return root{}, false
	}
	r := root{id: manifest.IDOf(u), source: source, version: version, origin: d.OriginOf("spec", "package")}
	policy, _ := spec["packagePullPolicy"].(string)
	r.pull = PullPolicy(policy)
	r.manual = spec["revisionActivationPolicy"] == "Manual"
	r.skipsDependencies = spec["skipDependencyResolution"] == true
	r.ignoresCrossplane = spec["ignoreCrossplaneConstraints"] == true
	secrets, _, _ := unstructured.NestedSlice(spec, "packagePullSecrets")
	for _, s := range secrets {
		m, _ := s.(map[string]any)
		if name, _ := m["name"].(string); name != "" {
			r.secrets = append(r.secrets, name)
		}
	}
	return r, true
}
