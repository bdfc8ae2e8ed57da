package registry

import (
	"context"
	"errors"
	"fmt"

	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"
)

// RuleSignature reports an image whose valid signature Crossplane would not accept.
const RuleSignature = "package-signature-elsewhere"

// demands returns the signatures that an image must have. For a fork, it includes demands of the cluster that the
// commit would drop, because the commit is not merged yet.
func (p *puller) demands(configs *packages.ImageConfigs, image string) []packages.Prefixed {
	var all []packages.Prefixed
	if by, ok := configs.Verification(configs.Rewritten(image)); ok {
		all = append(all, by)
	}
	if p.fork != nil {
		for _, dropped := range configs.Dropped(image) {
			all = append(all, dropped.Demand)
		}
	}
	return all
}

// verified returns an error if an image is not trusted. One authority is enough, as in Crossplane.
func (p *puller) verified(ctx context.Context, from origin, digest string, by packages.Prefixed) ([]manifest.Finding, error) {
	v, err := verificationOf(by.Value)
	if err != nil {
		return nil, err
	}
	var why error
	for _, a := range v.Cosign.Authorities {
		findings, err := p.signedBy(ctx, from, digest, a)
		if err == nil {
			return findings, nil
		}
		why = errors.Join(why, fmt.Errorf("authority %q: %w", a.Name, err))
	}
	return nil, why
}

// signedBy returns an error if an authority did not sign an image, or did not make every required attestation.
// Crossplane accepts one of several attestations.
func (p *puller) signedBy(ctx context.Context, from origin, digest string, a authority) ([]manifest.Finding, error) {
	j, err := p.verifier(ctx, a)
	if err != nil {
		return nil, err
	}
	what, suffix := "signature", "sig"
	if len(a.Attestations) > 0 {
		what, suffix = "attestation", "att"
	}
	all, findings, broken, err := p.proofs(ctx, from, digest, suffix)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.Join(fmt.Errorf("the image has no %s", what), broken)
	}
	reported := false
	for _, demand := range a.demands() {
		accepted, err := j.first(all, digest, demand)
		if err != nil {
			return nil, fmt.Errorf("no %s is accepted: %w", what, errors.Join(err, broken))
		}
		if f, ok := accepted.elsewhere(from.Digest(digest).Name(), suffix); ok && !reported {
			findings, reported = append(findings, f), true
		}
	}
	return findings, nil
}

// first returns the first accepted proof. It prefers one that Crossplane also accepts.
func (j verifier) first(all []proof, digest, demand string) (accepted proof, why error) {
	for _, one := range all {
		if err := j.accept(one, digest, demand); err != nil {
			why = errors.Join(why, err)
			continue
		}
		if _, objected := one.elsewhere("", ""); !objected {
			return one, nil
		}
		if accepted.Bundle == nil {
			accepted = one
		}
	}
	if accepted.Bundle != nil {
		return accepted, nil
	}
	return accepted, why
}

// elsewhere returns a finding if Crossplane would refuse a proof that Headgate accepts.
func (by proof) elsewhere(image, suffix string) (manifest.Finding, bool) {
	f := manifest.Finding{Rule: RuleSignature, Severity: manifest.Warning, About: manifest.About{Subject: image}}
	switch {
	case !by.layered:
		f.Message = fmt.Sprintf("the signature of %s is valid, but in a bundle; Crossplane up to v2.4, if it verifies signatures, reads only the tag that ends in .%s", image, suffix)
		f.Fix = "sign it with cosign --new-bundle-format=false, too"
	case len(by.GetVerificationMaterial().GetTlogEntries()) == 0:
		f.Message = fmt.Sprintf("the signature of %s is valid, but in no transparency log; Crossplane, if it verifies signatures, requires an entry there", image)
		f.Fix = "sign it as cosign does without flags, with an entry in the log"
	default:
		return f, false
	}
	return f, true
}
