package registry_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures"
	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// A signer signs with a key, like cosign.
type signer struct{ crypto.Signer }

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{key}
}

func (s signer) sign(t *testing.T, message []byte) string {
	t.Helper()
	how := crypto.SHA256
	sum := sha256.Sum256(message)
	signed := sum[:]
	if _, ok := s.Public().(ed25519.PublicKey); ok {
		how, signed = 0, message
	}
	signature, err := s.Sign(rand.Reader, signed, how)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

func (s signer) pem(t *testing.T) []byte {
	t.Helper()
	text, err := cryptoutils.MarshalPublicKeyToPEM(s.Public())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// simple returns the signed payload for an image.
func simple(digest string) []byte {
	return []byte(`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":"` + digest + `"},"type":"cosign container image signature"},"optional":null}`)
}

const signatureKey = "dev.cosignproject.cosign/signature"

// signature returns a layer with a signature of the payload.
func (s signer) signature(t *testing.T, payload []byte) mutate.Addendum {
	t.Helper()
	return layerOf("application/vnd.dev.cosign.simplesigning.v1+json", payload, map[string]string{signatureKey: s.sign(t, payload)})
}

func layerOf(kind string, content []byte, annotations map[string]string) mutate.Addendum {
	return mutate.Addendum{Layer: static.NewLayer(content, types.MediaType(kind)), MediaType: types.MediaType(kind), Annotations: annotations}
}

// envelope returns a signed statement of some type about an image.
func (s signer) envelope(t *testing.T, digest, predicate string) string {
	t.Helper()
	const kind = "application/vnd.in-toto+json"
	statement := fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"image","digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`, strings.TrimPrefix(digest, "sha256:"), predicate)
	message := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement)
	return fmt.Sprintf(`{"payload":%q,"payloadType":%q,"signatures":[{"sig":%q}]}`, base64.StdEncoding.EncodeToString([]byte(statement)), kind, s.sign(t, message))
}

// attestation returns a layer with such a statement.
func (s signer) attestation(t *testing.T, digest, predicate string) mutate.Addendum {
	t.Helper()
	return layerOf("application/vnd.dsse.envelope.v1+json", []byte(s.envelope(t, digest, predicate)), map[string]string{signatureKey: ""})
}

// bundle returns a layer with such a statement, in the format of cosign v3.
func (s signer) bundle(t *testing.T, digest, predicate string) mutate.Addendum {
	t.Helper()
	const kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
	return layerOf(kind, fmt.Appendf(nil, `{"mediaType":%q,"verificationMaterial":{"publicKey":{"hint":"any"}},"dsseEnvelope":%s}`, kind, s.envelope(t, digest, predicate)), nil)
}

const signedPredicate = "https://sigstore.dev/cosign/sign/v1"

// tagged pushes layers under the tag that cosign reads.
func tagged(t *testing.T, r *fixtures.Registry, digest, suffix string, layers ...mutate.Addendum) {
	t.Helper()
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	r.PushImage(t, "acme/provider-sea", strings.Replace(digest, ":", "-", 1)+"."+suffix, img)
}

// referring pushes layers in an image that refers to another image.
func referring(t *testing.T, r *fixtures.Registry, digest string, layers ...mutate.Addendum) {
	t.Helper()
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	of, err := v1.NewHash(digest)
	if err != nil {
		t.Fatal(err)
	}
	refers, ok := mutate.Subject(img, v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: of}).(v1.Image)
	if !ok {
		t.Fatal("an image with a subject is an image")
	}
	r.PushImage(t, "acme/provider-sea", "referrer", refers)
}

func newSigstore(t *testing.T) *ca.VirtualSigstore {
	t.Helper()
	made, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// trustedRoot writes the trusted root of a sigstore to a file.
func trustedRoot(t *testing.T, of *ca.VirtualSigstore) string {
	t.Helper()
	read := func(logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
		for _, l := range logs {
			id, err := hex.DecodeString(string(l.ID))
			if err != nil {
				t.Fatal(err)
			}
			l.ID = id
		}
		return logs
	}
	made, err := root.NewTrustedRoot(root.TrustedRootMediaType01, of.FulcioCertificateAuthorities(), read(of.CTLogs()), of.TimestampingAuthorities(), read(of.RekorLogs()))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := made.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "trusted_root.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// logged returns an entry of a transparency log in cosign's format.
func logged(t *testing.T, in *ca.VirtualSigstore, body []byte) string {
	t.Helper()
	id, err := in.RekorLogID()
	if err != nil {
		t.Fatal(err)
	}
	entry := tlog.RekorPayload{Body: base64.StdEncoding.EncodeToString(body), IntegratedTime: time.Now().Add(5 * time.Minute).Unix(), LogIndex: 7, LogID: id}
	promise, err := in.RekorSignPayload(entry)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"SignedEntryTimestamp": promise, "Payload": entry})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// inLog returns a layer with a signature whose entry is in a log.
func (s signer) inLog(t *testing.T, in *ca.VirtualSigstore, payload []byte) mutate.Addendum {
	t.Helper()
	layer := s.signature(t, payload)
	sum := sha256.Sum256(payload)
	layer.Annotations["dev.sigstore.cosign/bundle"] = logged(t, in, fmt.Appendf(nil,
		`{"apiVersion":"0.0.1","kind":"hashedrekord","spec":{"data":{"hash":{"algorithm":"sha256","value":%q}},"signature":{"content":%q,"publicKey":{"content":%q}}}}`,
		hex.EncodeToString(sum[:]), layer.Annotations[signatureKey], base64.StdEncoding.EncodeToString(s.pem(t))))
	return layer
}

// keyless returns a layer with the signature of an identity.
func keyless(t *testing.T, in *ca.VirtualSigstore, issuer, subject string, payload []byte) mutate.Addendum {
	t.Helper()
	made, err := in.Sign(subject, issuer, payload)
	if err != nil {
		t.Fatal(err)
	}
	who, err1 := made.VerificationContent()
	what, err2 := made.SignatureContent()
	entries, err3 := made.TlogEntries()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	certificate, err := cryptoutils.MarshalCertificateToPEM(who.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	return layerOf("application/vnd.dev.cosign.simplesigning.v1+json", payload, map[string]string{
		signatureKey:                      base64.StdEncoding.EncodeToString(what.Signature()),
		"dev.sigstore.cosign/certificate": string(certificate),
		"dev.sigstore.cosign/bundle":      logged(t, in, entries[0].TransparencyLogEntry().GetCanonicalizedBody()),
	})
}

// demanding returns a commit that installs a provider and requires signatures of authorities.
func demanding(r *fixtures.Registry, verification string) commit {
	return commit{files: tree(installs("Provider", "provider-sea", r.Host+"/acme/provider-sea:v1.0.0", "") + `---
apiVersion: pkg.crossplane.io/v1beta1
kind: ImageConfig
metadata: {name: signed}
spec:
  matchImages: [{prefix: ` + r.Host + `/acme}]
  verification: ` + verification + "\n")}
}

const (
	byAcme = `{provider: Cosign, cosign: {authorities: [{name: acme, key: {secretRef: {name: acme, key: cosign.pub}}}]}}`

	issuer, subject = "https://login.example.org", "release@acme.example.org"
)

func attesting(kinds ...string) string {
	var all []string
	for _, one := range kinds {
		all = append(all, "{name: any, predicateType: "+one+"}")
	}
	return `{provider: Cosign, cosign: {authorities: [{name: acme, key: {secretRef: {name: acme, key: cosign.pub}}, attestations: [` + strings.Join(all, ", ") + `]}]}}`
}

func byIdentity(identity string) string {
	return `{provider: Cosign, cosign: {authorities: [{name: release, keyless: {insecureIgnoreSCT: true, identities: [` + identity + `]}}]}}`
}

// If a package needs verification, it is read only if an allowed signer signed exactly its image.
func TestVerify(t *testing.T) {
	acme, other := newSigner(t), newSigner(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edwards := signer{private}
	public, elsewhere := newSigstore(t), newSigstore(t)
	shipped := trustedRoot(t, public)
	const another = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

	// Most signatures are in the tag that cosign uses, for this image or copied from another.
	type signing func(t *testing.T, r *fixtures.Registry, digest string)
	type signature func(t *testing.T, payload []byte) mutate.Addendum
	signs := func(by signature) signing {
		return func(t *testing.T, r *fixtures.Registry, digest string) {
			t.Helper()
			tagged(t, r, digest, "sig", by(t, simple(digest)))
		}
	}
	copies := func(by signature) signing {
		return func(t *testing.T, r *fixtures.Registry, digest string) {
			t.Helper()
			tagged(t, r, digest, "sig", by(t, simple(another)))
		}
	}
	inLog := func(by signer, log *ca.VirtualSigstore) signature {
		return func(t *testing.T, payload []byte) mutate.Addendum {
			t.Helper()
			return by.inLog(t, log, payload)
		}
	}
	as := func(certified *ca.VirtualSigstore, issuer, subject string) signature {
		return func(t *testing.T, payload []byte) mutate.Addendum {
			t.Helper()
			return keyless(t, certified, issuer, subject, payload)
		}
	}

	cases := map[string]struct {
		reason string
		sign   signing
		demand string
		root   string
		want   string // error of a package that is not read; "" if it is read
		rules  []string
	}{
		"Key": {
			reason: "Crossplane itself accepts only signatures in a transparency log, so its users need a finding.",
			sign:   signs(acme.signature),
			demand: byAcme,
			rules:  []string{registry.RuleSignature},
		},
		"KeyInLog": {
			reason: "This is what cosign does without flags, so there is no finding.",
			sign:   signs(inLog(acme, public)),
			demand: byAcme,
			root:   shipped,
		},
		"KeyNotInLog": {
			reason: "With a trusted root, the log is checked, as in Crossplane.",
			sign:   signs(acme.signature),
			demand: byAcme,
			root:   shipped,
			want:   "transparency log",
		},
		"KeyInForeignLog": {
			reason: "Every user can run a log.",
			sign:   signs(inLog(acme, elsewhere)),
			demand: byAcme,
			root:   shipped,
			want:   "transparency log",
		},
		"Ed25519": {
			reason: "Ed25519 keys sign the message, not its hash.",
			sign:   signs(edwards.signature),
			demand: strings.Replace(byAcme, "cosign.pub", "ed25519.pub", 1),
			rules:  []string{registry.RuleSignature},
		},
		"Bundle": {
			reason: "cosign v3 stores signatures as bundles that refer to the image.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				referring(t, r, digest, acme.bundle(t, digest, signedPredicate))
			},
			demand: byAcme,
			rules:  []string{registry.RuleSignature},
		},
		"SecondAuthority": {
			reason: "As in Crossplane, one authority is enough.",
			sign:   signs(acme.signature),
			demand: `{provider: Cosign, cosign: {authorities: [{name: other, key: {secretRef: {name: other, key: cosign.pub}}}, {name: acme, key: {secretRef: {name: acme, key: cosign.pub}}}]}}`,
			rules:  []string{registry.RuleSignature},
		},
		"AmongOthers": {
			reason: "Every user with push rights can add unreadable or foreign signatures to the valid one.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				tagged(t, r, digest, "sig", layerOf("application/vnd.dev.cosign.simplesigning.v1+json", []byte("?"), map[string]string{signatureKey: "?"}),
					other.signature(t, simple(digest)), acme.signature(t, simple(digest)))
				referring(t, r, digest, layerOf("application/vnd.dev.sigstore.bundle.v0.3+json", []byte("{}"), nil))
			},
			demand: byAcme,
			rules:  []string{registry.RuleSignature},
		},
		"Unsigned": {
			reason: "The pushed image has no signature.",
			demand: byAcme,
			want:   `authority "acme": the image has no signature`,
		},
		"OtherKey": {
			reason: "A stranger pushed and signed the image.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				tagged(t, r, digest, "sig", other.signature(t, simple(digest)))
				referring(t, r, digest, other.bundle(t, digest, signedPredicate))
			},
			demand: byAcme,
			want:   "no signature is accepted: failed to verify signature",
		},
		"Tampered": {
			reason: "The signature is for an image that was replaced.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				layer := acme.signature(t, simple(another))
				tagged(t, r, digest, "sig", layerOf("application/vnd.dev.cosign.simplesigning.v1+json", simple(digest), layer.Annotations))
			},
			demand: byAcme,
			want:   "no signature is accepted: failed to verify signature",
		},
		"OtherImage": {
			reason: "The valid signature was copied from another image.",
			sign:   copies(acme.signature),
			demand: byAcme,
			want:   `it is the signature of another image, "` + another + `"`,
		},
		"BundleOfOtherImage": {
			reason: "The valid bundle was copied from another image.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				referring(t, r, digest, acme.bundle(t, another, signedPredicate))
			},
			demand: byAcme,
			want:   "does not match any digest in statement",
		},
		"Attestation": {
			reason: "A statement about an image, for example about its vulnerabilities, is not a signature.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				referring(t, r, digest, acme.bundle(t, digest, "https://cosign.sigstore.dev/attestation/vuln/v1"))
			},
			demand: byAcme,
			want:   "no signature is accepted: it is of type",
		},
		"Attested": {
			reason: "The authority attested the required predicate.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				tagged(t, r, digest, "att", acme.attestation(t, digest, "https://spdx.dev/Document"), acme.attestation(t, digest, "https://slsa.dev/provenance/v1"))
			},
			demand: attesting("spdxjson", "https://slsa.dev/provenance/v1"),
			rules:  []string{registry.RuleSignature},
		},
		"HalfAttested": {
			reason: "A demand for attestations must not be ignored.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				tagged(t, r, digest, "sig", acme.signature(t, simple(digest)))
				tagged(t, r, digest, "att", acme.attestation(t, digest, "https://spdx.dev/Document"))
			},
			demand: attesting("spdxjson", "vuln"),
			want:   "no attestation is accepted",
		},
		"SignedNotAttested": {
			reason: "A signature is not an attestation.",
			sign: func(t *testing.T, r *fixtures.Registry, digest string) {
				t.Helper()
				tagged(t, r, digest, "sig", acme.signature(t, simple(digest)))
				tagged(t, r, digest, "att", acme.signature(t, simple(digest)))
			},
			demand: attesting("spdxjson"),
			want:   "it is a signature, and attests nothing",
		},
		"Identity": {
			reason: "A keyless signer is identified by a certificate, which a log saw while it was valid.",
			sign:   signs(as(public, issuer, subject)),
			demand: byIdentity(`{issuer: "` + issuer + `", subject: ` + subject + `}`),
			root:   shipped,
		},
		"IdentityByPattern": {
			reason: "In Crossplane, a regular expression takes precedence over a fixed text.",
			sign:   signs(as(public, issuer, subject)),
			demand: byIdentity(`{issuer: nobody, issuerRegExp: "^https://login[.]example[.]org$", subject: nobody, subjectRegExp: "^.*@acme[.]example[.]org$"}`),
			root:   shipped,
		},
		"OtherSubject": {
			reason: "Every user can have an identity.",
			sign:   signs(as(public, issuer, "mallory@example.net")),
			demand: byIdentity(`{issuer: "` + issuer + `", subject: ` + subject + `}`),
			root:   shipped,
			want:   `got "mallory@example.net"`,
		},
		"OtherIssuer": {
			reason: "The same name may belong to another user at another issuer.",
			sign:   signs(as(public, "https://login.example.net", subject)),
			demand: byIdentity(`{issuer: "` + issuer + `", subject: ` + subject + `}`),
			root:   shipped,
			want:   `got "https://login.example.net"`,
		},
		"OtherSigstore": {
			reason: "Every user can issue certificates.",
			sign:   signs(as(elsewhere, issuer, subject)),
			demand: byIdentity(`{issuer: "` + issuer + `", subject: ` + subject + `}`),
			root:   shipped,
			want:   "transparency log",
		},
		"IdentityOfOtherImage": {
			reason: "The valid signature was copied from another image.",
			sign:   copies(as(public, issuer, subject)),
			demand: byIdentity(`{issuer: "` + issuer + `", subject: ` + subject + `}`),
			root:   shipped,
			want:   "it is the signature of another image",
		},
		"IdentityForKey": {
			reason: "A certificate does not replace the required key.",
			sign:   signs(as(public, issuer, subject)),
			demand: byAcme,
			root:   shipped,
			want:   "expected key signature, not certificate",
		},
		"KeyForIdentity": {
			reason: "A key has no identity.",
			sign:   signs(inLog(acme, public)),
			demand: byIdentity(`{issuer: "` + issuer + `", subject: ` + subject + `}`),
			root:   shipped,
			want:   "no signature is accepted",
		},
		"NoCertificateLog": {
			reason: "A certificate outside the log may have been issued in secret.",
			sign:   signs(as(public, issuer, subject)),
			demand: strings.Replace(byIdentity(`{issuer: "`+issuer+`", subject: `+subject+`}`), "insecureIgnoreSCT: true, ", "", 1),
			root:   shipped,
			want:   "signed certificate timestamp",
		},
		"NoTrustedRoot": {
			reason: "Without a trusted root, no certificate is trusted, and the error says how to provide one.",
			sign:   signs(as(public, issuer, subject)),
			demand: byIdentity(`{issuer: "` + issuer + `", subject: ` + subject + `}`),
			want:   "--trusted-root=FILE",
		},
		"AnySubject": {
			reason: "Every user has an identity at the large issuers.",
			demand: byIdentity(`{issuer: "` + issuer + `"}`),
			root:   shipped,
			want:   "identity 1 needs an issuer and a subject",
		},
		"NoIdentities": {
			reason: "An empty list would accept every signer.",
			demand: byIdentity(""),
			root:   shipped,
			want:   "it names no identities",
		},
		"NeitherKeyNorIdentity": {
			reason: "An authority with neither a key nor identities would accept every signer.",
			demand: `{provider: Cosign, cosign: {authorities: [{name: acme}]}}`,
			want:   "it has neither a key nor keyless identities",
		},
		"Both": {
			reason: "With both a key and identities, it is unclear who has to sign.",
			demand: `{provider: Cosign, cosign: {authorities: [{name: acme, key: {secretRef: {name: acme, key: cosign.pub}}, keyless: {identities: [{issuer: a, subject: b}]}}]}}`,
			want:   "only one of them can count",
		},
		"NobodyAtAll": {
			reason: "An empty list of authorities must not accept every signer.",
			demand: `{provider: Cosign}`,
			want:   "names no authorities",
		},
		"OtherProvider": {
			reason: "An image that cannot be verified is not trusted.",
			demand: `{provider: Notation, cosign: {authorities: [{name: acme}]}}`,
			want:   `spec.verification.provider is "Notation"`,
		},
		"WhatIsNotKnown": {
			reason: "Headgate must not ignore a demand of a later Crossplane version.",
			demand: `{provider: Cosign, cosign: {authorities: [{name: acme, key: {secretRef: {name: acme, key: cosign.pub}}, policy: {}}]}}`,
			want:   `unknown field "policy"`,
		},
		"NoKeyInSecret": {
			reason: "The error names the keys where a public key may be.",
			demand: strings.Replace(byAcme, "cosign.pub", "absent", 1),
			want:   "the Secret acme has nothing under the key absent",
		},
		"NoPublicKey": {
			reason: "A Secret that a commit names may hold anything, so its content must not be shown.",
			demand: strings.Replace(byAcme, "cosign.pub", "cosign.key", 1),
			want:   "what is at acme/cosign.key is not a PEM public key",
		},
		"Hash": {
			reason: "An unknown hash algorithm is a mistake.",
			demand: strings.Replace(byAcme, "cosign.pub}", "cosign.pub}, hashAlgorithm: md5", 1),
			want:   `"md5" is not a supported hash algorithm`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			digest := r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
			if tc.sign != nil {
				tc.sign(t, r, digest)
			}
			s := &registry.Resolver{
				Next: demanding(r, tc.demand), Cache: t.TempDir(), TrustedRoot: tc.root,
				Secret: func(_ context.Context, name string) (map[string][]byte, error) {
					switch name {
					case "acme":
						return map[string][]byte{"cosign.pub": acme.pem(t), "ed25519.pub": edwards.pem(t), "cosign.key": []byte("canary-key")}, nil
					case "other":
						return map[string][]byte{"cosign.pub": other.pem(t)}, nil
					}
					return nil, errors.New("asked for Secret " + name)
				},
			}
			r.Asked()
			want := rendered(t, s, render.OwnerCrossplane)
			if tc.want == "" {
				if diff := cmp.Diff([]string{"boats.sea.example.org true", "Provider provider-sea v1.0.0"}, told(want)); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%v", tc.reason, diff, want.Unread)
				}
				if diff := cmp.Diff(tc.rules, rules(want, manifest.Warning)); diff != "" {
					t.Errorf("%s\nrules (-want +got):\n%s", tc.reason, diff)
				}
				return
			}
			if len(want.Definitions) > 0 || len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), tc.want) {
				t.Fatalf("%s\n%d definitions, %v\nwant: %s", tc.reason, len(want.Definitions), want.Unread, tc.want)
			}
			if output := want.Unread[0].Err.Error(); !strings.Contains(output, "ImageConfig signed (package-0.yaml:11) demands that its signature is verified") || strings.Contains(output, "canary") {
				t.Errorf("%s\nIt names the source of the demand and no secret: %s", tc.reason, output)
			}
			requests, _ := r.Asked()
			if i := slices.IndexFunc(requests, func(one string) bool { return strings.HasSuffix(one, "/manifests/"+digest) }); i >= 0 {
				t.Errorf("%s\nWhat is not trusted is not pulled: %q", tc.reason, requests)
			}
		})
	}
}

// Without a cluster, the key comes from a file. While the registry is down, a verified image is verified again from the cache.
//
//test:long
func TestVerifyWithFile(t *testing.T) {
	r := start(t)
	acme := newSigner(t)
	digest := r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
	tagged(t, r, digest, "sig", acme.signature(t, simple(digest)))
	file := filepath.Join(t.TempDir(), "cosign.pub")
	if err := os.WriteFile(file, acme.pem(t), 0o600); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	source := func() *registry.Resolver {
		return &registry.Resolver{Next: demanding(r, byAcme), Cache: cache, KeyFiles: map[string]string{"acme/cosign.pub": file}}
	}
	without := source()
	without.KeyFiles = nil
	if want := rendered(t, without, render.OwnerCrossplane); len(want.Unread) != 1 || !strings.Contains(want.Unread[0].Err.Error(), "--verification-key=acme/cosign.pub=FILE") {
		t.Errorf("It gives advice for use without a cluster: %v", want.Unread)
	}
	if want := rendered(t, source(), render.OwnerCrossplane); len(want.Definitions) != 1 {
		t.Errorf("The key of the file counts: %v", want.Unread)
	}
	r.Fail(http.StatusServiceUnavailable)
	if want := rendered(t, source(), render.OwnerCrossplane); len(want.Definitions) != 1 {
		t.Errorf("A registry that is down does not prevent verification: %v", want.Unread)
	}
	offline := source()
	offline.Offline = true
	if want := rendered(t, offline, render.OwnerCrossplane); len(want.Definitions) != 1 {
		t.Errorf("No registry is asked: %v", want.Unread)
	}
	if err := os.WriteFile(file, newSigner(t).pem(t), 0o600); err != nil {
		t.Fatal(err)
	}
	if want := rendered(t, source(), render.OwnerCrossplane); len(want.Definitions) != 0 || len(want.Unread) != 1 {
		t.Errorf("A key that was replaced does not count any more, whatever the cache holds: %v", want.Unread)
	}
}
