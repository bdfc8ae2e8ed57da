package kustomize

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// list returns a list of the content, or nil.
func list(content map[string]any, key string) []any {
	l, _ := content[key].([]any)
	return l
}

// mapping returns an item of a list that must be a mapping.
func (e *editing) mapping(key string, i int) (map[string]any, bool) {
	m, ok := list(e.content, key)[i].(map[string]any)
	if !ok {
		e.wrong(errors.New("is empty"), key, i)
	}
	return m, ok
}

// clone returns a writable copy.
func clone(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// regular returns the name of a file of the commit, for a path in a kustomization.
func (e *editing) regular(given string, at ...any) (name string, ok bool) {
	name, isDir, err := e.local(e.k.dir, given)
	if err == nil && isDir {
		err = fmt.Errorf("%s is a directory: name its files", name)
	}
	if err != nil {
		e.wrong(err, at...)
		return "", false
	}
	e.reads[name] = true
	return name, true
}

// setRaw adds the bytes of a file to the view, and calls set with its name there.
func (e *editing) setRaw(given string, set func(name string), at ...any) {
	name, ok := e.regular(given, at...)
	if !ok {
		return
	}
	seen := inRaw + name
	if !e.view.has(seen) {
		content, err := e.reader.Bytes(name)
		if err != nil {
			e.problems = append(e.problems, Error{Origin: manifest.Origin{Path: name}, Err: err})
			return
		}
		e.view.add(seen, content)
	}
	e.k.size.bytes += e.view.size(seen)
	set(seen)
}

// setYAML adds the content of a configuration file to the view, and calls set with its name there.
func (e *editing) setYAML(given string, set func(name string), at ...any) {
	e.setContent(inYAML, given, set, at...)
}

// setPatch does the same for a patch.
func (e *editing) setPatch(given string, set func(name string), at ...any) {
	e.setContent(inPatch, given, set, at...)
}

func (e *editing) setContent(where, given string, set func(name string), at ...any) {
	name, ok := e.regular(given, at...)
	if !ok {
		return
	}
	seen := where + name
	if !e.view.has(seen) {
		documents, err := e.reader.Read(name)
		if err != nil {
			e.problems = append(e.problems, Error{Origin: manifest.Origin{Path: name}, Err: err})
			return
		}
		content, err := values(documents, where == inPatch)
		if err != nil {
			e.problems = append(e.problems, Error{Origin: manifest.Origin{Path: name}, Err: err})
			return
		}
		if err := endless(documents); err != nil {
			e.refuse(manifest.Origin{Path: name, Line: 1}, err)
			return
		}
		e.view.add(seen, content)
	}
	e.k.size.bytes += e.view.size(seen)
	set(seen)
}

// inline returns a YAML text in the form for kustomize.
func (e *editing) inline(given string, at ...any) string {
	documents, err := e.reader.Inline("inline", given)
	if err == nil {
		var content []byte
		content, err = values(documents, true)
		if err == nil && len(content) > 0 {
			return string(content)
		}
	}
	if err != nil {
		e.wrong(err, at...)
	}
	return "#" // nothing but comments
}

// inlineOrFile returns a YAML text in the form for kustomize, or the path of a file in the view. Like kustomize, it tries text
// first.
func (e *editing) inlineOrFile(given string, at ...any) string {
	if isInline(e.reader, given) {
		if documents, err := e.reader.Inline("inline", given); err == nil && slices.ContainsFunc(documents, isNameless) {
			e.wrong(errors.New("a patch has a kind and a metadata.name"), at...)
		}
		return e.inline(given, at...)
	}
	made := ""
	e.setPatch(given, func(name string) { made = name }, at...)
	return made
}

// isNameless reports whether a document lacks the kind and name that kustomize needs in a patch.
func isNameless(d *manifest.Document) bool {
	v, err := d.Value()
	object, _ := v.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	return err != nil || text(object["kind"]) == "" || text(metadata["name"]) == ""
}

// isInline reports whether a text is YAML itself instead of the path of a file.
func isInline(reader *manifest.Reader, given string) bool {
	if strings.Contains(given, "\n") {
		return true
	}
	documents, err := reader.Inline("inline", given)
	if err != nil || len(documents) != 1 {
		return false
	}
	v, err := documents[0].Value()
	_, scalar := v.(string)
	return err == nil && !scalar
}

// text returns a string of the content; "" for null.
func text(value any) string {
	s, _ := value.(string)
	return s
}
