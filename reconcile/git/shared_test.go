package git

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate.dev/headgate/reconcile/engine"
)

// crowd returns repositories that share what they can.
func crowd(t *testing.T, n int, of *Repository) []*Repository {
	t.Helper()
	shared, cache := &Shared{}, t.TempDir()
	all := make([]*Repository, n)
	for i := range all {
		all[i] = &Repository{URL: of.URL, Auth: of.Auth, Credentials: of.Credentials, Cache: cache, Shared: shared}
	}
	return all
}

// tipsOf returns the commits that all repositories find at the same time.
func tipsOf(ctx context.Context, t *testing.T, all []*Repository, ref string) []string {
	t.Helper()
	found := make([]string, len(all))
	var asking sync.WaitGroup
	for i, r := range all {
		asking.Go(func() {
			var err error
			if found[i], err = r.Resolve(ctx, ref); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	return found
}

func count(requests []string, kind string) int {
	return len(slices.DeleteFunc(requests, func(r string) bool { return r != kind }))
}

// Without this, five hundred syncs that poll a repository every five seconds send a hundred requests each second.
func TestSyncsSharePolls(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	all := crowd(t, 20, &Repository{URL: s.url()})
	recent := engine.Within(t.Context(), time.Hour)
	tipsOf(recent, t, all, "main")
	tipsOf(recent, t, all, "main")
	tipsOf(recent, t, all, "dev")
	if got := s.requests(); count(slices.Clone(got), "pack") > 2 || count(slices.Clone(got), "list") > 4 {
		t.Errorf("20 repositories asked for two branches, and a second time for one: %q, want a list, and one with a pack for each branch", got)
	}

	// A push: one of them looks, and the others learn of it without a request.
	pushed := h.push("main", map[string]string{"a.yaml": "new"}, h.main).String()
	if old := tipsOf(recent, t, all[:1], "main"); old[0] != h.main.String() {
		t.Errorf("a recent answer will do, and %s is not the one", old[0])
	}
	s.requests()
	tipsOf(t.Context(), t, all[3:4], "main")
	for i, found := range tipsOf(recent, t, all, "main") {
		if found != pushed {
			t.Errorf("repository %d found %s, want %s", i, found, pushed)
		}
	}
	if got := s.requests(); !slices.Equal(got, []string{"list", "pack"}) {
		t.Errorf("%q, want one list and one pack", got)
	}

	// A webhook wakes all: an answer from before it is too old for each of them, and they share a newer one.
	pushed = h.push("main", map[string]string{"a.yaml": "newer"}, h.main).String()
	for i, found := range tipsOf(t.Context(), t, all, "main") {
		if found != pushed {
			t.Errorf("repository %d found %s, want %s", i, found, pushed)
		}
	}
	if got := s.requests(); count(slices.Clone(got), "pack") != 1 || count(slices.Clone(got), "list") >= len(all) {
		t.Errorf("%q, want one pack, and far fewer lists than repositories", got)
	}
}

// What a server tells one user must not be told another.
func TestCredentialsAreNotShared(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	s.user, s.token = "robot", "t0ken"
	shared, cache := &Shared{}, t.TempDir()
	at := func(password string) *Repository {
		return &Repository{URL: s.url(), Auth: Auth{Username: "robot", Password: password}, Cache: cache, Shared: shared}
	}
	recent := engine.Within(t.Context(), time.Hour)
	if _, err := at("t0ken").Resolve(recent, "main"); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"main", h.main.String()} {
		if _, err := at("guessed").Resolve(recent, ref); err == nil || !strings.Contains(err.Error(), "refused the credentials") {
			t.Errorf("%s: %v, want that the server refuses the credentials", ref, err)
		}
	}
	if _, err := at("t0ken").Resolve(recent, "main"); err != nil {
		t.Errorf("the refusal of another does not count: %v", err)
	}
}

// After a rotation, all use the new token, and what the old one was used for is forgotten in time.
func TestSharedTokenIsReplaced(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	s.user, s.token = "robot", "first"
	var auth atomic.Value
	auth.Store(Auth{Username: "robot", Password: "first"})
	all := crowd(t, 3, &Repository{URL: s.url(), Credentials: func(context.Context) (Auth, error) { return auth.Load().(Auth), nil }})
	tipsOf(t.Context(), t, all, "main")
	s.mu.Lock()
	s.token = "second"
	s.mu.Unlock()
	auth.Store(Auth{Username: "robot", Password: "second"})
	tipsOf(engine.Within(t.Context(), time.Hour), t, all, "main")
	shared := all[0].Shared
	for _, one := range shared.used {
		one.last = one.last.Add(-2 * unused)
	}
	auth.Store(Auth{Username: "robot", Password: "third"})
	_, _ = all[0].Resolve(t.Context(), "main")
	if n := len(shared.used); n != 1 {
		t.Errorf("%d sets of credentials are remembered, want the newest", n)
	}
}

// An error is no answer for later: the repository may be back. And whoever gives up must not answer for others.
func TestErrorsAreNotShared(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	all := crowd(t, 2, &Repository{URL: s.url()})
	recent := engine.Within(t.Context(), time.Hour)
	answer(503, "away")(s)
	if _, err := all[0].Resolve(recent, "main"); err == nil {
		t.Fatal("want an error")
	}
	s.mu.Lock()
	s.before = nil
	s.mu.Unlock()
	tipsOf(recent, t, all, "main")

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = all[0].Resolve(gone, "main")
	tipsOf(t.Context(), t, all, "main")
}

// A look for a new commit reads no credentials, and a push or another
// token is still found.
func TestTip(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	s.user, s.token = "robot", "first"
	token, reads := "first", 0
	all := crowd(t, 2, &Repository{URL: s.url(), Credentials: func(context.Context) (Auth, error) {
		reads++
		return Auth{Username: "robot", Password: token}, nil
	}})
	recent := engine.Within(t.Context(), time.Hour)
	is := func(ctx context.Context, ref, want string) {
		t.Helper()
		if got, err := all[0].Tip(ctx, ref); err != nil || got != want {
			t.Errorf("%s is %s, want %s: %v", ref, got, want, err)
		}
	}
	is(recent, "main", h.main.String())
	before := reads
	for range 100 {
		is(recent, "main", h.main.String())
	}
	if reads != before {
		t.Errorf("the credentials were read %d times", reads-before)
	}
	is(recent, "main~0", h.main.String())

	pushed := h.push("main", map[string]string{"a.yaml": "new"}, h.main).String()
	is(recent, "main", h.main.String())
	if _, err := all[1].Resolve(t.Context(), "main"); err != nil { // another one looks
		t.Fatal(err)
	}
	is(recent, "main", pushed)
	is(recent, "main", pushed)

	s.mu.Lock()
	s.token = "second"
	s.mu.Unlock()
	if got, err := all[0].Tip(t.Context(), "main"); err == nil {
		t.Errorf("%s, and the token was revoked", got)
	}
	token = "second"
	is(recent, "main", pushed)
}

// The root of a repository with a directory for each of five hundred syncs has five hundred entries. They are decoded once, and
// forgotten with the last commit that uses them.
func TestSyncsShareListings(t *testing.T) {
	h := newHistory(t)
	s := serve(h.fixture)
	all := crowd(t, 3, &Repository{URL: s.url()})
	read := func(r *Repository) *listing {
		in, err := r.Fetch(engine.Within(t.Context(), time.Hour), "main")
		if err != nil {
			t.Fatal(err)
		}
		files, ok := in.Files.(*tree)
		if !ok {
			t.Fatalf("the files are a %T", in.Files)
		}
		list, err := files.folder(".")
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := read(all[0])
	if read(all[1]) != first || read(all[2]) != first {
		t.Error("the same directory is kept several times")
	}
	shelves := &first.nodes[0].objects.shelves
	runtime.KeepAlive(first)
	left := func() (n int) {
		runtime.GC()
		shelves.Range(func(any, any) bool { n++; return true })
		return n
	}
	for deadline := time.Now().Add(10 * time.Second); left() > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("listings that nobody uses stay")
		}
	}
}
