package report

import (
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/legible"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/reason"
	"headgate.dev/headgate/render/manifest"
)

// This file has the points about the versions of kinds: which version is stored, which ones are served, and what
// converts objects between them.

// The rules for changes of versions.
const (
	ruleStorage     = "storage-version"
	ruleUnconverted = "not-converted"
	ruleUnshared    = "not-shared"
	ruleDeprecated  = "version-deprecated"
)

// ownBreaks returns the breaking changes of a step, without those between versions, which have separate points.
func (s Step) ownBreaks() []plan.SchemaChange {
	return slices.DeleteFunc(slices.Clone(s.Breaks), plan.SchemaChange.BetweenVersions)
}

// Breaking returns the steps and upgrades that break a served kind.
func (r Report) Breaking() []Step {
	return slices.DeleteFunc(slices.Concat(r.Steps, r.Upgrades), func(s Step) bool { return len(s.Breaks) == 0 || !s.active })
}

// Dropped returns the served kinds that the new version of their package no longer contains.
func (r Report) Dropped() []Step {
	return slices.DeleteFunc(slices.Clone(r.Upgrades), func(s Step) bool { return s.Action != plan.Keep || !s.active })
}

// inactiveBreaks returns the inactive definitions that break or disappear. No API serves them, but a policy may
// activate them later.
func (r Report) inactiveBreaks() []Step {
	return slices.DeleteFunc(slices.Concat(r.Steps, r.Upgrades, r.Inactive), func(s Step) bool { return !s.gives(reason.InactiveBreaks) })
}

// noticed returns the non-breaking changes of a step that the judgement counts, without changes of versions.
func (s Step) noticed() []plan.SchemaChange {
	return slices.DeleteFunc(slices.Clone(s.alters), func(c plan.SchemaChange) bool { return !c.ChangesBehaviour() })
}

// served returns the steps and upgrades that change a served kind.
func (c comment) served() []Step {
	return slices.DeleteFunc(slices.Concat(c.Steps, c.Upgrades), func(s Step) bool { return !s.active })
}

// pointOfMoves lists the kinds whose storage version moves without conversion.
func (c comment) pointOfMoves() point {
	moves := func(s Step) string {
		for _, b := range s.Breaks {
			if b.Rule == ruleStorage {
				return quoted(b.From) + " → " + quoted(b.To)
			}
		}
		return ""
	}
	return c.pointOfUnconverted(moves, ruleUnconverted, "**Stores %s in another version, and nothing converts the objects.** The next write of an object drops the fields that this version does not have. Add a conversion webhook, or change the objects before the merge.")
}

// pointOfServed lists the kinds with a served version that differs from the stored one.
func (c comment) pointOfServed() point {
	versions := func(s Step) string {
		var names []string
		for _, b := range s.Breaks {
			if name := quoted(b.Version); b.Rule == ruleUnshared && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return strings.Join(names, ", ")
	}
	return c.pointOfUnconverted(versions, ruleUnshared, "**Serves %s in versions that differ, and nothing converts the objects.** An update in one version drops what only the other one has. Add a conversion webhook, or give both versions the same fields.")
}

// pointOfUnconverted groups kinds by the versions between which nothing converts objects. versions returns "" for
// other kinds. The point names the fields that break by a rule. message has a verb for the number of kinds.
func (c comment) pointOfUnconverted(versions func(Step) string, rule, message string) point {
	all := slices.DeleteFunc(c.Breaking(), func(s Step) bool { return versions(s) == "" })
	if len(all) == 0 {
		return point{}
	}
	p := point{text: fmt.Sprintf(message, moreOf(len(all), "kind", "kinds"))}
	for _, alike := range groups(all, versions) {
		p.items = append(p.items, fmt.Sprintf("%s: %s; %s%s", versions(alike[0]), c.kinds(alike), c.fieldsOf(alike, rule), c.usedAt(alike)))
	}
	return p
}

// fieldsOf counts and names the fields that break by a rule.
func (c comment) fieldsOf(steps []Step, rule string) string {
	var paths []string
	for _, s := range steps {
		for _, b := range s.Breaks {
			if string(b.Rule) == rule && !slices.Contains(paths, b.Path) {
				paths = append(paths, b.Path)
			}
		}
	}
	return fmt.Sprintf("%s: %s", moreOf(len(paths), "field differs", "fields differ"), c.some(paths))
}

// A cause is a change of versions that loses nothing, and that often explains many changes in a package upgrade.
type cause struct {
	of        func(Step) string // the key of a group; "" if the cause does not apply to a step
	one, many string
	item      string // the beginning of an item about a group
	named     bool   // the item names the key
}

var causes = []cause{
	{ruleOf(ruleStorage), "kind is stored in another version", "kinds are stored in another version", "stored in another version, ", true},
	{func(s Step) string { return map[bool]string{true: "added"}[s.ConversionAdded] }, "kind gets a conversion webhook", "kinds get a conversion webhook", "conversion webhook", false},
	{ruleOf(ruleDeprecated), "kind has a version that becomes deprecated", "kinds have a version that becomes deprecated", "deprecated, ", true},
}

// ruleOf returns a function for the versions that a step changes by a rule without breaking anything.
func ruleOf(rule string) func(Step) string {
	return func(s Step) string {
		var names []string
		for _, a := range s.alters {
			switch {
			case string(a.Rule) != rule:
			case rule == ruleStorage:
				names = append(names, quoted(a.From)+" → "+quoted(a.To))
			default:
				names = append(names, quoted(a.Version))
			}
		}
		return strings.Join(names, ", ")
	}
}

// concerned returns the kinds to which a cause applies, grouped by its key.
func (c comment) concerned(by cause) [][]Step {
	return groups(slices.DeleteFunc(c.served(), func(s Step) bool { return by.of(s) == "" }), by.of)
}

// about returns the item of a group of kinds.
func (c cause) about(alike []Step) string {
	if c.named {
		return c.item + c.of(alike[0])
	}
	return c.item
}

func (c comment) pointOfVersions() point {
	var p point
	var counts []string
	for _, by := range causes {
		n := 0
		for _, alike := range c.concerned(by) {
			n += len(alike)
			p.items = append(p.items, by.about(alike)+": "+c.kinds(alike))
		}
		if n > 0 {
			counts = append(counts, moreOf(n, by.one, by.many))
		}
	}
	if len(counts) > 0 {
		p.text = fmt.Sprintf("**Versions:** %s.", strings.Join(counts, ", "))
	}
	return p
}

// versions lists the kinds whose versions change without losing anything.
func (c comment) versions() []section {
	var items []item
	for _, by := range causes {
		items = append(items, itemsOf(c.concerned(by), func(alike []Step) string {
			return fmt.Sprintf("- %s: %s\n", by.about(alike), c.names(alike, ""))
		})...)
	}
	if len(items) == 0 {
		return nil
	}
	return []section{{title: "Versions", items: items}}
}

// pointOfCopies lists the packages in the tree whose release changes.
func (c comment) pointOfCopies() point {
	if c.Preview == nil || len(c.Preview.Copies) == 0 {
		return point{}
	}
	p := point{text: fmt.Sprintf("**Changes the release of %s in the tree.**", moreOf(len(c.Preview.Copies), "package", "packages"))}
	for _, one := range c.Preview.Copies {
		p.items = append(p.items, fmt.Sprintf("%s: %s → %s%s", quoted(one.Package), releaseOf(one.From), releaseOf(one.To), c.at(&one.Origin)))
	}
	return p
}

func releaseOf(release string) string {
	if release == "" {
		return "not known"
	}
	return quoted(release)
}

// A Copy is a package in the tree whose release changes.
type Copy struct {
	Package string          `json:"package"`
	From    string          `json:"from,omitempty"` // "" if its metadata does not name it
	To      string          `json:"to,omitempty"`
	Origin  manifest.Origin `json:"origin"`
}

// A Version is a possible version of a package, with the judgement on a commit that uses it.
type Version struct {
	Version string `json:"version"`
	Word    Word   `json:"word,omitempty"`    // "" if it was not judged
	Text    string `json:"text,omitempty"`    // the worst grounds
	Unknown string `json:"unknown,omitempty"` // the reason if it could not be judged
}

// VersionOf returns a version with the judgement of a report on it.
func VersionOf(version string, r Report, err error) Version {
	v := Version{Version: version, Word: r.Judgement.Word, Text: r.firstGrounds(mostGrounds)}
	if err != nil {
		v = Version{Version: version, Unknown: firstLine(legible.Text(err.Error()))}
	}
	return v
}

func (v Version) String() string {
	switch {
	case v.Unknown != "":
		return "not known: " + v.Unknown
	case v.Word == "":
		return "not judged"
	}
	return string(v.Word) + ": " + v.Text
}

// WithVersions returns the report on an upgrade with the versions up to it.
func (r Report) WithVersions(all []Version) Report {
	if r.Preview != nil && len(all) > 0 {
		preview := *r.Preview
		preview.Versions = all
		r.Preview = &preview
	}
	return r
}

// pointOfSteps names the versions up to an upgrade.
func (c comment) pointOfSteps() point {
	if c.Preview == nil || len(c.Preview.Versions) == 0 {
		return point{}
	}
	last := len(c.Preview.Versions) - 1
	p := point{text: "**No version in between is safe.**"}
	if last == 0 {
		p.text = "**No version is in between.**"
	}
	for i, v := range c.Preview.Versions {
		if v.Word == Safe && i < last {
			p.text = fmt.Sprintf("**Smaller step:** the last version that is safe is %s.", quoted(v.Version))
		}
		p.items = append(p.items, quoted(v.Version)+" "+escape(v.String()))
	}
	return p
}

// versions lists the versions up to an upgrade.
func (t Text) versions(b *strings.Builder, of *Preview) {
	if of == nil || len(of.Versions) == 0 {
		return
	}
	b.WriteString("versions:\n")
	for _, v := range of.Versions {
		fmt.Fprintf(b, "    %-10s %s\n", legible.Line(v.Version), legible.Line(v.String()))
	}
}
