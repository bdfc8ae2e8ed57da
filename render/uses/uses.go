// Package uses decides which kinds a commit uses: the kinds of its objects, and those that its Compositions, other objects and the
// programs of its functions name. Lint and suggest both ask it, so that they agree.
package uses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Uses is what a commit uses, sorted by place.
type Uses struct {
	All    []Use
	Unread []Unread
}

// A Use is a place in a commit that uses a kind.
type Use struct {
	Name
	By       manifest.ID // the object that holds the place; zero in the source of a function
	Instance bool        // By is an object of the kind, instead of naming it

	position
}

// An Unread is a place that may use more kinds than Uses knows.
type Unread struct {
	By   manifest.ID // zero for the source of a function
	Why  string
	Step bool // a step of a pipeline runs a function whose program is elsewhere; lint does not repeat that

	position
}

// A Name is the way in which a place names a kind.
type Name struct {
	Group, Version, Kind string

	Folded bool // the kind is in lower case
	Guess  bool // the group may be another one: a text does not show it completely
}

// GroupKind returns the group and the kind.
func (n Name) GroupKind() schema.GroupKind { return schema.GroupKind{Group: n.Group, Kind: n.Kind} }

// nameOf returns the name of a kind with an apiVersion. ok is false if the apiVersion is malformed.
func nameOf(apiVersion, kind string) (name Name, ok bool) {
	gv, err := schema.ParseGroupVersion(apiVersion)
	return Name{Group: gv.Group, Version: gv.Version, Kind: kind}, err == nil && kind != "" && gv.Version != ""
}

// A position is where an object or a source names a kind. Its line is looked up only for messages.
type position struct {
	in   render.Object // zero in a source
	path []any         // of the object; nil for the object itself
	line int           // lines after that
	text bool          // the path is a text, and the line is inside of it

	at manifest.Origin // in a source
}

// Origin returns the place of a use. It parses the document: see Origins.
func (u Use) Origin() manifest.Origin { return u.position.origin() }

// Origin returns the place.
func (u Unread) Origin() manifest.Origin { return u.position.origin() }

func (p position) origin() manifest.Origin { return originsOf([]position{p})[0] }

// Origins returns the places of uses. It parses each document once.
func Origins(of []Use) []manifest.Origin {
	places := make([]position, len(of))
	for i, u := range of {
		places[i] = u.position
	}
	return originsOf(places)
}

func originsOf(places []position) []manifest.Origin {
	origins := make([]manifest.Origin, len(places))
	byObject := map[manifest.Origin][]int{}
	for i, p := range places {
		switch {
		case p.at.Path != "":
			origins[i] = p.at
		case p.path == nil:
			origins[i] = p.in.Origin
		default:
			byObject[p.in.Origin] = append(byObject[p.in.Origin], i)
		}
	}
	objects := slices.Collect(maps.Values(byObject))
	manifest.Each(len(objects), func(k int) {
		paths := make([][]any, len(objects[k]))
		for j, i := range objects[k] {
			paths[j] = places[i].path
		}
		for j, origin := range places[objects[k][0]].in.OriginsAt(paths...) {
			origins[objects[k][j]] = places[objects[k][j]].within(origin)
		}
	})
	return origins
}

// within returns the place after the beginning of the value at its path.
func (p position) within(begin manifest.Origin) manifest.Origin {
	if begin == p.in.Origin { // the place of the value is not known
		return begin
	}
	if p.text {
		begin.Line++ // the text begins on the line after its key
	}
	begin.Line += p.line
	return begin
}

// Of returns what a commit uses. Compositions of packages that Crossplane installs count like those of the commit.
func Of(want render.Desired) Uses {
	objects := slices.Clone(want.Objects)
	for _, l := range want.Left {
		if l.Composition != nil {
			objects = append(objects, *l.Composition)
		}
	}
	each := make([]Uses, len(objects)+len(want.Programs))
	ofKubernetes := render.KubernetesScopes()
	manifest.Each(len(each), func(i int) {
		switch {
		case i >= len(objects):
			each[i] = ofSource(want.Programs[i-len(objects)])
		case objects[i].Definition == "" && !isDefining(objects[i].ID) && !has(ofKubernetes, objects[i].ID.GroupKind()):
			each[i] = ofObject(objects[i])
		}
	})
	var all Uses
	for _, u := range each {
		all.All, all.Unread = append(all.All, u.All...), append(all.Unread, u.Unread...)
	}
	slices.SortStableFunc(all.All, func(a, b Use) int { return a.position.compare(b.position) })
	slices.SortStableFunc(all.Unread, func(a, b Unread) int { return a.position.compare(b.position) })
	return all
}

func has[K comparable, V any](m map[K]V, key K) bool {
	_, found := m[key]
	return found
}

// isDefining reports whether an object defines kinds or activates them. Neither uses them.
func isDefining(id manifest.ID) bool { return crossplane.DeclaresKind(id) || crossplane.IsMRAP(id) }

// compare orders places by document; those of one document keep their order.
func (p position) compare(q position) int {
	of := func(p position) manifest.Origin {
		if p.at.Path != "" {
			return p.at
		}
		return p.in.Origin
	}
	return cmp.Or(of(p).Compare(of(q)), p.in.ID.Compare(q.in.ID))
}

// ofObject returns the uses of one object.
func ofObject(o render.Object) Uses {
	name, _ := nameOf(o.APIVersion, o.ID.Kind)
	of := Uses{All: []Use{{Name: name, By: o.ID, Instance: true, position: position{in: o}}}}
	known, err := o.Learn("uses 2", func() (string, error) {
		content, err := o.Content()
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(namedIn(o.ID, content.Object))
		return string(raw), err
	})
	var found []named
	if err != nil || json.Unmarshal([]byte(known), &found) != nil {
		return of // render reports the error
	}
	for _, n := range found {
		at := position{in: o, path: withIntegers(n.Path), line: n.Line, text: n.Text}
		if n.Why != "" {
			of.Unread = append(of.Unread, Unread{By: o.ID, Why: n.Why, Step: n.Step, position: at})
			continue
		}
		of.All = append(of.All, Use{Name: n.Name, By: o.ID, position: at})
	}
	return of
}

// Composed returns the kinds that a Composition composes, as far as it shows them, without duplicates and in their order.
func Composed(composition render.Object) []Name {
	var all []Name
	for _, u := range ofObject(composition).All {
		isInput := len(u.path) == 5 && u.path[3] == "input" // the input of a function, which names its own kind
		if !u.Instance && !isInput && !slices.Contains(all, u.Name) {
			all = append(all, u.Name)
		}
	}
	return all
}

// withIntegers returns a path as it was before JSON turned its indices into floating point numbers.
func withIntegers(path []any) []any {
	for i, step := range path {
		if n, is := step.(float64); is {
			path[i] = int(n)
		}
	}
	return path
}

// A named is a kind that an object names, or a part of the object that is not read, and why.
type named struct {
	Name

	Why  string `json:",omitempty"`
	Step bool   `json:",omitempty"`
	Path []any
	Line int  `json:",omitempty"`
	Text bool `json:",omitempty"`
}

// A reading collects the kinds that one object names.
type reading struct{ found []named }

// namedIn returns the kinds that an object names.
func namedIn(id manifest.ID, content map[string]any) []named {
	r := &reading{}
	spec, _ := content["spec"].(map[string]any)
	steps, path := pipelineOf(id, spec)
	if steps == nil && !crossplane.IsComposition(id) {
		r.walk(spec, "spec")
		return r.found
	}
	for _, key := range []string{"resources", "patchSets", "watch"} {
		r.walk(spec[key], "spec", key)
	}
	for i, step := range steps {
		step, _ := step.(map[string]any)
		r.step(step, append(slices.Clone(path), i)...)
	}
	return r.found
}

// pipelineOf returns the steps of a Composition or an operation, and their path.
func pipelineOf(id manifest.ID, spec map[string]any) (steps []any, path []any) {
	path = []any{"spec"}
	if gk := id.GroupKind(); gk == crossplane.KindCronOperation || gk == crossplane.KindWatchOperation {
		template, _ := spec["operationTemplate"].(map[string]any)
		spec, _ = template["spec"].(map[string]any)
		path = append(path, "operationTemplate", "spec")
	} else if gk != crossplane.KindOperation && gk != crossplane.KindComposition {
		return nil, nil
	}
	steps, _ = spec["pipeline"].([]any)
	return steps, append(path, "pipeline")
}

// walk finds every object, and every reference to one, in a value.
func (r *reading) walk(v any, path ...any) {
	switch v := v.(type) {
	case map[string]any:
		version, _ := v["apiVersion"].(string)
		kind, _ := v["kind"].(string)
		if name, ok := nameOf(version, kind); ok {
			r.found = append(r.found, named{Name: name, Path: append(slices.Clone(path), "kind")})
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.walk(v[key], append(slices.Clone(path), key)...)
		}
	case []any:
		for i, below := range v {
			r.walk(below, append(slices.Clone(path), i)...)
		}
	}
}

// step finds the kinds that the input of a step of a pipeline names.
func (r *reading) step(step map[string]any, path ...any) {
	input, _ := step["input"].(map[string]any)
	name, _ := step["step"].(string)
	r.function(step, name, path)
	path = append(slices.Clone(path), "input")
	r.walk(input, path...)
	if input["kind"] == "GoTemplate" {
		r.template(name, input, path)
		return
	}
	r.programs(name, languageOf(input), input, path...)
}

// composeOnlyInputs are parts of the names of functions that compose only what their input names, or nothing.
var composeOnlyInputs = regexp.MustCompile(`auto-ready|patch-and-transform|go-templating|kcl|cue|python|environment-config|extra-resources|sequencer|cel-filter|tag-manager|status-transformer`)

// function notes a step whose function is a program of its own.
func (r *reading) function(step map[string]any, name string, path []any) {
	ref, _ := step["functionRef"].(map[string]any)
	function, _ := ref["name"].(string)
	if function != "" && !composeOnlyInputs.MatchString(function) {
		r.found = append(r.found, named{Step: true, Why: fmt.Sprintf("step %s runs function %s, whose program may compose more", name, function), Path: append(slices.Clone(path), "functionRef", "name")})
	}
}

// template finds the kinds that a step of function-go-templating names.
func (r *reading) template(step string, input map[string]any, path []any) {
	inline, _ := input["inline"].(map[string]any)
	text, ok := inline["template"].(string)
	if !ok {
		r.unread(fmt.Sprintf("the templates of step %s are not in the commit, so they are not read", step), path, 0, false)
		return
	}
	r.inText(InTemplate(text), text, fmt.Sprintf("the template of step %s computes kinds, which are not read", step), append(slices.Clone(path), "inline", "template"))
}

// programs finds the kinds that the programs in an input name: in KCL, Python, CUE and the like.
func (r *reading) programs(step string, in language, v any, path ...any) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, "\n") && mentionsKinds(v) {
			r.inText(inProgram(v, in), v, "", path)
			r.unread(fmt.Sprintf("the input of step %s is a program, which is only searched for names of kinds", step), path, 0, false)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.programs(step, in, v[key], append(slices.Clone(path), key)...)
		}
	case []any:
		for i, below := range v {
			r.programs(step, in, below, append(slices.Clone(path), i)...)
		}
	}
}

// inText adds what a text names. If it computes kinds, why is added once.
func (r *reading) inText(found []InText, text, why string, path []any) {
	lines := strings.Contains(text, "\n")
	for _, f := range found {
		name, ok := f.name()
		switch {
		case f.Computed() && why != "":
			r.unread(why, path, f.Line, lines)
			why = ""
		case ok:
			r.found = append(r.found, named{Name: name, Path: path, Line: f.Line, Text: lines})
		}
	}
}

func (r *reading) unread(why string, path []any, line int, text bool) {
	r.found = append(r.found, named{Why: why, Path: path, Line: line, Text: text})
}
