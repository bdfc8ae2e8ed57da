package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"headgate.dev/headgate/reconcile/git/remote"
)

// A history holds the commits that the tests of refs use.
type history struct {
	*fixture
	first, main, dev, merged, orphan plumbing.Hash
}

func newHistory(tb testing.TB) history {
	tb.Helper()
	h := history{fixture: newFixture(tb)}
	h.first = h.push("main", map[string]string{"a.yaml": "1", "clusters/prod/x.yaml": "x"})
	h.main = h.push("main", map[string]string{"a.yaml": "2", "clusters/prod/x.yaml": "x", "clusters/dev/y.yaml": "y"}, h.first)
	h.dev = h.push("dev", map[string]string{"a.yaml": "3", "clusters/prod/x.yaml": "x"}, h.first)
	h.merged = h.push("merged", map[string]string{"a.yaml": "4"}, h.main, h.dev)
	h.tag("v2", h.push("next", map[string]string{"a.yaml": "5"}, h.merged), plumbing.CommitObject)
	h.orphan = h.commit(h.files(map[string]string{"o": "o"}))
	h.ref("refs/pull/7/head", h.orphan)
	h.ref("refs/tags/light", h.first)
	h.tag("both", h.first, plumbing.CommitObject)
	h.ref("refs/heads/both", h.main)
	tag := h.tag("v1", h.first, plumbing.CommitObject)
	h.tag("v1-again", tag, plumbing.TagObject)
	h.tag("tree", h.files(map[string]string{"a": "a"}), plumbing.TreeObject)
	return h
}

// Every way to name a commit has the same result in a local and in a remote repository.
func TestFetchRef(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	cases := map[string]struct {
		reason string
		ref    string
		want   plumbing.Hash
		err    string
	}{
		"Default":        {reason: "An empty ref means the default branch.", ref: "", want: h.main},
		"Head":           {reason: "HEAD means the default branch.", ref: "HEAD", want: h.main},
		"Branch":         {reason: "A branch means its newest commit.", ref: "dev", want: h.dev},
		"FullBranch":     {reason: "A full ref name is unambiguous.", ref: "refs/heads/dev", want: h.dev},
		"Heads":          {reason: "Git also accepts heads/NAME.", ref: "heads/dev", want: h.dev},
		"LightTag":       {reason: "A lightweight tag refers to a commit.", ref: "light", want: h.first},
		"AnnotatedTag":   {reason: "An annotated tag is resolved to its commit.", ref: "v1", want: h.first},
		"TagOfTag":       {reason: "A tag of a tag is resolved to its commit, too.", ref: "v1-again", want: h.first},
		"PullRequest":    {reason: "Any ref can be named in full.", ref: "refs/pull/7/head", want: h.orphan},
		"ID":             {reason: "A commit can be named by its ID without any ref.", ref: h.first.String(), want: h.first},
		"Short":          {reason: "A commit can be named by the first digits of its ID.", ref: h.first.String()[:8], want: h.first},
		"ShortUpper":     {reason: "Upper and lower case do not matter in an ID.", ref: strings.ToUpper(h.dev.String()[:7]), want: h.dev},
		"FullTag":        {reason: "The full name of an ambiguous ref works.", ref: "refs/tags/both", want: h.first},
		"Ambiguous":      {reason: "A user who can push a tag must not be able to replace a branch.", ref: "both", err: "write refs/heads/both or refs/tags/both"},
		"Unknown":        {reason: "The error for a misspelt ref suggests the most similar branches first.", ref: "mian", err: `no branch, tag or commit "mian"; branches: main, `},
		"UnknownFull":    {reason: "A full name must exist as it is.", ref: "refs/heads/v1", err: "no branch, tag or commit"},
		"UnknownID":      {reason: "A full ID may not exist.", ref: strings.Repeat("ab", 20), err: ""},
		"UnknownShort":   {reason: "The first digits may match no commit.", ref: "abcdef0", err: "no branch, tag or commit"},
		"NoCommit":       {reason: "A tag may refer to a tree.", ref: "tree", err: "is a tree and no commit"},
		"Traversal":      {reason: "A full name must stay inside refs.", ref: "refs/heads/../../x", err: "not a valid name"},
		"ShortTraversal": {reason: "A short name must stay inside refs, too.", ref: "../x", err: "not a valid name"},
		"Option":         {reason: "A name must not be read as an option.", ref: "--upload-pack=touch /tmp/x", err: "not a valid name"},
		"Parent":         {reason: "Most comparisons use the parent.", ref: "main~1", want: h.first},
		"ParentShort":    {reason: "Git allows the suffix without a number.", ref: "dev^", want: h.first},
		"ParentOfTag":    {reason: "The parent of a tag is that of its commit.", ref: "v2~", want: h.merged},
		"SecondParent":   {reason: "The second parent of a merge is the merged branch.", ref: "merged^2", want: h.dev},
		"Chain":          {reason: "Several suffixes apply from left to right.", ref: "v2~1^2~1", want: h.first},
		"Zero":           {reason: "Zero steps lead to the commit itself.", ref: "main~0^0", want: h.main},
		"ParentOfHead":   {reason: "@ means the default branch.", ref: "@~1", want: h.first},
		"ParentOfID":     {reason: "An ID can have a suffix, too.", ref: h.main.String() + "^", want: h.first},
		"TooFar":         {reason: "A history has a first commit.", ref: "main~9", err: "cannot go back as far as main~9"},
		"NoThirdParent":  {reason: "A commit has few parents.", ref: "merged^3", err: "has 2 parents"},
		"FromNowhere":    {reason: "A suffix needs a name before it.", ref: "~1", err: "as in HEAD~1"},
		"Reflog":         {reason: "A reflog belongs to one clone, so another machine would find another commit.", ref: "main@{1}", err: "reflog"},
		"Message":        {reason: "The error names the supported suffixes.", ref: "main^{/fix}", err: "~N and ^N only"},
		"HugeStep":       {reason: "A number that is too large is refused.", ref: "main~99999999999999999999", err: "~N and ^N only"},
		"UnknownParent":  {reason: "The name before a suffix may be misspelt.", ref: "mian~1", err: `no branch, tag or commit "mian"; branches: main, `},
		"Newline":        {reason: "A newline in a name could add a line to a file.", ref: "a\nb", err: "not a valid name"},
	}
	for name, tc := range cases {
		for kind, r := range map[string]*Repository{
			"Local":   {URL: h.dir},
			"FileURL": {URL: "file://" + h.dir},
			"Remote":  {URL: s.url(), Cache: t.TempDir()},
			"Slash":   {URL: s.url() + "/", Cache: t.TempDir()},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				in, err := r.Fetch(t.Context(), tc.ref)
				if tc.want.IsZero() {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("%s\nFetch(%q): want error %q, got %v", tc.reason, tc.ref, tc.err, err)
					}
					return
				}
				if err != nil {
					t.Fatalf("%s\nFetch(%q): %v", tc.reason, tc.ref, err)
				}
				if diff := cmp.Diff(tc.want.String(), in.Revision); diff != "" {
					t.Errorf("%s\nFetch(%q).Revision (-want +got):\n%s", tc.reason, tc.ref, diff)
				}
			})
		}
	}
}

func TestFetchPath(t *testing.T) {
	h := newHistory(t)
	links := h.commit(h.tree(
		item{"120000", "link", h.blob("/etc")},
		item{"160000", "module", h.first},
	))
	h.ref("refs/heads/links", links)
	cases := map[string]struct {
		reason string
		ref    string
		path   string
		want   string
		err    string
	}{
		"Root":       {reason: "An empty path means the root.", path: "", want: "."},
		"Dot":        {reason: "A dot means the root.", path: "./", want: "."},
		"Below":      {reason: "A path names a directory.", path: "clusters/prod/", want: "clusters/prod"},
		"DotBelow":   {reason: "Users often begin a path with a dot.", path: "./clusters/prod", want: "clusters/prod"},
		"Typo":       {reason: "The error for a wrong path lists the existing names, the most similar first.", path: "clusters/prdo", err: `has: prod, dev`},
		"TypoAbove":  {reason: "The error describes the deepest existing directory.", path: "cluster/prod", err: "the root has: clusters"},
		"BelowFile":  {reason: "A file has no entries.", path: "a.yaml/x", err: "the root has: clusters"},
		"File":       {reason: "A path must not name a file.", path: "a.yaml", err: "is a file"},
		"Commit":     {reason: "The error names the commit, too.", path: "x", err: h.main.String()[:7]},
		"Up":         {reason: "A path must not lead out of the repository.", path: "../x", err: "not inside"},
		"UpAndDown":  {reason: "A path must not lead out of the repository in the middle either.", path: "clusters/../../x", err: "not inside"},
		"Absolute":   {reason: "A path must be relative.", path: "/etc", err: "not inside"},
		"Backslash":  {reason: "A backslash is a path separator on other systems.", path: `..\x`, err: "not inside"},
		"NUL":        {reason: "A path cannot contain NUL.", path: "a\x00", err: "not inside"},
		"Link":       {reason: "Links are not followed.", ref: "links", path: "link", err: "symbolic link"},
		"BelowLink":  {reason: "Links in the middle of a path are not followed.", ref: "links", path: "link/passwd", err: "no directory"},
		"Submodule":  {reason: "Submodules are not read.", ref: "links", path: "module", err: "submodule"},
		"GitInRoot":  {reason: "Git never stores an entry named .git.", path: ".git", err: "no directory"},
		"NestedMiss": {reason: "Any part of a path may be missing.", path: "clusters/x/y/z", err: `"clusters" has: dev, prod`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, err := (&Repository{URL: h.dir, Path: tc.path}).Fetch(t.Context(), tc.ref)
			if tc.want == "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, in.Path); diff != "" {
				t.Errorf("%s\nPath (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The requests of a second fetch depend on what changed at the server.
func TestFetchAgain(t *testing.T) {
	type want struct {
		Revision plumbing.Hash
		Requests []string
		Objects  int // number of objects in the last pack
	}
	cases := map[string]struct {
		reason string
		change func(h history, s *server) want
		ref    string
		err    string
	}{
		"Unchanged": {
			reason: "If nothing is new, one small request is enough.",
			change: func(h history, _ *server) want { return want{h.main, []string{"list"}, 0} },
		},
		"Pushed": {
			reason: "The server sends only the new objects: a commit, a tree and a blob.",
			change: func(h history, _ *server) want {
				return want{h.push("main", map[string]string{"a.yaml": "new"}, h.main), []string{"list", "pack"}, 3}
			},
		},
		"Forced": {
			reason: "A forced push may replace commits; the server does not send the common ones again.",
			change: func(h history, _ *server) want {
				return want{h.push("main", map[string]string{"a.yaml": "forced"}, h.first), []string{"list", "pack"}, 3}
			},
		},
		"Rewound": {
			reason: "A branch may return to a commit that is in the cache.",
			change: func(h history, _ *server) want {
				h.ref("refs/heads/main", h.first)
				return want{h.first, []string{"list"}, 0}
			},
		},
		"Deleted": {
			reason: "Fetching a deleted branch is an error, even if the cache has its last commit.",
			ref:    "dev",
			change: func(h history, _ *server) want {
				h.must(h.store.RemoveReference("refs/heads/dev"))
				return want{Requests: []string{"list"}}
			},
			err: `no branch, tag or commit "dev"`,
		},
		"Renamed": {
			reason: "A branch may be replaced by branches below its name.",
			ref:    "dev/new",
			change: func(h history, _ *server) want {
				h.must(h.store.RemoveReference("refs/heads/dev"))
				return want{h.push("dev/new", map[string]string{"a.yaml": "n"}, h.dev), []string{"list", "pack"}, 3}
			},
		},
		"MovedTag": {
			reason: "A tag may move.",
			ref:    "v1",
			change: func(h history, _ *server) want {
				h.tag("v1", h.dev, plumbing.CommitObject)
				return want{h.dev, []string{"list", "pack"}, 1}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			s := serve(h.fixture)
			r := &Repository{URL: s.url(), Cache: t.TempDir()}
			for _, ref := range []string{"main", "dev", "v1"} {
				if _, err := r.Fetch(t.Context(), ref); err != nil {
					t.Fatal(err)
				}
			}
			s.requests()
			s.sent = nil
			expect := tc.change(h, s)
			if tc.ref == "" {
				tc.ref = "main"
			}
			in, err := r.Fetch(t.Context(), tc.ref)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
			}
			got := want{plumbing.NewHash(in.Revision), s.requests(), 0}
			if len(s.sent) > 0 {
				got.Objects = s.sent[len(s.sent)-1]
			}
			if diff := cmp.Diff(expect, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// A cached commit needs no download, once the server has accepted the credentials.
func TestFetchCommitAgain(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	s.token = "t"
	r := &Repository{URL: s.url(), Cache: t.TempDir(), Auth: Auth{Password: "t"}}
	for range 2 {
		if _, err := r.Fetch(t.Context(), h.first.String()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"list", "pack"}, s.requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	other := &Repository{URL: s.url(), Cache: r.Cache, Auth: Auth{Password: "wrong"}}
	if _, err := other.Fetch(t.Context(), h.first.String()); err == nil {
		t.Error("a user without the right to read the repository read it from the cache")
	}
}

// Servers differ in which commits they send by ID.
func TestFetchByID(t *testing.T) {
	h := newHistory(t)
	hidden := h.commit(h.files(map[string]string{"h": "h"}))
	cases := map[string]struct {
		reason string
		byID   bool
		ref    string
		want   plumbing.Hash
		packs  int
	}{
		"Reachable": {reason: "If the server does not support it, all branches and tags are fetched.", ref: h.first.String(), want: h.first, packs: 1},
		"Asked":     {reason: "If the server supports it, only the requested commit is fetched.", byID: true, ref: hidden.String(), want: hidden, packs: 1},
		"Refused":   {reason: "If the server refuses the ID, the branches are fetched.", byID: true, ref: strings.Repeat("ab", 20), packs: 2},
		"Tip":       {reason: "An object with a ref can be fetched from every server.", ref: h.orphan.String()[:9], want: h.orphan, packs: 1},
		"Hidden":    {reason: "An unreachable object is not found.", ref: hidden.String(), packs: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(h.fixture)
			s.byID = tc.byID
			r := &Repository{URL: s.url(), Cache: t.TempDir()}
			got, err := r.Resolve(t.Context(), tc.ref)
			if tc.want.IsZero() != (err != nil) {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if err == nil && got != tc.want.String() {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
			if n := len(s.requests()) - 1; n != tc.packs {
				t.Errorf("%s\nwant %d packs, got %d", tc.reason, tc.packs, n)
			}
		})
	}
}

func TestMergeBase(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	cases := map[string]struct {
		reason string
		a, b   string
		want   plumbing.Hash
		err    string
	}{
		"Parted":    {reason: "Two branches have a common ancestor.", a: "main", b: "dev", want: h.first},
		"Ancestor":  {reason: "The base of a commit and its ancestor is the ancestor.", a: "main", b: "v1", want: h.first},
		"Same":      {reason: "A commit is its own base.", a: "main", b: h.main.String(), want: h.main},
		"Merged":    {reason: "The base of a merge and the merged branch is the branch.", a: h.merged.String(), b: "dev", want: h.dev},
		"Unrelated": {reason: "The histories may have nothing in common.", a: "main", b: "refs/pull/7/head", err: "no common history"},
		"Missing":   {reason: "Either commit may be missing.", a: "main", b: "nope", err: `"nope"`},
	}
	for name, tc := range cases {
		for kind, r := range map[string]*Repository{"Local": {URL: h.dir}, "Remote": {URL: s.url(), Cache: t.TempDir()}} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				got, err := r.MergeBase(t.Context(), tc.a, tc.b)
				if tc.want.IsZero() {
					if err == nil || !strings.Contains(err.Error(), tc.err) {
						t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
					}
					return
				}
				if err != nil || got != tc.want.String() {
					t.Errorf("%s\nwant %s, got %s, %v", tc.reason, tc.want, got, err)
				}
			})
		}
	}
}

// A push to a branch affects every sync that follows the branch, whichever name the sync uses.
func TestBranch(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	for kind, r := range map[string]*Repository{"Local": {URL: h.dir}, "Remote": {URL: s.url(), Cache: t.TempDir()}} {
		for ref, want := range map[string]string{
			"": "main", "HEAD": "main", "main": "main", "refs/heads/dev": "dev", "main~1": "main",
			"v1": "", "refs/tags/v1": "", "refs/pull/7/head": "", h.main.String(): "", "nope": "",
		} {
			if got, err := r.Branch(t.Context(), ref); err != nil || got != want {
				t.Errorf("%s: Branch(%q) is %q, %v, want %q", kind, ref, got, err, want)
			}
		}
		if _, err := r.Branch(t.Context(), "-main"); err == nil {
			t.Errorf("%s: no error for a missing ref", kind)
		}
	}
}

// A forgotten commit can be fetched again; a commit of the user's own repository stays.
func TestForget(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	cache := t.TempDir()
	r := &Repository{URL: s.url(), Cache: cache}
	kept := func() int {
		refs, err := filepath.Glob(filepath.Join(cache, "*", "refs", "headgate", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(refs)
	}
	if _, err := r.Fetch(t.Context(), h.dev.String()); err != nil || kept() != 1 {
		t.Fatalf("%d kept, %v", kept(), err)
	}
	for range 2 {
		if err := r.Forget(t.Context(), h.dev.String()); err != nil || kept() != 0 {
			t.Errorf("%d kept, %v", kept(), err)
		}
	}
	if in, err := r.Fetch(t.Context(), h.dev.String()); err != nil || in.Revision != h.dev.String() {
		t.Errorf("again: %v, %v", in, err)
	}
	mine := &Repository{URL: h.dir}
	if err := mine.Forget(t.Context(), h.dev.String()); err != nil {
		t.Error(err)
	}
	if _, err := mine.Resolve(t.Context(), "dev"); err != nil {
		t.Errorf("a local branch: %v", err)
	}
}

// All errors name the repository, none contains credentials, and most give advice.
func TestFetchErrors(t *testing.T) {
	const canary = "c4n4ry-t0k3n"
	h := newHistory(t)
	elsewhere := serve(h.fixture)
	cases := map[string]struct {
		reason string
		url    func(s *server) string
		auth   Auth
		limits Limits
		set    func(s *server)
		want   string
	}{
		"NoToken":       {reason: "A private repository needs a token.", set: func(s *server) { s.token = "x" }, want: "set a token"},
		"WrongToken":    {reason: "A token may be wrong, and the server may quote it.", auth: Auth{Password: canary}, set: func(s *server) { s.token = "x" }, want: "refused the credentials"},
		"TokenInURL":    {reason: "A token may be part of the URL.", url: withUser(canary), set: func(s *server) { s.token = "x" }, want: "refused the credentials"},
		"Forbidden":     {reason: "A token may lack permissions.", auth: Auth{Password: canary}, set: answer(403, "no"), want: "allow the token to read"},
		"NotFound":      {reason: "A repository may not exist.", url: func(s *server) string { return s.URL + "/other" }, want: "no such repository"},
		"Broken":        {reason: "A server may fail.", set: answer(500, ""), want: "500"},
		"Echo":          {reason: "A server may repeat the credentials.", auth: Auth{Username: "me", Password: canary}, set: answer(500, canary+" bWU6YzRuNHJ5LXQwazNu"), want: "500"},
		"Page":          {reason: "The URL may lead to a login page.", set: page, want: "check that this is the URL of a repository"},
		"Redirect":      {reason: "Credentials are not sent to another host.", auth: Auth{Password: canary}, set: redirect(elsewhere, canary), want: "use that URL if you trust it"},
		"Unreachable":   {reason: "A server may be down.", auth: Auth{Password: canary}, set: func(s *server) { s.Close() }, want: "connection refused"},
		"TooMuch":       {reason: "The amount of received data is limited.", limits: Limits{Bytes: 900}, want: "more than 900 bytes"},
		"TooLarge":      {reason: "The size of an object is limited before it is read.", limits: Limits{Object: 4}, want: "the limit is 4"},
		"Slow":          {reason: "The duration is limited.", limits: Limits{Time: 50 * time.Millisecond}, set: slow, want: "takes too long"},
		"PlainHTTP":     {reason: "Credentials are not sent unencrypted.", url: is("http://git.example/x.git"), auth: Auth{Password: canary}, want: "plain http"},
		"PlainHTTPUser": {reason: "Credentials in the URL are not sent unencrypted.", url: is("http://u:" + canary + "@git.example/x.git"), want: "plain http"},
		"Ext":           {reason: "A URL must not start a program.", url: is("ext::sh -c touch% /tmp/x"), want: "remote helpers"},
		"Option":        {reason: "A URL must not be read as an option.", url: is("--upload-pack=touch /tmp/x"), want: "option"},
		"SSH":           {reason: "An ssh server gets no password.", url: is("ssh://git:" + canary + "@git.example/x.git"), want: "holds a password"},
		"SCP":           {reason: "The short form of ssh looks like a path.", url: is("git:" + canary + "@git.example:x.git"), want: "write ssh://USER@HOST/PATH"},
		"Git":           {reason: "The git protocol has no encryption.", url: is("git://git.example/x.git"), want: "git is not supported"},
		"BadPort":       {reason: "url.Parse quotes an invalid port, which may be a password.", url: is("https://u:p/" + canary + "@git.example/x.git"), want: "valid URL"},
		"BadEscape":     {reason: "url.Parse quotes an invalid escape, which may be part of a password.", url: is("https://u:%zz" + canary + "@git.example/x.git"), want: "valid URL"},
		"Query":         {reason: "A query may contain a token.", url: is("https://git.example/x.git?token=" + canary), want: "query"},
		"Empty":         {reason: "An empty URL is refused.", url: is(""), want: "empty"},
		"NoRepository":  {reason: "A URL without a path names no repository.", url: is("https://" + canary + "@git.example/"), want: "no repository"},
		"FileHost":      {reason: "A file URL must not name another machine.", url: is("file://" + canary + "@host/x"), want: "names no host"},
		"Control":       {reason: "A URL must not add a header.", url: is("https://git.example/x\r\ny"), want: "control character"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(h.fixture)
			if tc.set != nil {
				tc.set(s)
			}
			u := s.url()
			if tc.url != nil {
				u = tc.url(s)
			}
			r := &Repository{URL: u, Cache: t.TempDir(), Auth: tc.auth, Limits: tc.limits}
			_, err := r.Fetch(t.Context(), "main")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s\nwant error %q, got %v", tc.reason, tc.want, err)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(e.Error(), canary) || strings.Contains(e.Error(), "bWU6YzRuNHJ5") {
					t.Errorf("%s\nthe error has the token: %v", tc.reason, e)
				}
			}
			if text := fmt.Sprintf("%v %+v %#v %s", r.Auth, r.Auth, r.Auth, &r.Auth); strings.Contains(text, canary) {
				t.Errorf("the credentials print: %s", text)
			}
		})
	}
}

func is(u string) func(*server) string { return func(*server) string { return u } }

func withUser(user string) func(*server) string {
	return func(s *server) string { return strings.Replace(s.url(), "http://", "http://"+user+"@", 1) }
}

func answer(code int, text string) func(*server) {
	return func(s *server) {
		s.before = func(w http.ResponseWriter, _ *http.Request) bool { http.Error(w, text, code); return true }
	}
}

func page(s *server) {
	s.before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>"))
		return true
	}
}

func redirect(to *server, canary string) func(*server) {
	to.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if _, password, _ := r.BasicAuth(); password == canary {
			to.fixture.Error("the credentials went to another host")
		}
		return false
	}
	return func(s *server) {
		s.before = func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, to.URL+r.URL.RequestURI(), http.StatusFound)
			return true
		}
	}
}

func slow(s *server) {
	s.before = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
}

func TestFetchRedirected(t *testing.T) {
	h := newHistory(t)
	to, from := serve(h.fixture), serve(h.fixture)
	redirect(to, "x")(from)
	in, err := (&Repository{URL: from.url(), Cache: t.TempDir()}).Fetch(t.Context(), "main")
	if err != nil || in.Revision != h.main.String() {
		t.Errorf("without credentials a moved repository is found: got %q, %v", in.Revision, err)
	}
}

func TestFetchStops(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	slow(s)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err := (&Repository{URL: s.url(), Cache: t.TempDir()}).Fetch(ctx, "main")
	if diff := cmp.Diff(context.Canceled, err, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("Fetch (-want +got):\n%s", diff)
	}
}

func TestFetchToken(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	s.user, s.token = "x-access-token", "t0ken"
	cases := map[string]struct {
		reason string
		url    string
		auth   Auth
	}{
		"Token":  {reason: "A token needs no user name.", url: s.url(), auth: Auth{Password: "t0ken"}},
		"URL":    {reason: "Credentials may be part of the URL.", url: strings.Replace(s.url(), "//", "//x-access-token:t0ken@", 1)},
		"Beaten": {reason: "Explicit credentials take precedence over the URL.", url: strings.Replace(s.url(), "//", "//a:b@", 1), auth: Auth{Password: "t0ken"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := (&Repository{URL: tc.url, Auth: tc.auth, Cache: t.TempDir()}).Fetch(t.Context(), "main"); err != nil {
				t.Errorf("%s\n%v", tc.reason, err)
			}
		})
	}
}

// After a rotation, the next request uses the new token, and the old one is no longer in memory.
func TestFetchCredentials(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	s.user, s.token = "robot", "first"
	auth, failed := Auth{Username: "robot", Password: "first"}, error(nil)
	r := &Repository{
		URL: s.url(), Cache: t.TempDir(), Auth: Auth{Password: "beaten"},
		Credentials: func(context.Context) (Auth, error) { return auth, failed },
	}
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	s.token = "second"
	if _, err := r.Fetch(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "refused the credentials") {
		t.Errorf("The old token is not good any more: %v", err)
	}
	auth.Password = "second"
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Errorf("The new one is: %v", err)
	}
	failed = errors.New("no such Secret")
	if _, err := r.Fetch(t.Context(), "main"); !errors.Is(err, failed) {
		t.Errorf("Without any there is no request: %v", err)
	}
}

func TestFetchEmpty(t *testing.T) {
	f := newFixture(t)
	for kind, u := range map[string]string{"Local": f.dir, "Remote": serve(f).url()} {
		t.Run(kind, func(t *testing.T) {
			_, err := (&Repository{URL: u, Cache: t.TempDir()}).Fetch(t.Context(), "")
			if diff := cmp.Diff(remote.ErrEmpty, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("Fetch (-want +got):\n%s", diff)
			}
		})
	}
	f.push("dev", map[string]string{"a": "a"})
	for kind, u := range map[string]string{"LocalUnborn": f.dir, "RemoteUnborn": serve(f).url()} {
		t.Run(kind, func(t *testing.T) {
			_, err := (&Repository{URL: u, Cache: t.TempDir()}).Fetch(t.Context(), "")
			if err == nil || !strings.Contains(err.Error(), "branches: dev") {
				t.Errorf("a default branch without commits names the others: got %v", err)
			}
		})
	}
}

// A repository with a worktree, and a linked worktree, store their objects elsewhere.
func TestFetchLocal(t *testing.T) {
	root := t.TempDir()
	work, linked, borrower := filepath.Join(root, "work"), filepath.Join(root, "linked"), filepath.Join(root, "borrower")
	f := fixtureAt(t, filepath.Join(work, ".git"))
	first := f.push("main", map[string]string{"a": "1"})
	dev := f.push("dev", map[string]string{"a": "2"}, first)
	private := filepath.Join(work, ".git", "worktrees", "linked")
	f.must(errors.Join(
		os.MkdirAll(private, 0o700), os.MkdirAll(linked, 0o700),
		os.WriteFile(filepath.Join(linked, ".git"), []byte("gitdir: "+private+"\n"), 0o600),
		os.WriteFile(filepath.Join(private, "commondir"), []byte("../..\n"), 0o600),
		os.WriteFile(filepath.Join(private, "HEAD"), []byte("ref: refs/heads/dev\n"), 0o600),
	))
	b := fixtureAt(t, borrower)
	b.ref("refs/heads/main", first)
	b.must(os.WriteFile(filepath.Join(borrower, "objects", "info", "alternates"), []byte(filepath.Join(work, ".git", "objects")+"\n"), 0o600))
	sha256, broken := fixtureAt(t, filepath.Join(root, "sha256")), fixtureAt(t, filepath.Join(root, "partial"))
	sha256.must(os.WriteFile(filepath.Join(sha256.dir, "config"), []byte("[extensions]\n\tobjectformat = sha256\n"), 0o600))
	broken.ref("refs/heads/main", first)
	partial := fixtureAt(t, filepath.Join(root, "filtered"))
	partial.must(os.WriteFile(filepath.Join(partial.dir, "config"), []byte("[remote \"origin\"]\n\tpromisor = true\n\tpartialclonefilter = blob:none\n"), 0o600))
	partial.ref("refs/heads/main", first)
	cases := map[string]struct {
		reason string
		url    string
		want   plumbing.Hash
		err    string
	}{
		"Worktree": {reason: "A worktree contains .git.", url: work, want: first},
		"Git":      {reason: "The URL may name .git itself.", url: filepath.Join(work, ".git"), want: first},
		"Linked":   {reason: "A linked worktree has its own HEAD.", url: linked, want: dev},
		"Borrowed": {reason: "A clone may use the objects of another repository.", url: borrower, want: first},
		"Missing":  {reason: "A path may not exist.", url: filepath.Join(root, "nope"), err: "no such directory"},
		"Plain":    {reason: "A directory may not be a repository.", url: root, err: "not a Git repository"},
		"Inside":   {reason: "The error for a directory in a worktree names its repository.", url: filepath.Join(work, "sub"), err: "but " + work + " is"},
		"SHA256":   {reason: "An unsupported format must not be misread.", url: sha256.dir, err: "SHA-256"},
		"Lost":     {reason: "An object may be missing.", url: broken.dir, err: "git fetch it"},
		"Partial":  {reason: "A partial clone lacks objects on purpose.", url: partial.dir, err: "this is a partial clone"},
	}
	f.must(os.MkdirAll(filepath.Join(work, "sub"), 0o700))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := (&Repository{URL: tc.url}).Resolve(t.Context(), "")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s\nwant error %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil || got != tc.want.String() {
				t.Errorf("%s\nwant %s, got %s, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

// A reader is not disturbed if a local repository is repacked or gains commits.
func TestFetchLocalChanges(t *testing.T) {
	f := newFixture(t)
	files := texts(20)
	first := f.push("main", files)
	r := &Repository{URL: f.dir}
	in, err := r.Fetch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	f.repack(false)
	if diff := cmp.Diff(files, everything(t, in.Files)); diff != "" {
		t.Errorf("after repacking (-want +got):\n%s", diff)
	}
	packs, _ := filepath.Glob(filepath.Join(f.dir, "objects", "pack", "*"))
	second := f.push("main", with(files, "b", "b"), first)
	f.store = fixtureAt(t, f.dir).store
	f.repack(true)
	for _, p := range packs {
		f.must(os.Remove(p))
	}
	if diff := cmp.Diff(files, everything(t, in.Files)); diff != "" {
		t.Errorf("after the pack was deleted (-want +got):\n%s", diff)
	}
	in, err = r.Fetch(t.Context(), "main")
	if err != nil || in.Revision != second.String() {
		t.Errorf("want the new commit %s, got %s, %v", second, in.Revision, err)
	}
}

func everything(tb testing.TB, files fs.FS) map[string]string {
	tb.Helper()
	got := map[string]string{}
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, path)
		got[path] = string(data)
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// However a cache is damaged, Headgate discards it and fetches the repository again.
func TestCacheDamage(t *testing.T) {
	f := newFixture(t)
	files := texts(40)
	main := f.push("main", files)
	f.repack(false)
	cases := map[string]struct {
		reason string
		damage func(name string, data []byte) []byte
		asks   []string
	}{
		"CutPack":   {reason: "A full disk may truncate a pack.", damage: on(".pack", func(d []byte) []byte { return d[:len(d)/2] }), asks: []string{"list", "pack"}},
		"EmptyPack": {reason: "A pack may be empty.", damage: on(".pack", func([]byte) []byte { return []byte{} }), asks: []string{"list", "pack"}},
		"CutIndex":  {reason: "An index may be truncated.", damage: on(".idx", func(d []byte) []byte { return d[:len(d)/2] }), asks: []string{"list", "pack"}},
		"NoIndex":   {reason: "An index may be missing.", damage: on(".idx", func([]byte) []byte { return nil }), asks: []string{"list", "pack"}},
		"BadIndex":  {reason: "A bit of an index may flip.", damage: on(".idx", func(d []byte) []byte { d[1500] ^= 1; return d }), asks: []string{"list", "pack"}},
		"ZeroPack":  {reason: "Blocks of a pack may be lost.", damage: on(".pack", func(d []byte) []byte { clear(d[12 : len(d)-20]); return d }), asks: []string{"list", "list", "pack"}},
		"NoRefs":    {reason: "The cached refs may be damaged, and are not needed.", damage: on(main.String(), func([]byte) []byte { return []byte("rubbish") }), asks: []string{"list"}},
		"LeftOver":  {reason: "A killed process may leave files.", damage: on(".pack", func(d []byte) []byte { return d }), asks: []string{"list"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(f)
			cache := t.TempDir()
			if _, err := (&Repository{URL: s.url(), Cache: cache}).Fetch(t.Context(), "main"); err != nil {
				t.Fatal(err)
			}
			s.requests()
			err := filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				if err := os.Chmod(path, 0o600); err != nil {
					return err
				}
				if data = tc.damage(path, data); data == nil {
					return os.Remove(path)
				}
				return os.WriteFile(path, data, 0o600)
			})
			if err != nil {
				t.Fatal(err)
			}
			in, err := (&Repository{URL: s.url(), Cache: cache}).Fetch(t.Context(), "main")
			if err != nil || in.Revision != main.String() {
				t.Fatalf("%s\nwant %s, got %s, %v", tc.reason, main, in.Revision, err)
			}
			if diff := cmp.Diff(files, everything(t, in.Files)); diff != "" {
				t.Errorf("%s\nfiles (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.asks, s.requests()); diff != "" {
				t.Errorf("%s\nrequests (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func on(suffix string, change func([]byte) []byte) func(string, []byte) []byte {
	return func(name string, data []byte) []byte {
		if strings.HasSuffix(name, suffix) {
			return change(slices.Clone(data))
		}
		return data
	}
}

// If a blob turns out to be damaged while it is read, the next fetch repairs it.
func TestCacheDamageLater(t *testing.T) {
	f := newFixture(t)
	files := texts(40)
	f.push("main", files)
	s := serve(f)
	r := &Repository{URL: s.url(), Cache: t.TempDir()}
	in, err := r.Fetch(t.Context(), "main")
	if err != nil {
		t.Fatal(err)
	}
	packs, _ := filepath.Glob(filepath.Join(r.Cache, "*", "objects", "pack", "*.pack"))
	data, err := os.ReadFile(packs[0])
	f.must(err)
	clear(data[12 : len(data)-20])
	f.must(os.Chmod(packs[0], 0o600))
	f.must(os.WriteFile(packs[0], data, 0o600)) // keeps the inode, so the open file changes
	_, err = fs.ReadFile(in.Files, "crds/001.yaml")
	if diff := cmp.Diff(errDamaged, err, cmpopts.EquateErrors()); diff != "" {
		t.Fatalf("ReadFile (-want +got):\n%s", diff)
	}
	if in, err = r.Fetch(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, everything(t, in.Files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Headgate checks a server's objects before it adds them to the cache.
func TestReceiveDamage(t *testing.T) {
	f := newFixture(t)
	f.push("main", texts(20))
	cases := map[string]struct {
		reason string
		mangle func([]byte) []byte
	}{
		"Cut":     {reason: "The connection may break.", mangle: func(p []byte) []byte { return p[:len(p)/2] }},
		"Flipped": {reason: "A bit may flip.", mangle: func(p []byte) []byte { p[len(p)/2] ^= 4; return p }},
		"Nothing": {reason: "The response may be empty.", mangle: func([]byte) []byte { return nil }},
		"Text":    {reason: "The response may not be a pack.", mangle: func([]byte) []byte { return []byte(strings.Repeat("no pack ", 20)) }},
		"Promised": {reason: "A pack may claim a billion objects.", mangle: func(p []byte) []byte {
			return signed(append([]byte("PACK\x00\x00\x00\x02\x3f\xff\xff\xff"), p[12:]...))
		}},
		"Bomb": {reason: "An object may claim a terabyte.", mangle: func([]byte) []byte {
			return signed([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\xbf\xff\xff\xff\xff\x3f\x78\x9c12345678901234567890"))
		}},
		"Thin": {reason: "The base of a delta may be missing.", mangle: func([]byte) []byte {
			return signed(append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x7412345678901234567890"), zipped("\x01\x01\x01x")...))
		}},
		"Cycle": {reason: "A delta may be its own base.", mangle: func([]byte) []byte {
			return signed(append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x64\x00"), zipped("\x01\x01\x01x")...))
		}},
		"Other": {reason: "A valid pack may lack the requested commit.", mangle: func([]byte) []byte {
			return signed(append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x33"), zipped("abc")...))
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(f)
			s.mangle = tc.mangle
			r := &Repository{URL: s.url(), Cache: t.TempDir()}
			_, err := r.Fetch(t.Context(), "main")
			if err == nil {
				t.Fatalf("%s\nwant an error", tc.reason)
			}
			if !strings.Contains(err.Error(), "cannot fetch") {
				t.Errorf("%s\nwant an error of the fetch, got %v", tc.reason, err)
			}
			left, _ := filepath.Glob(filepath.Join(r.Cache, "*", "objects", "pack", "tmp_*"))
			if len(left) > 0 {
				t.Errorf("%s\nleft behind: %v", tc.reason, left)
			}
			s.mangle = nil
			if _, err := r.Fetch(t.Context(), "main"); err != nil {
				t.Errorf("%s\nthe next fetch: %v", tc.reason, err)
			}
		})
	}
}

// Many processes share a cache. This test uses several Repositories in one process, whose locks exclude each other in the same way.
func TestConcurrent(t *testing.T) {
	f := newFixture(t)
	files := texts(60)
	tips := []plumbing.Hash{f.push("main", files)}
	for i := range 4 {
		tips = append(tips, f.push(fmt.Sprint("b", i), with(files, "n", fmt.Sprint(i)), tips[0]))
	}
	s := serve(f)
	cache := t.TempDir()
	var all sync.WaitGroup
	for i := range 6 {
		r := &Repository{URL: s.url(), Cache: cache}
		for j := range 2 {
			all.Go(func() {
				in, err := r.Fetch(t.Context(), tips[(i+j)%len(tips)].String())
				if err != nil {
					t.Error(err)
					return
				}
				var readers sync.WaitGroup
				for range 3 {
					readers.Go(func() {
						for path, want := range files {
							if got, err := fs.ReadFile(in.Files, path); err != nil || string(got) != want {
								t.Errorf("%s: %v", path, err)
							}
						}
					})
				}
				readers.Wait()
			})
		}
	}
	all.Wait()
}

func TestTemporaryCache(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	h := newHistory(t)
	r := &Repository{URL: serve(h.fixture).url()}
	for range 2 { // a Repository can be used again after Close
		in, err := r.Fetch(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(in.Files, "a.yaml", "clusters/dev/y.yaml", "clusters/prod/x.yaml"); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(os.Getenv("TMPDIR"))
		if len(left) > 0 || err != nil {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// Unless configured otherwise, a CI workflow checks out one commit of one branch. The error names the setting.
func TestCheckoutOfAWorkflow(t *testing.T) {
	f := fixtureAt(t, filepath.Join(t.TempDir(), "clone"))
	head := f.push("change", map[string]string{"a": "1"})
	f.must(os.WriteFile(filepath.Join(f.dir, "shallow"), []byte(head.String()+"\n"), 0o600))
	missing := "0123456789012345678901234567890123456789"
	for _, ref := range []string{"main", "0123456", missing} {
		_, err := (&Repository{URL: f.dir}).Fetch(t.Context(), ref)
		if err == nil || !strings.Contains(err.Error(), "fetch-depth: 0") {
			t.Errorf("Fetch(%s) from a shallow clone: got %v, want a hint at fetch-depth", ref, err)
		}
	}

	f.must(os.Remove(filepath.Join(f.dir, "shallow")))
	_, err := (&Repository{URL: f.dir}).Fetch(t.Context(), missing)
	if err == nil || strings.Contains(err.Error(), "fetch-depth") {
		t.Errorf("Fetch(%s) from a whole clone: got %v, want no hint at fetch-depth", missing, err)
	}
	f.ref("refs/remotes/origin/main", head)
	_, err = (&Repository{URL: f.dir}).Fetch(t.Context(), "main")
	if err == nil || !strings.Contains(err.Error(), "write origin/main") {
		t.Errorf("Fetch(main), which only a remote has: got %v, want origin/main", err)
	}
}
