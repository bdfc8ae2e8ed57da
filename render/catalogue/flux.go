package catalogue

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"headgate.dev/headgate/render/kustomize"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// RuleFluxSubstitutes is the rule for objects in which a Flux Kustomization substitutes variables, but Headgate does not.
const RuleFluxSubstitutes = "substituted-by-flux"

// A substitution is a Flux Kustomization that substitutes variables in the objects that it builds from a directory.
type substitution struct {
	name   string
	origin manifest.Origin
	reads  []string // directories and files of the commit
	found  int      // objects with variables
}

// substitutions returns the Flux Kustomizations of the commit that substitute variables. Their paths are relative to the root of
// the repository.
func (w *walk) substitutions() []*substitution {
	var all []*substitution
	for _, f := range w.found {
		for _, d := range f.documents {
			if d.Header.ID().Group != "kustomize.toolkit.fluxcd.io" || d.Header.Kind != "Kustomization" {
				continue
			}
			u, err := d.Recall()
			if err != nil {
				continue // it is skipped
			}
			_, substitutes, _ := unstructured.NestedMap(u.Object, "spec", "postBuild")
			at, _, _ := unstructured.NestedString(u.Object, "spec", "path")
			at = path.Clean(strings.TrimPrefix(at, "./"))
			if !substitutes || !fs.ValidPath(at) {
				continue
			}
			all = append(all, &substitution{name: d.Header.Namespace + "/" + d.Header.Name, origin: d.Origin, reads: w.readsFrom(at)})
		}
	}
	return all
}

// readsFrom returns a directory, and the directories and files that its kustomizations refer to, recursively.
func (w *walk) readsFrom(dir string) []string {
	reads := []string{dir}
	for i := 0; i < len(reads); i++ { // it grows
		name, ok := kustomize.FileName(func(name string) bool { return w.isFile(path.Join(reads[i], name)) })
		if !ok {
			continue
		}
		documents, err := w.reader.Read(path.Join(reads[i], name))
		if err != nil {
			continue
		}
		for _, d := range documents {
			v, err := d.Value()
			m, ok := v.(map[string]any)
			if err != nil || !ok {
				continue
			}
			for _, key := range []string{"resources", "bases", "components"} {
				named, _ := m[key].([]any)
				for _, v := range named {
					text, _ := v.(string)
					if to := path.Join(reads[i], text); text != "" && fs.ValidPath(to) && !slices.Contains(reads, to) {
						reads = append(reads, to)
					}
				}
			}
		}
	}
	return reads
}

// covers reports whether the Kustomization builds a file.
func (s *substitution) covers(name string) bool {
	return slices.ContainsFunc(s.reads, func(dir string) bool { return isBelow(name, dir) })
}

// substituted counts a file if Flux substitutes variables in it, and reports whether it does.
func substituted(by []*substitution, name string) bool {
	i := slices.IndexFunc(by, func(s *substitution) bool { return s.covers(name) })
	if i < 0 {
		return false
	}
	by[i].found++
	return true
}

// notes returns a note for every Flux Kustomization that substitutes variables in objects.
func notes(by []*substitution) []manifest.Finding {
	var all []manifest.Finding
	for _, s := range by {
		if s.found == 0 {
			continue
		}
		all = append(all, manifest.Finding{
			Rule: RuleFluxSubstitutes, Severity: manifest.Note, Origin: s.origin, About: manifest.About{Subject: s.name},
			Message: fmt.Sprintf("Flux substitutes variables in %s that Kustomization %s builds, and Headgate does not", manifest.Count(s.found, "object"), s.name),
			Fix:     "leave these objects to Flux",
		})
	}
	return all
}
