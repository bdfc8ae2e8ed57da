package catalogue

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/kustomize"
	"headgate.dev/headgate/render/manifest"
)

// kustomization reports whether kustomize builds a directory, or the walk skips it. isRegular reports whether a name is a regular
// file. in is the package of the directory, outside the package of its parent directory.
func (w *walk) kustomization(dir string, isRegular func(name string) bool, in, outside *Package) bool {
	name, ok := kustomize.FileName(isRegular)
	if !ok {
		return false
	}
	at := manifest.Origin{Path: path.Join(dir, name)}
	switch {
	case !w.isKustomization(at.Path):
		return false
	case in != outside:
		w.refuse(at, fmt.Errorf("%s is a package and has a kustomization: list the unwanted one in %s", dir, ignoreFile))
	case in != nil && dir != w.root: // the root was requested by name
		w.skipAll(dir, BuildInput)
		w.findings = append(w.findings, manifest.Finding{
			Rule: RuleBuildInput, Severity: manifest.Note, Origin: at, About: manifest.About{Subject: dir},
			Message: "a kustomization in package " + in.Name + " counts as build input: nothing of " + dir + " is applied",
			Fix:     "take the kustomization out of the package if its files belong to it",
		})
	default:
		w.kustomizations = append(w.kustomizations, dir)
		w.hiddenPackages(dir)
	}
	return true
}

// misnamedKustomization refuses a kustomization that kustomize does not find because of the case of its name. Otherwise, the files
// in its directory would be applied unchanged.
func (w *walk) misnamedKustomization(name string) bool {
	base := path.Base(name)
	known, ok := kustomize.FileName(func(known string) bool { return strings.EqualFold(known, base) })
	if !ok || isKustomizationName(base) {
		return false
	}
	documents, err := w.reader.Read(name)
	if err != nil || !slices.ContainsFunc(documents, saysKustomization) {
		return false
	}
	w.refuse(manifest.Origin{Path: name}, fmt.Errorf("kustomize does not find a kustomization of this name; rename it to %s, or list it in %s", known, ignoreFile))
	return true
}

// saysKustomization reports whether a document is a kustomization, whatever the name of its file. Its apiVersion and kind may be
// absent.
func saysKustomization(d *manifest.Document) bool {
	if d.Header.Kind != "" {
		return d.Header.ID().Group == "kustomize.config.k8s.io"
	}
	v, err := d.Value()
	m, _ := v.(map[string]any)
	return err == nil && slices.ContainsFunc([]string{"resources", "bases", "components"}, func(key string) bool {
		_, ok := m[key].([]any)
		return ok
	})
}

func isKustomizationName(name string) bool {
	_, ok := kustomize.FileName(func(other string) bool { return other == name })
	return ok
}

// isKustomization reports whether a file with the name of a kustomization is one. It counts an unreadable file as a kustomization.
func (w *walk) isKustomization(name string) bool {
	documents, err := w.reader.Read(name)
	return err != nil || kustomize.Is(documents)
}

// hiddenPackages warns about packages below a kustomization, which are not read as packages.
func (w *walk) hiddenPackages(dir string) {
	w.below(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && w.ignored.matches(name, true) && name != dir {
			return fs.SkipDir
		}
		if e.Type().IsRegular() && isManifestName(path.Base(name)) && !w.ignored.matches(name, false) {
			w.directories[path.Dir(name)] = true
		}
		if path.Base(name) != metaFile || !e.Type().IsRegular() || w.ignored.matches(name, false) {
			return nil
		}
		documents, err := w.reader.Read(name)
		if err != nil || !slices.ContainsFunc(documents, isMeta) {
			return nil //nolint:nilerr // no object refers to this file
		}
		w.findings = append(w.findings, manifest.Finding{
			Rule: RuleHiddenPackage, Severity: manifest.Warning, Origin: manifest.Origin{Path: name, Line: 1}, About: manifest.About{Subject: path.Dir(name)},
			Message: fmt.Sprintf("the package in %s is not read as a package: it is below the kustomization of %s, of which only the built objects count", path.Dir(name), dir),
			Fix:     "keep the package next to the kustomization, or list the kustomization in " + ignoreFile,
		})
		return nil
	})
}

// build runs kustomize for the directories that the walk left to it. The files that they refer to are not also read as manifests.
func (w *walk) build() {
	if len(w.kustomizations) == 0 {
		return
	}
	built, problems := kustomize.Directories(w.files, w.reader, w.kustomizations)
	for _, p := range problems {
		w.problems = append(w.problems, Error{Origin: p.Origin, Err: p.Err})
	}
	w.found = slices.DeleteFunc(w.found, func(f *file) bool {
		if built.Reads[f.path] && f.in != nil {
			w.refuse(manifest.Origin{Path: f.path}, fmt.Errorf("belongs to package %s, and a kustomization also names it: remove it from one of them", f.in.Name))
		}
		return built.Reads[f.path]
	})
	if len(built.Documents) > 0 {
		w.found = append(w.found, &file{documents: built.Documents})
	}
	for _, name := range built.LocalFiles {
		w.skip(LocalOnly, manifest.Origin{Path: name}, manifest.Header{})
	}
	for _, dir := range built.Unbuilt {
		w.skipAll(dir, Kustomize)
	}
	w.findings = append(w.findings, built.Findings...)
}
