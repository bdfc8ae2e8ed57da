package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"headgate.dev/headgate/render"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRemoteID(t *testing.T) {
	const want = "example.org/team/platform"
	for raw, want := range map[string]string{
		"https://example.org/team/platform.git":               want,
		"https://example.org/team/platform":                   want,
		"https://example.org/team/platform/":                  want,
		"https://example.org/team/platform.git/":              want,
		"https://user:secret@Example.ORG:8443/team//platform": want,
		"http://example.org/team/platform.git?token=secret#x": want,
		"ssh://git@example.org/team/platform.git":             want,
		"ssh://git@example.org:2222/team/platform.git":        want,
		"git+ssh://git@example.org/team/platform":             want,
		"git://example.org/team/platform.git":                 want,
		"git@example.org:team/platform.git":                   want,
		"git@example.org:/team/platform.git":                  want,
		"user:secret@example.org:team/platform.git":           want,
		"[git@example.org:2222]:team/platform.git":            want,
		"example.org:team/platform":                           want,
		"example.org:@team/platform":                          "example.org/@team/platform",
		"https://example.org/team/Platform":                   "example.org/team/Platform", // some forges distinguish upper and lower case in paths
		"https://example.org/other/../team/platform":          want,
		"ssh://git@[2001:db8::1]:22/team/platform":            "[2001:db8::1]/team/platform",
		"git@[2001:db8::1]:team/platform":                     "[2001:db8::1]/team/platform",
		"/srv/git/platform.git":                               "/srv/git/platform",
		"file:///srv/git/platform.git":                        "/srv/git/platform",
		"../platform.git":                                     "/srv/git/platform",
		"https://example.org":                                 "example.org/",
		"https://example.org/%zz":                             "",
	} {
		if got := remoteID(raw, "/srv/git/checkout"); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func FuzzRemoteID(f *testing.F) {
	f.Add("https://user:secret@example.org:8443/team/platform.git")
	f.Add("user:secret@example.org:team/platform")
	f.Add("0:@/")
	f.Fuzz(func(t *testing.T, raw string) {
		once := remoteID(raw, "/base")
		if strings.Contains(raw, "://user:secret@") && !strings.Contains(strings.Replace(raw, "://user:secret@", "", 1), "secret") && strings.Contains(once, "secret") {
			t.Errorf("%q: the identity holds credentials: %q", raw, once)
		}
		if strings.Contains(once, "//") {
			t.Errorf("%q: %q cannot be told from a repository and a path", raw, once)
		}
	})
}

// checkout creates a directory with the repository of a fixture. An empty remote means that it has none.
func checkout(t *testing.T, dir, remote string) *fixture {
	t.Helper()
	f := fixtureAt(t, filepath.Join(dir, ".git"))
	if remote != "" {
		f.must(os.WriteFile(filepath.Join(dir, ".git", "config"), []byte("[core]\n\tbare = false\n[remote \"fork\"]\n\turl = https://example.org/a/fork\n[remote \"empty\"]\n[remote \"origin\"]\n\turl = "+remote+"\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"), 0o600))
	}
	f.must(os.MkdirAll(filepath.Join(dir, "clusters", "prod"), 0o700))
	return f
}

func sourceOf(t *testing.T, from interface {
	Source() render.SourceID
}) render.SourceID {
	t.Helper()
	id := from.Source()
	if id.Contains == nil {
		id.Contains = func(string) (bool, error) { return false, nil }
	}
	return id
}

// holds reports whether the history of a source contains a commit.
func holds(t *testing.T, id render.SourceID, commit string) bool {
	t.Helper()
	is, err := id.Contains(commit)
	if err != nil {
		t.Error(err)
	}
	return is
}

func TestDirectoryIsIdentified(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string {
		whole := filepath.Join(dir, name)
		if err := os.MkdirAll(whole, 0o700); err != nil {
			t.Fatal(err)
		}
		return whole
	}
	remote := checkout(t, at("remote"), "git@example.org:team/platform.git")
	first := remote.push("main", map[string]string{"a": "1"})
	head := remote.push("main", map[string]string{"a": "2"}, first)
	bare := checkout(t, at("local"), "")
	root := bare.push("main", map[string]string{"a": "1"})
	top := bare.push("main", map[string]string{"a": "2"}, bare.push("main", map[string]string{"a": "3"}, root))
	checkout(t, at("unborn"), "")
	at("plain/clusters/prod")
	if err := os.Symlink(at("remote/clusters"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	broken := at("broken/clusters")
	if err := os.WriteFile(filepath.Join(dir, "broken", ".git"), []byte("gitdir: /nowhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	linked := at("worktree/clusters/prod")
	admin := at("remote/.git/worktrees/worktree")
	for name, text := range map[string]string{filepath.Join(admin, "HEAD"): first.String() + "\n", filepath.Join(admin, "commondir"): "../..\n", filepath.Join(dir, "worktree", ".git"): "gitdir: " + admin + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	cases := map[string]struct {
		reason string
		from   Directory
		want   render.SourceID
	}{
		"Remote":       {"The remote identifies the repository, wherever it is checked out.", Directory{Root: at("remote"), Path: "clusters/prod"}, render.SourceID{Repository: "example.org/team/platform", Path: "clusters/prod", Ref: "main", Branch: "main", Commit: head.String()}},
		"RootIsPath":   {"A subdirectory as the root is a path of the repository.", Directory{Root: at("remote/clusters/prod")}, render.SourceID{Repository: "example.org/team/platform", Path: "clusters/prod", Ref: "main", Branch: "main", Commit: head.String()}},
		"Link":         {"A symbolic link to the directory does not matter.", Directory{Root: filepath.Join(dir, "link"), Path: "./prod"}, render.SourceID{Repository: "example.org/team/platform", Path: "clusters/prod", Ref: "main", Branch: "main", Commit: head.String()}},
		"Whole":        {"The whole repository has an empty path.", Directory{Root: at("remote"), Path: "."}, render.SourceID{Repository: "example.org/team/platform", Ref: "main", Branch: "main", Commit: head.String()}},
		"Worktree":     {"A linked worktree is another checkout of the repository.", Directory{Root: linked}, render.SourceID{Repository: "example.org/team/platform", Path: "clusters/prod", Ref: render.Detached, Commit: first.String()}},
		"FirstCommit":  {"Without a remote, the first commit identifies the repository.", Directory{Root: at("local/clusters")}, render.SourceID{Repository: "commit:" + root.String(), Path: "clusters", Ref: "main", Branch: "main", Commit: top.String()}},
		"NoCommit":     {"Without a commit, the path of the directory identifies it.", Directory{Root: at("unborn/clusters/prod")}, render.SourceID{Repository: "directory:" + at("unborn/clusters/prod")}},
		"Outside":      {"Outside any repository, the path identifies the directory.", Directory{Root: at("plain"), Path: "clusters/prod"}, render.SourceID{Repository: "directory:" + at("plain/clusters/prod")}},
		"BrokenGitdir": {"If the .git file points nowhere, the path identifies the directory.", Directory{Root: broken}, render.SourceID{Repository: "directory:" + broken}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := sourceOf(t, tc.from)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(render.SourceID{}, "Contains", "Descends", "Related")); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if in := tc.want.Commit != ""; holds(t, got, tc.want.Commit) != in || holds(t, got, strings.Repeat("1", 40)) || holds(t, got, "") {
				t.Errorf("%s\nit contains its own commit, and no other", tc.reason)
			}
		})
	}
}

// The same history is recognized at any address, and no other history is.
func TestRepositoryIsIdentified(t *testing.T) {
	f := newFixture(t)
	first := f.push("main", map[string]string{"prod/a.yaml": "a: 1"})
	side := f.push("side", map[string]string{"prod/a.yaml": "a: 2"}, first)
	head := f.push("main", map[string]string{"prod/a.yaml": "a: 3"}, first)
	merge := f.push("main", map[string]string{"prod/a.yaml": "a: 4"}, head, side)
	foreign := f.commit(f.files(map[string]string{"b": "1"})) // no branch contains it

	local := &Repository{URL: f.dir, Path: "prod"}
	in, err := local.Fetch(t.Context(), "main~1")
	if err != nil {
		t.Fatal(err)
	}
	if got := in.Source; got.Repository != "commit:"+first.String() || got.Path != "prod" || got.Commit != head.String() {
		t.Errorf("got %v", got)
	}
	for commit, want := range map[plumbing.Hash]bool{first: true, head: true, merge: true, side: true, foreign: false} {
		if holds(t, in.Source, commit.String()) != want {
			t.Errorf("want %s in a repository on disk: %t", commit, want)
		}
	}
	f.must(os.WriteFile(filepath.Join(f.dir, "config"), []byte("[core]\n\tbare = true\n[remote \"upstream\"]\n\turl = https://example.org/team/platform.git\n"), 0o600))
	if in, err = (&Repository{URL: f.dir}).Fetch(t.Context(), ""); err != nil || in.Source.Repository != "example.org/team/platform" || in.Source.Path != "" {
		t.Errorf("got %v, %v", in.Source, err)
	}
	// A shallow clone lacks the first commit.
	f.must(os.WriteFile(filepath.Join(f.dir, "config"), []byte("[core]\n\tbare = true\n"), 0o600))
	f.must(os.Remove(filepath.Join(f.dir, "objects", first.String()[:2], first.String()[2:])))
	if in, err = (&Repository{URL: f.dir}).Fetch(t.Context(), ""); err != nil || !IsNameless(in.Source) {
		t.Errorf("got %v, %v", in.Source, err)
	}
}

// Headgate must distinguish a rewritten branch from one that only moved forward, even in a new clone without the lost commits.
func TestDescends(t *testing.T) {
	f := newFixture(t)
	c1 := f.push("main", texts(1))
	c2 := f.push("main", texts(2), c1)
	served := serve(f)
	old := &Repository{URL: served.url(), Cache: t.TempDir()}
	asks := func(reason string, r *Repository, of plumbing.Hash, descends bool, wrong string) {
		t.Helper()
		in, err := r.Fetch(t.Context(), "main")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second answer comes from the cache
			got, err := in.Source.Descends(of.String())
			if got != descends || (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: Descends(%.7s) = %t, %v; want %t, %q", reason, of, got, err, descends, wrong)
			}
		}
	}
	asks("itself", old, c2, true, "")
	asks("its parent", old, c1, true, "")
	f.ref("refs/heads/main", f.commit(f.files(texts(3)), c1)) // c2 is dropped
	asks("rewritten", old, c2, false, "")
	asks("rewritten, in a new clone", &Repository{URL: served.url(), Cache: t.TempDir()}, c2, false, "")
	asks("rewritten, on disk, where the old commit still is", &Repository{URL: f.dir}, c2, false, "")
	asks("no commit", old, f.blob("x"), false, "")
	merge := f.push("main", texts(4), f.commit(f.files(texts(3))), c2)
	asks("merged from the other side", old, c1, true, "")
	shallow := newFixture(t)
	shallow.object(plumbing.TreeObject, nil)
	shallow.ref("refs/heads/main", shallow.commit(shallow.files(texts(1)), merge)) // its parent is missing
	shallow.must(os.WriteFile(filepath.Join(shallow.dir, "shallow"), []byte(merge.String()+"\n"), 0o600))
	at := &Repository{URL: shallow.dir}
	asks("a shallow clone lacks commits", at, c1, false, "unshallow")
	shallow.must(os.Remove(filepath.Join(shallow.dir, "shallow")))
	asks("a damaged one, too", at, c1, false, "object not found")
	shallow.must(os.MkdirAll(filepath.Join(shallow.dir, "objects", "info"), 0o700))
	shallow.must(os.WriteFile(filepath.Join(shallow.dir, "objects", "info", "alternates"), []byte(filepath.Join(f.dir, "objects")+"\n"), 0o600))
	asks("no error is remembered", at, c1, true, "")
}

// A source is one branch, however the user names it.
func TestRefOfSource(t *testing.T) {
	f := newFixture(t)
	first := f.push("main", texts(1))
	head := f.push("main", texts(2), first)
	f.push("feature", texts(3), head)
	f.ref("refs/tags/v1", first)
	f.ref("refs/pull/7/head", first)
	f.ref("refs/remotes/origin/develop", first)
	served := serve(f)
	clones := t.TempDir()
	type named struct{ Ref, Branch string }
	pinned := named{Ref: render.Detached}
	for ref, tc := range map[string]struct{ remote, disk named }{
		"":                            {named{"HEAD", "main"}, named{"main", "main"}},
		"HEAD":                        {named{"HEAD", "main"}, named{"main", "main"}},
		"HEAD~1":                      {named{"HEAD", "main"}, named{"main", "main"}},
		"main":                        {named{"main", "main"}, named{"main", "main"}},
		"main~1":                      {named{"main", "main"}, named{"main", "main"}},
		"refs/heads/main":             {named{"main", "main"}, named{"main", "main"}},
		"feature":                     {named{"feature", "feature"}, named{"feature", "feature"}},
		"refs/remotes/origin/develop": {named{"develop", "develop"}, named{"develop", "develop"}},
		"refs/pull/7/head":            {named{Ref: "refs/pull/7/head"}, named{Ref: "refs/pull/7/head"}},
		"v1":                          {pinned, pinned},
		first.String():                {pinned, pinned},
		first.String()[:12]:           {pinned, pinned},
	} {
		for at, want := range map[*Repository]named{{URL: served.url(), Cache: clones}: tc.remote, {URL: f.dir}: tc.disk} {
			in, err := at.Fetch(t.Context(), ref)
			if got := (named{in.Source.Ref, in.Source.Branch}); err != nil || got != want {
				t.Errorf("%s of %s: got %v, %v; want %v", ref, at.URL, got, err, want)
			}
		}
	}
	f.must(os.WriteFile(filepath.Join(f.dir, "HEAD"), []byte(head.String()+"\n"), 0o600))
	if in, err := (&Repository{URL: f.dir}).Fetch(t.Context(), ""); err != nil || in.Source.Ref != render.Detached {
		t.Errorf("A checkout without a branch follows none: %q, %v", in.Source.Ref, err)
	}
}

// A pinned commit may be older or newer than the one that was applied last, but not of another branch.
func TestRelated(t *testing.T) {
	f := newFixture(t)
	root := f.push("main", texts(1))
	old := f.push("main", texts(2), root)
	head := f.push("main", texts(3), old)
	side := f.push("side", texts(4), root)
	in, err := (&Repository{URL: f.dir}).Fetch(t.Context(), old.String())
	if err != nil {
		t.Fatal(err)
	}
	for commit, want := range map[string]bool{
		old.String(): true, root.String(): true, head.String(): true,
		side.String(): false, strings.Repeat("1", 40): false, "v1": false, f.blob("x").String(): false,
	} {
		if got, err := in.Source.Related(commit); err != nil || got != want {
			t.Errorf("Related(%s) = %t, %v; want %t", commit, got, err, want)
		}
	}
}
