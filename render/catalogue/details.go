package catalogue

import (
	"fmt"
	"io/fs"
	"slices"

	"headgate.dev/headgate/render/manifest"
)

// A ConnectionDetail describes a key of a managed resource's connection secret. A CRD does not contain it.
type ConnectionDetail struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Details holds the connection details of one definition, from an object of kind ConnectionDetails. The object is only read, never
// applied.
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

// groupOurs is the API group of documents for Headgate.
const groupOurs = "headgate.dev"

// IsLock reports whether a document is the lock of the packages of the commit.
func IsLock(id manifest.ID) bool { return id.Group == groupOurs && id.Kind == "PackageLock" }

func isDetails(id manifest.ID) bool { return id.Group == groupOurs && id.Kind == "ConnectionDetails" }

// detailsOf decodes the details in a document strictly.
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

// ReadDetails reads a file with objects of kind ConnectionDetails, and nothing else. Errors in the content of the file are of type
// Errors.
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

// Describe adds connection details to the definitions that they name. Two details for the same definition are an error. Details for
// an unknown definition are a finding.
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
			if d.Document != nil { // without a document, the details come from the cluster
				d.ConnectionDetails = of.Connection
			}
			continue
		}
		found = append(found, manifest.Finding{
			Rule: RuleDetailsUnknown, Severity: manifest.Warning, Origin: of.Origin, About: manifest.About{Subject: of.Definition},
			Message: fmt.Sprintf("the connection details of %s are declared, and there is no such definition", of.Definition),
			Fix:     "name the definition as <plural>.<group>, or remove them",
		})
	}
	return found, problems.OrNil()
}
