package git

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"headgate.dev/headgate/reconcile/git/remote"
)

// A Verification states which signatures a commit needs. The zero value requires none.
type Verification struct {
	Commit bool // require a signature of the commit
	Tag    bool // require a signature of the annotated tag that the ref names

	Keys Keys // one of these must have signed
	// More returns keys in addition to Keys. Headgate calls it before every verification, because they may change. It may be nil.
	More func(ctx context.Context) (Keys, error)
}

// An UnverifiedError refuses a commit without a required signature.
type UnverifiedError struct {
	at       string // the repository
	what     string // the commit or the tag
	why      error
	do       string
	revision string
}

func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("%s: %s is not verified: %v; %s", e.at, e.what, e.why, e.do)
}

func (e *UnverifiedError) Unwrap() error { return e.why }

// Unverified returns the ID of the refused commit.
func (e *UnverifiedError) Unverified() string { return e.revision }

// tagOf returns the full name of the tag in ref, or an error if ref does not name a tag.
func tagOf(ref string) (string, error) {
	tag := strings.TrimPrefix(ref, "refs/tags/")
	if tag == "" || strings.HasPrefix(tag, "refs/") || strings.ContainsAny(tag, "~^") || plumbing.IsHash(tag) {
		return "", fmt.Errorf("cannot verify %q: it names no tag, and a signed tag is required; name the tag", ref)
	}
	return "refs/tags/" + tag, nil
}

// check returns an error if a commit, or the tag that led to it, lacks a required signature. The tag is "" if the ref names none.
func (v Verification) check(ctx context.Context, at remote.Address, f found, tag string) error {
	if !v.Commit && !v.Tag {
		return nil
	}
	keys := v.Keys
	if v.More != nil {
		more, err := v.More(ctx)
		if err != nil {
			return err
		}
		keys = append(slices.Clip(keys), more...)
	}
	if v.Tag {
		read, err := f.tag()
		if err != nil { // the tag could not be read; its signature may be valid
			return fmt.Errorf("%s: cannot read tag %s: %w", at, strings.TrimPrefix(tag, "refs/tags/"), err)
		}
		if err := checkTag(keys, f, read, tag); err != nil {
			return unverified(at, f, "tag "+strings.TrimPrefix(tag, "refs/tags/"), err, "make a new tag with 'git tag -s' and a listed key")
		}
	}
	if v.Commit {
		if _, err := keys.Commit(f.commit); err != nil {
			return unverified(at, f, fmt.Sprintf("commit %.12s", f.commit.Hash), err, "push a commit that a listed key signed, or list the key")
		}
	}
	return nil
}

func unverified(at remote.Address, f found, what string, why error, do string) error {
	return &UnverifiedError{at: at.String(), what: what, why: why, do: do, revision: f.commit.Hash.String()}
}

// tag reads the annotated tag that the ref names. It returns nil if the ref names no tag object.
func (f found) tag() (plumbing.EncodedObject, error) {
	o, err := f.EncodedObject(plumbing.AnyObject, f.named)
	if err != nil || o.Type() != plumbing.TagObject {
		return nil, err
	}
	return o, nil
}

// checkTag checks the signature of a tag, and that the tag has this name and points to this commit. A user with push
// access can move another signed tag to this name.
func checkTag(k Keys, f found, read plumbing.EncodedObject, name string) error {
	if read == nil {
		return fmt.Errorf("it is a lightweight tag, which has no signature")
	}
	tag := &object.Tag{}
	switch err := tag.Decode(read); {
	case err != nil:
		return err
	case "refs/tags/"+tag.Name != name:
		return fmt.Errorf("it is the tag %.60q under another name", tag.Name)
	case tag.TargetType != plumbing.CommitObject || tag.Target != f.commit.Hash:
		return fmt.Errorf("it is the tag of a %s and not of a commit", tag.TargetType)
	}
	return k.Tag(tag)
}
