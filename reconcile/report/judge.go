package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// A Word is the judgement on a comparison: whether to merge it.
type Word string

// The words, from best to worst.
const (
	Safe    Word = "safe"
	Look    Word = "look"
	Blocked Word = "blocked"
)

var looksOf = map[Word]string{Safe: "✅ Safe", Look: "👀 Look", Blocked: "⛔ Blocked"}

// title returns the word with a capital letter.
func (w Word) title() string { return capital(string(w)) }

// A Judgement is the word for a comparison with its reasons.
type Judgement struct {
	Word    Word     `json:"word"`
	Because []Ground `json:"because,omitempty"` // the worst first
}

// A Ground is one reason for a judgement: the number of similar things, and the word that each of them requires.
type Ground struct {
	Word  Word   `json:"word"`
	Cause string `json:"cause"`
	Count int    `json:"count"`
	Text  string `json:"text"`
}

// Judge returns the judgement on a comparison. This function is the only table of judgements. The word is that of the
// worst ground, or Safe without grounds.
func Judge(r Report) Judgement {
	var all []Ground
	add := func(word Word, cause string, n int, one, many string) {
		text := one
		if n != 1 {
			text = fmt.Sprintf(many, n)
		}
		if n > 0 {
			all = append(all, Ground{word, cause, n, text})
		}
	}
	if r.Error != "" {
		return Judgement{Blocked, []Ground{{Blocked, "error", 1, firstLine(r.Error)}}}
	}
	is, was := r.uses()
	stuck, held, excused, passed := r.holds()
	add(Blocked, "failed", r.Summary.Failed, "fails on 1 object", "fails on %d objects")
	add(Blocked, "unread", len(r.Unread()), "cannot read 1 package", "cannot read %d packages")
	add(Blocked, "errors", len(r.errors()), "has 1 error", "has %d errors")
	lost := len(r.named(func(s Step) bool { return s.Action == plan.Hold && s.Guard == guard.PackageLost && !s.excused }))
	add(Blocked, "package-lost", lost, "loses a package, and 1 object depends on it", "loses a package, and %d objects depend on it")
	add(Blocked, "holds", stuck, "holds 1 object back, which cannot be approved", "holds %d objects back, which cannot be approved")
	add(Blocked, "holds", held, "holds 1 object back", "holds %d objects back")
	add(Blocked, "breaks", is[breaksUsed], "breaks 1 schema", "breaks %d schemas")
	add(Blocked, "unconverted", is[unconverts], "leaves objects of 1 kind unconverted", "leaves objects of %d kinds unconverted")
	add(Blocked, "drops", is[dropsUsed], "drops 1 kind", "drops %d kinds")
	add(Blocked, "deletes-kinds", is[deletesUsed], "deletes 1 kind whose use is not known", "deletes %d kinds whose use is not known")

	if n := excused + passed + was[breaksUsed] + was[unconverts] + was[dropsUsed] + was[deletesUsed]; n > 0 {
		all = append(all, Ground{Look, "approved", n, "approved " + r.approvers()})
		add(Look, "holds", excused, "holds 1 object back", "holds %d objects back")
		add(Look, "breaks", was[breaksUsed], "breaks 1 schema", "breaks %d schemas")
		add(Look, "unconverted", was[unconverts], "leaves objects of 1 kind unconverted", "leaves objects of %d kinds unconverted")
		add(Look, "drops", was[dropsUsed], "drops 1 kind", "drops %d kinds")
		add(Look, "deletes-kinds", was[deletesUsed], "deletes 1 kind whose use is not known", "deletes %d kinds whose use is not known")
	}
	if r.Preview != nil && r.Preview.Repairs {
		add(Look, "repairs", 1, "repairs the target branch, which cannot be rendered", "")
	}
	if r.Preview != nil && r.Preview.Owner != "" {
		add(Look, "owner", 1, "changes who makes the CRDs", "")
	}
	add(Look, "base-unread", len(r.Unseen()), "cannot read 1 package of the base", "cannot read %d packages of the base")
	add(Look, "breaks-unused", is[breaksUnused], "breaks 1 schema that nothing uses", "breaks %d schemas that nothing uses")
	add(Look, "breaks-no-object", is[breaksNoObject], "breaks 1 schema, and all its objects fit", "breaks %d schemas, and all their objects fit")
	add(Look, "breaks-status", is[breaksStatus], "breaks 1 status that nothing here reads", "breaks %d statuses that nothing here reads")
	add(Look, "drops-unused", is[dropsUnused], "drops 1 kind that nothing uses", "drops %d kinds that nothing uses")
	add(Look, "deletes", r.Summary.Pruned-is[deletesUsed]-was[deletesUsed], "deletes 1 object", "deletes %d objects")
	add(Look, "takes-back", r.Summary.Deactivated, "deactivates 1 definition", "deactivates %d definitions")
	named, wild := r.opened()
	add(Look, "activates-by-wildcard", wild, "activates 1 definition that no policy names in full", "activates %d definitions that no policy names in full")
	add(Look, "defaults", is[changesDefault], "changes the defaults of 1 kind", "changes the defaults of %d kinds")
	add(Look, "patterns", is[mayRefuse], "changes a pattern of 1 kind, which may refuse more", "changes patterns of %d kinds, which may refuse more")
	add(Look, "merges", is[mergesOtherwise], "changes how lists or maps of 1 kind merge", "changes how lists or maps of %d kinds merge")
	add(Look, "deprecates", is[deprecates], "deprecates a version of 1 kind", "deprecates versions of %d kinds")
	add(Look, "moves-storage", is[movesStorage], "stores 1 kind in another version", "stores %d kinds in other versions")
	if r.Preview != nil {
		add(Look, "unsigned", r.Preview.Unsigned, "stops demanding 1 signature of packages", "stops demanding %d signatures of packages")
		add(Look, "uncontrolled", r.Preview.Uncontrolled, "upgrades a package with 1 object that an old revision controls", "upgrades packages with %d objects that old revisions control")
		add(Look, "unconfirmed", r.Preview.Unconfirmed, "keeps the schemas of 1 definition, which no registry confirms", "keeps the schemas of %d definitions, which no registry confirms")
		add(Look, "warnings", r.Preview.Warnings, "adds 1 warning", "adds %d warnings")
		add(Look, "retains", len(r.Preview.Leaves), "keeps 1 definition active that no policy names any more", "keeps %d definitions active that no policy names any more")
	}
	add(Look, "unjudged", is[unjudged], "changes 1 object that Headgate does not judge", "changes %d objects that Headgate does not judge")

	add(Safe, "activates", named, "activates 1 definition", "activates %d definitions")
	if len(all) == 0 {
		add(Safe, "changes", r.Summary.Created+r.Summary.Updated, "changes 1 object", "changes %d objects")
	}
	add(Safe, "inactive-breaks", len(r.inactiveBreaks()), "1 inactive one breaks", "%d inactive ones break")
	if len(all) == 0 {
		return Judgement{Word: Safe}
	}
	return Judgement{all[0].Word, all}
}

// errors returns the findings that are errors.
func (r Report) errors() []manifest.Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f manifest.Finding) bool { return f.Severity != manifest.Error })
}

// A consequence is the effect of a step on the users of a kind.
type consequence int

const (
	nothing consequence = iota
	unjudged
	movesStorage
	deprecates
	mergesOtherwise
	changesDefault
	mayRefuse // a pattern, but that is not known
	breaksStatus
	breaksUnused
	breaksNoObject
	breaksUsed
	unconverts
	dropsUnused
	dropsUsed
	deletesUsed
)

// uses counts the steps and upgrades by their worst consequence. It counts approved ones separately.
func (r Report) uses() (count, approved map[consequence]int) {
	count, approved = map[consequence]int{}, map[consequence]int{}
	live := r.Preview != nil && r.Preview.Live
	for _, s := range slices.Concat(r.Steps, r.Upgrades) {
		switch c := r.consequence(s, live); {
		case s.passes() && blocking(c):
			approved[c]++
		default:
			count[c]++
		}
	}
	return count, approved
}

// holds counts the held steps: those that cannot be approved, those that wait for an approval, and those that have
// one. passed counts the steps that the plan does not hold because of an approval.
func (r Report) holds() (stuck, waiting, excused, passed int) {
	waiting = r.Summary.Held
	for _, s := range r.Steps {
		switch {
		case s.Approved && s.Action != plan.Hold:
			passed++
		case s.Action != plan.Hold || s.Error != "":
		case s.excused:
			excused++
			waiting--
		case s.Guard == guard.PackageLost: // Judge has a separate ground for these
			waiting--
		case !s.approvable:
			stuck++
			waiting--
		}
	}
	return stuck, waiting, excused, passed
}

func (r Report) consequence(s Step, live bool) consequence {
	broken := s.Breaks
	onlyStatus := len(broken) > 0 && !slices.ContainsFunc(broken, func(c plan.SchemaChange) bool { return !c.InStatus() })
	// Guards ask a cluster for the number of objects, and add nothing if there are none. For an upgrade, their
	// answers are in the step of the package, so the upgrade itself must state that no objects exist.
	unused := s.unused && live && (len(s.because) == 0 && s.Package == "" || s.gives(plan.NoObjects))
	switch {
	case s.Action == plan.Hold && s.active && len(broken) > 0:
		return s.breaksHow()
	case s.Error != "", s.Action == plan.Hold: // counted as a failure or a hold
		return nothing
	case s.Package != "" && s.Action == plan.Keep && s.active && unused:
		return dropsUnused
	case s.Package != "" && s.Action == plan.Keep && s.active:
		return dropsUsed
	case s.Action == plan.Prune && crossplane.IsMRD(s.ID) && !s.active: // counted as a deletion
		return nothing
	case s.Action == plan.Prune && crossplane.DeclaresKind(s.ID) && s.gives(guard.UsersUnseen, guard.UsersNotCounted, guard.UsersUnknown):
		return deletesUsed
	case s.Action == plan.Create && crossplane.IsImageConfig(s.ID): // it can make Crossplane install other images of existing packages
		return unjudged
	case s.Action != plan.Update:
		return nothing
	case (s.isDefinition() || len(s.Breaks) > 0) && !s.active:
		return nothing
	case onlyStatus && s.unused:
		return breaksStatus
	case len(broken) > 0 && unused:
		return breaksUnused
	case len(broken) > 0 && s.gives(guard.BreaksNoObject) && !s.gives(guard.WebhookUnseen, guard.VersionsUnseen):
		return breaksNoObject
	case len(broken) > 0, s.gives(guard.WebhookUnseen, guard.VersionsUnseen):
		return s.breaksHow()
	case s.altersBy("pattern-undecided"):
		return mayRefuse
	case s.altersBy("default"):
		return changesDefault
	case slices.ContainsFunc(s.alters, merges):
		return mergesOtherwise
	case s.altersBy("version-deprecated"):
		return deprecates
	case s.altersBy("storage-version"):
		return movesStorage
	case s.isDefinition(), crossplane.IsMRAP(s.ID), r.judgedAsPackage(s):
		return nothing
	}
	return unjudged
}

// breaksHow returns how a step breaks the use of its kind: by its schema, or only because nothing converts objects
// between versions.
func (s Step) breaksHow() consequence {
	if len(s.Breaks) > 0 && len(s.ownBreaks()) == 0 {
		return unconverts
	}
	return breaksUsed
}

// judgedAsPackage reports whether a step only makes Crossplane install another version of a provider, and either its
// definitions were compared or the image is the same.
func (r Report) judgedAsPackage(s Step) bool {
	if s.ID.Kind != crossplane.Provider || len(s.Changes) != 1 || s.Changes[0].Path != "spec.package" {
		return false
	}
	if slices.ContainsFunc(r.Bumps, func(b plan.Bump) bool { return b.By == s.ID }) {
		return true
	}
	from, _ := crossplane.SplitImage(strings.Trim(s.Changes[0].From, `"`))
	to, _ := crossplane.SplitImage(strings.Trim(s.Changes[0].To, `"`))
	return from == to && slices.ContainsFunc(r.Packages, func(p Package) bool { return p.Source == to })
}

// altersBy reports whether a step has a non-breaking change by a rule.
func (s Step) altersBy(rule string) bool {
	return slices.ContainsFunc(s.alters, func(c plan.SchemaChange) bool { return string(c.Rule) == rule })
}

// inactiveBreaks returns the inactive definitions that break or disappear. No API serves them, but a policy may
// activate them later. What a step deletes counts as deleted instead.
func (r Report) inactiveBreaks() []Step {
	steps := slices.DeleteFunc(slices.Clone(r.Steps), func(s Step) bool { return s.Action == plan.Prune })
	return slices.DeleteFunc(slices.Concat(steps, r.Upgrades, r.Inactive), func(s Step) bool {
		breaks := s.Action == plan.Update && len(s.Breaks) > 0
		goes := s.Action == plan.Prune || s.Package != "" && s.Action == plan.Keep
		return !s.isDefinition() || s.active || !breaks && !goes
	})
}

// noticed returns the non-breaking changes of a step that the judgement counts, without changes of versions.
func (s Step) noticed() []plan.SchemaChange {
	return slices.DeleteFunc(slices.Clone(s.alters), func(c plan.SchemaChange) bool {
		return c.Rule != "default" && c.Rule != "pattern-undecided" && !merges(c)
	})
}

// merges reports whether a change makes server-side apply replace a list or a map that it merged before.
func merges(c plan.SchemaChange) bool {
	switch c.Rule {
	case "x-kubernetes-list-type":
		return c.From == `"map"` || c.From == `"set"`
	case "x-kubernetes-list-map-keys":
		return c.From != "" && c.To != ""
	case "x-kubernetes-map-type":
		return c.To == `"atomic"`
	}
	return false
}

// gives reports whether the reason of a step has one of these codes.
func (s Step) gives(codes ...plan.Code) bool {
	return slices.ContainsFunc(s.because, func(c plan.Code) bool { return slices.Contains(codes, c) })
}

// codesIn returns the codes of a reason and its nested reasons.
func codesIn(why plan.Reason) []plan.Code {
	if why.None() {
		return nil
	}
	all := []plan.Code{why.Code}
	for _, v := range why.Values {
		switch v := v.(type) {
		case plan.Reason:
			all = append(all, codesIn(v)...)
		case []plan.Reason:
			for _, r := range v {
				all = append(all, codesIn(r)...)
			}
		}
	}
	return all
}

// opened counts the definitions that become active because something names them in full, and those that become active
// because of a pattern or a package.
func (r Report) opened() (named, wild int) {
	if r.Preview == nil {
		return 0, 0
	}
	for _, g := range opened(r.Preview.Opens) {
		for _, name := range g.names {
			if inFull(g.by, name) {
				named++
			} else {
				wild++
			}
		}
	}
	return named, wild
}

// inFull reports whether an activator names the definition in full.
func inFull(a activation.Activator, name string) bool {
	return a.Cause == activation.Declared || a.Pattern == name
}

// used finds the uses of broken kinds in the commit: objects that mention the kind, such as an object of it or a Composition. An
// unreadable object counts as a use.
func (r Report) used(want render.Desired) {
	broken := r.broken()
	if len(broken) == 0 {
		return
	}
	for _, o := range want.Objects {
		if !crossplane.DeclaresKind(o.ID) && !crossplane.IsMRAP(o.ID) && !crossplane.IsPackage(o.ID) {
			broken.usedBy(o)
		}
	}
	for _, l := range want.Left {
		if l.Composition != nil {
			broken.usedBy(*l.Composition)
		}
	}
}

// brokenKinds holds the steps that break kinds, by group and kind. The kind "" is every kind of the group.
type brokenKinds map[string]map[string][]*Step

// broken returns the kinds that break although they are active. Their steps count as unused until a use is found.
func (r Report) broken() brokenKinds {
	all := brokenKinds{}
	for _, steps := range [][]Step{r.Steps, r.Upgrades} {
		for i := range steps {
			s := &steps[i]
			_, group, _ := strings.Cut(s.ID.Name, ".")
			dropped := s.Action == plan.Keep // a new version of a package no longer has the kind
			if group == "" || !s.active || !crossplane.DeclaresKind(s.ID) {
				continue
			}
			if len(s.Breaks) == 0 && !dropped {
				continue
			}
			s.unused = true
			if all[group] == nil {
				all[group] = map[string][]*Step{}
			}
			all[group][s.kindOf] = append(all[group][s.kindOf], s)
		}
	}
	return all
}

// usedBy records an object as a use of the kinds that it mentions. An object of a kind also mentions it.
func (broken brokenKinds) usedBy(o render.Object) {
	text, unread := contentOf(o)
	mentions := func(word string) bool { return unread || bytes.Contains(text, []byte(word)) }
	for group, kinds := range broken {
		if !mentions(group) {
			continue
		}
		for kind, steps := range kinds {
			if !mentions(kind) {
				continue
			}
			for _, s := range steps {
				s.unused, s.UsedAt = false, append(s.UsedAt, o.Origin)
			}
		}
	}
}

// contentOf returns the JSON of an object. unread is true if the object cannot be read.
func contentOf(o render.Object) (text []byte, unread bool) {
	u, err := o.Content()
	if err != nil {
		return nil, true
	}
	text, err = u.MarshalJSON()
	return text, err != nil
}
