package packages

import (
	"encoding/json"
	"slices"
)

// Named holds the images and Secrets that a commit names, in its objects, ImageConfigs and packages. Images are repositories and
// their prefixes, as they are pulled: after the ImageConfigs rewrote them.
type Named struct{ Images, Secrets []string }

// And returns what a or b names.
func (a Named) And(b Named) Named {
	return Named{Images: distinct(a.Images, b.Images), Secrets: distinct(a.Secrets, b.Secrets)}
}

func distinct(all ...[]string) []string {
	made := slices.Concat(all...)
	slices.Sort(made)
	return slices.Compact(made)
}

// Named returns what the commit names, as far as its documents and packages could be read, and what the ImageConfigs of the cluster
// name.
func (c Commit) Named() Named {
	of := c.resolved.configs.named()
	for _, one := range c.roots {
		of.Images = append(of.Images, c.resolved.configs.Rewritten(one.source))
		of.Secrets = append(of.Secrets, one.secrets...)
	}
	for _, n := range c.resolved.nodes {
		of.Images = append(of.Images, c.resolved.configs.Rewritten(n.request.Source))
	}
	return of.And(Named{})
}

// NamedBy returns what the ImageConfigs of a cluster name.
func NamedBy(live []LiveConfig) Named { return new(ImageConfigs).with(live).named() }

// named returns where the ImageConfigs redirect images, and the Secrets that they mention.
func (c *ImageConfigs) named() (of Named) {
	for _, p := range c.Rewrites {
		of.Images = append(of.Images, p.Value)
	}
	for _, p := range c.Secrets {
		of.Secrets = append(of.Secrets, p.Value)
	}
	for _, p := range c.Verified {
		of.Secrets = append(of.Secrets, p.keys()...)
	}
	return of
}

// keys returns the Secrets with the keys of a required signature.
func (p Prefixed) keys() (names []string) {
	var demand struct {
		Cosign struct {
			Authorities []struct {
				Key struct {
					SecretRef struct {
						Name string `json:"name"`
					} `json:"secretRef"`
				} `json:"key"`
			} `json:"authorities"`
		} `json:"cosign"`
	}
	if json.Unmarshal([]byte(p.Value), &demand) != nil { // then no image satisfies it
		return nil
	}
	for _, a := range demand.Cosign.Authorities {
		if name := a.Key.SecretRef.Name; name != "" {
			names = append(names, name)
		}
	}
	return names
}
