package report

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Preview is what the report of a pull request says beside its plan.
type Preview struct {
	Base    string       `json:"base"`              // the commit that it is compared with: where it left its target
	Live    bool         `json:"live,omitempty"`    // a cluster was asked for counts
	Repairs bool         `json:"repairs,omitempty"` // the base cannot be rendered and this can: nothing could be compared
	Moved   string       `json:"moved,omitempty"`   // how the target changed what counts since then
	Opens   []Opening    `json:"opens"`             // definitions that become active
	Leaves  []Definition `json:"leaves"`            // definitions that nothing activates any more, and that stay: activation is final
	Memory  Cost         `json:"memory"`            // of an API server
}

// An Opening is a definition that becomes active.
type Opening struct {
	Definition
	Already bool `json:"already,omitempty"` // in the cluster, whoever made it so
}

// A Comparison is what Compared has to know beside the plan.
type Comparison struct {
	Before  render.Desired  // the base
	Now     *render.Desired // the target as it is, where it went on
	Live    bool
	Present map[string]bool // definitions whose CRDs the cluster has already, by name
}

// Compared reports the plan of a pull request.
func Compared(p plan.Plan, c Comparison) Report {
	r := New(p, nil, false)
	preview := Preview{Base: c.Before.Revision, Live: c.Live, Opens: []Opening{}, Leaves: []Definition{}}
	was := map[string]bool{}
	for _, d := range c.Before.Definitions {
		was[d.Name] = d.Active
	}
	for _, d := range r.Definitions {
		switch {
		case d.Active && !was[d.Name]:
			preview.Opens = append(preview.Opens, Opening{Definition: d, Already: c.Present[d.Name]})
		case !d.Active && was[d.Name]:
			preview.Leaves = append(preview.Leaves, d)
		}
	}
	for _, o := range preview.Opens {
		r.serves(o)
	}
	stays := slices.Clone(preview.Leaves)
	for _, s := range r.Dropped() {
		stays = append(stays, Definition{Name: s.ID.Name})
	}
	preview.Memory = costOf(c.Before, p.Want, stays)
	if c.Now != nil {
		preview.Moved = Moved(c.Before, *c.Now)
	}
	r.Preview = &preview
	r.Verdict.Activation = r.previewed()
	return r
}

// PreviewStopped is what the description of a preview begins with whose process was stopped. The status on the forge is
// the record of that: such a head is not previewed again.
const PreviewStopped = "the preview was stopped: "

// WasStopped reports whether a status is that of a preview whose process was stopped.
func (s Status) WasStopped() bool {
	return s.State == Error && strings.HasPrefix(s.Description, PreviewStopped)
}

// ruleBase is the rule of a base that cannot be rendered.
const ruleBase = "base-broken"

// Repaired reports a pull request whose base cannot be rendered, and which can: nobody is to be
// kept from merging what repairs a target.
func Repaired(sync inventory.Sync, head render.Desired, base string, why error) Report {
	r := New(plan.Plan{Sync: sync, Want: head}, nil, false)
	r.Preview = &Preview{Base: base, Repairs: true, Opens: []Opening{}, Leaves: []Definition{}}
	r.Findings = append(r.Findings, manifest.Finding{
		Rule: ruleBase, Severity: manifest.Note,
		Message: "where it left its target nothing can be rendered, so what changes is not known: " + why.Error(),
	})
	r.Verdict.Activation = r.previewed()
	return r
}

// Opens are the names of the definitions that become active from one commit to another.
func Opens(before, after render.Desired) []string {
	var names []string
	was := map[string]bool{}
	for _, d := range before.Definitions {
		was[d.Name] = d.Active
	}
	for _, d := range after.Definitions {
		if d.Active && !was[d.Name] {
			names = append(names, d.Name)
		}
	}
	return names
}

// Moved says what of two commits of a target differs that decides what is active; "" is nothing.
func Moved(before, now render.Desired) string {
	var parts []string
	if !slices.Equal(policies(before), policies(now)) {
		parts = append(parts, "policies")
	}
	if !slices.Equal(packages(before), packages(now)) {
		parts = append(parts, "packages")
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the target changed %s since this left it (%.12s): merge it in to see both together", strings.Join(parts, " and "), now.Revision)
}

func policies(of render.Desired) []string {
	var all []string
	for _, p := range of.Policies {
		said := []string{fmt.Sprint(p.Name, " ", p.Paused)}
		for _, pattern := range p.Patterns {
			said = append(said, pattern.Glob)
		}
		all = append(all, strings.Join(said, " "))
	}
	return all
}

func packages(of render.Desired) []string {
	var all []string
	for _, p := range of.Packages {
		all = append(all, fmt.Sprintf("%s %t", p.Name, p.SafeStart))
	}
	for _, d := range of.Definitions {
		all = append(all, d.Name)
	}
	return all
}

// serves has count what breaks a kind that only becomes active, and that the cluster serves already.
func (r Report) serves(o Opening) {
	for _, steps := range [][]Step{r.Steps, r.Upgrades} {
		for i := range steps {
			if steps[i].ID == crossplane.MRD(o.Name) {
				steps[i].active = steps[i].active || o.Already
			}
		}
	}
}

// Breaking are the steps, and the upgrades, that break a kind which anybody can use.
func (r Report) Breaking() []Step {
	return slices.DeleteFunc(slices.Concat(r.Steps, r.Upgrades), func(s Step) bool { return len(s.Breaks) == 0 || !s.active })
}

// Dropped are the kinds that anybody can use, and that the new version of their package does not hold.
func (r Report) Dropped() []Step {
	return slices.DeleteFunc(slices.Clone(r.Upgrades), func(s Step) bool { return s.Action != plan.Keep || !s.active })
}

// Unread are the packages that change, and of which nobody knows how.
func (r Report) Unread() []plan.Bump {
	return slices.DeleteFunc(slices.Clone(r.Bumps), func(b plan.Bump) bool { return b.Unknown == "" })
}

// previewed is the status of a preview: the numbers of what the merge does.
func (r Report) previewed() Status {
	said := r.Verdict.Activation
	what := strings.Join(r.does(), ", ")
	switch {
	case len(r.Unread()) > 0 && said.State == Error && r.Error == "":
		said.Description = what + ": " + r.Unread()[0].Unknown
	case said.State == Success && what == "":
		said.Description = "nothing of this sync changes"
	case said.State == Success:
		said.Description = what + "; " + r.Summary.String()
	}
	return said
}

// does says in a few words each what the merge does, the worst first.
func (r Report) does() []string {
	if r.Preview != nil && r.Preview.Repairs {
		return []string{"repairs its target, which cannot be rendered"}
	}
	var parts []string
	add := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, one)
		case n > 1:
			parts = append(parts, fmt.Sprintf(many, n))
		}
	}
	add(r.Summary.Failed, "fails on 1 object", "fails on %d objects")
	add(len(r.Unread()), "cannot read 1 package", "cannot read %d packages")
	add(r.Summary.Held, "holds 1 object back", "holds %d objects back")
	add(len(r.Breaking()), "breaks 1 schema", "breaks %d schemas")
	add(len(r.Dropped()), "drops 1 kind", "drops %d kinds")
	add(r.Summary.Pruned, "deletes 1 object", "deletes %d objects")
	if r.Preview != nil {
		add(len(r.Preview.Opens), "activates 1 definition", "activates %d definitions")
		add(len(r.Preview.Leaves), "retains 1 that nothing activates any more", "retains %d that nothing activates any more")
	}
	if n := r.Summary.Created + r.Summary.Updated; len(parts) == 0 {
		add(n, "changes 1 object", "changes %d objects")
	}
	return parts
}

// troubles are the findings that ask for something.
func (r Report) troubles() []manifest.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f manifest.Finding) bool { return f.Severity == manifest.Note })
}
