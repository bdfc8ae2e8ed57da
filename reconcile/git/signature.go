package git

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/fluxcd/pkg/git/signature"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Signers are public keys of people: OpenPGP keys in ASCII armor, and SSH keys as authorized_keys has them.
type Signers []string

// ofForge reports whether an address belongs to a key with which a forge signs the commits that it makes, such as merges and
// squashes. The author of a pull request writes the message of these commits. The addresses of such keys begin with noreply@; people
// who hide theirs have another name before the @.
func ofForge(address string) bool { return strings.HasPrefix(strings.ToLower(address), "noreply@") }

// Validate returns what is wrong with the keys. The key of a forge is refused: its signature proves nothing about the
// person who approved.
func (s Signers) Validate() error {
	var wrong []error
	for i, key := range s {
		if err := validSigner(key); err != nil {
			wrong = append(wrong, fmt.Errorf("key %d: %w", i+1, err))
		}
	}
	return errors.Join(wrong...)
}

func validSigner(key string) error {
	if !isOpenPGP(key) {
		if keys, err := signature.ParseAuthorizedKeys(key); err != nil || len(keys) == 0 {
			return errors.New("it is neither an OpenPGP public key in ASCII armor nor an SSH public key")
		}
		return nil
	}
	ring, err := openpgp.ReadArmoredKeyRing(strings.NewReader(key))
	if err != nil {
		return fmt.Errorf("cannot read the OpenPGP public key: %w", err)
	}
	for _, entity := range ring {
		for name, identity := range entity.Identities {
			if ofForge(identity.UserId.Email) {
				return fmt.Errorf("it is the key of a forge (%s), which signs messages that authors write; list keys of people", name)
			}
		}
	}
	return nil
}

func isOpenPGP(key string) bool { return strings.Contains(key, "-----BEGIN PGP PUBLIC KEY BLOCK-----") }

// of returns the fingerprint of the key that made the signature of a commit. It returns "" if the commit has no signature, or
// none of the signers made it.
func (s Signers) of(commit *object.Commit) string {
	if len(s) == 0 || commit.PGPSignature == "" {
		return ""
	}
	unsigned := &plumbing.MemoryObject{}
	if err := commit.EncodeWithoutSignature(unsigned); err != nil {
		return ""
	}
	r, err := unsigned.Reader()
	if err != nil {
		return ""
	}
	payload, err := io.ReadAll(r)
	if err != nil {
		return ""
	}
	verify := signature.VerifySSHSignature
	if !signature.IsSSHSignature(commit.PGPSignature) {
		verify = signature.VerifyPGPSignature
	}
	for _, key := range s {
		if isOpenPGP(key) == signature.IsSSHSignature(commit.PGPSignature) {
			continue
		}
		if by, err := verify(commit.PGPSignature, payload, key); err == nil {
			return by
		}
	}
	return ""
}
