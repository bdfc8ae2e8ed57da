// Package signing verifies the signatures of commits and tags with OpenPGP and SSH keys.
package signing

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/fluxcd/pkg/git/signature"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Keys are texts with public keys: OpenPGP keys in ASCII armor, and SSH keys as in authorized_keys.
type Keys []string

const (
	beginPGP = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	endPGP   = "-----END PGP PUBLIC KEY BLOCK-----"

	// maxSignature bounds the size of a signature. The signature of a 16384-bit RSA key has 3 KB.
	maxSignature = 64 << 10
	// leastBits is the minimum length of an RSA or DSA key.
	leastBits = 2048
)

// Validate returns an error for invalid keys.
func (k Keys) Validate() error {
	_, err := k.parse()
	return err
}

// A keyring holds parsed keys.
type keyring struct {
	pgp openpgp.EntityList
	ssh []ssh.PublicKey
}

// parse parses the keys.
func (k Keys) parse() (keyring, error) {
	var all keyring
	var wrong []error
	for i, text := range k {
		one, err := parseKeys(text)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("key %d: %w", i+1, err))
		}
		all.pgp, all.ssh = append(all.pgp, one.pgp...), append(all.ssh, one.ssh...)
	}
	all.pgp = merged(all.pgp)
	return all, errors.Join(wrong...)
}

// merged merges the exports of each OpenPGP key, as an import into a keyring of GnuPG does. Otherwise, an older export would accept
// signatures of a key that has expired or was revoked since.
func merged(all openpgp.EntityList) openpgp.EntityList {
	var list openpgp.EntityList
	byFingerprint := map[string]*openpgp.Entity{}
	for _, e := range all {
		to := byFingerprint[string(e.PrimaryKey.Fingerprint)]
		if to == nil {
			byFingerprint[string(e.PrimaryKey.Fingerprint)] = e
			list = append(list, e)
			continue
		}
		to.Revocations = append(to.Revocations, e.Revocations...)
		to.SelfSignature = newer(to.SelfSignature, e.SelfSignature)
		for name, other := range e.Identities {
			same := to.Identities[name]
			if same == nil {
				to.Identities[name] = other
				continue
			}
			same.Revocations = append(same.Revocations, other.Revocations...)
			same.SelfSignature = newer(same.SelfSignature, other.SelfSignature)
		}
		for _, other := range e.Subkeys {
			i := slices.IndexFunc(to.Subkeys, func(s openpgp.Subkey) bool {
				return bytes.Equal(s.PublicKey.Fingerprint, other.PublicKey.Fingerprint)
			})
			if i < 0 {
				to.Subkeys = append(to.Subkeys, other)
				continue
			}
			to.Subkeys[i].Revocations = append(to.Subkeys[i].Revocations, other.Revocations...)
			to.Subkeys[i].Sig = newer(to.Subkeys[i].Sig, other.Sig)
		}
	}
	return list
}

// newer returns the newer of two signatures of a key on itself. Either may be nil.
func newer(a, b *packet.Signature) *packet.Signature {
	if a == nil || b != nil && b.CreationTime.After(a.CreationTime) {
		return b
	}
	return a
}

// parseKeys parses a text with OpenPGP keys, SSH keys, or both.
func parseKeys(text string) (keyring, error) {
	var k keyring
	for rest, more := text, true; more; {
		var lines, block string
		lines, rest, more = strings.Cut(rest, beginPGP)
		if err := k.addSSH(lines); err != nil {
			return k, err
		}
		if !more {
			break
		}
		block, rest, _ = strings.Cut(rest, endPGP)
		ring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(beginPGP + block + endPGP + "\n"))
		if err != nil {
			return k, fmt.Errorf("cannot read the OpenPGP public key: %w", err)
		}
		for _, entity := range ring {
			if bits, err := entity.PrimaryKey.BitLength(); err == nil && isRSAOrDSA(entity.PrimaryKey) && bits < leastBits {
				return k, fmt.Errorf("the OpenPGP key %s has %d bits; use one with at least %d", entity.PrimaryKey.KeyIdString(), bits, leastBits)
			}
		}
		k.pgp = append(k.pgp, ring...)
	}
	if len(k.pgp)+len(k.ssh) == 0 {
		return k, errNoKey
	}
	return k, nil
}

var errNoKey = errors.New("it is neither an OpenPGP public key in ASCII armor nor an SSH public key")

func isRSAOrDSA(key *packet.PublicKey) bool {
	switch key.PubKeyAlgo {
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSASignOnly, packet.PubKeyAlgoRSAEncryptOnly, packet.PubKeyAlgoDSA:
		return true
	}
	return false
}

// addSSH parses lines with one SSH key each. Headgate supports no options in a line, such as namespaces or
// cert-authority, so it refuses them.
func (k *keyring) addSSH(lines string) error {
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		switch {
		case err != nil:
			return errNoKey
		case len(options) > 0:
			return fmt.Errorf("the SSH key has %q before it; write the type and the key alone, as in a .pub file", strings.Join(options, ","))
		case !strongSSH(key):
			return fmt.Errorf("an SSH key of the type %s is not accepted; use ed25519, ECDSA, or RSA with at least %d bits", key.Type(), leastBits)
		}
		k.ssh = append(k.ssh, key)
	}
	return nil
}

func strongSSH(key ssh.PublicKey) bool {
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoSKED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoSKECDSA256:
		return true
	case ssh.KeyAlgoRSA:
		of, ok := key.(ssh.CryptoPublicKey)
		if !ok {
			return false
		}
		sized, ok := of.CryptoPublicKey().(interface{ Size() int })
		return ok && sized.Size()*8 >= leastBits
	}
	return false
}

// An unsigned object can be written without its signature. It is a commit or a tag.
type unsigned interface {
	EncodeWithoutSignature(o plumbing.EncodedObject) error
}

// payloadOf returns the signed content of an object.
func payloadOf(of unsigned) ([]byte, error) {
	to := &plumbing.MemoryObject{}
	if err := of.EncodeWithoutSignature(to); err != nil {
		return nil, err
	}
	r, err := to.Reader()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Commit returns the fingerprint of the key that signed a commit, or the reason why no key did.
func (k Keys) Commit(commit *object.Commit) (string, error) {
	payload, err := payloadOf(commit)
	if err != nil {
		return "", err
	}
	// The signed content, decoded separately, must be the same commit.
	var again object.Commit
	if err := again.Decode(encoded(plumbing.CommitObject, payload)); err != nil || again.TreeHash != commit.TreeHash ||
		fmt.Sprint(again.ParentHashes) != fmt.Sprint(commit.ParentHashes) || again.Message != commit.Message {
		return "", errors.New("its signature is in a place where Git writes none; sign the commit with Git")
	}
	if strings.Count(commit.PGPSignature, "-----BEGIN ") > 1 {
		return "", errors.New("it has more than one signature; sign it once")
	}
	return k.Verify(commit.PGPSignature, payload)
}

// Tag returns nil if one of the keys signed a tag, or otherwise the reason why not.
func (k Keys) Tag(tag *object.Tag) error {
	payload, err := payloadOf(tag)
	if err != nil {
		return err
	}
	var again object.Tag
	if err := again.Decode(encoded(plumbing.TagObject, payload)); err != nil || again.Target != tag.Target || again.TargetType != tag.TargetType || again.Name != tag.Name {
		return errors.New("its signature is in a place where Git writes none; sign the tag with Git")
	}
	_, err = k.Verify(tag.PGPSignature, payload)
	return err
}

func encoded(kind plumbing.ObjectType, content []byte) *plumbing.MemoryObject {
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	_, _ = o.Write(content) // writing to memory never fails
	return o
}

// Verify returns the fingerprint of the key that signed a payload, or the reason why no key did.
func (k Keys) Verify(sig string, payload []byte) (_ string, err error) {
	defer func() {
		if p := recover(); p != nil { // the decoder reads hostile data
			err = fmt.Errorf("its signature cannot be read: %v", p)
		}
	}()
	ring, wrong := k.parse()
	switch sig = strings.TrimSpace(sig); {
	case wrong != nil:
		return "", wrong
	case sig == "":
		return "", errors.New("it has no signature")
	case len(sig) > maxSignature:
		return "", fmt.Errorf("its signature has %d bytes, and the limit is %d", len(sig), maxSignature)
	case signature.IsPGPSignature(sig):
		return ring.verifyPGP(sig, payload)
	case signature.IsSSHSignature(sig):
		return ring.verifySSH(sig, payload)
	}
	return "", errors.New("its signature is neither of OpenPGP nor of SSH, and Headgate verifies no other")
}

// strong lists the accepted hashes. Collisions are feasible for MD5, SHA-1 and RIPEMD-160.
var strong = map[crypto.Hash]bool{
	crypto.SHA256: true, crypto.SHA384: true, crypto.SHA512: true, crypto.SHA3_256: true, crypto.SHA3_512: true,
}

func (k keyring) verifyPGP(sig string, payload []byte) (string, error) {
	block, err := armor.Decode(strings.NewReader(sig))
	if err != nil || block.Type != openpgp.SignatureType {
		return "", errors.New("its signature cannot be read")
	}
	body, err := io.ReadAll(block.Body)
	if err != nil {
		return "", fmt.Errorf("its signature cannot be read: %w", err)
	}
	made, signer, err := openpgp.VerifyDetachedSignature(k.pgp, bytes.NewReader(payload), bytes.NewReader(body), nil)
	by := ""
	if signer != nil {
		by = signer.PrimaryKey.KeyIdString()
	}
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return "", fmt.Errorf("its signature was made with %s, which is not among the keys or may not sign", issuer(body))
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		return "", fmt.Errorf("its signature was made with the key %s, which was revoked", by)
	case errors.Is(err, pgperrors.ErrKeyExpired):
		return "", fmt.Errorf("its signature was made with the key %s, which has expired", by)
	case errors.Is(err, pgperrors.ErrSignatureExpired):
		return "", errors.New("its signature has expired")
	case errors.As(err, new(pgperrors.StructuralError)):
		return "", fmt.Errorf("its signature cannot be read: %w", err)
	case err != nil:
		return "", fmt.Errorf("its signature does not fit what it is on: %w", err)
	case !strong[made.Hash]:
		return "", fmt.Errorf("its signature uses a %s hash, which is too weak; sign with SHA-256 or better", made.Hash)
	case made.SigType != packet.SigTypeBinary:
		return "", errors.New("it is a text signature, but Git signs bytes")
	}
	return by, nil
}

// issuer names the key that made a signature.
func issuer(body []byte) string {
	p, err := packet.NewReader(bytes.NewReader(body)).Next()
	if sig, ok := p.(*packet.Signature); err == nil && ok && sig.IssuerKeyId != nil {
		return fmt.Sprintf("the key %016X", *sig.IssuerKeyId)
	}
	return "a key"
}

func (k keyring) verifySSH(sig string, payload []byte) (string, error) {
	made, err := sshsig.Unarmor([]byte(sig))
	if err != nil {
		return "", fmt.Errorf("its signature cannot be read: %w", err)
	}
	by := ssh.FingerprintSHA256(made.PublicKey)
	for _, key := range k.ssh {
		if !bytes.Equal(key.Marshal(), made.PublicKey.Marshal()) {
			continue
		}
		if made.Namespace != signature.SSHSignatureNamespace {
			return "", fmt.Errorf("its signature is for the namespace %q, and Git signs for %q", made.Namespace, signature.SSHSignatureNamespace)
		}
		if err := sshsig.Verify(bytes.NewReader(payload), made, key, made.HashAlgorithm, signature.SSHSignatureNamespace); err != nil {
			return "", fmt.Errorf("its signature does not fit what it is on: %w", err)
		}
		return by, nil
	}
	return "", fmt.Errorf("its signature was made with the key %s, which is not among the keys", by)
}
