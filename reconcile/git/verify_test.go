package git

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// by returns a function that signs with a key.
func by(k key) func(*testing.T, []byte) string {
	return func(t *testing.T, payload []byte) string {
		t.Helper()
		sig, err := k.Sign(bytes.NewReader(payload))
		if err != nil {
			t.Fatal(err)
		}
		return string(sig)
	}
}

// pgpBy returns a function that signs with an OpenPGP key and a configuration.
func pgpBy(k key, how *packet.Config) func(*testing.T, []byte) string {
	return func(t *testing.T, payload []byte) string {
		t.Helper()
		var sig bytes.Buffer
		if err := openpgp.ArmoredDetachSign(&sig, k.entity, bytes.NewReader(payload), how); err != nil {
			t.Fatal(err)
		}
		return sig.String()
	}
}

// headerOf returns a header of a commit. A space follows each newline in its value.
func headerOf(key, value string) string {
	return key + " " + strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n ") + "\n"
}

const who = "A <a@example.org> 1800000000 +0000\n"

// commitPayload returns the parts of an unsigned commit before and after the signature.
func commitPayload(tree plumbing.Hash, more string) (head, message string) {
	return fmt.Sprintf("tree %s\nauthor %scommitter %s%s", tree, who, who, more), "\nm\n"
}

// A commit without a valid signature is neither rendered nor applied. The signature must be from a listed, valid key, over exactly
// this commit, made for Git, and with a strong hash.
//
//test:long
func TestVerifyHead(t *testing.T) {
	day := 24 * time.Hour
	long := &packet.Config{Time: func() time.Time { return time.Now().Add(-3 * day) }}
	short := &packet.Config{Time: long.Time, KeyLifetimeSecs: 24 * 3600}
	alice, mallory, carol := openPGPKey(t, "alice@example.org"), openPGPKey(t, "mallory@example.org"), sshKey(t)
	expired := openPGPKeyMade(t, "erin@example.org", short, nil)
	revoked := openPGPKeyMade(t, "rita@example.org", long, func(e *openpgp.Entity) error { return e.RevokeKey(packet.KeyCompromised, "lost", nil) })
	subkey := openPGPKeyMade(t, "sue@example.org", long, func(e *openpgp.Entity) error { return e.AddSigningSubkey(nil) })
	revoked.entity.Revocations = nil // for the thief
	weak := rsaKey(t)
	web := openPGPKey(t, "noreply@github.com")
	all := Keys{alice.public + "\n" + carol.public, expired.public, revoked.public, subkey.public, weak.public, web.public}

	text := func(t *testing.T, payload []byte) string {
		t.Helper()
		var sig bytes.Buffer
		if err := openpgp.ArmoredDetachSignText(&sig, alice.entity, bytes.NewReader(payload), nil); err != nil {
			t.Fatal(err)
		}
		return sig.String()
	}
	weakly := func(t *testing.T, payload []byte) string {
		t.Helper()
		key := alice.entity.PrivateKey
		sig := &packet.Signature{Version: 4, SigType: packet.SigTypeBinary, PubKeyAlgo: key.PubKeyAlgo, Hash: crypto.SHA1, CreationTime: time.Now(), IssuerKeyId: &key.KeyId}
		h := crypto.SHA1.New()
		h.Write(payload)
		var out bytes.Buffer
		w, err := armor.Encode(&out, openpgp.SignatureType, nil)
		if err := errors.Join(err, sig.Sign(h, key, &packet.Config{NonDeterministicSignaturesViaNotation: new(false)}), sig.Serialize(w), w.Close()); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	ofNamespace := func(t *testing.T, payload []byte) string {
		t.Helper()
		sig, err := sshsig.Sign(bytes.NewReader(payload), carol.ssh, sshsig.HashSHA512, "file")
		if err != nil {
			t.Fatal(err)
		}
		return string(sshsig.Armor(sig))
	}
	other := func(t *testing.T, _ []byte) string {
		t.Helper()
		head, message := commitPayload(plumbing.NewHash(strings.Repeat("1", 40)), "")
		return by(alice)(t, []byte(head+message))
	}
	unsigned := func(*testing.T, []byte) string { return "" }
	cases := map[string]struct {
		reason string
		sign   func(*testing.T, []byte) string
		more   string // headers that the signature covers
		extra  string // headers that the signature does not cover
		want   string // part of the error; "" if none is expected
	}{
		"OpenPGP":     {reason: "A listed key signed the commit.", sign: by(alice)},
		"SSH":         {reason: "A listed SSH key signed the commit, and the text with that key lists another one.", sign: by(carol)},
		"Subkey":      {reason: "OpenPGP keys of people usually sign with a subkey.", sign: by(subkey)},
		"Forge":       {reason: "The forge signs merges, and the user has chosen to trust its key.", sign: by(web)},
		"MergeTag":    {reason: "The merge of a signed tag contains the tag's signature and has its own.", sign: by(alice), more: headerOf("mergetag", "object 1\n\n-----BEGIN PGP SIGNATURE-----\nx")},
		"SHA256":      {reason: "Git adds a second signature in repositories that move to SHA-256.", sign: by(alice), extra: headerOf("gpgsig-sha256", "whatever\nit is")},
		"Unsigned":    {reason: "The web UI of a forge may create merges without a signature.", sign: unsigned, want: "has no signature"},
		"OnlySHA256":  {reason: "A signature for the other format proves nothing.", sign: unsigned, extra: headerOf("gpgsig-sha256", "x"), want: "has no signature"},
		"Stranger":    {reason: "A valid signature by an unlisted key proves nothing.", sign: by(mallory), want: "not among the keys"},
		"StrangerSSH": {reason: "A valid signature by an unlisted SSH key proves nothing.", sign: by(sshKey(t)), want: "not among the keys"},
		"Expired":     {reason: "Signatures made after a key's expiry do not count.", sign: pgpBy(expired, long), want: "has expired"},
		"Revoked":     {reason: "A thief may have a revoked key.", sign: pgpBy(revoked, long), want: "revoked"},
		"OtherCommit": {reason: "A signature copied from another commit does not count.", sign: other, want: "does not fit"},
		"Namespace":   {reason: "A signature over a file does not count for a commit.", sign: ofNamespace, want: "namespace \"file\""},
		"SHA1":        {reason: "Two contents with the same SHA-1 can be created.", sign: weakly, want: "too weak"},
		"SHA1OfSSH":   {reason: "Old RSA signatures of SSH use SHA-1, too.", sign: sha1Of(weak), want: "cannot be read"},
		"Text":        {reason: "A text signature ignores line endings.", sign: text, want: "a text signature"},
		"Two":         {reason: "With two signatures, it is unclear which one counts.", sign: by(alice), extra: headerOf("gpgsig", by(mallory)(t, []byte("x"))), want: "more than one"},
		"X509": {reason: "Headgate cannot verify X.509 signatures.", sign: func(*testing.T, []byte) string {
			return "-----BEGIN SIGNED MESSAGE-----\nx\n-----END SIGNED MESSAGE-----"
		}, want: "neither of OpenPGP nor of SSH"},
		"Garbage": {reason: "A damaged OpenPGP signature does not count.", sign: func(*testing.T, []byte) string { return "-----BEGIN PGP SIGNATURE-----\n\nAAAA\n" }, want: "cannot be read"},
		"GarbageSSH": {reason: "A damaged SSH signature does not count.", sign: func(*testing.T, []byte) string {
			return "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----"
		}, want: "cannot be read"},
		"HugeArmor": {reason: "Reading a huge signature must be cheap.", sign: func(*testing.T, []byte) string {
			return "-----BEGIN PGP SIGNATURE-----\n" + strings.Repeat("A\n", 60<<10)
		}, want: "the limit is"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			head, message := commitPayload(f.files(texts(1)), tc.more)
			sig := tc.sign(t, []byte(head+message))
			if sig != "" {
				head += headerOf("gpgsig", sig)
			}
			h := f.object(plumbing.CommitObject, []byte(head+tc.extra+message))
			f.ref("refs/heads/main", h)
			repository := &Repository{URL: f.dir, Verify: Verification{Commit: true, Keys: all}}
			_, err := repository.Fetch(t.Context(), "main")
			refusedFor(t, tc.reason, err, h, tc.want)
		})
	}
}

// refusedFor checks the error of a fetch: none, or the refusal of a commit with the wanted reason.
func refusedFor(t *testing.T, reason string, err error, commit plumbing.Hash, want string) {
	t.Helper()
	of, is := errors.AsType[*UnverifiedError](err)
	switch {
	case want == "" && err != nil:
		t.Errorf("%s\n%v", reason, err)
	case want != "" && (!is || !strings.Contains(err.Error(), want)):
		t.Errorf("%s\nthe error is %v, want one with %q", reason, err, want)
	case want != "" && of.Unverified() != commit.String():
		t.Errorf("%s\nit refuses %s, want %s", reason, of.Unverified(), commit)
	}
}

// If a signature comes before the parents, go-git would lose the parents, which were signed.
func TestVerifyPlaceOfSignature(t *testing.T) {
	alice := openPGPKey(t, "alice@example.org")
	f := newFixture(t)
	tree := f.files(texts(1))
	parent := f.commit(tree)
	rest := fmt.Sprintf("parent %s\nauthor %scommitter %s\nm\n", parent, who, who)
	payload := fmt.Sprintf("tree %s\n%s", tree, rest)
	sig := headerOf("gpgsig", by(alice)(t, []byte(payload)))
	f.ref("refs/heads/main", f.object(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\n%s%s", tree, sig, rest)))
	repository := &Repository{URL: f.dir, Verify: Verification{Commit: true, Keys: Keys{alice.public}}}
	if _, err := repository.Fetch(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "a place where Git writes none") {
		t.Errorf("Fetch = %v", err)
	}
}

// The time to decode a commit grows with the square of the number of lines in its headers. Every user who may push can create such
// a commit, and every pass reads it.
//
//test:unraced
func TestHeaderOfCommitIsBounded(t *testing.T) {
	f := newFixture(t)
	head, message := commitPayload(f.files(texts(1)), "")
	huge := f.object(plumbing.CommitObject, []byte(head+"gpgsig x\n"+strings.Repeat(" \n", 8<<20)+message))
	f.ref("refs/heads/main", huge)
	tag := fmt.Sprintf("object %s\ntype commit\ntag v1\ntagger %sgpgsig x\n%s\nm\n", huge, who, strings.Repeat(" \n", 8<<20))
	f.ref("refs/tags/v1", f.object(plumbing.TagObject, []byte(tag)))
	for _, ref := range []string{"main", "v1"} {
		_, err := (&Repository{URL: f.dir}).Fetch(t.Context(), ref)
		if stays, ok := errors.AsType[headerError](err); !ok || !stays.Permanent() {
			t.Errorf("Fetch(%s) = %v", ref, err)
		}
	}
	f.ref("refs/heads/main", f.object(plumbing.CommitObject, []byte(head+message+strings.Repeat("long message\n", 100_000))))
	if _, err := (&Repository{URL: f.dir}).Fetch(t.Context(), "main"); err != nil {
		t.Errorf("a squash of many commits has a long message: %v", err)
	}
}

// The signature of a tag proves that a person released this commit under this name. A user who may push can move tags. Without the
// check, that user could put an older release under a newer name, or an unsigned tag in its place.
func TestVerifyTag(t *testing.T) {
	alice := openPGPKey(t, "alice@example.org")
	carol := sshKey(t)
	signed := func(f *fixture, name string, to plumbing.Hash, kind string, k key) plumbing.Hash {
		payload := fmt.Sprintf("object %s\ntype %s\ntag %s\ntagger %s\nm\n", to, kind, name, who)
		return f.object(plumbing.TagObject, []byte(payload+by(k)(t, []byte(payload))))
	}
	commitOf := func(f *fixture, k *key) plumbing.Hash {
		head, message := commitPayload(f.files(texts(1)), "")
		if k != nil {
			head += headerOf("gpgsig", by(*k)(t, []byte(head+message)))
		}
		return f.object(plumbing.CommitObject, []byte(head+message))
	}
	cases := map[string]struct {
		reason string
		ref    string
		both   bool
		make   func(f *fixture) plumbing.Hash // returns the commit
		want   string
	}{
		"Signed": {reason: "A listed key signed the tag.", ref: "v1", make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			f.ref("refs/tags/v1", signed(f, "v1", c, "commit", alice))
			return c
		}},
		"Range": {reason: "A range selects the tag.", ref: "semver:1.x", make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			f.ref("refs/tags/v1.2.0", signed(f, "v1.2.0", c, "commit", alice))
			return c
		}},
		"MovedInRange": {reason: "An older signed tag stands under a newer name.", ref: "semver:1.x", want: "under another name", make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			f.ref("refs/tags/v1.3.0", signed(f, "v1.2.0", c, "commit", alice))
			return c
		}},
		"SSH": {reason: "A listed SSH key signed the tag, and the ref is the tag's full name.", ref: "refs/tags/v1", make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			f.ref("refs/tags/v1", signed(f, "v1", c, "commit", carol))
			return c
		}},
		"Branch": {reason: "A branch with the same name is not the tag.", ref: "v1", make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			f.ref("refs/heads/v1", c)
			f.ref("refs/tags/v1", signed(f, "v1", c, "commit", alice))
			return c
		}},
		"Both": {reason: "Both the tag and the commit have a signature.", ref: "v1", both: true, make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, &carol)
			f.ref("refs/tags/v1", signed(f, "v1", c, "commit", alice))
			return c
		}},
		"OnlyTag": {reason: "The tag has a signature, but the commit needs one, too.", ref: "v1", both: true, make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			f.ref("refs/tags/v1", signed(f, "v1", c, "commit", alice))
			return c
		}, want: "commit"},
		"OnlyHead": {reason: "The commit has a signature, but the tag needs one, too.", ref: "v1", both: true, make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, &carol)
			f.tag("v1", c, plumbing.CommitObject)
			return c
		}, want: "tag v1 is not verified: it has no signature"},
		"Light": {reason: "A lightweight tag cannot have a signature.", ref: "v1", make: func(f *fixture) plumbing.Hash { c := commitOf(f, &carol); f.ref("refs/tags/v1", c); return c }, want: "lightweight"},
		"Renamed": {reason: "A vulnerable old release could be tagged with a new name.", ref: "v2", make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			f.ref("refs/tags/v2", signed(f, "v1", c, "commit", alice))
			return c
		}, want: "under another name"},
		"Nested": {reason: "The signed tag refers to another tag, which may be moved.", ref: "v1", make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			inner := f.tag("v0", c, plumbing.CommitObject)
			f.ref("refs/tags/v1", signed(f, "v1", inner, "tag", alice))
			return c
		}, want: "of a tag"},
		"Stranger": {reason: "A valid signature by an unlisted key proves nothing.", ref: "v1", make: func(f *fixture) plumbing.Hash {
			c := commitOf(f, nil)
			f.ref("refs/tags/v1", signed(f, "v1", c, "commit", openPGPKey(t, "m@example.org")))
			return c
		}, want: "not among the keys"},
		"OtherData": {
			reason: "The signature was made for another commit.", ref: "v1", want: "does not fit",
			make: func(f *fixture) plumbing.Hash {
				c := commitOf(f, nil)
				payload := fmt.Sprintf("object %s\ntype commit\ntag v1\ntagger %s\nm\n", f.commit(f.files(texts(2))), who)
				f.ref("refs/tags/v1", f.object(plumbing.TagObject, fmt.Appendf(nil, "object %s\ntype commit\ntag v1\ntagger %s\nm\n%s", c, who, by(alice)(t, []byte(payload)))))
				return c
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			c := tc.make(f)
			for of, url := range map[string]string{"local": f.dir, "cloned": serve(f).url()} {
				repository := &Repository{URL: url, Cache: t.TempDir(), Verify: Verification{Tag: true, Commit: tc.both, Keys: Keys{alice.public, carol.public}}}
				in, err := repository.Fetch(t.Context(), tc.ref)
				refusedFor(t, of+": "+tc.reason, err, c, tc.want)
				if err == nil && in.Revision != c.String() {
					t.Errorf("it fetched %s, want %s", in.Revision, c)
				}
			}
		})
	}
	f := newFixture(t)
	c := commitOf(f, &carol)
	f.ref("refs/heads/main", c)
	for _, ref := range []string{"", "main", "refs/heads/main", c.String(), "v1~1"} {
		_, err := (&Repository{URL: f.dir, Verify: Verification{Tag: true, Keys: Keys{carol.public}}}).Fetch(t.Context(), ref)
		if err == nil || !strings.Contains(err.Error(), "tag") {
			t.Errorf("%q names no tag: %v", ref, err)
		}
	}
}

// Keys may also come from a Secret, which a user may change while Headgate runs.
func TestVerifyAsksForKeys(t *testing.T) {
	alice := openPGPKey(t, "alice@example.org")
	f := newFixture(t)
	head, message := commitPayload(f.files(texts(1)), "")
	f.ref("refs/heads/main", f.object(plumbing.CommitObject, []byte(head+headerOf("gpgsig", by(alice)(t, []byte(head+message)))+message)))
	var keys Keys
	var none error
	repository := &Repository{URL: f.dir, Verify: Verification{Commit: true, More: func(context.Context) (Keys, error) { return keys, none }}}
	if _, err := repository.Fetch(t.Context(), "main"); err == nil {
		t.Error("without a key, no commit is verified")
	}
	keys = Keys{alice.public}
	if _, err := repository.Fetch(t.Context(), "main"); err != nil {
		t.Error(err)
	}
	none = os.ErrPermission
	if _, err := repository.Fetch(t.Context(), "main"); !errors.Is(err, os.ErrPermission) || errors.As(err, new(*UnverifiedError)) {
		t.Errorf("keys that cannot be read say nothing about the commit: %v", err)
	}
}

// Keys that protect less than the user expects are refused: keys that are too short, and lines whose options Headgate would ignore.
func TestKeysAreStrict(t *testing.T) {
	carol := strings.TrimSpace(sshKey(t).public)
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(&short.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		carol + " carol@example.org\n# a comment\n\n" + carol:   "",
		"cert-authority " + carol:                               "cert-authority",
		"carol@example.org " + carol:                            "carol@example.org",
		"carol@example.org namespaces=\"git\" " + carol:         "neither",
		string(ssh.MarshalAuthorizedKey(public)):                "at least 2048",
		"":                                                      "neither",
		"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA":          "cannot read",
		openPGPKey(t, "a@example.org").public + "nonsense":      "neither",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END--": "neither",
	} {
		err := Keys{key}.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Validate(%.40q) = %v, want an error with %q", key, err, want)
		}
	}
}

func rsaKey(t *testing.T) key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key{public: string(ssh.MarshalAuthorizedKey(signer.PublicKey())), ssh: signer}
}

// sha1Of returns a function that signs with SHA-1, as ssh-keygen once did with RSA keys.
func sha1Of(k key) func(*testing.T, []byte) string {
	return func(t *testing.T, payload []byte) string {
		t.Helper()
		sig, err := sshsig.Sign(bytes.NewReader(payload), oldRSA{k.ssh}, sshsig.HashSHA512, "git")
		if err != nil {
			t.Fatal(err)
		}
		return string(sshsig.Armor(sig))
	}
}

// oldRSA signs SHA-1 hashes.
type oldRSA struct{ ssh.Signer }

func (s oldRSA) SignWithAlgorithm(r io.Reader, data []byte, _ string) (*ssh.Signature, error) {
	with, ok := s.Signer.(ssh.AlgorithmSigner)
	if !ok {
		return nil, errors.New("it has one algorithm")
	}
	return with.SignWithAlgorithm(r, data, ssh.KeyAlgoRSA)
}

// If a tag cannot be read at the moment, it is not refused, and the next pass reads it again. A refusal would be the final verdict
// on the commit.
func TestVerifyUnreadTag(t *testing.T) {
	f := newFixture(t)
	f.push("main", texts(1))
	at, found, err := (&Repository{URL: f.dir}).resolve(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	found.named = plumbing.NewHash(strings.Repeat("1", 40))
	err = Verification{Tag: true, Keys: Keys{openPGPKey(t, "alice@example.org").public}}.check(t.Context(), at, found, "refs/tags/v1")
	if err == nil || errors.As(err, new(*UnverifiedError)) || !strings.Contains(err.Error(), "cannot read tag v1") {
		t.Errorf("got %v", err)
	}
}
