package registry

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	maxProofs  = 64       // maximum number of proofs for one image
	proofBytes = 32 << 20 // maximum size of a proof; an attestation may list all content of an image
)

// The media types and annotations of cosign's layers, which are in separate images.
const (
	simpleSigning = "application/vnd.dev.cosign.simplesigning.v1+json"
	dsseEnvelope  = "application/vnd.dsse.envelope.v1+json"
	bundles       = "application/vnd.dev.sigstore.bundle" // followed by a version
	oldBundle     = bundles + "+json;version=0.1"         // the equivalent of a layer with its annotations

	annotatedSignature   = "dev.cosignproject.cosign/signature"
	annotatedCertificate = "dev.sigstore.cosign/certificate"
	annotatedLog         = "dev.sigstore.cosign/bundle"
	annotatedTime        = "dev.sigstore.cosign/rfc3161timestamp"
)

// A proof is a signature or an attestation of an image. It proves nothing until it is verified.
type proof struct {
	*bundle.Bundle

	payload []byte // the signed content; nil if the bundle holds it
	layered bool   // a layer with annotations, which is the only form that Crossplane reads
}

// proofs returns the proofs of an image: those under cosign's tag for the image, which ends in suffix, and its
// referrers. broken is the error of unreadable proofs.
func (p *puller) proofs(ctx context.Context, from origin, digest, suffix string) (all []proof, findings []manifest.Finding, broken, err error) {
	of := from.Digest(digest)
	images, findings, err := p.listed(ctx, from, of.Name()+" "+suffix, "the signatures of "+of.Name(), func(ctx context.Context, client *remote.Puller) ([]string, error) {
		return proofImages(ctx, client, from.Tag(strings.Replace(digest, ":", "-", 1)+"."+suffix), of)
	})
	if err != nil {
		return nil, nil, nil, err
	}
	for _, image := range images[:min(len(images), maxProofs)] {
		layers, unreadable, err := p.proofLayers(ctx, from, image)
		if err != nil {
			return nil, nil, nil, err
		}
		broken = errors.Join(broken, unreadable)
		for _, l := range layers[:min(len(layers), maxProofs-len(all))] {
			content, err := p.content(ctx, from, l)
			if err != nil {
				return nil, nil, nil, err
			}
			one, err := proofOf(string(l.MediaType), content, l.Annotations)
			if err != nil {
				broken = errors.Join(broken, err)
				continue
			}
			all = append(all, one)
		}
	}
	return all, findings, broken, nil
}

// proofImages returns the digests of the images that may hold proofs of an image: the one under cosign's tag, and the referrers.
func proofImages(ctx context.Context, client *remote.Puller, tag name.Tag, of name.Digest) ([]string, error) {
	var images []string
	tagged, err := client.Head(ctx, tag)
	if err == nil {
		images = append(images, tagged.Digest.String())
	} else if !isRefusal(err, http.StatusNotFound) {
		return nil, err
	}
	referrers, err := remote.Referrers(of, remote.Reuse(client), remote.WithContext(ctx))
	if err != nil {
		if _, answered := errors.AsType[*transport.Error](err); answered && !isOutage(err) {
			return images, nil // it does not support referrers
		}
		return nil, err
	}
	index, err := referrers.IndexManifest()
	if err != nil {
		return nil, err
	}
	var others []string
	for _, m := range index.Manifests {
		others = append(others, m.Digest.String())
	}
	slices.Sort(others) // registries return them in no defined order
	return append(images, others...), nil
}

// proofLayers returns the layers of an image that are proofs. unreadable is the error of a manifest that is not JSON.
func (p *puller) proofLayers(ctx context.Context, from origin, image string) (layers []v1.Descriptor, unreadable, err error) {
	raw, err := p.manifest(ctx, from, image)
	if err != nil {
		return nil, nil, err
	}
	var m v1.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err, nil
	}
	return slices.DeleteFunc(m.Layers, func(l v1.Descriptor) bool { return !isProof(string(l.MediaType)) }), nil, nil
}

func isProof(mediaType string) bool {
	return mediaType == simpleSigning || mediaType == dsseEnvelope || strings.HasPrefix(mediaType, bundles)
}

// isRefusal reports whether an error is a response of a registry with this status.
func isRefusal(err error, status int) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && answer.StatusCode == status
}

// content returns a small blob.
func (p *puller) content(ctx context.Context, from origin, blob v1.Descriptor) ([]byte, error) {
	if blob.Size > proofBytes {
		return nil, fmt.Errorf("a signature of it is larger than %d bytes", proofBytes)
	}
	if err := p.have(ctx, from, blob); err != nil {
		return nil, err
	}
	return p.cache.read(blob.Digest.String(), proofBytes)
}

// proofOf parses the content of one layer.
func proofOf(kind string, content []byte, annotations map[string]string) (proof, error) {
	if strings.HasPrefix(kind, bundles) {
		b := new(bundle.Bundle)
		err := b.UnmarshalJSON(content)
		return proof{Bundle: b}, err
	}
	b := &protobundle.Bundle{MediaType: oldBundle}
	var err error
	if b.VerificationMaterial, err = material(annotations); err != nil {
		return proof{}, err
	}
	made := proof{layered: true}
	if kind == dsseEnvelope {
		envelope := new(protodsse.Envelope)
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(content, envelope); err != nil {
			return proof{}, err
		}
		b.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: envelope}
	} else {
		signature, err := base64.StdEncoding.DecodeString(annotations[annotatedSignature])
		if err != nil {
			return proof{}, fmt.Errorf("annotation %s: %w", annotatedSignature, err)
		}
		sum := sha256.Sum256(content)
		b.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
			Signature:     signature,
		}}
		made.payload = content
	}
	made.Bundle, err = bundle.NewBundle(b)
	return made, err
}

// material returns the signer's certificate and the log entry from annotations.
func material(annotations map[string]string) (*protobundle.VerificationMaterial, error) {
	m := &protobundle.VerificationMaterial{Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{}}}
	if text := annotations[annotatedCertificate]; text != "" {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, fmt.Errorf("annotation %s: it is no PEM", annotatedCertificate)
		}
		m.Content = &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: block.Bytes}}
	}
	if text := annotations[annotatedLog]; text != "" {
		entry, err := logEntry(text)
		if err != nil {
			return nil, fmt.Errorf("annotation %s: %w", annotatedLog, err)
		}
		m.TlogEntries = append(m.TlogEntries, entry)
	}
	if text := annotations[annotatedTime]; text != "" {
		var decoded struct {
			SignedRFC3161Timestamp []byte
		}
		if err := json.Unmarshal([]byte(text), &decoded); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", annotatedTime, err)
		}
		m.TimestampVerificationData = &protobundle.TimestampVerificationData{
			Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: decoded.SignedRFC3161Timestamp}},
		}
	}
	return m, nil
}

// logEntry parses the entry of a transparency log, with the log's promise to include it.
func logEntry(text string) (*protorekor.TransparencyLogEntry, error) {
	var decoded struct {
		SignedEntryTimestamp []byte
		Payload              struct {
			Body           []byte `json:"body"`
			IntegratedTime int64  `json:"integratedTime"`
			LogIndex       int64  `json:"logIndex"`
			LogID          string `json:"logID"`
		}
	}
	if err := json.Unmarshal([]byte(text), &decoded); err != nil {
		return nil, err
	}
	var body struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(decoded.Payload.Body, &body); err != nil {
		return nil, err
	}
	id, err := hex.DecodeString(decoded.Payload.LogID)
	if err != nil {
		return nil, err
	}
	return &protorekor.TransparencyLogEntry{
		LogIndex:          decoded.Payload.LogIndex,
		LogId:             &protocommon.LogId{KeyId: id},
		KindVersion:       &protorekor.KindVersion{Kind: body.Kind, Version: body.APIVersion},
		IntegratedTime:    decoded.Payload.IntegratedTime,
		InclusionPromise:  &protorekor.InclusionPromise{SignedEntryTimestamp: decoded.SignedEntryTimestamp},
		CanonicalizedBody: decoded.Payload.Body,
	}, nil
}
