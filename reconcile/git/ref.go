package git

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"headgate.dev/headgate/reconcile/git/remote"
	"headgate.dev/headgate/render"
)

// errUnknownRef is wrapped if no ref has a name. The name may still be a commit ID.
var errUnknownRef = errors.New("no branch, tag or commit")

// fetchRest is the advice for a shallow clone that lacks commits.
const fetchRest = "fetch the rest (git fetch --unshallow; in a workflow, fetch-depth: 0)"

var abbreviated = regexp.MustCompile(`^[0-9a-fA-F]{4,40}$`)

// refs holds the names of objects in a repository.
type refs struct {
	head   plumbing.Hash // zero if the default branch has no commit
	main   string        // the default branch, if it is known
	names  map[string]plumbing.Hash
	peeled map[string]plumbing.Hash // targets of annotated tags, if they are known
}

// A revision is a ref and the steps back from it, in Git's notation: "main~2^2".
type revision struct {
	ref  string
	back []suffix
}

// A suffix of a revision selects an ancestor: ~n is the first parent n times, ^n is the nth parent.
type suffix struct {
	sign byte // ~ or ^
	n    int
}

// maxBack bounds the number of commits in one step.
const maxBack = 100_000

// parseRevision splits a revision into its parts. The name of a ref cannot contain ~ or ^.
func parseRevision(s string) (revision, error) {
	at := strings.IndexAny(s, "~^")
	switch {
	case isRange(s): // where these characters have another meaning
		return revision{ref: s}, nil
	case strings.Contains(s, "@{"):
		return revision{}, fmt.Errorf("cannot read %q: what a branch was before is in the reflog of one clone only; name a commit", s)
	case at < 0:
		return revision{ref: s}, nil
	case at == 0:
		return revision{}, fmt.Errorf("cannot read %q: name a branch, tag or commit before it, as in HEAD~1", s)
	}
	r := revision{ref: s[:at]}
	if r.ref == "@" {
		r.ref = "HEAD"
	}
	for rest := s[at:]; rest != ""; {
		sign := rest[0]
		end := 1
		for end < len(rest) && '0' <= rest[end] && rest[end] <= '9' {
			end++
		}
		n, err := strconv.Atoi(cmp.Or(rest[1:end], "1"))
		if sign != '~' && sign != '^' || err != nil || n > maxBack {
			return revision{}, fmt.Errorf("cannot read %q: after a branch, tag or commit there may be ~N and ^N only, as in main~2", s)
		}
		r.back = append(r.back, suffix{sign, n})
		rest = rest[end:]
	}
	return r, nil
}

// from goes back from a commit.
func (r revision) from(o *objects, c *object.Commit) (*object.Commit, error) {
	for _, s := range r.back {
		times, parent := s.n, 0
		if s.sign == '^' {
			times, parent = min(s.n, 1), s.n-1
		}
		for range times {
			if parent >= len(c.ParentHashes) {
				return nil, fmt.Errorf("cannot go back as far as %s: %.12s has %s", r, c.Hash, parents(len(c.ParentHashes)))
			}
			to := c.ParentHashes[parent]
			next, err := o.commit(to)
			if errors.Is(err, plumbing.ErrObjectNotFound) && !o.partial {
				return nil, fmt.Errorf("cannot go back as far as %s: %.12s is missing here; if the clone is shallow, %s", r, to, fetchRest)
			}
			if err != nil {
				return nil, err
			}
			c = next
		}
	}
	return c, nil
}

func parents(n int) string {
	switch n {
	case 0:
		return "no parent"
	case 1:
		return "one parent"
	}
	return fmt.Sprintf("%d parents", n)
}

func (r revision) String() string {
	var b strings.Builder
	b.WriteString(r.ref)
	for _, s := range r.back {
		fmt.Fprintf(&b, "%c%d", s.sign, s.n)
	}
	return b.String()
}

// allowed refuses invalid names before they become part of a path.
func allowed(ref string) error {
	if ref == "" || ref == "HEAD" {
		return nil
	}
	if isRange(ref) {
		_, err := rangeOf(ref)
		return err
	}
	name := plumbing.ReferenceName(ref)
	if !strings.HasPrefix(ref, "refs/") {
		name = plumbing.NewBranchReferenceName(ref)
	}
	if name.Validate() != nil || strings.HasPrefix(ref, "-") {
		return fmt.Errorf("cannot read %q: it is not a valid name of a branch, tag or commit", ref)
	}
	return nil
}

// find returns the object that a ref names.
func (r refs) find(ref string) (plumbing.Hash, error) {
	switch {
	case len(r.names) == 0 && r.head.IsZero():
		return plumbing.ZeroHash, remote.ErrEmpty
	case (ref == "" || ref == "HEAD") && r.head.IsZero():
		return plumbing.ZeroHash, fmt.Errorf("cannot read the default branch: it has no commits; name a branch or tag; %s", r.others(""))
	case ref == "" || ref == "HEAD":
		return r.head, nil
	case isRange(ref):
		name, err := r.inRange(ref)
		return r.names[name], err
	}
	branch, tag := "refs/heads/"+ref, "refs/tags/"+ref
	b, isBranch := r.names[branch]
	t, isTag := r.names[tag]
	if isBranch && isTag && b != t && b != r.peeled[tag] {
		return plumbing.ZeroHash, fmt.Errorf("%q is ambiguous: there is a branch and a tag of that name; write %s or %s", ref, branch, tag)
	}
	if name := r.full(ref); name != "" {
		return r.names[name], nil
	}
	if far := r.remote(ref); far != "" {
		return plumbing.ZeroHash, fmt.Errorf("%w %q; write %s, which this clone has", errUnknownRef, ref, far)
	}
	return plumbing.ZeroHash, fmt.Errorf("%w %q; %s", errUnknownRef, ref, r.others(ref))
}

// remote returns the name of a branch that only a remote of the clone has, such as "origin/main", or "".
func (r refs) remote(branch string) string {
	for _, name := range slices.Sorted(maps.Keys(r.names)) {
		far, ok := strings.CutPrefix(name, "refs/remotes/")
		if _, of, _ := strings.Cut(far, "/"); ok && of == branch {
			return far
		}
	}
	return ""
}

// branch returns the branch that a ref names, or "".
func (r refs) branch(ref string) string {
	if ref == "" || ref == "HEAD" {
		return r.main
	}
	name := strings.TrimPrefix(ref, "refs/heads/")
	if _, ok := r.names["refs/heads/"+name]; !ok {
		return ""
	}
	return name
}

// A line is what a ref follows, as in render.SourceID.
type line struct {
	ref, branch string
	tag         string // the full name of the tag that a range selects
}

// detached is the line of a commit that a user named by its ID.
var detached = line{ref: render.Detached}

// line returns what an existing ref follows. On disk, HEAD is what is checked out, and not a default.
func (r refs) line(ref string, onDisk bool) line {
	switch {
	case isRange(ref):
		tag, _ := r.inRange(ref) // find returns the error
		return line{ref: ref, tag: tag}
	case ref != "" && ref != "HEAD":
	case !onDisk:
		return line{ref: render.DefaultRef, branch: r.main}
	case r.main == "":
		return detached
	default:
		return line{ref: r.main, branch: r.main}
	}
	full := r.full(ref)
	if name, is := strings.CutPrefix(full, "refs/heads/"); is {
		return line{ref: name, branch: name}
	}
	if far, is := strings.CutPrefix(full, "refs/remotes/"); is {
		if _, name, is := strings.Cut(far, "/"); is {
			return line{ref: name, branch: name}
		}
	}
	if full == "" || strings.HasPrefix(full, "refs/tags/") {
		return detached
	}
	return line{ref: full}
}

// full returns the full name of the ref that a name stands for, or "".
func (r refs) full(ref string) string {
	for _, name := range []string{ref, "refs/heads/" + ref, "refs/tags/" + ref, "refs/" + ref, "refs/remotes/" + ref} {
		if _, ok := r.names[name]; ok {
			return name
		}
	}
	return ""
}

// objects returns the targets of the refs that keep accepts, sorted by name.
func (r refs) objects(keep func(name string, h plumbing.Hash) bool) []plumbing.Hash {
	var list []plumbing.Hash
	for _, name := range slices.Sorted(maps.Keys(r.names)) {
		if keep == nil || keep(name, r.names[name]) {
			list = append(list, r.names[name])
		}
	}
	return list
}

// others lists branches and tags, those similar to ref first.
func (r refs) others(ref string) string {
	var lists []string
	for _, kind := range []struct{ prefix, word string }{{"refs/heads/", "branches"}, {"refs/tags/", "tags"}} {
		var names []string
		for name := range r.names {
			if short, ok := strings.CutPrefix(name, kind.prefix); ok {
				names = append(names, short)
			}
		}
		if len(names) > 0 {
			lists = append(lists, kind.word+": "+nearest(ref, names))
		}
	}
	if len(lists) == 0 {
		return "it has neither branches nor tags"
	}
	return strings.Join(lists, "; ")
}

// shown matches the characters of names that a message may quote. A server chooses the names, which may hold markup or invisible
// characters. The pattern does not limit the length: {0,99} of Unicode classes takes 4 MB in every process.
var shown = regexp.MustCompile(`^[\pL\pN][\pL\pN._/@#+=-]*$`)

func showable(name string) bool {
	return utf8.RuneCountInString(name) <= 100 && shown.MatchString(name)
}

// nearest returns a list of at most eight names, those most similar to want first. It only counts names that are not showable.
func nearest(want string, names []string) string {
	const most = 8
	total := len(names)
	names = slices.DeleteFunc(names, func(name string) bool { return !showable(name) })
	slices.SortFunc(names, func(a, b string) int {
		if want == "" {
			return cmp.Compare(a, b)
		}
		return cmp.Or(cmp.Compare(levenshtein.Distance(want, a, nil), levenshtein.Distance(want, b, nil)), cmp.Compare(a, b))
	})
	text := strings.Join(names[:min(most, len(names))], ", ")
	switch more := total - min(most, len(names)); {
	case len(names) == 0:
		return fmt.Sprintf("%d", total)
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
