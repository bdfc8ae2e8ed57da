package kustomize

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

func (e *editing) helm() {
	for _, key := range []string{"helmCharts", "helmGlobals", "helmChartInflationGenerator"} {
		if e.content[key] != nil {
			e.wrong(errHelm, key)
		}
	}
}

var errHelm = errors.New("charts are not inflated, because that runs helm and downloads: render the chart and commit the result")

// resources vets files with manifests and directories with a kustomization. bases is an older name for resources.
func (e *editing) resources() {
	var all []any
	for _, key := range []string{"resources", "bases"} {
		for i, given := range list(e.content, key) {
			name, isDir, err := e.local(e.k.dir, text(given))
			switch {
			case err != nil:
				e.wrong(err, key, i)
			case isDir:
				below := e.upon(name, key, i)
				if below != nil && below.component {
					e.wrong(fmt.Errorf("%s is a Component: name it under components", name), key, i)
				}
			default:
				e.k.size.add(e.manifestsOf(name).size)
			}
			all = append(all, dotted(text(given)))
		}
	}
	delete(e.content, "bases")
	if all != nil {
		e.content["resources"] = all
	}
}

func (e *editing) components() {
	for i, given := range list(e.content, "components") {
		name, isDir, err := e.local(e.k.dir, text(given))
		switch {
		case err != nil:
			e.wrong(err, "components", i)
		case !isDir:
			e.wrong(fmt.Errorf("%s is a file: name the directory of a Component", name), "components", i)
		default:
			below := e.upon(name, "components", i)
			if below != nil && !below.component {
				e.wrong(fmt.Errorf("%s is not a Component: name it under resources", name), "components", i)
			}
		}
		list(e.content, "components")[i] = dotted(text(given))
	}
}

// upon vets a base directory.
func (e *editing) upon(name string, at ...any) *kustomization {
	below := e.kustomization(name, e.trail, e.at(at...))
	if below == nil {
		e.failed = true // the failure is already reported
		return nil
	}
	e.k.upon = append(e.k.upon, below)
	e.k.size.add(below.size)
	e.k.openAPI = e.k.openAPI || below.openAPI
	return below
}

// openAPI vets the path of a file with schemas, or the version of kustomize's built-in schemas.
func (e *editing) openAPI() {
	fields, ok := e.content["openapi"].(map[string]any)
	if !ok {
		return
	}
	e.k.openAPI = true
	for key, given := range fields {
		switch key {
		case "path":
			e.setYAML(text(given), func(name string) { fields["path"] = name }, "openapi", "path")
		case "version":
		default:
			e.wrong(errors.New("is not known: there are path and version"), "openapi", key)
		}
	}
}

// patch vets a patch: a path, or a text under a key.
func (e *editing) patch(patch map[string]any, key string, at ...any) {
	if text(patch["path"]) != "" && text(patch[key]) != "" {
		e.wrong(errors.New("and path are both set: set one of them"), append(at, key)...)
		return
	}
	if given := text(patch["path"]); given != "" {
		e.setPatch(given, func(name string) { patch["path"] = name }, append(at, "path")...)
	}
	if given := text(patch[key]); given != "" {
		patch[key] = e.inline(given, append(at, key)...)
	}
}

func (e *editing) replacements(content map[string]any, key string) {
	for i := range list(content, key) {
		r, ok := list(content, key)[i].(map[string]any)
		if !ok {
			e.wrong(errors.New("is empty"), key, i)
			continue
		}
		if given := text(r["path"]); given != "" {
			e.setYAML(given, func(name string) { r["path"] = name }, key, i, "path")
		}
	}
}

// generator vets a generator of a ConfigMap or a Secret, whose files are used unchanged.
func (e *editing) generator(g map[string]any, at ...any) {
	e.k.size.documents++
	e.secret = e.secret || e.content["kind"] == "SecretGenerator" || len(at) > 0 && at[0] == "secretGenerator"
	for i, given := range list(g, "files") {
		key, file, keyed := strings.Cut(text(given), "=")
		if !keyed {
			key, file = path.Base(text(given)), text(given)
		}
		if key == "" || strings.Contains(file, "=") {
			e.wrong(errors.New("must be a path, or KEY=PATH"), append(at, "files", i)...)
			continue
		}
		e.setRaw(file, func(name string) { list(g, "files")[i] = key + "=" + name }, append(at, "files", i)...)
	}
	for i, given := range list(g, "literals") {
		if key, _, ok := strings.Cut(text(given), "="); !ok || key == "" {
			e.wrong(errors.New("must be KEY=VALUE"), append(at, "literals", i)...) // the value may be a secret
		}
	}
	for i, given := range list(g, "envs") {
		e.setRaw(text(given), func(name string) { list(g, "envs")[i] = name }, append(at, "envs", i)...)
	}
	if given := text(g["env"]); given != "" {
		e.setRaw(given, func(name string) { g["env"] = name }, append(at, "env")...)
	}

	options, _ := g["options"].(map[string]any)
	options = clone(options)
	annotations, _ := options["annotations"].(map[string]any)
	annotations = clone(annotations)
	annotations[mark] = e.marked(provenance{origin: e.at(at...)})
	options["annotations"] = annotations
	g["options"] = options
}
