// Package schema compares two versions of a CRD or an MRD and returns the changes that break users of the kind. Other
// packages find the users and decide whether a change matters.
package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Rule identifies a kind of change.
type Rule string

// The rules. In addition, changes of a single place have the changed keyword of the schema as their rule: "type", "enum",
// "maxLength", "x-kubernetes-list-type".
const (
	Scope       Rule = "scope"
	Names       Rule = "names"
	Removed     Rule = "version-removed"
	Unserved    Rule = "version-unserved"
	Storage     Rule = "storage-version"
	Deprecated  Rule = "version-deprecated"
	Subresource Rule = "subresource"
	Selectable  Rule = "selectable-field"
	Field       Rule = "field-removed"
	Immutable   Rule = "immutable"
	Validation  Rule = "validation" // a CEL rule
	Required    Rule = "required"
	Default     Rule = "default"
	Scale       Rule = "scale"             // the path at which the scale subresource finds a number
	Refused     Rule = "refused"           // an API server refuses the new CEL rules
	Undecided   Rule = "pattern-undecided" // it is not known whether a new pattern refuses what the old one accepted
	Unconverted Rule = "not-converted"     // the storage version changes, and nothing converts the stored objects
	Unshared    Rule = "not-shared"        // a served version differs from the storage version, and nothing converts
)

// A Change is a place at which the new definition accepts or returns something else than the old one.
type Change struct {
	Rule     Rule   `json:"rule"`
	Version  string `json:"version,omitempty"` // "" for the definition as a whole
	Path     string `json:"path,omitempty"`    // "spec.forProvider.rules[].port"; "tags.*" for the values of a map
	From     string `json:"from,omitempty"`    // as JSON; "" if absent
	To       string `json:"to,omitempty"`
	Why      string `json:"why,omitempty"` // the effect, if objects are not converted
	Breaking bool   `json:"breaking"`      // objects or clients that were valid may no longer be
}

// Compare orders changes: first those of the definition as a whole, then by version and path.
func (c Change) Compare(other Change) int {
	return cmp.Or(
		cmp.Compare(c.Version, other.Version),
		cmp.Compare(c.Path, other.Path),
		cmp.Compare(c.Rule, other.Rule),
		cmp.Compare(c.To, other.To),
		cmp.Compare(c.From, other.From),
		cmp.Compare(c.Why, other.Why),
	)
}

// Where returns the version and the path, for messages.
func (c Change) Where() string { return strings.TrimSpace(c.Version + " " + c.Path) }

// wordings describe the changes of some rules. {from} and {to} are those of the change.
var wordings = map[Rule]string{
	Field:      "is removed",
	Removed:    "the version is removed",
	Unserved:   "the version is not served any more",
	Deprecated: "the version is deprecated",
	Selectable: "cannot be selected by any more",
	Immutable:  "cannot be changed any more: {to}",
	Undecided:  "pattern was {from} and is {to}, and it is not known whether it refuses more",
}

// What describes the change in a few words.
func (c Change) What() string {
	if words, fixed := wordings[c.Rule]; fixed {
		return strings.NewReplacer("{from}", c.From, "{to}", c.To).Replace(words)
	}
	switch c.Rule {
	case Storage:
		moves := fmt.Sprintf("objects are stored in %s, not in %s any more", c.To, c.From)
		if c.Breaking {
			moves += ", and nothing converts them (conversion None)"
		}
		return moves
	case Unconverted, Unshared, Refused:
		return c.Why
	case Subresource:
		if c.From == "" {
			return fmt.Sprintf("the subresource %s is added: writes of the object leave it out", c.To)
		}
		return fmt.Sprintf("the subresource %s is removed", c.From)
	case Validation:
		if c.To == "" {
			return "need not hold any more: " + c.From
		}
		return "must hold: " + c.To
	case Required:
		switch {
		case c.Breaking:
			return "is required now"
		case c.To != "":
			return "is required now, with the default " + c.To
		}
		return "is not required any more"
	}
	switch {
	case c.From == "":
		return fmt.Sprintf("%s is %s, and was not limited", c.Rule, c.To)
	case c.To == "":
		return fmt.Sprintf("%s is gone, and was %s", c.Rule, c.From)
	}
	return fmt.Sprintf("%s was %s and is %s", c.Rule, c.From, c.To)
}

func (c Change) String() string { return strings.TrimSpace(c.Where() + " " + c.What()) }

// A Difference is the result of comparing two versions of a definition.
type Difference struct {
	Changes []Change `json:"changes,omitempty"` // sorted
	Added   []Change `json:"added,omitempty"`   // new optional versions and fields, only the topmost ones
	Words   bool     `json:"words,omitempty"`   // descriptions, or annotations of generators, also changed
}

// Breaking returns the changes that break users.
func (d Difference) Breaking() []Change {
	return slices.DeleteFunc(slices.Clone(d.Changes), func(c Change) bool { return !c.Breaking })
}

// OnlyWords reports whether no change has an effect on an API server.
func (d Difference) OnlyWords() bool { return d.Words && len(d.Changes)+len(d.Added) == 0 }

// Compare returns the changes of an update for users of the kind. For invalid input it returns as much as it can.
func Compare(before, after *unstructured.Unstructured) Difference {
	var c comparison
	c.Words = !reflect.DeepEqual(generated(before), generated(after))
	was, is := object(before.Object["spec"]), object(after.Object["spec"])
	c.differ(Change{Rule: Scope, From: scopeOf(before), To: scopeOf(after), Breaking: true})
	c.differ(Change{Rule: Names, Path: "group", From: asJSON(was["group"]), To: asJSON(is["group"]), Breaking: true})
	id := manifest.IDOf(after)
	c.names("names", object(was["names"]), object(is["names"]), makesCRD(id))
	if from, to := object(was["claimNames"]), object(is["claimNames"]); crossplane.IsXRD(id) && from != nil && to != nil { // claims are optional, so they may be added or removed
		c.names("claimNames", from, to, true)
	}
	c.versions(versions(was), versions(is))
	c.storage(before, after)
	c.served(before, after)
	c.compiles(before, after)
	slices.SortFunc(c.Changes, Change.Compare)
	slices.SortFunc(c.Added, Change.Compare)
	return c.Difference
}

// Lacks returns the versions and fields of a definition that another one does not have, so that an API server with that one drops them.
func Lacks(of, other *unstructured.Unstructured) []string {
	var lacks []string
	for _, change := range Compare(of, other).Changes {
		if change.Breaking && slices.Contains([]Rule{Field, Removed, Unserved, Storage}, change.Rule) {
			lacks = append(lacks, change.Where())
		}
	}
	return lacks
}

// generators lists prefixes of annotations that only state which program wrote a CRD.
var generators = []string{"controller-gen.kubebuilder.io/", "api-approved.kubernetes.io"}

// generated returns the annotations of generators.
func generated(u *unstructured.Unstructured) map[string]string {
	annotations := u.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !Generated(key) })
	return annotations
}

// Generated reports whether an annotation only states which program wrote a CRD.
func Generated(annotation string) bool {
	return slices.ContainsFunc(generators, func(prefix string) bool { return strings.HasPrefix(annotation, prefix) })
}

type comparison struct {
	Difference

	loses  bool             // only losses and refusals count, because the schemas belong to two versions
	values bool             // the schemas are inside a combining keyword: they refuse values but drop nothing
	above  []map[string]any // the new schemas that contain the place
	rules  bool             // an added part has CEL rules
}

func (c *comparison) add(changes ...Change) { c.Changes = append(c.Changes, changes...) }

// differ adds a change if its two sides differ.
func (c *comparison) differ(change Change) {
	if change.From != change.To {
		c.add(change)
	}
}

// names compares the names of a kind. The names of an MRD or an XRD cannot change. The API server refuses another kind or plural of
// a CRD, but accepts other short names.
func (c *comparison) names(at string, was, is map[string]any, final bool) {
	for _, key := range keysOf(was, is) {
		c.differ(Change{Rule: Names, Path: at + "." + key, From: asJSON(was[key]), To: asJSON(is[key]), Breaking: final || key == "kind" || key == "plural"})
	}
}

// makesCRD reports whether Crossplane makes a CRD of a definition.
func makesCRD(definition manifest.ID) bool {
	return crossplane.IsMRD(definition) || crossplane.IsXRD(definition)
}

// scopeOf returns the scope of a definition, as JSON. The API server fills in the default of an MRD or an XRD.
func scopeOf(u *unstructured.Unstructured) string {
	scope := object(u.Object["spec"])["scope"]
	if scope == nil && makesCRD(manifest.IDOf(u)) {
		scope = "Namespaced"
		if u.GetAPIVersion() == crossplane.XRDAPIVersionV1 {
			scope = "LegacyCluster"
		}
	}
	return asJSON(scope)
}

func (c *comparison) versions(was, is map[string]map[string]any) {
	for _, name := range keysOf(was, is) {
		from, to := was[name], is[name]
		switch {
		case from == nil:
			c.Added = append(c.Added, Change{Rule: "version", Version: name})
			c.rules = c.rules || hasRules(to)
		case to == nil:
			c.add(Change{Rule: Removed, Version: name, Breaking: true})
		default:
			c.version(name, from, to)
		}
	}
}

func (c *comparison) version(name string, was, is map[string]any) {
	if was["served"] == true && is["served"] != true {
		c.add(Change{Rule: Unserved, Version: name, Breaking: true})
	}
	if was["deprecated"] != true && is["deprecated"] == true {
		c.add(Change{Rule: Deprecated, Version: name})
	}
	from, to := object(was["subresources"]), object(is["subresources"])
	for _, sub := range slices.Sorted(maps.Keys(from)) {
		if _, kept := to[sub]; !kept {
			c.add(Change{Rule: Subresource, Version: name, From: sub, Breaking: true})
		}
	}
	if from["status"] == nil && to["status"] != nil {
		c.add(Change{Rule: Subresource, Version: name, To: "status", Breaking: true})
	}
	c.scale(name, object(from["scale"]), object(to["scale"]))
	selectable := list(is["selectableFields"])
	for _, field := range list(was["selectableFields"]) {
		if !slices.ContainsFunc(selectable, func(f any) bool { return reflect.DeepEqual(f, field) }) {
			path, _ := object(field)["jsonPath"].(string)
			c.add(Change{Rule: Selectable, Version: name, Path: strings.TrimPrefix(path, "."), Breaking: true})
		}
	}
	c.schema(location{version: name}, schemaOf(was), schemaOf(is))
}

// scale compares the paths of the scale subresource.
func (c *comparison) scale(version string, was, is map[string]any) {
	if was == nil || is == nil {
		return
	}
	for _, path := range keysOf(was, is) {
		from := asJSON(was[path])
		c.differ(Change{Rule: Scale, Version: version, Path: path, From: from, To: asJSON(is[path]), Breaking: from != ""})
	}
}

// versions returns the versions of a definition by name.
func versions(spec map[string]any) map[string]map[string]any {
	byName := map[string]map[string]any{}
	for _, v := range list(spec["versions"]) {
		if name, ok := object(v)["name"].(string); ok {
			byName[name] = object(v)
		}
	}
	return byName
}

// stored returns the storage version: for an XRD, the version that Compositions may refer to.
func stored(versions map[string]map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if versions[name]["storage"] == true || versions[name]["referenceable"] == true {
			return name
		}
	}
	return ""
}

func schemaOf(version map[string]any) map[string]any {
	return object(object(version["schema"])["openAPIV3Schema"])
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	items, _ := v.([]any)
	return items
}

// asJSON returns a value as JSON, and "" for nil.
func asJSON(v any) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// keysOf returns the keys of both maps, sorted.
func keysOf[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
