package kustomize

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// building makes builds run one at a time: kustomize keeps the known schemas in global variables.
var building sync.Mutex

// limitCopies limits the total size of the copy operations in a JSON patch. Twenty of them can make a million copies of an object.
var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = 4 << 20 })

// run runs kustomize on the vetted files.
func (v *vetting) run(k *kustomization) []*manifest.Document {
	built, err := v.build(k)
	if err != nil {
		at, field := v.blamed(k)
		v.refuse(at, fmt.Errorf("%skustomize cannot build it: %s", field, readable(err.Error())))
		return nil
	}
	if n, most := built.Size(), v.reader.Limits().Documents; n > most {
		v.refuse(k.origin, fmt.Errorf("kustomize makes %d documents of it, more than the limit of %d", n, most))
		return nil
	}
	var documents []*manifest.Document
	for _, r := range built.Resources() {
		object, err := r.Map()
		if err != nil {
			v.refuse(k.origin, fmt.Errorf("kustomize builds %s from it, which cannot be decoded", r.CurId()))
			continue
		}
		from := v.sourceOf(object, k.origin)
		unscope(object)
		raw, err := json.Marshal(object)
		if err != nil {
			v.refuse(from.origin, fmt.Errorf("cannot encode: %w", err))
			continue
		}
		d, err := manifest.Made(raw, from.origin, from.document)
		if err != nil {
			v.problems = append(v.problems, Error{Origin: from.origin, Err: err})
			continue
		}
		documents = append(documents, d)
		v.made = append(v.made, madeOf(from, raw))
	}
	return documents
}

// unscope removes the namespace from cluster-scoped objects of Crossplane: kustomize sets a namespace on every kind that it does
// not know.
func unscope(object map[string]any) {
	group, _, _ := strings.Cut(text(object["apiVersion"]), "/")
	if metadata, ok := object["metadata"].(map[string]any); ok && crossplane.IsClusterScoped(group) {
		delete(metadata, "namespace")
	}
}

func (v *vetting) build(k *kustomization) (built resmap.ResMap, err error) {
	building.Lock()
	defer building.Unlock()
	limitCopies()
	if k.openAPI {
		defer openapi.ResetOpenAPI() // otherwise, the next build would also use these schemas
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panics: %v", r)
		}
	}()
	how := krusty.MakeDefaultOptions()
	how.LoadRestrictions = types.LoadRestrictionsNone // everything in the view is vetted
	how.PluginConfig = types.DisabledPluginConfig()
	return krusty.MakeKustomizer(how).Run(v.view, path.Join(inCommit, k.dir))
}

var (
	places   = regexp.MustCompile(`/(commit|patch|yaml|raw)/`)
	firstTry = regexp.MustCompile(`accumulation err='accumulating resources from '[^']*': [^']*': `)
	recursed = regexp.MustCompile(`recursed accumulation of path '[^']*': `)
	repeated = regexp.MustCompile("(?s) with config: `.*`|(?m)\\{.*\\}|\\[patch: \".*\"\\]")
	revealed = regexp.MustCompile(`(?s)(loading KV pairs|validator shouldn't modify the resource map|out of bounds for value|invalid literal source).*|\n.*`)
)

// readable returns an error of kustomize with the commit's names, and without quotes from its input, which may be a secret.
func readable(text string) string {
	text = repeated.ReplaceAllString(text, "…")
	text = revealed.ReplaceAllString(text, "$1")
	text = strings.Replace(text, "loading KV pairs", "the input of a generator is invalid; it is not repeated here, because it may be a secret", 1)
	text = firstTry.ReplaceAllString(text, "")
	text = recursed.ReplaceAllString(text, "") // the place shows the directory
	text = places.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "accumulating resources: ", "")
	const most = 500
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.Join(strings.Fields(text), " ")
}
