// Package render turns the bytes of one commit into the objects that it wants in
// a cluster. It is pure: the same input renders to the same output, anywhere.
//
//	Input ─Read─► Catalogue ─Decide─► Decisions ─Render─► Desired
package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Options configures a render. The zero value means the defaults.
type Options struct {
	Owner      Owner // "" is Headgate
	Conversion Conversion
	Limits     manifest.Limits
	Memo       manifest.Memo           // facts from earlier renders, which only save time; may be nil
	Others     catalogue.Others        // how to treat objects of other tools; "" means skip
	Live       []*catalogue.Definition // definitions of the cluster, in addition to those of the commit

	// Policies are those of the cluster, by name. If Crossplane makes the CRDs, they activate definitions, too. They are set only where
	// a person looks. In a pass, guards distinguish what only the cluster activates.
	Policies map[string]crossplane.LivePolicy
	// Before are the policies of the commit that this one is compared with. Those of them that this commit does not declare are removed
	// with it, so that the cluster's copies do not count.
	Before []catalogue.Policy

	CrossplaneVersion string               // the release whose package manager is followed; "" means the newest
	Schemas           []string             // files and directories of the commit with CRDs and XRDs that live elsewhere, only for checks
	KubernetesVersion string               // the release that serves the objects, only for checks; "" means that it is not known
	Packages          []catalogue.Declared // directories that are packages without a crossplane.yaml
	Unlocked          bool                 // ignore the commit's lock
	Lints             bool                 // return everything else that is known of a commit together with its errors; such a result must not be applied
	Compares          bool                 // for comparisons only: most content is never needed, so definitions are decoded again when it is
	Explains          bool                 // report a definition that cannot make a CRD in Desired.Unmade instead of as an error
}

// A Desired is what a commit wants a cluster to hold.
type Desired struct {
	Revision    string
	Source      SourceID
	Approvals   []Approval // of its ApprovalsFile; whether they count depends on the source of the commit
	Owner       Owner
	Given       *Given                           // what makes Crossplane the owner of CRDs for OwnerAuto; nil if nothing does
	Named       packages.Named                   // the registries and Secrets of its packages; also set if the commit cannot be rendered
	Live        bool                             // Definitions include those of the cluster
	Partial     bool                             // the commit has policies but declares no definitions, so the matches of the policies are not known
	Objects     []Object                         // to apply, sorted by identity, including the CRDs of active definitions
	Definitions []DecidedDefinition              // every definition of the commit, by name
	Policies    []catalogue.Policy               // by name
	Undeclared  map[string]crossplane.LivePolicy // those of Options.Policies that activate, because the commit does not declare them
	Packages    []catalogue.Package              // by origin
	Kubernetes  int                              // the minor release of Kubernetes, from Options.KubernetesVersion; 0 if it is not known
	Crossplane  crossplane.Version               // from Options.CrossplaneVersion
	Directories []string                         // sorted directories of the commit with manifests, even if none is applied, without ignored ones
	Unread      []catalogue.Unread               // packages with unknown content
	Programs    []catalogue.Program              // programs and templates of functions, by path
	Signatures  packages.Signatures              // which signatures the commit demands of the images that Crossplane installs
	Schemas     []Object                         // CRDs and XRDs that live elsewhere, from Options.Schemas; only for checks, by identity
	Left        []Left                           // the objects that Crossplane installs with packages, except definitions, sorted by identity
	Beside      []Beside                         // the images that Crossplane installs and that also have a copy in the tree, by source
	Repeated    []manifest.ID                    // definitions, CRDs and XRDs that the commit declares more than once, which is an error
	Skipped     catalogue.Skipped                // documents and files that are not applied, counted by reason
	Omitted     []catalogue.Omitted              // the parts of the commit that are skipped on purpose, by origin
	Findings    []manifest.Finding               // sorted
	Unmade      Unmade                           // why definitions cannot make a CRD; nil unless Options.Explains
}

// Unknown returns the number of packages whose definitions are not known, so that no number of definitions is complete.
func (d Desired) Unknown() int {
	n := 0
	if d.Live {
		return n // the cluster shows them
	}
	for _, u := range d.Unread {
		if u.MayDefine() {
			n++
		}
	}
	return n
}

// Unmade holds, by name, why definitions cannot make a CRD. A commit with such a definition can only be explained, not applied.
type Unmade map[string]catalogue.Errors

// Err returns the errors as Render would return them without Options.Explains, or nil.
func (u Unmade) Err() error {
	var problems catalogue.Errors
	for _, of := range u {
		problems = append(problems, of...)
	}
	return problems.OrNil()
}

// A Left is an object that Headgate does not apply, because Crossplane installs it with a package.
type Left struct {
	ID         manifest.ID
	APIVersion string
	Origin     manifest.Origin
	Package    string // its Directory

	Composition *Object // the content of a Composition, for callers that need the kinds it uses

	// Content decodes the object. Every call returns a new copy.
	Content func() (*unstructured.Unstructured, error)

	document *manifest.Document
}

// Object returns the object with its digest.
func (l Left) Object() (Object, error) {
	u, err := l.Content()
	if err != nil {
		return Object{}, err
	}
	o, err := NewObject(u, l.Origin)
	o.document = l.document
	return o, err
}

// Within returns the registry package that contains a place.
func (d Desired) Within(at manifest.Origin) (catalogue.Package, bool) {
	i := slices.IndexFunc(d.Packages, func(p catalogue.Package) bool {
		return p.Pulled() && (at.Path == p.Directory || strings.HasPrefix(at.Path, p.Directory+"/"))
	})
	if i < 0 {
		return catalogue.Package{}, false
	}
	return d.Packages[i], true
}

// Placed returns the finding at a place in the commit, where forges can show it. A finding about the content of a registry package
// moves to the line that requests the package, and its text names the original place.
func (d Desired) Placed(f manifest.Finding) manifest.Finding {
	inside := f.Origin
	for range d.Packages { // another package may request each package
		p, ok := d.Within(f.Origin)
		if !ok {
			break
		}
		f.Origin = p.Mentioned
	}
	if f.Origin != inside {
		f.Message += fmt.Sprintf(" (%s)", inside)
	}
	return f
}

// left returns the Left of an object.
func left(o manifest.Object, shipper *catalogue.Package) (Left, error) {
	l := Left{ID: o.ID(), APIVersion: o.GetAPIVersion(), Origin: o.Origin, Package: shipper.Directory, Content: o.Document.Recall, document: o.Document}
	if !crossplane.IsComposition(l.ID) {
		return l, nil
	}
	made, err := NewObject(o.Unstructured, o.Origin)
	made.Package, made.document = shipper.Name, o.Document
	l.Composition = &made
	return l, err
}

// Render renders a commit. The CRDs of active definitions are among the objects, except of paused ones. Errors in the commit are of
// type catalogue.Errors: all of them, sorted, each with its place. For such a commit, Render returns only Named.
func Render(in Input, how Options) (Desired, error) {
	if err := how.check(); err != nil {
		return Desired{}, err
	}
	kubernetes, err := KubernetesMinor(how.KubernetesVersion)
	if err != nil {
		return Desired{}, err
	}
	release, err := crossplane.VersionOf(how.CrossplaneVersion)
	if err != nil {
		return Desired{}, err
	}
	commit, err := in.commit(how)
	if err != nil {
		return Desired{}, err
	}
	named := commit.Named()
	var problems catalogue.Errors
	c, err := commit.Catalogue()
	if err != nil && !errors.As(err, &problems) {
		return Desired{Named: named}, err
	}
	how.Owner = how.Owner.by(c)
	unread, refused := how.Owner.unread(c)
	problems = append(problems, refused...)
	c.Definitions = withLive(c.Definitions, how.Live)
	decisions, found := activation.Decide(c)
	if less, incomplete := in.withoutIncomplete(decisions); incomplete {
		return Render(less, how)
	}
	undeclared := how.undeclared(c)
	decisions = activation.With(decisions, undeclared)
	described, err := how.describe(c)
	problems = append(problems, catalogue.ErrorsOf(manifest.Origin{}, err)...)
	problems = append(problems, bookkeeping(c.Objects)...)
	approvals, refused := in.approvals(how.Limits)
	problems = append(problems, refused...)
	schemas, refused := in.schemas(how)
	problems = append(problems, refused...)

	want := Desired{
		Revision: in.Revision,
		Source:   in.Source,
		Owner:    how.Owner,
		Given:    given(c),

		Approvals: approvals,
		Named:     named,
		Live:      how.Live != nil,
		Partial:   len(c.Definitions) == 0 && len(c.Policies) > 0,
		Policies:  c.Policies,
		Packages:  c.Packages,
		Unread:    c.Unread,
		Programs:  c.Programs,

		Undeclared: undeclared,

		Schemas:     schemas,
		Signatures:  commit.Signatures(),
		Kubernetes:  kubernetes,
		Crossplane:  release,
		Directories: c.Directories,
		Repeated:    c.Repeated,
		Skipped:     c.Skipped,
		Omitted:     c.Omitted,
		Findings:    slices.Concat(c.Findings, found, described, unread),
	}
	settled, err := how.Conversion.digest()
	if err != nil {
		return Desired{}, err
	}
	want.Definitions = slices.Grow(want.Definitions, len(decisions))
	for _, d := range decisions {
		want.Definitions = append(want.Definitions, DecidedDefinition{Decision: d, conversion: how.Conversion, settled: settled, compared: how.Compares})
	}

	jobs, refused := want.objectJobs(c, how)
	problems = append(problems, refused...)
	definitions, err := want.definitionJobs()
	if err != nil {
		return Desired{Named: named}, err
	}
	jobs = append(jobs, definitions...)
	objects, trouble := all(jobs)
	for i, err := range trouble {
		if of := jobs[i].definition; of != "" && err != nil && how.Explains {
			want.unmade(of, err)
			continue
		}
		problems = append(problems, catalogue.ErrorsOf(manifest.Origin{}, err)...)
	}
	problems = append(problems, duplicates(objects)...)
	if err := problems.OrNil(); err != nil {
		if !how.Lints {
			return Desired{Named: named}, err
		}
		return want.ofErrors(objects, problems, c.Findings), err
	}

	want.Objects = objects
	if how.Conversion.Strategy == ConversionUnknown && want.Owner != OwnerCrossplane {
		want.warnOfConversions()
	}
	slices.SortFunc(want.Objects, func(a, b Object) int { return a.ID.Compare(b.ID) })
	if want.Owner == OwnerCrossplane {
		want.Beside = how.beside(c, settled)
	}
	for i, f := range want.Findings {
		want.Findings[i] = want.Placed(f)
	}
	slices.SortFunc(want.Findings, manifest.Finding.Compare)
	slices.SortFunc(want.Left, func(a, b Left) int { return a.ID.Compare(b.ID) })
	return want, nil
}

// objectJobs sets the objects of the commit that Crossplane installs, and returns the jobs that make the others.
func (d *Desired) objectJobs(c catalogue.Catalogue, how Options) (jobs []job, problems catalogue.Errors) {
	for _, o := range c.Objects {
		shipper := c.Shipped[o.ID()]
		if d.Owner.Leaves(shipper) {
			d.Skipped.Add(catalogue.Installed)
			l, err := left(o, shipper)
			problems = append(problems, catalogue.ErrorsOf(o.Origin, err)...)
			d.Left = append(d.Left, l)
			continue
		}
		if shipper != nil {
			d.Findings = append(d.Findings, how.Conversion.findings(o)...)
		}
		jobs = append(jobs, job{make: func() (Object, error) { return how.object(o, shipper) }})
	}
	return jobs, problems
}

// definitionJobs returns the jobs that make the object of each definition: its MRD if Crossplane makes CRDs, else the CRD of an active one.
func (d *Desired) definitionJobs() (jobs []job, err error) {
	for _, of := range d.Definitions {
		applied := d.Owner == OwnerCrossplane || of.Active && !of.Paused
		if of.Document == nil || !applied || d.Owner.Leaves(of.Package) {
			continue
		}
		if err := of.Document.Claim(); err != nil {
			return nil, catalogue.Errors{{Origin: of.Document.Origin, Err: err}}
		}
		if d.Owner == OwnerCrossplane {
			jobs = append(jobs, job{of.Name, of.MRD})
		} else {
			jobs = append(jobs, job{of.Name, of.CRD})
		}
	}
	return jobs, nil
}

// warnOfConversions turns the problems of CRDs that are only compared into warnings.
func (d *Desired) warnOfConversions() {
	for i := range d.Objects {
		o := &d.Objects[i]
		var p catalogue.Error
		if !errors.As(o.Problem, &p) {
			continue
		}
		what := strings.TrimSuffix(strings.TrimPrefix(p.Error(), p.Origin.String()+": "), ": "+howToConvert)
		d.Findings = append(d.Findings, manifest.Finding{Rule: RuleConversion, Severity: manifest.Warning, Origin: p.Origin, About: manifest.About{Object: o.ID}, Message: "a pass would fail: " + what, Fix: howToConvert})
		o.Problem = nil
	}
}

// ofErrors returns what is known about a commit that cannot be rendered. If a file could not be read, it may contain objects that
// seem to be missing. Then only the findings in certain count.
func (d Desired) ofErrors(objects []Object, problems catalogue.Errors, certain []manifest.Finding) Desired {
	if slices.ContainsFunc(problems, func(p catalogue.Error) bool { return !p.Again }) {
		d.Objects, d.Findings = nil, certain
		return d
	}
	d.Objects = slices.DeleteFunc(objects, func(o Object) bool { return o.ID.Kind == "" })
	return d
}

// Problems returns the problems of active definitions that keep Crossplane from making their CRDs. They matter only for definitions
// that Headgate applies: the package manager completes its own.
func (d Desired) Problems() catalogue.Errors {
	active := make(map[string]bool, len(d.Definitions))
	for _, definition := range d.Definitions {
		active[definition.Name] = definition.Active
	}
	var problems catalogue.Errors
	for _, o := range d.Objects {
		var p catalogue.Error
		if active[o.Definition] && errors.As(o.Problem, &p) {
			problems = append(problems, p)
		}
	}
	return problems
}

// Provider returns the provider whose package in the commit has a definition; zero if none has.
func (d Desired) Provider(definition string) manifest.ID {
	for _, one := range d.Definitions {
		if one.Name == definition && one.Package != nil {
			return manifest.ID{Group: crossplane.Packages, Kind: crossplane.Provider, Name: one.Package.Name}
		}
	}
	return manifest.ID{}
}

// Names reports whether an unpaused policy of the commit names a definition, declared or not.
func (d Desired) Names(definition string) bool {
	return slices.ContainsFunc(d.Policies, func(p catalogue.Policy) bool {
		return !p.Paused && slices.ContainsFunc(p.Patterns, func(pattern catalogue.Pattern) bool {
			return crossplane.Matches(pattern.Glob, definition)
		})
	})
}

// Pauses returns the name of a paused policy of the commit that names a definition, or "".
func (d Desired) Pauses(definition string) string {
	for _, p := range d.Policies {
		if p.Paused && slices.ContainsFunc(p.Patterns, func(pattern catalogue.Pattern) bool { return crossplane.Matches(pattern.Glob, definition) }) {
			return p.Name
		}
	}
	return ""
}

// Catalogue returns everything that a commit declares, without any decision. Errors are as in Render.
func Catalogue(in Input, how Options) (catalogue.Catalogue, error) {
	if err := how.check(); err != nil {
		return catalogue.Catalogue{}, err
	}
	c, err := in.catalogue(how)
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	_, err = catalogue.Describe(c.Definitions, c.Details)
	return c, err
}

func (how Options) check() error {
	switch how.Owner {
	case "", OwnerHeadgate, OwnerCrossplane, OwnerAuto:
		return errors.Join(how.Conversion.check(), how.reading().Check())
	}
	return fmt.Errorf("crdOwner must be %s, %s or %s, not %q", OwnerHeadgate, OwnerCrossplane, OwnerAuto, how.Owner)
}

// reading returns the options for reading the files of the commit.
func (how Options) reading() catalogue.Options {
	return catalogue.Options{Limits: how.Limits, Memo: how.Memo, Others: how.Others, CrossplaneVersion: how.CrossplaneVersion, Packages: how.Packages}
}

// undeclared returns the policies of the cluster that activate definitions besides those of the commit.
func (how Options) undeclared(c catalogue.Catalogue) map[string]crossplane.LivePolicy {
	if how.Owner != OwnerCrossplane {
		return nil
	}
	return activation.Undeclared(how.Policies, slices.Concat(c.Policies, how.Before))
}

// describe adds connection details to the definitions.
func (how Options) describe(c catalogue.Catalogue) ([]manifest.Finding, error) {
	found, err := catalogue.Describe(c.Definitions, c.Details)
	if len(c.Definitions) == 0 {
		return nil, err // the definitions may be declared elsewhere
	}
	for _, of := range c.Details {
		i, ok := slices.BinarySearchFunc(c.Definitions, of.Definition, func(d *catalogue.Definition, name string) int { return cmp.Compare(d.Name, name) })
		if ok && how.Owner.Leaves(c.Definitions[i].Package) {
			found = append(found, manifest.Finding{
				Rule: catalogue.RuleDetailsWiped, Severity: manifest.Note, Origin: of.Origin, About: manifest.About{Subject: of.Definition},
				Message: fmt.Sprintf("the cluster does not get the connection details of %s: Crossplane installs package %s itself, and removes details that the package does not contain", of.Definition, c.Definitions[i].Package.Name),
			})
		}
	}
	return found, err
}

// withLive adds, by name, definitions of the cluster that the commit does not declare.
func withLive(declared, live []*catalogue.Definition) []*catalogue.Definition {
	if len(live) == 0 {
		return declared
	}
	byName := make(map[string]*catalogue.Definition, len(declared)+len(live))
	for _, d := range slices.Concat(live, declared) {
		byName[d.Name] = d
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *catalogue.Definition) int { return cmp.Compare(a.Name, b.Name) })
}

// unmade records why a definition cannot make a CRD.
func (d *Desired) unmade(definition string, err error) {
	if d.Unmade == nil {
		d.Unmade = Unmade{}
	}
	d.Unmade[definition] = catalogue.ErrorsOf(manifest.Origin{}, err)
}

// A job makes one object.
type job struct {
	definition string // the name of the definition that makes the object; "" for other objects
	make       func() (Object, error)
}

// all runs the jobs, as many at the same time as there are processors. It returns the objects in the order of the jobs, and the
// error of every job.
func all(jobs []job) (made []Object, trouble []error) {
	objects := make([]Object, len(jobs))
	trouble = make([]error, len(jobs))
	manifest.Each(len(jobs), func(i int) { objects[i], trouble[i] = jobs[i].make() })
	for i, err := range trouble {
		if err == nil {
			made = append(made, objects[i])
		}
	}
	return made, trouble
}

// duplicates returns errors about CRDs that an active definition makes and that are also declared directly.
func duplicates(objects []Object) catalogue.Errors {
	first := map[manifest.ID]Object{}
	var problems catalogue.Errors
	for _, o := range objects {
		other, twice := first[o.ID]
		if !twice || o.Definition == "" { // the catalogue reports two documents with the same identity
			first[o.ID] = o
			continue
		}
		problems = append(problems, catalogue.Errorf(o.Origin,
			"%s comes from this active definition, and is declared at %s already: remove one of them", o.ID, other.Origin))
	}
	return problems
}

// Unsigned returns findings about required signatures that another commit demands and this commit does not, without those that
// Findings has already.
func (d Desired) Unsigned(before Desired) []manifest.Finding {
	return slices.DeleteFunc(d.Signatures.Dropped(before.Signatures), func(f manifest.Finding) bool {
		return slices.ContainsFunc(d.Findings, func(known manifest.Finding) bool { return known.Rule == f.Rule && known.Message == f.Message })
	})
}
