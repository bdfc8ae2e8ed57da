package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"
)

// Keeping reports whether the lock of the commit keeps schemas.
func (d Documents) Keeping() bool { return d.commit.Keeping() }

// Kept returns the content of a commit's packages, by source, as its lock keeps it: with the schemas of active definitions only. in
// must have Documents.
func Kept(in Input, how Options) (map[string][]byte, error) {
	commit, err := in.commit(how)
	if err != nil {
		return nil, err
	}
	c, err := commit.Catalogue()
	if err != nil {
		return nil, err
	}
	decisions, _ := activation.Decide(c)
	outlined := map[*manifest.Document]bool{}
	for _, d := range decisions {
		outlined[d.Document] = !d.Active
	}
	all := map[string][]byte{}
	for _, p := range c.Packages {
		if !p.Pulled() {
			continue
		}
		if all[p.Source], err = commit.Keep(p, outlined); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// withoutIncomplete returns the input without kept content that lacks schemas of active definitions: these packages cannot be read.
// It returns false if there is no such content.
func (in Input) withoutIncomplete(decisions []activation.Decision) (Input, bool) {
	missing := map[string][]string{} // definitions by source
	for _, d := range decisions {
		if d.Active && d.Package != nil && d.Package.Kept != nil && packages.IsOutline(d.Document) {
			missing[d.Package.Source] = append(missing[d.Package.Source], d.Name)
		}
	}
	if len(missing) == 0 {
		return in, false
	}
	in.Packages = slices.Clone(in.Packages)
	for i := range in.Packages {
		image := &in.Packages[i]
		names := missing[image.Request.Source]
		if image.Kept == nil || len(names) == 0 {
			continue
		}
		slices.Sort(names)
		text := names[0]
		if more := len(names) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		image.Err = fmt.Errorf("%w; %s keeps no schemas of %s, which this commit activates; %s", image.Kept.Err, image.Kept.File, text, packages.KeepAgain)
		image.Kept, image.Open, image.Findings = nil, nil, nil
	}
	return in, true
}

// A Claim is a package that was read from content that the commit keeps, while the previous commit keeps no such content. The
// author of the commit could have written anything into it.
type Claim struct {
	Package catalogue.Package
	Adds    []string // definitions with new schemas, if that is the only difference from the kept content of the previous commit for the same image
}

// Unknown returns the message that the package is not known.
func (c Claim) Unknown() string {
	p := c.Package
	return fmt.Sprintf("package %s cannot be read: %s; the report shows what %s has, which is not confirmed: this commit brings it",
		crossplane.Image(p.Source, p.Version), p.Kept.Err, p.Kept.File)
}

// finding returns the finding about the claim.
func (c Claim) finding() manifest.Finding {
	p := c.Package
	f := manifest.Finding{
		Rule: packages.RuleKept, Severity: manifest.Warning, Origin: p.Mentioned, About: manifest.About{Subject: p.Source},
		Message: c.Unknown(), Fix: "preview it where the registry can be reached",
	}
	if n := len(c.Adds); n > 0 {
		f.Message = fmt.Sprintf("the schemas of %s, for example %s, are not confirmed: this commit brings them in %s, and package %s cannot be read: %s",
			manifest.Count(n, "definition"), c.Adds[0], p.Kept.File, crossplane.Image(p.Source, p.Version), p.Kept.Err)
	}
	return f
}

// Unconfirmed returns the findings about the claims of a commit.
func (d Desired) Unconfirmed(base Desired) []manifest.Finding {
	var found []manifest.Finding
	for _, claim := range d.Claims(base) {
		found = append(found, d.Placed(claim.finding()))
	}
	return found
}

// IsOutline reports whether a definition was read from kept content without its schemas.
func (d DecidedDefinition) IsOutline() bool {
	return d.Package != nil && d.Package.Kept != nil && d.Document != nil && packages.IsOutline(d.Document)
}

// Claims returns the claims of a commit in comparison with the base commit.
func (d Desired) Claims(base Desired) []Claim {
	var all []Claim
	for _, p := range d.Packages {
		if p.Kept == nil {
			continue
		}
		i := slices.IndexFunc(base.Packages, func(old catalogue.Package) bool {
			return old.Source == p.Source && old.Digest == p.Digest && old.Version == p.Version && old.Kept != nil
		})
		if i < 0 {
			all = append(all, Claim{Package: p})
			continue
		}
		if old := base.Packages[i]; old.Kept.Hash != p.Kept.Hash {
			if adds, same := extends(old.Kept.Documents, p.Kept.Documents); !same || len(adds) > 0 {
				all = append(all, Claim{p, adds})
			}
		}
	}
	return all
}

// extends returns the names of the definitions that are outlines before and whole after. It returns false if there is any other
// difference.
func extends(before, after []*manifest.Document) (adds []string, ok bool) {
	if len(before) != len(after) {
		return nil, false
	}
	for i, old := range before {
		now := after[i]
		if old.Header != now.Header {
			return nil, false
		}
		was, is := asJSON(old), asJSON(now)
		switch {
		case was == nil || is == nil:
			return nil, false
		case bytes.Equal(was, is):
		case packages.IsOutline(old):
			adds = append(adds, now.Header.Name)
		case packages.IsOutline(now): // the render reports it if it needs the schemas
		default:
			return nil, false
		}
	}
	return adds, true
}

// asJSON returns a document as JSON, or nil if that fails.
func asJSON(d *manifest.Document) []byte {
	u, err := d.Decode()
	if err != nil {
		return nil
	}
	raw, err := json.Marshal(u.Object)
	if err != nil {
		return nil
	}
	return raw
}
