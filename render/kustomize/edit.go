package kustomize

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/kustomize/api/types"

	strictjson "sigs.k8s.io/json"
)

// An editing goes through a kustomization, or the configuration of a plugin in it. Every
// path becomes one that the view has, every text what our own reading makes of it.
type editing struct {
	*vetting
	k       *kustomization
	file    string
	trail   []string // the directories that are being vetted, with this one
	content map[string]any
	at      func(path ...any) manifest.Origin
	failed  bool // by a directory that it is built upon
}

// strict refuses fields that kustomize does not know, or knows by another spelling.
func (e *editing) strict(content map[string]any, into any) {
	raw, err := json.Marshal(content)
	if err != nil {
		e.refuse(e.at(), err)
		return
	}
	unknown, err := strictjson.UnmarshalStrict(raw, into)
	if err != nil {
		e.refuse(e.at(), errors.New(strings.TrimPrefix(err.Error(), "json: ")))
		return
	}
	for _, err := range unknown {
		e.refuse(e.fieldOf(err), err)
	}
}

var unknownField = regexp.MustCompile(`"([^"]*)"`)

// fieldOf is the line of a field that an error names, as "patches[0].pth".
func (e *editing) fieldOf(err error) manifest.Origin {
	m := unknownField.FindStringSubmatch(err.Error())
	if m == nil {
		return e.at()
	}
	var steps []any
	for name := range strings.SplitSeq(m[1], ".") {
		name, index, indexed := strings.Cut(name, "[")
		steps = append(steps, name)
		if n, err := strconv.Atoi(strings.TrimSuffix(index, "]")); indexed && err == nil {
			steps = append(steps, n)
		}
	}
	return e.at(steps...)
}

// wrong refuses the value at a path.
func (e *editing) wrong(err error, at ...any) {
	e.refuse(e.at(at...), fmt.Errorf("%s: %w", manifest.Field(at...), err))
}

// vet is what becomes of the kustomization, or nil.
func (e *editing) vet() *kustomization {
	before := len(e.problems)
	e.k.component = e.content["kind"] == types.ComponentKind
	e.k.size.visits = 1

	e.helm()
	e.resources()
	e.components()
	e.openAPI()
	for _, key := range []string{"crds", "configurations"} {
		for i, given := range list(e.content, key) {
			e.setYAML(text(given), func(name string) { list(e.content, key)[i] = name }, key, i)
		}
	}
	for _, key := range []string{"patches", "patchesJson6902"} {
		for i := range list(e.content, key) {
			if patch, ok := e.mapping(key, i); ok {
				e.patch(patch, "patch", key, i)
			}
		}
	}
	for i, given := range list(e.content, "patchesStrategicMerge") {
		list(e.content, "patchesStrategicMerge")[i] = e.inlineOrFile(text(given), "patchesStrategicMerge", i)
	}
	e.replacements(e.content, "replacements")
	for _, key := range []string{"configMapGenerator", "secretGenerator"} {
		for i := range list(e.content, key) {
			if generator, ok := e.mapping(key, i); ok {
				e.generator(generator, key, i)
			}
		}
	}
	for _, key := range []string{"generators", "transformers", "validators"} {
		e.plugins(key)
	}
	if err := e.k.size.within(e.reader.Limits()); err != nil {
		e.refuse(e.k.origin, err)
	}
	delete(e.content, "sortOptions") // what is built is sorted anyway
	if e.failed || len(e.problems) > before {
		return nil
	}
	raw, err := encode(e.content)
	if err != nil {
		e.refuse(e.k.origin, err)
		return nil
	}
	e.view.add(inCommit+e.file, raw)
	return e.k
}

// list is a list of the content, or nothing.
func list(content map[string]any, key string) []any {
	l, _ := content[key].([]any)
	return l
}

// mapping is an item of a list that is to be a mapping.
func (e *editing) mapping(key string, i int) (map[string]any, bool) {
	m, ok := list(e.content, key)[i].(map[string]any)
	if !ok {
		e.wrong(errors.New("is empty"), key, i)
	}
	return m, ok
}

func (e *editing) helm() {
	for _, key := range []string{"helmCharts", "helmGlobals", "helmChartInflationGenerator"} {
		if e.content[key] != nil {
			e.wrong(errHelm, key)
		}
	}
}

var errHelm = errors.New("charts are not inflated, since that runs helm and fetches: render the chart and commit what it makes")

// resources are files with manifests and directories with a kustomization; bases are
// resources by an older name.
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
				e.wrong(fmt.Errorf("%s is no Component: name it under resources", name), "components", i)
			}
		}
		list(e.content, "components")[i] = dotted(text(given))
	}
}

// upon vets a directory that this one is built upon.
func (e *editing) upon(name string, at ...any) *kustomization {
	below := e.kustomization(name, e.trail, e.at(at...))
	if below == nil {
		e.failed = true // which was said where it failed
		return nil
	}
	e.k.upon = append(e.k.upon, below)
	e.k.size.add(below.size)
	e.k.openAPI = e.k.openAPI || below.openAPI
	return below
}

// openAPI names a file with schemas, or a version of those that kustomize brings.
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

// patch is a patch by path, or by text under a key.
func (e *editing) patch(patch map[string]any, key string, at ...any) {
	if text(patch["path"]) != "" && text(patch[key]) != "" {
		e.wrong(errors.New("is there, and path as well: one of them is enough"), append(at, key)...)
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

// generator makes a ConfigMap or a Secret of files, which are taken as they are.
func (e *editing) generator(g map[string]any, at ...any) {
	e.k.size.documents++
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
	annotations[mark] = e.marked(source{origin: e.at(at...)})
	options["annotations"] = annotations
	g["options"] = options
}

// clone is a copy that can be written to.
func clone(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return maps.Clone(m)
}

// regular is a file of the commit.
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

// setRaw gives the view the bytes of a file, and set its name there.
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

// setYAML gives the view what is in a file of configuration, and set its name there.
func (e *editing) setYAML(given string, set func(name string), at ...any) {
	e.setContent(inYAML, given, set, at...)
}

// setPatch does it with a patch.
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

// inline is a text of YAML.
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

// inlineOrFile is a text of YAML, or the path of a file. Kustomize tries one, then the
// other.
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

// isNameless says whether a document lacks what kustomize wants of a patch.
func isNameless(d *manifest.Document) bool {
	v, err := d.Value()
	object, _ := v.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	return err != nil || text(object["kind"]) == "" || text(metadata["name"]) == ""
}

// isInline says whether a text is YAML itself and not the path of a file.
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

// text is a string of the content; null is none.
func text(value any) string {
	s, _ := value.(string)
	return s
}
