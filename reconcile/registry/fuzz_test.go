package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"path"
	"testing"

	"headgate.dev/headgate/render/xpkg"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// FuzzImage reads images with any manifest and a layer with any entry. The result must be exactly the entry with the name of a
// package's YAML, and never larger than the limit. An image that was damaged on disk must not be read.
func FuzzImage(f *testing.F) {
	const whole = `{"schemaVersion":2,"config":{"digest":"CONFIG","size":1000},"layers":[{"digest":"LAYER","size":10000,"annotations":{"io.crossplane.xpkg":"base"}}]}`
	f.Add(whole, `{"rootfs":{"diff_ids":["LAYER"]}}`, "package.yaml", "a: b\n", false)
	f.Add(whole, `{"rootfs":{"diff_ids":["LAYER"]}}`, "package.yaml", "a: b\n", true)
	f.Add(`{"schemaVersion":2,"config":{"digest":"CONFIG"},"layers":[{"digest":"LAYER"},{"digest":"LAYER"}]}`, `{"rootfs":{"diff_ids":["LAYER","LAYER"]}}`, "a/package.yaml", "", false)
	f.Add(`{"manifests":[{"digest":"CONFIG"}]}`, whole, "../package.yaml", "a", false)
	f.Add(`{"schemaVersion":2,"config":{"digest":"sha512:00","size":-1},"layers":[{"digest":"sha256:zz","size":-5}]}`, "{}", "package.yaml", "a", false)
	f.Fuzz(func(t *testing.T, manifest, config, entry, content string, damaged bool) {
		const limit = 1 << 10
		var layer bytes.Buffer
		w := tar.NewWriter(&layer)
		if w.WriteHeader(&tar.Header{Name: entry, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}) != nil {
			t.Skip() // no such name
		}
		_, _ = io.WriteString(w, content)
		_ = w.Close()
		p := newPuller(&Resolver{Cache: t.TempDir(), Offline: true})
		put := func(raw []byte) string {
			sum := sha256.Sum256(raw)
			digest := "sha256:" + hex.EncodeToString(sum[:])
			if err := p.cache.store(nil, digest, int64(len(raw)), bytes.NewReader(raw)); err != nil {
				t.Fatal(err)
			}
			return digest
		}
		named := func(text, what, digest string) []byte {
			return bytes.ReplaceAll([]byte(text), []byte(what), []byte(digest))
		}
		layerDigest := put(layer.Bytes())
		configDigest := put(named(config, "LAYER", layerDigest))
		digest := put(named(string(named(manifest, "LAYER", layerDigest)), "CONFIG", configDigest))
		if damaged {
			if err := p.cache.write(p.cache.blob(layerDigest), func(w io.Writer) error { _, err := w.Write(layer.Bytes()[1:]); return err }); err != nil {
				t.Fatal(err)
			}
		}
		repository, err := name.NewRepository("registry.example.org/a/b")
		if err != nil {
			t.Fatal(err)
		}
		img, err := p.pulled(t.Context(), origin{Repository: repository}, digest)
		if err != nil {
			return
		}
		stream, err := xpkg.Of(img, limit)
		if err != nil {
			return
		}
		got, err := io.ReadAll(stream)
		if err != nil {
			return
		}
		if string(got) != content || len(got) > limit || path.Base(entry) != "package.yaml" || damaged {
			t.Errorf("read %q from an entry %q with %q, damaged %t", got, entry, content, damaged)
		}
	})
}

// FuzzSeen replaces the record of a tag with any file. Headgate must read only records of that tag.
func FuzzSeen(f *testing.F) {
	f.Add(`{"of":"a","digest":"b"}`)
	f.Add(`{"of":"c"}`)
	f.Add(`[`)
	f.Fuzz(func(t *testing.T, text string) {
		c := cache{dir: t.TempDir(), bytes: cacheBytes}
		if err := c.write(c.tag("a"), func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
			t.Fatal(err)
		}
		if known, ok := c.recall("a"); ok && (known.Of != "a" || !json.Valid([]byte(text))) {
			t.Errorf("recalled %+v of %q", known, text)
		}
	})
}

// FuzzProof checks that no layer of any image counts as a signature by a key that has signed nothing.
func FuzzProof(f *testing.F) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	const payload = `{"critical":{"image":{"docker-manifest-digest":"` + digest + `"}}}`
	f.Add(simpleSigning, payload, "c2lnbmF0dXJl", "", "")
	f.Add(simpleSigning, payload, "", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", `{"Payload":{"body":"e30=","logID":"00"}}`)
	f.Add(dsseEnvelope, `{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"sig":"AAAA"}]}`, "", "", "")
	f.Add(bundles+".v0.3+json", `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{"hint":"a"}},"messageSignature":{"signature":"AAAA"}}`, "", "", "")
	f.Add(bundles+".v0.3+json", `{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{"publicKey":{}},"dsseEnvelope":{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{}]}}`, "", "", "")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		f.Fatal(err)
	}
	p := newPuller(&Resolver{Secret: func(context.Context, string) (map[string][]byte, error) { return map[string][]byte{"key": public}, nil }})
	v, err := verificationOf(`{"provider":"Cosign","cosign":{"authorities":[{"key":{"secretRef":{"name":"any","key":"key"}}}]}}`)
	if err != nil {
		f.Fatal(err)
	}
	j, err := p.verifier(f.Context(), v.Cosign.Authorities[0])
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind, content, signature, certificate, log string) {
		one, err := proofOf(kind, []byte(content), map[string]string{annotatedSignature: signature, annotatedCertificate: certificate, annotatedLog: log, annotatedTime: log})
		if err != nil {
			return
		}
		for _, demand := range []string{signedType, ""} {
			if j.accept(one, digest, demand) == nil {
				t.Errorf("accepted as %q", demand)
			}
		}
	})
}
