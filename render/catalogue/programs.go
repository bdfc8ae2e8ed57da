package catalogue

import (
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// A Language is what a Program is written in.
type Language string

// The languages.
const (
	KCL      Language = "KCL"
	Python   Language = "Python"
	CUE      Language = "CUE"
	Template Language = "Go template"
)

// A Program is a file with the program or the template of a function, which may name the kinds that the function composes. It is read
// only on request.
type Program struct {
	Path     string
	Language Language

	reader *manifest.Reader
}

// Learn returns the result of ask, which depends only on the text of the file and on what, or the result that a Memo stores.
func (p Program) Learn(what string, ask func(text string) (string, error)) (string, error) {
	return p.reader.LearnFile(p.Path, what, func(raw []byte) (string, error) { return ask(string(raw)) })
}

// noteProgram notes a file that may be the source of a function.
func (w *walk) noteProgram(name string) {
	if in := languageOf(name); in != "" {
		w.programs = append(w.programs, Program{Path: name, Language: in, reader: w.aside})
	}
}

// languageOf returns the language of a source of a function, or "". Python is used for much else, so only directories whose names
// begin with "function" count. Tests and generated models compose nothing.
func languageOf(name string) Language {
	dirs := strings.Split(path.Dir(name), "/")
	if slices.ContainsFunc(dirs, composesNothing) {
		return ""
	}
	ofFunction := slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(dir, "function") })
	switch ext := path.Ext(name); {
	case ext == ".k":
		return KCL
	case ext == ".cue":
		return CUE
	case ext == ".gotmpl", ext == ".tmpl" && ofFunction:
		return Template
	case ext == ".py" && ofFunction:
		return Python
	}
	return ""
}

// composesNothing reports whether a directory holds tests, examples or generated models.
func composesNothing(dir string) bool {
	switch dir {
	case "model", "models", "schemas", "vendor", "node_modules", "site-packages":
		return true
	}
	return isBuildInput(dir)
}
