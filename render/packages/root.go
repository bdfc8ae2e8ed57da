package packages

import (
	"cmp"
	"slices"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A root is an object of the commit that makes Crossplane install a package.
type root struct {
	id                manifest.ID
	source, version   string
	named             string // the image as the object names it, if it has a tag and a digest
	origin            manifest.Origin
	secrets           []string
	pull              PullPolicy
	manual            bool
	skipsDependencies bool
	ignoresCrossplane bool
}

// rootsOf returns the objects of a commit that install packages, by place, and the settings of its ImageConfigs.
func rootsOf(docs catalogue.Documents) (roots []root, configs *ImageConfigs) {
	var images []*manifest.Document
	for d, in := range docs.All() {
		id := d.Header.ID()
		if id.Group != crossplane.Packages || in != nil || !docs.Applies(d) {
			continue
		}
		switch {
		case crossplane.IsImageConfig(id):
			images = append(images, d)
		case crossplane.IsPackage(id) && strings.HasPrefix(d.Header.Version(), "v1"):
			if one, ok := rootOf(d); ok {
				roots = append(roots, one)
			}
		}
	}
	configs = &ImageConfigs{}
	slices.SortFunc(images, func(a, b *manifest.Document) int { return cmp.Compare(a.Header.Name, b.Header.Name) })
	for _, d := range images {
		if u, err := d.Recall(); err == nil { // the catalogue reports the error
			spec, _ := u.Object["spec"].(map[string]any)
			configs.declare(Prefixed{Config: u.GetName(), Origin: d.Origin}, spec, func(match int) manifest.Origin { return d.OriginOf("spec", "matchImages", match) })
		}
	}
	slices.SortFunc(roots, func(a, b root) int { return a.origin.Compare(b.origin) })
	return roots, configs
}

// rootOf reads an object that installs a package. The catalogue reports errors in it.
func rootOf(d *manifest.Document) (root, bool) {
	u, err := d.Recall()
	if err != nil {
		return root{}, false
	}
	spec, _ := u.Object["spec"].(map[string]any)
	image, _ := spec["package"].(string)
	source, version := crossplane.SplitImage(image)
	if source == "" || version == "" {
		return root{}, false
	}
	r := root{id: manifest.IDOf(u), source: source, version: version, origin: d.OriginOf("spec", "package")}
	if image = strings.TrimSpace(image); image != crossplane.Image(source, version) {
		r.named = image
	}
	policy, _ := spec["packagePullPolicy"].(string)
	r.pull = PullPolicy(policy)
	r.manual = spec["revisionActivationPolicy"] == "Manual"
	r.skipsDependencies = spec["skipDependencyResolution"] == true
	r.ignoresCrossplane = spec["ignoreCrossplaneConstraints"] == true
	secrets, _, _ := unstructured.NestedSlice(spec, "packagePullSecrets")
	for _, s := range secrets {
		m, _ := s.(map[string]any)
		if name, _ := m["name"].(string); name != "" {
			r.secrets = append(r.secrets, name)
		}
	}
	return r, true
}
