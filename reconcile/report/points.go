package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// mostVisible is the maximum number of lines of a comment that are not folded, regardless of the size of the change.
// A reviewer reads that many.
const mostVisible = 25

// A point is one thing that a reviewer must know, with its most important examples.
type point struct {
	text  string
	items []string
}

// points returns what a reviewer must know, the worst first.
func (c comment) points() []point {
	all := []point{
		c.pointOfFailures(), c.pointOfFindings(manifest.Error), c.pointOfHolds(), c.pointOfMoves(), c.pointOfServed(), c.pointOfBreaks(), c.pointOfDrops(), c.pointOfDeletes(), c.pointOfHidden(), c.pointOfUnchecked(), c.pointOfOpenings(),
		c.pointOfSafeStart(true), c.pointOfSafeStart(false), c.pointOfBumps(), c.pointOfSteps(), c.pointOfCopies(), c.pointOfVersions(), c.pointOfLeaves(), c.pointOfChanges(), c.pointOfFindings(manifest.Warning), c.pointOfMemory(), c.pointOfInactive(),
	}
	return slices.DeleteFunc(all, func(p point) bool { return p.text == "" })
}

func (c comment) pointOfBumps() point {
	var p point
	harm := map[string]int{} // active kinds that break or disappear, by package
	for _, s := range append(c.Breaking(), c.Dropped()...) {
		harm[s.Package]++
	}
	bumps := slices.Clone(c.Bumps)
	slices.SortStableFunc(bumps, func(a, b plan.Bump) int { return harm[b.Package] - harm[a.Package] })
	for _, one := range bumps {
		p.items = append(p.items, c.bump(one))
	}
	if len(p.items) > 0 {
		p.text = fmt.Sprintf("**Crossplane installs %s.", moreOf(len(p.items), "new version of a package** and replaces its definitions", "new versions of packages** and replaces their definitions"))
	}
	return p
}

func (c comment) pointOfFailures() point {
	failed := c.of(failing)
	if len(failed) == 0 {
		return point{}
	}
	p := point{text: fmt.Sprintf("**Fails on %s:** Headgate cannot compute these, or the API server would reject them.", manifest.Count(len(failed), "object"))}
	for _, alike := range groups(failed, func(s Step) string { return s.Error }) {
		p.items = append(p.items, fmt.Sprintf("%s: %s", c.calledAll(alike), code(clip(alike[0].Error, mostInPoint))))
	}
	return p
}

func (c comment) pointOfHolds() point {
	held := c.of(plan.Hold)
	if len(held) == 0 {
		return point{}
	}
	p := point{text: fmt.Sprintf("**Holds %s back** until the commit changes or a person approves.", manifest.Count(len(held), "object"))}
	if !slices.ContainsFunc(held, func(s Step) bool { return s.approvable }) {
		p.text = fmt.Sprintf("**Holds %s back** until the commit changes or the obstacle is gone. No approval helps.", manifest.Count(len(held), "object"))
	}
	if !slices.ContainsFunc(held, func(s Step) bool { return !s.excused }) {
		p.text = fmt.Sprintf("**Would hold %s back**, but a person approved this.", manifest.Count(len(held), "object"))
	}
	for _, alike := range groups(held, func(s Step) string { return s.Reason }) {
		var would []string
		for _, same := range groups(alike, heldChange) {
			would = append(would, heldChange(same[0])+" "+c.calledAll(same))
		}
		p.items = append(p.items, fmt.Sprintf("%s: %s", strings.Join(would, "; "), code(clip(alike[0].Reason, mostInPoint))))
	}
	return p
}

// heldChange describes the held change.
func heldChange(s Step) string {
	switch s.Would {
	case plan.Prune:
		return "the deletion of"
	case plan.Create:
		return "the creation of"
	}
	return fmt.Sprintf("the %s of", s.Would)
}

func (c comment) pointOfBreaks() point {
	broken := slices.DeleteFunc(c.Breaking(), func(s Step) bool { return len(s.ownBreaks()) == 0 })
	if len(broken) == 0 {
		return point{}
	}
	spec, status := byField(broken, Step.ownBreaks)
	kinds, fields := map[manifest.ID]bool{}, map[string]bool{}
	var p point
	for _, f := range spec {
		p.items = append(p.items, c.field(f, len(broken))+c.usedAt(f.steps))
		for _, s := range f.steps {
			kinds[s.ID] = true
		}
	}
	if len(status) > 0 {
		var steps []Step
		for _, f := range status {
			steps, fields[f.change] = append(steps, f.steps...), true
		}
		p.items = append(p.items, fmt.Sprintf("only in the status: %s of %s", moreOf(len(fields), "field", "fields"), c.kinds(steps)))
	}
	p.text = fmt.Sprintf("**Breaks %s.** Objects and clients that use this may be refused, or lose values. Change them before the merge.", moreOf(len(kinds), "schema", "schemas"))
	if len(kinds) == 0 {
		p.text = fmt.Sprintf("**Changes %s.** Controllers write the status again, so no object is refused. Check what reads these fields.", moreOf(len(broken), "status", "statuses"))
	}
	return p
}

func (c comment) pointOfDrops() point {
	dropped := c.Dropped()
	if len(dropped) == 0 {
		return point{}
	}
	return point{
		text:  fmt.Sprintf("**Drops %s.** Their objects stay, and no controller reconciles them. Delete the objects first, or keep a version that contains the kinds.", moreOf(len(dropped), "kind", "kinds")),
		items: []string{c.kinds(dropped) + c.usedAt(dropped)},
	}
}

func (c comment) pointOfDeletes() point {
	pruned := c.of(plan.Prune)
	if len(pruned) == 0 {
		return point{}
	}
	return point{text: fmt.Sprintf("**Deletes %s:** %s", manifest.Count(len(pruned), "object"), c.calledAll(pruned))}
}

// pointOfHidden lists the objects that Headgate skips from now on.
func (c comment) pointOfHidden() point {
	var p point
	for _, alike := range groups(c.hidden(), func(s Step) string { return s.Reason }) {
		p.items = append(p.items, c.calledAll(alike)+": "+code(clip(alike[0].Reason, mostInPoint)))
	}
	if len(p.items) > 0 {
		p.text = fmt.Sprintf("**Hides %s from Headgate.** They stay in the cluster as they are, and no change or mistake in these files is seen any more.", manifest.Count(len(c.hidden()), "object"))
	}
	return p
}

// pointOfUnchecked lists the kinds whose objects are not checked any more.
func (c comment) pointOfUnchecked() point {
	if c.Preview == nil || len(c.Preview.Unchecked) == 0 {
		return point{}
	}
	return point{text: fmt.Sprintf("**No longer checks objects of %s:** %s. The commit has no schema of them any more.", moreOf(len(c.Preview.Unchecked), "kind", "kinds"), c.some(c.Preview.Unchecked))}
}

func (c comment) pointOfOpenings() point {
	if c.Preview == nil || len(c.Preview.Opens) == 0 {
		return point{}
	}
	p := point{text: fmt.Sprintf("**Activates %s.** This is final: Crossplane never makes a kind inactive again.", manifest.Count(len(c.Preview.Opens), "definition"))}
	for _, g := range opened(c.Preview.Opens) {
		item := fmt.Sprintf("%s%s: %s", c.quotedCause(g), c.at(&g.by.Origin), c.some(g.names))
		if !g.inFull() {
			item += ". It also activates what later versions add."
		}
		p.items = append(p.items, item)
	}
	return p
}

// quotedCause describes what activates a group of definitions.
func (c comment) quotedCause(g openings) string {
	if g.by.Pattern == "" {
		return code(g.cause())
	}
	return quoted(`"`+g.by.Pattern+`"`) + " of policy " + quoted(g.by.Policy)
}

// pointOfSafeStart names the cause of many activations, or of many definitions that no policy names any more.
func (c comment) pointOfSafeStart(has bool) point {
	if c.Preview == nil {
		return point{}
	}
	var names []string
	for _, s := range c.Preview.SafeStart {
		if s.Has == has {
			names = append(names, s.Package)
		}
	}
	switch {
	case len(names) == 0:
		return point{}
	case has:
		return point{text: fmt.Sprintf("**Safe-start is new in %s:** from now on, only policies activate its definitions.", c.some(names))}
	}
	return point{text: fmt.Sprintf("**Safe-start is gone from %s:** all of its definitions are active, whatever policies name.", c.some(names))}
}

func (c comment) pointOfLeaves() point {
	if c.Preview == nil || len(c.Preview.Leaves) == 0 {
		return point{}
	}
	var names []string
	for _, d := range c.Preview.Leaves {
		names = append(names, d.Name)
	}
	return point{text: fmt.Sprintf("**%s active that no policy names any more:** %s. `headgate shrink` deactivates unused ones.",
		moreOf(len(names), "definition stays", "definitions stay"), c.some(names))}
}

// pointOfChanges describes non-breaking changes that a person should read.
func (c comment) pointOfChanges() point {
	changed := slices.DeleteFunc(c.served(), func(s Step) bool { return len(s.noticed()) == 0 })
	if len(changed) == 0 {
		return point{}
	}
	p := point{text: fmt.Sprintf("**Changes the behaviour of %s:** defaults, or how fields are merged. Nothing breaks.", moreOf(len(changed), "schema", "schemas"))}
	spec, status := byField(changed, Step.noticed)
	for _, f := range append(spec, status...) {
		p.items = append(p.items, c.field(f, len(changed)))
	}
	return p
}

// pointOfFindings lists the findings of a severity.
func (c comment) pointOfFindings(of manifest.Severity) point {
	var p point
	for _, f := range c.Findings {
		if f.Severity != of {
			continue
		}
		text := code(clip(f.Message, mostInPoint))
		if f.Origin.Path != "" {
			text = c.place(f.Origin) + ": " + text
		}
		p.items = append(p.items, text)
	}
	if len(p.items) > 0 {
		word := strings.Replace(c.finding(), "finding", string(of), 1)
		p.text = fmt.Sprintf("**Has %s.**", moreOf(len(p.items), word, word+"s"))
	}
	return p
}

func (c comment) pointOfMemory() point {
	if c.Preview == nil || !c.Preview.Memory.Differs() {
		return point{}
	}
	about := ""
	if c.Preview.Memory.Estimates() {
		about = ", an estimate"
	}
	return point{text: fmt.Sprintf("**Memory of an API server:** %s%s.", c.Preview.Memory, about)}
}

func (c comment) pointOfInactive() point {
	all := c.inactiveBreaks()
	if len(all) == 0 {
		return point{}
	}
	var names []string
	for _, s := range all {
		names = append(names, s.name())
	}
	return point{text: fmt.Sprintf("**Inactive:** %s: %s. Nothing happens in the cluster.", moreOf(len(all), "definition breaks or goes", "definitions break or go"), c.some(names))}
}

// mostInPoint is the maximum number of characters of a message in a point.
const mostInPoint = 240

// mostNamed is the maximum number of names of similar things in a point.
const mostNamed = 3

// some quotes the first names and counts the others.
func (c comment) some(names []string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = quoted(name)
	}
	return someOf(parts, mostNamed)
}

// calledAll names the objects of steps. For a single step, it includes the place.
func (c comment) calledAll(steps []Step) string {
	if len(steps) == 1 {
		return quoted(steps[0].name()) + c.at(steps[0].Origin)
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.name())
	}
	return c.some(names)
}

// kinds names the kinds of steps. It names a kind only once if a cluster-scoped and a namespaced version exist:
// "buckets.s3.aws[.m].upbound.io".
func (c comment) kinds(steps []Step) string {
	var names []string
	index := map[string]int{}
	for _, s := range steps {
		clusterScoped := strings.Replace(s.ID.Name, ".m.", ".", 1)
		i, known := index[clusterScoped]
		switch {
		case !known:
			index[clusterScoped] = len(names)
			names = append(names, s.ID.Name)
		case names[i] != s.ID.Name && s.ID.Name != clusterScoped:
			names[i] = strings.Replace(s.ID.Name, ".m.", "[.m].", 1)
		case names[i] != s.ID.Name:
			names[i] = strings.Replace(names[i], ".m.", "[.m].", 1)
		}
	}
	return c.some(names)
}

// A field is one change of schemas with the steps that make it.
type field struct {
	change   string
	versions []string // that the change is in, if they are the same for all steps
	also     bool     // the same change in initProvider
	steps    []Step
}

// byField groups changes of schemas by field, and separates spec from status. In each, changes of kinds that the commit uses come first,
// and then the most frequent ones.
func byField(steps []Step, of func(Step) []plan.SchemaChange) (spec, status []field) {
	index := map[string]int{}
	var all []field
	var inStatus []bool
	for _, s := range steps {
		changes, below := fieldsOf(of(s))
		for n, f := range changes {
			key := fmt.Sprintf("%s %t", f.change, f.also)
			i, known := index[key]
			if !known {
				i = len(all)
				index[key] = i
				all, inStatus = append(all, f), append(inStatus, below[n])
			}
			if !slices.Equal(all[i].versions, f.versions) {
				all[i].versions = nil
			}
			all[i].steps = append(all[i].steps, s)
		}
	}
	for i, f := range all {
		if inStatus[i] {
			status = append(status, f)
		} else {
			spec = append(spec, f)
		}
	}
	for _, fields := range [][]field{spec, status} {
		slices.SortStableFunc(fields, func(a, b field) int { return cmp.Or(compareUse(a.steps, b.steps), len(b.steps)-len(a.steps)) })
	}
	return spec, status
}

// fieldsOf returns the changed fields of one definition, and whether each is in the status. A change in initProvider belongs to the
// same change of the same version in forProvider, if there is one.
func fieldsOf(changes []plan.SchemaChange) (all []field, inStatus []bool) {
	in := func(provider string, change plan.SchemaChange) bool {
		below, is := strings.CutPrefix(change.Path, "spec."+provider+".")
		twin := map[string]string{"initProvider": "forProvider", "forProvider": "initProvider"}[provider]
		change.Path = "spec." + twin + "." + below
		return is && slices.Contains(changes, change)
	}
	index := map[string]int{}
	for _, change := range changes {
		if in("initProvider", change) {
			continue
		}
		also, version := in("forProvider", change), change.Version
		change.Version = ""
		key := fmt.Sprintf("%s %t", change, also)
		i, known := index[key]
		if !known {
			i = len(all)
			index[key] = i
			all, inStatus = append(all, field{change: change.String(), also: also}), append(inStatus, change.InStatus())
		}
		if version != "" && !slices.Contains(all[i].versions, version) {
			all[i].versions = append(all[i].versions, version)
		}
	}
	return all, inStatus
}

// field returns one change of schemas as an item of a point, of so many kinds that change.
func (c comment) field(f field, of int) string {
	message := quoted(f.change)
	if f.also {
		message += ", also in `initProvider`"
	}
	if len(f.versions) > 0 {
		message += " (" + c.some(f.versions) + ")"
	}
	if len(f.steps) == of && of > mostNamed {
		return fmt.Sprintf("%s: all %d kinds", message, of)
	}
	return message + ": " + c.kinds(f.steps)
}

// usedAt describes where the commit uses the kinds of steps.
func (c comment) usedAt(steps []Step) string {
	var places []string
	for _, s := range steps {
		for _, at := range s.UsedAt {
			if text := c.place(at); !slices.Contains(places, text) {
				places = append(places, text)
			}
		}
	}
	switch {
	case len(places) > 0:
		return "; used at " + someOf(places, mostNamed)
	case slices.ContainsFunc(steps, func(s Step) bool { return !s.gives(reason.UnusedInCommit) }):
		return ""
	}
	return "; nothing in this commit uses " + map[bool]string{true: "it", false: "them"}[len(steps) == 1]
}
