package catalogue

import (
	"fmt"
	"io/fs"
	"slices"

	"headgate.dev/headgate/render/manifest"
)

// A ConnectionDetail is a key of the connection secret of a managed resource, which no
// CRD tells.
type ConnectionDetail struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Details are the connection details of one definition in an object of kind ConnectionDetails. The object is only read,
// never applied.
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

// groupOurs is the group of the documents that are for Headgate.
const groupOurs = "headgate.dev"

// IsLock reports whether a document is the lock of the packages of the commit.
func IsLock(id manifest.ID) bool { return id.Group == groupOurs && id.Kind == "PackageLock" }

func isDetails(id manifest.ID) bool { return id.Group == groupOurs && id.Kind == "ConnectionDetails" }

// detailsOf reads the details of a document, strictly.
func detailsOf(d *manifest.Document) ([]Details, error) {
	u, err := d.Recall()
	if err != nil {
		return nil, err
	}
	r := Strict{Document: d}
	top := r.Object(u.Object, nil, "apiVersion", "kind", "metadata", "spec")
	spec := r.Object(top["spec"], []any{"spec"}, "definitions")
	var all []Details
	for i, v := range r.List(spec["definitions"], []any{"spec", "definitions"}) {
		at := []any{"spec", "definitions", i}
		definition := r.Object(v, at, "name", "connectionDetails")
		details := Details{
			Definition: r.Text(definition["name"], slices.Concat(at, []any{"name"})),
			Origin:     d.OriginOf(at...),
		}
		at = slices.Concat(at, []any{"connectionDetails"})
		seen := map[string]bool{}
		for j, v := range r.List(definition["connectionDetails"], at) {
			at := slices.Concat(at, []any{j})
			fields := r.Object(v, at, "name", "description")
			detail := ConnectionDetail{
				Name:        r.Text(fields["name"], slices.Concat(at, []any{"name"})),
				Description: r.Text(fields["description"], slices.Concat(at, []any{"description"})),
			}
			if seen[detail.Name] {
				r.Refuse(at, "is there twice: %q", detail.Name)
			}
			seen[detail.Name] = true
			details.Connection = append(details.Connection, detail)
		}
		all = append(all, details)
	}
	return all, r.Problems.OrNil()
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
		if !isDetails(d.Header.ID()) || d.Header.Version() != "v1alpha1" {
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
			problems = append(problems, Errorf(of.Origin, "the connection details of %s are declared at %s already: put them together", of.Definition, at))
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
			Message: fmt.Sprintf("the connection details of %s are declared, and there is no such definition", of.Definition),
			Fix:     "name the definition as <plural>.<group>, or remove them",
		})
	}
	return found, problems.OrNil()
}
