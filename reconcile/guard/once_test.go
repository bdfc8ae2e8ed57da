package guard

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/reconcile/question"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A change is a commit of which a guard holds something until a person approves it: it removes objects, or updates one.
type change struct {
	before, after []*unstructured.Unstructured
	refused       string // the name of an object that the API server refuses
}

// changes are held by different guards, and by two of them together.
func changes() map[string]change {
	configMaps := func(names string) (all []*unstructured.Unstructured) {
		for name := range strings.FieldsSeq(names) {
			all = append(all, given.ConfigMap(name))
		}
		return all
	}
	bucket := func(name string) *unstructured.Unstructured {
		return given.Thing("example.org/v1", "Bucket", name, "spec", map[string]any{})
	}
	return map[string]change{
		"Many":            {before: configMaps("keep a b c d"), after: configMaps("keep")},
		"Empty":           {before: configMaps("a b c d")},
		"External":        {before: append(configMaps("keep"), bucket("a")), after: configMaps("keep")},
		"ExternalAndMany": {before: append(configMaps("keep"), bucket("a"), bucket("b"), bucket("c"), bucket("d")), after: configMaps("keep")},
		"Schema":          {before: append(configMaps("keep"), given.Sized("a", "b")), after: append(configMaps("keep"), given.Sized("a"))},
		"Unfinished":      {before: configMaps("keep a"), after: configMaps("keep new"), refused: "new"},
	}
}

// places give an approval of what a report asks for, in each place in which Headgate reads approvals.
var places = map[string]func(s *given.Server, want *render.Desired, asked plan.Approval){
	"Git": func(s *given.Server, want *render.Desired, asked plan.Approval) {
		want.Approvals = []render.Approval{{Digests: []string{asked.Digest}, By: "alice", UpTo: asked.UpTo, Expires: metav1.NewTime(s.Seen.Now.Add(time.Hour))}}
	},
	"GitEach": func(s *given.Server, want *render.Desired, asked plan.Approval) {
		want.Approvals = []render.Approval{{Digests: approval.DigestsOf(asked.Claims), By: "alice", UpTo: asked.UpTo, Expires: metav1.NewTime(s.Seen.Now.Add(time.Hour))}}
	},
	"Comment": func(s *given.Server, want *render.Desired, asked plan.Approval) {
		given := approval.Given{inventory.InComment: {{
			ID: "comment 7", Digests: append(approval.DigestsOf(asked.Claims), asked.Digest), By: "@bob", UpTo: asked.UpTo, Expires: metav1.NewTime(s.Seen.Now.Add(time.Hour)),
		}}, inventory.InReview: nil}
		s.Seen.Answers = question.Answers{question.Approvals{Revision: want.Revision}: given} // a pass after a kill may not ask in time
		others := s.Answer
		s.Answer = func(q question.Any) any {
			if _, is := q.(question.Approvals); is {
				return given
			}
			return others(q)
		}
	},
	"Sync": func(s *given.Server, _ *render.Desired, asked plan.Approval) {
		s.Seen.Approvals = approval.Given{inventory.OnSync: approval.UpTo(asked.UpTo, asked.Digest)}
	},
	"SyncAtTime": func(s *given.Server, _ *render.Desired, asked plan.Approval) {
		s.Seen.Approvals = approval.Given{inventory.OnSync: {{ID: "at 2026-01-02T03:04:05Z", Digests: []string{asked.Digest}, UpTo: asked.UpTo}}}
	},
}

// approved is a sync that asks for the approval of a change.
type approved struct {
	*testing.T
	*given.Server
	change
}

func newApproved(t *testing.T, of change) *approved {
	t.Helper()
	a := &approved{t, given.NewServer(Guarding{}.Guards()...), of}
	a.Seen.Kinds[schema.GroupKind{Group: "example.org", Kind: "Bucket"}] = plan.Kind{Version: "v1", Resource: "buckets", Namespaced: true, Categories: []string{"managed"}}
	a.Answer = func(q question.Any) any {
		switch q.(type) {
		case question.Dependents:
			return question.Counted{Count: 1, Example: "Bucket default/a"}
		case question.Fits:
			return question.Misfits{Count: 1}
		}
		return nil
	}
	a.Refuse = func(s plan.Step) error {
		if s.ID.Name == of.refused {
			return given.ErrBoom
		}
		return nil
	}
	return a
}

// commit returns a commit with objects and an approval.
func (a *approved) commit(revision string, objects []*unstructured.Unstructured, approvals []render.Approval) render.Desired {
	a.Helper()
	want := render.Desired{Revision: revision, Approvals: approvals}
	for _, u := range objects {
		want.Objects = append(want.Objects, given.Wanted(a.T, u))
	}
	return want
}

// pass makes a pass. It fails the test if the inventory is not what carries the marks of the sync.
func (a *approved) pass(want render.Desired) plan.Plan {
	a.Helper()
	pass, err := a.Pass(a.T, want)
	if err != nil {
		a.Fatal(err)
	}
	marked := a.Marked()
	owned := slices.DeleteFunc(a.Owned(), func(id manifest.ID) bool { return id.Name == a.refused })
	if !slices.Equal(owned, marked) {
		a.Errorf("commit %s: the inventory has %v, the marks are on %v", want.Revision, owned, marked)
	}
	return pass.Plan()
}

// writes counts the requests that changed objects of a commit, or deleted them.
func (a *approved) writes(of []*unstructured.Unstructured) (n int) {
	for _, u := range of {
		for _, sent := range a.Sent {
			if sent != string(plan.Create)+" "+manifest.IDOf(u).String() && strings.HasSuffix(sent, " "+manifest.IDOf(u).String()) {
				n++
			}
		}
	}
	return n
}

// made reports whether the change is made: completely, or not at all.
func (a *approved) made() (all, none bool) {
	is := func(wanted []*unstructured.Unstructured, u *unstructured.Unstructured) bool {
		live := a.Content[manifest.IDOf(u)]
		i := slices.IndexFunc(wanted, func(o *unstructured.Unstructured) bool { return manifest.IDOf(o) == manifest.IDOf(u) })
		return (live != nil) == (i >= 0) && (live == nil || reflect.DeepEqual(live.Object["spec"], wanted[i].Object["spec"]))
	}
	all, none = true, true
	for _, u := range a.before {
		all, none = all && is(a.after, u), none && is(a.before, u)
	}
	return all, none
}

// TestApprovalsCountOnce approves a change in every place, and kills the process at every moment of the pass that carries it out. The
// next process finishes the work. Then the change is reverted and made again, in new commits or with a branch that is moved back and
// forth: the approval, which still stands, does not count again.
func TestApprovalsCountOnce(t *testing.T) {
	for name, of := range changes() {
		for place, give := range places {
			for _, later := range [][]string{{"2", "1", "2"}, {"2b", "3", "4"}, {"", "3", "4"}} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, place, strings.Join(later, "-")), func(t *testing.T) {
					dies := 1
					for approvesOnce(t, of, give, dies, later) {
						dies++
					}
				})
			}
		}
	}
}

// approvesOnce reports whether the process was killed. later are the revisions of the commits after that: one that also has the
// change, if there is one; one that reverts it; and one that makes it again.
func approvesOnce(t *testing.T, of change, give func(*given.Server, *render.Desired, plan.Approval), dies int, later []string) (killed bool) {
	t.Helper()
	a := newApproved(t, of)
	a.pass(a.commit("1", of.before, nil))
	asked := a.pass(a.commit("2", of.after, nil)).Approval
	if _, none := a.made(); asked == nil || !none {
		t.Fatalf("nothing is held: %v", a.Sent)
	}
	want := a.commit("2", of.after, nil)
	give(a.Server, &want, *asked)
	a.DiesAt = dies
	_, err := a.Pass(t, want)
	killed, a.DiesAt = errors.Is(err, given.ErrKilled), 0

	if _, none := a.made(); later[0] == "" && none {
		return killed // it was not used
	}
	if want.Revision = later[0]; later[0] != "" {
		a.pass(want)
	}
	if all, _ := a.made(); !all && later[0] == "2" {
		t.Errorf("killed at moment %d: the pass after it does not finish the work: %v", dies, a.Sent)
	}
	a.pass(a.commit(later[1], of.before, want.Approvals))
	before := a.writes(of.before)
	for range 2 {
		a.pass(a.commit(later[2], of.after, want.Approvals))
	}
	if _, none := a.made(); !none || a.writes(of.before) != before {
		t.Errorf("killed at moment %d: the approval counts again: %v", dies, a.Sent)
	}
	return killed
}
