package packages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ImageConfigs holds the settings of ImageConfig objects. For every purpose, the longest prefix counts, compared byte by byte, as
// in Crossplane.
type ImageConfigs struct {
	Rewrites []Prefixed // the replacement of the prefix
	Secrets  []Prefixed // the name of the pull Secret
	Verified []Prefixed // the required signature: spec.verification, as JSON

	declared []Prefixed    // the objects of the commit
	cluster  *ImageConfigs // the settings of the cluster alone, without the commit; nil if no cluster was asked
}

// A Prefixed holds the settings of an ImageConfig for images that begin with a prefix.
type Prefixed struct {
	Prefix string
	Value  string
	Config string // the name of the ImageConfig
	Origin manifest.Origin
	Live   bool // from the cluster, without an Origin
}

func (p Prefixed) String() string {
	if p.Live {
		return "ImageConfig " + p.Config + " of the cluster"
	}
	return fmt.Sprintf("ImageConfig %s (%s)", p.Config, p.Origin)
}

// sent is the JSON form of ImageConfigs for another process.
type sent struct {
	Rewrites, Secrets, Verified, Declared []Prefixed
	Cluster                               *ImageConfigs
}

// MarshalJSON encodes the settings for another process.
func (c ImageConfigs) MarshalJSON() ([]byte, error) {
	return json.Marshal(sent{c.Rewrites, c.Secrets, c.Verified, c.declared, c.cluster})
}

// UnmarshalJSON decodes the output of MarshalJSON.
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
	Ours bool // the sync applied it, and prunes it if its commit no longer contains it
}

// Rewritten returns the image that is pulled in place of an image. The result is not rewritten again.
func (c ImageConfigs) Rewritten(image string) string {
	if best, ok := c.Rewrite(image); ok {
		return best.Value + strings.TrimPrefix(image, best.Prefix)
	}
	return image
}

// Rewrite returns the ImageConfig that rewrites an image.
func (c ImageConfigs) Rewrite(image string) (Prefixed, bool) { return longest(c.Rewrites, image) }

// Secret returns the pull Secret of a rewritten image, or "".
func (c ImageConfigs) Secret(image string) string {
	best, _ := longest(c.Secrets, image)
	return best.Value
}

// Verification returns the ImageConfig that requires a signature of a rewritten image.
func (c ImageConfigs) Verification(image string) (Prefixed, bool) { return longest(c.Verified, image) }

// A Dropped is a required signature that the cluster no longer requires once the commit is applied.
type Dropped struct {
	Demand  Prefixed
	By      Prefixed // the ImageConfig that replaces it; zero if there is none
	Another bool     // By requires another signature
	Now     string   // the name of the image in the commit; "" if it is the same
}

// Dropped returns the signatures of an image that the cluster requires and the commit does not. It checks the name that the cluster
// pulls now and the name that it pulls with the commit.
func (c ImageConfigs) Dropped(image string) []Dropped {
	if c.cluster == nil {
		return nil
	}
	var all []Dropped
	for _, name := range []string{c.cluster.Rewritten(image), c.Rewritten(image)} {
		demand, ok := c.cluster.Verification(name)
		if !ok {
			continue
		}
		if d, drops := c.dropped(demand, image); drops && !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// replacing returns the object of the commit that removes a required signature: an object with the same name that no longer makes
// the demand, or one that rewrites the image.
func (c ImageConfigs) replacing(was Prefixed, image string) Prefixed {
	stays := slices.ContainsFunc(c.Verified, func(p Prefixed) bool {
		return p.Config == was.Config && p.Prefix == was.Prefix && p.Value == was.Value
	})
	for _, one := range c.declared {
		if one.Config == was.Config && !stays {
			return one
		}
	}
	if by, ok := c.Rewrite(image); ok && !by.Live {
		return by
	}
	return Prefixed{}
}

// longest returns the first of the settings with the longest prefix of an image.
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

// declare adds the settings of an ImageConfig of the commit.
func (c *ImageConfigs) declare(as Prefixed, spec map[string]any, at func(match int) manifest.Origin) {
	c.declared = append(c.declared, as)
	c.read(spec, as, at)
}

// read adds the settings in the spec of an ImageConfig.
func (c *ImageConfigs) read(spec map[string]any, p Prefixed, at func(match int) manifest.Origin) {
	matches, _ := spec["matchImages"].([]any)
	for i, match := range matches {
		m, _ := match.(map[string]any)
		prefix, _ := m["prefix"].(string)
		if kind, found := m["type"]; prefix == "" || found && kind != "Prefix" {
			continue // the API server refuses it, or it matches nothing
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

// demandOf returns the requirement of a spec.verification as JSON, without the hash that the API server fills in. So a commit's
// requirement equals the live one that it results in.
func demandOf(verification any) string {
	text, err := json.Marshal(verification)
	if err != nil { // it was decoded, so it can be encoded
		return err.Error() // and no image can satisfy this
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
