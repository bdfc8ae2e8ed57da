package kustomize

import (
	"fmt"
	"maps"
	"slices"

	"headgate.dev/headgate/render/manifest"
)

// A part is an item of a list in a kustomization, without which kustomize can still build it.
type part struct {
	field string
	index int
}

// partial lists the fields whose items may be left out, in the order in which kustomize uses them.
var partial = []string{
	"generators", "configMapGenerator", "secretGenerator", "transformers", "patchesStrategicMerge", "patches", "patchesJson6902",
	"labels", "images", "replicas", "replacements", "vars", "validators", "resources", "components",
}

// The limits of looking for the cause of an error: builds, and the bytes of each.
const (
	mostTries  = 40
	mostBlamed = 4 << 20
)

// blamed returns the place of an error of kustomize, which does not tell it: the item without which the kustomization builds, in the
// deepest directory that does not build. Its text ends with a colon. Without such an item, the place is the kustomization.
func (v *vetting) blamed(k *kustomization) (at manifest.Origin, field string) {
	if k.size.bytes > mostBlamed {
		return k.origin, ""
	}
	tries := mostTries
	return v.blame(k, &tries)
}

func (v *vetting) blame(k *kustomization, tries *int) (at manifest.Origin, field string) {
	for _, below := range k.upon {
		if !below.component && !v.builds(below, tries) && *tries > 0 {
			return v.blame(below, tries)
		}
	}
	file := inCommit + k.file
	whole := v.view.files[file]
	defer func() { v.view.files[file] = whole }()
	for _, p := range k.parts() {
		raw, err := encode(k.without(p))
		if err != nil {
			continue
		}
		v.view.files[file] = raw
		if v.builds(k, tries) {
			return k.at(p.field, p.index), fmt.Sprintf("%s[%d]: ", p.field, p.index)
		}
	}
	return k.origin, ""
}

// builds reports whether kustomize builds a directory. It reports false when there were enough tries.
func (v *vetting) builds(k *kustomization, tries *int) bool {
	if *tries == 0 {
		return false
	}
	*tries--
	_, err := v.build(k)
	return err == nil
}

// parts lists the items that may be left out.
func (k *kustomization) parts() []part {
	var all []part
	for _, field := range partial {
		for i := range list(k.content, field) {
			all = append(all, part{field, i})
		}
	}
	return all
}

// without returns the kustomization without an item.
func (k *kustomization) without(p part) map[string]any {
	less := maps.Clone(k.content)
	less[p.field] = slices.Delete(slices.Clone(list(k.content, p.field)), p.index, p.index+1)
	return less
}
