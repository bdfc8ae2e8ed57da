package registry

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"
)

// withKept returns images with the kept content of the commit in place of those that could not be pulled. If an image
// needs a signature, kept content does not count, because nothing signed it.
func (s *Resolver) withKept(files fs.FS, images []packages.Image) []packages.Image {
	if !s.Keeps {
		return images
	}
	for i, image := range images {
		r := image.Request
		if image.Err == nil && r.Keeps != (packages.Keeps{}) {
			if _, err := r.Content(files); err != nil { // a later preview may still need the content
				images[i].Findings = append(slices.Clone(image.Findings), manifest.Finding{
					Rule: packages.RuleKept, Severity: manifest.Warning, About: manifest.About{Subject: r.Source}, Message: "kept schemas do not count: " + err.Error(), Fix: packages.KeepAgain,
				})
			}
			continue
		}
		if image.Err == nil || r.Keeps == (packages.Keeps{}) || r.Copied || len(s.pulls.demands(r.Configs, r.Image(r.Version))) > 0 {
			continue
		}
		if _, err := r.Content(files); err != nil {
			images[i].Err = fmt.Errorf("%w; %w; %s", image.Err, err, packages.KeepAgain)
			continue
		}
		images[i] = packages.Image{
			Request: r, Version: r.Version, Digest: r.Digest,
			Kept: &catalogue.Kept{File: r.Keeps.File, Hash: r.Keeps.Hash, Err: image.Err},
			Open: func() (io.ReadCloser, error) {
				raw, err := r.Content(files)
				return io.NopCloser(bytes.NewReader(raw)), err
			},
			Findings: []manifest.Finding{{
				Rule: packages.RuleKept, Severity: manifest.Note, About: manifest.About{Subject: r.Source},
				Message: fmt.Sprintf("%s is read from %s, which the lock keeps, because the image cannot be pulled: %v", crossplane.Image(r.Source, r.Version), r.Keeps.File, image.Err),
			}},
		}
	}
	return images
}
