package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/reconcile/words"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"github.com/spf13/cobra"
)

func newWhy(t *terminal) *cobra.Command {
	var (
		to     = new(passFlags)
		format = oneOf("text", "json")
		live   bool
	)
	cmd := &cobra.Command{
		Use:   "why NAME [SOURCE] [flags]",
		Short: "Explain why a definition is active, or what would activate it",
		Long: `Why explains the decision on one definition: every policy and pattern that activates it, with
its line, or the line that would. NAME is its full name, its beginning, its plural or its
kind, if that matches only one definition. With --live it also counts the policies that only
the cluster has, and shows whether the cluster serves and uses the definition, and what keeps
the CRD of a definition that left Git.

` + aboutSource + `

Exit codes: 0 explained, 1 not found or an error, 2 wrong usage.`,
		Example: `  headgate why buckets.s3.aws.m.upbound.io
  headgate why Bucket ./platform --live`,
		Args: takes(1, 2, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, r, err := t.explained(cmd, to, args[1:], live)
			if err != nil {
				return err
			}
			e, err := explanationOf(want, args[0])
			if _, exact := errors.AsType[ambiguousError](err); exact {
				return err
			}
			if err != nil && len(want.Unread) > 0 {
				err = fmt.Errorf("%w; it may be of a package that could not be read: %w", err, want.Unread[0].Err)
			}
			if err != nil && live && want.Unmade.Err() != nil {
				return fmt.Errorf("%w; what is left of it in the cluster is not known: %w", err, want.Unmade.Err())
			}
			if err != nil && live {
				e, err = left(cmd.Context(), r, want, args[0], err)
			}
			if err != nil {
				return err
			}
			if live {
				if e.Live, err = look(cmd.Context(), r, want, e.Name); err != nil {
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
	cmd.Flags().BoolVar(&live, "live", false, "also show what the cluster has: owned, served, in use")
	to.addTo(cmd)
	t.completeDefinition(cmd, &to.sourceFlags)
	leaveOut(cmd, slices.Concat(onApply, onGuards)...)
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// An explanation shows everything that decides whether a definition is active.
type explanation struct {
	APIVersion string                 `json:"apiVersion"`
	Kind       string                 `json:"kind"`
	Revision   string                 `json:"revision,omitempty"`
	Name       string                 `json:"name"`
	Of         string                 `json:"of,omitempty"` // the kind that its CRD serves
	Scope      string                 `json:"scope,omitempty"`
	Origin     *manifest.Origin       `json:"origin,omitempty"`
	Active     bool                   `json:"active"`
	Paused     bool                   `json:"paused"`
	Because    []activation.Activator `json:"because,omitempty"`
	Problem    string                 `json:"problem,omitempty"` // why it cannot make a CRD
	Fix        *fix                   `json:"fix,omitempty"`
	Package    *packageOf             `json:"package,omitempty"`
	Left       *leftover              `json:"left,omitempty"` // set if the commit no longer declares the definition
	Live       *live                  `json:"live,omitempty"`
}

// A leftover describes what a sync still owns of a definition, and what its next pass does with it.
type leftover struct {
	Sync   inventory.Sync `json:"sync"`
	Action plan.Action    `json:"action"`
	Guard  plan.GuardName `json:"guard,omitempty"`
	Reason string         `json:"reason,omitempty"`
	Code   reason.Code    `json:"code,omitempty"` // of the reason
}

// A fix is the line of a policy that would activate a definition.
type fix struct {
	Policy  string           `json:"policy,omitempty"` // "" if the commit has no policy
	Line    string           `json:"line,omitempty"`
	Origin  *manifest.Origin `json:"origin,omitempty"`
	Message string           `json:"message"`
}

// A packageOf is the package that contains a definition.
type packageOf struct {
	Name      string `json:"name"`
	Directory string `json:"directory"`
	SafeStart bool   `json:"safeStart"`

	// Set only for a package in a registry.
	Source     string                `json:"source,omitempty"`
	Version    string                `json:"version,omitempty"`
	Digest     string                `json:"digest,omitempty"`
	Mentioned  *manifest.Origin      `json:"mentioned,omitempty"`
	Installers []manifest.ID         `json:"installers,omitempty"` // the objects that make Crossplane install it
	Installed  *crossplane.Installed `json:"installed,omitempty"`  // the package's state in the cluster, empty if it is not installed; left out without --live
}

// packageRef returns the JSON form of a package, or nil.
func packageRef(p *catalogue.Package) *packageOf {
	if p == nil {
		return nil
	}
	of := &packageOf{Name: p.Name, Directory: p.Directory, SafeStart: p.SafeStart}
	if p.Pulled() {
		of.Source, of.Version, of.Digest, of.Mentioned, of.Installers = p.Source, p.Version, p.Digest, &p.Mentioned, p.Installers
		of.Installed = p.Installed
	}
	return of
}

// live is the state of a definition in a cluster.
type live struct {
	Owned  bool        `json:"owned"`        // by this sync
	By     string      `json:"by,omitempty"` // another owner, if known
	Exists bool        `json:"exists"`       // its CRD
	Served bool        `json:"served"`       // the kind
	InUse  *int64      `json:"inUse,omitempty"`
	Note   string      `json:"note,omitempty"` // why the objects could not be counted
	Code   reason.Code `json:"code,omitempty"` // of the note
}

// left explains a definition that the commit does not declare, if the sync still owns its CRD. Otherwise, it returns an error that
// wraps missing.
func left(ctx context.Context, r reconcile.Reconciler, want render.Desired, name string, missing error) (explanation, error) {
	p, err := r.Plan(ctx, want, r.Observer)
	if err != nil {
		return explanation{}, err
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	e := explanation{APIVersion: "headgate.dev/v1alpha1", Kind: "Explanation", Revision: want.Revision}
	for _, s := range p.Steps {
		made := s.ID == plan.CRD(s.ID.Name) || s.ID == crossplane.MRD(s.ID.Name)
		if !made || s.Origin != (manifest.Origin{}) || s.ID.Name != name && !strings.HasPrefix(s.ID.Name, name+".") {
			continue
		}
		if e.Left != nil && e.Name != s.ID.Name {
			return e, fmt.Errorf("%w; %q matches several definitions that %s still owns; name one of them: %s, %s", missing, name, p.Sync, e.Name, s.ID.Name)
		}
		e.Name, e.Left = s.ID.Name, &leftover{Sync: p.Sync, Action: s.Action, Guard: s.Guard, Reason: words.Of(s.Reason), Code: s.Reason.Code}
	}
	if e.Left == nil {
		return e, fmt.Errorf("%w; nor does %s own anything of that name", missing, p.Sync)
	}
	return e, nil
}

// explanationOf returns the explanation of the definition that name refers to.
func explanationOf(want render.Desired, name string) (explanation, error) {
	d, err := find(want.Definitions, name)
	if err != nil {
		return explanation{}, err
	}
	origin := d.Origin()
	e := explanation{
		APIVersion: "headgate.dev/v1alpha1",
		Kind:       "Explanation",
		Revision:   want.Revision,
		Name:       d.Name,
		Of:         d.Kind,
		Scope:      d.Scope,
		Origin:     &origin,
		Active:     d.Active,
		Paused:     d.Paused,
		Because:    d.Reasons,
	}
	if err := problemOf(want, d.Name); err != nil {
		e.Problem = err.Error()
	}
	e.Package = packageRef(d.Package)
	if !d.Active {
		f := remedy(want, d)
		e.Fix = &f
	}
	return e, nil
}

// problemOf returns why a definition cannot make a CRD, or nil.
func problemOf(want render.Desired, name string) error {
	if problems := want.Unmade[name]; problems != nil {
		return problems
	}
	for _, o := range want.Objects {
		if o.Definition == name && o.Problem != nil {
			return o.Problem
		}
	}
	return nil
}

// remedy returns the smallest change that would activate a definition. It resumes a paused policy that already names
// the definition. Otherwise it adds a line to the nearest policy of the commit; policies of packages cannot be edited.
func remedy(want render.Desired, d render.DecidedDefinition) fix {
	policies := slices.DeleteFunc(slices.Clone(want.Policies), func(p catalogue.Policy) bool {
		_, pulled := want.Within(p.Origin)
		return pulled
	})
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
		if n := patternsOfGroup(p, d); !p.Paused && n > at {
			nearest, at = i, n
		}
	}
	if nearest < 0 {
		return fix{Line: line, Message: "no policy of the commit could name it: add a ManagedResourceActivationPolicy with this line below spec.activate"}
	}
	p := policies[nearest]
	return fix{Policy: p.Name, Line: line, Origin: &p.Origin, Message: fmt.Sprintf("add this line below spec.activate of policy %s (%s)", p.Name, p.Origin)}
}

// matches reports whether a pattern names a definition. A malformed one names none.
func matches(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

// patternsOfGroup returns the number of patterns of a policy that name the group of a definition.
func patternsOfGroup(p catalogue.Policy, d render.DecidedDefinition) int {
	n := 0
	for _, pattern := range p.Patterns {
		if strings.HasSuffix(pattern.Glob, "."+d.Group) {
			n++
		}
	}
	return n
}

// look asks the cluster for its state of a definition.
func look(ctx context.Context, r reconcile.Reconciler, want render.Desired, name string) (*live, error) {
	found, err := lookAt(ctx, r, want, []string{name})
	if err != nil {
		return nil, err
	}
	return found[0], nil
}

// lookAt asks the cluster for its state of definitions, in the order of names.
func lookAt(ctx context.Context, r reconcile.Reconciler, want render.Desired, names []string) ([]*live, error) {
	only := render.Desired{Owner: render.OwnerHeadgate}
	if r.Applier == nil { // without an inventory, observe the definitions themselves
		only.Definitions = slices.DeleteFunc(slices.Clone(want.Definitions), func(d render.DecidedDefinition) bool { return !slices.Contains(names, d.Name) })
	}
	seen, err := r.Observer.Observe(ctx, only)
	if err != nil {
		return nil, err
	}
	served := map[string]bool{}
	for gk, kind := range seen.Kinds {
		served[kind.Resource+"."+gk.Group] = true
	}
	found := make([]*live, len(names))
	var questions []question.Any
	for i, name := range names {
		id := plan.CRD(name)
		crd, exists := seen.Objects[id]
		_, owned := seen.Inventory.Entries[id]
		found[i] = &live{Owned: owned, Exists: exists || served[name], Served: served[name]}
		if exists && !owned {
			found[i].By = ownership.Of(crd, r.Sync, "").By
		}
		if found[i].Exists {
			questions = append(questions, question.Dependents{Of: id})
		}
	}
	answers, err := r.Observer.Answer(ctx, questions)
	for i, name := range names {
		switch a, is := question.Get(question.Known{Answers: answers}, question.Dependents{Of: plan.CRD(name)}); {
		case is.Open:
		case is.Err != nil:
			why := reason.Of(is.Err)
			found[i].Note, found[i].Code = words.Of(why), why.Code
		default:
			found[i].InUse = &a.Count
		}
	}
	return found, err
}

// write writes an explanation as text.
func (e explanation) write(w io.Writer) error {
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(printable(fmt.Sprintf(format, args...)) + "\n") }
	state := "not active"
	switch {
	case e.Left != nil:
		state = "not declared by the commit any more"
	case e.Active && e.Paused:
		state = "active, but paused (" + crossplane.PausedAnnotation + "), so it makes no CRD"
	case e.Active:
		state = "active"
	case e.Paused:
		state = "not active, and paused (" + crossplane.PausedAnnotation + ")"
	}
	say("%s is %s", e.Name, state)
	for _, r := range e.Because {
		say("  %s", report.Because(r))
	}
	if e.Problem != "" {
		say("  it cannot make a CRD: %s", e.Problem)
	}
	if e.Left != nil {
		say("  %s", e.Left)
	}
	if e.Fix != nil {
		say("  to activate it: %s", e.Fix.Message)
		if e.Fix.Line != "" {
			say("      %s", e.Fix.Line)
		}
	}
	if e.Of != "" {
		say("  kind: %s, %s", e.Of, strings.ToLower(e.Scope))
	}
	if p := e.Package; p != nil {
		safe := "safe-start"
		if !p.SafeStart {
			safe = "no safe-start, so every definition of it is active"
		}
		say("  package: %s in %s (%s)", p.Name, p.Directory, safe)
		if p.Mentioned != nil {
			by := identities(p.Installers)
			if by == "" {
				by = "a dependency of a project"
			}
			say("  installed by: %s (%s)", by, p.Mentioned)
			say("  image: %s", p.Digest)
		}
		if p.Installed != nil {
			say("  the package in the cluster: %s", p.Installed)
		}
	}
	if e.Origin != nil {
		say("  declared: %s", e.Origin)
	}
	if e.Live != nil {
		say("  in the cluster: %s", e.Live)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// identities returns identities as a list in a sentence.
func identities(ids []manifest.ID) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.String()
	}
	return strings.Join(all, ", ")
}

func (l leftover) String() string {
	switch {
	case l.Action == plan.Prune:
		return fmt.Sprintf("the next pass of %s prunes its CRD", l.Sync)
	case l.Action == plan.Hold:
		return fmt.Sprintf("%s still holds it, because of guard %q: %s", l.Sync, l.Guard, l.Reason)
	case l.Reason != "":
		return fmt.Sprintf("%s keeps it: %s", l.Sync, l.Reason)
	}
	return fmt.Sprintf("%s keeps it", l.Sync)
}

func (l live) String() string {
	switch {
	case !l.Exists:
		return "there is no CRD"
	case l.Note != "":
		return l.owned() + ", " + l.served() + ", objects not counted: " + l.Note
	}
	return fmt.Sprintf("%s, %s, %s of it", l.owned(), l.served(), manifest.Count(int(*l.InUse), "object"))
}

func (l live) owned() string {
	if l.Owned {
		return "CRD applied by this sync"
	}
	if l.By != "" {
		return "CRD of " + l.By
	}
	return "CRD not of this sync"
}

func (l live) served() string {
	if l.Served {
		return "served"
	}
	return "not served"
}
