package packages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ImageConfigs are the settings of ImageConfig objects. For every purpose the longest prefix counts, compared letter by
// letter, as in Crossplane.
type ImageConfigs struct {
	Rewrites []Prefixed // what the prefix becomes
	Secrets  []Prefixed // the name of the Secret to pull with
	Verified []Prefixed // what signature is demanded: spec.verification, in JSON

	declared []Prefixed    // the objects of the commit
	cluster  *ImageConfigs // what the cluster says as it is, without the commit; nil: none was asked
}

// A Prefixed holds the settings of an ImageConfig for images that begin with a prefix.
type Prefixed struct {
	Prefix string
	Value  string
	Config string // the name of the ImageConfig
	Origin manifest.Origin
	Live   bool // it is one of the cluster, and has no Origin
}

func (p Prefixed) String() string {
	if p.Live {
		return "ImageConfig " + p.Config + " of the cluster"
	}
	return fmt.Sprintf("ImageConfig %s (%s)", p.Config, p.Origin)
}

// sent is ImageConfigs as another process gets them.
type sent struct {
	Rewrites, Secrets, Verified, Declared []Prefixed
	Cluster                               *ImageConfigs
}

// MarshalJSON is for another process.
func (c ImageConfigs) MarshalJSON() ([]byte, error) {
	return json.Marshal(sent{c.Rewrites, c.Secrets, c.Verified, c.declared, c.cluster})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (c *ImageConfigs) UnmarshalJSON(data []byte) error {
	var s sent
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*c = ImageConfigs{s.Rewrites, s.Secrets, s.Verified, s.Declared, s.Cluster}
	return nil
}

// A LiveConfig is an ImageConfig that a cluster has.
type LiveConfig struct {
	Name string
	Spec map[string]any
	Ours bool // the sync made it, and prunes it where its commit has it no more
}

// Rewritten returns the image that is pulled instead of an image. The result is not rewritten again.
func (c ImageConfigs) Rewritten(image string) string {
	if best, ok := c.Rewrite(image); ok {
		return best.Value + strings.TrimPrefix(image, best.Prefix)
	}
	return image
}

// Rewrite is the ImageConfig that rewrites an image.
func (c ImageConfigs) Rewrite(image string) (Prefixed, bool) { return longest(c.Rewrites, image) }

// Secret is the Secret that an image, rewritten, is pulled with; "" is none.
func (c ImageConfigs) Secret(image string) string {
	best, _ := longest(c.Secrets, image)
	return best.Value
}

// Verification is the ImageConfig that demands a signature of an image, rewritten.
func (c ImageConfigs) Verification(image string) (Prefixed, bool) { return longest(c.Verified, image) }

// A Dropped demand is a signature that the cluster demands until the commit is applied.
type Dropped struct {
	Demand  Prefixed
	By      Prefixed // what of the commit, or left of the cluster, comes in its place; zero: nothing
	Another bool     // that demands another signature
}

// Dropped returns the cluster's demands on an image that the commit does not meet. It looks under the name that the
// cluster pulls now and under the name that the commit makes it pull.
func (c ImageConfigs) Dropped(image string) []Dropped {
	if c.cluster == nil {
		return nil
	}
	pulled := c.Rewritten(image)
	now, demanded := c.Verification(pulled)
	var all []Dropped
	for _, name := range []string{c.cluster.Rewritten(image), pulled} {
		was, ok := c.cluster.Verification(name)
		if !ok || demanded && now.Value == was.Value || slices.ContainsFunc(all, func(d Dropped) bool { return d.Demand == was }) {
			continue
		}
		d := Dropped{Demand: was, By: now, Another: demanded}
		if !demanded {
			d.By = c.replacing(was, image)
		}
		all = append(all, d)
	}
	return all
}

// replacing returns the object of the commit that ends a demand for a signature: an object with the same name, or one
// that rewrites the image.
func (c ImageConfigs) replacing(was Prefixed, image string) Prefixed {
	for _, one := range c.declared {
		if one.Config == was.Config {
			return one
		}
	}
	if by, ok := c.Rewrite(image); ok && !by.Live {
		return by
	}
	return Prefixed{}
}

// longest is the first of the longest prefixes of an image.
func longest(all []Prefixed, image string) (best Prefixed, ok bool) {
	for _, p := range all {
		if strings.HasPrefix(image, p.Prefix) && len(p.Prefix) > len(best.Prefix) {
			best, ok = p, true
		}
	}
	return best, ok
}

// with merges the settings of the commit and a cluster. An object of the commit replaces the live one with the same
// name. Live objects of this sync that left the commit do not count.
func (c *ImageConfigs) with(live []LiveConfig) *ImageConfigs {
	if len(live) == 0 {
		return c
	}
	all := &ImageConfigs{
		Rewrites: slices.Clone(c.Rewrites), Secrets: slices.Clone(c.Secrets), Verified: slices.Clone(c.Verified),
		declared: c.declared, cluster: &ImageConfigs{},
	}
	for _, one := range live {
		as := Prefixed{Config: one.Name, Live: true}
		nowhere := func(int) manifest.Origin { return manifest.Origin{} }
		all.cluster.read(one.Spec, as, nowhere)
		if !one.Ours && !slices.ContainsFunc(c.declared, func(d Prefixed) bool { return d.Config == one.Name }) {
			all.read(one.Spec, as, nowhere)
		}
	}
	return all
}

// declare adds what an ImageConfig of the commit says.
func (c *ImageConfigs) declare(as Prefixed, spec map[string]any, at func(match int) manifest.Origin) {
	c.declared = append(c.declared, as)
	c.read(spec, as, at)
}

// read adds what the spec of an ImageConfig says.
func (c *ImageConfigs) read(spec map[string]any, p Prefixed, at func(match int) manifest.Origin) {
	matches, _ := spec["matchImages"].([]any)
	for i, match := range matches {
		m, _ := match.(map[string]any)
		prefix, _ := m["prefix"].(string)
		if kind, found := m["type"]; prefix == "" || found && kind != "Prefix" {
			continue // the API refuses it, or it matches nothing
		}
		p.Prefix, p.Origin = prefix, at(i)
		if to, _, _ := unstructured.NestedString(spec, "rewriteImage", "prefix"); to != "" {
			p.Value = to
			c.Rewrites = append(c.Rewrites, p)
		}
		if name, _, _ := unstructured.NestedString(spec, "registry", "authentication", "pullSecretRef", "name"); name != "" {
			p.Value = name
			c.Secrets = append(c.Secrets, p)
		}
		if demand := spec["verification"]; demand != nil {
			p.Value = demandOf(demand)
			c.Verified = append(c.Verified, p)
		}
	}
}

// demandOf is what a spec.verification demands, in JSON, without the hash that the API server
// fills in: what a commit says and what came of it are equal.
func demandOf(verification any) string {
	text, err := json.Marshal(verification)
	if err != nil { // what was decoded can be encoded
		return err.Error() // and no image can meet this
	}
	var v map[string]any
	if json.Unmarshal(text, &v) != nil {
		return string(text)
	}
	cosign, _ := v["cosign"].(map[string]any)
	authorities, _ := cosign["authorities"].([]any)
	for _, a := range authorities {
		authority, _ := a.(map[string]any)
		if key, _ := authority["key"].(map[string]any); key["hashAlgorithm"] == "sha256" {
			delete(key, "hashAlgorithm")
		}
	}
	if plain, err := json.Marshal(v); err == nil {
		text = plain
	}
	return string(text)
}
