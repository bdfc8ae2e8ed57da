package kustomize

import (
	"errors"
	"fmt"
	"maps"

	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/kustomize/api/builtins" //nolint:staticcheck // deprecated for API v1, which does not exist yet
	"sigs.k8s.io/kustomize/api/types"
)

// plugins vets the plugin configurations in a list, inline or in files. It inlines all of them: first those that were inline, then
// those from files, as kustomize orders them.
func (e *editing) plugins(key string) {
	var held, named []any
	for i, given := range list(e.content, key) {
		if isInline(e.reader, text(given)) {
			documents, err := e.reader.Inline("inline", text(given))
			if err != nil {
				e.wrong(err, key, i)
				continue
			}
			held = append(held, e.configurations(documents, func(*manifest.Document, ...any) manifest.Origin { return e.at(key, i) })...)
			continue
		}
		name, ok := e.regular(text(given), key, i)
		if !ok {
			continue
		}
		documents, err := e.reader.Read(name)
		if err != nil {
			e.problems = append(e.problems, Error{Origin: manifest.Origin{Path: name}, Err: err})
			continue
		}
		named = append(named, e.configurations(documents, (*manifest.Document).OriginOf)...)
	}
	if held = append(held, named...); held != nil {
		e.content[key] = held
	}
}

// configurations encodes the configurations of plugins for kustomize.
func (e *editing) configurations(documents []*manifest.Document, at func(*manifest.Document, ...any) manifest.Origin) []any {
	var all []any
	for _, d := range documents {
		inside := *e
		inside.at = func(path ...any) manifest.Origin { return at(d, path...) }
		v, err := d.Value12()
		if err != nil {
			e.refuse(inside.at(), err)
			continue
		}
		content, ok := v.(map[string]any)
		if !ok {
			e.refuse(inside.at(), errors.New("this is not the configuration of a plugin"))
			continue
		}
		inside.content = content
		inside.plugin(d.Header)
		e.failed = e.failed || inside.failed
		raw, err := encode(inside.content)
		if err != nil {
			e.refuse(inside.at(), err)
			continue
		}
		e.k.size.bytes += int64(len(raw))
		all = append(all, string(raw))
	}
	return all
}

// builtIn lists the plugins that are part of kustomize, except the one that runs helm.
var builtIn = map[string]func() any{
	"AnnotationsTransformer":         func() any { return &builtins.AnnotationsTransformerPlugin{} },
	"ConfigMapGenerator":             func() any { return &types.ConfigMapArgs{} },
	"HashTransformer":                func() any { return &struct{}{} },
	"IAMPolicyGenerator":             func() any { return &types.IAMPolicyGeneratorArgs{} },
	"ImageTagTransformer":            func() any { return &builtins.ImageTagTransformerPlugin{} },
	"LabelTransformer":               func() any { return &builtins.LabelTransformerPlugin{} },
	"NamespaceTransformer":           func() any { return &builtins.NamespaceTransformerPlugin{} },
	"PatchJson6902Transformer":       func() any { return &builtins.PatchJson6902TransformerPlugin{} },
	"PatchStrategicMergeTransformer": func() any { return &builtins.PatchStrategicMergeTransformerPlugin{} },
	"PatchTransformer":               func() any { return &builtins.PatchTransformerPlugin{} },
	"PrefixTransformer":              func() any { return &builtins.PrefixTransformerPlugin{} },
	"SuffixTransformer":              func() any { return &builtins.SuffixTransformerPlugin{} },
	"ReplacementTransformer":         func() any { return &builtins.ReplacementTransformerPlugin{} },
	"ReplicaCountTransformer":        func() any { return &builtins.ReplicaCountTransformerPlugin{} },
	"SecretGenerator":                func() any { return &types.SecretArgs{} },
	"ValueAddTransformer":            func() any { return &builtins.ValueAddTransformerPlugin{} },
	"PrefixSuffixTransformer": func() any {
		return &struct {
			Prefix     string        `json:"prefix"`
			Suffix     string        `json:"suffix"`
			FieldSpecs types.FsSlice `json:"fieldSpecs"`
		}{}
	},
}

// plugin vets the configuration of a plugin. Kustomize can also run containers, programs and scripts as plugins: those are refused,
// regardless of the options of kustomize.
func (e *editing) plugin(h manifest.Header) {
	meta, _ := e.content["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	for key := range annotations {
		if key == "config.kubernetes.io/function" || key == "config.k8s.io/function" {
			e.refuse(e.at("metadata", "annotations", key), fmt.Errorf("%s %s is a function: Headgate runs no container, program or script", h.Kind, h.Name))
			return
		}
	}
	made, known := builtIn[h.Kind]
	switch {
	case h.Kind == "HelmChartInflationGenerator":
		e.refuse(e.at(), errHelm)
		return
	case !known || h.APIVersion != "builtin":
		e.refuse(e.at(), fmt.Errorf("%s of %s is not a plugin that is built into kustomize, and Headgate runs no other", h.Kind, h.APIVersion))
		return
	case h.Name == "":
		e.refuse(e.at(), fmt.Errorf("%s has no metadata.name", h.Kind))
		return
	}
	fields := maps.Clone(e.content)
	delete(fields, "apiVersion")
	delete(fields, "kind")
	delete(fields, "metadata")
	e.strict(fields, made())

	switch h.Kind {
	case "PatchTransformer":
		e.patch(e.content, "patch")
	case "PatchJson6902Transformer":
		e.patch(e.content, "jsonOp")
	case "PatchStrategicMergeTransformer":
		for i, given := range list(e.content, "paths") {
			list(e.content, "paths")[i] = e.inlineOrFile(text(given), "paths", i)
		}
		if given := text(e.content["patches"]); given != "" {
			e.content["patches"] = e.inline(given, "patches")
		}
	case "ReplacementTransformer":
		e.replacements(e.content, "replacements")
	case "ConfigMapGenerator", "SecretGenerator":
		e.generator(e.content)
	case "ValueAddTransformer":
		if given := text(e.content["targetFilePath"]); given != "" {
			e.setYAML(given, func(name string) { e.content["targetFilePath"] = name }, "targetFilePath")
		}
	}
}
