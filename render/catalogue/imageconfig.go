package catalogue

import (
	"encoding/json"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ImageConfigs are what the ImageConfig objects of a commit say of images. For every purpose
// the longest prefix counts, compared letter by letter, as with Crossplane.
type ImageConfigs struct {
	Rewrites []Prefixed // what the prefix becomes
	Secrets  []Prefixed // the name of the Secret to pull with
	Verified []Prefixed // what signature is demanded: spec.verification, in JSON
}

// A Prefixed is what an ImageConfig says of the images that begin with a prefix.
type Prefixed struct {
	Prefix string
	Value  string
	Config string // the name of the ImageConfig
	Origin manifest.Origin
}

// Rewritten is what is pulled for an image. What comes of that is not rewritten again.
func (c ImageConfigs) Rewritten(image string) string {
	if best, ok := longest(c.Rewrites, image); ok {
		return best.Value + strings.TrimPrefix(image, best.Prefix)
	}
	return image
}

// Secret is the Secret that an image, rewritten, is pulled with; "" is none.
func (c ImageConfigs) Secret(image string) string {
	best, _ := longest(c.Secrets, image)
	return best.Value
}

// Verification is the ImageConfig that demands a signature of an image, rewritten.
func (c ImageConfigs) Verification(image string) (Prefixed, bool) { return longest(c.Verified, image) }

// longest is the first of the longest prefixes of an image.
func longest(all []Prefixed, image string) (best Prefixed, ok bool) {
	for _, p := range all {
		if strings.HasPrefix(image, p.Prefix) && len(p.Prefix) > len(best.Prefix) {
			best, ok = p, true
		}
	}
	return best, ok
}

// read adds what an ImageConfig says.
func (c *ImageConfigs) read(d *manifest.Document, u *unstructured.Unstructured) {
	spec, _ := u.Object["spec"].(map[string]any)
	matches, _ := spec["matchImages"].([]any)
	for i, match := range matches {
		m, _ := match.(map[string]any)
		prefix, _ := m["prefix"].(string)
		if kind, said := m["type"]; prefix == "" || said && kind != "Prefix" {
			continue // the API refuses it
		}
		p := Prefixed{Prefix: prefix, Config: u.GetName(), Origin: d.OriginOf("spec", "matchImages", i)}
		if to, _, _ := unstructured.NestedString(spec, "rewriteImage", "prefix"); to != "" {
			p.Value = to
			c.Rewrites = append(c.Rewrites, p)
		}
		if name, _, _ := unstructured.NestedString(spec, "registry", "authentication", "pullSecretRef", "name"); name != "" {
			p.Value = name
			c.Secrets = append(c.Secrets, p)
		}
		if demand := spec["verification"]; demand != nil {
			text, err := json.Marshal(demand)
			if err != nil { // what was decoded can be encoded
				text = []byte(err.Error()) // and nobody can meet this
			}
			p.Value = string(text)
			c.Verified = append(c.Verified, p)
		}
	}
}
