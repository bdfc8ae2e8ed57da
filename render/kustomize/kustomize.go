// Package kustomize builds directories with a kustomization. Kustomize itself never sees the commit. It gets only vetted files,
// whose paths are all inside the commit. Package catalogue chooses the directories and interprets the objects.
//
//	directories ─vet─► a view: what may be read ─run─► objects ─► documents that know where they came from
package kustomize

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/kustomize/api/konfig"
)

// The rules of findings of this package.
const (
	RuleBase     = "kustomization-base"
	RuleManyCRDs = "kustomization-many-crds"
)

// manyCRDs is the number of CRDs for which kustomize takes seconds: about a hundredth of a second each.
const manyCRDs = 300

// A Build is the result of building directories.
type Build struct {
	Documents  []*manifest.Document
	Reads      map[string]bool // the files that were used, in all directories
	LocalFiles []string        // the files with documents that were only used for the build, sorted: config.kubernetes.io/local-config
	Unbuilt    []string        // the directories of kind Component that no kustomization names, sorted
	Findings   []manifest.Finding
}

// An Error is an error that prevents building a directory. Its text begins with the place.
type Error struct {
	Origin manifest.Origin
	Err    error
}

// FileName finds the kustomization among the names of the regular files of a directory.
func FileName(regular func(name string) bool) (name string, ok bool) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if regular(name) {
			return name, true
		}
	}
	return "", false
}

// Is reports whether the documents of a file with such a name are a kustomization. Other tools also have objects of kind
// Kustomization.
func Is(documents []*manifest.Document) bool {
	return !slices.ContainsFunc(documents, func(d *manifest.Document) bool {
		group, _, grouped := strings.Cut(d.Header.APIVersion, "/")
		return grouped && group != "kustomize.config.k8s.io"
	})
}

// Directories builds directories of a commit, except Components and the bases of other directories. If anything is wrong, it builds
// nothing.
func Directories(files fs.FS, reader *manifest.Reader, directories []string) (Build, []Error) {
	directories = slices.Sorted(slices.Values(directories))
	memory := memory{files, reader, directories}
	if made, ok := memory.recall(); ok {
		return made, nil
	}
	before := reader.Spent()
	v := newVetting(files, reader)
	made, problems := v.directories(directories)
	if len(problems) == 0 && !v.secret && !slices.ContainsFunc(made.Documents, isSecret) { // a Memo may write to disk
		memory.remember(v, made, reader.Spent().Minus(before))
	}
	return made, problems
}

func isSecret(d *manifest.Document) bool { return d.Header.Kind == "Secret" }

func (v *vetting) directories(directories []string) (Build, []Error) {
	made := Build{Reads: v.reads}
	var roots, components []*kustomization
	partOf := map[string]string{} // the overlay of each base directory
	for _, dir := range directories {
		k := v.kustomization(dir, nil, manifest.Origin{Path: dir})
		switch {
		case k == nil: // which was reported
		case k.component:
			components = append(components, k)
		default:
			roots = append(roots, k)
			k.note(partOf)
		}
	}
	for _, k := range components {
		if partOf[k.dir] == "" {
			made.Unbuilt = append(made.Unbuilt, k.dir)
		}
	}
	first := map[output]*kustomization{}
	for _, k := range roots {
		if len(v.problems) > 0 {
			break
		}
		if overlay := partOf[k.dir]; overlay != "" {
			made.Findings = append(made.Findings, isBase(k, overlay))
			continue
		}
		if k.size.crds > manyCRDs {
			made.Findings = append(made.Findings, tooManyCRDs(k))
		}
		documents := v.run(k)
		v.refuseTwice(k, documents, first)
		made.Documents = append(made.Documents, documents...)
	}
	if len(v.problems) > 0 {
		return Build{Reads: v.reads}, v.problems
	}
	for name, m := range v.manifests {
		if m.local {
			made.LocalFiles = append(made.LocalFiles, name)
		}
	}
	made.LocalFiles = append(made.LocalFiles, v.madeLocal(made.Unbuilt)...)
	slices.Sort(made.LocalFiles)
	made.LocalFiles = slices.Compact(made.LocalFiles)
	return made, nil
}

// madeLocal returns the files of documents without any output, if a kustomization or a patch mentions local
// configuration: kustomize drops objects that are marked as local. Directories in unbuilt have no output anyway.
func (v *vetting) madeLocal(unbuilt []string) []string {
	mentions := func(name string, content []byte) bool {
		manifest, found := strings.CutPrefix(name, inCommit)
		return !(found && v.manifests[manifest] != nil) && bytes.Contains(content, []byte("local-config"))
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(v.view.files)), func(name string) bool { return mentions(name, v.view.files[name]) }) {
		return nil
	}
	var files []string
	for n, s := range v.sources {
		in := func(dir string) bool { return strings.HasPrefix(s.origin.Path, dir+"/") }
		if s.document != nil && !v.used[n] && !slices.ContainsFunc(unbuilt, in) {
			files = append(files, s.origin.Path)
		}
	}
	return files
}

// note records the overlay of each directory below.
func (k *kustomization) note(partOf map[string]string) {
	for _, below := range k.upon {
		if partOf[below.dir] == "" {
			partOf[below.dir] = k.dir
			below.note(partOf)
		}
	}
}

// An output is an object that was built from one place under one identity.
type output struct {
	origin manifest.Origin
	id     manifest.ID
}

// refuseTwice refuses output that another directory already built from the same base; first holds that directory.
func (v *vetting) refuseTwice(k *kustomization, documents []*manifest.Document, first map[output]*kustomization) {
	reported := false
	for _, d := range documents {
		group, _, _ := strings.Cut(d.Header.APIVersion, "/")
		o := output{d.Origin, manifest.ID{Group: group, Kind: d.Header.Kind, Namespace: d.Header.Namespace, Name: d.Header.Name}}
		other, twice := first[o]
		if !twice {
			first[o] = k
		}
		if twice && other != k && !reported {
			reported = true // reported once: everything from the base is duplicated
			v.refuse(k.origin, fmt.Errorf("%s %s of %s is built here and by %s: let the path name one of the two, or let them build under different names", d.Header.Kind, d.Header.Name, d.Origin, other.dir))
		}
	}
}

func isBase(k *kustomization, overlay string) manifest.Finding {
	return manifest.Finding{
		Rule: RuleBase, Severity: manifest.Note, Origin: k.origin, About: manifest.About{Subject: k.dir},
		Message: fmt.Sprintf("%s is part of the build of %s, and so not built by itself", k.dir, overlay),
	}
}

func tooManyCRDs(k *kustomization) manifest.Finding {
	return manifest.Finding{
		Rule: RuleManyCRDs, Severity: manifest.Warning, Origin: k.origin, About: manifest.About{Subject: k.dir},
		Message: fmt.Sprintf("kustomize builds %d CRDs, and decodes and encodes each one several times, active or not", k.size.crds),
		Fix:     "keep the CRDs of providers beside the kustomization: as a package, or as plain files",
	}
}
