package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/fixtures/given"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/guard"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/ownership"
	"headgate.dev/headgate/reconcile/plan"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/manifest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// applied records which plans were carried out.
type applied struct{ plans int }

func (a *applied) Apply(context.Context, plan.Plan) ([]plan.Outcome, error) {
	a.plans++
	return nil, nil
}

type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// emptied returns the plan of a commit that declares nothing any more: its prunes are held, or approved.
func emptied(t *testing.T, digests ...string) plan.Plan {
	t.Helper()
	seen := given.Owning(t, "a", "b", "c", "d", "e", "f")
	seen.Now = metav1.NewTime(time.Unix(1_800_000_000, 0))
	seen.Approvals = approval.Given{inventory.OnSync: {{ID: "now", Digests: digests, By: "ann"}}}
	return given.Computed(t, render.Desired{Owner: render.OwnerHeadgate, Revision: "c0ffee"}, seen, guard.Guarding{}.Guards()...)
}

// Each write that a guard would hold has a line: who approved it, what was shown, and which commit asks for it.
func TestGuardedWrites(t *testing.T) {
	held := emptied(t)
	if held.Approval == nil {
		t.Fatal("nothing is held")
	}
	if got := Of(held); len(got) != 0 {
		t.Errorf("a plan that holds everything has entries: %+v", got)
	}
	p := emptied(t, held.Approval.Digest)
	var out bytes.Buffer
	next := &applied{}
	if _, err := To(&out).Around(next).Apply(t.Context(), p); err != nil || next.plans != 1 {
		t.Fatalf("%d plans were carried out: %v", next.plans, err)
	}
	events := map[Event]int{}
	for line := range strings.Lines(out.String()) {
		var e Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		events[e.Event]++
		if e.APIVersion != "headgate.dev/v1alpha1" || e.Kind != "Audit" || e.Time.IsZero() || e.Sync != given.Sync.String() || e.Commit != "c0ffee" {
			t.Errorf("%s", line)
		}
		if len(e.Approvals) != 1 || e.Approvals[0].By != "ann" || len(e.Approvals[0].Digests) == 0 {
			t.Errorf("who approved: %s", line)
		}
		if e.Event == GuardedWrite && (len(e.Guards) == 0 || e.Shown == "" || e.Object == "" || e.Action != plan.Prune) {
			t.Errorf("what was shown: %s", line)
		}
	}
	if diff := cmp.Diff(map[Event]int{ApprovalUsed: 1, GuardedWrite: p.Count(plan.Prune)}, events); diff != "" || p.Count(plan.Prune) != 6 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What cannot be recorded is not written.
func TestNoWriteWithoutALine(t *testing.T) {
	next := &applied{}
	if _, err := To(full{}).Around(next).Apply(t.Context(), emptied(t, emptied(t).Approval.Digest)); !errors.Is(err, errFull) || next.plans != 0 {
		t.Errorf("with a full disk, %d plans were carried out: %v", next.plans, err)
	}
	if _, err := To(full{}).Around(next).Apply(t.Context(), emptied(t)); err != nil || next.plans != 1 {
		t.Errorf("a plan without entries: %v", err)
	}
	var none *Log
	if _, err := none.Around(next).Apply(t.Context(), emptied(t)); err != nil || next.plans != 2 {
		t.Errorf("without a log: %v", err)
	}
}

// A pass that takes over the inventory of another source has a line, whatever it writes.
func TestTakenOverSource(t *testing.T) {
	p := plan.Plan{Sync: given.Sync, Memory: plan.Memory{TakesOver: true}, Want: render.Desired{Revision: "c0ffee", Source: render.SourceID{Repository: "https://git.example.org/new"}}}
	all := Of(p)
	if len(all) != 1 || all[0].Event != SourceTakenOver || all[0].Commit != "c0ffee" || !strings.Contains(all[0].Reason, "git.example.org/new") {
		t.Errorf("%+v", all)
	}
}

func TestTakeOversAndReleases(t *testing.T) {
	id := manifest.ID{Kind: "ConfigMap", Namespace: "default", Name: "a"}
	cases := map[string]struct {
		step plan.Step
		want []Entry
	}{
		"Adopts": {
			plan.Step{ID: id, Action: plan.Update, Write: plan.Write{Adopts: ownership.Takeover{From: []ownership.Held{{Manager: "helm"}}, Entries: make([]metav1.ManagedFieldsEntry, 1)}}},
			[]Entry{{Event: TakeOver, Action: plan.Update, Object: id.String(), From: []string{"helm"}}},
		},
		"Releases": {plan.Step{ID: id, Action: plan.Release}, []Entry{{Event: Release, Action: plan.Release, Object: id.String()}}},
		"Plain":    {plan.Step{ID: id, Action: plan.Update}, nil},
		"Held":     {plan.Step{ID: id, Action: plan.Hold, Would: plan.Release}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i := range tc.want {
				tc.want[i].Sync = given.Sync.String()
			}
			if diff := cmp.Diff(tc.want, Of(plan.Plan{Sync: given.Sync, Steps: []plan.Step{tc.step}})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Plans are carried out in one place of package reconcile, through the applier that package target has put the log around. So no code
// writes to a cluster beside the log.
func TestOnePlaceCarriesOut(t *testing.T) {
	count := func(text string) (all []string) {
		for _, root := range []string{"..", "../../cmd"} {
			err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
					return err
				}
				code, err := os.ReadFile(path)
				for range strings.Count(string(code), text) {
					all = append(all, filepath.ToSlash(path))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	if diff := cmp.Diff([]string{"../pass.go"}, count(".Applier.Apply(")); diff != "" {
		t.Errorf("these carry out plans (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"../target/wire.go"}, count("Audit.Around(")); diff != "" {
		t.Errorf("these record plans (-want +got):\n%s", diff)
	}
}
