// Package check judges the objects of a commit against the kinds that its sources know, as an API server would. It counts every
// object that it cannot judge.
package check

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Extent is how much of an API group a Source knows.
type Extent int

// The extents, in order.
const (
	None Extent = iota
	Some        // the group may have kinds that the Source does not hold
	All         // a kind of the group that the Source does not hold is an error
)

// A Source knows kinds of some API groups.
type Source interface {
	Groups() []string
	Knows(group string) Extent
	Kind(gk schema.GroupKind) (Kind, bool)
	Kinds(group string) []schema.GroupKind // for suggestions
}

// Every is a Source that checks something of every object, whatever its kind, such as its metadata. kind is nil if no Source holds it.
// NotChecked of the result does not count.
type Every interface {
	Every(o *unstructured.Unstructured, kind Kind) Result
	// EveryKey returns a key that identifies everything that the result depends on, except the object.
	EveryKey(kind Kind) string
}

// An Adviser is a Source that recognizes objects that a user probably meant to be of one of its kinds.
type Adviser interface {
	Advise(gvk schema.GroupVersionKind) (Advice, bool) // no Source holds the kind
}

// Advice is what is wrong with the kind of an object.
type Advice struct{ Message, Fix string }

// A Kind checks the objects of one kind.
type Kind interface {
	Versions() []string // served versions, preferred first
	Namespaced() bool
	Check(o *unstructured.Unstructured) Result // the version of o is served; Check may change o
}

// A Keyed Kind returns a key that identifies everything that its results depend on, except the object. A Memo can then store its
// results.
type Keyed interface {
	Kind
	Key() string
}

// A Growing Kind is one of which another release may serve other versions.
type Growing interface {
	Kind
	Grows() bool
}

// An Updater is a Kind that also checks updates: the rules that compare an object with the one before.
type Updater interface {
	Keyed
	Update(o, old *unstructured.Unstructured) []Problem // both are of served versions; Update may change them
	Compares() bool                                     // whether Update may find anything
}

// A Result is what a Kind finds in one object.
type Result struct {
	Errors     []Problem `json:"errors,omitempty"`     // the API server refuses the object
	Warnings   []Problem `json:"warnings,omitempty"`   // the API server accepts the object, and the author probably means something else
	NotChecked string    `json:"notChecked,omitempty"` // "" if everything that the API server checks without other objects was checked; else what was not: "rules of Deployment"
}

// A Problem is a problem with one field.
type Problem struct {
	Field   string `json:"field,omitempty"` // as Kubernetes writes it: spec.versions[0].name; "" for the whole object
	Message string `json:"message"`         // without the field
}

// about returns what a finding about the problem is about. A value that is wrong in another way is another subject; a number is not.
func (p Problem) about(id manifest.ID) manifest.About {
	return manifest.About{Object: id, Field: p.Field, Subject: numbers.ReplaceAllString(p.Message, "0")}
}

var numbers = regexp.MustCompile(`[0-9]+`)

func (p Problem) String() string { return strings.TrimPrefix(p.Field+": "+p.Message, ": ") }

// The rules.
const (
	RuleRefused = "refused"            // the API server refuses the object
	RuleKind    = "kind-unknown"       // no API server knows the kind
	RuleVersion = "version-not-served" // the kind has no such version
	RuleNear    = "kind-near"          // the kind or group may be a misspelling
	RuleDoubt   = "object-doubtful"    // a warning of a Kind
)

// NoSchema is why objects are not checked whose kind no Source knows.
const NoSchema = "their CRDs are not in this commit"

// A Report is the result of a check.
type Report struct {
	Findings []manifest.Finding // sorted
	Checked  int                // objects of which everything was checked
	Omitted  Omissions          // why other objects were not checked, or not completely, sorted by reason
}

// Check checks objects against the kinds that sources know. The first Source with a kind decides.
func Check(objects []render.Object, sources ...Source) Report {
	all := many(sources)
	results := make([]result, len(objects))
	manifest.Each(len(objects), func(i int) { results[i] = all.judge(objects[i]) })
	var r Report
	for i, of := range results {
		r.Findings = append(r.Findings, of.findings...)
		r.count(objects[i].ID.GroupKind(), of)
	}
	r.sort()
	return r
}

// Add adds another report.
func (r *Report) Add(other Report) {
	r.Findings = append(r.Findings, other.Findings...)
	r.Checked += other.Checked
	for _, o := range other.Omitted {
		r.merge(o)
	}
	r.sort()
}

func (r *Report) sort() {
	slices.SortFunc(r.Findings, manifest.Finding.Compare)
	r.Findings = slices.Compact(r.Findings)
	slices.SortStableFunc(r.Omitted, func(a, b Omission) int { return cmp.Compare(a.Reason, b.Reason) })
}

func compareKinds(a, b schema.GroupKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
}

// A result is what a check finds about one object.
type result struct {
	findings []manifest.Finding
	omits    string // what was not checked, or why nothing was
	partly   bool   // the rest was checked
}

// judge checks one object.
func (all many) judge(o render.Object) result {
	kind, known := all.kind(o.ID.GroupKind())
	r := all.every(o, kind)
	of := all.unknown
	if known {
		of = func(o render.Object) result { return judgeKnown(o, kind) }
	}
	own := of(o)
	own.findings = append(r.findings, own.findings...)
	return own
}

// judgeKnown checks an object of a known kind.
func judgeKnown(o render.Object, kind Kind) result {
	gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.ID.Kind)
	if slices.Contains(kind.Versions(), gvk.Version) {
		return resultOf(o, kind)
	}
	r := unserved(gvk, kind)
	r.findings[0].Origin, r.findings[0].About.Object = o.OriginOf("apiVersion"), o.ID
	return r
}

// unserved judges a version that a kind does not have. The origin of the finding is only the field.
func unserved(gvk schema.GroupVersionKind, kind Kind) result {
	f := manifest.Finding{
		Rule: RuleVersion, Severity: manifest.Error, Origin: manifest.Origin{Path: "apiVersion"}, About: manifest.About{Field: "apiVersion", Subject: gvk.String()},
		Message: fmt.Sprintf("the API server does not serve %s of %s in %s", gvk.Kind, groupName(gvk.Group), gvk.Version),
		Fix:     "use " + oneOf(kind.Versions()),
	}
	if of, ok := kind.(Growing); ok && of.Grows() {
		f.Severity = manifest.Warning
		f.Message = fmt.Sprintf("no release that Headgate knows serves %s of %s in %s", gvk.Kind, groupName(gvk.Group), gvk.Version)
		return result{findings: []manifest.Finding{f}, omits: "no release that Headgate knows serves their versions"}
	}
	return result{findings: []manifest.Finding{f}}
}

// oneOf returns alternatives for a sentence.
func oneOf(values []string) string {
	if len(values) == 0 {
		return "another kind: none of its versions is served"
	}
	last := len(values) - 1
	if last == 0 {
		return values[0]
	}
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// groupName returns the name of a group for a sentence.
func groupName(group string) string {
	if group == "" {
		return "the core group"
	}
	return group
}
