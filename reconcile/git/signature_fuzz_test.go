package git

import (
	"crypto/ed25519"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/git/signature"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/crypto/ssh"
)

// stored returns an object with a content.
func stored(kind plumbing.ObjectType, content []byte) *plumbing.MemoryObject {
	o := &plumbing.MemoryObject{}
	o.SetType(kind)
	_, _ = o.Write(content) // writing to memory never fails
	return o
}

// FuzzSigned reads commits and tags with arbitrary content. Headgate must use exactly what the key signed: the same tree, parents
// and message, and the same commit of the same tag.
func FuzzSigned(f *testing.F) {
	private := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		f.Fatal(err)
	}
	signer, err := signature.NewSSHSigner(pem.EncodeToMemory(block), nil)
	if err != nil {
		f.Fatal(err)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		f.Fatal(err)
	}
	keys := Keys{string(ssh.MarshalAuthorizedKey(public))}
	sign := func(payload string) string {
		sig, err := signer.Sign(strings.NewReader(payload))
		if err != nil {
			f.Fatal(err)
		}
		return string(sig)
	}
	const id, parent = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	head, message := "tree "+id+"\nparent "+parent+"\nauthor "+who+"committer "+who, "\na message\n"
	sig := headerOf("gpgsig", sign(head+message))
	tag := "object " + id + "\ntype commit\ntag v1\ntagger " + who + "\na tag\n"
	for _, commit := range []string{
		head + sig + message, "tree " + id + "\n" + sig + strings.TrimPrefix(head, "tree "+id+"\n") + message,
		head + sig + sig + message, head + headerOf("gpgsig-sha256", "x") + sig + message, head + message,
		head + headerOf("mergetag", tag) + sig + message,
	} {
		f.Add([]byte(commit), false)
	}
	f.Add([]byte(tag+sign(tag)), true)
	f.Add([]byte(tag+sign(tag)+sign(tag)), true)
	f.Fuzz(func(t *testing.T, raw []byte, isTag bool) {
		if isTag {
			var read object.Tag
			if read.Decode(stored(plumbing.TagObject, raw)) != nil {
				return
			}
			if err := keys.Tag(&read); err == nil && (read.Target.String() != id || read.TargetType != plumbing.CommitObject || read.Name != "v1") {
				t.Errorf("a tag that nobody signed is verified: %q", raw)
			}
			return
		}
		var read object.Commit
		if read.Decode(stored(plumbing.CommitObject, raw)) != nil {
			return
		}
		if _, err := keys.Commit(&read); err == nil && (read.TreeHash.String() != id || len(read.ParentHashes) != 1 || read.ParentHashes[0].String() != parent || read.Message != "a message\n") {
			t.Errorf("a commit that nobody signed is verified: %q", raw)
		}
	})
}
