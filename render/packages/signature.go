package packages

import (
	"cmp"
	"fmt"
	"slices"

	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
)

// Signatures holds the images that Crossplane installs for a commit, and which signatures the commit demands of them.
type Signatures struct {
	images  []named
	configs *ImageConfigs
}

// A named is an image as Crossplane compares it with the prefixes of ImageConfigs.
type named struct {
	by     manifest.ID // the object that names it; zero for a dependency
	source string
	name   string
	origin manifest.Origin
}

// Signatures returns the images of the commit and the signatures that it demands. It needs no content of packages, except for the
// names of dependencies.
func (c Commit) Signatures() Signatures {
	if c.resolved == nil {
		return Signatures{} // the commit could not be read
	}
	all := Signatures{configs: c.resolved.configs}
	for _, r := range c.roots {
		all.images = append(all.images, named{r.id, r.source, cmp.Or(r.named, crossplane.Image(r.source, r.version)), r.origin})
	}
	for _, n := range c.resolved.nodes {
		if name := n.named(); len(n.roots) == 0 && name != "" {
			all.images = append(all.images, named{source: n.request.Source, name: name, origin: n.place()})
		}
	}
	return all
}

// named returns the image of a node as Crossplane names it; "" if its version is not known.
func (n *node) named() string {
	if n.image == nil || n.image.Version == "" {
		return ""
	}
	return n.request.Image(n.image.Version)
}

// Dropped returns findings about signatures that another commit demands and that this commit does not. An image counts by the name
// that it had and by the one that it has: both may have lost the prefix of an ImageConfig.
func (s Signatures) Dropped(before Signatures) []manifest.Finding {
	if before.configs == nil || s.configs == nil {
		return nil
	}
	var all drops
	for _, image := range s.images {
		for _, name := range before.names(image) {
			demand, ok := before.configs.Verification(before.configs.Rewritten(name))
			if !ok {
				continue
			}
			if d, drops := s.configs.dropped(demand, image.name); drops {
				if name != image.name {
					d.Now = image.name
				}
				all.add(d, name, image.origin)
			}
		}
	}
	return all.findings()
}

// names returns the names of an image: in this commit, if the same object or the same package is there, and in the other one.
func (s Signatures) names(image named) []string {
	var all []string
	for _, was := range s.images {
		if was.source == image.source || was.by == image.by && was.by.Name != "" {
			all = append(all, was.name)
		}
	}
	all = append(all, image.name)
	slices.Sort(all)
	return slices.Compact(all)
}

// dropped returns whether these ImageConfigs no longer make a demand of an image, and what they demand in its place.
func (c ImageConfigs) dropped(demand Prefixed, image string) (Dropped, bool) {
	now, demanded := c.Verification(c.Rewritten(image))
	if demanded && now.Value == demand.Value {
		return Dropped{}, false
	}
	d := Dropped{Demand: demand, By: now, Another: demanded}
	if !demanded {
		d.By = c.replacing(demand, image)
	}
	return d, true
}

// drops collects dropped signatures, with the images that lose them.
type drops struct {
	order []Dropped
	of    map[Dropped][]string
	at    map[Dropped]manifest.Origin // of the first image
}

func (all *drops) add(d Dropped, image string, at manifest.Origin) {
	if all.of == nil {
		all.of, all.at = map[Dropped][]string{}, map[Dropped]manifest.Origin{}
	}
	if all.of[d] == nil {
		all.order, all.at[d] = append(all.order, d), at
	}
	all.of[d] = append(all.of[d], image)
}

func (all *drops) findings() []manifest.Finding {
	var found []manifest.Finding
	for _, d := range all.order {
		f := manifest.Finding{
			Rule: RuleUnsigned, Severity: manifest.Warning, Origin: all.at[d], About: manifest.About{Subject: d.Demand.String()}, Message: d.words(all.of[d]),
			Fix: "require the same signature in the commit, unless this is intended",
		}
		if d.By.Config != "" && !d.By.Live {
			f.Origin = d.By.Origin
		}
		found = append(found, f)
	}
	return found
}

// words describes the loss of a signature of images.
func (d Dropped) words(images []string) string {
	text := fmt.Sprintf("%s requires a signature of %s", d.Demand, images[0])
	if more := len(images) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	switch {
	case d.Another:
		text += ", but with this commit " + d.By.String() + " demands another one"
	case d.By.Config != "":
		text += ", but with this commit nothing does, because of " + d.By.String()
	default:
		text += ", but with this commit nothing does"
	}
	if d.Now != "" {
		text += ": the image is " + d.Now
	}
	return text
}
