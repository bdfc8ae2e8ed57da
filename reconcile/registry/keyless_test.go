package registry_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/registry"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

// bundled returns a layer with a bundle as cosign v3 writes it for keyless signing: a certificate, the signed statement, a log
// entry, and a timestamp.
func bundled(t *testing.T, made *ca.TestEntity, change func(*protobundle.VerificationMaterial)) mutate.Addendum {
	t.Helper()
	who, err1 := made.VerificationContent()
	what, err2 := made.SignatureContent()
	entries, err3 := made.TlogEntries()
	times, err4 := made.Timestamps()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	envelope := what.EnvelopeContent().RawEnvelope()
	payload, err := envelope.DecodeB64Payload()
	if err != nil {
		t.Fatal(err)
	}
	const kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
	m := &protobundle.VerificationMaterial{
		Content:                   &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: who.Certificate().Raw}},
		TimestampVerificationData: &protobundle.TimestampVerificationData{},
	}
	for _, e := range entries {
		m.TlogEntries = append(m.TlogEntries, entryOf(e))
	}
	for _, at := range times {
		m.TimestampVerificationData.Rfc3161Timestamps = append(m.TimestampVerificationData.Rfc3161Timestamps, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: at})
	}
	if change != nil {
		change(m)
	}
	raw, err := protojson.Marshal(&protobundle.Bundle{
		MediaType: kind, VerificationMaterial: m,
		Content: &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
			Payload: payload, PayloadType: envelope.PayloadType,
			Signatures: []*protodsse.Signature{{Sig: what.Signature()}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return layerOf(kind, raw, nil)
}

// By default, cosign v3 writes everything into one bundle that refers to the image. Version 2 of sigstore's log contains no time,
// so a timestamp authority has to provide one.
func TestVerifyBundlesOfIdentities(t *testing.T) {
	public, elsewhere := newSigstore(t), newSigstore(t)
	shipped := trustedRoot(t, public)
	statement := func(digest string) []byte {
		return fmt.Appendf(nil, `{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"image","digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`, strings.TrimPrefix(digest, "sha256:"), signedPredicate)
	}
	first := func(in *ca.VirtualSigstore, subject, issuer string, what []byte) (*ca.TestEntity, error) {
		return in.AttestAtTime(subject, issuer, what, time.Now().Add(5*time.Minute), true)
	}
	second := func(in *ca.VirtualSigstore, subject, issuer string, what []byte) (*ca.TestEntity, error) {
		return in.AttestHashedRekordV2(subject, issuer, what)
	}
	untimed := func(m *protobundle.VerificationMaterial) { m.TimestampVerificationData = nil }
	const another = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	cases := map[string]struct {
		reason          string
		sign            func(in *ca.VirtualSigstore, subject, issuer string, what []byte) (*ca.TestEntity, error)
		in              *ca.VirtualSigstore
		subject, issuer string
		of              string // "" means the image itself
		change          func(*protobundle.VerificationMaterial)
		want            string // error of a package that is not read; "" if it is read
	}{
		"FirstLog":       {reason: "A timestamp authority signed the time.", sign: first, in: public, subject: subject, issuer: issuer},
		"UnsignedTime":   {reason: "Anyone could have written a time that the log has not signed.", sign: first, in: public, subject: subject, issuer: issuer, change: untimed, want: "timestamp"},
		"SecondLog":      {reason: "With version 2 of the log, an authority signs the time (RFC 3161).", sign: second, in: public, subject: subject, issuer: issuer},
		"Untimed":        {reason: "Nothing proves that the certificate was valid when it was used.", sign: second, in: public, subject: subject, issuer: issuer, change: untimed, want: "timestamp"},
		"OtherSubject":   {reason: "Every user can have an identity.", sign: first, in: public, subject: "mallory@example.net", issuer: issuer, want: `got "mallory@example.net"`},
		"OtherIssuer":    {reason: "The same name may belong to another user at another issuer.", sign: second, in: public, subject: subject, issuer: "https://login.example.net", want: `got "https://login.example.net"`},
		"OtherSigstore":  {reason: "Every user can run a sigstore.", sign: first, in: elsewhere, subject: subject, issuer: issuer, want: "no signature is accepted"},
		"OtherImage":     {reason: "The bundle is valid for another image.", sign: first, in: public, subject: subject, issuer: issuer, of: another, want: "no signature is accepted"},
		"NotInLog":       {reason: "A signature outside the log may have been made in secret.", sign: first, in: public, subject: subject, issuer: issuer, change: func(m *protobundle.VerificationMaterial) { m.TlogEntries = nil }, want: "no signature is accepted"},
		"EntryOfAnother": {reason: "A log entry belongs to one signature only.", sign: first, in: public, subject: subject, issuer: issuer, change: foreignEntry(t, public), want: "no signature is accepted"},
		"TimeOfAnother": {
			reason: "A timestamp belongs to one signature only, and must come from a trusted authority.", sign: second, in: public, subject: subject, issuer: issuer,
			change: func(m *protobundle.VerificationMaterial) {
				output, err := elsewhere.TimestampResponse([]byte("another"))
				if err != nil {
					t.Error(err)
				}
				m.TimestampVerificationData.Rfc3161Timestamps[0].SignedTimestamp = output
			}, want: "timestamp",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			digest := r.Push(t, "acme/provider-sea", "v1.0.0", provider("provider-sea", "boats"), 0)
			about := digest
			if tc.of != "" {
				about = tc.of
			}
			made, err := tc.sign(tc.in, tc.subject, tc.issuer, statement(about))
			if err != nil {
				t.Fatal(err)
			}
			referring(t, r, digest, bundled(t, made, tc.change))
			s := &registry.Resolver{Next: demanding(r, byIdentity(`{issuer: "`+issuer+`", subject: `+subject+`}`)), Cache: t.TempDir(), TrustedRoot: shipped}
			want := rendered(t, s, render.OwnerCrossplane)
			if tc.want != "" {
				if len(want.Unread) != 1 || len(want.Definitions) > 0 || !strings.Contains(want.Unread[0].Err.Error(), tc.want) {
					t.Errorf("%s: want %q, got %v", tc.reason, tc.want, want.Unread)
				}
				return
			}
			if diff := cmp.Diff([]string{"boats.sea.example.org true", "Provider provider-sea v1.0.0"}, told(want)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", tc.reason, diff, want.Unread)
			}
			if diff := cmp.Diff([]string{registry.RuleSignature}, rules(want, manifest.Warning)); diff != "" {
				t.Errorf("Crossplane does not look there (-want +got):\n%s", diff)
			}
		})
	}
}

// foreignEntry replaces the log entry of a bundle with the entry of another signature.
func foreignEntry(t *testing.T, in *ca.VirtualSigstore) func(*protobundle.VerificationMaterial) {
	t.Helper()
	made, err := in.AttestAtTime(subject, issuer, []byte(`{}`), time.Now().Add(5*time.Minute), true)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := made.TlogEntries()
	if err != nil {
		t.Fatal(err)
	}
	return func(m *protobundle.VerificationMaterial) { m.TlogEntries[0] = entryOf(entries[0]) }
}

// entryOf returns an entry in the format of a bundle. Entries of the first log have no kind.
func entryOf(e *tlog.Entry) *protorekor.TransparencyLogEntry {
	made := e.TransparencyLogEntry()
	if made.GetKindVersion() == nil {
		made.KindVersion = &protorekor.KindVersion{Kind: "dsse", Version: "0.0.1"}
	}
	return made
}
