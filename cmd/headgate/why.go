package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func newWhy(t *terminal) *cobra.Command {
	var (
		to     = newPassFlags()
		format = oneOf("text", "json")
		live   bool
	)
	cmd := &cobra.Command{
		Use:   "why NAME [SOURCE] [flags]",
		Short: "Say why a definition is active, or what would activate it",
		Long: `Why explains the decision on one definition: every policy and pattern that activates it
with its line, or the line that would. NAME is its full name, the beginning of it, its
plural or its kind, as long as that fits one definition only.

` + aboutSource + `

Exit codes: 0 explained, 1 not found or an error, 2 wrong usage.`,
		Example: `  headgate why buckets.s3.aws.m.upbound.io
  headgate why Bucket ./platform --live`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, ref, err := t.source(&to.sourceFlags, args[1:])
			if err != nil {
				return err
			}
			r, err := t.offline(to, from)
			if err != nil {
				return err
			}
			want, err := r.Render(cmd.Context(), ref)
			if err != nil {
				return err
			}
			d, err := find(want.Definitions, args[0])
			if err != nil {
				return err
			}
			e := explain(want, d)
			if live {
				if e.Live, err = t.look(cmd.Context(), to, d); err != nil {
					return err
				}
			}
			t.progress.Stop()
			if format.value == "json" {
				return t.json(e)
			}
			return e.write(t.out)
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "look into the cluster too: owned, served, in use")
	to.addTo(cmd)
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// An explanation is everything that decides about one definition.
type explanation struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Revision   string              `json:"revision,omitempty"`
	Name       string              `json:"name"`
	Of         string              `json:"of"` // the kind that its CRD serves
	Scope      string              `json:"scope"`
	Origin     manifest.Origin     `json:"origin"`
	Active     bool                `json:"active"`
	Paused     bool                `json:"paused"`
	Because    []activation.Reason `json:"because,omitempty"`
	Fix        *fix                `json:"fix,omitempty"`
	Package    *origin             `json:"package,omitempty"`
	Live       *live               `json:"live,omitempty"`
}

// A fix is the line of a policy that would activate a definition.
type fix struct {
	Policy  string           `json:"policy,omitempty"` // "" where the commit has none
	Line    string           `json:"line,omitempty"`
	Origin  *manifest.Origin `json:"origin,omitempty"`
	Message string           `json:"message"`
}

// An origin is the package that a definition came with.
type origin struct {
	Name      string `json:"name"`
	Directory string `json:"directory"`
	SafeStart bool   `json:"safeStart"`
}

// live is what a cluster has of a definition.
type live struct {
	Owned  bool   `json:"owned"`  // by this sync
	Exists bool   `json:"exists"` // its CRD
	Served bool   `json:"served"` // the kind
	InUse  *int64 `json:"inUse,omitempty"`
	Note   string `json:"note,omitempty"` // why it is not known how many there are
}

// explain is the explanation of a definition of a commit.
func explain(want render.Desired, d render.Definition) explanation {
	e := explanation{
		APIVersion: "headgate.dev/v1alpha1",
		Kind:       "Explanation",
		Revision:   want.Revision,
		Name:       d.Name,
		Of:         d.Kind,
		Scope:      d.Scope,
		Origin:     d.Origin(),
		Active:     d.Active,
		Paused:     d.Paused,
		Because:    d.Reasons,
	}
	if p := d.Package; p != nil {
		e.Package = &origin{Name: p.Name, Directory: p.Directory, SafeStart: p.SafeStart}
	}
	if !d.Active {
		f := remedy(want.Policies, d)
		e.Fix = &f
	}
	return e
}

// remedy is the least that would activate a definition: to let a paused policy go on
// that names it already, else one line more in a policy that is nearest to it.
func remedy(policies []catalogue.Policy, d render.Definition) fix {
	for _, p := range policies {
		for _, pattern := range p.Patterns {
			if p.Paused && matches(pattern.Glob, d.Name) {
				return fix{Policy: p.Name, Origin: &pattern.Origin, Message: fmt.Sprintf("policy %s would match with %q (%s), but it is paused", p.Name, pattern.Glob, pattern.Origin)}
			}
		}
	}
	line := "- " + d.Name
	nearest, at := -1, -1
	for i, p := range policies {
		if n := kinship(p, d); !p.Paused && n > at {
			nearest, at = i, n
		}
	}
	if nearest < 0 {
		return fix{Line: line, Message: "no policy of the commit could name it: add a ManagedResourceActivationPolicy with this line below spec.activate"}
	}
	p := policies[nearest]
	return fix{Policy: p.Name, Line: line, Origin: &p.Origin, Message: fmt.Sprintf("add this line below spec.activate of policy %s (%s)", p.Name, p.Origin)}
}

// matches says whether a pattern names a definition. A malformed one names none.
func matches(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

// kinship is how many patterns of a policy speak of the group of a definition.
func kinship(p catalogue.Policy, d render.Definition) int {
	n := 0
	for _, pattern := range p.Patterns {
		if strings.HasSuffix(pattern.Glob, "."+d.Group) {
			n++
		}
	}
	return n
}

// look asks the cluster for what it has of a definition.
func (t *terminal) look(ctx context.Context, to *passFlags, d render.Definition) (*live, error) {
	c, err := t.cluster(&to.clusterFlags, to.sync(), cluster.Options{})
	if err != nil {
		return nil, err
	}
	seen, err := c.Observe(ctx, render.Desired{Owner: render.OwnerHeadgate})
	if err != nil {
		return nil, err
	}
	id := plan.CRD(d.Name)
	l := &live{}
	_, l.Owned = seen.Inventory.Entries[id]
	_, exists := seen.Objects[id]
	_, l.Served = seen.Kinds[schema.GroupKind{Group: d.Group, Kind: d.Kind}]
	if l.Exists = exists || l.Served; !l.Exists {
		return l, nil
	}
	q := plan.Question{Ask: plan.Dependents, Of: id}
	answers, err := c.Answer(ctx, []plan.Question{q})
	if err != nil {
		return nil, err
	}
	if a := answers[q]; a.Unknown != "" {
		l.Note = a.Unknown
	} else {
		l.InUse = &a.Count
	}
	return l, nil
}

// write writes an explanation for people.
func (e explanation) write(w io.Writer) error {
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	state := "not active"
	switch {
	case e.Active && e.Paused:
		state = "active, but paused (crossplane.io/paused), so it makes no CRD"
	case e.Active:
		state = "active"
	case e.Paused:
		state = "not active, and paused (crossplane.io/paused)"
	}
	say("%s is %s", e.Name, state)
	for _, r := range e.Because {
		say("  %s", report.Because(r))
	}
	if e.Fix != nil {
		say("  to activate it: %s", e.Fix.Message)
		if e.Fix.Line != "" {
			say("      %s", e.Fix.Line)
		}
	}
	say("  kind: %s, %s", e.Of, strings.ToLower(e.Scope))
	if p := e.Package; p != nil {
		safe := "safe-start"
		if !p.SafeStart {
			safe = "no safe-start, so every definition of it is active"
		}
		say("  package: %s in %s (%s)", p.Name, p.Directory, safe)
	}
	say("  declared: %s", e.Origin)
	if e.Live != nil {
		say("  in the cluster: %s", e.Live)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (l live) String() string {
	switch {
	case !l.Exists:
		return "there is no CRD"
	case l.Note != "":
		return l.owned() + ", " + l.served() + ", objects not counted: " + l.Note
	}
	return fmt.Sprintf("%s, %s, %s of it", l.owned(), l.served(), count(int(*l.InUse), "object"))
}

func (l live) owned() string {
	if l.Owned {
		return "CRD applied by this sync"
	}
	return "CRD not of this sync"
}

func (l live) served() string {
	if l.Served {
		return "served"
	}
	return "not served"
}
