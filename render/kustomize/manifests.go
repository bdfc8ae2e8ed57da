package kustomize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"headgate.dev/headgate/render/manifest"

	"sigs.k8s.io/kustomize/api/konfig"
)

// mark is the annotation that identifies an object after a build. It is removed from the result.
const mark = "headgate.dev/kustomized-from"

// A provenance is the origin of an object that kustomize built.
type provenance struct {
	origin   manifest.Origin
	document *manifest.Document // nil for a generated object
	nth      int                // its index in the file
}

// marked registers a provenance and returns its mark.
func (v *vetting) marked(s provenance) string {
	v.sources = append(v.sources, s)
	return strconv.Itoa(len(v.sources) - 1)
}

// sourceOf returns the provenance of an object, and removes all copies of the mark that kustomize may have made.
func (v *vetting) sourceOf(object map[string]any, otherwise manifest.Origin) provenance {
	found := provenance{origin: otherwise}
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	n, err := strconv.Atoi(text(annotations[mark]))
	if err == nil && n >= 0 && n < len(v.sources) {
		found, v.used[n] = v.sources[n], true
	}
	unmark(object)
	if annotations != nil && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return found
}

func unmark(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, mark)
		for _, v := range value {
			unmark(v)
		}
	case []any:
		for _, v := range value {
			unmark(v)
		}
	}
}

// manifests describes the content of a file of resources.
type manifests struct {
	size
	local bool // it has documents for local use only
}

// manifestsOf adds the manifests of a file, with marks, to the view.
func (v *vetting) manifestsOf(name string) *manifests {
	if m, known := v.manifests[name]; known {
		return m
	}
	m := &manifests{}
	v.manifests[name] = m
	v.reads[name] = true
	documents, err := v.reader.Read(name)
	if err != nil {
		v.problems = append(v.problems, Error{Origin: manifest.Origin{Path: name}, Err: err})
		return m
	}
	var all [][]byte
	for i, d := range documents {
		raw, local, err := v.prepare(d, i)
		if err != nil {
			v.problems = append(v.problems, *err)
			continue
		}
		all = append(all, raw)
		m.documents++
		m.local = m.local || local
		if d.Header.Kind == "CustomResourceDefinition" {
			m.crds++
		}
	}
	content := bytes.Join(all, separator)
	m.bytes = int64(len(content))
	v.view.add(inCommit+name, content)
	return m
}

var separator = []byte("\n---\n")

// prepare returns a document in the form for kustomize.
func (v *vetting) prepare(d *manifest.Document, nth int) (raw []byte, local bool, _ *Error) {
	refuse := func(format string, args ...any) ([]byte, bool, *Error) {
		return nil, false, &Error{Origin: d.Origin, Err: fmt.Errorf("%s: %w", d.Origin, fmt.Errorf(format, args...))}
	}
	switch {
	case d.Header.Kind == "":
		return refuse("this is not a Kubernetes manifest, but a kustomization uses it as a resource")
	case strings.HasPrefix(d.Header.APIVersion, "kustomize.config.k8s.io/"):
		return refuse("this is a kustomization, and another one names it as a resource: name its directory")
	}
	v.secret = v.secret || isSecret(d)
	value, err := d.Value12()
	if err != nil {
		return nil, false, &Error{Origin: d.Origin, Err: err}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return refuse("this is not a Kubernetes manifest, but a kustomization uses it as a resource")
	}
	object["apiVersion"], object["kind"] = d.Header.APIVersion, d.Header.Kind // the items of a typed List have neither
	metadata, _ := object["metadata"].(map[string]any)
	name := text(metadata["name"])
	if name == "" {
		return refuse("%s has no metadata.name, without which kustomize builds nothing", d.Header.Kind)
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil && metadata["annotations"] != nil {
		return refuse("metadata.annotations of %s %s must be a mapping", d.Header.Kind, name)
	}
	for key := range annotations {
		if strings.HasPrefix(key, konfig.ConfigAnnoDomain+"/") {
			return refuse("the annotation %s of %s %s is reserved for kustomize: remove it", key, d.Header.Kind, name)
		}
	}
	annotations = clone(annotations)
	annotations[mark] = v.marked(provenance{origin: d.Origin, document: d, nth: nth})
	metadata["annotations"] = annotations
	raw, err = encode(object)
	if err != nil {
		return refuse("%w", err)
	}
	only, given := annotations[konfig.IgnoredByKustomizeAnnotation]
	return raw, given && only != "false", nil
}

// values encodes the values of documents for kustomize. Kustomize reads objects as YAML 1.2, but lists of operations and its own
// configuration as YAML 1.1.
func values(documents []*manifest.Document, objects bool) ([]byte, error) {
	var all [][]byte
	for _, d := range documents {
		if err := d.Claim(); err != nil { // kustomize keeps all of them in memory
			return nil, err
		}
		v, err := d.Value()
		if err != nil {
			return nil, err
		}
		if _, mapping := v.(map[string]any); mapping && objects {
			if v, err = d.Value12(); err != nil {
				return nil, err
			}
		}
		raw, err := encode(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Origin, err)
		}
		all = append(all, raw)
	}
	return bytes.Join(all, separator), nil
}

// encode returns a value in JSON that every YAML library reads in the same way: without anchors and tags, without words that one
// library reads as a boolean and another as a string, and without characters that some treat as line breaks.
func encode(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	var b []byte // nil until the first character that must be escaped
	start := 0
	for i := 0; i < len(plain); {
		r, n := utf8.DecodeRune(plain[i:])
		if r >= 0x7F && r <= 0x9F || r == 0xFEFF || r == 0xFFFE || r == 0xFFFF {
			b = append(b, plain[start:i]...)
			b = fmt.Appendf(b, `\u%04X`, r)
			start = i + n
		}
		i += n
	}
	if b == nil {
		return plain, nil
	}
	return append(b, plain[start:]...), nil
}
