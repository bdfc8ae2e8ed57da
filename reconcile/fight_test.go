package reconcile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"headgate.dev/headgate/reconcile/demand"
	"headgate.dev/headgate/reconcile/diff"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A rival overwrites every correction after a while.
type rival struct {
	*world
	slow   time.Duration // until it does
	gaveUp bool
	theirs bool // whether the live object has the rival's value
	edits  int
	right  []time.Time // times of the corrections
}

func (r *rival) Observe(_ context.Context, want render.Desired) (facts.Observed, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := want.Objects[0]
	ours, err := o.Content()
	if err != nil {
		return facts.Observed{}, err
	}
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: o.ID.Name, UID: "u", Generation: int64(1 + r.edits)}}
	seen := facts.Observed{
		Ground: facts.Ground{
			Inventory: inventory.Inventory{Entries: map[manifest.ID]inventory.Entry{o.ID: {UID: "u", Digest: inventory.Sync{}.Digest(o), Mark: inventory.Mark(live)}}},
			Stance:    plan.Comparing,
		},
		Live: facts.Live{Objects: map[manifest.ID]*metav1.PartialObjectMetadata{o.ID: live}, Trials: map[manifest.ID]facts.Trial{}},
	}
	if r.theirs {
		theirs := ours.DeepCopy()
		if err := unstructured.SetNestedField(theirs.Object, "theirs", "data", "k"); err != nil {
			return facts.Observed{}, err
		}
		seen.Trials[o.ID] = facts.Trial{Live: theirs, After: ours, TakenBy: []diff.Taken{{Manager: "rival", Fields: []string{"data.k"}}}}
	}
	return demand.Ask(seen, want)
}

func (r *rival) Apply(_ context.Context, p plan.Plan) ([]plan.Outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var done []plan.Outcome
	for _, s := range p.Steps {
		if s.Writes() {
			r.theirs = false
			r.right = append(r.right, time.Now())
			done = append(done, plan.Outcome{ID: s.ID, Action: s.Action})
			time.AfterFunc(r.slow, r.edit)
		}
	}
	return done, nil
}

// edit writes the rival's value.
func (r *rival) edit() {
	r.mu.Lock()
	gaveUp := r.gaveUp
	if !gaveUp {
		r.theirs = true
		r.edits++
	}
	tell := r.tell
	moved := map[manifest.ID]string{{Kind: "ConfigMap", Namespace: "b", Name: "a"}: fmt.Sprint(r.edits)}
	r.mu.Unlock()
	if !gaveUp && tell != nil {
		tell(moved)
	}
}

func (r *rival) corrections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.right)
	r.right = nil
	return n
}

// drift returns the drift status of the last pass.
func (r *rival) drift(t *testing.T) string {
	t.Helper()
	passed := r.received(Passed)
	if len(passed) == 0 {
		t.Fatal("no pass")
	}
	v := passed[len(passed)-1].Report.Verdict
	return fmt.Sprintf("%s: %s (%d)", v.Drift.State, v.Drift.Description, v.ExitCode)
}

func newRival(t *testing.T, slow time.Duration) *rival {
	t.Helper()
	w := newWorld()
	w.files = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {k: ours}\n"
	r := &rival{world: w, slow: slow}
	l := w.loop()
	l.Reconciler.Observer, l.Reconciler.Applier, l.Watcher = r, r, w
	w.run(t, l)
	synctest.Wait()
	return r
}

func TestFightOfControllers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRival(t, 100*time.Millisecond)
		r.edit()
		time.Sleep(20 * time.Second)
		if n := r.corrections(); n < 3 || n > 4 {
			t.Errorf("A few times it is put right at once, and no more: %d times", n)
		}
		const fought = "failure: fight over a: rival changed data.k again "
		if got := r.drift(t); !strings.HasPrefix(got, fought) || !strings.HasSuffix(got, "(3)") {
			t.Errorf("Then a person has to look: %s", got)
		}
		r.corrections()
		time.Sleep(3 * time.Hour)
		if n := r.corrections(); n < 3 || n > 9 {
			t.Errorf("In three hours it is tried again now and then, ever less often: %d times", n)
		}
		if got := r.drift(t); !strings.HasPrefix(got, fought) {
			t.Errorf("And still said: %s", got)
		}

		r.set(func() { r.gaveUp = true })
		time.Sleep(time.Hour + 5*time.Minute)
		r.corrections()
		if got := r.drift(t); !strings.HasPrefix(got, "success: ") || !strings.HasSuffix(got, " corrected (0)") {
			t.Errorf("It is over when it stays put: %s", got)
		}
		r.set(func() { r.gaveUp = false })
		r.edit()
		time.Sleep(time.Second)
		if n := r.corrections(); n == 0 {
			t.Error("A later change is a new case, and is corrected at once.")
		}
	})
}

// Two tools with intervals of ten minutes revert each other, too.
func TestSlowFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRival(t, 10*time.Minute)
		r.edit()
		time.Sleep(45 * time.Minute)
		if got := r.drift(t); !strings.HasPrefix(got, "failure: fight over a: rival changed data.k again ") {
			t.Errorf("It is a fight, however slow: %s", got)
		}
		time.Sleep(5 * time.Minute) // the correction is in place, and the rival will overwrite it again
		if got := r.drift(t); !strings.HasPrefix(got, "failure: fight") {
			t.Errorf("The report about it does not change while it goes on: %s", got)
		}
	})
}

// A user who edits an object twice a day does not fight with Headgate.
func TestNoFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRival(t, 2*time.Hour)
		r.edit()
		time.Sleep(24 * time.Hour)
		if n := r.corrections(); n < 11 {
			t.Errorf("It is put right every time: %d times", n)
		}
		if got := r.drift(t); !strings.HasPrefix(got, "success: ") {
			t.Errorf("And it has no other effect: %s", got)
		}
	})
}
