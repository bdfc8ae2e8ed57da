package render

import (
	"io/fs"
	"path"
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crd"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// schemas returns the CRDs and XRDs in the files of Options.Schemas, by identity. They are only for checks. A definition counts as
// the CRD that it makes. A path without any of them is an error.
func (in Input) schemas(how Options) ([]Object, catalogue.Errors) {
	var all []Object
	var problems catalogue.Errors
	read := manifest.NewReader(in.Files, how.Limits, how.Memo)
	for _, name := range how.Schemas {
		found, err := schemasIn(in.Files, read, path.Clean(name))
		if err == nil && len(found) == 0 {
			err = catalogue.Errorf(manifest.Origin{Path: name}, "schemas names this, and it has no CRD, definition or XRD")
		}
		problems = append(problems, catalogue.ErrorsOf(manifest.Origin{Path: name}, err)...)
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Object) int { return a.ID.Compare(b.ID) })
	return all, problems
}

// schemasIn returns the schemas in a file, or in the manifests below a directory.
func schemasIn(files fs.FS, read *manifest.Reader, root string) (all []Object, err error) {
	var problems catalogue.Errors
	err = fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return catalogue.Errorf(manifest.Origin{Path: name}, "schemas names this, and it cannot be read: %w", err)
		}
		if !entry.Type().IsRegular() || name != root && !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return nil
		}
		docs, err := read.Read(name)
		problems = append(problems, catalogue.ErrorsOf(manifest.Origin{Path: name}, err)...)
		for _, d := range docs {
			o, found, err := schemaOf(d)
			problems = append(problems, catalogue.ErrorsOf(d.Origin, err)...)
			if found && err == nil {
				all = append(all, o)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, problems.OrNil()
}

// schemaOf returns the CRD or XRD in a document. found is false if the document is something else.
func schemaOf(d *manifest.Document) (o Object, found bool, err error) {
	id := d.Header.ID()
	if !crossplane.DeclaresKind(id) {
		return Object{}, false, nil
	}
	content, err := d.Recall()
	if err == nil && crossplane.IsMRD(id) {
		content, err = crd.Of(content)
	}
	if err != nil {
		return Object{}, true, err
	}
	o, err = NewObject(content, d.Origin)
	o.document = d
	return o, true, err
}
