package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

func newTree(t *terminal) *cobra.Command {
	var (
		to     = new(passFlags)
		live   bool
		all    bool
		format = oneOf("text", "json")
	)
	cmd := &cobra.Command{
		Use:   "tree [SOURCE] [flags]",
		Short: "Show packages, their dependencies and contents, and which definitions are active",
		Long: `Tree shows what the packages of a commit contain, from the packages that it installs down to
the definitions: configurations, the providers that they depend on, policies, XRDs and
Compositions, and every active definition with the pattern that activates it. With --live it
also counts the policies that only the cluster has, and shows the CRDs of the cluster and how
many objects of each kind exist.

` + aboutSource + `

Exit codes: 0 shown, 1 an error, 2 wrong usage.`,
		Example: `  headgate tree ./platform
  headgate tree ./platform --live
  headgate tree --repo https://example.org/platform.git --all -o json`,
		Args: takes(0, 1, "--path names a directory below SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, r, err := t.explained(cmd, to, args, live)
			if err != nil {
				return err
			}
			made := treeOf(want, all)
			if live {
				if err := made.look(cmd.Context(), r, want); err != nil {
					return err
				}
			}
			t.progress.Stop()
			if format.value == "json" {
				return t.json(made)
			}
			if err := made.write(t.out); err != nil {
				return err
			}
			return t.summary(want, manifest.Count(len(want.Packages), "package"), numbers(want).String())
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "also show what the cluster has: CRDs, and objects of their kinds")
	cmd.Flags().BoolVar(&all, "all", false, "also list inactive definitions")
	to.addTo(cmd)
	leaveOut(cmd, slices.Concat(onApply, onGuards)...)
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// A tree shows what the packages of a commit contain. Its JSON is an interface for programs.
type tree struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Revision   string      `json:"revision,omitempty"`
	Roots      []*treeNode `json:"roots"`
}

// A treeNode is a package, or something in it.
type treeNode struct {
	Kind     string                 `json:"kind"`
	Name     string                 `json:"name"`
	Package  *packageOf             `json:"package,omitempty"` // of a package
	Needs    string                 `json:"needs,omitempty"`   // the constraint on the version of a dependency
	Origin   *manifest.Origin       `json:"origin,omitempty"`
	Active   *bool                  `json:"active,omitempty"` // of a definition
	Paused   bool                   `json:"paused,omitempty"`
	Because  []activation.Activator `json:"because,omitempty"`
	Problem  string                 `json:"problem,omitempty"` // why a definition cannot make a CRD
	Live     *live                  `json:"live,omitempty"`
	Inactive int                    `json:"inactive,omitempty"` // definitions that are not listed
	Above    bool                   `json:"above,omitempty"`    // the children are shown where the node first appears
	Unread   string                 `json:"unread,omitempty"`   // why the children are not known
	Children []*treeNode            `json:"children,omitempty"`
}

// A treeBuilder builds a tree.
type treeBuilder struct {
	want        render.Desired
	all         bool
	definitions map[string][]render.DecidedDefinition // by package
	shown       map[string]bool                       // packages
}

// treeOf returns the tree of a commit.
func treeOf(want render.Desired, all bool) tree {
	g := treeBuilder{want: want, all: all, definitions: map[string][]render.DecidedDefinition{}, shown: map[string]bool{}}
	for _, d := range want.Definitions {
		in := ""
		if d.Package != nil {
			in = d.Package.Directory
		}
		g.definitions[in] = append(g.definitions[in], d)
	}
	made := tree{APIVersion: "headgate.dev/v1alpha1", Kind: "Tree", Revision: want.Revision, Roots: []*treeNode{}}
	depended := map[string]bool{} // packages of the tree that others depend on
	for _, p := range want.Packages {
		for _, dep := range p.Depends {
			if in := g.held(dep); in != nil {
				depended[in.Directory] = true
			}
		}
	}
	tops := slices.SortedStableFunc(slices.Values(want.Packages), func(a, b catalogue.Package) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) // configurations before providers
	})
	for _, p := range tops {
		if !depended[p.Directory] {
			made.Roots = append(made.Roots, g.packageOf(p))
		}
	}
	for _, p := range tops { // packages that depend on each other in a circle have no root
		if !g.shown[p.Directory] {
			made.Roots = append(made.Roots, g.packageOf(p))
		}
	}
	for _, u := range want.Unread {
		if !g.shown[u.Source] {
			made.Roots = append(made.Roots, &treeNode{Kind: "Package", Name: u.Source, Origin: &u.Origin, Unread: u.Err.Error()})
		}
	}
	outside := &treeNode{Kind: "Commit", Name: "outside of packages"}
	for _, o := range want.Objects {
		if o.Package == "" && isPolicy(o.ID) {
			outside.Children = append(outside.Children, &treeNode{Kind: o.ID.Kind, Name: o.ID.Name, Origin: &o.Origin})
		}
	}
	g.define(outside, "")
	if len(outside.Children)+outside.Inactive > 0 {
		made.Roots = append(made.Roots, outside)
	}
	return made
}

func isPolicy(id manifest.ID) bool { return id == crossplane.MRAP(id.Name) }

// held returns the package of a dependency, or nil if it is not known.
func (g treeBuilder) held(dep catalogue.Dependency) *catalogue.Package {
	i := slices.IndexFunc(g.want.Packages, func(p catalogue.Package) bool {
		return p.Pulled() && p.Source == dep.Source || p.Called(dep.Kind, dep.Source)
	})
	if i < 0 {
		return nil
	}
	return &g.want.Packages[i]
}

// packageOf returns the treeNode of a package.
func (g treeBuilder) packageOf(p catalogue.Package) *treeNode {
	b := &treeNode{Kind: p.Kind, Name: p.Name, Package: packageRef(&p), Origin: &p.Origin}
	if p.Pulled() {
		b.Origin = &p.Mentioned
	}
	if g.shown[p.Directory] {
		b.Above = true
		return b
	}
	g.shown[p.Directory] = true
	for _, dep := range p.Depends {
		below := &treeNode{Kind: cmp.Or(dep.Kind, "Package"), Name: dep.Source, Origin: &dep.Origin}
		if held := g.held(dep); held != nil {
			below = g.packageOf(*held)
		} else if i := slices.IndexFunc(g.want.Unread, func(u catalogue.Unread) bool { return u.Source == dep.Source }); i >= 0 {
			below.Unread = g.want.Unread[i].Err.Error()
			g.shown[dep.Source] = true
		}
		below.Needs = dep.Constraint
		b.Children = append(b.Children, below)
	}
	for _, o := range g.want.Left {
		if o.Package == p.Directory {
			b.Children = append(b.Children, &treeNode{Kind: o.ID.Kind, Name: o.ID.Name, Origin: &o.Origin})
		}
	}
	for _, o := range g.want.Objects {
		if o.Definition == "" && o.Package == p.Name {
			b.Children = append(b.Children, &treeNode{Kind: o.ID.Kind, Name: o.ID.Name, Origin: &o.Origin})
		}
	}
	g.define(b, p.Directory)
	return b
}

// define adds the definitions of a package.
func (g treeBuilder) define(b *treeNode, in string) {
	for _, d := range g.definitions[in] {
		if !d.Active && !g.all {
			b.Inactive++
			continue
		}
		origin := d.Origin()
		node := &treeNode{Kind: crossplane.KindMRD.Kind, Name: d.Name, Origin: &origin, Active: &d.Active, Paused: d.Paused, Because: d.Reasons}
		if err := problemOf(g.want, d.Name); err != nil {
			node.Problem = err.Error()
		}
		b.Children = append(b.Children, node)
	}
}

// look asks the cluster for its state of every definition that the tree shows.
func (t tree) look(ctx context.Context, r reconcile.Reconciler, want render.Desired) error {
	var shown []*treeNode
	var visit func([]*treeNode)
	visit = func(all []*treeNode) {
		for _, b := range all {
			if b.Active != nil {
				shown = append(shown, b)
			}
			visit(b.Children)
		}
	}
	visit(t.Roots)
	names := make([]string, len(shown))
	for i, b := range shown {
		names[i] = b.Name
	}
	found, err := lookAt(ctx, r, want, names)
	for i, b := range shown {
		if err == nil {
			b.Live = found[i]
		}
	}
	return err
}

// write writes a tree as text.
func (t tree) write(w io.Writer) error {
	var b strings.Builder
	for _, root := range t.Roots {
		root.write(&b, "", "")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (b *treeNode) write(to *strings.Builder, first, rest string) {
	to.WriteString(first + printable(b.String()) + "\n")
	n := len(b.Children)
	if b.Inactive > 0 {
		n++
	}
	at := func(i int) (string, string) {
		if i == n-1 {
			return rest + "└── ", rest + "    "
		}
		return rest + "├── ", rest + "│   "
	}
	for i, child := range b.Children {
		first, rest := at(i)
		child.write(to, first, rest)
	}
	if b.Inactive > 0 {
		first, _ := at(n - 1)
		fmt.Fprintf(to, "%s%s not active (--all lists them)\n", first, manifest.Count(b.Inactive, "definition"))
	}
}

// String returns the line of a node, without its children.
func (b *treeNode) String() string {
	text := b.Kind + " " + b.Name
	switch {
	case b.Kind == "Commit":
		return b.Name
	case b.Active != nil && len(b.Because) > 0:
		text = b.Name + "  " + report.Because(b.Because[0])
		if more := len(b.Because) - 1; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		if b.Paused {
			text += ", but paused (" + crossplane.PausedAnnotation + ")"
		}
	case b.Active != nil:
		text = b.Name + "  not active"
	case b.Package != nil:
		text += "  " + b.Package.Directory
		if b.Needs != "" {
			text += fmt.Sprintf(" (wanted: %s)", b.Needs)
		}
		if b.Package.Installed != nil {
			text += "; " + b.Package.Installed.String()
		}
	}
	if b.Problem != "" {
		text += "; it cannot make a CRD: " + b.Problem
	}
	switch {
	case b.Unread != "":
		text += "  not read: " + b.Unread
	case b.Above:
		text += "  (see above)"
	case b.Live != nil:
		text += "; " + b.Live.String()
	}
	return text
}
