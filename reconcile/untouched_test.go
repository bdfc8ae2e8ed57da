package reconcile

import (
	"context"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/report"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"
)

// A repository holds the files of a commit, as hashes and texts. The sync reads directory a.
type repository struct {
	*world

	files fstest.MapFS
}

type hashes struct{ fstest.MapFS }

func (h hashes) Hash(name string) (string, error) {
	raw, err := fs.ReadFile(h.MapFS, name)
	return string(raw), err
}

func (r *repository) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := r.world.Fetch(ctx, ref)
	r.mu.Lock()
	defer r.mu.Unlock()
	files := fstest.MapFS{}
	for name, f := range r.files {
		files[name] = &fstest.MapFile{Data: f.Data}
	}
	in.Files, in.Path = hashes{files}, "a"
	return in, err
}

// commit makes a commit that changes one file.
func (r *repository) commit(revision, name, text string) {
	r.set(func() {
		r.revision = revision
		r.files[name] = &fstest.MapFile{Data: []byte(text)}
	})
}

// passed returns what was noted, without times.
func (r *repository) passed() []string {
	got := r.noted()
	for i, line := range got {
		_, got[i], _ = strings.Cut(line, " ")
	}
	return got
}

func newRepository() (*repository, Loop) {
	w := newWorld()
	r := &repository{w, fstest.MapFS{"a/a.yaml": {Data: []byte(inactiveDefinition)}}}
	l := w.loop()
	l.Interval, l.Poll = time.Hour, 10*time.Second
	l.Reconciler.Source = Recorded{r}
	return r, l
}

const poll = 12 * time.Second

func TestUntouched(t *testing.T) {
	const quiet = "success: 0 active, 1 inactive"
	other := strings.ReplaceAll(inactiveDefinition, "as", "bs")
	for name, tc := range map[string]struct {
		reason string
		loop   func(*repository, *Loop)
		commit func(*repository)
		want   []string
	}{
		"Beside": {
			reason: "A commit that changes nothing of the sync needs no pass, and gets its status at once.",
			commit: func(r *repository) { r.commit("b", "b/b.yaml", other) },
			want:   []string{"b: " + quiet},
		},
		"Untold": {
			reason: "With a status for each sync, only the syncs that a commit changes have one.",
			loop:   func(_ *repository, l *Loop) { l.Untold = true },
			commit: func(r *repository) { r.commit("b", "b/b.yaml", other) },
		},
		"Inside": {
			reason: "A commit that changes a file of the sync is applied.",
			commit: func(r *repository) { r.commit("b", "a/b.yaml", other) },
			want:   []string{"b: pending: seen; the pass has not ended", "apply b", "b: success: 0 active, 2 inactive"},
		},
		"IgnoreFileAbove": {
			reason: "What did not exist was read, too.",
			commit: func(r *repository) { r.commit("b", ".headgateignore", "nothing\n") },
			want:   []string{"b: pending: seen; the pass has not ended", "apply b", "b: " + quiet},
		},
		"Refused": {
			reason: "Signatures are checked for every commit.",
			commit: func(r *repository) {
				r.commit("b", "b/b.yaml", other)
				r.set(func() { r.fetching = unsigned("b") })
			},
			want: []string{"b: pending: seen; the pass has not ended", "apply a", "b: error: b is not verified"},
		},
		"FastForward": {
			reason: "The inventory stores every commit, or a restarted process would accept a rewritten branch.",
			loop:   func(_ *repository, l *Loop) { l.Reconciler.Terms.FastForward = true },
			commit: func(r *repository) { r.commit("b", "b/b.yaml", other) },
			want:   []string{"b: pending: seen; the pass has not ended", "apply b", "b: " + quiet},
		},
		"OtherOwner": {
			reason: "A render depends on who makes the CRDs in the cluster.",
			loop: func(r *repository, l *Loop) {
				r.owner = render.OwnerHeadgate
				l.Reconciler.Cluster, l.Reconciler.Options.Owner = r, render.OwnerAuto
			},
			commit: func(r *repository) {
				r.commit("b", "b/b.yaml", other)
				r.set(func() { r.owner = render.OwnerAuto })
			},
			want: []string{"b: pending: seen; the pass has not ended", "apply b", "b: " + quiet},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, l := newRepository()
				if tc.loop != nil {
					tc.loop(r, &l)
				}
				r.run(t, l)
				expect(t, "The first commit is applied.", r.passed(), "apply a", "a: "+quiet)
				tc.commit(r)
				time.Sleep(poll)
				expect(t, tc.reason, r.passed(), tc.want...)
			})
		})
	}
}

// Drift that another writer repeats is corrected less and less often. A commit must not get the status of the pass before it.
func TestUntouchedWithDrift(t *testing.T) {
	r, l := newRepository()
	running := l.running()
	if _, err := running.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	follow := func(revision string) bool {
		r.commit(revision, "b/b.yaml", revision)
		in, err := l.Reconciler.Source.Fetch(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return running.follow(t.Context(), in)
	}
	if !follow("b") {
		t.Error("A commit that changes nothing is followed.")
	}
	running.moved = map[manifest.ID]string{{Kind: "ConfigMap", Name: "x"}: "changed"}
	if follow("c") {
		t.Error("There is drift that no pass has seen.")
	}
	running.moved = nil
	running.next.Failures = 1
	if follow("d") {
		t.Error("The last pass failed.")
	}
}

// A pass that carried out everything needs no second one to confirm that. If the first commit after a change of everything made a pass of
// each sync, hundreds of syncs would make hundreds of passes.
func TestUntouchedAfterChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newRepository()
		r.files["a/a.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n")}
		r.run(t, l)
		r.passed()
		r.commit("b", "b/b.yaml", "")
		time.Sleep(poll)
		expect(t, "The status is that of a pass which finds nothing to do.", r.passed(), "b: "+done)
	})
}

// Commits follow each other without passes. The next regular pass is over the newest one, and a commit that is the same as an older
// one needs none, either.
func TestUntouchedInARow(t *testing.T) {
	const quiet = ": success: 0 active, 1 inactive"
	synctest.Test(t, func(t *testing.T) {
		r, l := newRepository()
		r.run(t, l)
		r.passed()
		for _, revision := range []string{"b", "c", "d", "b"} {
			r.commit(revision, "b/b.yaml", revision)
			time.Sleep(poll)
			expect(t, "A commit needs no pass.", r.passed(), revision+quiet)
		}
		if all := r.received(Untouched); len(all) != 4 || all[3].Revision != "b" || all[3].Report.Summary.Created != 0 {
			t.Errorf("the log has %+v", all)
		}
		time.Sleep(67 * time.Minute)
		got := r.passed()
		expect(t, "The regular pass is over the newest commit.", got[:2], "apply b", "b"+quiet)
		r.commit("e", "a/a.yaml", "apiVersion: v1\nkind: [\n")
		time.Sleep(poll)
		if got := r.passed(); len(got) != 2 || !strings.Contains(got[1], "e: error: a/a.yaml:2: ") {
			t.Errorf("A broken commit is rendered: %q", got)
		}
		r.commit("f", "b/b.yaml", "f")
		time.Sleep(poll)
		if got := r.passed(); len(got) != 2 || !strings.Contains(got[1], "f: error: a/a.yaml:2: ") {
			t.Errorf("A commit on top of a broken one is broken: %q", got)
		}
	})
}

// A sync that waits for the newest commit of another one does not wait for a pass over a commit that changes nothing of it.
func TestPeersFollow(t *testing.T) {
	a, b := inventory.Sync{Name: "a"}, inventory.Sync{Name: "b"}
	p := &Peers{}
	p.Join(a, Member{Ref: "main"})
	p.Join(b, Member{Ref: "main"})
	want := func(revision string) render.Desired { return render.Desired{Revision: revision} }
	p.declared(a, want("1"), map[manifest.ID]bool{}, nil)
	p.declared(b, want("2"), map[manifest.ID]bool{}, nil)
	if p.others(b, "2")[0].Declares != nil {
		t.Fatal("the other sync has not seen the newest commit")
	}
	p.follows(a, "0", "2")
	if p.others(b, "2")[0].Declares != nil {
		t.Error("what it declares is of another commit")
	}
	p.follows(a, "1", "2")
	if p.others(b, "2")[0].Declares == nil {
		t.Error("it has followed, and is waited for")
	}
}

// A commit that changes nothing of a sync has no status of it. If a later pass finds something else, it gets one.
func TestUntoldCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, l := newRepository()
		l.Untold = true
		running := l.running()
		if _, err := running.once(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.commit("b", "b/b.yaml", "")
		in, err := l.Reconciler.Source.Fetch(t.Context(), "")
		if err != nil || !running.follow(t.Context(), in) {
			t.Fatalf("the commit is not followed: %v", err)
		}
		r.passed()
		same := running.settled.report
		running.tell(t.Context(), same)
		expect(t, "The pass found what was known.", r.passed())
		worse := same
		worse.Verdict.Drift = report.Status{State: report.Success, Description: "1 corrected"}
		running.tell(t.Context(), worse)
		running.tell(t.Context(), same)
		if got := r.passed(); len(got) != 2 {
			t.Errorf("From the first news on, every result is published: %q", got)
		}
	})
}
