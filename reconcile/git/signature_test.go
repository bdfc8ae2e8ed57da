package git

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/fluxcd/pkg/git/signature"
	"github.com/go-git/go-billy/v5/memfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"
	"golang.org/x/crypto/ssh"
)

// Only a signature by a listed key over exactly this commit counts.
func TestSigned(t *testing.T) {
	alice, bob := openPGPKey(t, "alice@example.org"), openPGPKey(t, "bob@example.org")
	carol, dave := sshKey(t), sshKey(t)
	cases := map[string]struct {
		reason string
		by     *key
		keys   Keys
		change func(*object.Commit)
		want   bool
	}{
		"OpenPGP":       {reason: "The key of the signer is listed.", by: &alice, keys: Keys{bob.public, alice.public}, want: true},
		"SSH":           {reason: "The SSH key of the signer is listed.", by: &carol, keys: Keys{alice.public, dave.public, carol.public}, want: true},
		"AnotherPerson": {reason: "The signer is not among the listed people.", by: &bob, keys: Keys{alice.public, carol.public}},
		"AnotherSSHKey": {reason: "The SSH key is not listed.", by: &dave, keys: Keys{carol.public}},
		"None":          {reason: "A commit has no signature.", keys: Keys{alice.public}},
		"NoKeys":        {reason: "A valid signature of a stranger proves nothing.", by: &alice},
		"Message": {
			reason: "The signature covers the message.", by: &alice, keys: Keys{alice.public},
			change: func(c *object.Commit) { c.Message += "\nmore" },
		},
		"Tree": {
			reason: "The signature covers the content.", by: &carol, keys: Keys{carol.public},
			change: func(c *object.Commit) { c.TreeHash[0]++ },
		},
		"Garbage": {
			reason: "An unreadable signature does not count.", by: &carol, keys: Keys{carol.public, alice.public},
			change: func(c *object.Commit) { c.PGPSignature = c.PGPSignature[:len(c.PGPSignature)/2] },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			commit := committed(t, tc.by)
			if tc.change != nil {
				tc.change(commit)
			}
			if by, err := tc.keys.Commit(commit); (err == nil && by != "") != tc.want {
				t.Errorf("%s\nsigned by %q, want one: %t", tc.reason, by, tc.want)
			}
		})
	}
}

// An invalid key is refused when the Sync is read, not when a commit needs it.
func TestKeysAreValid(t *testing.T) {
	if err := (Keys{openPGPKey(t, "alice@example.org").public, sshKey(t).public}).Validate(); err != nil {
		t.Error(err)
	}
	for reason, key := range map[string]string{
		"is neither":  "ssh-ed25519 not-a-key",
		"cannot read": "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nnothing\n",
	} {
		if err := (Keys{key}).Validate(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("a key that %s: %v", reason, err)
		}
	}
}

// A key holds a public key and signs commits with its private key.
type key struct {
	signature.Signer

	public string
	entity *openpgp.Entity
	ssh    ssh.Signer
}

func openPGPKey(t *testing.T, email string) key {
	t.Helper()
	return openPGPKeyMade(t, email, nil, nil)
}

// openPGPKeyMade returns an OpenPGP key, changed after its creation.
func openPGPKeyMade(t *testing.T, email string, how *packet.Config, change func(*openpgp.Entity) error) key {
	t.Helper()
	entity, err := openpgp.NewEntity("Somebody", "", email, how)
	if err == nil && change != nil {
		err = change(entity)
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := signature.NewOpenPGPSigner(entity)
	if err != nil {
		t.Fatal(err)
	}
	return key{signer, exported(t, entity), entity, nil}
}

// exported returns the public key of an entity as it is now.
func exported(t *testing.T, entity *openpgp.Entity) string {
	t.Helper()
	var public bytes.Buffer
	w, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(entity.Serialize(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return public.String()
}

func sshKey(t *testing.T) key {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := signature.NewSSHSigner(pem.EncodeToMemory(block), nil)
	if err != nil {
		t.Fatal(err)
	}
	of, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key{signer, string(ssh.MarshalAuthorizedKey(of)), nil, inner}
}

// committed returns a commit with a signature by a key, or without one if the key is nil.
func committed(t *testing.T, by *key) *object.Commit {
	t.Helper()
	repo, err := gogit.Init(memory.NewStorage(), memfs.New())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	how := &gogit.CommitOptions{AllowEmptyCommits: true, Author: &object.Signature{Name: "Somebody", Email: "somebody@example.org", When: time.Unix(1, 0)}}
	if by != nil {
		how.Signer = by.Signer
	}
	h, err := tree.Commit("Clean up", how)
	if err != nil {
		t.Fatal(err)
	}
	commit, err := repo.CommitObject(h)
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// All listed exports of an OpenPGP key count as one: the newest decides, whatever the order.
func TestExportsOfOneKey(t *testing.T) {
	made := func() time.Time { return time.Now().Add(-48 * time.Hour) }
	now := &packet.Config{Time: func() time.Time { return time.Now().Add(-time.Hour) }}
	resign := func(e *openpgp.Entity, lifetime uint32) error {
		id := e.PrimaryIdentity()
		id.SelfSignature.CreationTime, id.SelfSignature.KeyLifetimeSecs = now.Now(), &lifetime
		return id.SelfSignature.SignUserId(id.UserId.Id, e.PrimaryKey, e.PrivateKey, now)
	}
	for name, tc := range map[string]struct {
		reason string
		subkey bool
		change func(*openpgp.Entity) error // between the two exports
		first  string                      // what the first export alone says about a signature of now
		both   string
	}{
		"Revoked": {reason: "The thief of a key signs, and the older export does not know of the theft.", change: func(e *openpgp.Entity) error { return e.RevokeKey(packet.KeyCompromised, "lost", now) }, both: "revoked"},
		"Subkey": {reason: "Only the subkey was revoked.", subkey: true, change: func(e *openpgp.Entity) error {
			return e.RevokeSubkey(&e.Subkeys[len(e.Subkeys)-1], packet.KeyCompromised, "lost", now)
		}, both: "revoked"},
		"Expired":  {reason: "The owner gave the key an end, and the older export has none.", change: func(e *openpgp.Entity) error { return resign(e, 47*3600) }, both: "has expired"},
		"Extended": {reason: "The owner extended the key, and the older export has expired.", change: func(e *openpgp.Entity) error { return resign(e, 0) }, first: "has expired"},
		"Gained":   {reason: "The owner added a subkey, which the older export does not know.", change: func(e *openpgp.Entity) error { return e.AddSigningSubkey(now) }, first: "not among the keys"},
	} {
		t.Run(name, func(t *testing.T) {
			how := &packet.Config{Time: made}
			if name == "Extended" {
				how.KeyLifetimeSecs = 47 * 3600
			}
			k := openPGPKeyMade(t, "a@example.org", how, func(e *openpgp.Entity) error {
				if tc.subkey {
					return e.AddSigningSubkey(how)
				}
				return nil
			})
			first := exported(t, k.entity)
			if err := tc.change(k.entity); err != nil {
				t.Fatal(err)
			}
			second := exported(t, k.entity)
			k.entity.Revocations = nil // for the thief
			for i := range k.entity.Subkeys {
				k.entity.Subkeys[i].Revocations = nil
			}
			if err := resign(k.entity, 0); err != nil {
				t.Fatal(err)
			}
			var sig bytes.Buffer
			if err := openpgp.ArmoredDetachSign(&sig, k.entity, strings.NewReader("x"), nil); err != nil {
				t.Fatal(err)
			}
			for how, keys := range map[string]Keys{"first alone": {first}, "first, second": {first, second}, "second, first": {second, first}, "in one text": {second + "\n" + first}} {
				want := tc.both
				if how == "first alone" {
					want = tc.first
				}
				if _, err := keys.Verify(sig.String(), []byte("x")); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%s\n%s: want error %q, got %v", tc.reason, how, want, err)
				}
			}
		})
	}
}
