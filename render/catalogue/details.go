package catalogue

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"headgate.dev/headgate/render/manifest"
)

// A ConnectionDetail is a key of the connection secret of a managed resource, which no
// CRD tells.
type ConnectionDetail struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Details are what an object of kind ConnectionDetails says of one definition. The object
// is for whoever reads the commit, and never applied.
type Details struct {
	Definition string
	Connection []ConnectionDetail
	Origin     manifest.Origin
}

// The rules of connection details.
const (
	RuleDetailsUnknown = "connection-details-of-unknown"
	RuleDetailsWiped   = "connection-details-wiped"
)

const kindDetails = groupOurs + " ConnectionDetails"

// detailsOf reads the details of a document, strictly.
func detailsOf(d *manifest.Document) ([]Details, error) {
	u, err := d.Recall()
	if err != nil {
		return nil, err
	}
	r := strict{document: d}
	top := r.object(u.Object, nil, "apiVersion", "kind", "metadata", "spec")
	spec := r.object(top["spec"], []any{"spec"}, "definitions")
	var all []Details
	for i, v := range r.list(spec["definitions"], []any{"spec", "definitions"}) {
		at := []any{"spec", "definitions", i}
		definition := r.object(v, at, "name", "connectionDetails")
		details := Details{
			Definition: r.text(definition["name"], slices.Concat(at, []any{"name"})),
			Origin:     d.OriginOf(at...),
		}
		at = slices.Concat(at, []any{"connectionDetails"})
		seen := map[string]bool{}
		for j, v := range r.list(definition["connectionDetails"], at) {
			at := slices.Concat(at, []any{j})
			fields := r.object(v, at, "name", "description")
			detail := ConnectionDetail{
				Name:        r.text(fields["name"], slices.Concat(at, []any{"name"})),
				Description: r.text(fields["description"], slices.Concat(at, []any{"description"})),
			}
			if seen[detail.Name] {
				r.refuse(at, "is there twice: %q", detail.Name)
			}
			seen[detail.Name] = true
			details.Connection = append(details.Connection, detail)
		}
		all = append(all, details)
	}
	return all, r.problems.OrNil()
}

// ReadDetails reads a file that holds objects of kind ConnectionDetails, and nothing else.
// An error is Errors where the file is to blame.
func ReadDetails(files fs.FS, name string, limits manifest.Limits) ([]Details, error) {
	documents, err := manifest.Read(files, name, limits)
	if err != nil {
		return nil, err
	}
	var all []Details
	var problems Errors
	for _, d := range documents {
		group, version := groupVersion(d.Header.APIVersion)
		if group+" "+d.Header.Kind != kindDetails || version != "v1alpha1" {
			problems = append(problems, Errorf(d.Origin, "this file is for objects of kind ConnectionDetails in headgate.dev/v1alpha1"))
			continue
		}
		found, err := detailsOf(d)
		problems = append(problems, ErrorsOf(d.Origin, err)...)
		all = append(all, found...)
	}
	return all, problems.OrNil()
}

// Describe gives definitions, which are found by name, their connection details. It is an
// error if two speak of the same one, and a finding if there is none that they speak of.
func Describe(definitions []*Definition, details []Details) ([]manifest.Finding, error) {
	if len(details) == 0 {
		return nil, nil
	}
	byName := make(map[string]*Definition, len(definitions))
	for _, d := range definitions {
		byName[d.Name] = d
	}
	var found []manifest.Finding
	var problems Errors
	first := map[string]manifest.Origin{}
	for _, of := range details {
		if at, twice := first[of.Definition]; twice {
			problems = append(problems, Errorf(of.Origin, "the connection details of %s are told at %s already: put them together", of.Definition, at))
			continue
		}
		first[of.Definition] = of.Origin
		if d := byName[of.Definition]; d != nil {
			if d.Document != nil { // else it is the cluster's
				d.ConnectionDetails = of.Connection
			}
			continue
		}
		found = append(found, manifest.Finding{
			Rule: RuleDetailsUnknown, Severity: manifest.Warning, Origin: of.Origin,
			Message: fmt.Sprintf("the connection details of %s are told, and there is no such definition", of.Definition),
			Fix:     "name the definition as <plural>.<group>, or remove them",
		})
	}
	return found, problems.OrNil()
}

// A strict reads a decoded document field by field, and remembers what is wrong with it.
type strict struct {
	document *manifest.Document
	problems Errors
}

func (s *strict) refuse(at []any, format string, args ...any) {
	s.problems = append(s.problems, Errorf(placeOf(s.document, at...), "%s %s", manifest.Field(at...), fmt.Sprintf(format, args...)))
}

// placeOf returns where a field is, or else the nearest of its parents that is there.
func placeOf(d *manifest.Document, at ...any) manifest.Origin {
	origin := d.Origin
	for path := at; origin == d.Origin && len(path) > 0; path = path[:len(path)-1] {
		origin = d.OriginOf(path...)
	}
	return origin
}

// object is a mapping of which only the given fields are known.
func (s *strict) object(v any, at []any, known ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		s.refuse(at, "must be an object")
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(known, key) {
			s.refuse(slices.Concat(at, []any{key}), "is not known: there are %v", known)
		}
	}
	return m
}

// list is a list of at least one.
func (s *strict) list(v any, at []any) []any {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		s.refuse(at, "must be a list of at least one")
	}
	return list
}

// text is a string that says something.
func (s *strict) text(v any, at []any) string {
	text, ok := v.(string)
	if !ok || text == "" {
		s.refuse(at, "must be a string that is not empty")
	}
	return text
}
