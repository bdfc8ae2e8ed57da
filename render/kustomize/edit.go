package kustomize

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/kustomize/api/types"

	strictjson "sigs.k8s.io/json"
)

// An editing walks through a kustomization, or the configuration of a plugin in it. It replaces every path with one in the view,
// and every text with our own parse of it.
type editing struct {
	*vetting
	k       *kustomization
	file    string
	trail   []string // the directories that are being vetted, including this one
	content map[string]any
	at      func(path ...any) manifest.Origin
	failed  bool // because of a base directory
}

// strict refuses fields that kustomize does not know or spells differently.
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

// fieldOf returns the line of the field in an error, such as "patches[0].pth".
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

// vet returns the vetted kustomization, or nil if it is refused.
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
	delete(e.content, "sortOptions") // the result is sorted anyway
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
