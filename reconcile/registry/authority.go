package registry

import (
	"bytes"
	"context"
	"crypto"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// A verification is the content of spec.verification in an ImageConfig.
type verification struct {
	Provider string `json:"provider"`
	Cosign   struct {
		Authorities []authority `json:"authorities"`
	} `json:"cosign"`
}

// An authority is a signer of images: the owner of a key, or one of several identities.
type authority struct {
	Name string `json:"name"`
	Key  *struct {
		SecretRef struct {
			Name string `json:"name"`
			Key  string `json:"key"`
		} `json:"secretRef"`
		HashAlgorithm string `json:"hashAlgorithm"`
	} `json:"key"`
	Keyless *struct {
		Identities []struct {
			Issuer        string `json:"issuer"`
			Subject       string `json:"subject"`
			IssuerRegExp  string `json:"issuerRegExp"`
			SubjectRegExp string `json:"subjectRegExp"`
		} `json:"identities"`
		InsecureIgnoreSCT bool `json:"insecureIgnoreSCT"`
	} `json:"keyless"`
	Attestations []struct {
		Name          string `json:"name"`
		PredicateType string `json:"predicateType"`
	} `json:"attestations"`
}

// verificationOf parses spec.verification of an ImageConfig. An unknown field is an error.
func verificationOf(text string) (verification, error) {
	var v verification
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("spec.verification cannot be read: %w", err)
	}
	switch {
	case v.Provider != "Cosign":
		return v, fmt.Errorf("spec.verification.provider is %q, and Headgate verifies what Cosign signs", v.Provider)
	case len(v.Cosign.Authorities) == 0:
		return v, errors.New("spec.verification.cosign names no authorities")
	}
	return v, nil
}

// signedType is the predicate of a bundle that is only a signature.
const signedType = "https://sigstore.dev/cosign/sign/v1"

// predicateTypes maps cosign's short names for types of attestations.
var predicateTypes = map[string]string{
	"custom":           "https://cosign.sigstore.dev/attestation/v1",
	"cyclonedx":        "https://cyclonedx.org/bom",
	"link":             "https://in-toto.io/Link/v1",
	"openvex":          "https://openvex.dev/ns",
	"slsaprovenance":   "https://slsa.dev/provenance/v0.2",
	"slsaprovenance02": "https://slsa.dev/provenance/v0.2",
	"slsaprovenance1":  "https://slsa.dev/provenance/v1",
	"spdx":             "https://spdx.dev/Document",
	"spdxjson":         "https://spdx.dev/Document",
	"vuln":             "https://cosign.sigstore.dev/attestation/vuln/v1",
}

// demands returns the types of statements that the authority must have signed: a signature, or attestations instead
// if the configuration names some. Crossplane does the same.
func (a authority) demands() []string {
	var all []string
	for _, att := range a.Attestations {
		of := att.PredicateType
		if long, ok := predicateTypes[of]; ok {
			of = long
		}
		all = append(all, of)
	}
	if len(all) == 0 {
		return []string{signedType}
	}
	return all
}

// A verifier checks whether an authority made a proof.
type verifier struct {
	*verify.Verifier

	policy []verify.PolicyOption
}

// verifier returns the verifier of an authority.
func (p *puller) verifier(ctx context.Context, a authority) (verifier, error) {
	var trusted root.TrustedMaterialCollection
	if p.trustedRoot != "" {
		shipped, err := root.NewTrustedRootFromPath(p.trustedRoot)
		if err != nil {
			return verifier{}, fmt.Errorf("trusted root %s: %w", p.trustedRoot, err)
		}
		trusted = append(trusted, shipped)
	}
	var j verifier
	var how []verify.VerifierOption
	switch {
	case a.Key != nil && a.Keyless != nil:
		return j, errors.New("it has a key and keyless identities, and only one of them can count")
	case a.Key != nil:
		key, err := p.key(ctx, a)
		if err != nil {
			return j, err
		}
		how = append(how, verify.WithNoObserverTimestamps())
		if len(trusted) > 0 { // Crossplane does the same, and always has one
			how = append(how, verify.WithTransparencyLog(1))
		}
		trusted = append(trusted, root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
			return root.NewExpiringKey(key, time.Time{}, time.Time{}), nil
		}))
		j.policy = append(j.policy, verify.WithKey())
	case a.Keyless != nil && len(trusted) == 0:
		return j, errors.New("identities are verified with a trusted root of sigstore, and there is none: give one with --trusted-root=FILE")
	case a.Keyless != nil:
		how = append(how, verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1))
		if !a.Keyless.InsecureIgnoreSCT {
			how = append(how, verify.WithSignedCertificateTimestamps(1))
		}
		var err error
		if j.policy, err = a.identities(); err != nil {
			return j, err
		}
	default:
		return j, errors.New("it has neither a key nor keyless identities, so every signature would count")
	}
	var err error
	j.Verifier, err = verify.NewVerifier(trusted, how...)
	return j, err
}

// identities returns the identities that may sign; one of them is enough. A regular expression takes precedence over
// a fixed text, as in Crossplane.
func (a authority) identities() ([]verify.PolicyOption, error) {
	var all []verify.PolicyOption
	for i, one := range a.Keyless.Identities {
		if one.IssuerRegExp != "" {
			one.Issuer = ""
		}
		if one.SubjectRegExp != "" {
			one.Subject = ""
		}
		if one.Issuer+one.IssuerRegExp == "" || one.Subject+one.SubjectRegExp == "" {
			return nil, fmt.Errorf("identity %d needs an issuer and a subject, or every identity could sign; write .* to allow that", i+1)
		}
		identity, err := verify.NewShortCertificateIdentity(one.Issuer, one.IssuerRegExp, one.Subject, one.SubjectRegExp)
		if err != nil {
			return nil, fmt.Errorf("identity %d: %w", i+1, err)
		}
		all = append(all, verify.WithCertificateIdentity(identity))
	}
	if len(all) == 0 {
		return nil, errors.New("it names no identities, so every signature would count")
	}
	return all, nil
}

var hashes = map[string]crypto.Hash{
	"": crypto.SHA256, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512,
}

// key returns a verifier for the public key of an authority, which is in a file or otherwise in a Secret.
func (p *puller) key(ctx context.Context, a authority) (signature.Verifier, error) {
	ref := a.Key.SecretRef
	of := ref.Name + "/" + ref.Key
	hash, ok := hashes[strings.ToLower(strings.TrimSpace(a.Key.HashAlgorithm))]
	if !ok {
		return nil, fmt.Errorf("%q is not a supported hash algorithm; use sha256", a.Key.HashAlgorithm)
	}
	file, isFile := p.keyFiles[of]
	switch {
	case isFile:
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		return verifierOf(content, of, hash)
	case p.secret == nil:
		return nil, fmt.Errorf("its key is in the Secret %s, and no cluster is asked for it: give it with --verification-key=%s=FILE", ref.Name, of)
	}
	content, err := p.publicKey(ctx, ref.Name, ref.Key)
	var v signature.Verifier
	if err == nil {
		v, err = verifierOf(content, of, hash)
	}
	return v, p.reach.unusable("the key "+of, err)
}

// verifierOf returns the verifier of a public key.
func verifierOf(content []byte, of string, hash crypto.Hash) (signature.Verifier, error) {
	public, err := cryptoutils.UnmarshalPEMToPublicKey(content)
	if err != nil {
		return nil, fmt.Errorf("what is at %s is not a PEM public key", of) // err may quote the content
	}
	return signature.LoadVerifier(public, hash)
}

// publicKey returns the key in a Secret.
func (p *puller) publicKey(ctx context.Context, name, key string) ([]byte, error) {
	data, err := p.secret(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("the Secret %s: %w", name, err)
	}
	if len(data[key]) == 0 {
		return nil, fmt.Errorf("the Secret %s has nothing under the key %s", name, key)
	}
	return data[key], nil
}

// accept returns an error unless the proof meets the demand for the image with this digest.
func (j verifier) accept(by proof, digest, demand string) error {
	if by.payload != nil {
		if demand != signedType {
			return errors.New("it is a signature, and attests nothing")
		}
		if _, err := j.Verify(by, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(by.payload)), j.policy...)); err != nil {
			return err
		}
		return names(by.payload, digest)
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, "sha256:"))
	if err != nil {
		return err
	}
	result, err := j.Verify(by, verify.NewPolicy(verify.WithArtifactDigest("sha256", sum), j.policy...))
	if err != nil {
		return err
	}
	if of := result.Statement.GetPredicateType(); of != demand {
		return fmt.Errorf("it is of type %q, not %q", of, demand)
	}
	return nil
}

// names returns an error unless a signed payload names the image with this digest.
func names(payload []byte, digest string) error {
	var signed struct {
		Critical struct {
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
		} `json:"critical"`
	}
	if err := json.Unmarshal(payload, &signed); err != nil {
		return fmt.Errorf("the signed content cannot be read: %w", err)
	}
	if of := signed.Critical.Image.Digest; of != digest {
		return fmt.Errorf("it is the signature of another image, %q", of)
	}
	return nil
}
